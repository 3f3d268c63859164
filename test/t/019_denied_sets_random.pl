# Random changes and questions, one after the other, in several sessions that share
# digests of many partitions, or know their bounds: oracle and stress tests have too few partitions with
# too few questions for that.  Every question is asked twice, the second time
# about an expression that no index knows.

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
my $partitions = one_of(40, 64, 70, 130);
my $span = one_of(300, 3000, 1_000_000);
my $rows = one_of(5, 30, 60);
# Each partition has a range of keys of its own, so that bounds deny; or all have the same.
my $apart = chance(50);
my $width = $apart ? int($span / $partitions) + 1 : $span;
my $node = new_server('bulk_random',
	conf => "max_locks_per_transaction = 512\nrangefilter.shared_cache_size = " . one_of('0', '1MB', '64MB') . "\n");

# What others' locks and our own DDL do to a statement.
my $tolerated = join '|', 'lock timeout', 'transaction is aborted', 'could not serialize', 'deadlock detected', 'cannot be executed from',
  'no partition of relation', '"t\d+(?:_k_idx)?" (?:does not exist|is (?:already|not) a partition)', 'being used by active queries',
  'pending trigger events', 'savepoint "s" does not exist', '"t\d+(?:_k_idx)?" already exists', 'cannot run inside a transaction';

my $select = "SELECT coalesce(string_agg(p || '.' || id, ' ' ORDER BY p, id), 'none') FROM t WHERE";
my $id = 0;
my @recent;
my @log;
my $failed = 0;
my %count = (errors => 0, questions => 0);

$node->safe_psql(
	'postgres', qq{
CREATE TABLE t (p int, k int, id bigint) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1\$s PARTITION OF t FOR VALUES IN (%1\$s)', i) FROM generate_series(1, $partitions) i \\gexec
INSERT INTO t SELECT p, abs(hashint8extended(g * 1000 + p, $seed) % $width) + (p - 1) * ($span - $width) / $partitions, 0 FROM generate_series(1, $partitions) p, generate_series(1, $rows) g;
CREATE INDEX t_k ON t USING rangefilter (k);
});
$node->safe_psql('postgres', "SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");

my @sessions = map { new_session($_) } 1 .. 4;

# Its plans are kept, and made without values for parameters.
sub new_session
{
	my ($name) = @_;
	my $session = open_session($node);

	$session->{name} = $name;
	ask($session, q{SET lock_timeout = '20ms'; SET client_min_messages = error; SET plan_cache_mode = force_generic_plan});
	prepare($session) for 1 .. 3;
	return $session;
}

sub some_key { return @recent && chance(60) ? $recent[ -1 - below(@recent < 8 ? scalar @recent : 8) ] : below($span); }

sub new_key { push @recent, below($span); return $recent[-1]; }

# A condition on the key, for which the expression k stands.
sub condition
{
	my $key = some_key();

	return weighted(
		6 => "k = $key",
		2 => "k IN ($key, " . some_key() . ', ' . below($span) . ')',
		2 => "k BETWEEN $key AND " . ($key + below(4)),
		1 => "(k = $key OR k > " . ($span - 1) . ')',
		1 => "k BETWEEN $key - 2 AND $key + 2 AND (k = $key OR id % 3 = 1)",
		1 => "k = $key AND p < " . below($partitions));
}

# A deferred scan that is run for several keys.
sub deferred_loop
{
	my $keys = join ', ', map { '(' . some_key() . ')' } 1 .. 5;

	return "SELECT coalesce(string_agg(x || ' ' || p || '.' || id, ' ' ORDER BY x, p, id), 'none') FROM (VALUES $keys) v (x), LATERAL (SELECT p, id FROM t WHERE k = x"
	  . one_of('', '', ' AND p < ' . below($partitions) . ' + x % 7') . ' OFFSET 0) t';
}

sub without_index { my ($sql) = @_; return $sql =~ s/\bk\b/(k + 0)/gr; }

sub prepare
{
	my ($session) = @_;
	my $condition = chance(50) ? condition() : one_of('k = $1', 'k IN ($1, $1 + 1)', 'k BETWEEN $1 AND $1 + 3');
	my $name = 'q' . ++$session->{prepared};
	my $arguments = $condition =~ /\$/ ? '(int)' : '';

	$session->{takes_key}[ $session->{prepared} ] = $arguments;
	ask($session, "PREPARE $name$arguments AS $select $condition; PREPARE ${name}_without$arguments AS $select " . without_index($condition));
	return;
}

# Runs statements; false if one fails.
sub run_sql
{
	my ($session, $sql) = @_;
	my $answer = ask($session, $sql);

	push @log, "$session->{name}: $sql" . ($answer =~ /ERROR:  (.*)/ ? " -- $1" : '');
	return 1 if $answer !~ /ERROR|server closed/;
	if ($answer !~ /$tolerated/)
	{
		$failed = 1;
		diag("seed $seed: $sql\n$answer");
	}
	$count{errors}++;
	ask($session, 'ROLLBACK') if $session->{open};
	$session->{open} = 0;
	return 0;
}

