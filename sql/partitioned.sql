--
-- Partitioned tables: an index on every partition, whatever comes
--
CREATE SCHEMA rf_partitioned;
SET search_path = rf_partitioned, public;

CREATE TABLE m (ts int, k int, b text COLLATE "C") PARTITION BY RANGE (ts);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (100);
CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (100) TO (200);
INSERT INTO m SELECT ts, ts * 1000, 'b' || ts FROM generate_series(0, 199) ts;
CREATE INDEX m_k ON m USING rangefilter (k) WITH (bits_per_key = 20);
CREATE INDEX ON m USING rangefilter (lower(b)) WHERE ts > 50;
\d m
\d m1
SELECT index, rows, keys, min, max FROM rangefilter_status('m_k');
SELECT index, rows, keys, min, max FROM rangefilter_status('m_lower_idx');

-- Which partitions may hold a key, and which do.
CREATE FUNCTION parts(lo int, hi int) RETURNS text LANGUAGE sql AS
$$
	SELECT string_agg("table"::text, ' ' ORDER BY "table"::text COLLATE "C")
	FROM rangefilter_status('m_k') WHERE rangefilter_may_contain(index, lo, hi)
$$;
CREATE FUNCTION verified() RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_verify('m_k') >= (SELECT count(*) FROM m) $$;
-- Partitions that hold a row the summaries deny: none.
CREATE FUNCTION denied() RETURNS bigint LANGUAGE sql AS
$$
	SELECT count(*) FROM m
	WHERE NOT m.tableoid::regclass = ANY (ARRAY(SELECT "table" FROM rangefilter_status('m_k') WHERE rangefilter_may_contain(index, k, k)))
$$;
SELECT parts(5000, 5000), parts(5001, 5999), parts(99000, 100000), denied(), verified();

--
-- Future partitions, default, sub-partitioned
--
CREATE TABLE m3 PARTITION OF m FOR VALUES FROM (200) TO (300);
CREATE TABLE md PARTITION OF m DEFAULT;
CREATE TABLE m4 PARTITION OF m FOR VALUES FROM (300) TO (400) PARTITION BY LIST (k);
CREATE TABLE m41 PARTITION OF m4 FOR VALUES IN (1, 2, 3);
CREATE TABLE m42 PARTITION OF m4 DEFAULT;
INSERT INTO m VALUES (250, 7, 'm3'), (350, 1, 'm41'), (351, 8, 'm42'), (-1, 9, 'md');
SELECT parts(7, 7), parts(1, 1), parts(8, 8), parts(9, 9), parts(4, 6), denied(), verified();
SELECT index, "table", delta_keys FROM rangefilter_status('m_k') WHERE delta_keys > 0;
SELECT reloptions FROM pg_class WHERE relname = 'm42_k_idx';
-- A part of the tree has its own index.
SELECT "table" FROM rangefilter_status('m4_k_idx') WHERE rangefilter_may_contain(index, 1, 8);
SELECT rangefilter_may_contain('m4_k_idx', 9, 9), rangefilter_may_contain('m_k', 9, 9);

--
-- ATTACH: with an index that fits, without one, with one that does not
--
CREATE TABLE a1 (ts int, k int, b text COLLATE "C");
INSERT INTO a1 VALUES (400, 11, 'a1');
CREATE INDEX a1_k ON a1 USING rangefilter (k);
CREATE TABLE a2 (b text COLLATE "C", dropped int, k int, ts int);
ALTER TABLE a2 DROP dropped;
INSERT INTO a2 VALUES ('a2', 12, 500);
CREATE TABLE a3 (LIKE m);
INSERT INTO a3 VALUES (600, 13, 'a3');
CREATE INDEX a3_k ON a3 (k);
CREATE INDEX a3_k_part ON a3 USING rangefilter (k) WHERE b <> '';
ALTER TABLE m ATTACH PARTITION a1 FOR VALUES FROM (400) TO (500);
ALTER TABLE m ATTACH PARTITION a2 FOR VALUES FROM (500) TO (600);
ALTER TABLE m ATTACH PARTITION a3 FOR VALUES FROM (600) TO (700);
SELECT c.relname, am.amname, inhparent::regclass
FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am am ON am.oid = c.relam
	LEFT JOIN pg_inherits ON inhrelid = c.oid
WHERE x.indrelid IN ('a1'::regclass, 'a2'::regclass, 'a3'::regclass)
ORDER BY c.relname;
SELECT parts(11, 11), parts(12, 12), parts(13, 13), denied(), verified();
INSERT INTO m VALUES (510, 14, 'a2');
SELECT parts(14, 14), denied(), verified();

-- DETACH: the index stays on the table, and stays right.
ALTER TABLE m DETACH PARTITION a1;
SELECT parts(11, 11);
INSERT INTO a1 VALUES (1, 15, 'alone');
SELECT rangefilter_may_contain('a1_k', 15, 15), rangefilter_may_contain('a1_k', 12, 14),
	rangefilter_verify('a1_k');
ALTER TABLE m DETACH PARTITION md;
ALTER TABLE m DETACH PARTITION a2 CONCURRENTLY;
SELECT parts(12, 12), rangefilter_verify('a2_k_idx');
ALTER TABLE m ATTACH PARTITION a2 FOR VALUES FROM (500) TO (600);
SELECT parts(12, 12), denied(), verified();
DROP TABLE md;

