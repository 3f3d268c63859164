# pg_dump and pg_restore: definitions, options and answers come through.

use strict;
use warnings;

use IPC::Run;
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
CREATE INDEX plain_real ON s.plain USING rangefilter (v) WITH (filter = surf, suffix = 'real');
-- Without quotes this is the name of a type.
CREATE INDEX plain_type ON s.plain USING rangefilter (v) WITH (filter = surf, suffix = real);
CREATE TYPE s.state AS ENUM ('new', 'done');
ALTER TYPE s.state ADD VALUE 'tried' BEFORE 'done';
CREATE TABLE s.jobs (state s.state);
CREATE INDEX plain_ip ON s.plain USING rangefilter (ip) WITH (bits_per_key = 33);
CREATE INDEX plain_at ON s.plain USING rangefilter (at) WITH (filter = snarf);
CREATE INDEX plain_f ON s.plain USING rangefilter (f);
CREATE INDEX plain_long ON s.plain USING rangefilter (lower(v) COLLATE "POSIX") WHERE f <> 0;
CREATE MATERIALIZED VIEW s.mv AS SELECT * FROM s.plain;
INSERT INTO s.jobs VALUES ('tried');
CREATE INDEX jobs_state ON s.jobs USING rangefilter (state);
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
SELECT sum(k), (SELECT count(*) FROM s.plain WHERE ip = '10.0.0.7'),
	rangefilter_may_contain('s.jobs_state', 'tried', 'tried'), rangefilter_may_contain('s.jobs_state', 'new', 'new')
FROM t WHERE k BETWEEN 100 AND 103};
my $before = $node->safe_psql('postgres', $definitions);

like($before, qr/bits_per_key=8.*suffix=mixed/s, 'there is something to keep');
is($node->safe_psql('postgres', q{SELECT count(DISTINCT suffix), min(suffix) FROM (VALUES ('s.plain_real'), ('s.plain_type')) v (i), rangefilter_status(i)}),
	'1|real', 'real with quotes and without is the same');

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
is($node->safe_psql('postgres', $answers =~ s/rangefilter_may/elsewhere.rangefilter_may/gr), '406|1|t|f', 'queries go on');
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

# Where no setting preloads the library, CREATE EXTENSION says so, once.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;

# What pg_restore into a new database of this name prints, if asked to print what the server says.
sub restore
{
	my ($database, $file, @options) = @_;
	my ($out, $err);

	$node->safe_psql('postgres', "CREATE DATABASE $database") unless @options;
	ok( IPC::Run::run(
			[
				'pg_restore', '--exit-on-error', '--verbose', @options, '-d',
				$node->connstr(@options ? 'postgres' : $database), $file
			],
			'>', \$out, '2>', \$err),
		"$database: restored") or diag($err);
	return $err;
}

my $loaded = q{SELECT current_setting('rangefilter.enable', true) IS NOT NULL};
my $warned = restore('unloaded', "$dir/custom.dump");

like($warned, qr/WARNING:  library "rangefilter" was not loaded/, 'unloaded: a warning');
is(scalar(() = $warned =~ /WARNING/g), 1, 'unloaded: one');
is($node->safe_psql('unloaded', 'CREATE ROLE regress_dump') . $node->safe_psql('unloaded', "SET ROLE regress_dump; $loaded"),
	'f', 'unloaded: a user can see it');
my ($command) = $warned =~ /(ALTER DATABASE .*;)/;
$node->safe_psql('unloaded', $command);
is($node->safe_psql('unloaded', "SET ROLE regress_dump; $loaded"), 't', 'unloaded: the command in the hint loads it');

# With the setting in the dump there is nothing to say.
$node->command_ok([ 'pg_dump', '-d', $node->connstr('unloaded'), '--format=custom', '--create', '-f', "$dir/set.dump" ],
	'with the setting: dumped');
$node->safe_psql('postgres', 'DROP DATABASE unloaded');
unlike(restore('unloaded', "$dir/set.dump", '--create'), qr/WARNING/, 'with the setting: no warning');
is($node->safe_psql('unloaded', "SET ROLE regress_dump; $loaded"), 't', 'with the setting: loaded');

# Without the extension nothing is left.
$node->safe_psql('moved', 'DROP EXTENSION rangefilter CASCADE');
is($node->safe_psql('moved', q{SELECT count(*) FROM pg_am WHERE amname = 'rangefilter'}), '0', 'dropped');
is($node->safe_psql('moved', 'SELECT count(*) FROM t WHERE k = 7'), '1', 'queries go on without it');

$node->stop;
done_testing();
