-- Building wormhole indexes, with parallel workers and without.
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
CREATE TABLE wh_build (id int8, u uuid, s text COLLATE "C", w text COLLATE "C", d int2, f float8, n numeric, b bytea)
	WITH (parallel_workers = 2, autovacuum_enabled = off);
INSERT INTO wh_build
	SELECT hashint8extended(i, 0), md5(i::text)::uuid,
		'https://www.example' || i % 90 || '.org/catalog/' || repeat('deep/', i % 5) || left(md5(i::text), 20),
		CASE WHEN i % 11 <> 0 THEN 'w' || i % 700 END, i % 13,
		CASE i % 50 WHEN 0 THEN '-0' WHEN 1 THEN 'NaN' WHEN 2 THEN NULL ELSE i / 7.0 END,
		round((i % 1000)::numeric, i % 3), decode(repeat('00', i % 6) || to_hex(16 + i % 200), 'hex')
	FROM generate_series(1, 20000) i;
-- Keys that none of those read first is like, and long ones.
INSERT INTO wh_build VALUES
	(-9223372036854775808, '00000000-0000-0000-0000-000000000000', '', '', -32768, '-Infinity', '-Infinity', ''),
	(9223372036854775807, 'ffffffff-ffff-ffff-ffff-ffffffffffff', repeat('~', 2600), repeat('zz', 80), 32767, 'Infinity', 'NaN', '\xffffffffffffffffff');
INSERT INTO wh_build SELECT i, NULL, 'https://www.example7.org/' || repeat('x', 110 + i), repeat('w', i), 1, i, i, NULL FROM generate_series(1, 30) i;
UPDATE wh_build SET d = d + 1 WHERE id > 0 AND d = 3;
ANALYZE wh_build;

-- What an index has in its order, without it: md5 of all keys.
CREATE FUNCTION in_order(keys text, sorting text, condition text) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT count(*) || '' '' || md5(string_agg(x, '','')) FROM (SELECT (%s)::text x FROM wh_build WHERE %s ORDER BY %s) y',
		keys, condition, sorting) INTO result;
	RETURN result;
END $$;

-- Builds an index by so many processes in so little memory, as wormhole and as btree, and compares.
CREATE FUNCTION built(keys text, sorting text, workers int, memory text, condition text DEFAULT 'true', more text DEFAULT '') RETURNS boolean LANGUAGE plpgsql
SET client_min_messages = warning AS $$
DECLARE
	definition text := format('(%s) %s WHERE %s', sorting, more, condition);
	wormhole text;
	btree text;
BEGIN
	PERFORM set_config('max_parallel_maintenance_workers', workers::text, true), set_config('maintenance_work_mem', memory, true);
	EXECUTE 'CREATE INDEX wh_built ON wh_build USING wormhole ' || definition;
	PERFORM wormhole_check('wh_built', true);
	wormhole := in_order(keys, sorting, condition);
	DROP INDEX wh_built;
	EXECUTE 'CREATE INDEX wh_built ON wh_build USING btree ' || replace(definition, 'deduplicate', 'deduplicate_items');
	btree := in_order(keys, sorting, condition);
	DROP INDEX wh_built;
	RETURN wormhole = btree;
END $$;
-- Others may still want the rows that are being deleted, so they are indexed.
BEGIN;
DELETE FROM wh_build WHERE d = 5;
SELECT keys, sorting, condition, more,
	bool_and(built(keys, sorting, workers, memory, condition, more)) AS same
FROM (VALUES ('id', 'id', 'true', ''), ('id', 'id DESC', 'true', ''), ('u', 'u', 'true', ''),
	('u', 'u DESC NULLS LAST', 'true', ''), ('u', 'u NULLS FIRST', 'true', ''), ('s', 's', 'length(s) < 2650', ''),
	('s', 's DESC', 'length(s) < 2650', 'WITH (fillfactor = 50)'), ('w', 'w', 'true', ''), ('w', 'w', 'true', 'WITH (deduplicate = off)'),
	('d', 'd', 'true', ''), ('n', 'n', 'true', ''), ('f', 'f NULLS FIRST', 'true', ''), ('b', 'b', 'true', ''),
	('(d, w)', 'd, w DESC', 'true', ''), ('(w, d, f)', 'w NULLS FIRST, d, f', 'true', ''),
	('w', 'w', 'd > 6', 'INCLUDE (n, id)'), ('lower(w)', 'lower(w)', 'w > ''w3''', ''), ('id % 1000', '(id % 1000)', 'true', '')) AS i (keys, sorting, condition, more),
	(VALUES (0, '64MB'), (0, '1MB'), (2, '64MB'), (2, '3MB')) AS how (workers, memory)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4;
COMMIT;

