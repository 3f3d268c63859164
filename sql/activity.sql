--
-- The view rangefilter_activity: what indexes are asked, and what comes of it
--
CREATE SCHEMA rf_activity;
SET search_path = rf_activity, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/plans.sql
\set ECHO none
\i :helpers
\set ECHO all
LOAD 'rangefilter';
-- Watch all queries.
SET rangefilter.activity_sample_rate = 1;

CREATE TABLE t (d date, k int, s text COLLATE "C") PARTITION BY RANGE (d);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
CREATE TABLE t3 (s text COLLATE "C", gone int, k int, d date);
ALTER TABLE t3 DROP COLUMN gone;
ALTER TABLE t ATTACH PARTITION t3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
ALTER TABLE t1 SET (autovacuum_enabled = off);
ALTER TABLE t2 SET (autovacuum_enabled = off);
ALTER TABLE t3 SET (autovacuum_enabled = off);
INSERT INTO t SELECT make_date(2024, 1 + g / 100, 1 + g % 28), g, 's' || g
FROM generate_series(0, 299) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s);

CREATE VIEW activity AS
	SELECT index, "table", probes, skips, watched_scans AS watched, empty_scans AS empty,
		round(false_positive_rate::numeric, 3) AS rate
	FROM rangefilter_activity WHERE "table"::text LIKE 't_' OR "table"::text LIKE '%.t_' ORDER BY index::text;
GRANT SELECT ON activity TO PUBLIC;

-- Nothing yet.
SELECT * FROM activity;
SELECT "table", last_summarize > now() - interval '1 hour' AS just_now, stale_blocks
FROM rangefilter_activity WHERE index::text LIKE 't__k_idx' ORDER BY 1;

-- Rows are where the index says.
SELECT count(*) FROM t WHERE k = 5;
SELECT count(*) FROM t WHERE k BETWEEN 90 AND 110;
SELECT * FROM activity WHERE index::text LIKE '%k_idx';
SELECT rangefilter_activity_reset();

-- Rows that are gone: the index cannot know, and the scans find nothing.
DELETE FROM t WHERE k BETWEEN 150 AND 199;
SELECT * FROM activity WHERE "table" = 't2'::regclass;
SELECT count(*) FROM t WHERE k = 160;
SELECT count(*) FROM t WHERE k = 170;
SELECT * FROM t WHERE k BETWEEN 150 AND 155 ORDER BY k LIMIT 1;
SELECT * FROM activity WHERE index::text LIKE '%k_idx';
SELECT rangefilter_activity_reset('t_k');

-- Not watched: a scan that need not find what the index was asked for.
SELECT count(*) FROM t WHERE k = 160 AND d > '2024-02-10';
SELECT count(*) FROM t WHERE k = 160 AND s = 's5';
SELECT count(*) FROM t WHERE k = 160 AND length(s) = 2;
SELECT count(*) FROM t a, t b WHERE a.k = 160 AND b.k = 161;
EXPLAIN (COSTS OFF) SELECT * FROM t1 WHERE k = 160;
SELECT plan_of($$SELECT * FROM t WHERE k = 160$$);
SELECT * FROM t WHERE k = 160 LIMIT 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*) FROM t WHERE k = 160;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
CREATE INDEX t2_btree ON t2 (s);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*) FROM (VALUES ('s160' COLLATE "C"), ('s161')) v (s), t WHERE t.k = 160 AND t.s = v.s;
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_bitmapscan;
DROP INDEX t2_btree;
SELECT * FROM activity WHERE index = 't2_k_idx'::regclass;
-- Watched: the other condition is true for the whole partition, whose columns
-- have another order.
SELECT count(*) FROM t WHERE k = 210 AND d > '2024-02-01' AND d < now();
SELECT count(*) FROM t WHERE k = 210 AND d >= '2024-03-01';
SELECT count(*) FROM t WHERE k = 210 AND d >= '2024-02-15';
SELECT * FROM activity WHERE index = 't3_k_idx'::regclass;
SELECT rangefilter_activity_reset('t_k');

-- A plan that is kept asks once, and is watched once.
SET plan_cache_mode = force_generic_plan;
PREPARE kept AS SELECT count(*) FROM t WHERE k = 160;
EXECUTE kept;
EXECUTE kept;
EXECUTE kept;
SELECT * FROM activity WHERE index = 't2_k_idx'::regclass;
DEALLOCATE kept;
SELECT rangefilter_activity_reset('t_k');
-- EXPLAIN runs nothing: the plan is watched when it runs.
PREPARE kept AS SELECT count(*) FROM t WHERE k = 160;
EXPLAIN EXECUTE kept \g /dev/null
EXECUTE kept;
SELECT * FROM activity WHERE index = 't2_k_idx'::regclass;
DEALLOCATE kept;
SELECT rangefilter_activity_reset('t_k');

