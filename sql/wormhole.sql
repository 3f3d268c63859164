-- The wormhole index: definition, scans, limits.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE wh (id int8, s text COLLATE "C", n numeric, f float8);
INSERT INTO wh
	SELECT i * 7919 % 10007, 'https://www.example.org/path/' || i % 500 || '/' || md5(i::text),
		(i % 300) / 10.0, CASE WHEN i % 10 <> 0 THEN i % 77 END
	FROM generate_series(1, 10000) i;
CREATE INDEX wh_id ON wh USING wormhole (id);
CREATE INDEX wh_s ON wh USING wormhole (s);
CREATE INDEX wh_nf ON wh USING wormhole (n DESC, f NULLS FIRST) INCLUDE (id);
CREATE INDEX wh_expr ON wh USING wormhole ((id % 100)) WHERE f IS NULL;
VACUUM ANALYZE wh;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- Sizes are those of few pages.
SELECT leaf_pages BETWEEN 10 AND 14 AS leaves, directory_pages, free_pages, keys, rows,
		anchors = leaf_pages AS anchors, anchor_length < 9 AS short
	FROM wormhole_status('wh_id');
SELECT wormhole_check('wh_id', true), wormhole_check('wh_s', true),
	wormhole_check('wh_nf', true), wormhole_check('wh_expr', true);

-- Scans.
EXPLAIN (COSTS off) SELECT id FROM wh WHERE id BETWEEN 100 AND 105;
SELECT id FROM wh WHERE id BETWEEN 100 AND 105;
SELECT id FROM wh WHERE id BETWEEN 100 AND 105 ORDER BY id DESC;
EXPLAIN (COSTS off) SELECT id FROM wh WHERE id = ANY ('{77,3,77,NULL,9,20000}') ORDER BY id;
SELECT id FROM wh WHERE id = ANY ('{77,3,77,NULL,9,20000}') ORDER BY id;
SELECT id FROM wh WHERE id = ANY ('{77,3,77,NULL,9,20000}') ORDER BY id DESC LIMIT 2;
SELECT min(id), max(id) FROM wh;
SELECT id FROM wh WHERE id < 3::int2 ORDER BY id;
SELECT count(*) FROM wh WHERE id < NULL::int8;
SELECT count(*) FROM wh WHERE id > 5 AND id < 3;
EXPLAIN (COSTS off) SELECT count(*) FROM wh WHERE s LIKE 'https://www.example.org/path/4%';
SELECT count(*) FROM wh WHERE s LIKE 'https://www.example.org/path/4%';
SELECT count(*) FROM wh WHERE s >= 'https://www.example.org/path/4' AND s < 'https://www.example.org/path/5';
EXPLAIN (COSTS off) SELECT n, f, id FROM wh WHERE n < 25 ORDER BY n DESC, f NULLS FIRST LIMIT 3;
SELECT n, f FROM wh WHERE n < 25 ORDER BY n DESC, f NULLS FIRST LIMIT 3;
SELECT n, f FROM wh WHERE n < 25 ORDER BY n, f DESC NULLS LAST LIMIT 3;
SELECT count(*), count(f), min(f), max(f) FROM wh WHERE n = 2.5;
SELECT count(*) FROM wh WHERE n IN (2.5, 3) AND f IS NULL;
SELECT count(*) FROM wh WHERE n > 10 AND f = 5;
SELECT count(*) FROM wh WHERE f IS NOT NULL AND n >= 29;
EXPLAIN (COSTS off) SELECT count(*) FROM wh WHERE id % 100 = 5 AND f IS NULL;
SELECT count(*) FROM wh WHERE id % 100 = 5 AND f IS NULL;

-- Without remembered buffers, and with a smaller table of them.
SET wormhole.enable_hint = off;
SELECT count(*) FROM wh WHERE id BETWEEN 100 AND 199;
RESET wormhole.enable_hint;
SET wormhole.hint_memory = '64kB';
SELECT count(*) FROM wh WHERE id BETWEEN 100 AND 199;
RESET wormhole.hint_memory;

