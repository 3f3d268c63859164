--
-- The summary stays right while data changes
--
CREATE SCHEMA rf_dml;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_dml, public;

CREATE TABLE t (id int, k int, b text COLLATE "C", f int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, g * 10, 'k' || lpad(g::text, 5, '0'), 0 FROM generate_series(1, 1000) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b);

-- What is known of one key: must be true for one that a row version has.
CREATE FUNCTION has(k int) RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_may_contain('t_k', k, k) $$;
CREATE FUNCTION has(b text) RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_may_contain('t_b', b, b) $$;
-- All rows there are, as seen by the summaries, and by verify.
CREATE FUNCTION denied() RETURNS bigint LANGUAGE sql AS
$$ SELECT count(*) FROM t WHERE NOT has(k) OR NOT has(b) $$;
CREATE FUNCTION verified(index regclass DEFAULT 't_k') RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_verify(index) >= (SELECT count(*) FROM t) $$;

SELECT has(10), has(15), has(20000), has(10005), denied(), verified();

--
-- One row at a time: exact until too much is new
--
INSERT INTO t VALUES (2001, 20000, 'late', 0);
SELECT has(20000) AS new, has(20001) AS near, has('late') AS new_b, has('lat') AS near_b;
SELECT delta_keys, min, max, tail_open FROM rangefilter_status('t_k');
-- The same key again, and one that the filter has already: nothing to note.
INSERT INTO t VALUES (2002, 20000, 'late', 0), (2003, 500, 'k00050', 0);
SELECT delta_keys FROM rangefilter_status('t_k');
INSERT INTO t VALUES (2004, NULL, NULL, 0);
SELECT has_nulls, delta_keys FROM rangefilter_status('t_k');
SELECT denied(), verified(), verified('t_b');

--
-- Rollback, savepoints, errors: too much may be covered, never too little
--
BEGIN;
INSERT INTO t VALUES (3001, 30001, 'rolled back', 0);
SAVEPOINT a;
INSERT INTO t VALUES (3002, 30002, 'sub, rolled back', 0);
SELECT has(30001), has(30002);
ROLLBACK TO a;
INSERT INTO t VALUES (3003, 30003, 'sub, kept', 0);
RELEASE a;
SAVEPOINT b;
UPDATE t SET k = 30004 WHERE id = 1;
SELECT has(30004);
ROLLBACK TO b;
DELETE FROM t WHERE id = 2;
COMMIT;
SELECT has(30003), has(10), has(20), denied(), verified();
BEGIN;
DELETE FROM t;
SELECT has(10) AS deleted_but_old_snapshots_see_it;
ROLLBACK;
SELECT count(*), denied(), verified() FROM t;
DO $$
BEGIN
	INSERT INTO t VALUES (3005, 30005, 'x', 0);
	INSERT INTO t VALUES (3006, 1 / 0, 'y', 0);
EXCEPTION WHEN division_by_zero THEN
	INSERT INTO t VALUES (3007, 30007, 'z', 0);
END
$$;
SELECT has(30007), denied(), verified();

--
-- UPDATE, HOT and not
--
UPDATE t SET f = f + 1 WHERE id = 5;
UPDATE t SET f = f + 1 WHERE id = 5;
SELECT has(50), denied(), verified();
UPDATE t SET k = 40005 WHERE id = 5;
SELECT has(40005) AS new, has(50) AS old, has(40006) AS neither, verified();
-- Back again: the filter has had it all the time.
UPDATE t SET k = 50 WHERE id = 5;
SELECT has(50), verified();
UPDATE t SET k = k + 1, b = b || '!' WHERE id BETWEEN 100 AND 110;
SELECT count(*) FILTER (WHERE has(k)) AS there, count(*) FROM t WHERE id BETWEEN 100 AND 110;
SELECT denied(), verified(), verified('t_b');
UPDATE t SET k = NULL WHERE id = 111;
UPDATE t SET k = 41111 WHERE k IS NULL AND id = 111;
SELECT has(41111), verified();

--
-- COPY
--
COPY t FROM stdin WITH (FORMAT csv);
5001,50001,copied,0
5002,50002,"copied, too",0
5003,,,0
\.
SELECT has(50001), has(50002), has(50003), has('copied'), has('copied, three'), denied(), verified();
-- Half of a COPY is nothing.
COPY t FROM stdin WITH (FORMAT csv);
5004,50004,bad,0
5005,no number,bad,0
\.
SELECT count(*), denied(), verified() FROM t WHERE b = 'bad';
BEGIN;
TRUNCATE t;
COPY t FROM stdin WITH (FORMAT csv, FREEZE);
1,60001,frozen,0
\.
SELECT has(60001), has(10), denied();
ROLLBACK;
SELECT has(60001), has(10), denied(), verified();

