# The setting wormhole.resource_manager: what it saves, which values it may have, how it
# is switched on and off, and what recovery says where it is missing or the page is not
# that of the record.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_server(
	'manager',
	init => { allows_streaming => 1 },
	conf => "wormhole.resource_manager = 128\nwal_consistency_checking = 'all, wormhole'\n");
my $name = 'wormhole.resource_manager';

sub set_conf
{
	my ($server, $conf) = @_;

	$server->append_conf('postgresql.conf', $conf);
	return;
}

# Does the server not start, for this reason?
sub does_not_start
{
	my ($server, $why, $text) = @_;
	my $from = -s $server->logfile;

	ok(!$server->start(fail_ok => 1), "$text: does not start");
	like(substr(slurp_file($server->logfile), $from), $why, '... and says why');
	return;
}

# Does the standby end for this reason when it replays what comes?
sub does_not_follow
{
	my ($server, $why, $text) = @_;
	my $from = -s $server->logfile // 0;

	$server->start(fail_ok => 1);
	for (1 .. 600)
	{
		last if substr(slurp_file($server->logfile), $from) =~ $why && !-e $server->data_dir . '/postmaster.pid';
		usleep(100_000);
	}
	like(substr(slurp_file($server->logfile), $from), $why, "$text: says why it ends");
	$server->_update_pid(0);
	return;
}

# WAL of random rows with an index by this method.
sub bytes
{
	my ($method) = @_;

	return $node->safe_psql('postgres', qq{
		SET wal_consistency_checking = '';
		CREATE TABLE b_$method (k int8);
		CREATE INDEX ON b_$method USING $method (k);
		SELECT pg_current_wal_insert_lsn() AS lsn \\gset
		INSERT INTO b_$method SELECT hashint8extended(i, $seed) FROM generate_series(1, 50000) i;
		SELECT (pg_current_wal_insert_lsn() - :'lsn') / 50000});
}
my ($wormhole, $btree) = (bytes('wormhole'), bytes('btree'));

# Here where all leaves come from splits; more than half of it is the table's.
cmp_ok($wormhole, '<', 1.05 * $btree, 'WAL of a random row is not more than with a btree');

# Entries, lists of TIDs, payloads, long keys.
my $rows = 'g, g % 5, repeat(md5((g % 70)::text), 20) || g, g / 3.0 FROM generate_series';

$node->safe_psql('postgres', qq{
CREATE TABLE w (k int, d int, s text COLLATE "C", f numeric);
CREATE UNIQUE INDEX w_k ON w USING wormhole (k);
CREATE INDEX w_d ON w USING wormhole (d);
CREATE INDEX w_s ON w USING wormhole (s);
CREATE INDEX w_f ON w USING wormhole (f) INCLUDE (k);
INSERT INTO w SELECT $rows(1, 3000) g ORDER BY md5(g::text)});

# A standby needs the same.
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('manager_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$node->safe_psql('postgres', "INSERT INTO w SELECT $rows(3001, 5000) g ORDER BY md5(g::text)");
use_resource_manager($standby, 0);
does_not_follow($standby, qr/resource manager with ID 128 not registered/, 'standby without');
use_resource_manager($standby, 129);
does_not_follow($standby, qr/resource manager with ID 128 not registered/, 'standby with another');
use_resource_manager($standby, 128);
$standby->start;

# Entries marked dead by scans, then records of our own, and later generic ones.
my $mark = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
	SELECT count(s) FROM w WHERE k > 0; SELECT count(s) FROM w WHERE d >= 0; SELECT count(k) FROM w WHERE s > \'\'; SELECT count(s) FROM w WHERE f > 0;';

# Both servers have the same rows in whole indexes.
sub compare
{
	my ($text) = @_;
	my $ask = 'SET enable_seqscan = off; SET enable_sort = off; SELECT count(*), md5(string_agg(k::text, \',\')) FROM (SELECT k FROM w ORDER BY k) x';

	$node->wait_for_catchup($standby);
	indexes_whole($node, 'w', $text);
	indexes_whole($standby, 'w', "$text, standby");
	is($standby->safe_psql('postgres', $ask), $node->safe_psql('postgres', $ask), '... have the same rows');
	return;
}

sub change
{
	my ($from) = @_;
	my ($half, $end) = ($from + 500, $from + 1500);

	$node->safe_psql('postgres', "DELETE FROM w WHERE k % 7 = $from % 7");
	$node->safe_psql('postgres', $mark);
	$node->safe_psql('postgres', "INSERT INTO w SELECT $rows($from, $half) g ORDER BY md5(g::text)");
	$node->safe_psql('postgres', 'VACUUM w') if pick(0, 1);
	$node->safe_psql('postgres', "INSERT INTO w SELECT $rows($half + 1, $end) g ORDER BY md5(g::text)");
	return;
}

change(10001);
compare("seed $seed, with");

# Marks are not in our own records.  The standby's page lacks those that were set since
# its last full image, and compares equal all the same.
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';

sub pages_read
{
	my $plan = $node->safe_psql('postgres', "$by_index EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off) SELECT count(fill) FROM marks WHERE k >= 0");

	die $plan unless $plan =~ /Index Scan.*?Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?/s;
	return ($1 // 0) + ($2 // 0);
}

$node->safe_psql('postgres', q{
CREATE TABLE marks (k int, fill text);
ALTER TABLE marks ALTER fill SET STORAGE plain;
CREATE INDEX marks_k ON marks USING wormhole (k);
INSERT INTO marks SELECT g, repeat('x', 5000) FROM generate_series(1, 100) g;
CHECKPOINT;
INSERT INTO marks VALUES (1000, 'full image');
DELETE FROM marks WHERE k <= 50});
cmp_ok(pages_read(), '>', 100, 'a scan marks the entries of dead rows');
cmp_ok(pages_read(), '<', 60, '... which the next one leaves out');
$node->safe_psql('postgres', q{INSERT INTO marks VALUES (1001, 'own record')});
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "$by_index SELECT count(fill) FROM marks WHERE k >= 0"), 52, '... and the standby follows');

