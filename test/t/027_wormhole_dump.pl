# pg_dump, pg_restore and pg_upgrade: wormhole indexes of all kinds keep their
# definitions, options and answers; pg_upgrade takes the files as they are.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('wormhole_dump');
my $dir = $node->basedir;

$node->safe_psql(
	'postgres', q{
CREATE SCHEMA s;
CREATE TABLE s.t (k int NOT NULL, a int, b text COLLATE "C", c numeric, at timestamptz, v varchar(40) COLLATE "C", ch char(8) COLLATE "C");
INSERT INTO s.t SELECT g, CASE WHEN g % 7 <> 0 THEN g % 90 END, 'https://www.example.org/' || g % 300 || '/' || md5(g::text),
	CASE WHEN g % 5 <> 0 THEN round(g / 7.0, g % 3) END, to_timestamp(g * 1000), 'v' || g, 'c' || g FROM generate_series(1, 3000) g;
CREATE UNIQUE INDEX t_unique ON s.t USING wormhole (k);
CREATE UNIQUE INDEX t_nulls ON s.t USING wormhole (a, k) NULLS NOT DISTINCT;
CREATE INDEX t_order ON s.t USING wormhole (a DESC NULLS LAST, b NULLS FIRST, c DESC);
CREATE INDEX t_include ON s.t USING wormhole (b) INCLUDE (c, at);
CREATE UNIQUE INDEX t_include_unique ON s.t USING wormhole (k DESC) INCLUDE (b) WITH (fillfactor = 70);
CREATE INDEX t_expression ON s.t USING wormhole (lower(b) COLLATE "POSIX", (c * 2));
CREATE INDEX t_partial ON s.t USING wormhole (at) WHERE a > 50 AND b IS NOT NULL;
CREATE INDEX t_options ON s.t USING wormhole (a) WITH (fillfactor = 55, deduplicate = off);
CREATE INDEX t_class ON s.t USING wormhole (b text_ops, v text_ops, ch bpchar_ops, c numeric_ops);
ALTER INDEX s.t_expression ALTER COLUMN 2 SET STATISTICS 500;
COMMENT ON INDEX s.t_class IS 'operator classes by name';
ALTER TABLE s.t CLUSTER ON t_order;
CREATE TABLE r AS SELECT generate_series(1, 100) k;
ALTER TABLE r ALTER k SET NOT NULL;
CREATE UNIQUE INDEX r_k ON r USING wormhole (k);
ALTER TABLE r REPLICA IDENTITY USING INDEX r_k;
ALTER TABLE s.t ADD CONSTRAINT t_exclude EXCLUDE USING wormhole (k WITH =, v WITH =) DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE p (k int, v text COLLATE "C") PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (k);
CREATE TABLE p2d PARTITION OF p2 DEFAULT;
INSERT INTO p SELECT g, 'v' || g % 100 FROM generate_series(0, 1999) g;
CREATE INDEX p_v ON p USING wormhole (v, k DESC) WITH (fillfactor = 80);
ALTER INDEX p1_v_k_idx SET (fillfactor = 60);
CREATE INDEX p_some ON ONLY p USING wormhole (k);
CREATE INDEX p1_some ON p1 USING wormhole (k);
ALTER INDEX p_some ATTACH PARTITION p1_some;
CREATE MATERIALIZED VIEW mv AS SELECT k, b FROM s.t;
CREATE UNIQUE INDEX mv_k ON mv USING wormhole (k);
});

# Where the server has ICU.
$node->safe_psql('postgres', q{
DO $$ BEGIN
	CREATE INDEX t_icu ON s.t USING wormhole (b COLLATE "sv-x-icu");
EXCEPTION WHEN undefined_object THEN NULL; END $$});