--
-- An index of its parts: valid only when all partitions have one
--
CREATE TABLE o (k int) PARTITION BY HASH (k);
CREATE TABLE o0 PARTITION OF o FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE o1 PARTITION OF o FOR VALUES WITH (modulus 2, remainder 1);
CREATE INDEX o_k ON ONLY o USING rangefilter (k);
INSERT INTO o SELECT generate_series(1, 100);
SELECT count(*) FROM rangefilter_status('o_k');
-- What has no index may hold anything.
SELECT rangefilter_may_contain('o_k', 1000, 1000);
CREATE INDEX o0_k ON o0 USING rangefilter (k);
ALTER INDEX o_k ATTACH PARTITION o0_k;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'o_k'::regclass;
SELECT rangefilter_may_contain('o_k', 1000, 1000);
CREATE INDEX CONCURRENTLY o1_k ON o1 USING rangefilter (k) WITH (filter = surf);
CREATE INDEX o1_btree ON o1 (k);
ALTER INDEX o_k ATTACH PARTITION o1_btree;
ALTER INDEX o_k ATTACH PARTITION o1_k;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'o_k'::regclass;
SELECT rangefilter_may_contain('o_k', 1000, 1000), rangefilter_may_contain('o_k', 100, 1000);
SELECT index, filter FROM rangefilter_status('o_k');
CREATE INDEX CONCURRENTLY ON o USING rangefilter (k);

-- A foreign partition has no index, and may hold anything, too.
CREATE FOREIGN DATA WRAPPER rf_dummy;
CREATE SERVER rf_dummy FOREIGN DATA WRAPPER rf_dummy;
CREATE TABLE fp (k int) PARTITION BY RANGE (k);
CREATE TABLE fp1 PARTITION OF fp FOR VALUES FROM (0) TO (10);
CREATE FOREIGN TABLE fp2 PARTITION OF fp FOR VALUES FROM (10) TO (20) SERVER rf_dummy;
CREATE INDEX fp_k ON fp USING rangefilter (k);
SELECT rangefilter_may_contain('fp_k', 1000, 1000), rangefilter_may_contain('fp1_k_idx', 1000, 1000);
SELECT rangefilter_verify('fp_k'), rangefilter_summarize('fp_k');

--
-- Rows that move, and rows that go
--
UPDATE m SET ts = 150 WHERE ts = 50;
SELECT parts(50000, 50000), denied(), verified();
UPDATE m SET ts = 250, k = 77777 WHERE ts = 60;
SELECT parts(77777, 77777), denied(), verified();
BEGIN;
UPDATE m SET ts = ts + 100 WHERE ts BETWEEN 70 AND 79;
SELECT denied();
ROLLBACK;
SELECT denied(), verified();
DELETE FROM m WHERE ts = 61;
INSERT INTO m VALUES (62, 62, 'x') ON CONFLICT DO NOTHING;
MERGE INTO m USING (VALUES (63, 163), (64, 164)) v (ts, new) ON m.ts = v.ts
	WHEN MATCHED THEN UPDATE SET ts = v.new, k = v.new;
SELECT parts(163, 163), parts(164, 164), denied(), verified();
TRUNCATE m1;
SELECT parts(1000, 1000), denied();
COPY m FROM stdin;
5	5555	copied
205	6666	copied
\.
SELECT parts(5555, 5555), parts(6666, 6666), denied(), verified();
TRUNCATE m;
SELECT parts(NULL, NULL), verified();
INSERT INTO m SELECT ts, ts, NULL FROM generate_series(0, 399) ts;
SELECT denied(), verified();
VACUUM m;
SELECT count(*), bool_or(tail_open) AS open, sum(keys), sum(delta_keys) FROM rangefilter_status('m_k');
SELECT parts(5, 5), parts(105, 105), parts(400, NULL);

--
-- REINDEX, options, a change of type, and the end
--
REINDEX TABLE m;
REINDEX INDEX CONCURRENTLY m_k;
REINDEX (CONCURRENTLY) TABLE m2;
SELECT denied(), verified(), parts(105, 105);
ALTER INDEX m_k SET (bits_per_key = 30);
ALTER INDEX m1_k_idx SET (bits_per_key = 30);
SELECT reloptions FROM pg_class WHERE relname = 'm1_k_idx';
DROP TABLE m4;
ALTER TABLE m ALTER k TYPE bigint;
SELECT denied(), verified(), parts(105, 105);
DROP INDEX m1_k_idx;
DROP INDEX CONCURRENTLY m_k;
DROP INDEX m_k;
SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE amname = 'rangefilter' AND relname LIKE 'm%k_idx' AND relnamespace = 'rf_partitioned'::regnamespace;

--
-- A partitioned table without partitions, and definitions that are refused
--
CREATE TABLE e (a int, b int, t text COLLATE "C") PARTITION BY LIST (a);
CREATE INDEX e_a ON e USING rangefilter (a);
SELECT count(*) FROM rangefilter_status('e_a');
SELECT rangefilter_may_contain('e_a', 1, 1), rangefilter_summarize('e_a'), rangefilter_verify('e_a');
CREATE TABLE e1 PARTITION OF e FOR VALUES IN (1);
SELECT rangefilter_may_contain('e_a', 1, 1);
INSERT INTO e VALUES (1, 1);
SELECT rangefilter_may_contain('e_a', 1, 1);
CREATE INDEX ON e USING rangefilter (a, b, a, b, a, b, a, b, a);
CREATE INDEX ON e USING rangefilter (t) WITH (filter = snarf);
CREATE UNIQUE INDEX ON e USING rangefilter (a);

-- Inheritance without partitions: each table has its own index.
CREATE TABLE parent (k int);
CREATE TABLE child () INHERITS (parent);
CREATE INDEX ON parent USING rangefilter (k);
INSERT INTO child VALUES (1);
SELECT rangefilter_may_contain('parent_k_idx', 1, 1);

SET client_min_messages = warning;
DROP SCHEMA rf_partitioned CASCADE;
DROP FOREIGN DATA WRAPPER rf_dummy CASCADE;
