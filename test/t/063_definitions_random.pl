# Random changes of definitions between questions: policies and roles, partitions of other column
# orders that come and go, tables that begin and cease to inherit, temporary tables, other types,
# indexes, views and names, also in transactions that are rolled back.  Two worlds, each a schema of its own,
# get the same statements; only one of them skips.  Sessions keep their prepared statements all the while.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../oracle";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Random;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server('definitions', conf => "max_locks_per_transaction = 256\nlock_timeout = 10s\n");

# The one that skips, and the other.
my @worlds = ('w1', 'w2');
my @columns = ('k bigint', 'm bigint', 's text COLLATE "C"', 'id int', 'ten int', 'v numeric');

# What indexes on single partitions are about.
my @keys = ('k', 'm', 's', 'k, s', 's, k', 'm, k', '(k + 1)');

# Where there are several reasons to refuse a change of a type, core names the one it finds first.
my $any_reason = qr/cannot alter type of a column used (?:by a view or rule|in a policy definition)/;

my %count = (statements => 0, differences => 0, errors => 0, skipped => 0);
my ($round, %sessions, @log);

# Of the round's table: by name of a partition or child, the value of its rows' column p; those
# that are part of the table, and those that are not.
my (%parts, %apart, $is_partitioned, $is_temporary, $next_part, $next_id, @prepared);

sub key { return one_of(below(1000), below(1000), below(100_000), -below(50), 100 * below(14), 5_000_000_000 + below(1000)); }

sub text { return one_of('a', 'b', 'ab', 'zz', 'mm' . below(20), 'x' . below(1000), '', 'abc' . below(5)); }

sub arguments { return '(' . key() . ', ' . key() . ", '" . text() . "')"; }

# The session that only changes things; a temporary table has only one session.
sub any_session { return $is_temporary ? 'main' : one_of('main', 'other'); }