--
-- INSERT ... SELECT, ON CONFLICT, MERGE, RETURNING, WITH
--
CREATE UNIQUE INDEX t_id ON t (id);
INSERT INTO t VALUES (1, 70001, 'c', 0) ON CONFLICT (id) DO UPDATE SET k = excluded.k;
INSERT INTO t VALUES (6002, 70002, 'c', 0) ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (6002, 70003, 'c', 0) ON CONFLICT (id) DO NOTHING;
SELECT has(70001), has(70002), denied(), verified();
MERGE INTO t USING (VALUES (2, 80002), (3, 80003), (4, 80004), (7001, 87001), (7002, 87002)) v (id, k)
	ON t.id = v.id
	WHEN MATCHED AND v.id = 4 THEN DELETE
	WHEN MATCHED THEN UPDATE SET k = v.k
	WHEN NOT MATCHED AND v.id = 7002 THEN DO NOTHING
	WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.k, 'merged', 0);
SELECT has(80003), has(87001), denied(), verified();
WITH moved AS (DELETE FROM t WHERE id BETWEEN 200 AND 203 RETURNING *)
	INSERT INTO t SELECT id + 8000, k + 90000, b, f FROM moved RETURNING k;
SELECT has(92000), has(92030), denied(), verified();

--
-- A trigger, and an expression with a predicate
--
CREATE FUNCTION shift() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN new.k := new.k + 100000; RETURN new; END $$;
CREATE TRIGGER shift BEFORE INSERT ON t FOR EACH ROW WHEN (new.f = 9) EXECUTE FUNCTION shift();
CREATE INDEX t_expr ON t USING rangefilter ((k % 7000)) WHERE f = 9;
INSERT INTO t VALUES (9001, 1, 'trigger', 9), (9002, 1, 'no trigger', 8);
SELECT has(100001), k, rangefilter_may_contain('t_expr', k % 7000, k % 7000),
	rangefilter_may_contain('t_expr', k % 7000 + 1, k % 7000 + 1)
FROM t WHERE id = 9001;
UPDATE t SET f = 9 WHERE id = 9002;
SELECT rangefilter_may_contain('t_expr', 1, 1);
SELECT rangefilter_verify('t_expr') >= 2 AS verified;
-- The expression fails for a row: so does the INSERT, not the index.
CREATE INDEX t_div ON t USING rangefilter ((1000 / (f - 50)));
INSERT INTO t VALUES (9003, 1, 'fails', 50);
INSERT INTO t VALUES (9003, 1, 'works', 51);
SELECT rangefilter_may_contain('t_div', 1000, 1000), rangefilter_may_contain('t_div', 999, 999);
VACUUM t;
SELECT verified('t_div');
DROP INDEX t_div, t_expr;

--
-- Much is new in one statement: the tail opens, nothing is denied, VACUUM closes it
--
INSERT INTO t SELECT g, g * 10 + 5, 'many' || g, 0 FROM generate_series(10001, 15000) g;
SELECT tail_open, summarized_blocks < heap_blocks AS tail FROM rangefilter_status('t_k');
SELECT has(100015), has(150005), has(1), denied(), verified();
VACUUM t;
SELECT tail_open, summarized_blocks = heap_blocks AS all, delta_keys, min, max
FROM rangefilter_status('t_k');
SELECT has(100015), has(150005), has(1), denied(), verified(), verified('t_b');

-- Much is new in old blocks, which have room for more: the delta gets levels.
CREATE TABLE loose (k int, pad text) WITH (autovacuum_enabled = off, fillfactor = 10);
INSERT INTO loose SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g;
CREATE INDEX loose_k ON loose USING rangefilter (k);
ALTER TABLE loose SET (fillfactor = 100);
VACUUM loose;
CREATE FUNCTION loose_has(k int) RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_may_contain('loose_k', k, k) $$;
INSERT INTO loose SELECT -g FROM generate_series(1, 500) g;
SELECT summarized_blocks = heap_blocks AS old_blocks, tail_open, delta_keys, min, max
FROM rangefilter_status('loose_k');
SELECT loose_has(-1), loose_has(-500), loose_has(-501), loose_has(0), loose_has(1000),
	rangefilter_verify('loose_k');
