# What an index adds to the cost of writes: WAL records, their bytes, and pages that are looked
# at.  That keys are found is tested elsewhere; here they must not cost more than they need.
# Each statement is run with the index and without it, and the difference counts.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

# Records and pages are the same each time.  Bytes are nearly: each index has a random number.
my $node = new_server('costs', conf => "wal_level = replica\nfull_page_writes = off\ncheckpoint_timeout = '1h'\nautovacuum = off\nmax_wal_size = '4GB'\nbgwriter_lru_maxpages = 0\n");

$node->safe_psql('postgres', q{
CREATE FUNCTION cost(statement text, OUT records int, OUT bytes int, OUT pages int) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, WAL, BUFFERS, TIMING OFF, FORMAT JSON) ' || statement INTO plan;
	plan := plan->0->'Plan';
	records := plan->>'WAL Records';
	bytes := plan->>'WAL Bytes';
	pages := (plan->>'Shared Hit Blocks')::int + (plan->>'Shared Read Blocks')::int;
END $$;
-- What an index costs n statements, about one number after the other.
CREATE FUNCTION added(definition text, load text, statements text[], settings text DEFAULT NULL) RETURNS TABLE (costs text) LANGUAGE plpgsql AS $$
DECLARE
	kind text = CASE WHEN settings = 'unlogged' THEN 'UNLOGGED' ELSE '' END;
	statement text;
	a record;
	b record;
BEGIN
	EXECUTE format('CREATE %s TABLE t (i int, k int8, s text COLLATE "C")', kind);
	EXECUTE format('CREATE %s TABLE bare (i int, k int8, s text COLLATE "C")', kind);
	EXECUTE 'INSERT INTO t SELECT i, ' || load;
	EXECUTE 'INSERT INTO bare SELECT i, ' || load;
	EXECUTE format('CREATE %s INDEX t_i ON t USING %s', CASE WHEN settings = 'unique' THEN 'UNIQUE' END, definition);
	FOREACH statement IN ARRAY statements LOOP
		a := cost(replace(statement, 'TABLE', 't'));
		b := cost(replace(statement, 'TABLE', 'bare'));
		costs := format('%s records, %s bytes, %s pages', a.records - b.records, a.bytes - b.bytes, a.pages - b.pages);
		RETURN NEXT;
	END LOOP;
	DROP TABLE t, bare;
END $$;
});