# The same with the index and without it.
sub compare
{
	my ($session) = @_;
	my ($with, $without);

	if (chance(40))
	{
		my $n = 1 + below $session->{prepared};
		my $key = $session->{takes_key}[$n] ? '(' . some_key() . ')' : '';

		($with, $without) = ("EXECUTE q$n$key", "EXECUTE q${n}_without$key");
	}
	elsif (chance(25))
	{
		$with = deferred_loop();
		$without = without_index($with);
	}
	else
	{
		my $condition = condition();

		($with, $without) = ("$select $condition", "$select " . without_index($condition));
	}
	my @lines = split /\n/, ask($session, "$with; $without");

	push @log, "$session->{name}: $with";
	$count{questions}++;
	return if @lines == 2 && $lines[0] eq $lines[1];
	if (grep { /ERROR/ } @lines)
	{
		run_sql($session, $with);
		return;
	}
	$failed = 1;
	diag(join "\n", "seed $seed: $with", @lines, 'before that:', @log[ (@log > 40 ? -40 : -@log) .. -1 ]);
	return;
}

sub change
{
	my ($session) = @_;
	my $p = 1 + below $partitions;
	my $key = new_key();

	$id++;
	run_sql($session, weighted(
		6 => "INSERT INTO t VALUES ($p, $key, $id)",
		2 => "UPDATE t SET k = $key WHERE " . condition(),
		1 => "UPDATE t SET p = $p WHERE " . condition(),
		1 => 'DELETE FROM t WHERE ' . condition(),
		1 => "INSERT INTO t SELECT $p, ($key + g) % $span, $id FROM generate_series(0, 250) g",
		1 => "WITH i AS (INSERT INTO t VALUES ($p, $key, $id) RETURNING k) SELECT count(*) FROM t, i WHERE t.k = i.k"));
	return;
}

sub maintain
{
	my ($session) = @_;
	my $p = 1 + below $partitions;
	my $put = "INSERT INTO t VALUES ($p, " . new_key() . ', ' . ++$id . ')';
	my @anywhere = ("REINDEX TABLE t$p", "TRUNCATE t$p; $put", "ALTER INDEX t${p}_k_idx SET TABLESPACE " . one_of('elsewhere', 'pg_default'),
		"SELECT rangefilter_summarize('t${p}_k_idx') >= 0", "ALTER TABLE t$p SET " . one_of('LOGGED', 'UNLOGGED'));

	run_sql($session, $session->{open} ? one_of(@anywhere) : one_of(@anywhere, ("VACUUM t$p", "SELECT rangefilter_summarize('t_k') >= 0") x 3,
			"VACUUM FULL t$p", "REINDEX INDEX CONCURRENTLY t${p}_k_idx", "DROP TABLE t$p; CREATE TABLE t$p PARTITION OF t FOR VALUES IN ($p); $put",
			"BEGIN; ALTER TABLE t DETACH PARTITION t$p; UPDATE t$p SET k = $recent[-1]; ALTER TABLE t ATTACH PARTITION t$p FOR VALUES IN ($p); COMMIT"));
	run_sql($session, 'ROLLBACK') unless $session->{open};
	return;
}

sub begin_or_end
{
	my ($session) = @_;

	if (!$session->{open})
	{
		$session->{open} = 1;
		run_sql($session, 'BEGIN' . one_of('', '', ' ISOLATION LEVEL REPEATABLE READ', ' ISOLATION LEVEL SERIALIZABLE'));
	}
	elsif (chance(30)) { run_sql($session, one_of('SAVEPOINT s', 'SAVEPOINT s', 'ROLLBACK TO s')); }
	else
	{
		run_sql($session, one_of('COMMIT', 'COMMIT', 'ROLLBACK'));
		$session->{open} = 0;
	}
	return;
}

# Digests are made of what is asked often.
sub warm
{
	my ($session) = @_;
	my $key = below($span);

	run_sql($session, "DO \$\$ BEGIN FOR i IN $key .. $key + 14 LOOP EXECUTE format('SELECT count(*) FROM t WHERE k = %s', i); END LOOP; END \$\$");
	return;
}

# All other sessions look for a row as soon as it is there.
sub spread_news
{
	my ($session) = @_;
	my $key = new_key();

	$id++;
	return if $session->{open} || !run_sql($session, 'INSERT INTO t VALUES (' . (1 + below $partitions) . ", $key, $id)");
	for my $other (grep { $_ != $session && !$_->{open} } @sessions)
	{
		next if ask($other, "SELECT count(*) FROM t WHERE k = $key AND id = $id") ne 0;
		$failed = 1;
		diag(join "\n", "seed $seed: session $other->{name} misses the row with k = $key, id = $id", @log[ (@log > 40 ? -40 : -@log) .. -1 ]);
	}
	return;
}

my $used = 0;
for my $step (1 .. $ENV{BULK_STEPS} || 700)
{
	my $session = one_of(@sessions);

	weighted(40 => \&compare, 20 => \&change, 9 => \&maintain, 9 => \&begin_or_end, 7 => \&warm, 7 => \&spread_news, 2 => \&prepare)->($session);
	last if $failed;
	next if $step % 25;

	# Locks must not pile up.
	for (grep { $_->{open} } @sessions)
	{
		run_sql($_, one_of('COMMIT', 'ROLLBACK'));
		$_->{open} = 0;
	}
	$used += $node->safe_psql('postgres', 'SELECT indexes FROM rangefilter_shared_cache()');
	next if $step % 100;
	my $gone = splice @sessions, below(scalar @sessions), 1;
	close_session($gone);
	push @sessions, new_session($gone->{name});
}
is($failed, 0, "seed $seed: $partitions partitions" . ($apart ? ' apart' : '') . ", $count{questions} questions");
note("$count{errors} errors, $used shared digests");
close_session($_) for @sessions;
$node->stop;
done_testing();
