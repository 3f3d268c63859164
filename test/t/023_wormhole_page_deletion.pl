# Deletion of pages: after most rows have gone, VACUUM leaves few pages, others
# take the place of those that went, and a window that moves on does not make
# the index grow.  Crashes and a standby under such a load.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_server(
	'wormhole_delete',
	init => { allows_streaming => 1 },
	conf => q{
max_wal_size = '64MB'
wal_consistency_checking = 'generic'
shared_buffers = 16MB
wal_keep_size = '8GB'
});

sub sql { return $node->safe_psql('postgres', @_); }

sub blocks { return sql("SELECT pg_relation_size('$_[0]') / 8192"); }

# Pages in use, leaves and directory.
sub used { return sql("SELECT leaf_pages + directory_pages FROM wormhole_status('$_[0]')"); }

# Long keys that differ late have long anchors: few fit on a directory page, so
# these become empty as well.
my %keys = (
	int8 => 'k::int8',
	long => q{repeat(md5((k / 500)::text), 28) || lpad(k::text, 8, '0')},
	ordered => q{lpad((k / 500)::text, 8, '0') || repeat(md5((k / 500)::text), 28) || lpad(k::text, 8, '0')});

# What comes before the backup is never replayed: redo has no use for images of pages.
$ENV{PGOPTIONS} = '-c wal_consistency_checking=';
foreach my $kind (sort keys %keys)
{
	my $key = $keys{$kind};
	my $rows = $kind eq 'int8' ? 200_000 : 40_000;
	my $where = "FROM generate_series(1, $rows) k";

	my $type = $kind eq 'int8' ? 'int8' : 'text COLLATE "C"';

	sql("CREATE TABLE t (key $type, k int);
		CREATE INDEX t_key ON t USING wormhole (key);
		INSERT INTO t SELECT $key, k $where ORDER BY md5(k::text);");
	my ($blocks, $used) = (blocks('t_key'), used('t_key'));

	# FREEZE waits for pages that a checkpoint has pinned, others are passed over.
	sql("DELETE FROM t WHERE k > $rows / 10");
	sql('VACUUM (FREEZE) t');
	cmp_ok(used('t_key'), '<=', 4 + $used / 5, "$kind: few of $used pages are left");
	is(sql("SELECT wormhole_check('t_key', true)"), $rows / 10, '... checked');

	# Other keys, as many.
	sql("INSERT INTO t SELECT $key, k FROM generate_series(2 * $rows, 2 * $rows + $rows * 6 / 10) k ORDER BY md5(k::text)");
	cmp_ok(blocks('t_key'), '<=', $blocks * 1.05, '... and others take their place');
	is(sql("SELECT wormhole_check('t_key', true) - count(*) FROM t"), 0, '... checked');

	# All of it, and again.
	sql('DELETE FROM t');
	sql('VACUUM (FREEZE) t');
	cmp_ok(used('t_key'), '<=', 8, '... an empty table has an empty index');
	is(sql("SELECT wormhole_check('t_key', true)"), 0, '... checked');
	sql("INSERT INTO t SELECT $key, k $where ORDER BY md5(k::text)");
	is(sql(q{SET enable_seqscan = off; SELECT count(*), sum(k) FROM (SELECT * FROM t ORDER BY key) x}),
		sql('SELECT count(*), sum(k) FROM t'), '... filled again');
	is(sql("SELECT wormhole_check('t_key', true)"), $rows, '... checked');
	sql('DROP TABLE t');
}

# VACUUM writes only the leaves that have dead entries.
sql(q{CREATE EXTENSION rf_damage;
	CREATE TABLE still (k int) WITH (autovacuum_enabled = off);
	INSERT INTO still SELECT generate_series(1, 5000);
	CREATE INDEX still_k ON still USING wormhole (k);
	CREATE FUNCTION leaves() RETURNS TABLE (block bigint, page bytea) LANGUAGE sql AS
		$$SELECT b, rf_page('still_k', b::int) FROM generate_series(1, pg_relation_size('still_k') / 8192 - 1) b$$});
sql('DELETE FROM still WHERE k = 1; CREATE TABLE before AS SELECT * FROM leaves()');
sql('VACUUM still');
is(sql('SELECT count(*) FROM leaves() JOIN before USING (block) WHERE leaves.page <> before.page'), 1,
	'of ' . sql('SELECT leaf_pages FROM wormhole_status($$still_k$$)') . ' leaves one is written');

# A window of rows moves over the keys.
sql(qq{CREATE TABLE t (key text COLLATE "C", k int);
	CREATE INDEX t_key ON t USING wormhole (key); CREATE INDEX ON t (k);});
my @sizes;
foreach my $round (1 .. 24)
{
	sql("INSERT INTO t SELECT $keys{ordered}, k FROM generate_series($round * 5000, $round * 5000 + 4999) k;
		DELETE FROM t WHERE k < ($round - 1) * 5000");
	sql('VACUUM t');
	push @sizes, blocks('t_key');
}
cmp_ok($sizes[-1], '<=', $sizes[5] * 1.2, "a moving window: @sizes[0 .. 5] .. $sizes[-1] blocks");
is(sql("SELECT wormhole_check('t_key', true)"), 10000, '... checked');
sql('DROP TABLE t');
delete $ENV{PGOPTIONS};

# Under load, with crashes, a standby following.  Without truncation: a standby's
# query that waits for its lock and replay that waits for the query's snapshot
# would wait for each other for ever.
sql(qq{
CREATE TABLE w (k int8, s text COLLATE "C") WITH (vacuum_truncate = off);
CREATE UNIQUE INDEX w_k ON w USING wormhole (k);
CREATE INDEX w_s ON w USING wormhole (s);
CREATE FUNCTION key(k int8) RETURNS text LANGUAGE sql AS \$\$SELECT $keys{ordered}\$\$;
CREATE FUNCTION fill(a int8, n int8) RETURNS void LANGUAGE plpgsql AS \$\$
BEGIN
	INSERT INTO w SELECT k, key(k) FROM generate_series(a, a + n) k WHERE NOT EXISTS (SELECT FROM w WHERE w.k = k.k);
EXCEPTION WHEN unique_violation THEN
	NULL;
END \$\$;
});
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('delete_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = '-1'\n");
$standby->start;

my $numbers = "\\set k random(1, 100)\n";
my %scripts = (
	fill => [ 6, "$numbers SELECT fill(:k * 300, 300);\n" ],
	clear => [ 3, "$numbers DELETE FROM w WHERE k BETWEEN :k * 300 AND :k * 300 + 3000;\n" ],
	some => [ 1, "$numbers DELETE FROM w WHERE k BETWEEN :k * 300 AND :k * 300 + 3000 AND k % 50 <> 0;\n" ],
	up => [ 2, "$numbers SET enable_seqscan = off; SET enable_sort = off; SELECT count(*) FROM (SELECT k FROM w WHERE k > :k ORDER BY k LIMIT 3000) x;\n" ],
	down => [ 2, "$numbers SET enable_seqscan = off; SET enable_sort = off; SELECT count(*) FROM (SELECT s FROM w WHERE s < key(:k * 300) ORDER BY s DESC LIMIT 1000) x;\n" ]);

my $ask = q{
SELECT count(*), md5(string_agg(k::text, ',')) FROM (SELECT k FROM w ORDER BY k) x;
SELECT count(*), md5(string_agg(k::text, ',')) FROM (SELECT k FROM w ORDER BY k DESC) x;
SELECT count(*), md5(string_agg(s, ',')) FROM (SELECT s FROM w ORDER BY s) x;
};

foreach my $round (1 .. 4)
{
	my $name = "seed $seed, round $round";
	my $load = start_scripts($node, 20, $seed + $round, \%scripts);

	foreach (1 .. pick(3, 8))
	{
		usleep(pick(100, 300) * 1000);
		$node->psql('postgres', 'VACUUM w');
	}

	# The last one is cut short.
	my $vacuum = open_session($node);
	my $pid = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];

	send_sql($vacuum, 'VACUUM w');
	usleep(pick(1, 30) * 1000);
	$node->kill9;
	usleep(10_000) while kill(0, $pid);
	$load->{run}->finish;
	eval { close_session($vacuum) };

	# The backends may still be ending.
	my $up = 0;
	for (1 .. 300)
	{
		$up = $node->start(fail_ok => 1);
		last if $up;
		usleep(100_000);
	}
	ok($up, "$name: recovered");
	indexes_whole($node, 'w', $name);
	same_by_index($node, $name, $ask, 'SET enable_bitmapscan = off;');
}

# The standby answers and is checked while pages go.
my $load = start_scripts($node, 5, $seed + 9, \%scripts);
foreach my $i (1 .. 5)
{
	usleep(500_000);
	$node->psql('postgres', 'VACUUM w');
	same_by_index($standby, "seed $seed, standby under load", $ask, 'SET enable_bitmapscan = off;');
	is($standby->safe_psql('postgres', q{SELECT wormhole_check('w_k') >= 0, wormhole_check('w_s') >= 0}), 't|t', '... checked');
}
$load->{run}->finish;
is(${ $load->{err} } =~ /(ERROR.*)/ ? $1 : '', '', 'no errors under load');
$node->wait_for_catchup($standby);
indexes_whole($standby, 'w', 'standby');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), sum(k) FROM w WHERE k >= 0'),
	$node->safe_psql('postgres', 'SELECT count(*), sum(k) FROM w'), 'the standby has what the primary has');
$standby->promote;
$standby->safe_psql('postgres', 'SELECT fill(1, 10000)');
$standby->safe_psql('postgres', 'DELETE FROM w WHERE k > 2000');
$standby->safe_psql('postgres', 'VACUUM w');
indexes_whole($standby, 'w', 'promoted standby');
$standby->stop;
$node->stop;
done_testing();