-- Partitions, in order without a sort.
CREATE TABLE wh_part (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE wh_part_1 PARTITION OF wh_part FOR VALUES FROM (0) TO (100);
CREATE TABLE wh_part_2 PARTITION OF wh_part FOR VALUES FROM (100) TO (200);
CREATE INDEX wh_part_k ON wh_part USING wormhole (k);
INSERT INTO wh_part SELECT i % 200, i FROM generate_series(1, 1000) i;
EXPLAIN (COSTS off) SELECT k FROM wh_part ORDER BY k LIMIT 3;
SELECT k FROM wh_part ORDER BY k LIMIT 3;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/versions.sql
\set ECHO none
\i :helpers
\set ECHO all
SELECT wh_kept_until_17('CREATE UNIQUE INDEX ON wh_part USING wormhole (k, v)',
	'cannot match partition key to an index using access method "wormhole"');
DROP TABLE wh_part;

-- Bitmaps.
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS off) SELECT count(*) FROM wh WHERE id < 50 OR n = 1;
SELECT count(*) FROM wh WHERE id < 50 OR n = 1;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;

-- Merge joins go back to marks.
SET enable_hashjoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS off) SELECT count(*) FROM wh a JOIN wh b ON a.n = b.n;
SELECT count(*) FROM wh a JOIN wh b ON a.n = b.n;
RESET enable_hashjoin;
RESET enable_nestloop;

-- Cursors change direction.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM wh WHERE id BETWEEN 10 AND 3000 ORDER BY id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 3 FROM c;
MOVE BACKWARD ALL IN c;
FETCH 2 FROM c;
DECLARE d SCROLL CURSOR FOR SELECT id FROM wh WHERE id IN (5, 700, 2000) ORDER BY id;
FETCH LAST FROM d;
FETCH BACKWARD 2 FROM d;
FETCH BACKWARD 1 FROM d;
FETCH FORWARD ALL FROM d;
COMMIT;

-- Values that are equal but look different, and the extremes, come back.
CREATE TABLE wh_look (n numeric, f float8, b char(5), i interval);
INSERT INTO wh_look VALUES (1.0, '-0', 'a', '30 days'), (1.00, '0', 'a ', '1 mon'), ('NaN', 'NaN', '', '-1 day'), (NULL, NULL, NULL, NULL);
CREATE INDEX wh_look_index ON wh_look USING wormhole (n, f, b, i);
VACUUM wh_look;
EXPLAIN (COSTS off) SELECT * FROM wh_look ORDER BY n, f, b, i;
SET intervalstyle = postgres;
SELECT n, f, b || '.' AS b, i FROM wh_look ORDER BY n, f, b, i;
SELECT count(*) FROM wh_look WHERE n = 1 AND f = 0 AND b = 'a' AND i = '720:00:00';

-- Rows come, change and go; equal keys share entries.
CREATE TABLE wh_dml (k int, v int);
CREATE INDEX wh_dml_k ON wh_dml USING wormhole (k);
INSERT INTO wh_dml SELECT i % 10, i FROM generate_series(1, 20000) i;
SELECT keys < 1000 AS shared, rows FROM wormhole_status('wh_dml_k');
UPDATE wh_dml SET k = k + 1 WHERE v % 4 = 0;
DELETE FROM wh_dml WHERE k = 3;
SELECT k, count(*) FROM wh_dml WHERE k < 6 GROUP BY k ORDER BY k;
VACUUM wh_dml;
SELECT k, count(*) FROM wh_dml WHERE k < 6 GROUP BY k ORDER BY k DESC;
SELECT wormhole_check('wh_dml_k', true) = count(*) FROM wh_dml;
ALTER INDEX wh_dml_k SET (deduplicate = off, fillfactor = 50);
REINDEX INDEX wh_dml_k;
CREATE INDEX wh_dml_mod ON wh_dml USING wormhole ((v % 500)) WITH (deduplicate = off, fillfactor = 50);
SELECT keys = rows AS separate FROM wormhole_status('wh_dml_mod');
TRUNCATE wh_dml;
SELECT count(*) FROM wh_dml WHERE k < 6;
INSERT INTO wh_dml VALUES (1, 1);
SELECT count(*) FROM wh_dml WHERE k < 6;
CREATE INDEX CONCURRENTLY wh_dml_v ON wh_dml USING wormhole (v);
REINDEX INDEX CONCURRENTLY wh_dml_v;
CLUSTER wh_dml USING wh_dml_v;
VACUUM FULL wh_dml;
SELECT wormhole_check('wh_dml_v', true), wormhole_check('wh_dml_k', true);

