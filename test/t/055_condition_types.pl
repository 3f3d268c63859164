# Conditions of all forms on columns of many types: arrays with NULLs and without elements, comparisons of rows and of
# different types, patterns with escapes, truth values of conditions, domains, collations, times in time zones.  The tables
# have sub-partitions, other orders of columns, and indexes of single partitions.  With constants, with values known only at
# execution, and by generic plans: the same rows as without skipping.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../oracle";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Random;
use RangeFilter;
use Test::More;
use Types;

my $seed = seed();
my $rounds = 8;
my $per_round = ($ENV{CONDITIONS} || 1600) / $rounds;
my $node = new_server('condition_types');

# The values of each type; a partition has three of each, and some others.
my @integers = qw(-1 0 1 2 3 4 5 7 100);
my @words = ('', 'a', 'ab', 'abc', 'a%', 'a_', 'a\\', 'a\\%', 'A', 'AB', 'a ', 'b', "\x{c3}\x{a4}", 'x' x 40);
my %values = (
	int2 => [ @integers, -32768, 32767 ],
	int4 => [ @integers, -2147483648, 2147483647, 32768 ],
	int8 => [ @integers, '-9223372036854775808', '9223372036854775807', 2147483648, 32768 ],
	float4 => [qw(NaN Infinity -Infinity -0 0 1 2 0.1 1e-45 16777216 3.4e38 -1)],
	float8 => [qw(NaN Infinity -Infinity -0 0 1 2 0.1 0.10000000149011612 16777217 1e300 5e-324)],
	numeric => [qw(NaN Infinity -Infinity 0 0.00 1 1.0 1.10 1.1 1e-20 100 1e20 -1 2.000)],
	date => [ qw(infinity -infinity 2024-03-31 2024-03-30 2024-10-27 2000-01-01 1999-12-31 5874897-12-31), '4713-01-01 BC' ],
	timestamp => [
		qw(infinity -infinity 2024-03-31T02:30 2024-03-31 2024-03-31T03:00 2024-10-27T02:30 2000-01-01 1999-12-31T23:59:59.999999),
		'4713-01-01 BC'
	],
	timestamptz => [
		qw(infinity -infinity 2024-03-31T02:30+01 2024-03-31T00:00Z 2024-03-31T01:00Z 2024-10-27T00:30Z 2024-10-27T01:30Z 2000-01-01T00:00Z),
		'4713-01-01 00:00+00 BC'
	],
	text => \@words,
	bpchar => [ map { substr $_, 0, 3 } @words[ 0 .. 11 ] ],
	name => [ @words[ 0 .. 11 ] ],
	bool => [qw(t f)]);

# Columns: their type, that of their values, and those they are compared with.
my %columns = (
	i2 => [qw(int2 int2 int4 int8)], i4 => [qw(int4 int4 int2 int8)], i8 => [qw(int8 int8 int2 int4)], dm => [qw(small int4 int8)],
	f4 => [qw(float4 float4 float8)], f8 => [qw(float8 float8 float4)], nu => [qw(numeric numeric)],
	da => [qw(date date timestamp timestamptz)], ts => [qw(timestamp timestamp date timestamptz)], tz => [qw(timestamptz timestamptz date timestamp)],
	tc => [ 'text COLLATE "C"', qw(text name) ], tx => [ 'text COLLATE other', 'text' ], bc => [ 'char(4) COLLATE "C"', 'bpchar' ],
	nm => [qw(name name text)], bo => [qw(bool bool)]);
my @columns = sort keys %columns;
my %strings = map { $_ => 1 } qw(tc tx bc nm);
my %expressions = (
	'(i4 / 2 + i2)' => 'int4', '(i4 > 3)' => 'bool', 'lower(tc)' => 'text', '(tx COLLATE "C")' => 'text', '(i4 IS NULL)' => 'bool',
	'coalesce(i4, 2)' => 'int4', '(nu * 2)' => 'numeric', '(f4::float8)' => 'float8', q{least(da, '2020-01-01'::date)} => 'date');
my $partitions = 7;

# Placeholders for values, to be made constants, parameters or subqueries.
my @placed;

sub place
{
	my ($type, $text) = @_;

	push @placed, (defined $text ? quoted($text) : 'NULL') . "::$type";
	return "<$#placed>";
}

