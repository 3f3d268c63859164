# Query.pm: random queries whose partitions can be skipped.

package Query;

use strict;
use warnings;
use Exporter 'import';
use Random;
use Types;
our @EXPORT = qw(condition select_query unskipped skipped_by change_query prepared_query argument);

# The text of a value to ask a table for: one it has or had, one of a window
# with or without data, or an extreme.
sub some_text
{
	my ($table) = @_;
	my $info = $table->{info};

	return weighted(
		@{ $table->{pool} } ? (45 => sub { one_of(@{ $table->{pool} }) }) : (),
		25 => sub { one_of(@{ $table->{hot} }) },
		20 => sub { $info->{make}->(below $Schema::WINDOWS) },
		15 => sub { $info->{make}->($Schema::WINDOWS + below 10) },
		10 => sub { one_of(@{ $info->{extremes} }) })->();
}

# A constant to compare with, mostly of the key's own type.
sub constant
{
	my ($table) = @_;
	my $text = some_text($table);
	my $others = $table->{info}{others};
	my @others = sort keys %$others;

	if (@others && chance(25))
	{
		my $type = one_of(@others);

		return value_of($type, $others->{$type}->($text));
	}
	# As people write it, the type left to the parser.
	return quoted($text) if chance(30) && $table->{type} ne 'name';
	return value_of($table->{type}, $text);
}

# A value that is known only at execution: a subquery's, a stable function's.
sub late_value
{
	my ($table) = @_;
	my $value = value_of($table->{type}, some_text($table));

	return weighted(
		4 => "(SELECT $value)",
		2 => "rf_late($value)",
		1 => "(SELECT k FROM $table->{name}_small ORDER BY id LIMIT 1)");
}

# The same where parameters may take its place: context->{args} collects their
# number; context->{outer} is a column of another relation.
sub operand
{
	my ($table, $context) = @_;

	return $context->{outer} if $context->{outer} && chance(40);
	return late_value($table) if chance(12);
	return '$' . (1 + below scalar @{ $context->{args} }) if $context->{parameters} && @{ $context->{args} } && chance(20);
	return constant($table) if !$context->{parameters} || @{ $context->{args} } >= 4 || chance(40);
	push @{ $context->{args} }, 1;
	return '$' . scalar @{ $context->{args} };
}

# An argument for a parameter of a prepared query.
sub argument
{
	my ($table) = @_;

	return chance(4) ? 'NULL' : value_of($table->{type}, some_text($table));
}

sub like_prefix
{
	my ($table) = @_;
	my $text = some_text($table);
	my $prefix = Types::cut($text, 1 + below(chance(50) ? 5 : 90));

	$prefix =~ s/([\\%_])/\\$1/g;
	return $prefix;
}

