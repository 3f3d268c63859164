# Crashes under a write load on wormhole indexes: after recovery every index is
# whole, holds every row, and answers as the table does; a standby as well.
# Redo compares every page with the primary's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_server(
	'wormhole_crash',
	init => { allows_streaming => 1 },
	conf => q{
max_wal_size = '64MB'
checkpoint_timeout = '30s'
wal_consistency_checking = 'all'
wal_keep_size = '8GB'
});

$node->safe_psql(
	'postgres', q{
CREATE TABLE w (k int8, d int, s text COLLATE "C", f float8);
CREATE UNIQUE INDEX w_k ON w USING wormhole (k);
CREATE INDEX w_d ON w USING wormhole (d);
CREATE INDEX w_s ON w USING wormhole (s DESC);
CREATE INDEX w_fd ON w USING wormhole (f, d) INCLUDE (k);
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING wormhole (k);
INSERT INTO u SELECT generate_series(1, 1000);
CREATE FUNCTION add_rows(a int, z int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO w SELECT k, k % 40, 'https://www.example.org/shared/by/all/' || md5(k::text) || repeat('x', k % 200), CASE WHEN k % 9 <> 0 THEN k / 3.0 END
		FROM generate_series(a, z) k WHERE NOT EXISTS (SELECT FROM w WHERE w.k = k.k);
EXCEPTION WHEN unique_violation THEN
	NULL;
END $$;
CREATE FUNCTION move_row(a int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	UPDATE w SET k = 10000000 + k WHERE k = a;
EXCEPTION WHEN unique_violation THEN
	NULL;
END $$;
});

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('wormhole_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;

my $numbers = "\\set k random(1, 20000)\n\\set few random(0, 30)\n";
my %scripts = (
	insert => [ 8, "$numbers SELECT add_rows(:k, :k + :few);\n" ],
	update => [ 1, "$numbers UPDATE w SET d = :few WHERE k BETWEEN :k AND :k + :few;\n" ],
	move => [ 1, "$numbers SELECT move_row(:k);\n" ],
	delete => [ 1, "$numbers DELETE FROM w WHERE k BETWEEN :k AND :k + 4 * :few;\n" ],
	rolled_back => [ 1, "$numbers BEGIN;
DELETE FROM w WHERE k BETWEEN :k AND :k + :few;
ROLLBACK;\n" ]);

# Everything the indexes say, and what the table says.
my $ask = q{
SELECT count(*), sum(k), count(DISTINCT k) FROM w WHERE k >= 0;
SELECT count(*), sum(k) FROM w WHERE d BETWEEN 0 AND 40;
SELECT count(*), sum(k) FROM w WHERE s > '';
SELECT count(*), sum(k) FROM w WHERE f > 0 OR f IS NULL;
SELECT md5(string_agg(k::text, ',')) FROM (SELECT k FROM w ORDER BY k) x;
SELECT md5(string_agg(s, ',')) FROM (SELECT s FROM w ORDER BY s DESC) x;
};

foreach my $round (1 .. 5)
{
	my $how = ('kill the postmaster', 'immediate stop')[ $round % 2 ];
	my $name = "seed $seed, round $round, $how";
	my $load = start_scripts($node, 20, $seed + $round, \%scripts);
	my $wait = pick(800, 2500);

	foreach (1 .. 3)
	{
		usleep($wait * 333);
		$node->psql('postgres', 'VACUUM w');
	}
	if ($how eq 'immediate stop')
	{
		$node->stop('immediate');
	}
	else
	{
		my $pid = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];

		$node->kill9;
		usleep(10_000) while kill(0, $pid);
	}
	$load->{run}->finish;

	# The backends may still be ending.
	my $up = 0;
	for (1 .. 300)
	{
		$up = $node->start(fail_ok => 1);
		last if $up;
		usleep(100_000);
	}
	ok($up, "$name: recovered");
	indexes_whole($node, 'w', $name);
	same_by_index($node, $name, $ask, '');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM u WHERE k > 0}), 0, "$name: unlogged index is empty");
	$node->safe_psql('postgres', 'INSERT INTO u SELECT generate_series(1, 1000)');
}

# The standby follows, while it answers.
my $load = start_scripts($node, 4, $seed + 9, \%scripts);
foreach (1 .. 4)
{
	usleep(800_000);
	$node->psql('postgres', 'VACUUM w');
	same_by_index($standby, "seed $seed, standby under load", $ask, '');
}
$load->{run}->finish;
$node->wait_for_catchup($standby);
indexes_whole($standby, 'w', 'standby');
my $plan = $standby->safe_psql('postgres', 'SET enable_seqscan = off; EXPLAIN SELECT k FROM w WHERE k = 5');
like($plan, qr/(Index Scan|Bitmap)/, 'a standby uses the index');
unlike($plan, qr/Index Only/, 'but looks at the rows');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), sum(k) FROM w WHERE k >= 0'),
	$node->safe_psql('postgres', 'SELECT count(*), sum(k) FROM w'), 'the standby has what the primary has');
$standby->promote;
$standby->safe_psql('postgres', q{INSERT INTO w VALUES (-1, 1, 'x', 1)});
indexes_whole($standby, 'w', 'promoted standby');
$standby->stop;
$node->stop;
done_testing();
