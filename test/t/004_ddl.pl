# Whoever writes a row finds it, whatever happens to the definitions of tables
# and indexes meanwhile.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(time);

my $seed = seed();
my $node = new_server('ddl', conf => "max_connections = 40\n");
my $dir = $node->basedir;

# Rows are written to partitions 0 to 3, others come and go.
$node->safe_psql(
	'postgres', q{
CREATE TABLE w (p int, k int, note text) PARTITION BY LIST (p);
SELECT format('CREATE TABLE w%s PARTITION OF w FOR VALUES IN (%s)', i, i)
	FROM generate_series(0, 5) i \gexec
INSERT INTO w SELECT i % 6, -i, 'old' FROM generate_series(1, 3000) i;
CREATE INDEX w_k ON w USING rangefilter (k);
CREATE INDEX w1_note ON w1 (note);
CREATE TABLE extra (LIKE w);
});

# A row that its writer does not find is a division by zero.
my %scripts = (
	insert => q{
\set p random(0, 3)
\set k random(1, 1000000000)
INSERT INTO w VALUES (:p, :k, 'insert');
SELECT 1 / count(*) FROM w WHERE k = :k;
},
	update => q{
\set p random(0, 3)
\set k random(1, 1000000000)
\set to random(1, 1000000000)
\set top random(0, 3)
INSERT INTO w VALUES (:p, :k, 'update');
UPDATE w SET k = :to WHERE k = :k;
SELECT 1 / count(*) FROM w WHERE k BETWEEN :to - 1 AND :to;
UPDATE w SET p = :top WHERE k = :to;
SELECT 1 / count(*) FROM w WHERE k IN (:to, 0);
DELETE FROM w WHERE k = :to;
},
	own => q{
\set p random(0, 3)
\set k random(1, 1000000000)
BEGIN;
SELECT count(*) FROM w WHERE k = :k;
INSERT INTO w VALUES (:p, :k, 'own');
SELECT 1 / count(*) FROM w WHERE k = :k;
COMMIT;
SELECT 1 / count(*) FROM w WHERE k = :k;
},
	monitor => q{
\set k random(1, 1000000000)
SELECT count(*), sum(keys) FROM rangefilter_status('w_k');
SELECT rangefilter_may_contain('w_k', :k, :k + 100);
},
	repeatable => q{
\set p random(0, 3)
\set k random(1, 1000000000)
INSERT INTO w VALUES (:p, :k, 'repeatable');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 1 / count(*) FROM w WHERE k = :k;
SELECT 1 / count(*) FROM w WHERE k = :k;
COMMIT;
});
append_to_file("$dir/$_.sql", $scripts{$_}) foreach keys %scripts;

# Without parameters a prepared statement keeps its plan, and with it what the
# plan skips: a key of the client's own, each time in another partition.
foreach my $mode (0 .. 2)
{
	my $script = "\\set p random(0, 3)\n";

	foreach my $client (0, 1)
	{
		my $k = -50000 - 10 * $mode - $client;

		$script .= ($client ? '\elif' : '\if') . " :client_id = $client\n"
		  . "INSERT INTO w VALUES (:p, $k, 'fixed');\n"
		  . "SELECT 1 / count(*) FROM w WHERE k = $k;\n"
		  . "DELETE FROM w WHERE k = $k;\n";
	}
	append_to_file("$dir/fixed$mode.sql", $script . "\\endif\n");
}

