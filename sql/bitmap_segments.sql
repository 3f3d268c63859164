-- Bitmap scans of tables with several segments, each with places of its own; and
-- of conditions whose keys are not a single range of the column's own type.
CREATE SCHEMA rf_bitmap_segments;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_bitmap_segments, public;
SET client_min_messages = warning;
SET enable_indexscan = off;

-- Runs a query by bitmap scans and without.  How many rows, and blocks that were told
-- by the summary: EXPLAIN shows ten rows for each.
CREATE FUNCTION scanned(query text, OUT n bigint, OUT blocks int, OUT same bool) LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	mine text;
	right_one text;
BEGIN
	query := format('SELECT count(*) AS n, coalesce(string_agg(q::text, E''\n'' ORDER BY q::text), '''') AS rows FROM (%s) q', query);
	PERFORM set_config('enable_seqscan', 'off', true);
	EXECUTE query INTO n, mine;
	EXECUTE 'EXPLAIN (ANALYZE, TIMING off, SUMMARY off, FORMAT json) ' || query INTO plan;
	SELECT sum(rows::numeric / 10) INTO blocks
	FROM jsonb_path_query(plan, 'strict $.** ? (@."Node Type" == "Bitmap Index Scan")."Actual Rows"') rows;
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true),
		set_config('rangefilter.enable', 'off', true);
	EXECUTE query INTO n, right_one;
	PERFORM set_config('enable_bitmapscan', 'on', true), set_config('rangefilter.enable', 'on', true);
	same := mine = right_one;
END
$$;

-- One row a block.  The first segment has 8,400 blocks, 132 ranges, so that several are
-- made loose together; the second one begins within what would be a range of the
-- first.
CREATE TABLE big (k int, n int, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
ALTER TABLE big ALTER pad SET STORAGE plain;
INSERT INTO big SELECT g, g % 100, repeat('x', 700) FROM generate_series(1, 8400) g;
CREATE INDEX big_k ON big USING rangefilter (k) WITH (pages_per_range = 64);
-- So large a table has no run on the metapage, however few the rows: it would leave segments no room.
CREATE INDEX big_few ON big USING rangefilter (k) WHERE n = 5;
SELECT pg_relation_size('big_few') / 8192 AS pages;
DROP INDEX big_few;
INSERT INTO big SELECT g, g % 100, repeat('x', 700) FROM generate_series(8401, 10000) g;
INSERT INTO big SELECT NULL, g, repeat('x', 700) FROM generate_series(1, 3) g;
SELECT rangefilter_summarize('big_k') AS blocks;
INSERT INTO big SELECT g, g % 100, repeat('x', 700) FROM generate_series(10001, 10300) g;
SELECT rangefilter_summarize('big_k') AS blocks;
SELECT k, s.* FROM unnest('{1,64,65,8400,8401,9000,9984,10000,10001,10300,10301}'::int[]) k,
	scanned('SELECT * FROM big WHERE k = ' || k) s;
SELECT * FROM scanned('SELECT * FROM big WHERE k BETWEEN 8390 AND 8410');
SELECT * FROM scanned('SELECT * FROM big WHERE k BETWEEN 9990 AND 10010');
-- NULLs are not looked for.
SELECT n, blocks > 10000 AS everywhere, same FROM scanned('SELECT * FROM big WHERE k IS NULL');

-- Below a gate that asks again and again, in memory from the second time on.
LOAD 'rangefilter';
CREATE TABLE bigs (k int, n int, pad text) PARTITION BY RANGE (n);
CREATE INDEX bigs_k ON bigs USING rangefilter (k);
ALTER TABLE bigs ATTACH PARTITION big FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_seqscan = off;
EXPLAIN (COSTS off) SELECT x, k, n FROM unnest('{20000,1,8401,9000,20001,10001,10300,5,9990}'::int[]) x LEFT JOIN bigs ON k = x;
SELECT x, k, n FROM unnest('{20000,1,8401,9000,20001,10001,10300,5,9990}'::int[]) x LEFT JOIN bigs ON k = x;
SELECT x, (SELECT count(*) FROM bigs WHERE k = x OR k IS NULL) FROM unnest('{20000,20001,20002,9000}'::int[]) x;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_seqscan;
ALTER TABLE bigs DETACH PARTITION big;

-- Rows come into old blocks of each segment, with keys that their segment has, but
-- elsewhere: each makes ranges of its own loose.  Only blocks that were emptied have
-- room.
SELECT rangefilter_verify('big_k') AS verified;
DELETE FROM big WHERE k = 6406;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (20, -1, repeat('x', 700)) RETURNING ctid;
SELECT * FROM scanned('SELECT * FROM big WHERE k = 20');
SELECT rangefilter_verify('big_k') AS verified;
DELETE FROM big WHERE k = 301;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (25, -1, repeat('x', 700)) RETURNING ctid;
SELECT * FROM scanned('SELECT * FROM big WHERE k = 25');
SELECT rangefilter_verify('big_k') AS verified;
DELETE FROM big WHERE k = 8451;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (9500, -1, repeat('x', 700)) RETURNING ctid;
SELECT * FROM scanned('SELECT * FROM big WHERE k = 9500');
SELECT rangefilter_verify('big_k') AS verified;
DELETE FROM big WHERE k = 10101;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (10250, -1, repeat('x', 700)) RETURNING ctid;
SELECT * FROM scanned('SELECT * FROM big WHERE k = 10250');
SELECT delta_keys, rangefilter_verify('big_k') AS verified FROM rangefilter_status('big_k');
-- What another segment has is not known of this one: the delta gets it.
DELETE FROM big WHERE k = 8600;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (33, -1, repeat('x', 700)) RETURNING ctid;
SELECT delta_keys FROM rangefilter_status('big_k');
SELECT n, same FROM scanned('SELECT * FROM big WHERE k = 33');
SELECT rangefilter_verify('big_k') AS verified;
-- Nor is it in the first block of a segment.
DELETE FROM big WHERE k = 8401;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (40, -1, repeat('x', 700)) RETURNING ctid;
SELECT delta_keys FROM rangefilter_status('big_k');
SELECT n, same FROM scanned('SELECT * FROM big WHERE k = 40');
SELECT rangefilter_verify('big_k') AS verified;

-- VACUUM reads nothing but the tail, so the delta keeps the key of an old block.
INSERT INTO big SELECT g, -2, repeat('x', 700) FROM generate_series(20001, 20005) g;
VACUUM big;
SELECT summarized_blocks = heap_blocks AS summarized, delta_keys, rangefilter_verify('big_k') AS verified
FROM rangefilter_status('big_k');
SELECT n, same FROM scanned('SELECT * FROM big WHERE k = 33');
SELECT * FROM scanned('SELECT * FROM big WHERE k = 20003');
-- A summarize of all blocks that has failed had retired the delta.  So the next one
-- begins where that one did, however little is new.
CREATE FUNCTION may_fail(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
BEGIN
	IF k = 10300 AND current_setting('test.fail', true) = 'yes' THEN
		RAISE 'failed';
	END IF;
	RETURN k;
END
$$;
CREATE INDEX big_f ON big USING rangefilter (may_fail(k));
DELETE FROM big WHERE k = 9000;
VACUUM (INDEX_CLEANUP off) big;
INSERT INTO big VALUES (30000, -1, repeat('x', 700)) RETURNING ctid;
SET test.fail = 'yes';
SELECT rangefilter_summarize('big_f');
SET test.fail = 'no';
SELECT rangefilter_may_contain('big_f', 30000, 30000), rangefilter_verify('big_f') AS verified;
INSERT INTO big SELECT g, -2, repeat('x', 700) FROM generate_series(20006, 20010) g;
VACUUM big;
SELECT delta_keys FROM rangefilter_status('big_f');
SELECT rangefilter_may_contain('big_f', 30000, 30000), rangefilter_verify('big_f') AS verified;
DROP TABLE big;

-- Comparisons with values of other types: numbers that the column's type has not,
-- and times that depend on the zone.
CREATE TABLE other (i int, d date, s text COLLATE "C", pad text) WITH (autovacuum_enabled = off);
ALTER TABLE other ALTER pad SET STORAGE plain;
INSERT INTO other SELECT g, '2024-01-01'::date + g, 'k' || g % 7, repeat('x', 7500) FROM generate_series(1, 50) g;
CREATE INDEX other_i ON other USING rangefilter (i) WITH (pages_per_range = 1);
CREATE INDEX other_d ON other USING rangefilter (d) WITH (pages_per_range = 1);
CREATE INDEX other_is ON other USING rangefilter (i, s) WITH (pages_per_range = 1);
INSERT INTO other SELECT NULL, NULL, NULL, repeat('x', 7500) FROM generate_series(1, 3) g;
SELECT q, s.* FROM unnest(ARRAY[
	'i = 7::bigint',
	'i > 45 AND i < 4294967298',
	'i >= -4294967298 AND i <= 3::bigint',
	'i > 4294967290',
	'd >= timestamp ''2024-02-15 12:00''',
	'd = timestamp ''2024-02-15 12:00''',
	'd >= timestamptz ''2024-02-15 12:00 UTC''',
	'd = timestamptz ''2024-02-15 00:00 UTC''',
	'd IS NULL',
	'd IS NOT NULL AND i = 3']) q,
	scanned('SELECT * FROM other WHERE ' || q) s;
-- Few numbers in the first column make as many ranges of rows.
DROP INDEX other_i;
SELECT q, s.* FROM unnest(ARRAY[
	'i BETWEEN 30 AND 33 AND s = ''k4''',
	'i BETWEEN 30 AND 33 AND s >= ''k4''',
	'i = 11 AND s < ''k5''']) q,
	scanned('SELECT * FROM other WHERE ' || q) s;
VACUUM other;
SELECT * FROM scanned('SELECT * FROM other WHERE d IS NULL');
DROP TABLE other;

-- Ranges of keys whose places are on several pages.
CREATE TABLE long (k int) WITH (autovacuum_enabled = off);
INSERT INTO long SELECT g FROM generate_series(1, 60000) g;
CREATE INDEX long_k ON long USING rangefilter (k) WITH (pages_per_range = 2, bits_per_key = 20);
SELECT f, t, n, blocks, same FROM (VALUES (1, 30000), (12000, 50000), (59000, 70000), (1, 60000)) v (f, t),
	scanned(format('SELECT * FROM long WHERE k BETWEEN %s AND %s', f, t)) s;

RESET test.fail;
DROP SCHEMA rf_bitmap_segments CASCADE;
