--
-- Summarizing: what it reads, and that it can be stopped
--
CREATE SCHEMA rf_summarize;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_summarize, public;
SET client_min_messages = warning;

-- The index expression counts the rows it is computed for.  Functions of core do
-- not look for interrupts, so it is the scan that has to.
CREATE FUNCTION tick(regclass) RETURNS bigint IMMUTABLE LANGUAGE internal AS 'nextval_oid';
CREATE FUNCTION cancel(int) RETURNS boolean IMMUTABLE STRICT LANGUAGE internal AS 'pg_cancel_backend';
CREATE SEQUENCE ticks;
CREATE FUNCTION rows_read() RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	n bigint;
BEGIN
	SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO n FROM ticks;
	ALTER SEQUENCE ticks RESTART;
	RETURN n;
END
$$;

--
-- A big partition, one row a block: only what is new is read, and what is older
-- only when the new part has grown to half of it.
--
CREATE UNLOGGED TABLE big (k int, seq regclass, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE big ALTER pad SET STORAGE plain;
INSERT INTO big SELECT g, 'ticks', repeat('x', 5000) FROM generate_series(1, 9000) g;
CREATE INDEX big_k ON big USING rangefilter ((k + 0 * tick(seq)));
SELECT rows_read();
-- Nothing to do, nothing read.
SELECT rangefilter_summarize('big_k') AS blocks, rows_read();
VACUUM big;
SELECT rows_read();
-- (An insert computes the expression as well.)
CREATE FUNCTION grow(n int) RETURNS TABLE (blocks bigint, read bigint, keys bigint) LANGUAGE plpgsql AS
$$
BEGIN
	INSERT INTO big SELECT -g, 'ticks', repeat('x', 5000) FROM generate_series(1, n) g;
	PERFORM rows_read();
	blocks := rangefilter_summarize('big_k');
	read := rows_read();
	SELECT s.keys INTO keys FROM rangefilter_status('big_k') s;
	RETURN NEXT;
END
$$;
SELECT * FROM grow(100);
SELECT * FROM grow(100);
SELECT * FROM grow(400);
SELECT * FROM grow(100);
-- VACUUM does the same.
INSERT INTO big SELECT -g, 'ticks', repeat('x', 5000) FROM generate_series(1, 100) g;
SELECT rows_read();
VACUUM big;
SELECT rows_read();
-- In small steps, a block is read a few times, not once a step.
DO $$
DECLARE
	sum bigint := 0;
BEGIN
	FOR i IN 1..40 LOOP
		sum := sum + (SELECT read FROM grow(50));
	END LOOP;
	RAISE WARNING '2000 new rows took less than 20000 reads: %', sum < 20000;
END
$$;
SELECT rangefilter_verify('big_k');
DROP TABLE big;

--
-- Cancel: at once, and nothing is lost.  One row cancels whoever computes its
-- key while the setting says whom.
--
CREATE FUNCTION setting(text, boolean) RETURNS text IMMUTABLE STRICT LANGUAGE internal
AS 'show_config_by_name_missing_ok';
CREATE TABLE stop (k int, seq regclass, name text) WITH (autovacuum_enabled = off);
CREATE INDEX stop_k ON stop USING rangefilter
	((k + 0 * tick(seq) + CASE WHEN cancel(nullif(setting(name, true), '')::int) THEN 1 ELSE 0 END));
INSERT INTO stop SELECT g, 'ticks', CASE g WHEN 10000 THEN 'rf_summarize.pid' END
FROM generate_series(1, 20000) g;
SELECT rows_read() > 0;
SELECT set_config('rf_summarize.pid', pg_backend_pid()::text, false) <> '';
SELECT rangefilter_summarize('stop_k');
-- It had come to that row's block.
SELECT n BETWEEN 10000 AND 10400 AS at_once FROM rows_read() n;
VACUUM stop;
SELECT n BETWEEN 10000 AND 10400 AS at_once FROM rows_read() n;
RESET rf_summarize.pid;
SELECT rangefilter_may_contain('stop_k', 20000, 20000);
SELECT rangefilter_summarize('stop_k') > 0, rows_read();
SELECT rangefilter_verify('stop_k'), rangefilter_may_contain('stop_k', 20001, NULL);

--
-- An error ends the summarizing, and not VACUUM.
--
CREATE TABLE spill (k text COLLATE "C", n int) WITH (autovacuum_enabled = off);
INSERT INTO spill SELECT md5(g::text) || md5(g::text), g FROM generate_series(1, 40000) g;
CREATE INDEX spill_k ON spill USING rangefilter (k);
DELETE FROM spill WHERE n % 2 = 0;
SET maintenance_work_mem = '1MB';
SET temp_file_limit = 0;
-- The message is core's, and differs between versions.
\set VERBOSITY sqlstate
VACUUM spill;
\set VERBOSITY default
RESET temp_file_limit;
SELECT reltuples, generation FROM pg_class, rangefilter_status('spill_k') WHERE relname = 'spill';
SELECT rangefilter_verify('spill_k');
VACUUM spill;
SELECT generation, rows FROM rangefilter_status('spill_k');
RESET maintenance_work_mem;
DROP TABLE spill;
CREATE FUNCTION breaks(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN IF current_setting('application_name') = 'breaks' THEN RAISE 'broken'; END IF; RETURN k; END $$;
CREATE TABLE broken (k int) WITH (autovacuum_enabled = off);
INSERT INTO broken SELECT generate_series(1, 1000);
CREATE INDEX broken_k ON broken USING rangefilter (breaks(k));
DELETE FROM broken WHERE k % 2 = 0;
SET application_name = 'breaks';
VACUUM broken;
RESET application_name;
SELECT generation, rows FROM rangefilter_status('broken_k');
VACUUM broken;
SELECT generation, rows FROM rangefilter_status('broken_k');
DROP TABLE broken;
DROP FUNCTION breaks;

-- After a parallel VACUUM the session's next transaction summarizes: functions that are unsafe in
-- parallel mode are called as others are.
CREATE FUNCTION number(text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN $1; EXCEPTION WHEN others THEN RETURN NULL; END $$;
CREATE TABLE many (k text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX ON many (k);
CREATE INDEX ON many (k);
CREATE INDEX many_safe ON many USING rangefilter (lower(k)) WITH (autosummarize = off);
CREATE INDEX many_number ON many USING rangefilter (number(k)) WITH (autosummarize = off);
INSERT INTO many SELECT g FROM generate_series(1, 1000) g;
SET min_parallel_index_scan_size = 0;
VACUUM (PARALLEL 2) many;
SELECT index, generation FROM rangefilter_status('many_safe') UNION ALL SELECT index, generation FROM rangefilter_status('many_number');
RESET min_parallel_index_scan_size;
DROP TABLE many;

-- A new filter may say YES to keys that the old one denied, and nothing is written
-- for a row with such a key.  Plans that skip by the old one must notice.
LOAD 'rangefilter';
CREATE TABLE stamped (part int, k int) PARTITION BY LIST (part);
CREATE TABLE stamped1 PARTITION OF stamped FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE stamped2 PARTITION OF stamped FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO stamped SELECT 1 + g % 2, hashint4(g) FROM generate_series(1, 50000) g;
CREATE INDEX stamped_k ON stamped USING rangefilter (k) WITH (bits_per_key = 4);
INSERT INTO stamped SELECT 2, hashint4(g) FROM generate_series(50001, 50150) g;
CREATE TABLE denied AS SELECT k FROM (SELECT hashint4(-g) FROM generate_series(1, 400) g) g (k)
WHERE NOT rangefilter_may_contain('stamped2_k_idx', k, k);
DO $$
DECLARE
	key int;
BEGIN
	FOR key IN SELECT k FROM denied LOOP
		EXECUTE format('PREPARE "find%s" AS SELECT FROM stamped WHERE part = 2 AND k = %1$s', key);
		EXECUTE format('EXECUTE "find%s"', key);
	END LOOP;
END
$$;
-- room in blocks that the segment has
DELETE FROM stamped2 WHERE k % 3 = 0;
VACUUM (INDEX_CLEANUP off) stamped2;
SELECT rangefilter_summarize('stamped2_k_idx') > 0;
CREATE FUNCTION lost_rows(OUT some_tried bool, OUT lost int) LANGUAGE plpgsql AS
$$
DECLARE
	key int;
	found bigint;
BEGIN
	lost := 0;
	FOR key IN SELECT k FROM denied WHERE rangefilter_may_contain('stamped2_k_idx', k, k) LOOP
		INSERT INTO stamped VALUES (2, key);
		EXECUTE format('EXECUTE "find%s"', key);
		GET DIAGNOSTICS found = ROW_COUNT;
		some_tried := true;
		lost := lost + (found <> 1)::int;
	END LOOP;
END
$$;
SELECT *, (SELECT delta_keys FROM rangefilter_status('stamped2_k_idx')) AS written FROM lost_rows();
DEALLOCATE ALL;
DROP TABLE stamped, denied;


DROP SCHEMA rf_summarize CASCADE;
