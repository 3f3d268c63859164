# Joins.pm: random joins whose hash tables or sorts give their values to scans of
# the table.
#
# Both sides are relations with the columns id, p, k2 and k: outer ones read the
# table, through anything that a value can or must not be handed through, inner
# ones have from no rows to more than are asked for.  The planner may take either
# for the outer side.

package Joins;

use strict;
use warnings;
use Exporter 'import';
use Random;
use Query;
use Types;
our @EXPORT = qw(join_tables join_query_of_gates join_change join_settings);

# The statements that make what only joins need: many values.
sub join_tables
{
	my ($table) = @_;
	my $n = $table->{many} = chance(40) ? one_of(999, 1000, 1001, 1200) : 50;

	return ("CREATE TABLE $table->{name}_many (id bigint, k $table->{sql_type}$table->{collation})",
		"INSERT INTO $table->{name}_many (id, k) VALUES "
		  . join(', ', map { "($_, " . quoted(Query::some_text($table)) . ')' } 1 .. $n),
		"ANALYZE $table->{name}_many");
}

# Settings for the transaction a join runs in.
sub join_settings
{
	my @settings;
	my $steered = chance(85);

	push @settings, 'enable_nestloop = off', weighted(
		55 => [ 'enable_mergejoin = off', 'enable_hashjoin = on' ],
		45 => [ 'enable_mergejoin = on', 'enable_hashjoin = off' ])->@* if $steered;
	push @settings, "work_mem = '64kB'" if chance(40);
	push @settings, 'hash_mem_multiplier = 1' if chance(20);
	push @settings, 'enable_sort = off' if chance(10);
	push @settings, 'enable_hashagg = off' if chance(20);
	push @settings, 'from_collapse_limit = 1', 'join_collapse_limit = 1' if chance(20);
	push @settings, 'force_parallel_mode = on' if chance(10);
	# Without any costs, or with nested loops alone, whole plans with workers would
	# be started for each row.
	push @settings, 'parallel_setup_cost = 3', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	  'enable_parallel_hash = ' . one_of('on', 'off', 'off'), 'enable_parallel_append = ' . one_of('on', 'off')
	  if $steered && chance(30);
	return join '', map { "SET LOCAL $_; " } @settings;
}

# Values of the key's own type or one it is compared with, as rows of id and k.
sub literal_values
{
	my ($table) = @_;
	my $others = $table->{info}{others};
	my $type = %$others && chance(50) ? one_of(sort keys %$others) : $table->{type};
	my $id = 0;

	return '(VALUES '
	  . join(', ', map {
			my $text = Query::some_text($table);

			'(' . $id++ . '::bigint, ' . (chance(8) ? "NULL::$type"
				  : value_of($type, $type eq $table->{type} ? $text : $others->{$type}->($text))) . ')'
		} 0 .. below(chance(80) ? 6 : 60))
	  . ') v (id, k)';
}

# The inner side.
sub inner
{
	my ($table, $context) = @_;
	my $t = $table->{name};
	my $columns = 'v.id, (v.id % ' . $table->{nparts} . ')::int AS p, (v.id * 7 % 100)::int AS k2';

	return '(' . weighted(
		25 => sub { "SELECT $columns, v.k FROM ${t}_small v" },
		20 => sub { "SELECT $columns, v.k FROM " . literal_values($table) },
		8 => sub { "SELECT $columns, coalesce(v.k, " . Query::operand($table, $context) . ") AS k FROM ${t}_small v" },
		5 => sub { "SELECT $columns, greatest(v.k, " . Query::operand($table, $context) . ") AS k FROM ${t}_small v" },
		4 => sub { "SELECT $columns, v.k FROM ${t}_small v WHERE v.id > rf_late(5 + " . below(3) . ')' },
		10 => sub { "SELECT $columns, v.k FROM ${t}_many v" },
		8 => sub { "SELECT $columns, v.k FROM (SELECT * FROM ${t}_many ORDER BY id LIMIT " . one_of(0, 1, 3, 1000, 1001) . ') v' },
		4 => sub { "SELECT DISTINCT ON (v.k) $columns, v.k FROM ${t}_many v WHERE v.id < " . below(50) . ' ORDER BY v.k, v.id' },
		15 => sub { "SELECT v.id, v.p, v.k2, v.k FROM $t v WHERE v.id % " . one_of(7, 97, 400) . ' = 3' },
		8 => sub { "SELECT v.id, v.p, v.k2, v.k FROM $t v WHERE " . condition($table, 'v', $context) },
		3 => sub { "SELECT min(v.id) AS id, v.p, v.k2, v.k FROM $t v WHERE v.id % 50 = 3 GROUP BY v.p, v.k2, v.k" },
		3 => sub { "SELECT w.id, v.p, v.k2, w.k FROM ${t}_small w LEFT JOIN $t v ON v.k = w.k" })->() . ')';
}

