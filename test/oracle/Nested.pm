# Nested.pm: queries in which a gate or a deferred scan that skips too much changes the result
# most probably: repeated scans whose conditions have subqueries, arms of UNION ALL that
# ask the same, outer joins, recursion, and parameters some of which are NULL.
#
# The other rows, d, are rows of the table, so that each round of a loop finds some,
# often in a partition that no round before has read.

package Nested;

use strict;
use warnings;
use Exporter 'import';
use Random;
use Types;
our @EXPORT = qw(nested_statements repeated_query);

# A key of the table made of a column or parameter.
sub key_of
{
	my ($table, $value) = @_;

	return sprintf $table->{key}, $value;
}

# The same in two rows in all columns of the index; that of alias is covered by it.
sub same_row
{
	my ($table, $alias, $other) = @_;
	my @on = map { $_ eq 'k' ? key_of($table, "$alias.k") . ' = ' . key_of($table, "$other.k") : "$alias.$_ = $other.$_" } @{ $table->{columns} };

	push @on, "$alias.$table->{where}" if $table->{where};
	return join ' AND ', @on;
}

# What is true of each row d, if the subquery is that of row d.
sub of_row_d
{
	return '(' . one_of(
		'd.id IN (SELECT max(v.id) FROM d v WHERE v.id = d.id GROUP BY v.p)',
		'd.id IN (SELECT v.id FROM d v WHERE v.id = (SELECT max(w.id) FROM d w WHERE w.id <= d.id))',
		'd.id = (SELECT max(v.id) FROM (SELECT w.id FROM d w WHERE w.id <= d.id ORDER BY w.k2 LIMIT 100) v)',
		'd.id NOT IN (SELECT v.id + 1 - 1 FROM d v WHERE v.id <> d.id GROUP BY v.id)') . ' OR a.id IS NULL)';
}

# Joins of the table with rows d.
sub join_of_rows
{
	my ($table) = @_;
	my $t = one_of($table->{name}, $table->{name}, "$table->{name}_old");
	my $d = "d AS MATERIALIZED (SELECT id, p, k2, k, note FROM $table->{name} WHERE k IS NOT NULL AND id % 37 = " . below(37) . ' ORDER BY id LIMIT 12)';
	my ($a, $b) = map { same_row($table, $_, 'd') } qw(a b);
	my $av = same_row($table, 'a', 'v');
	my $and = of_row_d();

	return one_of(
		"WITH $d SELECT d.id, (SELECT count(*) FROM $t a WHERE $a AND $and) FROM d",
		"WITH $d SELECT d.id, s.id FROM d, LATERAL (SELECT a.id FROM $t a WHERE $a AND $and OFFSET 0) s",
		# In the second round the hash table of the first one is there when a gate is asked.
		"WITH $d SELECT d.id, (SELECT count(*) FROM $t a LEFT JOIN d v ON $av WHERE a.k2 > d.k2) FROM d",
		"WITH $d SELECT d.id, (SELECT count(*) FROM $t a WHERE a.k2 > d.k2 AND NOT EXISTS (SELECT FROM d v WHERE $av)) FROM d",
		"WITH $d SELECT d.id, (SELECT count(*) FROM $t a LEFT JOIN $t b ON $b AND b.id = a.id WHERE $a AND $and) FROM d",
		"WITH $d SELECT d.id, s.id FROM d, LATERAL (SELECT a.id FROM $t a WHERE $a AND a.k2 + 0 >= (SELECT d.id % 60) UNION ALL SELECT b.id FROM $t b WHERE $b" . one_of('', ' OFFSET 0') . ') s',
		"WITH RECURSIVE $d, r AS (SELECT id FROM d WHERE id % 3 = 0 UNION SELECT v.id FROM r JOIN d USING (id) JOIN $t a ON $a JOIN d v ON v.k2 BETWEEN a.k2 AND a.k2 + 25)"
		  . ' SELECT id FROM r');
}

