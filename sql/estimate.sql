--
-- Row estimates by counting keys: rangefilter.estimate_rows
--
CREATE SCHEMA rf_estimate;
SET search_path = rf_estimate, public;
SET client_min_messages = warning;
LOAD 'rangefilter';

-- Rows estimated with the setting on and off, and how many there are
CREATE FUNCTION estimate(query text, OUT estimated bigint, OUT by_core bigint, OUT rows bigint)
LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('rangefilter.estimate_rows', 'off', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM ' || query INTO plan;
	by_core := plan->0->'Plan'->>'Plan Rows';
	PERFORM set_config('rangefilter.estimate_rows', 'on', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM ' || query INTO plan;
	estimated := plan->0->'Plan'->>'Plan Rows';
	EXECUTE 'SELECT count(*) FROM ' || query INTO rows;
END $$;

-- id is unique, k has 200 values, s has 1,000 beginnings, a tenth of x is NULL,
-- nine in ten of c are 0 and the others unique
CREATE TABLE t (id int, k int, s text COLLATE "C", x numeric, c int, p int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, g % 200, 'h' || lpad((g % 1000)::text, 4, '0') || '/' || g,
	CASE WHEN g % 10 > 0 THEN g / 9 END, CASE WHEN g % 10 = 0 THEN g ELSE 0 END, g % 2 FROM generate_series(0, 19999) g;
CREATE INDEX t_id ON t USING rangefilter (id);
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s);
CREATE INDEX t_x ON t USING rangefilter (x);
CREATE INDEX t_c ON t USING rangefilter (c);
-- says how many rows there are; to 17 CREATE INDEX does
VACUUM t;
CREATE TABLE conditions (n int, condition text);
INSERT INTO conditions VALUES
	(1, 'id = 5'), (2, 'id = -5'), (3, 'id BETWEEN 100 AND 119'), (4, 'id > 19000'), (5, '19000 > id'),
	(6, 'id >= 1000 AND id < 18000'), (7, 'id IN (1, 2, 3)'), (8, 'id IN (1, 2, -3, NULL)'),
	(9, 'id > 18000::bigint AND id < 18500.5'), (10, 'p = 1 AND id < 100'), (11, 'id < 100 AND p = 1'),
	(12, 'id > 100 AND id < 1000 AND id < 200'),
	(20, 'k = 7'), (21, 'k = 1000'), (22, 'k IN (1, 2, 3)'), (23, 'k < 50'), (24, 'k BETWEEN 10 AND 10'),
	(25, 'k = 7 AND id < 10000'), (26, 'id < 10000 AND k = 7'),
	(30, 's LIKE ''h0007/%'''), (31, 's ^@ ''h00'''), (32, 's = ''h0007/7'''), (33, 's >= ''h0900'''), (34, 's LIKE ''h0%'''),
	(35, 's LIKE ''h0007/7'''), (36, 's LIKE ''h0007/%7'''), (37, 's LIKE ''nothing%'''),
	(40, 'x BETWEEN 100 AND 199'), (41, 'x < 1000'), (42, 'x IS NULL'),
	(50, 'c = 0'), (51, 'c = 10'), (52, 'c < 1000'), (53, 'c > 1000');

-- Never analyzed
SELECT n, condition, e.* FROM conditions, estimate('t WHERE ' || condition) e ORDER BY n;

-- Analyzed
ANALYZE t;
SELECT n, condition, e.* FROM conditions, estimate('t WHERE ' || condition) e ORDER BY n;

-- Old statistics: the values are others by now
CREATE TABLE old (a int) WITH (autovacuum_enabled = off);
INSERT INTO old SELECT g FROM generate_series(1, 10000) g;
ANALYZE old;
UPDATE old SET a = a + 100000;
VACUUM old;
CREATE INDEX old_a ON old USING rangefilter (a);
SELECT * FROM estimate('old WHERE a BETWEEN 100001 AND 105000');
SELECT * FROM estimate('old WHERE a BETWEEN 1 AND 5000');

-- A few rows that no segment covers are taken to be like the others; where there
-- are many, the index is not asked
CREATE TABLE tail (a int) WITH (autovacuum_enabled = off);
INSERT INTO tail SELECT g FROM generate_series(1, 20000) g;
CREATE INDEX tail_a ON tail USING rangefilter (a);
VACUUM tail;
INSERT INTO tail SELECT g FROM generate_series(1, 1000) g;
SELECT * FROM estimate('tail WHERE a <= 1000');
INSERT INTO tail SELECT g FROM generate_series(1, 10000) g;
SELECT * FROM estimate('tail WHERE a <= 1000');
SELECT rangefilter_summarize('tail_a') > 0 AS summarized;
SELECT * FROM estimate('tail WHERE a <= 1000');

-- Partitions: the last one is new
CREATE TABLE m (d date, k int, s text COLLATE "C") PARTITION BY RANGE (d);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM ('2024-01-01') TO ('2024-02-01') WITH (autovacuum_enabled = off);
CREATE TABLE m2 PARTITION OF m FOR VALUES FROM ('2024-02-01') TO ('2024-03-01') WITH (autovacuum_enabled = off);
CREATE TABLE m3 (s text COLLATE "C", gone int, k int, d date) WITH (autovacuum_enabled = off);
ALTER TABLE m3 DROP COLUMN gone;
ALTER TABLE m ATTACH PARTITION m3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
INSERT INTO m SELECT date '2024-01-01' + g % 60, g, 's' || g FROM generate_series(1, 12000) g;
CREATE INDEX m_k ON m USING rangefilter (k);
CREATE INDEX m_s ON m USING rangefilter (s);
ANALYZE m;
INSERT INTO m SELECT date '2024-03-01' + g % 31, g, 's' || g FROM generate_series(10001, 20000) g;
VACUUM m3;
SELECT condition, e.* FROM unnest('{k = 15000,k > 18500,"k BETWEEN 11001 AND 11100","k BETWEEN 14001 AND 14010",
	"s LIKE ''s150%''","d >= ''2024-03-01'' AND k < 10100"}'::text[]) condition, estimate('m WHERE ' || condition) e;
-- tables in a tree without partitions, and arms of UNION ALL
CREATE TABLE tree (k int) WITH (autovacuum_enabled = off);
CREATE TABLE twig () INHERITS (tree) WITH (autovacuum_enabled = off);
INSERT INTO twig SELECT generate_series(1, 5000);
CREATE INDEX twig_k ON twig USING rangefilter (k);
VACUUM twig;
SELECT * FROM estimate('tree WHERE k BETWEEN 1 AND 1000');
SELECT * FROM estimate('(SELECT k FROM twig UNION ALL SELECT k FROM m3) u WHERE k BETWEEN 901 AND 1000');

-- A join chosen by what a new partition holds
CREATE TABLE dim (k int PRIMARY KEY, name text) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT g, 'name ' || g FROM generate_series(1, 20000) g;
ANALYZE dim;
EXPLAIN (COSTS OFF) SELECT * FROM m3 JOIN dim USING (k) WHERE m3.k BETWEEN 11001 AND 19000;
SET rangefilter.estimate_rows = off;
EXPLAIN (COSTS OFF) SELECT * FROM m3 JOIN dim USING (k) WHERE m3.k BETWEEN 11001 AND 19000;
SET rangefilter.estimate_rows = on;

-- The planner takes a clause from a join clause with OR while it has not come to
-- the restrictions: nothing is counted then
SELECT * FROM estimate('twig JOIN m3 ON twig.k = m3.k WHERE twig.k > 10 AND (twig.k < 20 OR m3.k < 30)');

-- Conditions under OR, indexes on several columns or with a predicate: core's
SELECT * FROM estimate('t WHERE id < 100 OR k = 1000');
CREATE TABLE other (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO other SELECT g, g FROM generate_series(1, 5000) g;
CREATE INDEX other_ab ON other USING rangefilter (a, b);
CREATE INDEX other_b ON other USING rangefilter (b) WHERE b > 100;
VACUUM other;
SELECT * FROM estimate('other WHERE a = 1');
SELECT * FROM estimate('other WHERE b = 200');

-- Of rows that policies or security barriers hide, estimates tell nothing
CREATE VIEW barrier WITH (security_barrier) AS SELECT k FROM twig WHERE k % 2 = 0;
SELECT * FROM estimate('barrier WHERE k BETWEEN 1 AND 1000');
CREATE VIEW open AS SELECT k FROM twig;
SELECT * FROM estimate('open WHERE k BETWEEN 1 AND 1000');

-- With skipping off nothing is asked
SET rangefilter.enable = off;
SELECT * FROM estimate('t WHERE id BETWEEN 100 AND 119 AND c = 1');
SELECT * FROM estimate('twig WHERE k BETWEEN 1 AND 1000');
RESET rangefilter.enable;

DROP SCHEMA rf_estimate CASCADE;
