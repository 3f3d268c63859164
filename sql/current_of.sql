-- UPDATE and DELETE ... WHERE CURRENT OF a cursor that skips partitions
LOAD 'rangefilter';
CREATE TABLE t (part int, k int, n int DEFAULT 0) PARTITION BY LIST (part);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
CREATE TABLE t3 (n int DEFAULT 0, k int, part int);
ALTER TABLE t ATTACH PARTITION t3 FOR VALUES IN (3);
CREATE TABLE t4 PARTITION OF t FOR VALUES IN (4, 5) PARTITION BY LIST (part);
CREATE TABLE t4a PARTITION OF t4 FOR VALUES IN (4);
CREATE TABLE t4b PARTITION OF t4 FOR VALUES IN (5);
INSERT INTO t SELECT p, 100 * p + g FROM generate_series(1, 5) p, generate_series(1, 50) g;
INSERT INTO t VALUES (1, 555), (3, 555), (5, 555);
CREATE INDEX ON t USING rangefilter (k);
CREATE TABLE other (part int, k int, n int) PARTITION BY LIST (part);
CREATE TABLE other1 PARTITION OF other FOR VALUES IN (1);
CREATE TABLE other2 PARTITION OF other FOR VALUES IN (2);
INSERT INTO other VALUES (1, 1, 0), (2, 2, 0);
CREATE INDEX ON other USING rangefilter (k);
VACUUM ANALYZE t, other;

