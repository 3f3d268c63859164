# Servers that have just started: pages of indexes are read ahead of the questions, and the
# questions skip as they do when all is in shared buffers.  The same on a standby.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

srand(seed());

my $node = new_server('cold', init => { allows_streaming => 1 }, conf => "autovacuum = off\nrangefilter.autosummarize = off\n");
my $standby = PostgreSQL::Test::Cluster->new('standby');

# More partitions than are read ahead of at once.  Some have keys in the delta, levels,
# an open tail, or no index.  The runs of a half are on the metapages.
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, a bigint, b bigint, s text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', p) FROM generate_series(0, 149) p \gexec
INSERT INTO t SELECT p, hashint8extended(g, p), hashint8extended(g, p + 1000), md5(g || ' ' || p)
FROM generate_series(0, 149) p, generate_series(1, 400 + p % 2 * 300) g;
CREATE INDEX t_a ON t USING rangefilter (a) WITH (bits_per_key = 64);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE INDEX t_s ON t USING rangefilter (s) WITH (bits_per_key = 64);
CREATE TABLE more PARTITION OF t FOR VALUES IN (150);
DROP INDEX t_b;
CREATE INDEX t_b ON ONLY t USING rangefilter (b);
SELECT format('CREATE INDEX ON t%s USING rangefilter (b)', p) FROM generate_series(0, 149, 2) p \gexec
INSERT INTO t SELECT p, hashint8extended(g, p), hashint8extended(g, p + 1000), md5(g || ' ' || p)
FROM generate_series(0, 149, 7) p, generate_series(701, 750) g;
VACUUM ANALYZE t;
INSERT INTO t SELECT p, hashint8extended(g, p), hashint8extended(g, p + 1000), md5(g || ' ' || p)
FROM generate_series(0, 149, 5) p, generate_series(751, 800) g;
DO $$
BEGIN
	FOR g IN 801 .. 3300 LOOP
		INSERT INTO t3 SELECT 3, hashint8extended(g, 3), hashint8extended(g, 1003), md5(g || ' 3');
	END LOOP;
END $$;
CHECKPOINT;
});
$node->backup('base');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);

# Conditions on one index, on several, with keys that are there and that are not.
my @conditions;

for (1 .. 5)
{
	my ($p, $g, $absent) = (int(rand(150)), 1 + int(rand(800)), int(rand(1e9)));
	my @here = split /\|/, $node->safe_psql('postgres',
		"SELECT hashint8extended($g, $p), hashint8extended($g, $p + 1000), md5('$g $p'), hashint8extended($absent, -1), md5('$absent')");
	my ($a, $b, $s, $n, $m) = @here;

	push @conditions, "a = $a", "a = $n", "b = $b", "s = '$m'", "s LIKE '" . substr($s, 0, 9) . "%'",
		"a = $a AND b = $b", "a = $n OR s = '$s'", "(a = $n OR b = $n) AND s > '$m'",
		"a BETWEEN $n AND $n + 1000000000000", "a IN ($n, $a)";
}

# How many partitions are skipped, and the answers with skipping and without, each in a session of its
# own, for these conditions.
sub compare
{
	my ($server, @asked) = @_;
	my $script = "LOAD 'rangefilter';\n" . join('', map { "EXPLAIN (COSTS OFF) SELECT * FROM t WHERE $_;\n" } @asked);
	my $skipped = join(' ', $server->safe_psql('postgres', $script) =~ /Partitions Skipped: (\d+)/g);
	my @answers = map {
		my $enable = $_;
		$server->safe_psql('postgres', "LOAD 'rangefilter';\nSET rangefilter.enable = $enable;\n"
			. join('', map { "SELECT count(*), sum(a::numeric), sum(b::numeric) FROM t WHERE $_;\n" } @asked));
	} qw(on off);

	is($answers[0], $answers[1], $server->name . ': the rows are those without skipping');
	return $skipped;
}

foreach my $server ($node, $standby)
{
	my $warm = compare($server, @conditions);

	cmp_ok(scalar(split(' ', $warm)), '>', @conditions / 2, $server->name . ': partitions are skipped');
	foreach my $depth (0, 16)
	{
		$server->append_conf('postgresql.conf', "effective_io_concurrency = $depth");
		my @first = @conditions[ map { int(rand(@conditions)) } 1 .. 2 ];

		foreach my $condition (@first)
		{
			$server->restart;
			my $cold = compare($server, $condition);

			is($cold, compare($server, $condition), $server->name . ": a cold server skips as a warm one: $condition");
		}
		is(compare($server, @conditions), $warm, $server->name . ': as before the restarts');
	}
}

# The pages that the first question of a server looks at while it is planned.  Some partitions have no index for
# the second condition.
sub first_pages
{
	my ($depth) = @_;

	$node->append_conf('postgresql.conf', "effective_io_concurrency = $depth");
	$node->restart;
	my $plan = $node->safe_psql('postgres', "LOAD 'rangefilter';\nEXPLAIN (BUFFERS, FORMAT JSON) SELECT * FROM t WHERE a = -1 OR b = -1");
	my ($planning) = $plan =~ /"Planning": \{(.*?)\}/s;
	my ($hit, $read) = map { $planning =~ /"Shared $_ Blocks": (\d+)/ } qw(Hit Read);

	return $hit + $read;
}

cmp_ok(first_pages(16) - first_pages(0), '>', 100, 'indexes are asked once more to read ahead');

$standby->stop;
$node->stop;
done_testing();
