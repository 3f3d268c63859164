# Random tables with wormhole indexes: queries answer the same through the index
# and without it, in content and in order, for all types, collations and operators,
# while rows come and go and VACUUM runs, with every kind of hint.

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
my $rounds = $ENV{WORMHOLE_ROUNDS} // 26;
my @servers = (
	new_server('wormhole_oracle',
		conf => "max_wal_size = '64MB'\nshared_preload_libraries = ''\nsession_preload_libraries = 'rangefilter'\n"),
	new_server('wormhole_shared',
		conf => "max_wal_size = '64MB'\nwormhole.hint_memory = '512kB'\n"));
my @sessions = map { open_session($_) } @servers;
my $session;

ask($_, 'SET max_parallel_workers_per_gather = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0') foreach @sessions;
my @names = sort keys %types;
# Collations of strings: half of them C, the others of ICU if the server has it.
my $icu = join ', ', map { "'$_'" } qw(und-x-icu en-x-icu sv-x-icu cs-x-icu);
my @collations = map { (('C') x @$_, @$_) } [ grep { /x-icu/ } split /\n/, ask($sessions[0], "SELECT collname FROM pg_collation WHERE collname IN ($icu) ORDER BY 1") ];

@collations = ('C') unless @collations;
my $queries = 0;
my $parallel = 0;

sub run_sql
{
	my ($sql) = @_;
	my $answer = ask($session, $sql);

	die "seed $seed: $sql\n$answer" if $answer =~ /ERROR|server closed/;
	return $answer;
}

# A value for a column, as a literal or NULL.
sub value
{
	my ($column) = @_;
	my $type = $types{ $column->{type} };

	return 'NULL' if chance(5);
	return literal($column, chance(8) ? one_of(@{ $type->{extremes} }) :
		$type->{make}->(below $column->{windows}));
}

# Keys must fit on a page.
sub literal
{
	my ($column, $text) = @_;

	$text = substr $text, 0, 400 unless $text !~ /^[\x00-\x7f]*$/;
	return quoted($text) . "::$column->{type}";
}

# A value of the column's type or one it is compared with.
sub operand
{
	my ($column) = @_;
	my $type = $types{ $column->{type} };
	my $text = chance(15) ? one_of(@{ $type->{extremes} }) :
	  $type->{make}->(below $column->{windows});
	my @others = sort keys %{ $type->{others} };

	return literal($column, $text) if !@others || chance(60);
	my $other = one_of(@others);
	return quoted($type->{others}{$other}->($text)) . "::$other" . ($other eq 'name' && $column->{collation} ? " COLLATE \"$column->{collation}\"" : '');
}

sub condition
{
	my ($column) = @_;
	my $name = $column->{name};
	my $own = sub {
		literal($column, $types{ $column->{type} }{make}->(below $column->{windows}));
	};

	return weighted(
		6 => sub { "$name = " . operand($column) },
		6 => sub { "$name " . one_of('<', '<=', '>', '>=') . ' ' . operand($column) },
		4 => sub { "$name >= " . operand($column) . " AND $name < " . operand($column) },
		4 => sub { "$name IN (" . join(', ', map { $own->() } 0 .. below 6) . ')' },
		1 => sub { "$name = ANY (ARRAY[" . join(', ', $own->(), 'NULL', $own->()) . '])' },
		1 => sub { "$name < ANY (ARRAY[" . join(', ', $own->(), $own->()) . '])' },
		1 => sub { "$name IS NULL" },
		1 => sub { "$name IS NOT NULL" },
		1 => sub {
			$types{ $column->{type} }{string} ? "$name LIKE " . quoted(one_of('a', 'x', 'https://', '00')) . " || '%'" :
			  "$name = " . operand($column);
		})->();
}

sub insert_rows
{
	my ($n, @columns) = @_;
	my @rows;

	foreach (1 .. $n)
	{
		my @values = map { value($_) } @columns;

		push @rows, '(' . join(', ', @values, below 1000) . ')';
		push @rows, $rows[-1] while chance(20) && @rows < $n;
	}
	run_sql('INSERT INTO w (' . join(', ', map { $_->{name} } @columns) . ', v) VALUES ' . join(",\n", @rows))
	  if @rows;
	return;
}

# With the index in one of the ways there are, and without it.
my @ways = (
	'SET enable_bitmapscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = on',
	'SET enable_bitmapscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = off',
	'SET enable_bitmapscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off',
	'SET max_parallel_workers_per_gather = 2; SET enable_bitmapscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on');
# The hint made at once or late, with room for it or not, or not used at all.
my @hints = (
	'SET wormhole.enable_hint = on; SET wormhole.hint_after = 0; RESET wormhole.hint_memory',
	'SET wormhole.enable_hint = on; SET wormhole.hint_after = 1; RESET wormhole.hint_memory',
	q{SET wormhole.enable_hint = on; SET wormhole.hint_after = 0; SET wormhole.hint_memory = '64kB'},
	'SET wormhole.enable_hint = off');
my $without = 'SET max_parallel_workers_per_gather = 0; SET enable_bitmapscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_seqscan = on; SET enable_sort = on; SET enable_mergejoin = on';