-- Values that are known only when the query runs.
PREPARE later(int) AS SELECT count(*) FROM t WHERE k = $1;
EXECUTE later(160);
EXECUTE later(120);
EXECUTE later(50);
SELECT * FROM activity WHERE index::text LIKE '%k_idx';
DEALLOCATE later;
-- The same value again is no question; nor is one asked of what is skipped.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT v.k, (SELECT count(*) FROM t WHERE t.k = v.k)
FROM (VALUES (160), (160), (161), (299), (120)) v (k);
SELECT * FROM activity WHERE index::text LIKE '%k_idx';
-- Not watched: the scan has another condition.
SELECT (SELECT count(*) FROM t WHERE t.k = v.k AND length(s) = 2)
FROM (VALUES (160), (161)) v (k);
SELECT * FROM activity WHERE index::text LIKE '%k_idx';
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET plan_cache_mode;

-- A table that a query names twice, with the same condition, is asked once.
SELECT rangefilter_activity_reset();
SELECT count(*) FROM t a, t b WHERE a.k = 5 AND b.k = 5;
SELECT index, probes, skips FROM activity WHERE index::text LIKE '%k_idx';

-- Nothing is watched where the setting says so; asking is counted.
SELECT rangefilter_activity_reset();
SET rangefilter.activity_sample_rate = 0;
SELECT count(*) FROM t WHERE k = 160;
SELECT * FROM activity WHERE "table" = 't2'::regclass;
SET rangefilter.activity_sample_rate = 1;
SET rangefilter.activity_sample_rate = 1.5;

-- Blocks that have not been summarized.
INSERT INTO t SELECT '2024-02-01', 100, repeat('x', 1500) FROM generate_series(1, 100);
SELECT stale_blocks > 10 AS stale FROM rangefilter_activity WHERE index = 't2_k_idx'::regclass;
SELECT rangefilter_summarize('t_k') > 10;
SELECT stale_blocks FROM rangefilter_activity WHERE index = 't2_k_idx'::regclass;
TRUNCATE t2;
SELECT probes, skips, stale_blocks FROM rangefilter_activity WHERE index = 't2_k_idx'::regclass;

-- Bitmap scans, which are not among the probes: of a plain table, and of one that
-- the summary says nothing of.
CREATE TABLE plain (k int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO plain SELECT g, repeat('x', 800) FROM generate_series(1, 1000) g;
CREATE INDEX plain_k ON plain USING rangefilter (k) WITH (pages_per_range = 4);
CREATE VIEW bitmaps AS SELECT probes, skips, bitmap_scans, round(blocks_left_out::numeric, 2) AS left_out
	FROM rangefilter_activity WHERE index = 'plain_k'::regclass;
SET enable_seqscan = off;
SELECT * FROM bitmaps;
SELECT count(*) FROM plain WHERE k = 5;
SELECT * FROM bitmaps;
SELECT count(*) FROM plain WHERE k > 500;
SELECT * FROM bitmaps;
SELECT count(*) FROM plain WHERE k = 1001;
SELECT * FROM bitmaps;
SET rangefilter.enable = off;
SELECT count(*) FROM plain WHERE k = 5;
SELECT * FROM bitmaps;
RESET rangefilter.enable;
SELECT rangefilter_activity_reset('plain_k');
SELECT * FROM bitmaps;
RESET enable_seqscan;

--
-- Who sees what
--
CREATE ROLE regress_rf_none;
CREATE ROLE regress_rf_reader;
CREATE ROLE regress_rf_stats;
GRANT pg_read_all_stats TO regress_rf_stats;
GRANT USAGE ON SCHEMA rf_activity TO regress_rf_none, regress_rf_reader, regress_rf_stats;
GRANT SELECT (k) ON t1, t2, t3 TO regress_rf_reader;
SET ROLE regress_rf_none;
SELECT * FROM activity WHERE "table" = 't1'::regclass;
SELECT probes, skips, watched_scans, empty_scans, false_positive_rate, last_summarize IS NOT NULL AS summarized, stale_blocks
FROM rangefilter_index_activity('t1_k_idx');
SELECT rangefilter_activity_reset();
SET ROLE regress_rf_reader;
SELECT * FROM activity WHERE "table" = 't1'::regclass;
SELECT rangefilter_activity_reset('t_k');
SET ROLE regress_rf_stats;
SELECT * FROM activity WHERE "table" = 't1'::regclass;
RESET ROLE;
-- Whoever is kept from seeing all rows is not told that a value was found.
ALTER TABLE t1 ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON t1 USING (k < 3);
SET ROLE regress_rf_reader;
SELECT * FROM activity WHERE index = 't1_k_idx'::regclass;
RESET ROLE;
GRANT EXECUTE ON FUNCTION rangefilter_activity_reset(regclass) TO regress_rf_reader;
SET ROLE regress_rf_reader;
SELECT rangefilter_activity_reset('t1_k_idx');
RESET ROLE;
SELECT * FROM activity WHERE "table" = 't1'::regclass;
REVOKE EXECUTE ON FUNCTION rangefilter_activity_reset(regclass) FROM regress_rf_reader;

-- Other relations, and indexes that are gone.
SELECT * FROM rangefilter_index_activity('t');
SELECT * FROM rangefilter_index_activity('t_k');
SELECT * FROM rangefilter_index_activity(0);
SELECT rangefilter_activity_reset('t');
SELECT count(*) FROM t WHERE k = 5;
DROP INDEX t_k;
SELECT * FROM activity;

SET client_min_messages = warning;
DROP SCHEMA rf_activity CASCADE;
DROP ROLE regress_rf_none, regress_rf_reader, regress_rf_stats;
