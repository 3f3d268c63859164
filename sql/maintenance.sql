--
-- VACUUM, REINDEX, CLUSTER and their like
--
CREATE SCHEMA rf_maintenance;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_maintenance, public;

CREATE TABLE t (id int PRIMARY KEY, k int, b text COLLATE "C")
	WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE FUNCTION has(k int) RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_may_contain('t_k', k, k) $$;
CREATE FUNCTION ok(OUT denied bigint, OUT verified boolean) LANGUAGE sql AS
$$
	SELECT count(*) FILTER (WHERE NOT has(k) OR NOT rangefilter_may_contain('t_b', b, b)),
		rangefilter_verify('t_k') >= count(*) AND rangefilter_verify('t_b') >= count(*)
	FROM t
$$;
CREATE FUNCTION state(OUT keys bigint, OUT min text, OUT max text, OUT delta bigint,
	OUT open boolean, OUT summarized boolean, OUT generation bigint)
LANGUAGE sql AS
$$
	SELECT keys, min, max, delta_keys, tail_open, summarized_blocks = heap_blocks, generation
	FROM rangefilter_status('t_k')
$$;

--
-- VACUUM summarizes what is new
--
INSERT INTO t SELECT g, g, 'b' || g FROM generate_series(1, 10000) g;
SELECT open, summarized FROM state();
VACUUM t;
SELECT s.*, has(0), has(10001) FROM state() s;
-- Nothing to do: nothing is done.
VACUUM t;
SELECT generation FROM state();
-- A few new keys are left where they are.
INSERT INTO t VALUES (10001, 20000, 'b');
VACUUM t;
SELECT s.*, has(20000), has(15000) FROM state() s;
SELECT * FROM ok();
-- Not asked to look at indexes.
INSERT INTO t SELECT g, g, 'b' || g FROM generate_series(10002, 20000) g;
VACUUM (INDEX_CLEANUP off) t;
SELECT open, generation FROM state();
ANALYZE t;
SELECT open, generation FROM state();
VACUUM (ANALYZE, FREEZE) t;
SELECT open, summarized, delta FROM state();
SELECT * FROM ok();

--
-- ... and tightens when much has gone
--
-- A temporary table, because there no other session's snapshot keeps VACUUM
-- from removing what is dead.
CREATE TEMP TABLE gone (k int);
INSERT INTO gone SELECT generate_series(1, 20000);
CREATE INDEX gone_k ON gone USING rangefilter (k);
CREATE FUNCTION gone_has(k int) RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_may_contain('gone_k', k, k) $$;
DELETE FROM gone WHERE k > 19000;
VACUUM gone;
SELECT keys, max, gone_has(19500) AS a_few_stale_keys_stay FROM rangefilter_status('gone_k');
DELETE FROM gone WHERE k > 5000;
VACUUM gone;
SELECT rows, keys, max, gone_has(19500), gone_has(5000) FROM rangefilter_status('gone_k');
SELECT rangefilter_verify('gone_k');
-- REINDEX always does.
DELETE FROM gone WHERE k > 4990;
VACUUM gone;
SELECT keys, max, gone_has(4995) FROM rangefilter_status('gone_k');
REINDEX INDEX gone_k;
SELECT keys, max, gone_has(4995), generation FROM rangefilter_status('gone_k');
-- Everything goes: the heap shrinks to nothing, and grows again.
DELETE FROM gone;
VACUUM gone;
SELECT pg_relation_size('gone') AS size, keys, max, gone_has(1), delta_keys, tail_open
FROM rangefilter_status('gone_k');
INSERT INTO gone SELECT g * 3 FROM generate_series(1, 3000) g;
SELECT count(*) FROM gone WHERE NOT gone_has(k);
VACUUM gone;
SELECT keys, min, max, summarized_blocks = heap_blocks AS summarized, gone_has(4)
FROM rangefilter_status('gone_k');
SELECT count(*) FROM gone WHERE NOT gone_has(k);
SELECT rangefilter_verify('gone_k');
DROP TABLE gone;

