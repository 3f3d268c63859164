-- Keys that trickle in: how many of them there are in pages of the delta and in levels, and
-- when a statement is a bulk load
CREATE SCHEMA rf_levels;
SET search_path = rf_levels, public;
SET rangefilter.autosummarize = off;
CREATE FUNCTION state(index text) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s new: %s in %s levels of %s pages; %s pages%s%s', delta_keys, level_keys, levels, level_pages,
		size_bytes / 8192, CASE WHEN tail_open THEN ', open' END, CASE WHEN has_nulls THEN ', NULLs' END)
	FROM rangefilter_status(index::regclass)
$$;
CREATE TABLE t (k int8, s text COLLATE "C", pad text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 2 * g, 's' || 2 * g FROM generate_series(1, 3000) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s);

-- What n keys a statement leave behind.
CREATE FUNCTION trickle(statements int, n int, numbers text, strings text) RETURNS TABLE (step int, t_k text, t_s text) LANGUAGE plpgsql AS $$
BEGIN
	FOR step IN 1 .. statements LOOP
		EXECUTE format('INSERT INTO t SELECT %s, %s FROM generate_series(%s, %s) i', numbers, strings, n * (step - 1) + 1, n * step);
		RETURN QUERY SELECT step, state('t_k'), state('t_s');
	END LOOP;
END $$;
SELECT * FROM trickle(42, 150, '2 * hashint4(i)::int8 + 1', $$'x' || repeat('y', 50) || md5(i::text)$$);
SELECT rangefilter_verify('t_k'), rangefilter_verify('t_s');

-- The same keys once more: those that are looked for are not written.
SELECT * FROM trickle(2, 150, '2 * hashint4(i)::int8 + 1', $$'x' || repeat('y', 50) || md5(i::text)$$);
SELECT * FROM trickle(2, 150, '4', $$'s4'$$);
-- In a low block, then in one behind.
UPDATE t SET k = 3 WHERE ctid = '(0,1)';
SELECT state('t_k');

-- The least number is zeros: where it is the last one, another stride begins.
TRUNCATE t;
SELECT * FROM trickle(3, 1, '-9223372036854775808', 'NULL');
SELECT * FROM trickle(2, 15, 'CASE WHEN i % 2 = 0 THEN -9223372036854775808 + 1000 * i ELSE -9223372036854775808 END', '''''');
SELECT * FROM trickle(30, 40, 'CASE i % 40 WHEN 0 THEN -9223372036854775808 ELSE i END', $$repeat('z', i % 40 * 40)$$);
SELECT rangefilter_verify('t_k'), rangefilter_verify('t_s');
SELECT rangefilter_may_contain('t_k', -9223372036854775808, -9223372036854775808) AS least, rangefilter_may_contain('t_k', -5, -5) AS none;
SELECT rangefilter_summarize('t_k') >= 0 AS k, rangefilter_summarize('t_s') >= 0 AS s;
SELECT state('t_k'), state('t_s');