sub string_condition
{
	my ($table, $key) = @_;
	my $prefix = like_prefix($table);
	my $plain = quoted(Types::cut(some_text($table), 1 + below 6));

	return weighted(
		4 => "$key LIKE " . quoted("$prefix%"),
		1 => "$key LIKE " . quoted($prefix . one_of('', '_', '%x', '_%')),
		1 => "$key NOT LIKE " . quoted("$prefix%"),
		1 => "$key LIKE " . quoted('%' . $prefix),
		2 => $table->{type} =~ /^(?:text|varchar)$/ ? "$key ^\@ $plain" : "$key LIKE " . quoted("$prefix%"),
		1 => $table->{type} =~ /^(?:text|varchar)$/ ? "starts_with($key, $plain)" : "$key > $plain",
		1 => "$key ~ " . quoted('^' . join('', grep { /\w/ } split //, Types::cut($plain, 5))));
}

sub range_condition
{
	my ($table, $key) = @_;
	my $type = $table->{info}{range};
	my ($low, $high) = (some_text($table), some_text($table));
	my $cast = $table->{type};
	my $bounds = quoted(one_of('[)', '[]', '()', '(]'));
	my $range = "$type(least(" . value_of($cast, $low) . ', ' . value_of($cast, $high) . '), '
	  . (chance(20) ? 'NULL' : 'greatest(' . value_of($cast, $low) . ', ' . value_of($cast, $high) . ')') . ", $bounds)";

	return chance(50) ? "$range \@> $key" : "$key <\@ $range";
}

sub list
{
	my ($table) = @_;

	return map { chance(4) ? 'NULL' : value_of($table->{type}, some_text($table)) } 1 .. 1 + below(chance(80) ? 4 : 30);
}

# A condition on the key alone.
sub key_condition
{
	my ($table, $alias, $context) = @_;
	my $key = $table->key($alias);
	my $collate = $table->{info}{string} && chance(8) ? ' COLLATE "C"' : '';
	my $null = one_of('IS NULL', 'IS NOT NULL');

	return one_of($key, "NOT $key", "$key IS TRUE", "$key IS NOT FALSE", "$key IS UNKNOWN") if $table->{type} eq 'bool' && chance(30);
	return "$key " . one_of('<', '<=', '>', '>=', '=') . ' ' . quoted(one_of(@{ $table->{info}{long} })) if $table->{info}{long} && chance(5);
	return string_condition($table, $key) if $table->{info}{string} && chance(25);
	return range_condition($table, $key) if $table->{info}{range} && chance(8);
	return weighted(
		40 => sub { "$key = " . operand($table, $context) . $collate },
		5 => sub { operand($table, $context) . " = $key" },
		12 => sub { "$key " . one_of('<', '<=', '>', '>=') . ' ' . operand($table, $context) . $collate },
		3 => sub { operand($table, $context) . one_of('<', '<=', '>', '>=') . $key },
		12 => sub { "$key BETWEEN " . operand($table, $context) . ' AND ' . operand($table, $context) },
		2 => sub { "$key BETWEEN SYMMETRIC " . operand($table, $context) . ' AND ' . operand($table, $context) },
		10 => sub { "$key IN (" . join(', ', list($table)) . ')' },
		5 => sub { "$key = ANY (ARRAY[" . join(', ', list($table)) . "]::$table->{type}\[])" },
		1 => sub { "$key " . one_of('<', '>=') . ' ' . one_of('ANY', 'ALL') . ' (ARRAY[' . join(', ', list($table)) . "]::$table->{type}\[])" },
		2 => sub { "$key NOT IN (" . join(', ', list($table)) . ')' },
		2 => sub { "$key <> " . operand($table, $context) },
		2 => sub { "$key IS NOT DISTINCT FROM " . operand($table, $context) },
		1 => sub { "NOT ($key < " . operand($table, $context) . ')' },
		1 => sub { "($key, $alias.id) >= (" . constant($table) . ', 5)' },
		1 => sub { "coalesce($key, " . value_of($table->{type}, some_text($table)) . ') = ' . operand($table, $context) },
		1 => sub { "$key = NULL" },
		8 => sub { "$key $null" })->();
}

# A condition on another column of an index of several.
sub column_condition
{
	my ($table, $alias, $column) = @_;
	my $c = "$alias.$column";
	my $value = sub {
		return $column eq 'note' ? quoted('note ' . below 11) : $column eq 'p' ? below($table->{nparts} + 1) : below 100;
	};

	return weighted(
		50 => sub { "$c = " . $value->() },
		15 => sub { "$c IN (" . join(', ', map { $value->() } 1 .. 1 + below 4) . ')' },
		10 => sub { "$c IS NULL" },
		10 => sub { "$c BETWEEN " . $value->() . ' AND ' . $value->() },
		8 => sub { "$c " . one_of('<', '<=', '>', '>=') . ' ' . $value->() },
		5 => sub { "($c = " . $value->() . " OR $c = " . $value->() . ')' },
		2 => sub { "($c = " . $value->() . " OR $c IS NULL)" },
		2 => sub { "$c IS NOT NULL" },
		5 => sub { $column eq 'note' ? "$c LIKE 'note " . one_of('', 1, 5) . "%'" : "$c = " . $value->() . '::int8' })->();
}

# A condition on the columns of such an index, mostly on all before the last.
sub row_condition
{
	my ($table, $alias, $context) = @_;
	my @columns = @{ $table->{columns} };

	@columns = @columns[ 0 .. below scalar @columns ] if chance(30);
	@columns = grep { chance(95) } @columns;
	return join(' AND ', map { $_ eq 'k' ? key_condition($table, $alias, $context) : column_condition($table, $alias, $_) } shuffled(@columns)) || 'true';
}

# A condition: on the key, on other columns, and what AND, OR and NOT make of
# them.
sub condition
{
	my ($table, $alias, $context, $depth) = @_;
	my @deeper = ($table, $alias, $context, ($depth // 0) + 1);

	return row_condition($table, $alias, $context) if @{ $table->{columns} } > 1 && chance(60);
	return key_condition($table, $alias, $context) if ($depth // 0) > 2;
	return weighted(
		60 => sub { key_condition($table, $alias, $context) },
		12 => sub { '(' . condition(@deeper) . ' OR ' . condition(@deeper) . ')' },
		12 => sub { '(' . condition(@deeper) . ' AND ' . condition(@deeper) . ')' },
		8 => sub { condition(@deeper) . ' AND ' . other_condition($table, $alias) },
		3 => sub { '(' . condition(@deeper) . ' OR ' . other_condition($table, $alias) . ')' },
		2 => sub { 'NOT (' . condition(@deeper) . ')' },
		2 => sub { 'CASE WHEN ' . condition(@deeper) . ' THEN true ELSE ' . other_condition($table, $alias) . ' END' },
		1 => sub { '(' . condition(@deeper) . ') IS TRUE' })->();
}

sub other_condition
{
	my ($table, $alias) = @_;

	return one_of(
		"$alias.p = " . below($table->{nparts}),
		"$alias.p < " . below($table->{nparts}),
		"$alias.k2 > " . below(100),
		"$alias.note = 'note " . below(11) . "'",
		"$alias.k2 BETWEEN " . below(50) . ' AND 80',
		"$alias.note IS NOT NULL",
		"$alias.id % 3 = 1",
		"length($alias.note) > 3",
		$table->{where} ? "$alias.$table->{where}" : "$alias.k2 > 20");
}

# The WHERE clause for a table: implies the index's predicate more often than
# not.
sub where
{
	my ($table, $alias, $context) = @_;
	my $where = condition($table, $alias, $context);

	$where .= " AND $alias.$table->{where}" if $table->{where} && chance(70);
	return "WHERE $where";
}

# What a query reads: the table, the table under one of its partitions, a view,
# several tables as one, where an arm may return as k what it is asked for.
sub source
{
	my ($table, $context) = @_;
	my $k = sub { chance(70) ? 'k' : operand($table, { %$context, outer => undef }) . "::$table->{type} AS k" };

	return weighted(
		85 => sub { $table->{name} },
		5 => sub { "$table->{name}_view" },
		5 => sub { "$table->{name}_barrier" },
		5 => sub { one_of(@{ $table->{leaves} })->{parent} },
		6 => sub {
			'(' . join(' UNION ALL ', map { 'SELECT id, p, k2, ' . $k->() . ", note FROM $_" }
				  one_of(@{ $table->{leaves} })->{name}, one_of(@{ $table->{leaves} })->{name},
				chance(30) ? $table->{name} : ()) . ')';
		},
		6 => sub { $table->{name} . '_old' })->();
}

sub join_query
{
	my ($table, $context) = @_;
	my $t = source($table, $context);
	my $u = "$table->{name}_small";
	my $on_a = condition($table, 'a', $context);
	my $on = condition($table, 'a', { %$context, outer => 'u.k' });
	my $on_b = condition($table, 'b', $context);
	my $equal = 'u.k = ' . operand($table, $context);

	return one_of(
		"SELECT u.id, a.id FROM $u u JOIN $t a ON a.k = u.k WHERE $equal",
		"SELECT u.id, a.id FROM $u u JOIN $t a ON a.k = u.k AND $on",
		"SELECT u.id, a.id FROM $u u LEFT JOIN $t a ON a.k = u.k AND $on",
		"SELECT u.id, a.id FROM $u u LEFT JOIN $t a ON a.k = u.k WHERE $equal",
		"SELECT u.id, a.id FROM $u u LEFT JOIN $t a ON a.id = u.id AND $on WHERE a.k IS NULL",
		"SELECT u.id, a.id FROM $u u LEFT JOIN $t a ON a.id = u.id WHERE $on",
		"SELECT u.id, a.id FROM $t a RIGHT JOIN $u u ON a.k = u.k AND $on WHERE a.k2 IS NULL OR a.k2 > 10",
		"SELECT u.id, a.id FROM (SELECT * FROM $t a WHERE $on_a) a FULL JOIN $u u ON a.id = u.id",
		"SELECT count(*), min(a.id), max(b.id) FROM $t a JOIN $t b ON a.id = b.id AND a.k = b.k WHERE $on_a AND $on_b",
		"SELECT count(*), min(a.id), max(b.id) FROM $t a LEFT JOIN $t b ON a.id = b.id AND $on_b WHERE $on_a",
		"SELECT u.id FROM $u u WHERE EXISTS (SELECT FROM $t a WHERE a.k = u.k AND $on)",
		"SELECT u.id FROM $u u WHERE NOT EXISTS (SELECT FROM $t a WHERE $on AND a.k2 > u.id % 50)",
		"SELECT u.id FROM $u u WHERE u.k IN (SELECT a.k FROM $t a WHERE $on)",
		"SELECT u.id, (SELECT count(*) FROM $t a WHERE $on AND a.k2 > u.id % 50) FROM $u u",
		"SELECT u.id, s.id FROM $u u, LATERAL (SELECT a.id FROM $t a WHERE $on ORDER BY a.id LIMIT 3) s",
		"SELECT u.id, a.id FROM $u u JOIN $t a ON $on",
		"SELECT u.id, v.id, a.id FROM $u u JOIN $u v ON v.id > u.id LEFT JOIN $t a ON a.k = v.k AND $on",
		"SELECT g, s.id FROM generate_series(1, 2) g, LATERAL (SELECT a.id FROM $t a WHERE $on_a AND a.k2 > g ORDER BY a.id LIMIT 5) s");
}

# A query: its text, and whether its rows come in a certain order.
sub select_query
{
	my ($table, $context) = @_;
	my $t = source($table, $context);
	my $where = where($table, 'a', $context);
	my $more = condition($table, 'b', $context);
	my $vague = $table->{info}{vague};
	my $least = $vague || $table->{type} =~ /bool|uuid|macaddr|bytea|name/ ? 'id' : 'k';
	my $order = one_of('', ' DESC') . one_of('', ' NULLS FIRST', ' NULLS LAST');

	return (join_query($table, $context), 0) if chance(18);
	return @{
		weighted(
			30 => [ "SELECT a.id, a.p, a.k FROM $t a $where", 0 ],
			15 => [ "SELECT count(*), count(a.k), md5(string_agg(a.id::text, ',' ORDER BY a.id)) FROM $t a $where", 1 ],
			8 => [ "SELECT a.id FROM $t a $where ORDER BY a.k$order, a.id LIMIT " . (1 + below 20), 1 ],
			4 => [ "SELECT a.id FROM $t a $where ORDER BY a.id OFFSET 2", 1 ],
			4 => [ "SELECT min(a.$least), max(a.$least) FROM $t a $where", 1 ],
			3 => [ "SELECT a.p, count(*) FROM $t a $where GROUP BY a.p HAVING count(*) > 1", 0 ],
			3 => [ 'SELECT ' . ($vague ? 'count(DISTINCT a.k)' : 'DISTINCT a.k') . " FROM $t a $where", 0 ],
			3 => [ "WITH c AS MATERIALIZED (SELECT * FROM $t a $where) SELECT x.id FROM c x JOIN c y USING (id)", 0 ],
			3 => [ "SELECT x.id, x.k FROM (SELECT * FROM $t a $where) x WHERE x.k2 > 10", 0 ],
			3 => [ "SELECT a.id FROM $t a $where UNION ALL SELECT b.id FROM $table->{name} b WHERE $more", 0 ],
			2 => [ "SELECT a.id FROM $t a $where EXCEPT SELECT b.id FROM $table->{name} b WHERE $more", 0 ],
			2 => [ "SELECT a.id, row_number() OVER (ORDER BY a.id) FROM $t a $where", 0 ],
			2 => [ "SELECT (SELECT count(*) FROM $t a $where), (SELECT min(b.id) FROM $table->{name} b WHERE $more)", 1 ])
	};
}

# A query for a key of a window that no row ever gets, all columns of the index
# named; nothing for a type that has too few values.
sub absent_query
{
	my ($table) = @_;
	my $value = value_of($table->{type}, $table->{info}{make}->($Schema::WINDOWS + 12 + 2 * below 2));
	my %condition = (
		k => sprintf("$table->{key} = $table->{key}", 'a.k', $value),
		k2 => 'a.k2 = ' . (21 + below 79),
		note => "a.note = 'note " . below(10) . "'",
		p => 'a.p = ' . below($table->{nparts}));

	return if $table->{type} eq 'bool';
	return "SELECT FROM $table->{name} a WHERE "
	  . join ' AND ', (map { $condition{$_} } @{ $table->{columns} }), $table->{where} ? "a.$table->{where}" : ();
}

# How many partitions does a plan skip?
sub skipped_by
{
	my $n = 0;

	for (@_)
	{
		$n += $1 if /Partitions Skipped: (\d+) of \d+$/;
	}
	return $n;
}

# Some queries for keys that no row has, if none of them skips anything although
# the indexes were just summarized; else nothing.  There are so many that a
# filter cannot take them all for keys of all partitions.
sub unskipped
{
	my ($table, $session) = @_;
	my @queries = map { absent_query($table) } 1 .. 20;
	my $indexes = $session->must("SELECT count(rangefilter_summarize(indexrelid)) FROM pg_partition_tree(to_regclass('$table->{name}_key')), pg_index
		WHERE indexrelid = relid AND isleaf AND indisvalid;");

	return if !$indexes || grep { skipped_by($session->run("EXPLAIN (COSTS OFF) $_;")) } @queries;
	return @queries;
}

# A statement that changes what it finds, and returns it.
sub change_query
{
	my ($table) = @_;
	my $t = $table->{name};
	my $where = where($table, 'a', {});
	my $on = condition($table, 'a', {});
	my $returning = 'RETURNING a.id, a.p, a.k2, a.k, a.note';

	return one_of(
		"UPDATE $t a SET note = 'found', k2 = k2 + 1 $where $returning",
		"UPDATE $t a SET k = " . $table->new_value . " $where $returning",
		"UPDATE $t a SET p = " . below($table->{nparts}) . " $where $returning",
		"UPDATE $t a SET note = u.note FROM $t u WHERE u.id = a.id AND $on $returning",
		"DELETE FROM $t a $where $returning",
		"DELETE FROM $t a USING ${t}_small u WHERE a.k = u.k AND $on $returning",
		"WITH d AS (DELETE FROM $t a $where $returning) SELECT count(*), min(id), max(id) FROM d",
		"SELECT a.id, a.k FROM $t a $where " . one_of('FOR UPDATE', 'FOR SHARE', 'FOR NO KEY UPDATE OF a'),
		"MERGE INTO $t a USING ${t}_small u ON a.k = u.k AND $on WHEN MATCHED AND a.id % 2 = 0 THEN DELETE"
		  . ' WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, p, k) VALUES (-u.id, 0, u.k)',
		"INSERT INTO $t (id, p, k2, k) SELECT -a.id, a.p, 1, a.k FROM $t a $where RETURNING id, k");
}

# A query with a name, called many times: a prepared statement or a function.
# Returns what makes it, how it is called (%s: the arguments), and how many
# arguments it takes.
sub prepared_query
{
	my ($table, $name) = @_;
	my $context = { parameters => chance(60), args => [] };
	my ($query, $ordered) = select_query($table, $context);
	my $nargs = @{ $context->{args} };
	my $types = join ', ', ($table->{type}) x $nargs;
	my $list = $nargs ? "($types)" : '';
	my $kind = weighted(70 => 'prepare', 15 => 'plpgsql', 15 => 'sql');

	return ("PREPARE $name$list AS $query", $nargs ? "EXECUTE $name(%s)" : "EXECUTE $name", $nargs, $ordered)
	  if $kind eq 'prepare';

	my $volatility = one_of('VOLATILE', 'STABLE');
	my $body = $kind eq 'sql'
	  ? "SELECT x::text FROM ($query) x"
	  : "BEGIN RETURN QUERY SELECT x::text FROM ($query) x; END";

	return ("CREATE FUNCTION $name($types) RETURNS SETOF text LANGUAGE $kind $volatility AS \$body\$$body\$body\$",
		"SELECT * FROM $name(%s)", $nargs, $ordered);
}

1;
