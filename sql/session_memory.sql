--
-- What a session remembers has a limit, and does not outlive the tables
--
CREATE SCHEMA rf_session;
SET search_path = rf_session, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/plans.sql
\set ECHO none
\i :helpers
\set ECHO all
LOAD 'rangefilter';

CREATE FUNCTION used() RETURNS bigint LANGUAGE sql AS
$$ SELECT sum(bytes)::bigint FROM rangefilter_session_cache() WHERE what NOT LIKE 'wormhole%' $$;
CREATE FUNCTION entries(kind text) RETURNS bigint LANGUAGE sql AS
$$ SELECT entries FROM rangefilter_session_cache() WHERE what = kind $$;

-- Tables of some partitions, which are asked.
CREATE PROCEDURE make(name text, partitions int, method text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (p int, k int) PARTITION BY LIST (p)', name);
	FOR i IN 1 .. partitions LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES IN (%s)', name || '_' || i, name, i);
	END LOOP;
	EXECUTE format('INSERT INTO %I SELECT p, 1000 * k + p FROM generate_series(1, %s) p, generate_series(1, 5) k',
		name, partitions);
	IF method IS NOT NULL THEN
		EXECUTE format('CREATE INDEX ON %I USING %s (k)', name, method);
	END IF;
END $$;
CREATE PROCEDURE ask(name text) LANGUAGE plpgsql AS $$
DECLARE
	found int;
BEGIN
	FOR i IN 1 .. 3 LOOP
		EXECUTE format('SELECT count(*) FROM %I WHERE k = %s', name, 1000 * i + 1) INTO found;
		IF found <> 1 THEN
			RAISE EXCEPTION '% of % in table %', found, 1000 * i + 1, name;
		END IF;
	END LOOP;
END $$;
CREATE PROCEDURE make_ask_drop(n int, partitions int, method text) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		CALL make('t', partitions, method);
		CALL ask('t');
		COMMIT;
		DROP TABLE t;
		COMMIT;
	END LOOP;
END $$;

-- Dropped tables are forgotten, with everything that was known of their indexes.
CALL make_ask_drop(10, 8, 'rangefilter');
SELECT used() AS before \gset
SET rangefilter.cache_size = '100kB';
CALL make_ask_drop(60, 8, 'rangefilter');
SELECT used() < :before + 50000 AS bounded, entries('tables') AS tables, entries('copies') AS copies,
	entries('tracks') AS tracks;
-- With no index of ours, and with one that nobody asks.
CALL make_ask_drop(60, 4, NULL);
CALL make_ask_drop(10, 4, 'wormhole');
SELECT used() < :before + 50000 AS bounded, entries('tables') AS tables;
-- Many partitions.
CALL make_ask_drop(1, 300, 'rangefilter');
SELECT used() < :before + 50000 AS bounded, entries('tables') AS tables, entries('tracks') AS tracks;

-- Tables without an index, which are remembered as such, have a limit, too.
DO $$ BEGIN FOR i IN 1 .. 100 LOOP CALL make('bare' || i, 1, NULL); COMMIT; END LOOP; END $$;
SET rangefilter.cache_size = '64kB';
DO $$ BEGIN FOR i IN 1 .. 100 LOOP EXECUTE 'SELECT count(*) FROM bare' || i; END LOOP; END $$;
SELECT entries('tables') BETWEEN 2 AND 60 AS tables;
DO $$ BEGIN FOR i IN 1 .. 100 LOOP EXECUTE 'DROP TABLE bare' || i; COMMIT; END LOOP; END $$;

-- The function tells of all there is.
SET rangefilter.cache_size = '8MB';
CALL make('live', 8, 'rangefilter');
CALL ask('live');
SELECT what, entries > 0 OR what = 'counters' AS some, bytes > 0 AS bytes FROM rangefilter_session_cache()
WHERE what IN ('tables', 'copies', 'tracks', 'counters');
SELECT sum(total_bytes) BETWEEN used() * 0.8 AND used() * 1.25 AS same
FROM pg_backend_memory_contexts WHERE name ~ '^rangefilter (session|table|copies|track|counter)';

-- Where there are too many counters, counting begins anew.
SET rangefilter.cache_size = '64kB';
CALL make_ask_drop(40, 8, 'rangefilter');
CALL make('late', 8, 'rangefilter');
CALL ask('late');
SELECT index, probes, skips FROM rangefilter_activity WHERE index::text LIKE 'late_%' ORDER BY 1;
SELECT entries('counters') <= 300 AS counters;

-- Digests, where they are the session's own, count, and go with their table.
SET rangefilter.cache_size = '1MB';
CREATE PROCEDURE make_digests(n int) LANGUAGE plpgsql AS $$
DECLARE
	found int;
BEGIN
	CALL make('grouped', 64, NULL);
	INSERT INTO grouped SELECT p, 1000 * k + p FROM generate_series(1, 64) p, generate_series(6, 200) k;
	CREATE INDEX ON grouped USING rangefilter (k);
	COMMIT;
	FOR i IN 1 .. n LOOP
		EXECUTE format('SELECT count(*) FROM grouped WHERE k = %s', 1000 * i + 999) INTO found;
	END LOOP;
END $$;
CALL make_digests(60);
SELECT (entries('digests') > 0) <> (SELECT indexes > 0 FROM rangefilter_shared_cache()) AS digests, used() < 1000000 AS bounded;
SET rangefilter.cache_size = '200kB';
SELECT count(*) FROM grouped WHERE k = 100999;
SELECT count(*) FROM grouped WHERE k = 100050;
SELECT used() < 205000 * 1.1 AS bounded;
SET rangefilter.cache_size = '1MB';
CALL ask('grouped');
DROP TABLE grouped;
CALL make_digests(60);
SELECT (entries('digests') > 0) <> (SELECT indexes > 0 FROM rangefilter_shared_cache()) AS digests;
DROP TABLE grouped;
CALL ask('late');
SELECT entries('digests') AS digests;

-- Many tables at a time: those asked last are remembered, as many as there is room for.
DO $$ BEGIN FOR i IN 1 .. 40 LOOP CALL make('t' || i, 4, 'rangefilter'); COMMIT; END LOOP; END $$;
CREATE PROCEDURE ask_all() LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. 40 LOOP CALL ask('t' || i); END LOOP; END $$;
SET rangefilter.cache_size = '8MB';
CALL ask_all();
SELECT entries('tables') >= 40 AS tables, entries('copies') >= 40 * 4 AS copies, used() > 200000 AS used;
SET rangefilter.cache_size = '100kB';
CALL ask_all();
CALL ask_all();
SELECT entries('tables') BETWEEN 2 AND 30 AS tables, entries('tracks') < 150 AS tracks, used() < 103000 * 1.1 AS bounded;
SET rangefilter.cache_size = 0;
CALL ask_all();
SELECT entries('tables') < 4 AS tables, entries('copies') AS copies, used() < 90000 AS bounded;

-- A plan that left out partitions of a table that was forgotten since.
SET rangefilter.cache_size = '100kB';
SET plan_cache_mode = force_generic_plan;
PREPARE forgotten AS SELECT count(*) FROM t1 WHERE k = 555;
EXECUTE forgotten;
SELECT plan_of($$EXECUTE forgotten$$);
CALL ask_all();
EXECUTE forgotten;
INSERT INTO t1 VALUES (3, 555);
EXECUTE forgotten;
CALL ask_all();
EXECUTE forgotten;
DELETE FROM t1 WHERE k = 555;
EXECUTE forgotten;
-- In one transaction, with what is known of its indexes changing.
BEGIN;
CALL ask_all();
TRUNCATE t1_3;
EXECUTE forgotten;
CALL ask_all();
INSERT INTO t1 VALUES (3, 555);
REINDEX TABLE t1_3;
CALL ask_all();
EXECUTE forgotten;
ROLLBACK;
EXECUTE forgotten;

-- In another session: where only copies have no room, copies go, and no table.
\c -
LOAD 'rangefilter';
SET search_path = rf_session, public;
SET rangefilter.cache_size = '8MB';
-- (Indexes that were not asked have no counters.)
SELECT count(*) FROM t1 WHERE p = 3 AND k = 1;
SELECT probes > 0 AS asked FROM rangefilter_activity WHERE index = 't1_3_k_idx'::regclass;
SELECT entries('counters') <= 1 AS only_asked;
CALL ask_all();
SELECT used() / 1024 - 15 || 'kB' AS room \gset
SET rangefilter.cache_size = :'room';
CALL ask_all();
CALL ask_all();
SELECT entries('tables') AS tables, entries('copies') < 40 * 4 AS fewer_copies;

-- What is read of the partitions' indexes counts, also if a later query needs it than the one that met the table.
DO $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		CALL make('only' || i, 8, NULL);
		EXECUTE format('CREATE INDEX ON ONLY only%s USING rangefilter (k)', i);
		COMMIT;
	END LOOP;
END $$;
\c -
LOAD 'rangefilter';
SET search_path = rf_session, public;
DO $$ BEGIN FOR i IN 1 .. 20 LOOP EXECUTE 'SELECT count(*) FROM only' || i; END LOOP; END $$;
SELECT entries('tables') AS tables, used() / 1024 + 1 || 'kB' AS room \gset
SET rangefilter.cache_size = :'room';
DO $$ BEGIN FOR i IN 1 .. 20 LOOP EXECUTE format('SELECT count(*) FROM only%s WHERE k IS NULL', i); END LOOP; END $$;
SELECT entries('tables') < :tables AS fewer_tables;

SET client_min_messages = warning;
DROP SCHEMA rf_session CASCADE;
