-- Partitions of another table access method: they have the index, which says
-- nothing, and are scanned.  The others go on being skipped.
LOAD 'rangefilter';
CREATE SCHEMA other_am;
SET search_path = other_am, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/skips.sql
\set ECHO none
\i :helpers
\set ECHO all
CREATE FUNCTION scan_of(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan;
END
$$;
-- Another one by its name only.
CREATE ACCESS METHOD rf_other TYPE TABLE HANDLER heap_tableam_handler;

CREATE TABLE t (part int, a int, b text COLLATE "C") PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s) USING heap WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 3) p \gexec
CREATE TABLE o1 PARTITION OF t FOR VALUES IN (11) USING rf_other;
INSERT INTO t SELECT p, p * 1000 + g, 'b' || p FROM unnest('{0,1,2,3,11}'::int[]) p, generate_series(1, 100) g;
CREATE INDEX t_a ON t USING rangefilter (a);
CREATE INDEX t_b ON t USING rangefilter (b) WITH (pages_per_range = 1);
CREATE INDEX t_both ON t USING rangefilter (b, a);
CREATE VIEW status AS
	SELECT "table", filter, rows, keys, summarized_blocks, tail_open, delta_keys, generation
	FROM rangefilter_status('t_a') ORDER BY "table"::text COLLATE "C";
SELECT * FROM status;
SELECT skips('SELECT * FROM t WHERE a = 1050'), skips('SELECT * FROM t WHERE a = 11050'),
	skips($$SELECT * FROM t WHERE b = 'b11' AND a < 0$$), skips('SELECT * FROM t WHERE a IS NULL');
SELECT plan_of('SELECT * FROM t WHERE a = 11050');

-- Made, attached, converted.
CREATE TABLE o2 PARTITION OF t FOR VALUES IN (12) USING rf_other;
CREATE TABLE o3 (b text COLLATE "C", a int, part int) USING rf_other;
INSERT INTO o3 VALUES ('b13', 13050, 13);
ALTER TABLE t ATTACH PARTITION o3 FOR VALUES IN (13);
ALTER TABLE t3 SET ACCESS METHOD rf_other;
INSERT INTO t VALUES (12, 12050, 'b12'), (11, NULL, NULL), (3, 3500, 'b3');
SELECT * FROM status;
SELECT skips('SELECT * FROM t WHERE a IN (3500, 12050)'), skips('SELECT * FROM t WHERE a IS NULL'),
	skips('SELECT * FROM t WHERE a = 13050');
ALTER TABLE t3 SET ACCESS METHOD heap;
SELECT skips('SELECT * FROM t WHERE a = 2050'), skips('SELECT * FROM t WHERE a = 3500');

-- Whatever comes, the index says "maybe".
UPDATE t SET a = a + 1 WHERE part = 12;
DELETE FROM t WHERE part = 11 AND a % 2 = 0;
VACUUM o1, o2, o3;
VACUUM FULL o2;
REINDEX INDEX t_a;
REINDEX TABLE CONCURRENTLY o1;
SELECT rangefilter_summarize('t_a'), rangefilter_verify('t_a'), rangefilter_verify('o1_a_idx');
SELECT "table" FROM rangefilter_status('t_a') WHERE rangefilter_may_contain(index, 12051, 12051);
SELECT rangefilter_may_contain('t_a', -5, -1);
SELECT * FROM status;
SELECT skips('SELECT * FROM t WHERE a = 12051');
BEGIN;
TRUNCATE o1;
INSERT INTO t VALUES (11, 77, 'b11');
SELECT skips('SELECT * FROM t WHERE a = 77');
ROLLBACK;
SELECT skips('SELECT * FROM t WHERE a = 77');
ALTER TABLE o1 SET UNLOGGED;
INSERT INTO t VALUES (11, 78, 'b11');
SELECT skips('SELECT * FROM t WHERE a = 78');

-- Bitmap scans and estimates do without.
SET enable_seqscan = off;
SELECT scan_of($$SELECT * FROM o1 WHERE b = 'b11'$$) LIKE '%Bitmap%' AS bitmap;
RESET enable_seqscan;
-- Gates.
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT part, a FROM t WHERE a = $1;
EXECUTE q (12051);
SELECT gate_skips('EXECUTE q (1050)'), gate_skips('EXECUTE q (13050)');

-- A table that is no partition: its index is told to be of no use.
CREATE TABLE alone (a int) USING rf_other;
CREATE INDEX alone_a ON alone USING rangefilter (a);
CREATE INDEX CONCURRENTLY alone_c ON alone USING rangefilter (a);
INSERT INTO alone VALUES (1);
SELECT rangefilter_may_contain('alone_a', 5, 5), rangefilter_verify('alone_c');
ALTER TABLE alone SET ACCESS METHOD heap;
SELECT rangefilter_may_contain('alone_a', 5, 5), rangefilter_verify('alone_c');
ALTER TABLE alone SET ACCESS METHOD rf_other;

SET client_min_messages = warning;
DROP SCHEMA other_am CASCADE;
DROP ACCESS METHOD rf_other;