--
-- REINDEX, VACUUM FULL, CLUSTER, ALTER TABLE, SET TABLESPACE
--
UPDATE t SET k = id * 3 WHERE id % 2 = 0;
UPDATE t SET k = k + 1 WHERE id % 10 = 0;
REINDEX TABLE t;
SELECT o.*, generation FROM ok() o, state();
UPDATE t SET k = k + 1 WHERE id % 10 = 1;
REINDEX INDEX CONCURRENTLY t_k;
SELECT o.*, generation FROM ok() o, state();
UPDATE t SET k = k + 1 WHERE id % 10 = 2;
REINDEX TABLE CONCURRENTLY t;
SELECT * FROM ok();
UPDATE t SET k = k + 1 WHERE id % 10 = 3;
VACUUM FULL t;
SELECT o.*, summarized, generation FROM ok() o, state();
CLUSTER t USING t_pkey;
SELECT o.*, summarized, generation FROM ok() o, state();
CLUSTER t USING t_k;
ALTER TABLE t CLUSTER ON t_k;
ALTER TABLE t ADD COLUMN now timestamptz DEFAULT clock_timestamp();
SELECT o.*, keys = (SELECT count(DISTINCT k) FROM t) AS exact FROM ok() o, state();
ALTER INDEX t_k SET TABLESPACE pg_default;
ALTER TABLE t SET TABLESPACE pg_default;
SELECT * FROM ok();
REINDEX SCHEMA rf_maintenance;
SELECT * FROM ok();
BEGIN;
DELETE FROM t WHERE id > 100;
REINDEX INDEX t_k;
SELECT has(915) AS still_there_for_others;
ROLLBACK;
SELECT has(915), o.* FROM ok() o;
BEGIN;
CREATE INDEX t_k2 ON t USING rangefilter (k);
SELECT rangefilter_may_contain('t_k2', -4, -4), rangefilter_may_contain('t_k2', 915, 915);
INSERT INTO t VALUES (100000, -4, 'new');
SELECT rangefilter_may_contain('t_k2', -4, -4);
COMMIT;
SELECT rangefilter_verify('t_k2') >= (SELECT count(*) FROM t) AS verified;
DROP INDEX t_k2;

-- A build that fails leaves an index that is no use, and can be made anew.
CREATE FUNCTION fragile(id int) RETURNS int IMMUTABLE LANGUAGE sql AS
$$ SELECT 1 / (id - 77) $$;
CREATE INDEX CONCURRENTLY t_div ON t USING rangefilter (fragile(id));
SELECT indisready, indisvalid FROM pg_index WHERE indexrelid = 't_div'::regclass;
INSERT INTO t VALUES (200000, 200000, 'x');
VACUUM t;
SELECT rangefilter_may_contain('t_div', 5, 5);
SELECT rangefilter_verify('t_div');
SELECT index, "table", filter, tail_open FROM rangefilter_status('t_div');
CREATE OR REPLACE FUNCTION fragile(id int) RETURNS int IMMUTABLE LANGUAGE sql AS
$$ SELECT 1 / (id - 77 + 1000000) $$;
REINDEX INDEX CONCURRENTLY t_div;
SELECT rangefilter_may_contain('t_div', 5, 5), rangefilter_may_contain('t_div', 0, 0);
DROP INDEX t_div;

-- Out-of-line values, of live rows and of rows that are gone.
CREATE TABLE wide (id int, v text COLLATE "C") WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER v SET STORAGE external;
INSERT INTO wide SELECT g, repeat(chr(64 + g), 5000) FROM generate_series(1, 20) g;
UPDATE wide SET v = v || 'x' WHERE id < 10;
CREATE INDEX wide_v ON wide USING rangefilter (v);
UPDATE wide SET v = v || 'y' WHERE id > 10;
DELETE FROM wide WHERE id = 5;
SELECT rangefilter_summarize('wide_v') >= 0, rangefilter_verify('wide_v') >= 19;
SELECT count(*) FROM wide WHERE NOT rangefilter_may_contain('wide_v', v, v);
VACUUM wide;
SELECT rangefilter_verify('wide_v') >= 19,
	(SELECT count(*) FROM wide WHERE NOT rangefilter_may_contain('wide_v', v, v)) AS denied;

