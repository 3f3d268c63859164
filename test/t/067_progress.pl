# The progress of a command stays in its view when an index is summarized beside it in a subtransaction.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('progress', conf => "autovacuum = off\n");

# Functions for indexes: while an index is summarized, progress() tells what the views of
# COPY and CREATE INDEX show of this session.
$node->safe_psql(
	'postgres', q{
CREATE FUNCTION progress(k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	PERFORM pg_stat_clear_snapshot();
	FOR r IN SELECT 'copy ' || tuples_processed || ' ' || bytes_processed AS text FROM pg_stat_progress_copy
		WHERE pid = pg_backend_pid() AND relid = 'public.loaded'::regclass
		UNION ALL SELECT 'create index ' || partitions_done || ' of ' || partitions_total
		FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid()
	LOOP
		RAISE NOTICE 'row %: %', k, r.text;
	END LOOP;
END $$;
CREATE FUNCTION shown(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN IF k % 1000 = 0 THEN PERFORM public.progress(k); END IF; RETURN k; END $$;
-- A load into another table, whose end is a subtransaction.
CREATE TABLE other (k int);
CREATE INDEX ON other USING rangefilter (k);
CREATE FUNCTION load() RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO public.other SELECT generate_series(1, 5000); END $$;
CREATE FUNCTION loads(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF k = 1000 AND current_setting('application_name') = 'load' THEN PERFORM public.load(); END IF;
	RETURN public.shown(k);
END $$;
CREATE TABLE loaded (p int, k int) PARTITION BY LIST (p);
CREATE TABLE loaded1 PARTITION OF loaded FOR VALUES IN (1);
CREATE TABLE loaded2 PARTITION OF loaded FOR VALUES IN (2);
CREATE TABLE loaded3 PARTITION OF loaded FOR VALUES IN (3);
CREATE INDEX loaded_k ON loaded USING rangefilter (shown(k));
});

# What a statement told about progress, sorted: the number of times, and the text.
sub told
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);
	my %times;

	BAIL_OUT($err) if $rc != 0;
	$times{$_}++ foreach $err =~ /NOTICE:  (row .*)/g;
	return join("\n", map { "$times{$_} x $_" } sort keys %times);
}

# COPY: each partition's rows are seen when they are inserted, and when the partition is
# summarized at the end of the statement, in a subtransaction for each.
SKIP:
{
	skip 'loads are summarized at the end of the statement since 17', 1 if $node->pg_version < 17;
	my $file = $node->basedir . '/rows';
	my @rows = map { my $p = $_; map { "$p\t" . ($_ + $p * 10000) . "\n" } 1 .. 1500 } 1 .. 3;

	append_to_file($file, join('', @rows));
	my $bytes = -s $file;
	my $told = told("SET rangefilter.autosummarize = on; COPY loaded FROM '$file'");
	foreach my $row (11000, 21000, 31000)
	{
		like($told, qr/row $row: copy 4500 $bytes$/m, "row $row: COPY's progress while its partition is summarized");
	}
	is($node->safe_psql('postgres', "SELECT count(*) FROM rangefilter_status('loaded_k') WHERE rows = 1500"), 3,
		'all partitions are summarized');
}

# VACUUM: a summarize that fails is rolled back.  VACUUM then waits for others to release the table, to cut
# off its end, and shows that.
$node->safe_psql(
	'postgres', q{
CREATE TABLE vacuumed (k text COLLATE "C", pad text);
INSERT INTO vacuumed SELECT md5(g::text), repeat('x', 200) FROM generate_series(1, 50000) g;
CREATE INDEX vacuumed_k ON vacuumed USING rangefilter (k);
DELETE FROM vacuumed WHERE ctid > '(500,0)';
});
my $blocks = $node->safe_psql('postgres', "SELECT pg_relation_size('vacuumed') / 8192");
my $reader = open_session($node);
my $vacuum = open_session($node);
ask($reader, 'BEGIN; SELECT count(*) > 0 FROM vacuumed');
ask($vacuum, "SET maintenance_work_mem = '1MB'; SET temp_file_limit = 64; SELECT 1");
send_sql($vacuum, 'VACUUM vacuumed');
ok( $node->poll_query_until('postgres', qq{
SELECT relid = 'vacuumed'::regclass AND heap_blks_total = $blocks AND heap_blks_scanned > 0
FROM pg_stat_progress_vacuum WHERE phase = 'truncating heap'}),
	"VACUUM's progress after a summarize that failed");
close_session($reader);
like(answer($vacuum), qr/index "vacuumed_k" was not summarized: temporary file size exceeds/, 'it has failed');
close_session($vacuum);

# rangefilter_summarize(): one of its functions loads another table.
$node->safe_psql(
	'postgres', q{
CREATE TABLE own (p int, k int) PARTITION BY LIST (p);
CREATE TABLE own1 PARTITION OF own FOR VALUES IN (1);
CREATE INDEX own_k ON own USING rangefilter (loads(k));
INSERT INTO own SELECT 1, generate_series(1, 2000);
});
is( told("SET rangefilter.autosummarize = on; SET application_name = 'load'; SELECT rangefilter_summarize('own_k')"),
	"1 x row 1000: create index 0 of 1\n1 x row 2000: create index 0 of 1",
	'own progress, after a load that one of its functions has made');

# rangefilter_check_database(): the check of each index is rolled back.
is( $node->safe_psql('postgres', q{
COPY (SELECT count(problem), (SELECT count(*) FROM pg_stat_progress_copy WHERE pid = pg_backend_pid())
	FROM rangefilter_check_database()) TO STDOUT}),
	"0\t1", "COPY's progress after checks");

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no complaints');
$node->stop;
done_testing();