my $definitions = q{
SELECT c.oid::regclass, pg_get_indexdef(c.oid), c.reloptions, i.indisvalid, i.indisunique, i.indnullsnotdistinct, i.indisclustered, i.indisreplident,
	p.relname, obj_description(c.oid, 'pg_class'), pg_get_constraintdef(con.oid),
	(SELECT string_agg(attstattarget::text, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid)
FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
	LEFT JOIN pg_inherits h ON h.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = h.inhparent
	LEFT JOIN pg_constraint con ON con.conindid = c.oid
WHERE a.amname = 'wormhole' ORDER BY c.oid::regclass::text};
my $check = q{
SELECT count(*) FROM (SELECT c.oid, wormhole_check(c.oid, true) > 0 FROM pg_class c JOIN pg_am a ON a.oid = c.relam
	WHERE a.amname = 'wormhole' AND c.relkind = 'i') x};
my $use = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;';
my $answers = qq{$use
SELECT count(*), md5(string_agg(b, ',')) FROM (SELECT b FROM s.t WHERE b LIKE 'https://www.example.org/7%' ORDER BY b) x;
SELECT md5(string_agg(x::text, ',')) FROM (SELECT a, b, c FROM s.t ORDER BY a DESC NULLS LAST, b NULLS FIRST, c DESC) x;
SELECT md5(string_agg(x::text, ',')) FROM (SELECT v, k FROM p ORDER BY v DESC, k) x;
SELECT count(*) FROM s.t WHERE at > to_timestamp(2000000) AND a > 50 AND b IS NOT NULL;
SELECT min(k), max(k) FROM s.t;};
my $before = $node->safe_psql('postgres', $definitions);
my $right = $node->safe_psql('postgres', $answers);
my $n = $node->safe_psql('postgres', $check);

cmp_ok($n, '>=', 14, 'indexes of all kinds');
like($before, qr/NULLS NOT DISTINCT.*deduplicate=off/s, 'there is something to keep');

# That a database has the same, its indexes whole, and still refuses what they refuse.
sub same
{
	my ($server, $database, $name) = @_;

	is($server->safe_psql($database, $definitions), $before, "$name: the same indexes");
	is($server->safe_psql($database, $answers), $right, "$name: the same answers");
	is($server->safe_psql($database, $check), $n, "$name: checked");
	my ($status, $out, $err) = $server->psql($database, "INSERT INTO s.t (k, a) VALUES (-1, NULL), (-1, NULL)");
	like($err, qr/duplicate key value violates unique constraint "t_(unique|nulls|include_unique)"/, "$name: unique");
	$server->safe_psql($database, 'CLUSTER s.t; REFRESH MATERIALIZED VIEW mv; VACUUM FULL p');
	is($server->safe_psql($database, $check), $n, "$name: checked after CLUSTER, REFRESH and VACUUM FULL");
	return;
}

foreach my $format ('plain', 'custom', 'directory')
{
	my $file = "$dir/$format.dump";
	my @jobs = $format eq 'directory' ? ('--jobs=2') : ();

	$node->command_ok([ 'pg_dump', '-d', $node->connstr('postgres'), "--format=$format", '-f', $file, @jobs ], "$format: dumped");
	$node->safe_psql('postgres', "CREATE DATABASE $format");
	$node->command_ok(
		$format eq 'plain' ?
		  [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($format), '-f', $file ] :
		  [ 'pg_restore', '--exit-on-error', '-d', $node->connstr($format), '--jobs=2', $file ],
		"$format: restored");
	same($node, $format, $format);
}
foreach my $strategy ('wal_log', 'file_copy')
{
	$node->safe_psql('postgres', "CREATE DATABASE $strategy TEMPLATE custom STRATEGY $strategy");
	same($node, $strategy, "template, $strategy");
}

# The files as they are, in another cluster: of the same version, as there is no other here.
my $new = PostgreSQL::Test::Cluster->new('wormhole_upgraded');
$new->init(extra => ['--data-checksums']);
$new->append_conf('postgresql.conf', "session_preload_libraries = 'rangefilter'\ntimezone = 'UTC'\n");
my $files = $node->safe_psql('postgres', q{SELECT md5(string_agg(md5(pg_read_binary_file(pg_relation_filepath(c.oid))), ',' ORDER BY relname))
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'wormhole' AND relkind = 'i' AND pg_relation_size(c.oid) > 0});
$node->stop;
chdir $new->basedir or die;
chomp(my $bindir = `dirname "\$(command -v pg_upgrade)"`);
$new->command_ok(
	[
		'pg_upgrade', '--no-sync', '-d', $node->data_dir, '-D', $new->data_dir, '-b', $bindir, '-B', $bindir,
		'-s', $new->host, '-p', $node->port, '-P', $new->port
	],
	'pg_upgrade');
$new->start;
is($new->safe_psql('postgres', q{SELECT md5(string_agg(md5(pg_read_binary_file(pg_relation_filepath(c.oid))), ',' ORDER BY relname))
	FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE amname = 'wormhole' AND relkind = 'i' AND pg_relation_size(c.oid) > 0}),
	$files, 'upgraded: the very files');
same($new, 'postgres', 'upgraded');
$new->stop;
done_testing();