sub value { return place($_[0], chance($_[1] // 4) ? undef : one_of(@{ $values{ $_[0] } })); }

sub types { my ($column) = @_; return $expressions{$column} // one_of(@{ $columns{$column} }[ 1, 1, 1 .. $#{ $columns{$column} } ]); }

sub array
{
	my ($type) = @_;
	my @elements = map { chance(15) ? 'NULL' : '"' . one_of(@{ $values{$type} }) =~ s/\\/\\\\/gr . '"' } 1 .. one_of(0, 1, 2, 3, 3, 5);

	return place("$type\[]", chance(3) ? undef : '{' . join(',', @elements) . '}');
}

sub pattern
{
	my ($column) = @_;
	my $prefix = substr(one_of(@words[ 0 .. 11 ]), 0, 3);
	my $ignored = chance(15) ? ' COLLATE ' . one_of('"C"', '"POSIX"', 'other') : '';

	$prefix =~ s/([\\%_])/\\$1/g if chance(60);
	$prefix .= one_of('', '%', '%', '_', '%b%', '\\%', '_%');
	return weighted(
		6 => sub { "$column " . one_of('LIKE', 'LIKE', 'NOT LIKE', 'ILIKE') . ' ' . place('text', $prefix) . $ignored },
		1 => sub { "$column LIKE " . place('text', $prefix =~ s/\\/!/gr) . " ESCAPE '" . one_of('!', '!', '', 'a') . "'" },
		2 => sub { "$column " . one_of('~', '!~', '~*') . ' ' . place('text', '^' . one_of('a', 'ab', 'a.', 'a|b', 'ab?', 'A') . one_of('', '$', '.*')) },
		2 => sub { $column eq 'bc' || $column eq 'nm' ? "$column = " . value('text') : "$column ^@ " . place('text', one_of(@words[ 0 .. 11 ])) },
		1 => sub { "starts_with($column, " . place('text', one_of(@words[ 0 .. 11 ])) . "$ignored)" },
		1 => sub { "$column " . one_of('LIKE ANY', 'NOT LIKE ALL') . ' (' . place('text[]', one_of('{}', '{a%,NULL}', '{a%,ab,"b%"}', '{"a\\\\%"}')) . ')' })->();
}

sub clause
{
	my @about = @_;
	my $column = chance(12) ? one_of(sort keys %expressions) : one_of(@about);
	my ($type, $other) = (types($column), one_of(@about));
	my $operator = one_of('=', '=', '=', '<', '<=', '>', '>=', '<>');

	return one_of($column, "NOT $column") . one_of('', ' IS TRUE', ' IS NOT TRUE', ' IS FALSE', ' IS NOT FALSE', ' IS UNKNOWN', ' IS NOT UNKNOWN')
	  if $type eq 'bool' && chance(50);
	return pattern($column) if $strings{$column} && chance(30);
	return weighted(
		20 => sub { "$column $operator " . value($type) },
		3 => sub { value($type) . " $operator $column" },
		5 => sub { "$column BETWEEN " . one_of('', 'SYMMETRIC ') . value($type) . ' AND ' . value($type) },
		6 => sub { "$column " . one_of('', '', 'NOT ') . 'IN (' . join(', ', map { value($type, 10) } 0 .. below 4) . ')' },
		8 => sub { "$column $operator " . one_of('ANY', 'ANY', 'ANY', 'ALL') . ' (' . array($type) . ')' },
		2 => sub { "$column = ANY (ARRAY[" . join(', ', map { value($type, 10) } 0 .. below 3) . "]::$type\[])" },
		4 => sub { "$column IS " . one_of('', 'NOT ') . 'NULL' },
		3 => sub { "$column IS " . one_of('', 'NOT ') . 'DISTINCT FROM ' . value($type, 15) },
		5 => sub { "($column, $other) $operator (" . value($type) . ', ' . value(types($other)) . ')' },
		2 => sub { "($column, $other) IN ((" . value($type) . ', ' . value(types($other)) . '), (' . value($type) . ', ' . value(types($other)) . '))' },
		1 => sub { "coalesce($column = " . value($type) . ', ' . one_of('true', 'false') . ')' },
		1 => sub { 'p = ' . below($partitions) })->();
}

sub condition
{
	my ($depth, @about) = @_;
	my $word = one_of(' AND ', ' OR ');

	@about = one_of(@about) if chance(35);
	return clause(@about) if $depth == 0 || chance(22);
	return weighted(
		5 => sub { 'NOT (' . condition($depth - 1, @about) . ')' },
		5 => sub { '(' . condition($depth - 1, @about) . ') IS ' . one_of('TRUE', 'TRUE', 'NOT TRUE', 'NOT FALSE', 'UNKNOWN', 'NOT NULL') },
		2 => sub { 'CASE WHEN ' . condition($depth - 1, @about) . ' THEN ' . condition($depth - 1, @about) . ' ELSE false END' },
		88 => sub { '(' . join($word, map { condition($depth - 1, @about) } 0 .. 1 + below 2) . ')' })->();
}

# The text of a condition with values of one kind in the places: constants, subqueries and stable functions, parameters.
sub filled { my ($text, $kind) = @_; return $text =~ s/<(\d+)>/$kind->($placed[$1])/ger; }

sub question
{
	my ($first, @about) = @_;
	my ($text, @arguments);

	@placed = ();
	$text = condition(below(5), @about);
	$text = "$first = " . value(types($first), 0) . " AND $text" if $columns{$first} && chance(60);
	my $constants = filled($text, sub { $_[0] });
	my $late = filled($text, sub { chance(25) ? $_[0] : chance(50) ? '(SELECT ' . $_[0] . ')' . ($_[0] =~ /(::\S+)$/)[0] : "late($_[0])" });
	my $parameters = filled($text, sub { push @arguments, $_[0]; '$' . @arguments });
	my $types = join ', ', map { /::(\S+)$/ } @arguments;

	return '(' . join(', ', map { "\$c\$$_\$c\$" } $constants, $late, $parameters, $types, join(', ', @arguments)) . ')';
}

# ICU wants an encoding.
$node->safe_psql('postgres', q{CREATE DATABASE c TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
$node->safe_psql(
	'c', q{
CREATE EXTENSION rangefilter;
CREATE COLLATION other (} . ($node->config_data('--configure') =~ /--with-icu/ ? "provider = icu, locale = 'en'" : "locale = 'POSIX'") . q{);
CREATE DOMAIN small AS int4 CHECK (VALUE <> 999);
CREATE FUNCTION late(anyelement) RETURNS anyelement STABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1; END';
CREATE FUNCTION run(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	EXECUTE query INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	-- What fails may fail for one partition only, or while planning; but never inside.
	IF SQLSTATE ~ '^XX' THEN RAISE; END IF;
	RETURN 'ERROR';
END $$;
CREATE FUNCTION differs(condition text, late text, parameters text, types text, args text, rows text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text = format('SELECT string_agg(%s, '' '' ORDER BY id) FROM t WHERE ', rows);
	right_one text;
	answers text[];
BEGIN
	PERFORM set_config('rangefilter.enable', 'off', true);
	right_one = run(query || condition);
	PERFORM set_config('rangefilter.enable', 'on', true);
	answers = ARRAY[run(query || condition), run(query || late)];
	IF types <> '' AND right_one IS DISTINCT FROM 'ERROR' THEN
		BEGIN
			EXECUTE format('PREPARE q (%s) AS %s', types, query || parameters);
		EXCEPTION WHEN OTHERS THEN
			types = '';
		END;
	END IF;
	IF types <> '' AND right_one IS DISTINCT FROM 'ERROR' THEN
		answers = answers || run(format('EXECUTE q (%s)', args));
		PERFORM set_config('timezone', 'Asia/Kolkata', true);
		answers = answers || run(format('EXECUTE q (%s)', args));
		PERFORM set_config('rangefilter.enable', 'off', true);
		IF run(query || condition) IS DISTINCT FROM answers[4] AND answers[4] IS DISTINCT FROM 'ERROR' THEN
			answers[4] = 'other time zone';
		ELSE
			answers[4] = right_one;
		END IF;
		DEALLOCATE q;
		PERFORM set_config('timezone', 'Europe/Berlin', true);
	END IF;
	FOR i IN 1 .. cardinality(answers) LOOP
		IF answers[i] IS DISTINCT FROM right_one AND answers[i] IS DISTINCT FROM 'ERROR' AND right_one IS DISTINCT FROM 'ERROR' THEN
			RETURN format('%s: %s, not %s', i, answers[i], right_one);
		END IF;
	END LOOP;
	RETURN NULL;
END $$;
CREATE FUNCTION skips(condition text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT FROM t WHERE ' || condition INTO plan;
	RETURN jsonb_path_exists(plan, 'strict $.**."Partitions Skipped" ? (@ > 0)');
EXCEPTION WHEN OTHERS THEN
	RETURN false;
END $$;
});

# The statements that make a partition: with another order of columns and dropped ones, partitioned itself, or neither.
sub partition
{
	my ($p, @definitions) = @_;
	my $bounds = $p < $partitions - 1 ? "FOR VALUES IN ($p)" : 'DEFAULT';
	my $middle = 5 * $p + 3;

	return "CREATE TABLE t$p PARTITION OF t $bounds" if $p % 3 == 0;
	return ("CREATE TABLE t$p (" . join(', ', shuffled(@definitions, 'gone1 int', 'gone2 text')) . ')' . ($p % 3 == 1 ? ' PARTITION BY RANGE (id)' : ''),
		"ALTER TABLE t$p DROP gone1, DROP gone2", "ALTER TABLE t ATTACH PARTITION t$p $bounds",
		$p % 3 == 1 ? ("CREATE TABLE t${p}a PARTITION OF t$p FOR VALUES FROM (MINVALUE) TO ($middle)",
			"CREATE TABLE t${p}b PARTITION OF t$p DEFAULT") : ());
}

sub row
{
	my ($p, $id) = @_;
	my $i = 0;

	return "($p, $id, " . join(', ', map {
			my $list = $values{ $columns{$_}[1] };
			my $at = chance(80) ? $p * 5 + 3 * $i++ + below 3 : below 20;

			chance(8) ? 'NULL' : quoted($list->[ $at % @$list ])
		} @columns) . ')';
}

sub make_table
{
	my @definitions = ('p int', 'id int', map { "$_ $columns{$_}[0]" } @columns);
	my @rows = map { my $p = $_; map { row($p, $p * 5 + $_) } 0 .. 4 } 0 .. $partitions - 1;

	$node->safe_psql('c', join ';', 'DROP TABLE IF EXISTS t', 'CREATE TABLE t (' . join(', ', @definitions) . ') PARTITION BY LIST (p)',
		(map { partition($_, @definitions) } 0 .. $partitions - 1), "INSERT INTO t VALUES " . join(', ', @rows));
	return;
}

# Makes some indexes.  Returns the columns they are on.
sub make_indexes
{
	my @on;

	for my $i (0 .. 2 + below 3)
	{
		my @keys = map { chance(20) ? one_of(sort keys %expressions) : one_of(@columns) } 0 .. one_of(0, 0, 1, 1, 2);
		my $options = one_of('', '', ' WITH (filter = surf)', ' WITH (bits_per_key = 4)', ' WITH (pages_per_range = 1)');
		my $where = chance(20) ? ' WHERE ' . one_of('i4 > 2', 'i4 IS NOT NULL', 'bo', 'bo IS NOT TRUE', "tc >= 'a'", 'i4 IN (1, 2, 3)') : '';

		# Of the whole table, or of two partitions alone.
		$node->safe_psql('c', join ';', map { "CREATE INDEX ON $_ USING rangefilter (" . join(', ', @keys) . ")$options$where" }
			chance(75) ? 't' : ('t0', 't2'));
		push @on, @keys;
	}
	return @on;
}

my ($wrong, $skipping) = (0, 0);
for my $round (1 .. $rounds)
{
	make_table();
	my @on = make_indexes();
	my @known = grep { $columns{$_} } @on;
	my $rows = $round % 2 ? 'id::text' : q{concat(id, ':', tableoid::regclass, md5(t::text))};

	$node->safe_psql('c', join ';', "UPDATE t SET i4 = 3, tc = 'ab' WHERE id % 7 = 3", 'DELETE FROM t WHERE id % 9 = 4',
		chance(50) ? 'VACUUM t' : (), chance(50) ? 'ANALYZE t' : (), 'INSERT INTO t VALUES ' . join(', ', map { row($_, 100 + $_) } 0 .. 3));
	my $list = join ",\n", map { question(@known ? one_of(@known) : 'i4', some_of(1 + below(3), @known, some_of(2, @columns))) } 1 .. $per_round;
	my $session = "SET timezone = 'Europe/Berlin'; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = " . one_of('on', 'on', 'off') . ';';
	my $questions = "(VALUES $list) v (condition, late, parameters, types, args)";
	my @differences = split /\n(?=\d+: )/, $node->safe_psql('c',
		"$session SELECT difference, condition, late, parameters, args
		FROM (SELECT *, differs(condition, late, parameters, types, args, \$r\$$rows\$r\$) difference FROM $questions) x
		WHERE difference IS NOT NULL");

	diag("seed $seed, round $round, indexes on @on: $_") for @differences;
	$wrong += @differences;
	$skipping += $node->safe_psql('c', "SELECT count(*) FROM (SELECT * FROM $questions LIMIT 25) v WHERE skips(condition)");
}
is($wrong, 0, "seed $seed: " . $rounds * $per_round . ' conditions');
cmp_ok($skipping, '>', 20, "$skipping of 200 conditions skip partitions");
$node->stop;
done_testing();