-- From how many keys on a statement is a load: in a small table, and in larger ones.
CREATE FUNCTION least_load(rows int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	low int = 100;
	high int = 1000;
	n int;
BEGIN
	WHILE low < high LOOP
		n := (low + high) / 2;
		CREATE TABLE l (k int8) WITH (autovacuum_enabled = off);
		INSERT INTO l SELECT g FROM generate_series(1, rows) g;
		CREATE INDEX l_k ON l USING rangefilter (k);
		INSERT INTO l SELECT -g FROM generate_series(1, n) g;
		IF state('l_k') LIKE '%open%' THEN
			high := n;
		ELSE
			low := n + 1;
		END IF;
		DROP TABLE l;
	END LOOP;
	RETURN low;
END $$;
SELECT rows, least_load(rows) FROM unnest('{1, 2000, 80000}'::int[]) rows;
-- Keys of a page of the delta: each is found, and by ranges from it and to it; nothing else is.
CREATE TABLE few (k int8) WITH (autovacuum_enabled = off);
CREATE INDEX few_k ON few USING rangefilter (k);
CREATE FUNCTION wrong_after(n int8) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO few VALUES (10 * n);
	RETURN state('few_k') || ': ' || (SELECT count(*) FROM generate_series(-1, 10 * n + 12) i, CAST(CASE i WHEN -1 THEN -9223372036854775808 ELSE i END AS int8) lo, generate_series(0, 12) length
		WHERE rangefilter_may_contain('few_k', lo, lo + length) IS DISTINCT FROM EXISTS (SELECT FROM few WHERE k BETWEEN lo AND lo + length));
END $$;
SELECT wrong_after(n) FROM generate_series(1, 9) n;
-- One that comes again in the same block is not written again.
INSERT INTO few VALUES (90);
SELECT state('few_k');
-- ... and by sets of several ranges
LOAD 'rangefilter';
CREATE TABLE several (p int, k int8) PARTITION BY LIST (p);
CREATE TABLE several1 PARTITION OF several FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE several2 PARTITION OF several FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE INDEX several_k ON several USING rangefilter (k);
INSERT INTO several SELECT 1, 10 * g FROM generate_series(1, 5) g;
SELECT count(*) FROM several WHERE k IN (11, 20);
SELECT count(*) FROM several WHERE k IN (20, 21);
SELECT count(*) FROM several WHERE k BETWEEN 11 AND 19 OR k BETWEEN 21 AND 30;
CREATE FUNCTION skipped(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, '$.**."Partitions Skipped"');
END $$;
SELECT skipped('SELECT * FROM several WHERE p = 1 AND k IN (-9223372036854775808, 21)');
-- Summarizes that fail leave pages of the delta retired.  With no place for a further one a key cannot be kept:
-- then the summary denies nothing, until the next summarize.
CREATE FUNCTION failing(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF k = 1 AND current_setting('test.fail', true) = 'yes' THEN
		RAISE 'failed';
	END IF;
	RETURN k;
END $$;
CREATE TABLE slots (k int) WITH (autovacuum_enabled = off);
INSERT INTO slots VALUES (1);
CREATE INDEX slots_k ON slots USING rangefilter (failing(k));
CREATE FUNCTION fail_after(key int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO slots VALUES (key);
	SET LOCAL test.fail = 'yes';
	PERFORM rangefilter_summarize('slots_k');
	RETURN 'done';
EXCEPTION WHEN raise_exception THEN
	RETURN SQLERRM;
END $$;
CREATE FUNCTION kept(key int) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s; denies %s keys of %s', state('slots_k'), count(*) FILTER (WHERE NOT rangefilter_may_contain('slots_k', k, k)), count(*))
	FROM generate_series(2, 20) k
$$;
SELECT key, fail_after(key), kept(key) FROM generate_series(2, 8) key;
INSERT INTO slots VALUES (9);
SELECT kept(9);
SELECT key, fail_after(key), kept(key) FROM generate_series(10, 12) key;
SELECT rangefilter_verify('slots_k'), rangefilter_summarize('slots_k') AS blocks, kept(0), rangefilter_verify('slots_k');
-- ... several keys of a page that is retired, and more in the next one
CREATE TABLE retired (k int) WITH (autovacuum_enabled = off);
INSERT INTO retired VALUES (1);
CREATE INDEX retired_k ON retired USING rangefilter (failing(k));
INSERT INTO retired SELECT generate_series(2, 6);
BEGIN;
SET LOCAL test.fail = 'yes';
SELECT rangefilter_summarize('retired_k');
ROLLBACK;
INSERT INTO retired SELECT generate_series(7, 8);
SELECT state('retired_k'), rangefilter_verify('retired_k');
-- ... levels, until there is no place for another one; keys of all lengths up to the greatest
CREATE FUNCTION failing(s text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF s = 'a' AND current_setting('test.fail', true) = 'yes' THEN
		RAISE 'failed';
	END IF;
	RETURN s;
END $$;
CREATE TABLE many (s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO many VALUES ('a');
CREATE INDEX many_s ON many USING rangefilter (failing(s));
CREATE FUNCTION retire_level(n int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO many SELECT rpad(format('%s %s ', i, n), 980 + i, 'z') FROM generate_series(1, 25) i;
	SET LOCAL test.fail = 'yes';
	PERFORM rangefilter_summarize('many_s');
	RETURN 'done';
EXCEPTION WHEN raise_exception THEN
	RETURN state('many_s');
END $$;
SELECT n, retire_level(n) FROM generate_series(1, 8) n;
SELECT rangefilter_verify('many_s'), rangefilter_summarize('many_s') >= 0 AS summarized, state('many_s');

-- Strings that begin alike for long: few pages make a level with inner ones.  Levels become one where a question would
-- read more than three of their pages.
CREATE TABLE alike (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX alike_s ON alike USING rangefilter (s);
DO $$
DECLARE
	now int;
	before int := 0;
BEGIN
	FOR i IN 1 .. 330 LOOP
		INSERT INTO alike VALUES (repeat('a', 200) || repeat(md5(i::text), 24));
		now := (SELECT levels FROM rangefilter_status('alike_s'));
		IF now < before THEN
			RAISE NOTICE '%: %', i, state('alike_s');
		END IF;
		before := now;
	END LOOP;
END $$;

-- A number that goes behind others takes a record of WAL that is no longer than needed.
CREATE TABLE wal (k int8) WITH (autovacuum_enabled = off);
CREATE FUNCTION least_wal(first int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	least int;
	plan jsonb;
BEGIN
	FOR k IN first .. first + 9 LOOP
		EXECUTE format('EXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF, FORMAT JSON) INSERT INTO wal VALUES (%s)', k) INTO plan;
		least := least((plan #>> '{0,Plan,WAL Bytes}')::int, least);
	END LOOP;
	RETURN least;
END $$;
INSERT INTO wal VALUES (1);
SELECT least_wal(2) AS without \gset
CREATE INDEX wal_k ON wal USING rangefilter (k);
INSERT INTO wal VALUES (12);
SELECT least_wal(13) - :without AS bytes, state('wal_k');
-- Of an unlogged table there is none.
ALTER TABLE wal SET UNLOGGED;
INSERT INTO wal VALUES (23);
SELECT least_wal(24) AS bytes, state('wal_k');
DROP SCHEMA rf_levels CASCADE;
