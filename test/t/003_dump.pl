# pg_dump and pg_restore: definitions, options and answers come through.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('dump');
my $dir = $node->basedir;

load_schema($node);
$node->safe_psql(
	'postgres', q{
CREATE SCHEMA s;
CREATE TABLE s.plain (v varchar(30) COLLATE "C", ip inet, at timestamptz, f float4);
INSERT INTO s.plain SELECT 'v' || g, ('10.0.0.' || g)::inet, to_timestamp(g), 'NaN'
	FROM generate_series(1, 100) g;
CREATE INDEX plain_v ON s.plain USING rangefilter (v) WITH (filter = surf, suffix = hash);
CREATE INDEX plain_ip ON s.plain USING rangefilter (ip) WITH (bits_per_key = 33);
CREATE INDEX plain_at ON s.plain USING rangefilter (at) WITH (filter = snarf);
CREATE INDEX plain_f ON s.plain USING rangefilter (f);
CREATE INDEX plain_long ON s.plain USING rangefilter (lower(v) COLLATE "POSIX") WHERE f <> 0;
CREATE MATERIALIZED VIEW s.mv AS SELECT * FROM s.plain;
CREATE INDEX mv_v ON s.mv USING rangefilter (v);
-- Options of a partition that differ from the parent's, and an index on some only.
ALTER INDEX t0_k_idx SET (bits_per_key = 8);
CREATE INDEX t_part ON ONLY t USING rangefilter (k) WHERE k > 100;
CREATE INDEX t3_part ON t3 USING rangefilter (k) WHERE k > 100;
ALTER INDEX t_part ATTACH PARTITION t3_part;
});

my $definitions = q{
SELECT n.nspname, c.relname, pg_get_indexdef(c.oid), c.reloptions, i.indisvalid, p.relname
FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	LEFT JOIN pg_inherits h ON h.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = h.inhparent
WHERE a.amname = 'rangefilter' ORDER BY 1, 2};
my $answers = q{
SELECT sum(k), (SELECT count(*) FROM s.plain WHERE ip = '10.0.0.7') FROM t WHERE k BETWEEN 100 AND 103};
my $before = $node->safe_psql('postgres', $definitions);

like($before, qr/bits_per_key=8.*suffix=mixed/s, 'there is something to keep');

foreach my $format ('plain', 'custom', 'directory')
{
	my $file = "$dir/$format.dump";
	my $jobs = $format eq 'directory' ? ['--jobs=2'] : [];

	$node->command_ok(
		[
			'pg_dump', '-d', $node->connstr('postgres'),
			"--format=$format", '-f', $file, @$jobs
		],
		"$format: dumped");
	$node->safe_psql('postgres', "CREATE DATABASE $format");
	if ($format eq 'plain')
	{
		$node->command_ok(
			[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($format), '-f', $file ],
			"$format: restored");
	}
	else
	{
		$node->command_ok(
			[
				'pg_restore', '--exit-on-error', '-d',
				$node->connstr($format), '--jobs=2', $file
			],
			"$format: restored");
	}
	is($node->safe_psql($format, $definitions), $before, "$format: the same indexes");
	is( $node->safe_psql($format, $answers),
		$node->safe_psql('postgres', $answers),
		"$format: the same answers");
	is( $node->safe_psql($format,
			q{SELECT rangefilter_verify('t_k'), rangefilter_verify('s.plain_ip')}),
		'3000|100',
		"$format: verified");
	is( $node->safe_psql($format, q{SELECT bool_or(tail_open) FROM rangefilter_status('t_k')}),
		'f', "$format: summarized");
}

# Another schema for the extension.
$node->safe_psql('postgres', 'CREATE SCHEMA elsewhere; ALTER EXTENSION rangefilter SET SCHEMA elsewhere');
is($node->safe_psql('postgres', $answers), '406|1', 'queries go on');
is($node->safe_psql('postgres', q{SELECT elsewhere.rangefilter_verify('t_k')}), '3000', 'and functions');
$node->command_ok(
	[ 'pg_dump', '-d', $node->connstr('postgres'), '--format=custom', '-f', "$dir/moved.dump" ],
	'moved: dumped');
$node->safe_psql('postgres', 'CREATE DATABASE moved');
$node->command_ok(
	[ 'pg_restore', '--exit-on-error', '-d', $node->connstr('moved'), "$dir/moved.dump" ],
	'moved: restored');
is($node->safe_psql('moved', $definitions), $node->safe_psql('postgres', $definitions),
	'moved: the same indexes');

# What somebody has put into the extension's schema before is not called.
$node->safe_psql('postgres', 'CREATE DATABASE planted');
$node->safe_psql(
	'planted', q{
CREATE FUNCTION rangefilter_index_activity(index oid, OUT probes bigint, OUT skips bigint, OUT watched_scans bigint,
	OUT empty_scans bigint, OUT false_positive_rate float8, OUT last_summarize timestamptz, OUT stale_blocks bigint,
	OUT bitmap_scans bigint, OUT blocks_left_out float8)
LANGUAGE plpgsql AS $$ BEGIN RAISE 'called as %', current_user; END $$;
CREATE EXTENSION rangefilter;
CREATE TABLE t (k int);
CREATE INDEX ON t USING rangefilter (k)});
is($node->safe_psql('planted', 'SELECT probes FROM rangefilter_activity'), '0', 'planted: not called');

# A database as a template, block by block and file by file.
foreach my $strategy ('wal_log', 'file_copy')
{
	$node->safe_psql('postgres', "CREATE DATABASE $strategy TEMPLATE moved STRATEGY $strategy");
	is($node->safe_psql($strategy, q{SELECT elsewhere.rangefilter_verify('t_k')}), '3000', "$strategy: verified");
	$node->safe_psql($strategy, q{INSERT INTO t SELECT 1, k FROM generate_series(5000, 5100) k});
	is( $node->safe_psql($strategy, q{
SELECT count(*) FILTER (WHERE elsewhere.rangefilter_may_contain('t_k', k, k)) FROM t WHERE k >= 5000}),
		'101',
		"$strategy: goes on");
}

# Without the extension nothing is left.
$node->safe_psql('moved', 'DROP EXTENSION rangefilter CASCADE');
is($node->safe_psql('moved', q{SELECT count(*) FROM pg_am WHERE amname = 'rangefilter'}), '0', 'dropped');
is($node->safe_psql('moved', 'SELECT count(*) FROM t WHERE k = 7'), '1', 'queries go on without it');

$node->stop;
done_testing();
