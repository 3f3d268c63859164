# Hints of the buffers that pages of indexes are in: wrong ones and stale ones do
# no harm.  Each question comes from a new connection, which has nothing but
# these to go by; and from one that has cached metapages with hints of its own.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $partitions = 40;
my $seed = seed();
my $node = new_server('hints', conf => "shared_buffers = 4MB\n");

# Partition p has the numbers from 1000 p on, and strings of its own; if it is odd, so many that
# their run is not on the metapage.  wrong()
# returns what is not as it should be: there are so many rows, all in one partition.
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION rf_probes;
CREATE TABLE t (p int, k int, s text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i)
	FROM generate_series(1, $partitions) i \\gexec
CREATE TABLE other AS SELECT i, repeat('x', 1900) FROM generate_series(1, 400) i;
CREATE FUNCTION fill(part int) RETURNS void LANGUAGE sql AS
\$\$ INSERT INTO t SELECT part, part * 1000 + i, 's' || part || 'x' || i FROM generate_series(1, 200 + part % 2 * 500) i \$\$;
SELECT fill(i) FROM generate_series(1, $partitions) i;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s) WITH (filter = surf, bits_per_key = 64);
VACUUM ANALYZE t;
CREATE FUNCTION wrong(condition text, expected int) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	n int;
	line text;
	skipped text := 'nothing skipped';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN SELECT FROM t WHERE ' || condition LOOP
		skipped := coalesce(substring(line FROM 'Partitions Skipped: .*'), skipped);
	END LOOP;
	EXECUTE 'SELECT count(*) FROM t WHERE ' || condition INTO n;
	RETURN format('%s: %s rows, %s; ', condition, n, skipped)
	WHERE (n, skipped) IS DISTINCT FROM (expected, 'Partitions Skipped: @{[ $partitions - 1 ]} of $partitions');
END \$\$;
});

my $kept = open_session($node);

sub check
{
	my ($what) = @_;
	my $wrong = '';

	for (1 .. 4)
	{
		my ($p, $q, $i) = (pick(1, $partitions), pick(1, $partitions), pick(1, 200));
		my $number = 'k = ' . (1000 * $p + $i);

		$wrong .= $node->safe_psql('postgres', "SELECT concat(wrong('$number', 1), wrong('s = ''s${q}x$i''', 1))");
	}
	is($wrong, '', "seed $seed: $what");
	$wrong = join('', map { ask($kept, sprintf(q{SELECT wrong('s = ''s%sx%s''', 1)}, pick(1, $partitions), pick(1, 200))) } 1 .. 4);
	is($wrong, '', "seed $seed: $what, cached metapages");
	return;
}

check('no hints');
cmp_ok($node->safe_psql('postgres', 'SELECT rf_spoil_hints()'), '>=', 2 * $partitions, 'hints are in use');
check('wrong hints');
for my $round (1 .. 3)
{
	$node->safe_psql('postgres', 'SELECT rf_spoil_hints()');
	check("wrong hints again, $round");
}

# The buffers get other pages: those of tables that are read often enough.
for my $n (1 .. 10)
{
	$node->safe_psql('postgres', "CREATE TABLE other$n AS TABLE other; SELECT count(*) FROM other$n");
}
check('stale hints');

# Files go and come, and pages with them.
$node->safe_psql('postgres', "REINDEX TABLE t$_") foreach 1 .. 10;
check('new files');
$node->safe_psql('postgres', "TRUNCATE t$_; SELECT fill($_); VACUUM t$_") foreach 5 .. 15;
check('other files');
$node->safe_psql('postgres', "DROP TABLE t$_; CREATE TABLE t$_ PARTITION OF t FOR VALUES IN ($_); SELECT fill($_); VACUUM t$_")
  foreach 10 .. 20;
check('other indexes');
close_session($kept);
$node->restart;
$kept = open_session($node);
check('hints begin anew');
close_session($kept);
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no crash');
$node->stop;
done_testing();