# More rows than the planner expects: several batches, or more than are read.
sub many
{
	my ($table) = @_;
	my $n = int(one_of(2000, 7000, 8000, 20000) / $table->{many});

	return "(SELECT v.id, (v.id % 3)::int AS p, (v.id * 7 % 100)::int AS k2, v.k FROM $table->{name}_many v, rf_numbers($n) OFFSET 0)";
}

# The table, below whatever there may be between a scan and a join.
sub outer
{
	my ($table, $context) = @_;
	my $t = $table->{name};
	my $other = one_of($t, $t, "${t}_small");
	my $more = sub { $other eq $t ? 'y.id = x.id AND y.k2 ' . one_of('>', '<') . ' 50' : one_of('y.k = x.k', 'y.id = x.k2') };
	my $join = one_of('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN');
	my $columns = 'x.id, x.p, x.k2, x.k, x.note';

	return Query::source($table, $context) if chance(55);
	return '(' . weighted(
		6 => sub { "SELECT $columns FROM $t x WHERE " . condition($table, 'x', $context) },
		5 => sub { "SELECT $columns FROM $t x ORDER BY x.id" . one_of('', ' DESC') . ' LIMIT ' . one_of(3, 50, 700) },
		2 => sub { "SELECT $columns FROM $t x OFFSET 0" },
		3 => sub { "SELECT DISTINCT $columns FROM $t x" },
		2 => sub { "SELECT DISTINCT ON (x.p) $columns FROM $t x ORDER BY x.p, x.id" },
		3 => sub { "SELECT $columns FROM (SELECT *, " . one_of('count(*) OVER ()', 'row_number() OVER (ORDER BY id)', 'count(*) OVER (PARTITION BY p)') . ' AS n FROM '
			  . "$t) x WHERE x.n % 7 <> 3" },
		4 => sub { "SELECT max(x.id) AS id, x.p, x.k2, x.k, max(x.note) AS note FROM $t x GROUP BY x.p, x.k2, x.k" },
		8 => sub { "SELECT $columns FROM $t x $join $other y ON " . $more->() },
		6 => sub { "SELECT x.id, x.p, x.k2, y.k, x.note FROM $t x $join $other y ON " . $more->() },
		4 => sub { "SELECT x.id, x.p, x.k2, coalesce(y.k, x.k) AS k, x.note FROM $t x $join $other y ON " . $more->() },
		4 => sub { "SELECT $columns FROM $t x WHERE " . one_of('', 'NOT ') . "EXISTS (SELECT FROM $other y WHERE " . $more->() . ')' },
		6 => sub { "SELECT $columns FROM $t x UNION ALL SELECT y.id, " . below(3) . ', y.k2, ' . one_of('y.k', 'NULL', Query::constant($table)) . "::$table->{sql_type}, y.note FROM $t y" },
		2 => sub { "SELECT $columns FROM $t x UNION SELECT y.id, 0, y.k2, y.k, NULL FROM $t y WHERE y.id < 60" },
		2 => sub { "SELECT $columns FROM $t x " . one_of('EXCEPT', 'INTERSECT') . " ALL SELECT y.id, y.p, y.k2, y.k, y.note FROM $t y WHERE y.id % 3 = 1" },
		4 => sub { "SELECT x.id, x.p, x.k2, coalesce(x.k, " . Query::operand($table, $context) . ") AS k, x.note FROM $t x" },
		2 => sub { "SELECT $columns FROM (SELECT *, generate_series(1, 2) FROM $t) x" },
		2 => sub { "SELECT $columns FROM $t x TABLESAMPLE BERNOULLI (60) REPEATABLE (3)" },
		2 => sub { "SELECT $columns FROM ${t}_small y, LATERAL (SELECT * FROM $t z WHERE z.k2 > y.id * 10) x WHERE y.id > 3" })->() . ')';
}