-- VACUUM counts the rows of an index, which are not all of the table where the index is partial.
CREATE TABLE wh_part (k int) WITH (autovacuum_enabled = off);
INSERT INTO wh_part SELECT generate_series(1, 1000);
CREATE INDEX wh_part_k ON wh_part USING wormhole (k) WHERE k <= 300;
DELETE FROM wh_part WHERE k % 10 = 0;
VACUUM wh_part;
SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'wh_part%' ORDER BY relname;

-- Rows in the place of others that are gone go into lists of TIDs, whose last ones get entries of their own.
CREATE TABLE wh_cut (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO wh_cut SELECT 7, v FROM generate_series(1, 60) v;
INSERT INTO wh_cut VALUES (8, 0);
CREATE INDEX wh_cut_k ON wh_cut USING wormhole (k);
DELETE FROM wh_cut WHERE v IN (2, 30);
VACUUM wh_cut;
ALTER INDEX wh_cut_k SET (deduplicate = off);
INSERT INTO wh_cut VALUES (7, 100), (7, 101) RETURNING ctid;
SELECT keys, rows FROM wormhole_status('wh_cut_k');
SELECT count(*), sum(v) FROM wh_cut WHERE k = 7;
SELECT wormhole_check('wh_cut_k', true);

-- Unique indexes.
CREATE TABLE wh_unique (a int, b text COLLATE "C");
SET client_min_messages = warning;
CREATE UNIQUE INDEX wh_unique_ab ON wh_unique USING wormhole (a, b);
CREATE UNIQUE INDEX wh_unique_b ON wh_unique USING wormhole (b) NULLS NOT DISTINCT;
INSERT INTO wh_unique VALUES (1, 'x'), (2, 'y'), (NULL, NULL);
INSERT INTO wh_unique VALUES (1, 'x');
INSERT INTO wh_unique VALUES (3, NULL);
INSERT INTO wh_unique VALUES (3, 'z'), (3, 'z');
BEGIN;
DELETE FROM wh_unique WHERE a = 1;
INSERT INTO wh_unique VALUES (1, 'x');
COMMIT;
UPDATE wh_unique SET b = 'y' WHERE a = 1;
INSERT INTO wh_unique VALUES (4, 'w'), (NULL, 'n1'), (NULL, 'n2');
SELECT * FROM wh_unique ORDER BY b;
CREATE TABLE wh_double (a int);
INSERT INTO wh_double VALUES (1), (2), (1), (NULL), (NULL);
CREATE UNIQUE INDEX ON wh_double USING wormhole (a);
DELETE FROM wh_double WHERE ctid = '(0,3)';
CREATE UNIQUE INDEX wh_double_nulls ON wh_double USING wormhole (a) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX wh_double_a ON wh_double USING wormhole (a);

RESET client_min_messages;

-- What the server keeps for btree.
SELECT wh_kept_until_17($$INSERT INTO wh_unique VALUES (1, 'x') ON CONFLICT DO NOTHING$$,
	'unexpected non-btree speculative unique index');
ALTER TABLE wh_unique ADD PRIMARY KEY USING INDEX wh_unique_ab;
SELECT wh_kept_until_17('CREATE TABLE wh_ref (a int REFERENCES wh_double (a))',
	'only b-tree indexes are supported for foreign keys');
DROP FUNCTION wh_kept_until_17, refused;

-- What is refused.
CREATE TABLE wh_bad (t text COLLATE "C", j jsonb, p point);
CREATE INDEX ON wh_bad USING wormhole (j);
CREATE INDEX ON wh_bad USING wormhole (t) WITH (fillfactor = 5);
CREATE INDEX wh_bad_t ON wh_bad USING wormhole (t);
\set VERBOSITY terse
INSERT INTO wh_bad VALUES (repeat('x', 2600));
INSERT INTO wh_bad VALUES (repeat('x', 2700));
\set VERBOSITY default
SELECT wormhole_check('wh_bad');
SELECT wormhole_status('pg_class_oid_index');
SELECT wormhole_check(4294967295);
SELECT count(*) FROM wh_bad WHERE t > 'x';

-- No collations of the operating system but those that sort bytes. (ICU's: collation_icu.sql)
DO $$
DECLARE
	names text[] := ARRAY(SELECT quote_ident(collname) FROM pg_collation WHERE collprovider = 'c'
		AND collname NOT IN ('C', 'POSIX', 'ucs_basic') AND collencoding IN (-1, 6) LIMIT 1);
BEGIN
	-- Where the server has no other collation there is nothing to see.
	IF cardinality(names) > 0 THEN
		EXECUTE 'CREATE INDEX ON wh_bad USING wormhole (t COLLATE ' || names[1] || ')';
		RAISE 'an index with collation % was made', names[1];
	END IF;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

-- Large keys: few on a page, and bounds as long as keys.
INSERT INTO wh_bad SELECT repeat(chr(97 + i % 26), 2600) || i FROM generate_series(1, 300) i;
INSERT INTO wh_bad SELECT repeat('q', 2600) || i FROM generate_series(1, 300) i;
SELECT wormhole_check('wh_bad_t', true);
SELECT count(*) FROM wh_bad WHERE t LIKE repeat('q', 100) || '%';

-- Large lists of such a key; then keys that leave no cut for two halves: three alike between others.
CREATE TABLE wh_long (t text COLLATE "C");
CREATE INDEX wh_long_t ON wh_long USING wormhole (t);
INSERT INTO wh_long SELECT repeat('a', 2600) FROM generate_series(1, 600);
SELECT wormhole_check('wh_long_t', true);
TRUNCATE wh_long;
INSERT INTO wh_long VALUES (repeat('a', 100)), (repeat('z', 100)), (repeat('k', 2670) || 1), (repeat('k', 2670) || 3), (repeat('k', 2670) || 2);
SELECT wormhole_check('wh_long_t', true);
-- ... where the cut that is tried last is behind all keys but one
DROP INDEX wh_long_t;
TRUNCATE wh_long;
CREATE INDEX wh_long_t ON wh_long USING wormhole (t) WITH (fillfactor = 50);
INSERT INTO wh_long VALUES (repeat('a', 100)), (repeat('z', 100)), (repeat('k', 2670) || 1), (repeat('k', 2670) || 3), (repeat('k', 2670) || 2);
SELECT wormhole_check('wh_long_t', true);

-- Of timetz what shares a key with other values: such rows would be in no order, and not unique.
CREATE TABLE wh_zones (t timetz);
CREATE INDEX wh_zones_t ON wh_zones USING wormhole (t);
\set VERBOSITY terse
INSERT INTO wh_zones SELECT timetz '12:00+00' AT TIME ZONE make_interval(hours => h) FROM unnest('{-19000, 19000, 1}'::int[]) h;
INSERT INTO wh_zones VALUES (timetz '12:00+00' AT TIME ZONE interval '30000 hours');
INSERT INTO wh_zones VALUES (timetz '12:00+00' AT TIME ZONE interval '-30000 hours');
DROP INDEX wh_zones_t;
INSERT INTO wh_zones VALUES (timetz '12:00+00' AT TIME ZONE interval '30000 hours');
CREATE INDEX wh_zones_t ON wh_zones USING wormhole (t);
\set VERBOSITY default

-- Invalidations may come when a value that is stored out of line is fetched, or a list is
-- looked at.  A server with assertions can have them come there each time.
SELECT current_setting('debug_assertions') AS assertions \gset
CREATE TABLE wh_values (t text COLLATE "C", n int);
ALTER TABLE wh_values ALTER t SET STORAGE EXTERNAL;
INSERT INTO wh_values SELECT repeat(md5(i::text), 75), i FROM generate_series(1, 5) i;
CREATE TABLE wh_outside (LIKE wh_values INCLUDING STORAGE);
CREATE INDEX wh_outside_tn ON wh_outside USING wormhole (t, n DESC);
\if :assertions
SET debug_discard_caches = 1;
\endif
INSERT INTO wh_outside SELECT * FROM wh_values;
SELECT n FROM wh_outside WHERE t = ANY (ARRAY(SELECT t FROM wh_values WHERE n < 4)) AND n = 2;
RESET debug_discard_caches;
SELECT wormhole_check('wh_outside_tn', true);
DROP TABLE wh_values, wh_outside;

-- Rows that come into the holes of a table belong into lists of TIDs.  No leaf is written anew
-- for each: that took 2.2 MB of WAL.  (The check needs a new snapshot, so no parallel plan.)
CREATE TABLE wh_holes (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO wh_holes SELECT g % 3, g FROM generate_series(1, 6000) g;
CREATE INDEX wh_holes_k ON wh_holes USING wormhole (k);
DELETE FROM wh_holes WHERE v % 5 = 0;
VACUUM wh_holes;
CREATE FUNCTION wal_bytes(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT json) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'WAL Bytes';
END $$;
SELECT wal_bytes('INSERT INTO wh_holes SELECT g % 4, g FROM generate_series(1, 1000) g') < 1400000 AS little;
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL enable_seqscan = on;
SELECT wormhole_check('wh_holes_k', true), count(*) FROM wh_holes;
SET LOCAL enable_seqscan = off;
SELECT k, count(*), sum(v) FROM wh_holes WHERE k >= 0 GROUP BY k ORDER BY k DESC;
COMMIT;
DROP TABLE wh_holes;
DROP FUNCTION wal_bytes;

-- Operator families as btree has them.
SELECT amproc.opfname, amproc.n = bt.n AS complete
	FROM (SELECT f.opfname, count(*) n FROM pg_opfamily f JOIN pg_amop o ON amopfamily = f.oid
			JOIN pg_am a ON a.oid = opfmethod WHERE amname = 'wormhole' GROUP BY 1) amproc
	JOIN (SELECT f.opfname, count(*) n FROM pg_opfamily f JOIN pg_amop o ON amopfamily = f.oid
			JOIN pg_am a ON a.oid = opfmethod WHERE amname = 'btree' GROUP BY 1) bt USING (opfname)
	ORDER BY 1;
SELECT opcname, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
	WHERE amname = 'wormhole' AND NOT amvalidate(c.oid);
DROP TABLE wh, wh_look, wh_dml, wh_unique, wh_double, wh_bad;

-- A key of another length in a leaf whose keys have one length: it is written anew, not split.
CREATE TABLE wh_lengths (k text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO wh_lengths SELECT lpad(g::text, 10, '0') FROM generate_series(1, 200) g;
CREATE INDEX wh_lengths_k ON wh_lengths USING wormhole (k);
INSERT INTO wh_lengths VALUES ('longer than the others');
SELECT leaf_pages, wormhole_check('wh_lengths_k', true) FROM wormhole_status('wh_lengths_k');
DROP TABLE wh_lengths;