-- The values of a dead row may be gone while it is there.
DELETE FROM wide WHERE id = 6;
SELECT reltoastrelid::regclass AS toast FROM pg_class WHERE oid = 'wide'::regclass \gset
VACUUM :toast;
INSERT INTO wide VALUES (21, 'of a new summary');
SELECT generation AS before FROM rangefilter_status('wide_v') \gset
SELECT rangefilter_summarize('wide_v') >= 0, rangefilter_verify('wide_v') >= 19;
SELECT generation - :before AS made FROM rangefilter_status('wide_v');

-- Many more blocks than one segment takes.
CREATE TABLE big (k int, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
ALTER TABLE big ALTER pad SET STORAGE plain;
INSERT INTO big SELECT g, repeat('x', 700) FROM generate_series(1, 8400) g;
CREATE INDEX big_k ON big USING rangefilter (k);
INSERT INTO big SELECT g, repeat('x', 700) FROM generate_series(8401, 10000) g;
SELECT rangefilter_summarize('big_k') = 1600;
INSERT INTO big SELECT g, repeat('x', 700) FROM generate_series(10001, 10300) g;
SELECT rangefilter_summarize('big_k') = 300;
-- As a partition: a session that plans often asks all of the segments, still.
LOAD 'rangefilter';
CREATE TABLE bigs (k int, pad text) PARTITION BY RANGE (k);
CREATE INDEX bigs_k ON bigs USING rangefilter (k);
ALTER TABLE bigs ATTACH PARTITION big FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
DO $$
BEGIN
	FOR i IN 1 .. 250 LOOP
		EXECUTE 'EXPLAIN SELECT FROM bigs WHERE k = ' || i;
	END LOOP;
END
$$;
SELECT k FROM bigs WHERE k IN (9000, 10200);
SELECT k FROM bigs WHERE k = 10200;
ALTER TABLE bigs DETACH PARTITION big;
-- Late rows in old blocks, in each of the segments.
ALTER TABLE big SET (fillfactor = 100);
VACUUM big;
INSERT INTO big SELECT -g, '' FROM generate_series(1, 2000) g;
SELECT heap_blocks = 10300 AS old_blocks, summarized_blocks = 10300, tail_open, rows, keys,
	delta_keys, min, max
FROM rangefilter_status('big_k');
SELECT count(*) FROM big WHERE NOT rangefilter_may_contain('big_k', k, k);
SELECT rangefilter_may_contain('big_k', 0, 0), rangefilter_may_contain('big_k', 10301, NULL),
	rangefilter_verify('big_k');
VACUUM big;
SELECT count(*) FROM big WHERE NOT rangefilter_may_contain('big_k', k, k);
SELECT rangefilter_summarize('big_k');
SELECT rows, keys, delta_keys, min, max FROM rangefilter_status('big_k');
SELECT rangefilter_verify('big_k');
-- A key of the delta that came with a row of the tail is that of a row in an old
-- block, too; the one in the tail goes, so that a summarize of the tail alone
-- would not see it.
INSERT INTO big VALUES (-5000, repeat('x', 8120));
INSERT INTO big VALUES (-5000, '');
DELETE FROM big WHERE k = -5000 AND pad <> '';
SELECT k, (ctid::text::point)[0] < (SELECT summarized_blocks FROM rangefilter_status('big_k')) AS in_old_block
FROM big WHERE k = -5000;
SELECT rangefilter_summarize('big_k') > 0;
SELECT rangefilter_may_contain('big_k', -5000, -5000), rangefilter_verify('big_k') > 0;

SET client_min_messages = warning;
DROP SCHEMA rf_maintenance CASCADE;