sub compare
{
	my ($where, $exact, @columns) = @_;
	my $way = one_of(@ways) . '; SET enable_seqscan = off; ' . one_of(@hints);
	my $backward = chance(40);
	my $list = join(', ', map { $_->{name} } @columns);
	my $order = join(
		', ',
		map {
			my $desc = $backward ? !$_->{desc} : $_->{desc};
			my $first = $backward ? !$_->{first} : $_->{first};

			"$_->{name} " . ($desc ? 'DESC' : 'ASC') . ' NULLS ' . ($first ? 'FIRST' : 'LAST')
		} @columns);
	my $query = weighted(
		5 => "SELECT $list FROM w WHERE $where ORDER BY $order" . ($exact && chance(30) ? ' LIMIT ' . (1 + below 20) : ''),
		2 => "SELECT id FROM w WHERE $where ORDER BY id",
		1 => "SELECT count(*) FROM w WHERE $where",
		1 => "SELECT count(*) FROM (SELECT * FROM w WHERE $where) x JOIN w y USING ($columns[0]{name})",
		1 => $exact && $columns[0]{type} !~ /bool|uuid|macaddr|bytea|name/ ? "SELECT min($columns[0]{name}), max($columns[0]{name}) FROM w WHERE $where" : "SELECT v FROM w WHERE $where ORDER BY v");
	my $extra = $query =~ /JOIN/ ? '; SET enable_hashjoin = off; SET enable_nestloop = off' : '';
	my $mine = run_sql("$way$extra; $query");
	my $plan = run_sql("EXPLAIN (COSTS off) $query");
	my $right = run_sql("$without; RESET enable_hashjoin; RESET enable_nestloop; $query");

	$queries++;
	$parallel++ if $plan =~ /Parallel Index/;
	($mine, $right) = map { join "\n", sort split /\n/ } $mine, $right unless $exact || $mine eq $right;
	return if $mine eq $right;
	fail("seed $seed: $query");
	diag("$way\n$plan\nwith the index:\n" . substr($mine, 0, 2000) . "\nwithout:\n" . substr($right, 0, 2000));
	return;
}

foreach my $round (1 .. $rounds)
{
	my $failed = grep { !$_ } Test::More->builder->summary;
	my @columns;

	# Without and with a hint that sessions share.
	$session = $sessions[ $round % 2 ];
	foreach my $i (0 .. weighted(5 => 0, 3 => 1, 2 => 2))
	{
		# Every type is the first column once.
		my $type = $i == 0 ? $names[ $round % @names ] : one_of(@names);

		push @columns,
		  {
			name => ('a', 'b', 'c')[$i], type => $type, desc => chance(30),
			first => chance(30), windows => one_of(2, 10, 40),
			collation => $types{$type}{string} && $type ne 'name' ? one_of(@collations) : undef
		  };
	}
	my $exact = !grep { $types{ $_->{type} }{vague} || $_->{type} =~ /bpchar|timetz/ } @columns;
	my $table = join ', ',
	  map { my $sql = $types{ $_->{type} }{sql} // $_->{type}; "$_->{name} $sql" . ($_->{collation} ? " COLLATE \"$_->{collation}\"" : '') } @columns;
	my $keys = join ', ',
	  map { "$_->{name} " . ($_->{desc} ? 'DESC' : 'ASC') . ' NULLS ' . ($_->{first} ? 'FIRST' : 'LAST') } @columns;
	my $index = "CREATE INDEX w_index ON w USING wormhole ($keys)"
	  . one_of('', ' INCLUDE (v)', ' INCLUDE (id, v)')
	  . one_of('', ' WITH (deduplicate = off)', ' WITH (fillfactor = 60)');
	my $first = chance(50);

	run_sql("DROP TABLE IF EXISTS w; CREATE TABLE w (id serial, $table, v int)");
	run_sql($index) if $first;
	insert_rows(one_of(0, 200, 2000), @columns);
	run_sql($index) unless $first;
	run_sql('VACUUM ANALYZE w');
	foreach my $step (1 .. 5)
	{
		foreach (1 .. 6)
		{
			compare(join(' AND ', map { condition($_) } some_of(1 + below(scalar @columns), @columns)),
				$exact, @columns);
		}
		compare('true', $exact, @columns);
		insert_rows(one_of(0, 50, 500), @columns);
		my $column = one_of(@columns);
		run_sql("UPDATE w SET $column->{name} = " . value($column) . ', v = v + 1 WHERE id % 17 = ' . below 17);
		run_sql('UPDATE w SET v = v + 1 WHERE id % 11 = ' . below 11) if chance(50);
		run_sql('DELETE FROM w WHERE ' . condition(one_of(@columns))) if chance(50);
		run_sql('DELETE FROM w WHERE id % 3 = 0') if chance(20);
		run_sql('VACUUM w') if chance(50);
		run_sql('REINDEX INDEX w_index') if chance(10);
	}
	run_sql(q{SELECT wormhole_check('w_index', true)});
	ok($failed == grep({ !$_ } Test::More->builder->summary), "seed $seed, round $round: " . ($index =~ s/.*wormhole//r) . ' of ' . join(', ', map { $_->{type} . ($_->{collation} ? " ($_->{collation})" : '') } @columns));
}
close_session($_) foreach @sessions;
cmp_ok($queries, '>=', 35 * $rounds, 'queries asked');
cmp_ok($parallel, '>=', $rounds, 'parallel scans of the index');
$_->stop foreach @servers;
done_testing();
