# wormhole_check() takes its locks in the order in which inserts, and redo on a
# standby, take theirs: nobody waits for ever while leaves and directory pages split.
# It lets go of them when an interrupt waits, and goes on where it was.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(time);

my $seed = seed();
my $node = new_server('check_load', init => { allows_streaming => 1 },
	conf => "max_wal_size = '512MB'\nsynchronous_commit = off\n");

# Long keys that differ late have long anchors: few fit on a directory page.
$node->safe_psql('postgres', q{
CREATE TABLE w (s text COLLATE "C");
CREATE INDEX w_s ON w USING wormhole (s);
CREATE FUNCTION key(k int8) RETURNS text LANGUAGE sql AS $$SELECT lpad(k::text, 9, '0') || repeat('x', 900) || k$$;
INSERT INTO w SELECT key(k * 1000) FROM generate_series(1, 2000) k;
});
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('check_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = '-1'\n");
$standby->start;

my $insert = "\\set k random(1000, 2000000)\nINSERT INTO w SELECT key(:k + i) FROM generate_series(1, 20) i;\n";
my $check = "SELECT wormhole_check('w_s');\n";
my $interrupt = "SELECT count(pg_log_backend_memory_contexts(pid)) FROM pg_stat_activity\n" .
	"WHERE query LIKE 'SELECT wormhole_check%';\n\\sleep 20 ms\n";
my @loads = (
	start_scripts($node, 6, $seed, { insert => [ 1, $insert ] }),
	start_scripts($node, 6, $seed, { check => [ 1, $check ] }),
	start_scripts($standby, 6, $seed, { check => [ 1, $check ] }),
	map { start_scripts($_, 6, $seed, { interrupt => [ 1, $interrupt ] }) } $node, $standby);

my $hangs = 0;
foreach my $load (@loads)
{
	my $timer = IPC::Run::timer(30);

	$timer->start;
	while ($load->{run}->pumpable && !$timer->is_expired)
	{
		$load->{run}->pump_nb;
		select(undef, undef, undef, 0.05);
	}
	$hangs++ if $timer->is_expired;
	unlike(${ $load->{err} }, qr/ERROR|aborted/, "seed $seed: no errors");
}
is($hangs, 0, "seed $seed: nobody waits for ever");
if ($hangs)
{
	# Who waits for such a lock cannot be stopped otherwise.
	$_->kill9 foreach ($standby, $node);
	done_testing();
	exit;
}
is($node->safe_psql('postgres', q{SELECT wormhole_check('w_s', true) - count(*) FROM w}), 0, 'the index is whole');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT wormhole_check('w_s', true) - count(*) FROM w}), 0, 'the one of the standby, too');
$standby->stop;

# A timeout ends the walk through the leaves, which is nearly all of the work, in the middle: only a part of
# the blocks is read.
$node->safe_psql('postgres', q{
CREATE TABLE big AS SELECT k FROM generate_series(1, 1000000) k;
CREATE INDEX big_k ON big USING wormhole (k) WITH (fillfactor = 50);
});
my $session = open_session($node);

sub blocks_read
{
	my ($timeout, $expected) = @_;
	my $count = "SELECT pg_stat_force_next_flush();\n"
	  . "SELECT idx_blks_read + idx_blks_hit FROM pg_statio_all_indexes WHERE indexrelname = 'big_k'";
	my $before = (split /\n/, ask($session, $count))[-1];

	like(ask($session, "SET statement_timeout = $timeout;\nSELECT wormhole_check('big_k')"), $expected,
		"a timeout of $timeout ms");
	return (split /\n/, ask($session, "SET statement_timeout = 0;\n$count"))[-1] - $before;
}
my $start = time();
my $whole = blocks_read(0, qr/^1000000$/m);
my $timeout = 1 + int((time() - $start) * 1000 / 10);
my ($part) = sort { $a <=> $b } map { blocks_read($timeout, qr/statement timeout/) } 1 .. 3;

cmp_ok($part, '<', $whole * 2 / 3, "a part of $whole blocks is read");
close_session($session);
$node->stop;
done_testing();