-- Runs a statement for each row of a cursor, and rolls back.  Returns what the cursor and the
-- statement return, and the error that ends it.  Says so where that depends on skipping.
CREATE FUNCTION changes(query text, statement text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	r record;
	changed record;
	found text[];
	answers text[] := '{}';
	rows int;
	setting text;
BEGIN
	FOREACH setting IN ARRAY '{off,on}'::text[] LOOP
		found := '{}';
		PERFORM set_config('rangefilter.enable', setting, true);
		BEGIN
			EXECUTE 'DECLARE c CURSOR FOR ' || query;
			LOOP
				EXECUTE 'FETCH c' INTO r;
				GET DIAGNOSTICS rows = ROW_COUNT;
				EXIT WHEN rows = 0;
				EXECUTE statement INTO changed;
				found := found || format('%s: %s', r, changed);
			END LOOP;
			RAISE 'end';
		EXCEPTION WHEN OTHERS THEN
			answers := answers || array_to_string(found || SQLERRM, ', ');
		END;
	END LOOP;
	IF answers[1] <> answers[2] THEN
		RETURN NEXT 'WITHOUT SKIPPING ' || answers[1];
	END IF;
	RETURN NEXT answers[2];
END
$$;
CREATE FUNCTION skipped(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		IF line ~ 'Partitions Skipped' THEN
			RETURN trim(line);
		END IF;
	END LOOP;
	RETURN 'none';
END
$$;
\set change 'UPDATE t SET n = n + 1 WHERE CURRENT OF c RETURNING tableoid::regclass, n'

SELECT skipped('DECLARE c CURSOR FOR SELECT * FROM t WHERE k = 203');
SELECT changes('SELECT * FROM t WHERE k = 203', :'change');
SELECT changes('SELECT * FROM t WHERE k IN (110, 555)', :'change');
SELECT changes('SELECT * FROM t WHERE k IN (110, 555)', 'DELETE FROM t WHERE CURRENT OF c RETURNING tableoid::regclass, k');
SELECT changes('SELECT * FROM t WHERE k = 555 LIMIT 2', :'change');
SELECT changes('SELECT * FROM t WHERE k = 555 FOR UPDATE', :'change');
SELECT skipped('DECLARE c CURSOR FOR SELECT * FROM t WHERE k = 555 FOR UPDATE');
SELECT changes('SELECT k FROM t WHERE k IN (110, 555) ORDER BY k, part FOR UPDATE', :'change');
-- one partition, or some, or more tables
SELECT changes('SELECT * FROM t WHERE k = 555', 'UPDATE t3 SET n = 7 WHERE CURRENT OF c RETURNING tableoid::regclass, n');
SELECT changes('SELECT * FROM t WHERE k = 555', 'UPDATE t2 SET n = 7 WHERE CURRENT OF c RETURNING tableoid::regclass, n');
SELECT changes('SELECT * FROM t WHERE k = 555', 'UPDATE t4 SET n = 7 WHERE CURRENT OF c RETURNING tableoid::regclass, n');
SELECT changes('SELECT * FROM t4 WHERE k = 555', 'UPDATE t4 SET n = 7 WHERE CURRENT OF c RETURNING tableoid::regclass, n');
SELECT changes('SELECT * FROM t WHERE k = 555 UNION ALL SELECT * FROM other WHERE k = 2', :'change');
SELECT changes('SELECT * FROM t WHERE k = 999 UNION ALL SELECT * FROM other WHERE k = 2', :'change');
SELECT changes('SELECT * FROM t WHERE k = 555', 'UPDATE t SET n = o.k FROM (SELECT k FROM other WHERE part = 2) o WHERE CURRENT OF c RETURNING t.tableoid::regclass, t.n');
SELECT changes('SELECT * FROM t WHERE k = 555', 'WITH x AS (UPDATE t SET n = n + 1 WHERE CURRENT OF c RETURNING tableoid::regclass, n) SELECT * FROM x');
SELECT changes('SELECT * FROM t WHERE k = 203', 'UPDATE t SET part = 3 WHERE CURRENT OF c RETURNING tableoid::regclass, part');
-- a table that is read elsewhere, too
SELECT changes('SELECT * FROM t WHERE k = 203 AND n <= (SELECT max(n) FROM t)', :'change');
SELECT changes('SELECT * FROM t WHERE k = 203 AND n <= (SELECT max(n) FROM t) FOR UPDATE', :'change');
SELECT changes('SELECT * FROM t WHERE k = 555 AND part IN (SELECT part FROM t WHERE k <> 555 OFFSET 0)', :'change');
SELECT changes('(SELECT * FROM t WHERE k BETWEEN 110 AND 120 ORDER BY k LIMIT 1) UNION ALL SELECT * FROM t WHERE k = 555', :'change');
SELECT changes('SELECT t.* FROM other JOIN t ON other.k = t.part WHERE t.k = 203 FOR UPDATE OF t', :'change');
-- as many errors as without skipping
SELECT changes('SELECT count(*) FROM t WHERE k = 999', :'change');
SELECT changes('SELECT * FROM other LEFT JOIN t ON other.k = t.k AND t.k = 999', :'change');
SELECT changes('SELECT * FROM other LEFT JOIN t ON other.k = t.k AND t.k = 999 FOR UPDATE OF other', :'change');
SELECT changes('SELECT * FROM t WHERE k = 555', 'UPDATE other SET n = 7 WHERE CURRENT OF c');
SELECT changes('SELECT * FROM t WHERE k = 555', 'UPDATE t SET n = 7 WHERE CURRENT OF d');
SELECT changes('SELECT k FROM t WHERE k = 555 GROUP BY k', :'change');
SELECT changes('SELECT k, part FROM t WHERE k IN (110, 555) ORDER BY k, part', :'change');
-- not if nothing in the other table is skipped
SELECT changes('SELECT * FROM t WHERE k = 203', 'UPDATE other SET n = 7 WHERE CURRENT OF c');

-- a cursor that is on no row
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM t WHERE k = 203;
SAVEPOINT a;
UPDATE t SET n = 1 WHERE CURRENT OF c;
ROLLBACK TO a;
FETCH ALL c;
UPDATE t SET n = 1 WHERE CURRENT OF c;
ROLLBACK TO a;
FETCH BACKWARD c;
EXPLAIN (COSTS off) UPDATE t4 SET n = 1 WHERE CURRENT OF c;
UPDATE t SET n = 1 WHERE CURRENT OF c RETURNING *;
CLOSE c;
-- one that finds nothing
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t WHERE k = 999;
FETCH c;
DELETE FROM t WHERE CURRENT OF c;
ROLLBACK;

-- cursors of PL/pgSQL, with the plan that was made before a partition got a row
CREATE FUNCTION follow(value int) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	c CURSOR FOR SELECT * FROM t WHERE k = 555;
	v CURSOR (value int) FOR SELECT * FROM t WHERE k = value;
	d refcursor;
	r record;
	changed record;
BEGIN
	FOR r IN c LOOP
		UPDATE t SET n = n + 1 WHERE CURRENT OF c RETURNING tableoid::regclass, n INTO changed;
		RETURN NEXT format('c %s', changed);
	END LOOP;
	FOR r IN v (value) LOOP
		UPDATE t SET n = n + 10 WHERE CURRENT OF v RETURNING tableoid::regclass, n INTO changed;
		RETURN NEXT format('v %s', changed);
	END LOOP;
	OPEN d FOR EXECUTE 'SELECT * FROM t WHERE k = $1 FOR UPDATE' USING value;
	LOOP
		FETCH d INTO r;
		EXIT WHEN NOT FOUND;
		DELETE FROM t WHERE CURRENT OF d RETURNING tableoid::regclass, n INTO changed;
		RETURN NEXT format('d %s', changed);
	END LOOP;
END
$$;
BEGIN;
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT follow(203);
INSERT INTO t VALUES (4, 555), (4, 203), (1, 203);
SELECT follow(203);
SELECT part, k, n FROM t WHERE n > 0 ORDER BY part, k;
ROLLBACK;
SELECT follow(120);

DROP TABLE t, other;
DROP FUNCTION changes, skipped, follow;
