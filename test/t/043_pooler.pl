# Sessions that are not one user's: clients of pgbouncer share a few of them, with what
# each has set or discarded; and statements of psycopg that the server has prepared are
# executed by one role after the other.  Nobody sees what a policy hides from him, all see
# what is theirs.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_server('node');

# What was unpacked for the tests.
my $unpacked = $ENV{RF_NEIGHBOURS} // '';

# Row k is in partition k % 12 and is alice's if k is even, else bob's.
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, k int, owner text, v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s)', i, i) FROM generate_series(0, 11) i \gexec
INSERT INTO t SELECT k % 12, k, CASE k % 2 WHEN 0 THEN 'alice' ELSE 'bob' END, k FROM generate_series(1, 6000) k;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE TABLE u (k bigint, p int, owner text, v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE u%s PARTITION OF u FOR VALUES IN (%s)', i, i) FROM generate_series(0, 11) i \gexec
CREATE INDEX u_k ON u USING rangefilter (k);
CREATE ROLE alice;
CREATE ROLE bob;
GRANT ALL ON t, u TO alice, bob;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
ALTER TABLE u ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (owner = current_user);
CREATE POLICY own ON u USING (owner = current_user);
CREATE TABLE w (p int, k int, v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE w%s PARTITION OF w FOR VALUES IN (%s)', i, i) FROM generate_series(0, 11) i \gexec
INSERT INTO w SELECT p, k, v FROM t;
CREATE INDEX ON w USING rangefilter (k);
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM w WHERE v < 5000;
GRANT SELECT ON barrier TO alice, bob;
CREATE SEQUENCE ids START 10000;
CREATE FUNCTION equal(a bigint, b bigint) RETURNS void LANGUAGE plpgsql AS
	$$BEGIN IF a <> b THEN RAISE EXCEPTION '% rows, not %', a, b; END IF; END$$;
CREATE FUNCTION rows_of(wanted int) RETURNS bigint LANGUAGE plpgsql AS
	$$BEGIN RETURN (SELECT count(*) FROM t WHERE k = wanted); END$$;
CREATE FUNCTION rows_of_4711() RETURNS bigint LANGUAGE plpgsql AS
	$$BEGIN RETURN (SELECT count(*) FROM t WHERE k = 4711); END$$;
ANALYZE t;
});

# A plan that was made for one role is not what another one gets: q reads the table by
# policies, and w by a view that hides rows from those who may not read all of it.
my @statements = ('q', 'w');
my $session = open_session($node);
my $prepare = 'SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT count(*) FROM t WHERE k = 4711;
	PREPARE w AS SELECT count(*) FROM barrier WHERE k = 4711';

sub plans_of
{
	my ($of) = @_;

	return join("\n", map { ask($of, "EXPLAIN (COSTS OFF) EXECUTE $_") } @statements);
}

sub found_by
{
	my ($of) = @_;

	return join(' ', map { ask($of, "EXECUTE $_") } @statements);
}

ask($session, $prepare);
my $superuser = plans_of($session);

like($superuser, qr/Partitions Skipped: 11 of 12.*Partitions Skipped: 11 of 12/s, 'the plans of a superuser');
is(found_by($session), '1 1', 'what they find');
foreach my $role ('alice', 'bob')
{
	my $other = open_session($node);

	ask($other, "SET ROLE $role; $prepare");
	ask($session, "SET ROLE $role");
	is(plans_of($session), plans_of($other), "the plans of $role after the superuser's");
	unlike(plans_of($session), qr/Partitions Skipped/, '... skip nothing before they run');
	is(found_by($session), $role eq 'bob' ? '1 1' : '0 1', "what $role finds");
	close_session($other);
}
ask($session, 'RESET ROLE');
is(plans_of($session), $superuser, "the superuser's again");
is(ask($session, "DISCARD PLANS; EXECUTE q; DISCARD ALL; SELECT rows_of_4711()"), "1\n1", 'after all is discarded');
close_session($session);

