# A standby's query comes to a page of the directory that replay is just restoring from an
# image.  The buffer is zero at that moment, which is no damage: the query waits.
#
# gdb stops replay there.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'gdb with Python is not installed' if system('gdb -batch -ex "python pass" >/dev/null 2>&1') != 0;
plan skip_all => 'the script knows the records of PostgreSQL 15' unless `pg_config --version` =~ / 15\b/;

my $node = new_server('restored', init => { allows_streaming => 1 }, conf => "autovacuum = off\n");
my $standby = PostgreSQL::Test::Cluster->new('restored_standby');
my $directory = PostgreSQL::Test::Utils::tempdir();
my ($stopped, $go) = ("$directory/stopped", "$directory/go");

sub sql { return $node->safe_psql('postgres', @_); }

sub wait_for
{
	my ($file) = @_;

	for (1 .. 600) { return 1 if -e $file; usleep(100_000); }
	return 0;
}

# Several pages of the directory.
sql(q{
CREATE TABLE t (k int8);
CREATE INDEX t_k ON t USING wormhole (k) WITH (fillfactor = 20);
INSERT INTO t SELECT 100 * g FROM generate_series(1, 200000) g;
REINDEX INDEX t_k});
my @pages = split /\n/, sql(q{
SELECT b FROM generate_series(1, pg_relation_size('t_k') / 8192 - 1) b
WHERE get_byte(pg_read_binary_file(pg_relation_filepath('t_k'), b * 8192 + 60, 1), 0) = 1});
cmp_ok(@pages, '>', 2, 'the directory has several pages');
my $file = sql(q{SELECT pg_relation_filenode('t_k')});

$node->backup('base');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "jit = off\nenable_seqscan = off\nenable_bitmapscan = off\n");
$standby->start;
$node->wait_for_catchup($standby);
my $startup = $standby->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'");

# Stops in RestoreBlockImage() for a page of the directory, as soon as the test says that
# all is ready.  (No debugging symbols are needed.)
my $script = "$directory/stop.py";
append_to_file($script, qq{
import gdb, os, time
for command in ("set pagination off", "set confirm off"):
    gdb.execute(command)
for signal in ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP"):
    gdb.execute("handle %s nostop noprint pass" % signal)
gdb.execute("break RestoreBlockImage")
open("$directory/ready", "w").close()
inferior = gdb.selected_inferior()
def number(address, size):
    return int.from_bytes(inferior.read_memory(address, size).tobytes(), "little")
while True:
    gdb.execute("continue", to_string=True)
    reader = int(gdb.parse_and_eval("(long)\$rdi"))
    block = int(gdb.parse_and_eval("(long)\$rsi")) & 255
    reference = number(reader + 104, 8) + 88 + 64 * block
    if number(reference + 12, 4) == $file and number(reference + 20, 4) in (@{[join ',', @pages[1 .. $#pages]]},):
        break
open("$stopped", "w").close()
for i in range(600):
    if os.path.exists("$go"):
        break
    time.sleep(0.1)
gdb.execute("delete")
gdb.execute("detach")
});

my $output = '';
my $gdb = IPC::Run::start([ 'gdb', '-q', '-batch', '-p', $startup, '-x', $script ], '<', '/dev/null', '>&', \$output);

if (!wait_for("$directory/ready"))
{
	$gdb->kill_kill;
	note('gdb cannot attach to processes here');
	done_testing();
	exit;
}

# One goes down the directory, the other one along it, to make a hint.
my @sessions = map { open_session($standby) } 1 .. 2;
my @asked = ("SELECT k FROM t WHERE k = 15000000;", "SELECT k FROM t WHERE k = 100;");

ask($sessions[$_], 'SET wormhole.hint_after = ' . (1000 - 1000 * $_) . ';') for 0, 1;
sql('INSERT INTO t SELECT g FROM generate_series(15000001, 15000999) g WHERE g % 100 > 0');
ok(wait_for($stopped), 'replay has stopped where it restores a page of the directory');
send_sql($sessions[$_], $asked[$_]) for 0, 1;
usleep(2_000_000);
append_to_file($go, '');
is(answer($sessions[0]), '15000000', 'a lookup finds its key');
is(answer($sessions[1]), '100', 'and so does one that reads the whole directory');
$gdb->finish;
close_session($_) for @sessions;
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT wormhole_check('t_k', true)"), sql('SELECT count(*) FROM t'), 'the index is whole');

done_testing();