-- The same size, whoever sorted.
CREATE INDEX wh_one ON wh_build USING wormhole (s) WHERE length(s) < 2650;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX wh_two ON wh_build USING wormhole (s) WHERE length(s) < 2650;
SET max_parallel_maintenance_workers = 2;
SELECT pg_relation_size('wh_one') = pg_relation_size('wh_two') AS same_size,
	leaf_pages > 50 AS leaves, directory_pages > 0 AS directory FROM wormhole_status('wh_one');
DROP INDEX wh_one, wh_two;

-- Who builds.  Core, which asks for workers for btree only, says "serially" first.
SET client_min_messages = debug1;
CREATE INDEX wh_id ON wh_build USING wormhole (id);
REINDEX INDEX wh_id;
CREATE INDEX CONCURRENTLY wh_w ON wh_build USING wormhole (w);
CREATE FUNCTION wh_unsafe(int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 / 3; END';
CREATE INDEX wh_e ON wh_build USING wormhole (wh_unsafe(id));
CREATE INDEX wh_p ON wh_build USING wormhole (id) WHERE wh_unsafe(id) > 0;
RESET client_min_messages;
REINDEX INDEX CONCURRENTLY wh_w;
-- (How many rows they have depends on who may still want the deleted ones.)
SELECT relname, wormhole_check(oid, true) > 18000 AS whole FROM pg_class WHERE relname IN ('wh_id', 'wh_w', 'wh_e') ORDER BY 1;
SELECT wormhole_check('wh_p', true) > 9000 AS whole;

-- Temporary and empty tables have no workers; unlogged ones do.
CREATE TEMP TABLE wh_temp WITH (parallel_workers = 2) AS SELECT id, s FROM wh_build;
CREATE TABLE wh_none (k int) WITH (parallel_workers = 2);
CREATE UNLOGGED TABLE wh_unlogged WITH (parallel_workers = 2) AS SELECT id, s FROM wh_build;
SET client_min_messages = debug1;
CREATE INDEX wh_temp_id ON wh_temp USING wormhole (id);
CREATE INDEX wh_none_k ON wh_none USING wormhole (k);
CREATE INDEX wh_unlogged_id ON wh_unlogged USING wormhole (id);
RESET client_min_messages;
SELECT relname, wormhole_check(oid, true) FROM pg_class WHERE relname IN ('wh_temp_id', 'wh_none_k', 'wh_unlogged_id') ORDER BY 1;
-- In a transaction that rolls back, and in one that made the table.
BEGIN;
CREATE TABLE wh_new WITH (parallel_workers = 2) AS SELECT id FROM wh_build;
CREATE INDEX wh_new_id ON wh_new USING wormhole (id);
TRUNCATE wh_new;
INSERT INTO wh_new SELECT id FROM wh_build;
SELECT wormhole_check('wh_new_id', true);
SAVEPOINT a;
REINDEX INDEX wh_new_id;
ROLLBACK TO a;
SELECT wormhole_check('wh_new_id', true);
COMMIT;
SELECT wormhole_check('wh_new_id', true);

-- Unique: duplicates that different processes found are next to each other in the end.
CREATE TABLE wh_unique (k int8, n int) WITH (parallel_workers = 2);
INSERT INTO wh_unique SELECT hashint8extended(i, 3), nullif(i % 2, 0) * i FROM generate_series(1, 20000) i;
UPDATE wh_unique SET n = n + 1000000 WHERE n < 3000;
DELETE FROM wh_unique WHERE k = hashint8extended(5, 3);
INSERT INTO wh_unique VALUES (hashint8extended(5, 3), 1);
SET client_min_messages = warning;
CREATE UNIQUE INDEX wh_unique_k ON wh_unique USING wormhole (k);
SET client_min_messages = debug1;
REINDEX INDEX wh_unique_k;
SET client_min_messages = warning;
CREATE UNIQUE INDEX wh_unique_n ON wh_unique USING wormhole (n) INCLUDE (k);
SELECT wormhole_check('wh_unique_k', true) >= 20000 AS whole, wormhole_check('wh_unique_n', true) >= 20000 AS whole;
CREATE UNIQUE INDEX wh_unique_nulls ON wh_unique USING wormhole (n) NULLS NOT DISTINCT;
INSERT INTO wh_unique VALUES (hashint8extended(6, 3), 6);
DROP INDEX wh_unique_k;
INSERT INTO wh_unique VALUES (hashint8extended(6, 3), 6);
CREATE UNIQUE INDEX wh_unique_k ON wh_unique USING wormhole (k);
CREATE UNIQUE INDEX CONCURRENTLY wh_unique_k ON wh_unique USING wormhole (k);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'wh_unique_k'::regclass;
-- Of the rows of one key all but one may be dead.  They are indexed while others may want them.
DROP INDEX wh_unique_k;
BEGIN;
DELETE FROM wh_unique WHERE k = hashint8extended(6, 3);
INSERT INTO wh_unique VALUES (hashint8extended(6, 3), 6);
DELETE FROM wh_unique WHERE k = hashint8extended(6, 3);
INSERT INTO wh_unique VALUES (hashint8extended(6, 3), 7);
CREATE UNIQUE INDEX wh_unique_k ON wh_unique USING wormhole (k);
SELECT wormhole_check('wh_unique_k', true) > 20000 AS dead_ones;
COMMIT;
-- But not: alive, dead, alive.
DROP INDEX wh_unique_k;
BEGIN;
INSERT INTO wh_unique VALUES (hashint8extended(6, 3), 8);
DELETE FROM wh_unique WHERE n = 8;
INSERT INTO wh_unique VALUES (hashint8extended(6, 3), 9);
CREATE UNIQUE INDEX wh_unique_k ON wh_unique USING wormhole (k);
ROLLBACK;
RESET client_min_messages;

-- Partitions, each with workers.
CREATE TABLE wh_parts (k int8, s text COLLATE "C") PARTITION BY HASH (k);
CREATE TABLE wh_parts_0 PARTITION OF wh_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0) WITH (parallel_workers = 2);
CREATE TABLE wh_parts_1 PARTITION OF wh_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1) WITH (parallel_workers = 1);
INSERT INTO wh_parts SELECT id, s FROM wh_build;
SET client_min_messages = debug1;
CREATE INDEX wh_parts_k ON wh_parts USING wormhole (k);
RESET client_min_messages;
REINDEX TABLE wh_parts;
REINDEX TABLE CONCURRENTLY wh_parts;
SELECT relid::regclass, wormhole_check(relid, true) FROM pg_partition_tree('wh_parts_k') WHERE isleaf ORDER BY 1;

