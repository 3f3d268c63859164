-- Queries of which partition pruning leaves few partitions.  Only the indexes of
-- these are looked up; what is skipped and shown does not depend on that.
-- Results are compared with rangefilter.enable = off throughout.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA few_partitions;
SET search_path = few_partitions, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/skips.sql
\set ECHO none
\i :helpers
\set ECHO all
-- What a query skips; and of how many indexes this session notes changes.
CREATE FUNCTION known(query text) RETURNS text LANGUAGE sql AS
$$ SELECT concat(s, ', indexes known ', (SELECT entries FROM rangefilter_session_cache() WHERE what = 'tracks'))
	FROM skips(query) s $$;
-- Has the session forget what it knows of the table.
CREATE PROCEDURE forget() LANGUAGE sql AS 'ALTER TABLE ONLY t ALTER part SET DEFAULT 0';

CREATE TABLE t (part int, a int, b int, c int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 62) p \gexec
-- Another order of columns, and a dropped one.
CREATE TABLE t63 (c int, gone text, b int, a int, part int);
ALTER TABLE t63 DROP gone;
ALTER TABLE t ATTACH PARTITION t63 FOR VALUES IN (63);
-- Partition p holds 100 p ... 100 p + 9, in all columns.
INSERT INTO t SELECT p, v, v, v FROM generate_series(0, 63) p, generate_series(100 * p, 100 * p + 9) v;
CREATE INDEX ON t USING rangefilter (a);

-- The partitioned index, and one for each partition that was asked; all if more
-- than four of 64 are asked.
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 505');
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 510');
SELECT known('SELECT * FROM t WHERE part IN (62, 63) AND a = 6305');
SELECT known('SELECT * FROM t WHERE part IN (5, 63) AND a IS NULL');
SELECT known('SELECT * FROM t WHERE part BETWEEN 2 AND 40 AND a = 505');
SELECT known('SELECT * FROM t WHERE a = 505 OR a = 6310');
SELECT known('SELECT * FROM t WHERE part = 63 AND a = 6310');
-- Those asked one after the other count as well.
CALL forget();
SELECT p, known(format('SELECT * FROM t WHERE part = %s AND a = %s', p, 100 * p + 2 * p)) FROM generate_series(1, 7) p;
-- A condition that no index answers has no other indexes looked up either.
CALL forget();
SELECT known('SELECT * FROM t WHERE part = 5 AND c = 505');
SELECT known('SELECT * FROM t WHERE part IN (62, 63) AND c = 505 AND a > 6304');
SELECT known('SELECT * FROM t WHERE c = 505');

--
-- What happens to a partition that is known
--
CALL forget();
SET plan_cache_mode = force_custom_plan;
PREPARE q AS SELECT a FROM t WHERE part = 5 AND a = 510;
EXECUTE q;
INSERT INTO t VALUES (5, 510);
EXECUTE q;
DELETE FROM t WHERE a = 510;
REINDEX INDEX t5_a_idx;
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 520');
BEGIN;
TRUNCATE t5;
INSERT INTO t VALUES (5, 520);
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 520'), known('SELECT * FROM t WHERE part = 5 AND a = 505');
ROLLBACK;
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 520'), known('SELECT * FROM t WHERE part = 5 AND a = 505');
REINDEX INDEX CONCURRENTLY t5_a_idx;
INSERT INTO t VALUES (5, 520);
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 520');
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 530');
SELECT known('SELECT * FROM t WHERE a IN (520, 505)');
DELETE FROM t WHERE a = 520;
-- It leaves the table, and comes back with another index of the same name.
ALTER TABLE t DETACH PARTITION t5;
DROP INDEX t5_a_idx;
CREATE INDEX t5_a_idx ON t5 USING rangefilter (c);
UPDATE t5 SET a = 540 WHERE a = 505;
ALTER TABLE t ATTACH PARTITION t5 FOR VALUES IN (5);
SELECT known('SELECT * FROM t WHERE part = 5 AND a = 540'), known('SELECT * FROM t WHERE part = 5 AND a = 505');
DROP INDEX t5_a_idx;
UPDATE t SET a = 505 WHERE a = 540;
BEGIN ISOLATION LEVEL SERIALIZABLE;
CALL forget();
SELECT known('SELECT * FROM t WHERE part = 6 AND a = 610');
ROLLBACK;

--
-- Indexes that only partitions have
--
CREATE INDEX own9 ON t9 USING rangefilter (b);
CALL forget();
SELECT known('SELECT * FROM t WHERE part = 9 AND b = 910');
CALL forget();
SELECT known('SELECT * FROM t WHERE part = 8 AND b = 810');
CREATE INDEX own8 ON t8 USING rangefilter (b);
SELECT known('SELECT * FROM t WHERE part = 8 AND b = 810');
-- The first partition alone has one.
CREATE INDEX own0 ON t0 USING rangefilter (b);
CALL forget();
SELECT known('SELECT * FROM t WHERE part IN (0, 7) AND b = 10');
DROP INDEX own0;
-- The same is shown whether the session knows them or not.
CREATE FUNCTION shown() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	p int;
	line text;
BEGIN
	FOREACH p IN ARRAY '{7,8}'::int[] LOOP
		FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT * FROM t WHERE part = %s AND a = -1 AND b = -1', p) LOOP
			CONTINUE WHEN line ~ '^ *Replaces: ';
			RETURN NEXT replace(line, 'InitPlan Range Filter', 'Range Filter');
		END LOOP;
	END LOOP;
END $$;
CALL forget();
SELECT * FROM shown();
SELECT known('SELECT * FROM t WHERE b = 910');
SELECT * FROM shown();
DROP INDEX own8, own9;

--
-- Two partitioned indexes of the same kind
--
CREATE INDEX t_b ON t USING rangefilter (b);
UPDATE t SET b = -a WHERE part = 20;
CALL forget();
SELECT known('SELECT * FROM t WHERE part = 20 AND a = 2005'), known('SELECT * FROM t WHERE part = 20 AND b = -2005');
SELECT known('SELECT * FROM t WHERE part = 20 AND a = -2005'), known('SELECT * FROM t WHERE part = 20 AND b = -2010');
SELECT known('SELECT * FROM t WHERE part = 20 AND (a = -2005 OR b = -2005)');
SELECT known('SELECT * FROM t WHERE part IN (19, 20) AND a = 2005 AND b = -2005');
-- A prepared plan relies on what one of the two said.
PREPARE ab AS SELECT * FROM t WHERE part IN (19, 20) AND a = 2050 AND b = -2051;
EXECUTE ab;
INSERT INTO t VALUES (20, 2050, -2051, 2050);
EXECUTE ab;
DELETE FROM t WHERE a = 2050;
DEALLOCATE ab;

--
-- An index that some partitions do not have
--
CREATE INDEX t_c ON ONLY t USING rangefilter (c);
SELECT format('CREATE INDEX t%s_c ON t%s USING rangefilter (c)', p, p), format('ALTER INDEX t_c ATTACH PARTITION t%s_c', p)
FROM generate_series(10, 15) p \gexec
SELECT known('SELECT * FROM t WHERE part = 10 AND c = 1010');
SELECT known('SELECT * FROM t WHERE part IN (9, 10) AND c = 1010');
SELECT known('SELECT * FROM t WHERE part = 9 AND c = 1010');
SELECT known('SELECT * FROM t WHERE part = 9 AND c = 905');
SELECT known('SELECT * FROM t WHERE c = 1010');
SELECT known('SELECT * FROM t WHERE part = 10 AND c = 1010');

DROP SCHEMA few_partitions CASCADE;