# What two sides are joined on: often more than one column, not always the key.
sub on
{
	my ($table, $context) = @_;
	my $key = chance(70) ? $table->key('a') . ' = u.k' : 'a.k = ' . (chance(50) ? 'u.k' : sprintf($table->{key}, 'u.k'));
	my @on = chance(90) ? $key : ();
	my $first = $table->{columns}[0];

	# What the index begins with.
	push @on, $first eq 'note' ? "a.note = 'note ' || u.p" : "a.$first = u.$first" if $first ne 'k' && chance(60);

	push @on, one_of('a.p = u.p', 'a.k2 = u.k2', 'a.k2 = u.k2 + 1', 'a.p = u.p::int8', 'a.id = u.id') if !@on || chance(25);
	push @on, one_of('a.k2 = u.k2', 'a.id > u.id', 'a.k2 > u.k2', "a.note = 'note ' || u.p") if chance(20);
	push @on, condition($table, 'a', $context) if chance(15);
	return join ' AND ', shuffled(@on);
}

# What is told of the result, however many rows it has.
my $pairs = 'count(*), count(a.id), count(u.id), sum(a.id), sum(u.id), sum(a.id * u.id % 1009)';
my $outers = 'count(*), sum(a.id), sum(a.k2)';

# A join with aliases a and u, in all kinds.
sub simple_join
{
	my ($table, $a, $u, $on) = @_;
	my $cte = one_of('', 'MATERIALIZED', 'NOT MATERIALIZED');
	my $k = $table->key('a');

	return weighted(
		30 => "SELECT $pairs FROM $a a JOIN $u u ON $on",
		8 => "SELECT $pairs FROM $a a LEFT JOIN $u u ON $on",
		12 => "SELECT $pairs FROM $a a RIGHT JOIN $u u ON $on",
		6 => "SELECT $pairs FROM $a a FULL JOIN $u u ON $on",
		12 => "SELECT $outers FROM $a a WHERE EXISTS (SELECT FROM $u u WHERE $on)",
		8 => "SELECT $outers FROM $a a WHERE $k IN (SELECT u.k FROM $u u)",
		8 => "SELECT $outers FROM $a a WHERE NOT EXISTS (SELECT FROM $u u WHERE $on)",
		4 => "SELECT $outers FROM $a a WHERE $k NOT IN (SELECT u.k FROM $u u)",
		6 => "SELECT count(*), sum(u.id) FROM $u u WHERE EXISTS (SELECT FROM $a a WHERE $on)",
		6 => "SELECT count(*), sum(u.id) FROM $u u WHERE NOT EXISTS (SELECT FROM $a a WHERE $on)",
		6 => "SELECT a.id FROM $a a JOIN $u u ON $on ORDER BY a.id LIMIT 5",
		3 => "SELECT a.p, count(*) FROM $a a JOIN $u u ON $on GROUP BY a.p ORDER BY 1",
		4 => "SELECT $pairs FROM $a a JOIN $u u ON $on AND u.id < 4 LEFT JOIN $u v ON v.k = a.k",
		4 => "SELECT $pairs FROM $table->{name}_small v LEFT JOIN ($a a JOIN $u u ON $on) ON v.k = a.k",
		4 => "SELECT $pairs FROM ($a a LEFT JOIN $table->{name}_small v ON v.k = a.k) JOIN $u u ON $on",
		4 => "SELECT $pairs FROM $table->{name}_small v JOIN ($a a JOIN $u u ON $on) ON v.k = a.k",
		5 => "WITH c AS $cte (SELECT * FROM $a a), d AS (SELECT * FROM $u u) SELECT $pairs FROM c a JOIN d u ON $on",
		3 => "WITH c AS $cte (SELECT a.id, a.p, a.k2, a.k FROM $a a JOIN $u u ON $on) SELECT count(*), sum(a.id), sum(b.id) FROM c a JOIN c b USING (id)");
}

