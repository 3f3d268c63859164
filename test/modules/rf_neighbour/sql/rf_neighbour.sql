-- What changes plans: only results are compared.  With the neighbour's hooks
-- called after ours, and before.
SET client_min_messages = warning;
LOAD 'rangefilter';
CREATE EXTENSION rangefilter;
CREATE TABLE t (part int, k int, n int, s text) PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 5) p \gexec
-- partition p has 1000 p ... 1000 p + 999 in k, in no order
INSERT INTO t SELECT p, 1000 * p + i * 77 % 1000, i % 7, repeat('x', 500)
FROM generate_series(0, 5) p, generate_series(0, 999) i;
CREATE INDEX ON t USING rangefilter (k) WITH (pages_per_range = 4);
CREATE INDEX ON t USING rangefilter ((k + 1));
CREATE INDEX ON t USING rangefilter (k) WHERE n > 3;
CREATE INDEX ON t (n);
CREATE TABLE d (id int PRIMARY KEY, site text);
INSERT INTO d SELECT i, CASE i % 1000 WHEN 77 THEN 'Oslo' ELSE 'x' END FROM generate_series(0, 5999) i;
CREATE INDEX ON d USING rangefilter (id);
VACUUM ANALYZE t, d;

CREATE TABLE question (id int, query text);
INSERT INTO question VALUES
(1, 'SELECT * FROM t WHERE k = (SELECT 4071)'),
(2, 'SELECT s, k + n FROM t WHERE k + 1 = (SELECT 4071)'),
(3, 'SELECT n, t.k, d.* FROM t JOIN d ON t.k = d.id WHERE d.site = ''Oslo'' AND d.id < 2000'),
(4, 'SELECT t.k, d.* FROM t JOIN d ON t.k + 1 = d.id WHERE d.site = ''Oslo'''),
(5, 'SELECT d.id, (SELECT max(n) FROM t WHERE t.k = d.id) FROM d WHERE d.id % 1000 = 77'),
(6, 'SELECT k FROM t WHERE k BETWEEN 4071 AND 4080'),
(7, 'SELECT k FROM t WHERE k = (SELECT 4071) AND n > 3'),
(8, 'SELECT d.id, l.n FROM d, LATERAL (SELECT n FROM t WHERE k = d.id LIMIT 1) l WHERE d.site = ''Oslo'''),
(9, 'SELECT t.k FROM t LEFT JOIN d ON t.n = d.id WHERE k < (SELECT 3)'),
(10, 'SELECT a.site FROM d a LEFT JOIN d b ON a.id = b.id WHERE a.id = 2077');

CREATE FUNCTION result(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	answer text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO answer;
	RETURN answer;
END;
$$;
-- The questions with another answer than with rangefilter.enable = off.
CREATE FUNCTION wrong() RETURNS SETOF int LANGUAGE plpgsql AS
$$
DECLARE
	q record;
	answer text;
BEGIN
	FOR q IN SELECT * FROM question ORDER BY id LOOP
		answer := result(q.query);
		SET LOCAL rangefilter.enable = off;
		IF answer IS DISTINCT FROM result(q.query) OR answer IS NULL THEN
			RETURN NEXT q.id;
		END IF;
		SET LOCAL rangefilter.enable = on;
	END LOOP;
END;
$$;
CREATE FUNCTION filters(query text) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		IF line ~ 'Range Filter' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END;
$$;

-- called after ours
LOAD 'rangefilter';
LOAD 'rf_neighbour';
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) AS with_filters FROM question;
SET rf_neighbour.keep_indexes = 0;
SELECT wrong();
SET rf_neighbour.keep_indexes = 2;
SELECT wrong();
SET enable_seqscan = off;
SELECT wrong();
RESET enable_seqscan;
RESET rf_neighbour.keep_indexes;
SET rf_neighbour.own_memory = on;
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) AS with_filters FROM question;
RESET rf_neighbour.own_memory;
-- what it keeps has a guard
SET rf_neighbour.keep_plans = on;
SELECT count(*) FROM t WHERE k = 4071;
INSERT INTO t VALUES (0, 4071, 0, 'new');
SELECT count(*) FROM t WHERE k = 4071;
DELETE FROM t WHERE s = 'new';
-- which is checked even if it starts the plan without calling us
SET rf_neighbour.past = start;
SELECT count(*) FROM t WHERE k = 5071;
SELECT wrong();
INSERT INTO t VALUES (0, 5071, 0, 'new');
EXPLAIN (COSTS off) SELECT count(*) FROM t WHERE k = 5071;
SELECT count(*) FROM t WHERE k = 5071;
RESET rf_neighbour.keep_plans;
-- a cached plan is made anew after that
PREPARE q AS SELECT count(*) FROM t WHERE k = 1071;
EXECUTE q;
INSERT INTO t VALUES (0, 1071, 0, 'new');
EXPLAIN (COSTS off) EXECUTE q;
EXECUTE q;
EXECUTE q;
DEALLOCATE q;
CREATE FUNCTION found() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t WHERE k = 3055';
CREATE FUNCTION add() RETURNS void LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO t VALUES (0, 3055, 0, 'new'); END; $$;
SELECT found(), add() FROM generate_series(1, 2);
-- nothing needs to be planned anew
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM t WHERE k = 2071;
COMMIT;
DELETE FROM t WHERE s = 'new';
SELECT wrong();
-- without our other hooks there is less to skip
SET rf_neighbour.past = planner;
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) AS with_filters FROM question;
SET rf_neighbour.past = relation;
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) AS with_filters FROM question;
SET rf_neighbour.past = scan;
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) AS with_filters FROM question;
RESET rf_neighbour.past;

-- called before ours
\c
SET client_min_messages = warning;
LOAD 'rf_neighbour';
LOAD 'rangefilter';
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) > 0 AS with_filters FROM question;
SET rf_neighbour.keep_indexes = 0;
SELECT wrong();
SET rf_neighbour.keep_indexes = 2;
SELECT wrong();
SET enable_seqscan = off;
SELECT wrong();
RESET enable_seqscan;
RESET rf_neighbour.keep_indexes;
SET rf_neighbour.own_memory = on;
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) AS with_filters FROM question;
RESET rf_neighbour.own_memory;
SET rf_neighbour.plan_twice = on;
SELECT wrong();
SELECT count(*) FILTER (WHERE filters(query)) > 5 AS with_filters FROM question;
RESET rf_neighbour.plan_twice;
SET rf_neighbour.keep_indexes = 0;
-- what it has counted is shown by EXPLAIN ANALYZE only
SET rf_neighbour.instrument = on;
SET plan_cache_mode = force_generic_plan;
PREPARE p (int) AS SELECT count(*) FROM t WHERE k + 1 = $1;
EXPLAIN (COSTS off) EXECUTE p (3072);
RESET plan_cache_mode;
RESET rf_neighbour.instrument;
RESET rf_neighbour.keep_indexes;
-- what it keeps has none
SET rf_neighbour.keep_plans = on;
SELECT count(*) FROM t WHERE k = 3033;
INSERT INTO t VALUES (1, 3033, 0, 'new');
SELECT count(*) FROM t WHERE k = 3033;
SELECT part, k FROM t WHERE k = (SELECT 2077);
SELECT part, k FROM t WHERE k = (SELECT 2077);
-- nothing in these is ours
SELECT count(*) FROM d;
SELECT count(*) FROM d;
RESET rf_neighbour.keep_plans;
SELECT count(*) FROM t WHERE k = 3033;
DROP TABLE t, d, question;
DROP FUNCTION result, wrong, filters, found, add;
DROP EXTENSION rangefilter;