# A list of statements' costs, in which bytes may differ by a hundredth.
sub costs_are
{
	my ($name, $sql, @expected) = @_;
	my @costs = split /\n/, $node->safe_psql('postgres', $sql);

	is(scalar @costs, scalar @expected, "$name: statements") || diag(join "\n", @costs);
	for my $i (0 .. $#expected)
	{
		my ($bytes) = $expected[$i] =~ /(-?\d+) bytes/;
		my ($got) = ($costs[$i] // '') =~ /(-?\d+) bytes/;

		$costs[$i] =~ s/-?\d+ bytes/$bytes bytes/ if defined $got && defined $bytes && abs($got - $bytes) <= 0.01 * abs($bytes) + 50;
		is($costs[$i], $expected[$i], "$name: statement " . ($i + 1));
	}
}

# A statement that inserts numbers from .. to, made into keys and strings by expressions.
sub rows
{
	my ($from, $to, $k, $s) = @_;

	return "INSERT INTO TABLE SELECT i, $k, $s FROM generate_series($from, $to) i";
}

sub list
{
	return 'ARRAY[' . join(', ', map { "\$q\$$_\$q\$" } @_) . ']';
}

my $random = 'hashint8extended(i, 1)';
my $md5 = "md5(i::text)";
my $sixty = "lpad(md5(i::text), 60, 'x')";

# rangefilter: keys that are new, that are there, NULLs, and both once more.
my $load = "2 * i, 's' || 2 * i FROM generate_series(1, 3000) i";
my @statements = (rows(1, 1, '7', $sixty), rows(2, 150, '2 * i + 1', $sixty), rows(1, 100, '2 * i', "'s' || 2 * i"),
	rows(1, 100, '2 * i + 1', $sixty), rows(1, 20, 'NULL', 'NULL'), rows(1, 20, 'NULL', 'NULL'), rows(151, 300, $random, $sixty),
	map { rows(1 + 150 * $_, 150 + 150 * $_, $random, $sixty) } 2 .. 9);
costs_are('numbers', "SELECT added('rangefilter (k)', \$l\$$load\$l\$, " . list(@statements) . ')',
	'2 records, 375 bytes, 9 pages',
	'148 records, 8342 bytes, 438 pages',
	'100 records, 5636 bytes, 212 pages',
	'8 records, 454 bytes, 201 pages',
	'1 records, 61 bytes, 22 pages',
	'0 records, 0 bytes, 20 pages',
	'150 records, 8454 bytes, 374 pages',
	'150 records, 8454 bytes, 319 pages',
	'150 records, 8460 bytes, 319 pages',
	'150 records, 8454 bytes, 319 pages',
	'150 records, 8454 bytes, 318 pages',
	'152 records, 16979 bytes, 346 pages',
	'150 records, 8454 bytes, 338 pages',
	'150 records, 8460 bytes, 338 pages',
	'150 records, 8454 bytes, 336 pages');
costs_are('strings', "SELECT added('rangefilter (s)', \$l\$$load\$l\$, " . list(@statements) . ')',
	'2 records, 311 bytes, 7 pages',
	'151 records, 22990 bytes, 383 pages',
	'100 records, 6747 bytes, 212 pages',
	'3 records, 372 bytes, 297 pages',
	'1 records, 61 bytes, 22 pages',
	'0 records, 0 bytes, 20 pages',
	'152 records, 30931 bytes, 459 pages',
	'152 records, 23117 bytes, 357 pages',
	'152 records, 27202 bytes, 368 pages',
	'154 records, 51894 bytes, 399 pages',
	'152 records, 23117 bytes, 350 pages',
	'152 records, 27212 bytes, 368 pages',
	'152 records, 23117 bytes, 375 pages',
	'152 records, 35437 bytes, 378 pages',
	'152 records, 23117 bytes, 381 pages');
costs_are('unlogged', "SELECT added('rangefilter (k)', \$l\$$load\$l\$, " . list(@statements[0 .. 6]) . ", 'unlogged')",
	'0 records, 0 bytes, 8 pages',
	'0 records, 0 bytes, 734 pages',
	'0 records, 0 bytes, 412 pages',
	'0 records, 0 bytes, 217 pages',
	'0 records, 0 bytes, 22 pages',
	'0 records, 0 bytes, 20 pages',
	'0 records, 0 bytes, 674 pages');
costs_are('load', "SELECT added('rangefilter (k)', \$l\$$load\$l\$, " . list(rows(1, 500, $random, "''"), rows(501, 600, $random, "''")) . ')',
	'342 records, 19546 bytes, 943 pages',
	'0 records, 0 bytes, 100 pages');

# wormhole: into full pages and into gaps, at the end, many rows of a key, and where entries are dead.
$load = "$random, $md5 FROM generate_series(1, 5000) i";
@statements = map { rows(5001 + 500 * $_, 5500 + 500 * $_, $random, $md5) } 0 .. 3;
costs_are('random numbers', "SELECT added('wormhole (k)', \$l\$$load\$l\$, " . list(@statements) . ')',
	'508 records, 256311 bytes, 663 pages',
	'500 records, 33057 bytes, 667 pages',
	'500 records, 34737 bytes, 500 pages',
	'500 records, 36082 bytes, 500 pages');
costs_are('random strings', "SELECT added('wormhole (s)', \$l\$$load\$l\$, " . list(@statements) . ')',
	'508 records, 216145 bytes, 668 pages',
	'520 records, 273477 bytes, 764 pages',
	'501 records, 61657 bytes, 554 pages',
	'500 records, 52759 bytes, 506 pages');
costs_are('two columns', "SELECT added('wormhole (s, k)', \$l\$$load\$l\$, " . list(@statements[0 .. 1]) . ')',
	'511 records, 243265 bytes, 709 pages',
	'523 records, 296662 bytes, 755 pages');
costs_are('unique', "SELECT added('wormhole (i)', \$l\$$load\$l\$, " . list(@statements[0 .. 1]) . ", 'unique')",
	'501 records, 46011 bytes, 683 pages',
	'500 records, 38500 bytes, 613 pages');
costs_are('ascending', "SELECT added('wormhole (i)', \$l\$$load\$l\$, " . list(rows(5001, 6000, 1, "''"), rows(6001, 7000, 1, "''")) . ')',
	'1001 records, 84511 bytes, 1296 pages',
	'1002 records, 92014 bytes, 1281 pages');
costs_are('equal keys', "SELECT added('wormhole (k)', \$l\$i % 50, '' FROM generate_series(1, 5000) i\$l\$, "
	. list(rows(5001, 6000, 'i % 50', "''"), rows(6001, 7000, 'i % 50', "''")) . ')',
	'1000 records, 343940 bytes, 1111 pages',
	'1004 records, 261565 bytes, 1296 pages');
costs_are('equal keys by themselves', "SELECT added('wormhole (k) WITH (deduplicate = off)', \$l\$i % 50, '' FROM generate_series(1, 5000) i\$l\$, "
	. list(rows(5001, 6000, 'i % 50', "''"), rows(6001, 7000, 'i % 50', "''")) . ')',
	'1005 records, 314394 bytes, 1350 pages',
	'1001 records, 259837 bytes, 1254 pages');

$node->stop;
done_testing();