# The clients' scripts.  Every statement of a client's may meet another session, and what
# others have set there for good.
my %scripts = (
	off => [ 1, 'SET rangefilter.enable = off;' ],
	on => [ 2, 'SET rangefilter.enable = on;' ],
	discard => [ 1, 'DISCARD ALL;' ],
	plans => [ 1, 'DISCARD PLANS;' ],
	generic => [ 1, 'SET plan_cache_mode = force_generic_plan;' ],
	write => [ 8, q{
		SELECT nextval('ids') AS id \gset
		INSERT INTO t VALUES (:id % 12, :id, 'alice', 0);
		SELECT equal(count(*), 1) FROM t WHERE k = :id;
		SELECT equal(rows_of(:id), 1);
		UPDATE t SET p = (p + 1) % 12 WHERE k = :id;
		SELECT equal(count(*), 1) FROM t WHERE k = :id;
		DELETE FROM t WHERE k = :id;
		SELECT equal(count(*), 0) FROM t WHERE k = :id;} ],
	map({
		my ($role, $rest) = @$_;

		$role => [ 6, qq{
			\\set k random(1, 6000)
			BEGIN;
			SET LOCAL ROLE $role;
			SELECT equal(count(*), (:k % 2 = $rest)::int) FROM t WHERE k = :k;
			SELECT equal(rows_of(:k), (:k % 2 = $rest)::int);
			SELECT equal(rows_of_4711(), $rest);
			SELECT equal(count(*), 12) FROM t WHERE k >= :k - :k % 24 + 24 AND k < :k - :k % 24 + 48 AND :k < 5900
				HAVING :k < 5900;
			COMMIT;} ] } [ 'alice', 0 ], [ 'bob', 1 ]),
	superuser => [ 6, q{
		\set k random(1, 6000)
		SELECT equal(count(*), 1) FROM t WHERE k = :k;
		SELECT equal(rows_of(:k), 1);
		SELECT equal(rows_of_4711(), 1);} ]);

# Ends with the test, however that ends.
my $bouncer;

END
{
	local $?;
	$bouncer->kill_kill if $bouncer;
}

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } "$unpacked/usr/sbin", '/usr/sbin', split /:/, $ENV{PATH};
local $ENV{LD_LIBRARY_PATH} = join(':', glob("$unpacked/usr/lib/*-linux-*"), $ENV{LD_LIBRARY_PATH} // ());

SKIP:
{
	skip 'pgbouncer is not there', 1 if !$pgbouncer;
	my $directory = PostgreSQL::Test::Utils::tempdir_short();
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my ($host, $to, $user, $log) = ($node->host, $node->port, $node->safe_psql('postgres', 'SELECT current_user'), '');

	append_to_file("$directory/pgbouncer.ini", qq{
[databases]
postgres = host=$host port=$to dbname=postgres user=$user
[pgbouncer]
listen_port = $port
unix_socket_dir = $directory
auth_type = any
pool_mode = transaction
default_pool_size = 2
});

	# Old versions of pgbouncer know no later protocol, which clients of PostgreSQL 19 ask for.
	local $ENV{PGMAXPROTOCOLVERSION} = '3.0';
	$bouncer = IPC::Run::start([ $pgbouncer, "$directory/pgbouncer.ini" ], '<', \undef, '>&', \$log);
	my $tries = 100;

	usleep(100_000) while $tries-- > 0 && !-S "$directory/.s.PGSQL.$port";
	foreach my $mode ('simple', 'extended')
	{
		my $load = start_scripts($node, 2, $seed, \%scripts, '-h', $directory, '-p', $port, '-M', $mode, '-c', 8, '-j', 2);

		sleep 1;
		cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}),
			'<=', 2, "$mode: clients share sessions");
		is(finish_load($load), '', "seed $seed, $mode: all see what is theirs");
	}
	$bouncer->signal('INT');
	$bouncer->finish;
	undef $bouncer;
	all_verified($node, 'after pgbouncer');
}

$ENV{PYTHONPATH} = join(':', "$unpacked/usr/lib/python3/dist-packages", $ENV{PYTHONPATH} // ());
my ($python) = grep { IPC::Run::run([ $_, '-c', 'import psycopg' ], '<', \undef, '>&', \my $out) } '/usr/bin/python3', 'python3';

SKIP:
{
	skip 'psycopg is not there', 1 if !$python;
	my $out = '';

	ok(IPC::Run::run([ $python, dirname(__FILE__) . '/psycopg_oracle.py', $node->connstr('postgres'), $seed ], '<', \undef, '>&', \$out),
		"seed $seed: psycopg finds what a model has")
	  or diag($out);
	all_verified($node, 'after psycopg');
}
$node->stop;
done_testing();