# Without it recovery is impossible; with it nothing is lost.
$node->stop('immediate');
use_resource_manager($node, 0);
set_conf($node, "shared_preload_libraries = ''\n");
does_not_start($node, qr/resource manager with ID 128 not registered/, 'without the library');
set_conf($node, "shared_preload_libraries = 'rangefilter'\n");
does_not_start($node, qr/resource manager with ID 128 not registered/, 'without the setting');
use_resource_manager($node, 128);
$node->start;
compare("seed $seed, recovered");

# After a clean shutdown any setting will do.
foreach my $round (1 .. 4)
{
	my $value = $round % 2 ? 0 : 128;

	change(20000 + 2000 * $round);
	$node->stop('fast');
	use_resource_manager($node, $value);
	$node->start;
	is($node->safe_psql('postgres', "SHOW $name"), $value, "seed $seed, round $round: $value");
	change(30000 + 2000 * $round);
	compare('... after changes');
}

# Values that it cannot have count as none, as core has it.
$node->append_conf('postgresql.conf', "wal_consistency_checking = ''\n");
foreach my $value (1, 127, 256)
{
	my $from = -s $node->logfile;

	$node->stop('fast');
	set_conf($node, "$name = $value\n");
	$node->start;
	is($node->safe_psql('postgres', "SHOW $name"), 0, "$value is none");
	like(substr(slurp_file($node->logfile), $from), qr/WARNING: .*"wormhole\.resource_manager"/, '... and the log says so');
}

# Without preloading it has no effect, and says so.
$node->stop('fast');
set_conf($node, "$name = 128\nshared_preload_libraries = ''\n");
$node->start;
my ($stdout, $stderr);
$node->psql('postgres', q{LOAD 'rangefilter'; INSERT INTO w VALUES (-1, 1, 'x', 1); SELECT count(*) FROM w WHERE k = -1},
	stdout => \$stdout, stderr => \$stderr);
like($stderr, qr/WARNING:  wormhole.resource_manager has no effect/, 'a warning without preloading');
is($stdout, 1, '... and nothing worse');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM w WHERE k = -1'), 1, '... nor a record');
$standby->stop;
$node->stop;

# A page that is not that of the record ends recovery: one that is deleted, and a dense leaf
# of keys one byte shorter, whose TIDs are one byte longer instead.
$node = new_server('misfit', without_checksums => 1, conf => "$name = 128\nfull_page_writes = off\n");
$node->safe_psql('postgres', q{
CREATE TABLE m (k int);
CREATE INDEX m_k ON m USING wormhole (k);
INSERT INTO m SELECT generate_series(1, 100);
CREATE TABLE d (k int8);
INSERT INTO d SELECT generate_series(1, 100);
CREATE INDEX d_k ON d USING wormhole (k);
CHECKPOINT});

# Overwrites bytes of an index's first leaf; returns those that were there.
my %file = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } 'm_k', 'd_k';

sub overwrite
{
	my ($index, $at, $bytes) = @_;
	my $before;

	open(my $handle, '+<', $file{$index}) or die $!;
	binmode $handle;
	seek($handle, 8192 + $at, 0);
	read($handle, $before, length($bytes));
	seek($handle, 8192 + $at, 0);
	print $handle $bytes;
	close $handle;
	return $before;
}

$node->safe_psql('postgres', 'INSERT INTO m VALUES (1000); INSERT INTO d VALUES (1000)');
$node->stop('immediate');
my $before = overwrite('m_k', 58, pack('v', 0x000A));
does_not_start($node, qr/PANIC:  wormhole: WAL record at .* does not fit its page/, 'a deleted page');
overwrite('m_k', 58, $before);

my ($slots, $flags) = map { unpack('v', substr(slurp_file($file{d_k}), 8192 + $_, 2)) } 54, 58;
my $lengths = overwrite('d_k', $slots - 2, "\0\0");
my ($key_len, $tid_len) = unpack('CC', $lengths);
ok($flags & 128 && $tid_len == 4, 'a dense leaf');
overwrite('d_k', $slots - 2, pack('CC', $key_len - 1, 5));
does_not_start($node, qr/PANIC:  wormhole: WAL record at .* does not fit its page: not an entry of this leaf/, 'another dense leaf');
overwrite('d_k', $slots - 2, $lengths);
$node->start;
is($node->safe_psql('postgres', q{SELECT wormhole_check('m_k', true), wormhole_check('d_k', true)}), '101|101', '... and recovery goes on when they are repaired');
$node->stop;
done_testing();
