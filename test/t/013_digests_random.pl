# Sessions that ask many partitions so often that they go by digests, alone and
# side by side, of their own or shared: random questions, each asked with skipping
# and without, while they and others change the partitions, and the server starts anew.  Numbers; and in the order of
# the numbers uuids, rows of numbers, of which partitions have different parts, and strings
# or rows that begin with a string: digests of these are of hashes.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $partitions = 75;
my @spans = (20000, 100000, 1000000000);
my $span = $spans[1];
my $seed = seed();

# So many of four partitions have four times as many rows as the others.
my $many = 0;

# Keys that were there when the round began: most still are.
my @present;

# What is indexed: a column, or a function of it.  key() keeps the order.  And the second
# column of rows.
my $indexed = 'k';
my $second;

sub key
{
	my ($k) = @_;

	return $indexed =~ /(\w+)\(k\)/ ? "$1($k)" : $k;
}

# differ() returns the condition where the counts with skipping and without differ.
my $schema = qq{
CREATE FUNCTION differ(condition text) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	n int;
	m int;
BEGIN
	EXECUTE 'SELECT count(*) FROM t WHERE ' || condition INTO n;
	SET LOCAL rangefilter.enable = off;
	EXECUTE 'SELECT count(*) FROM t WHERE ' || condition INTO m;
	SET LOCAL rangefilter.enable = on;
	RETURN CASE WHEN n <> m THEN format('%s: %s, not %s', condition, n, m) END;
END \$\$;
CREATE FUNCTION differ_joined(keys int[], condition text) RETURNS text LANGUAGE plpgsql AS \$\$
DECLARE
	n int;
	m int;
	query text = 'SELECT count(*) FROM unnest(\$1) q(key) JOIN t ON ' || condition;
BEGIN
	SET LOCAL enable_hashjoin = off;
	SET LOCAL enable_mergejoin = off;
	EXECUTE query INTO n USING keys;
	SET LOCAL rangefilter.enable = off;
	SET LOCAL enable_hashjoin = on;
	EXECUTE query INTO m USING keys;
	SET LOCAL rangefilter.enable = on;
	RETURN CASE WHEN n <> m THEN format('%s, %s: %s, not %s', keys, condition, n, m) END;
END \$\$;
CREATE FUNCTION key(k int) RETURNS uuid LANGUAGE sql IMMUTABLE
	RETURN (encode(int4send(k # -2147483648), 'hex') || repeat('a7', 12))::uuid;
CREATE FUNCTION key_text(k int) RETURNS text LANGUAGE sql IMMUTABLE
	RETURN encode(int4send(k # -2147483648), 'hex') || repeat(' or so', k & 3);
CREATE TABLE t (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i)
	FROM generate_series(1, $partitions) i \\gexec
};

# The second column's value for a number, if it is there, or that of other partitions.
sub second
{
	my ($k) = @_;

	return $second =~ /p/ ? "($k & 15 | " . (pick(0, 3) << 12) . ')' : "($k & 15)";
}

# Most partitions are alike; some have few keys, narrow ones, none, or one far off.
sub fill
{
	my ($p, $kind) = @_;
	my ($n, $from, $to) = (pick(500, 700) * ($p % 4 < $many ? 4 : 1), 0, $span);

	$n = pick(0, 20) if $kind == 0;
	($from, $to) = (20000, 21000) if $kind == 1;
	my $far = $kind == 2 ? pick(-1000000000, 1000000000) : 'NULL';
	return "INSERT INTO t$p SELECT $p, $from + floor(random() * ($to - $from)) FROM generate_series(1, $n); "
	  . "INSERT INTO t$p VALUES ($p, $far)";
}

sub change
{
	my $p = pick(1, $partitions);
	my $k = pick(-100, $span + 100);
	my $kind = pick(0, 11);

	return "INSERT INTO t VALUES ($p, $k)" if $kind < 4;
	return "DELETE FROM t$p WHERE k % 3 = " . pick(0, 2) if $kind == 4;
	return "TRUNCATE t$p; " . fill($p, pick(0, 19)) if $kind == 5;
	return "VACUUM t$p" if $kind == 6;
	return "REINDEX TABLE t$p" if $kind == 7;
	return "BEGIN; INSERT INTO t VALUES ($p, $k); ROLLBACK" if $kind == 8;
	return "UPDATE t SET k = $k WHERE p = $p AND k % 50 = " . pick(0, 49) if $kind == 9;
	return "SELECT rangefilter_summarize('t_k') >= 0";
}

sub condition
{
	my $k = @present && pick(0, 1) ? $present[ pick(0, $#present) ] : pick(-100, $span + 100);
	my $kind = pick(0, 9);

	return "$indexed BETWEEN " . key($k) . " AND " . key($k + pick(0, 200)) if $kind == 0;
	return "$indexed IN (" . join(', ', map { key($_) } $k, pick(0, $span), pick(0, $span)) . ")" if $kind == 1;
	return "$indexed > " . key($k) . " AND $indexed < " . key($k + pick(1, 20)) . " AND p > " . pick(-20, 60) if $kind == 2;
	return "$indexed = " . key($k) . " OR $indexed IS NULL" if $kind == 3 && pick(0, 3) == 0;
	return "($indexed = " . key($k) . " OR $indexed = " . key(pick(0, $span)) . ") AND $indexed < " . key(pick(0, $span)) if $kind == 4;
	return "$indexed > " . key($span - pick(0, 20)) if $kind == 5 && pick(0, 3) == 0;
	return begins_as($k) if $kind == 6 && $indexed =~ /text/;
	return "$indexed = " . key($k) . " AND $second = " . second($k) if $second && $kind > 6;
	return "$indexed = " . key($k);
}

# A nested loop: gates ask for some keys that are there and some others.
sub joined
{
	my $keys = join ',', map { @present && pick(0, 2) == 0 ? $present[ pick(0, $#present) ] : pick(-100, $span + 100) } 1 .. pick(1, 40);
	my $condition = "$indexed = " . key('q.key');

	$condition = 'k BETWEEN q.key AND q.key + 20' if $indexed eq 'k' && pick(0, 3) == 0;
	$condition .= " AND $second = " . second('q.key') if $second;
	return "differ_joined('{$keys}', '$condition')";
}

# Strings that begin as a number's, with its last digits or without.
sub begins_as
{
	my ($k) = @_;

	return "$indexed LIKE ''" . substr(sprintf('%08x', ($k ^ 0x80000000) & 0xffffffff), 0, pick(5, 8)) . "%''";
}

# A partition is asked some fifteen times before its digest is made; quiet and
# busy times take turns.  In between sessions end, and others begin.
sub ask_and_change
{
	my ($node, $made, $size) = @_;
	my @sessions = map { open_session($node) } 1 .. 3;
	my @wrong;
	my $grouped = 0;

	for my $round (1 .. 8)
	{
		@present = split / /, ask($sessions[2], q{SELECT string_agg(k::text, ' ') FROM
			(SELECT k FROM t WHERE k IS NOT NULL ORDER BY random() LIMIT 50) x});
		for (1 .. 45)
		{
			my $sql = join ', ', (map { "differ('" . condition() . "')" } 1 .. 3), pick(0, 7) == 0 ? joined() : ();
			my $answer = ask($sessions[ pick(0, 5) == 0 ? 1 : 0 ], "SELECT concat_ws(E'\\n', $sql)");

			push @wrong, $answer if $answer ne '';
			next if pick(1, 45) > 4 * $round;
			my $changed = ask($sessions[ pick(0, 3) == 0 ? 0 : 2 ], change());
			push @wrong, $changed if $changed !~ /^[tf]?$/;
		}
		$grouped = 1 if ask($sessions[0], $made) eq 't';

		# All that digests were made for is of the past.
		if ($round % 3 == 0)
		{
			($span, $many) = ($spans[ pick(0, $#spans) ], pick(0, 2));
			ask($sessions[2], join('; ', map { "TRUNCATE t$_; " . fill($_, $_ % 25) } 1 .. $partitions)
				. (pick(0, 1) ? '; REINDEX TABLE t' : '; VACUUM t'));
		}
		if ($round % 2 == 0)
		{
			close_session($_) for @sessions;
			$node->stop(pick(0, 3) ? 'fast' : 'immediate');
			$node->start;
			@sessions = map { open_session($node) } 1 .. 3;
		}
		else
		{
			close_session($sessions[1]);
			$sessions[1] = open_session($node);
		}
		ask($sessions[ $round % 2 ], "SET rangefilter.cache_size = '$size'") if pick(0, 2) == 0;
	}
	close_session($_) for @sessions;
	is(join("\n", @wrong), '', "seed $seed: the same with and without skipping");
	is($grouped, 1, "seed $seed: digests side by side");
	all_verified($node, "seed $seed");
}

for (
	[ 'shared', '16MB', '', 'SELECT indexes > 40 FROM rangefilter_shared_cache()' ],
	[ 'uuids', '16MB', '', 'SELECT indexes > 40 FROM rangefilter_shared_cache()' ],
	[ 'rows', '16MB', '', 'SELECT indexes > 40 FROM rangefilter_shared_cache()' ],
	[ 'strings', '16MB', '', 'SELECT indexes > 40 FROM rangefilter_shared_cache()' ],
	[ 'small', '64MB', 'rangefilter.shared_cache_size = 1MB', 'SELECT indexes > 40 FROM rangefilter_shared_cache()' ],
	[ 'own', '300kB', 'rangefilter.shared_cache_size = 0', "SELECT sum(used_bytes) > 50000
		FROM pg_backend_memory_contexts WHERE name = 'rangefilter digests'" ])
{
	my ($name, $size, $conf, $made) = @$_;

	($span, $many) = ($spans[1], 0);
	$indexed = $name eq 'uuids' ? 'key(k)' : $name eq 'strings' ? '(key_text(k) COLLATE "C")' : 'k';
	$second = $name eq 'rows' ? '(k & 15 | p / 25 << 12)' : $name eq 'strings' && pick(0, 1) ? '(k & 15)' : '';
	my $node = new_server($name, conf => $conf);

	$node->safe_psql('postgres', $schema);
	$node->safe_psql('postgres', fill($_, $_ % 25)) for 1 .. $partitions;
	# With few bits inserts find rows that are not there.
	my $bits = $name eq 'rows' || $name eq 'strings' ? pick(4, 14) : 14;

	note("$name: $bits bits a key");
	$node->safe_psql('postgres', "CREATE INDEX t_k ON t USING rangefilter (" . join(', ', $indexed, $second || ()) . ") WITH (bits_per_key = $bits)");
	cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM rangefilter_status('t_k') WHERE filter = 'pair'}),
		'>', 25, "$name: pairs") if $indexed ne 'k' || $second;
	ask_and_change($node, $made, $size);
	$node->stop;
}
done_testing();