sub a_part { return one_of(sort keys %parts) // 't'; }

# What a session of a world answers, without what depends on the world, on OIDs, or on the order of rows.
sub answer_of
{
	my ($who, $world, $sql) = @_;
	my $answer = ask($sessions{$who}{$world}, $sql);

	$answer =~ s/^psql:[^ ]*: //mg;
	$answer =~ s/^(?:LINE \d+:.*\n.*|.*QUERY:.*|(?:CONTEXT|DETAIL|HINT):.*)$//mg;
	$answer =~ s/\bw[12]\b/world/g;
	$answer =~ s/\bpg_temp_\d+\b/pg_temp/g;
	$answer =~ s/$any_reason/cannot alter/g;
	return join "\n", sort grep { $_ ne '' } split /\n/, $answer;
}

# Runs statements in both worlds.
sub both
{
	my ($who, $sql) = @_;
	my ($skipping, $plain) = map { answer_of($who, $_, $sql) } @worlds;

	push @log, "$who: $sql";
	$count{statements}++;
	$count{errors}++ if $plain =~ /ERROR/;
	return if $skipping eq $plain;
	$count{differences}++;
	diag(join "\n", "seed $seed, round $round: $sql", "skipping: $skipping", "plain: $plain", 'before that:', @log);
	return;
}

sub fill
{
	my ($part, $p) = @_;
	my ($n, $first, $step) = (one_of(1, 5, 40, 200), one_of(0, 100 * below(14), 50_000, -40), one_of(1, 1, 7, 1000));

	both(any_session(), "INSERT INTO $part (p, k, m, s, id, ten) SELECT $p, CASE WHEN g % 17 <> 3 THEN $first + g * $step END, $p * 1000 + g, "
		  . "CASE WHEN g % 13 <> 4 THEN chr(97 + (g * 7 + $p) % 26) || (g * $p) % 50 END, $next_id + g, g % 10 "
		  . "FROM generate_series(0, $n - 1) g");
	$next_id += $n;
	return;
}

sub attach
{
	my ($part) = @_;
	my $p = delete $apart{$part};

	both('main', $is_partitioned ? "ALTER TABLE t ATTACH PARTITION $part FOR VALUES IN ($p)" : "ALTER TABLE $part INHERIT t");
	$parts{$part} = $p;
	return;
}

sub detach
{
	my ($part) = @_;
	my $concurrently = !$is_temporary && chance(30) ? ' CONCURRENTLY' : '';

	both(any_session(), $is_partitioned ? "ALTER TABLE t DETACH PARTITION $part$concurrently" : "ALTER TABLE $part NO INHERIT t");
	$apart{$part} = delete $parts{$part};
	return;
}

# A new partition or child, or a table that may become one, with columns in another order and
# some dropped.
sub create_part
{
	my $part = 'c' . $next_part++;
	my $temporary = $is_temporary ? 'TEMP ' : '';
	my (@order, @places);

	if (chance(60))
	{
		both('main', $is_partitioned ? "CREATE ${temporary}TABLE $part PARTITION OF t FOR VALUES IN ($next_part)"
			: "CREATE ${temporary}TABLE $part (CHECK (p = $next_part)) INHERITS (t)");
		$parts{$part} = $next_part;
		return;
	}
	@order = shuffled('p int', @columns);
	@places = map { chance(30) ? ("x$_ bigint", $_) : $_ } 0 .. $#order;
	both('main', "CREATE ${temporary}TABLE $part (" . join(', ', map { /^\d/ ? $order[$_] : $_ } @places) . ')');
	both('main', "ALTER TABLE $part DROP $_") for map { /^(x\d)/ ? $1 : () } @places;
	fill($part, $next_part) if chance(50);
	both('main', "CREATE INDEX ON $part USING rangefilter (" . one_of(@keys) . ')'
		  . (chance(20) ? ' WHERE ten > 2' : '')) if chance(60);
	$apart{$part} = $next_part;
	attach($part) if chance(65);
	return;
}

sub condition
{
	my ($has_parameters) = @_;
	my $k = $has_parameters ? one_of('$1', '$2', key()) : key();
	my $other = $has_parameters ? one_of('$2', key()) : key();
	my $s = $has_parameters && chance(50) ? '$3' : "'" . text() . "'";
	my $m = 1000 * below(16) + below(300);

	return one_of("a.k = $k", "a.k = $k", "a.k BETWEEN $k AND $other", "a.k < $k", "a.k >= $k", "a.k IN ($k, $other, " . key() . ')',
		"a.m = $m", "a.m BETWEEN $m AND $m + 200", "a.m IN ($m, $k)",
		"a.s = $s", "a.s BETWEEN $s AND 'c'", "a.s LIKE 'a%'", 'a.k IS NULL', 'a.s IS NULL', "a.k + 1 = $k",
		'a.ten = ' . below(12) . " AND a.k = $k", "(a.k = $k OR a.s = $s)", 'a.k = (SELECT min(k) FROM u WHERE x = ' . below(4) . ')',
		'a.k IN (SELECT k FROM u WHERE x = ' . below(4) . ')', "a.k = ANY (ARRAY[$k, $other]::bigint[])");
}

sub question
{
	my ($has_parameters) = @_;
	my $where = condition($has_parameters) . (chance(30) ? ' AND ' . condition($has_parameters) : '');

	return weighted(
		3 => "SELECT tableoid::regclass, id, k FROM t a WHERE $where",
		4 => 'SELECT count(*), sum(id), sum(k) FROM ' . one_of('t', 't', 'v') . " a WHERE $where",
		1 => 'SELECT u.x, a.id FROM u JOIN t a ON a.k = u.k WHERE u.x = ' . below(4),
		1 => "SELECT id, k FROM t a WHERE $where ORDER BY k, id LIMIT 5",
		1 => "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k AND a.id <= b.id WHERE $where AND b.ten = 3");
}

sub call { return @prepared ? 'EXECUTE ' . one_of(@prepared) . arguments() : question(0); }

# A change of a definition that may be in a transaction.
sub definition
{
	my $part = a_part();
	my $table = one_of('t', $part, $part);
	my $index = one_of('ix_k', 'ix_s');
	my $method = one_of('rangefilter', 'rangefilter', 'btree', 'wormhole');

	return one_of(
		(map { "ALTER TABLE " . one_of('t', $table) . " $_ ROW LEVEL SECURITY" } qw(ENABLE ENABLE DISABLE FORCE), 'NO FORCE'),
		'ALTER POLICY visible ON t USING (ten < ' . below(10) . ')', 'ALTER POLICY visible ON t USING (k > ' . key() . ')',
		'ALTER TABLE t OWNER TO ' . one_of('rf_owner', 'postgres'), 'ALTER ROLE rf_bypass ' . one_of('', 'NO') . 'BYPASSRLS',
		"REVOKE SELECT ON $table FROM PUBLIC", "GRANT SELECT ON $table TO PUBLIC", 'SET row_security = ' . one_of('on', 'on', 'off'),
		'ALTER TABLE t ALTER k TYPE ' . one_of('bigint', 'numeric'), "ALTER TABLE $table ALTER k TYPE " . one_of('bigint', 'int'),
		'ALTER TABLE t ALTER s TYPE ' . one_of('text', 'text COLLATE "C"', 'varchar(50) COLLATE "C"'),
		'ALTER TABLE t RENAME k TO kk; ALTER TABLE t RENAME id TO k; ALTER TABLE t RENAME kk TO id',
		'ALTER TABLE t DROP v; ALTER TABLE t ADD v numeric', 'ALTER TABLE t ADD y int DEFAULT 3; ALTER TABLE t DROP y',
		"ALTER TABLE $part RENAME TO c_other; ALTER TABLE c_other RENAME TO $part",
		"ALTER TABLE $part SET " . one_of('LOGGED', 'UNLOGGED'), "REINDEX TABLE $table",
		"DROP INDEX $index", 'CREATE INDEX ix_k ON t USING rangefilter (k)', 'CREATE INDEX ix_s ON t USING rangefilter (' . one_of('s', 's, k', 'ten, k') . ')',
		'CREATE INDEX ON ONLY t USING rangefilter (s)', "CREATE INDEX ON $part USING $method (" . one_of('k', 'm') . ')',
		'CREATE OR REPLACE VIEW v ' . one_of('', 'WITH (security_barrier) ') . 'AS SELECT * FROM t WHERE ten < ' . below(10),
		'ALTER VIEW v SET (security_invoker = ' . one_of('true', 'false') . ')', 'ALTER VIEW v OWNER TO ' . one_of('postgres', 'rf_reader'),
		'INSERT INTO u VALUES (' . key() . ', ' . below(4) . ')', 'DISCARD PLANS',
		'SET enable_partition_pruning = ' . one_of('on', 'off'), 'SET constraint_exclusion = ' . one_of('on', 'partition', 'off'),
		'SET plan_cache_mode = ' . one_of('auto', 'force_generic_plan'),
		'CREATE RULE r AS ON INSERT TO t WHERE new.k = 77 DO INSTEAD NOTHING', 'DROP RULE r ON t');
}

sub change_definition
{
	my $table = one_of('t', a_part());

	both(any_session(), chance(85) ? definition()
		: one_of("REINDEX TABLE CONCURRENTLY $table", 'DROP INDEX CONCURRENTLY ix_s',
			'CREATE INDEX CONCURRENTLY ON ' . a_part() . ' USING rangefilter (' . one_of(@keys) . ')'));
	return;
}

# Definitions that are changed, looked at and rolled back.
sub peek
{
	my $part = a_part();
	my $gone = $is_partitioned ? "ALTER TABLE t DETACH PARTITION $part" : "ALTER TABLE $part NO INHERIT t";
	my @steps = map { chance(20) ? one_of("DROP TABLE $part", "TRUNCATE $part", $gone) : definition() } 1 .. 1 + below 2;

	both('main', join '; ', 'BEGIN', (map { chance(50) ? ('SAVEPOINT a', $_, question(0), call(), 'ROLLBACK TO a') : ($_, question(0)) } @steps),
		question(0), 'ROLLBACK', question(0));
	return;
}

sub change_rows
{
	my $part = a_part();

	return if !exists $parts{$part};
	return fill($part, $parts{$part}) if chance(20);

	my $insert = "INSERT INTO $part (p, k, m, s, id, ten) VALUES ($parts{$part}, " . key() . ', ' . key() . ", '" . text() . "', " . $next_id++ . ', ' . below(10) . ')';

	both(any_session(), one_of($insert, "BEGIN; $insert; " . question(0) . '; ' . one_of('COMMIT', 'ROLLBACK'),
		'UPDATE t SET k = k + ' . one_of(1, 100, -100, 100_000) . ' WHERE k BETWEEN ' . key() . ' AND ' . key(),
		'DELETE FROM t WHERE id % 3 = 0 AND k BETWEEN ' . key() . ' AND ' . key(),
		"UPDATE $part SET s = s || 'x', ten = (ten + 1) % 10 WHERE id % 5 = " . below(5)));
	return;
}

sub maintain
{
	my $table = one_of('t', a_part());

	both(any_session(), one_of("VACUUM $table", "ANALYZE $table", "VACUUM (FREEZE, ANALYZE) $table", "VACUUM FULL $table", 'TRUNCATE ' . a_part()));
	return;
}

# A prepared statement, again and again, so that its plan is kept.
sub ask_prepared
{
	if (@prepared < 6 && chance(50))
	{
		push @prepared, 'q' . scalar @prepared;
		both('main', "PREPARE $prepared[-1] (bigint, bigint, text) AS " . question(1));
	}
	both('main', call()) for 1 .. 1 + below 7;
	my $plan = ask($sessions{main}{w1}, 'EXPLAIN (COSTS OFF) ' . call());
	$count{skipped} += $1 while $plan =~ /Partitions Skipped: (\d+)/g;
	return;
}

sub ask_as
{
	both('main', 'SET ROLE ' . one_of('rf_reader', 'rf_reader', 'rf_bypass', 'rf_owner') . '; ' . call() . '; ' . question(0) . '; RESET ROLE');
	return;
}

# Sessions of both worlds, and what a round begins with.
sub begin_round
{
	my $mode = one_of('auto', 'auto', 'force_generic_plan', 'force_custom_plan');

	(@log, @prepared, %parts, %apart) = ();
	my $errors = $count{errors};

	($next_part, $next_id, $is_partitioned, $is_temporary) = (0, 1, chance(65), chance(25));
	for my $who ('main', 'other')
	{
		for my $world (@worlds)
		{
			$sessions{$who}{$world} = open_session($node);
			ask($sessions{$who}{$world}, "SET search_path = $world; SET client_min_messages = error; SET plan_cache_mode = $mode; "
				  . ($world eq 'w1' ? 'SET rangefilter.enable = on' : 'SET rangefilter.enable = off; SET enable_bitmapscan = off'));
		}
	}
	$node->safe_psql('postgres', 'SET client_min_messages = error; ' . join '', 'ALTER ROLE rf_bypass NOBYPASSRLS;',
		map { "DROP SCHEMA IF EXISTS $_ CASCADE; CREATE SCHEMA $_; GRANT ALL ON SCHEMA $_ TO PUBLIC;" } @worlds);
	both('main', 'CREATE ' . ($is_temporary ? 'TEMP ' : '') . 'TABLE t (p int, ' . join(', ', @columns) . ')' . ($is_partitioned ? ' PARTITION BY LIST (p)' : '')
		  . ($is_temporary ? one_of('', ' ON COMMIT DELETE ROWS', ' ON COMMIT PRESERVE ROWS') : ''));
	both('main', 'CREATE TABLE u AS SELECT (g * 37) % 1400 AS k, g % 4 AS x FROM generate_series(1, 12) g; CREATE VIEW v AS SELECT * FROM t WHERE ten < 7; '
		  . 'GRANT SELECT ON t, u, v TO PUBLIC; CREATE POLICY visible ON t USING (ten < 5)');
	create_part() for 1 .. 6 + below 8;
	both('main', 'CREATE INDEX ix_k ON t USING rangefilter (k)');
	both('main', 'CREATE INDEX ix_s ON t USING rangefilter (' . one_of('s', 's, k', 'ten, k') . ')') if chance(60);
	for my $part (sort keys %parts)
	{
		both('main', "CREATE INDEX ON $part USING rangefilter (" . one_of('k', @keys, 'ten, k') . ')') unless $is_partitioned;
		both('main', "CREATE POLICY visible ON $part USING (ten > 5)") if chance(10);
		fill($part, $parts{$part});
	}
	die "seed $seed, round $round: a table could not be made\n" if $count{errors} > $errors;
	return;
}

sub end_round
{
	for my $who (keys %sessions) { close_session($_) for values %{ $sessions{$who} }; }
	return;
}

$node->safe_psql('postgres', 'CREATE ROLE rf_reader; CREATE ROLE rf_bypass; CREATE ROLE rf_owner');
for my $n (1 .. $ENV{DEFINITIONS_ROUNDS} || 30)
{
	$round = $n;
	begin_round();
	for (1 .. 60)
	{
		weighted(
			40 => sub { both('main', question(0)) },
			12 => \&ask_prepared,
			4 => \&peek,
			6 => \&ask_as,
			10 => \&change_rows,
			4 => \&maintain,
			4 => \&create_part,
			4 => sub { %apart && attach(one_of(sort keys %apart)) },
			4 => sub { %parts && detach(one_of(sort keys %parts)) },
			12 => \&change_definition)->();
		last if $count{differences};
	}
	end_round();
	last if $count{differences};
}
is($count{differences}, 0, "seed $seed: $count{statements} statements, of which $count{errors} fail");
cmp_ok($count{skipped}, '>', 0, 'and partitions are skipped');
note("$count{skipped} partitions skipped by prepared statements");
$node->stop;
done_testing();