BEGIN;
INSERT INTO loose SELECT -g FROM generate_series(501, 20000) g;
SELECT summarized_blocks = heap_blocks AS old_blocks, tail_open, levels BETWEEN 1 AND 3 AS levels,
	delta_keys, level_keys > 18000 AS in_levels, loose_has(-501), loose_has(-20000), loose_has(0)
FROM rangefilter_status('loose_k');
ROLLBACK;
-- The keys stay until all is read again.
SELECT tail_open, loose_has(0), loose_has(-501), rangefilter_verify('loose_k')
FROM rangefilter_status('loose_k');
SELECT rangefilter_summarize('loose_k');
SELECT tail_open, delta_keys, loose_has(-500), loose_has(0), rangefilter_verify('loose_k')
FROM rangefilter_status('loose_k');

--
-- TRUNCATE
--
TRUNCATE t;
SELECT has(10), keys, rows, min, generation FROM rangefilter_status('t_k');
INSERT INTO t VALUES (1, 1, 'again', 0);
SELECT has(1), has(10), verified();
BEGIN;
TRUNCATE t;
SELECT has(1);
INSERT INTO t VALUES (2, 2, 'never', 0);
SELECT has(2);
ROLLBACK;
SELECT has(1), has(2), verified();
-- In the transaction that made the table, the file stays and is emptied.
BEGIN;
CREATE TABLE u (k int);
INSERT INTO u SELECT generate_series(1, 5000);
CREATE INDEX u_k ON u USING rangefilter (k);
SELECT rangefilter_may_contain('u_k', 5000, 5000), rangefilter_may_contain('u_k', 5001, 5001);
TRUNCATE u;
SELECT rangefilter_may_contain('u_k', 5000, 5000);
INSERT INTO u VALUES (7);
SELECT rangefilter_may_contain('u_k', 7, 7), rangefilter_may_contain('u_k', 5000, 5000);
TRUNCATE u;
INSERT INTO u SELECT generate_series(10001, 15000);
REINDEX INDEX u_k;
SELECT min, max FROM rangefilter_status('u_k');
COMMIT;
SELECT rangefilter_verify('u_k');
-- A savepoint's TRUNCATE has a file of its own.
BEGIN;
SAVEPOINT a;
TRUNCATE u;
INSERT INTO u VALUES (8);
SELECT rangefilter_may_contain('u_k', 8, 8), rangefilter_may_contain('u_k', 10001, 10001);
ROLLBACK TO a;
SELECT rangefilter_may_contain('u_k', 8, 8), rangefilter_may_contain('u_k', 10001, 10001);
COMMIT;

--
-- What an insert needs does not pile up until the statement ends
--
CREATE TABLE long_keys (k text COLLATE "C") WITH (autovacuum_enabled = off, fillfactor = 10);
ALTER TABLE long_keys ALTER k SET STORAGE plain;
INSERT INTO long_keys SELECT repeat('k', 990) || g FROM generate_series(1, 900) g;
CREATE INDEX long_keys_k ON long_keys USING rangefilter (k);
ALTER TABLE long_keys SET (fillfactor = 100);
VACUUM long_keys;
CREATE FUNCTION memory() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
	RAISE NOTICE 'little memory: %', (SELECT sum(total_bytes) < 3000000
		FROM pg_backend_memory_contexts WHERE name = 'ExecutorState');
	RETURN NULL;
END
$$;
CREATE TRIGGER memory AFTER INSERT ON long_keys EXECUTE FUNCTION memory();
INSERT INTO long_keys SELECT repeat('l', 990) || g FROM generate_series(1, 5000) g;
SELECT summarized_blocks = heap_blocks AS old_blocks FROM rangefilter_status('long_keys_k');

--
-- Many indexes on one table, one of them on a column without changes
--
CREATE TABLE many (a int, b int, c int);
CREATE INDEX ON many USING rangefilter (a);
CREATE INDEX ON many USING rangefilter (b);
CREATE INDEX ON many USING rangefilter (a) WITH (filter = surf);
INSERT INTO many SELECT g, 1000 - g, g % 3 FROM generate_series(1, 300) g;
UPDATE many SET b = b + 5000 WHERE c = 1;
SELECT rangefilter_may_contain('many_a_idx', a, a), rangefilter_may_contain('many_b_idx', b, b),
	rangefilter_may_contain('many_a_idx1', a, a), count(*)
FROM many GROUP BY 1, 2, 3;
SELECT rangefilter_verify('many_a_idx') >= 300, rangefilter_verify('many_b_idx') >= 300,
	rangefilter_verify('many_a_idx1') >= 300;

SET client_min_messages = warning;
DROP SCHEMA rf_dml CASCADE;