-- Keys that are too long, and expressions that raise errors, in whatever process.
\set VERBOSITY terse
INSERT INTO wh_build (s) SELECT string_agg(md5(i::text), '') FROM generate_series(1, 90) i;
CREATE INDEX wh_s ON wh_build USING wormhole (s);
-- Only in a worker; the leader waits for one to get there.
CREATE FUNCTION wh_refuse(int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_stat_get_activity(pg_backend_pid()) WHERE leader_pid IS NOT NULL) THEN
		RAISE EXCEPTION 'a worker was here';
	END IF;
	PERFORM pg_sleep(0.0005);
	RETURN $1;
END $$;
CREATE INDEX wh_refused ON wh_build USING wormhole (wh_refuse(id));
\set VERBOSITY default
-- A function that accesses the table, also by the index, which is not there yet.
CREATE FUNCTION wh_own(int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	RETURN $1 + (SELECT count(*) FROM wh_build WHERE id = -1);
END $$;
\set SHOW_CONTEXT never
CREATE INDEX wh_owned ON wh_build USING wormhole (id, wh_own(id));
\set SHOW_CONTEXT errors
-- And nothing is left of it.
SELECT count(*) FROM pg_class WHERE relname IN ('wh_s', 'wh_refused', 'wh_owned');
DELETE FROM wh_build WHERE length(s) > 2650;
CREATE INDEX wh_s ON wh_build USING wormhole (s) WHERE length(s) < 2650;
SELECT wormhole_check('wh_s', true) > 18000 AS whole;
DROP TABLE wh_build, wh_temp, wh_none, wh_unlogged, wh_new, wh_unique, wh_parts;
DROP FUNCTION in_order, built, wh_unsafe, wh_refuse, wh_own;

-- A list of rows with a long key, made where the leaf's entries share a long prefix, stays short enough
-- for a leaf of which they share less, after the leaves around it are gone.
CREATE TABLE long (id serial, k text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO long (k) SELECT rpad(repeat('m', 2400) || 'a' || to_char(g, 'FM0000'), 2670, 'p') FROM generate_series(1, 3) g;
INSERT INTO long (k) SELECT rpad(repeat('m', 2400) || 'k', 2678, 'q');
INSERT INTO long (k) SELECT rpad(repeat('m', 2400) || 'z' || to_char(g, 'FM0000'), 2670, 'p') FROM generate_series(1, 6) g;
INSERT INTO long (k) SELECT rpad(repeat('y', 1790) || 'a' || to_char(g, 'FM0000'), 2670, 'p') FROM generate_series(1, 3) g;
CREATE INDEX long_k ON long USING wormhole (k) WITH (fillfactor = 60);
INSERT INTO long (k) SELECT rpad(repeat('m', 2400) || 'k', 2678, 'q') FROM generate_series(1, 199);
INSERT INTO long (k) SELECT rpad(repeat('m', 2400) || 'l' || to_char(g, 'FM0000'), 2670, 'p') FROM generate_series(1, 7) g;
DELETE FROM long WHERE k LIKE 'mm%' AND k NOT LIKE repeat('m', 2400) || 'k%';
DELETE FROM long WHERE k LIKE 'y%a0001%';
VACUUM long;
INSERT INTO long (k) SELECT rpad(repeat('m', 2400) || 'k', 2677, 'q') || 'a';
SELECT wormhole_check('long_k', true);
DROP TABLE long;