# A scan that is run some hundred times, with values that repeat and change; some
# find nothing, some are NULL.
sub repeated_query
{
	my ($table) = @_;
	my $t = one_of(($table->{name}) x 3, "$table->{name}_view");
	my $of_d = key_of($table, 'd.k');
	my $key = key_of($table, 'a.k');
	my $values = join ', ', map { value_of($table->{type}, one_of(@{ $table->{pool} }, @{ $table->{hot} })) } 1 .. 6;
	my $rows = "d AS MATERIALIZED (SELECT row_number() OVER (ORDER BY id) AS n, id, k2, k FROM (SELECT id, k2, k FROM $table->{name}_old WHERE id % 7 = " . below(7)
	  . " ORDER BY id LIMIT 20) r UNION ALL SELECT 20 + n, -n, 50, v$table->{collation} FROM unnest(ARRAY[$values]::$table->{sql_type}\[]) WITH ORDINALITY x (v, n))";
	my $n = 100 + below 300;
	# In turns, in blocks, or at random; 26 values at most.
	my $which = one_of('g % 27', "g / 17 % 27", '(g * g + g / 5) % 27', 'CASE WHEN g < 50 THEN 3 ELSE g % 27 END');
	my $loop = "generate_series(1, $n) g LEFT JOIN d ON d.n = $which";
	my $where = $table->{where} ? " AND a.$table->{where}" : '';
	my $more = one_of('', '', ' AND a.k2 < d.k2 + 10', ' AND a.p <= d.id % 5', ' AND a.k2 % 3 <> g % 3', ' AND a.k2 >= (SELECT d.n % 60)');
	my $op = one_of('=', '=', '=', '>=', '<');

	return "WITH $rows " . one_of(
		"SELECT g, a.id FROM $loop JOIN LATERAL (SELECT id FROM $t a WHERE $key = $of_d$more$where OFFSET 0) a ON true",
		"SELECT g, a.n FROM $loop LEFT JOIN LATERAL (SELECT count(*) AS n FROM $t a WHERE $key $op $of_d$more$where) a ON true",
		"SELECT g, (SELECT sum(a.id) FROM $t a WHERE $key = $of_d$more$where) FROM $loop",
		"SELECT g FROM $loop WHERE EXISTS (SELECT FROM $t a WHERE $key = $of_d$more$where) OR g % 50 = 0",
		"SELECT g FROM $loop WHERE NOT EXISTS (SELECT FROM $t a WHERE $key = $of_d$more$where)",
		"SELECT g, a.id FROM $loop, LATERAL (SELECT id FROM $t a WHERE $key = $of_d$more$where ORDER BY id DESC LIMIT 1) a",
		"SELECT g, a.id, b.id FROM $loop JOIN LATERAL (SELECT * FROM $t a WHERE $key = $of_d$more$where ORDER BY id LIMIT 2) a ON true, LATERAL (SELECT id FROM $t b WHERE "
		  . key_of($table, 'b.k') . ' = ' . key_of($table, 'a.k') . ' AND b.k2 = a.k2 ORDER BY id LIMIT 3) b');
}

# Conditions on parameters, of which one or both may be NULL.
sub parameter_query
{
	my ($table) = @_;
	my $k = key_of($table, 'a.k');
	my ($v, $w) = map { key_of($table, $_) } '$1', '$2';

	return "SELECT count(*), sum(a.id), sum(a.k2) FROM $table->{name} a WHERE " . one_of(
		"($k = $v OR $k = $w)",
		"($k = $v OR $k = $w AND a.k2 >= \$3)",
		"($k = $v AND a.k2 < \$3 OR $k = $w AND a.k2 >= \$3)",
		"($k IS NULL AND a.id < 0 OR $k IS NOT NULL AND ($k = $v OR $k = $w))",
		"(\$1 IS NULL OR $k = $v)",
		"($k = $v OR \$1 IS NULL AND $k > $w)",
		"$k = coalesce($v, $w)",
		"$k = ANY (CASE WHEN \$3 > 30 THEN ARRAY[$v, NULL, $w] END)",
		"($k = ANY (ARRAY[$v, NULL]) OR $k = $w)",
		"($k = $v OR a.k2 = \$3)") . ($table->{where} ? " AND a.$table->{where}" : '');
}

# The statements to be run in a transaction, and to be compared.
sub nested_statements
{
	my ($table) = @_;
	my $type = $table->{type};
	my $value = sub { chance(35) ? 'NULL' : value_of($type, one_of(@{ $table->{pool} }, @{ $table->{hot} })) };
	my $calls = join ' ', map { 'EXECUTE n(' . $value->() . ', ' . $value->() . ', ' . (chance(10) ? 'NULL' : below 100) . ');' } 1 .. 4;
	my $off = join '', map { chance(30) ? "SET LOCAL enable_$_ = off; " : '' } qw(material memoize hashagg);

	return $off . join_of_rows($table) . ';' if chance(60);
	return "SET LOCAL plan_cache_mode = force_generic_plan; PREPARE n($type, $type, int) AS " . parameter_query($table) . "; $calls DEALLOCATE n;";
}

1;