# Lets writers with some of the scripts loose for a while, and does to the
# tables what is given, in any order, again and again.
sub under_load
{
	my ($name, $seconds, $with, @statements) = @_;
	my @runs;
	my $done = 0;
	my %failed;

	# Each with keys of its own: one deletes what it wrote.  A thread for each
	# client: pgbench waits for PREPARE, and meanwhile the thread's other client
	# could keep the lock that this waits for.
	foreach my $mode ('simple', 'extended', 'prepared')
	{
		my ($out, $err) = ('', '');
		my @files =
		  map { ('-f', "$dir/$_.sql") } split(/ /, $with), 'fixed' . @runs;

		push @runs,
		  {
			mode => $mode,
			out => \$out,
			err => \$err,
			run => IPC::Run::start(
				[
					$node->installed_command('pgbench'), '-n', '-M', $mode, '--max-tries=10',
					'-c', 2, '-j', 2, '-T', $seconds, '-R', 300, '--random-seed', $seed + 1000 * @runs,
					'-h', $node->host, '-p', $node->port, @files, 'postgres'
				],
				'<', \undef, '>', \$out, '2>', \$err)
		  };
	}
	my $until = time() + $seconds - 0.5;

	while (time() < $until)
	{
		my $statement = $statements[ pick(0, $#statements) ];
		my ($status, $out, $err) = $node->psql('postgres', $statement);

		# REINDEX locks the table, then the index; a transaction that asked the index may insert next.
		$failed{$err} = 1 if $err ne '' && $err !~ /deadlock detected/;
		$done++;
	}
	foreach my $run (@runs)
	{
		my $ok = $run->{run}->finish;

		is(join("\n", grep { !/setting random seed/ } split /\n/, ${ $run->{err} }),
			'', "seed $seed, $name: $run->{mode} protocol");
		like(${ $run->{out} }, qr/actually processed: [1-9]/, "$name: rows were written");
	}
	is(join('', keys %failed), '', "$name: all statements worked");
	ok($done > 3, "$name: $done statements");
	return $node->safe_psql('postgres', q{SELECT rangefilter_verify('w_k') > 0});
}

is( under_load(
		'indexes', 12, 'insert update own repeatable',
		'REINDEX INDEX CONCURRENTLY w_k',
		'REINDEX INDEX w2_k_idx',
		'REINDEX TABLE CONCURRENTLY w1',
		'CREATE INDEX more ON w USING rangefilter (k) WITH (filter = surf); DROP INDEX more',
		'DROP INDEX w_k; CREATE INDEX w_k ON w USING rangefilter (k)',
		'BEGIN; DROP INDEX w_k; CREATE INDEX w_k ON w USING rangefilter (k); COMMIT',
		"CREATE INDEX CONCURRENTLY part ON w3 USING rangefilter (k) WHERE k > 0;\n"
		  . "DROP INDEX CONCURRENTLY part",
		'VACUUM w',
		q{SELECT rangefilter_summarize('w_k')}),
	't',
	'indexes: verified');

# Not for old snapshots: ALTER TABLE makes rows that they do not see.
is( under_load(
		'tables', 12, 'insert update own monitor',
		'VACUUM FULL w0',
		'CLUSTER w1 USING w1_note',
		'TRUNCATE w5; INSERT INTO w SELECT 5, -k FROM generate_series(1, 10) k',
		"ALTER TABLE w DETACH PARTITION w4;\n"
		  . 'ALTER TABLE w ATTACH PARTITION w4 FOR VALUES IN (4)',
		"ALTER TABLE w DETACH PARTITION w4 CONCURRENTLY;\n"
		  . 'ALTER TABLE w ATTACH PARTITION w4 FOR VALUES IN (4)',
		"ALTER TABLE w ATTACH PARTITION extra FOR VALUES IN (6);\n"
		  . "INSERT INTO w VALUES (6, -6); ALTER TABLE w DETACH PARTITION extra",
		"CREATE TABLE w7 PARTITION OF w FOR VALUES IN (7) PARTITION BY LIST (p);\n"
		  . "CREATE TABLE w77 PARTITION OF w7 FOR VALUES IN (7);\nDROP TABLE w7",
		'ALTER TABLE w2 SET UNLOGGED; ALTER TABLE w2 SET LOGGED',
		'ALTER TABLE w ADD COLUMN x int DEFAULT random(); ALTER TABLE w DROP COLUMN x',
		'VACUUM w3'),
	't',
	'tables: verified');

# A partition that goes while a function is at one before it.
$node->safe_psql('postgres', q{SELECT rangefilter_summarize('w_k')});
foreach my $call (
	q{count(*) FROM rangefilter_status('w_k')},
	q{NOT rangefilter_may_contain('w_k', 2000000000, NULL)},
	q{rangefilter_summarize('w_k') >= 0},
	q{rangefilter_verify('w_k') > 0})
{
	my $lock = open_session($node);
	my $reader = open_session($node);

	$node->safe_psql('postgres', 'CREATE TABLE w7 PARTITION OF w FOR VALUES IN (7)');
	ask($lock, 'BEGIN; LOCK TABLE w0');
	send_sql($reader, "SELECT $call");
	ok($node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM pg_locks WHERE NOT granted'),
		"$call: waits");
	ask($lock, 'DROP TABLE w7; COMMIT');
	like(answer($reader), qr/^(6|t)$/, "$call: goes on without a partition dropped meanwhile");
	close_session($_) foreach $lock, $reader;
}

# A partition with partitions of its own that goes while a function looks for
# the leaves.
{
	my ($out, $err) = ('', '');

	$node->safe_psql(
		'postgres', q{
CREATE TABLE deep (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE deep%1$s PARTITION OF deep FOR VALUES IN (%1$s) PARTITION BY LIST (p);
	CREATE TABLE deep%1$s_ PARTITION OF deep%1$s FOR VALUES IN (%1$s)', i) FROM generate_series(0, 60) i \gexec
CREATE INDEX deep_k ON deep USING rangefilter (k);
});
	append_to_file("$dir/leaves.sql", q{SELECT rangefilter_may_contain('deep_k', NULL::int, NULL);});
	my $run = IPC::Run::start(
		[
			$node->installed_command('pgbench'), '-n', '-c', 2, '-j', 2, '-T', 6,
			'-h', $node->host, '-p', $node->port, '-f', "$dir/leaves.sql", 'postgres'
		],
		'<', \undef, '>', \$out, '2>', \$err);

	$node->safe_psql(
		'postgres', q{
CREATE TABLE gone PARTITION OF deep FOR VALUES IN (77) PARTITION BY LIST (p);
CREATE TABLE gone_ PARTITION OF gone FOR VALUES IN (77);
DROP TABLE gone;
} x 600);
	$run->finish;
	is($err, '', 'leaves below a partition that goes');
	like($out, qr/actually processed: [1-9]/, 'leaves were looked for');
}

# A type that changes with data in place.
foreach my $type ('bigint', 'numeric', 'text COLLATE "C"', 'int')
{
	my $name = "type $type";

	$node->safe_psql('postgres', "ALTER TABLE w ALTER k TYPE $type USING k::$type");
	is($node->safe_psql('postgres', q{SELECT rangefilter_verify('w_k') > 0}), 't', "$name: verified");
	is( $node->safe_psql(
			'postgres', q{
SELECT count(*) > 0, count(*) FILTER (WHERE NOT rangefilter_may_contain('w_k', k, k)) FROM w}),
		't|0',
		"$name: nothing is denied");
	is( $node->safe_psql('postgres', q{SELECT count(*) FROM w WHERE k = '-777'}),
		'1', "$name: a row is found");
}

$node->stop;
done_testing();