# The same again and again, for values of another relation.
sub repeated_join
{
	my ($table, $a, $u, $on) = @_;
	my $v = "$table->{name}_small v";
	my $fence = one_of('', ' OFFSET 0');
	my $type = one_of('', 'LEFT ', 'RIGHT ', 'FULL ');

	return one_of(
		"SELECT v.id, (SELECT count(*) || ' ' || sum(a.id) FROM $a a JOIN $u u ON $on WHERE u.id % 3 = v.id % 3) FROM $v",
		"SELECT v.id, (SELECT count(*) FROM $a a JOIN $u u ON $on WHERE a.k2 > v.id * 10) FROM $v",
		# With the hash table of the last time.
		"SELECT v.id, (SELECT count(*) || ' ' || sum(a.id) FROM (SELECT * FROM $a a WHERE a.k2 > v.id * 10$fence) a ${type}JOIN $u u ON $on) FROM $v",
		"SELECT v.id, s.* FROM $v, LATERAL (SELECT $outers FROM (SELECT * FROM $a a WHERE a.k2 > v.id * 10$fence) a WHERE "
		  . one_of('', 'NOT ') . "EXISTS (SELECT FROM $u u WHERE $on)$fence) s",
		"SELECT v.id, s.* FROM $v, LATERAL (SELECT $pairs FROM $a a JOIN (SELECT * FROM $u u WHERE u.id % 2 = v.id % 2$fence) u ON $on) s",
		"SELECT v.id, s.* FROM $v, LATERAL (SELECT $pairs FROM $a a RIGHT JOIN (SELECT * FROM $u u WHERE u.id = v.id$fence) u ON $on) s",
		"SELECT v.id FROM $v WHERE EXISTS (SELECT FROM $a a JOIN $u u ON $on AND a.id <> v.id AND u.id % 2 = v.id % 2$fence)",
		"SELECT count(*), sum(s.id) FROM $v LEFT JOIN LATERAL (SELECT a.id FROM $a a JOIN $u u ON $on AND u.k2 > v.id$fence) s ON true");
}

# A query: its text, and whether its rows come in a certain order.
sub join_query_of_gates
{
	my ($table, $context) = @_;
	my ($a, $u) = (outer($table, $context), inner($table, $context));
	my $on = on($table, $context);

	return ("SELECT $pairs FROM $table->{name} a " . one_of('', 'RIGHT ') . 'JOIN ' . many($table) . ' u ON ' . $table->key('a') . ' = u.k', 0) if chance(8);
	return ((chance(25) ? repeated_join($table, $a, $u, $on) : simple_join($table, $a, $u, $on)), 0);
}

# A statement that changes what a join finds.
sub join_change
{
	my ($table) = @_;
	my $t = $table->{name};
	my $u = inner($table, {});
	my $on = on($table, {});

	return weighted(
		3 => "UPDATE $t a SET k2 = a.k2 + 1 FROM $u u WHERE $on RETURNING a.id",
		1 => "UPDATE $t a SET k = " . $table->new_value . " FROM $u u WHERE $on RETURNING a.id, a.k",
		1 => "UPDATE $t a SET p = " . below($table->{nparts}) . " WHERE EXISTS (SELECT FROM $u u WHERE $on) RETURNING a.id",
		3 => "DELETE FROM $t a USING $u u WHERE $on RETURNING a.id",
		1 => "DELETE FROM $t a WHERE NOT EXISTS (SELECT FROM $u u WHERE $on) RETURNING a.id",
		3 => "MERGE INTO $t a USING (SELECT DISTINCT ON (u.k) u.id, u.k, u.p, u.k2 FROM $u u ORDER BY u.k, u.id, u.p, u.k2) u ON $on"
		  . " WHEN MATCHED AND a.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET k2 = -1 WHEN NOT MATCHED THEN INSERT (id, p, k2) VALUES (-1, 0, -2)",
		2 => "SELECT a.id FROM $t a JOIN $u u ON $on " . one_of('FOR UPDATE OF a', 'FOR SHARE OF a'),
		1 => "INSERT INTO $t (id, p, k2, k) SELECT -a.id, a.p, 1, a.k FROM $t a JOIN $u u ON $on RETURNING id");
}

1;
