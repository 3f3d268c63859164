--
-- Row estimates by counting keys: rangefilter.estimate_rows
--
CREATE SCHEMA rf_estimate;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
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
	(12, 'id > 100 AND id < 1000 AND id < 200'), (13, 'length(s) > 0 AND id < 100'), (14, 'id = ANY (''{}'') AND k = 7'),
	(20, 'k = 7'), (21, 'k = 1000'), (22, 'k IN (1, 2, 3)'), (23, 'k < 50'), (24, 'k BETWEEN 10 AND 10'),
	(25, 'k = 7 AND id < 10000'), (26, 'id < 10000 AND k = 7'), (27, 'k > 198'),
	(30, 's LIKE ''h0007/%'''), (31, 's ^@ ''h00'''), (32, 's = ''h0007/7'''), (33, 's >= ''h0900'''), (34, 's LIKE ''h0%'''),
	(35, 's LIKE ''h0007/7'''), (36, 's LIKE ''h0007/%7'''), (37, 's LIKE ''nothing%'''),
	(38, 's LIKE ''h0007/_'''), (39, 's LIKE ''h\0007/%'''),
	(40, 'x BETWEEN 100 AND 199'), (41, 'x < 1000'), (42, 'x IS NULL'), (43, 'p < 2 AND x IS NULL'),
	(50, 'c = 0'), (51, 'c = 10'), (52, 'c < 1000'), (53, 'c > 1000');

-- Never analyzed
SELECT n, condition, e.* FROM conditions, estimate('t WHERE ' || condition) e ORDER BY n;

-- Analyzed
ANALYZE t;
SELECT n, condition, e.* FROM conditions, estimate('t WHERE ' || condition) e ORDER BY n;

-- Of long lists a sample is counted: values that are there, every tenth there, none there; behind another
-- clause; values that repeat; more values than are counted twice
CREATE FUNCTION list(from_value int, to_value int, step int) RETURNS text LANGUAGE sql AS
$$ SELECT quote_literal(array_agg(v)) FROM generate_series(from_value, to_value, step) v $$;
SELECT n, estimated::float / greatest(rows, 10) BETWEEN 0.7 AND 1.4 AS near, e.* FROM (VALUES
	(1, 'id = ANY (' || list(0, 19999, 10) || ')'), (2, 'id = ANY (' || list(18000, 37999, 10) || ')'),
	(3, 'id = ANY (' || list(-30000, -1, 10) || ')'), (4, 'p >= 0 AND id = ANY (' || list(0, 19999, 20) || ')'),
	(5, 'k = ANY (' || list(0, 99, 1) || ')'), (6, 'id = ANY (' || list(0, 209, 1) || ')')) q (n, condition), estimate('t WHERE ' || condition) e ORDER BY n;
-- What is in a range is estimated by core, up to 16
SELECT estimated = by_core OR current_setting('server_version_num')::int >= 170000 AS left_to_core
FROM estimate('t WHERE p > 0 AND id <@ int4range(100, 1000)');

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

-- A planning counts for at most 100 relations, of which those without an index are none
CREATE TABLE bare (k int) WITH (autovacuum_enabled = off);
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('CREATE TABLE bare%s () INHERITS (bare) WITH (autovacuum_enabled = off)', i);
	END LOOP;
END
$$;
CREATE TABLE indexed () INHERITS (bare) WITH (autovacuum_enabled = off);
INSERT INTO indexed SELECT generate_series(1, 5000);
CREATE INDEX ON indexed USING rangefilter (k);
VACUUM indexed;
SELECT estimated > by_core AS counted FROM estimate('bare WHERE k BETWEEN 1 AND 1000');

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
SELECT * FROM estimate('twig JOIN m3 ON twig.k > m3.k WHERE twig.k BETWEEN 1 AND 10');
-- With extended statistics it does not begin with the first clause: the same
CREATE STATISTICS old_stats ON (a % 5), (a % 7) FROM old;
ANALYZE old;
UPDATE old SET a = a + 100000;
VACUUM old;
SELECT * FROM estimate('old WHERE a BETWEEN 200001 AND 205000');
DROP STATISTICS old_stats;
SELECT * FROM estimate('old WHERE a BETWEEN 200001 AND 205000');

-- Conditions under OR: core's
SELECT * FROM estimate('t WHERE id < 100 OR k = 1000');

-- The columns of a subquery that is planned by itself, among more relations than
-- it has; inside it is counted
SELECT * FROM estimate('twig a, twig b, twig c, (SELECT k FROM twig WHERE k BETWEEN 11 AND 15 OFFSET 0) s
	WHERE a.k = 3 AND b.k = a.k AND c.k = a.k AND s.k > 12');
SELECT * FROM estimate('(SELECT k FROM twig WHERE k > 4000 OFFSET 0) s JOIN twig ON s.k = twig.k WHERE twig.k <= 4500');

-- Expressions
CREATE TABLE expr (id int, s text COLLATE "C", x numeric) WITH (autovacuum_enabled = off);
INSERT INTO expr SELECT g, 'Name' || g, g / 4.0 FROM generate_series(1, 20000) g;
CREATE INDEX expr_lower ON expr USING rangefilter (lower(s));
CREATE INDEX expr_sum ON expr USING rangefilter ((id + 7)) WITH (pages_per_range = 0);
VACUUM expr;
CREATE TABLE expr_conditions (n int, condition text);
INSERT INTO expr_conditions VALUES
	(1, 'lower(s) = ''name77'''), (2, 'lower(s) = ''name-1'''), (3, 'lower(s) LIKE ''name12%'''), (4, 'lower(s) >= ''name5'''),
	(5, 'id + 7 = 100'), (6, 'id + 7 BETWEEN 100 AND 1099'), (7, 'id + 7 < 0'), (8, 'x < 10 AND id + 7 > 15007'),
	(9, 'id + 7 IN (8, 9, 100000)'), (10, 'id + 7 > 10007 AND lower(s) < ''name15000''');
SELECT n, condition, e.* FROM expr_conditions, estimate('expr WHERE ' || condition) e ORDER BY n;
ANALYZE expr;
SELECT n, condition, e.* FROM expr_conditions, estimate('expr WHERE ' || condition) e ORDER BY n;
-- another index on the same expression
CREATE INDEX expr_btree ON expr ((id + 7));
SELECT * FROM estimate('expr WHERE id + 7 = -100');
DROP INDEX expr_btree;

-- ANALYZE knows more where other keys than the most common ones repeat (u), and where most keys are among
-- these (v), but not of a few that it found and others that do not repeat (s)
CREATE TABLE uneven (u int, v int, s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO uneven SELECT CASE WHEN g < 1500 THEN 0 WHEN g < 2500 THEN g / 10 - 149 ELSE g - 2399 END,
	CASE WHEN g < 2200 THEN g / 220 WHEN g < 2996 THEN 10 + (g - 2200) / 199 ELSE g END,
	CASE WHEN g < 1500 THEN 'common' ELSE 's' || g END FROM generate_series(0, 2999) g;
CREATE INDEX uneven_u ON uneven USING rangefilter (u);
CREATE INDEX uneven_v ON uneven USING rangefilter (v);
CREATE INDEX uneven_s ON uneven USING rangefilter (s);
ALTER TABLE uneven ALTER u SET STATISTICS 10, ALTER v SET STATISTICS 10;
VACUUM ANALYZE uneven;
SELECT condition, estimated = by_core AS left_to_core, rows FROM unnest('{u > 100,v > 13}'::text[]) condition, estimate('uneven WHERE ' || condition) e;
SELECT condition, e.* FROM unnest('{s = ''common'',s <= ''common'',s < ''s2''}'::text[]) condition, estimate('uneven WHERE ' || condition) e;

-- Several columns: tenants of different sizes, each in days of its own
CREATE TABLE rows (tenant int, day int, n int, s text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO rows SELECT tenant, tenant * 100 + g % 50, g, 's' || g FROM generate_series(1, 40) tenant, generate_series(1, tenant * 20) g;
INSERT INTO rows SELECT 41, NULL, g FROM generate_series(1, 500) g;
CREATE INDEX rows_all ON rows USING rangefilter (tenant, day, n) WITH (bits_per_key = 30);
VACUUM rows;
CREATE TABLE rows_conditions (n int, condition text);
INSERT INTO rows_conditions VALUES
	(1, 'tenant = 7'), (2, 'tenant = 40'), (3, 'tenant = 99'), (4, 'tenant < 10'),
	(10, 'tenant = 40 AND day = 4010'), (11, 'day = 4010 AND tenant = 40'), (12, 'tenant = 40 AND day = 3910'),
	(13, 'tenant = 40 AND day >= 4025'), (14, 'tenant = 40 AND day > 4009 AND day < 4020'),
	(15, 'tenant IN (7, 8) AND day BETWEEN 700 AND 749'), (16, 'tenant = 40 AND day = 4010 AND n > 400'),
	(17, 'tenant = 40 AND day = 4010 AND n = 10'), (18, 'tenant = 40 AND n > 400'), (19, 'tenant > 38 AND day > 3950'),
	(20, 'tenant = 40 AND day > 4009 AND s > ''s7'''), (21, 'tenant = 41 AND day > 4000'), (22, 'day > 4000');
SELECT n, condition, e.* FROM rows_conditions, estimate('rows WHERE ' || condition) e ORDER BY n;
-- an index on one column does not overrule it
CREATE INDEX rows_day ON rows USING rangefilter (day);
SELECT * FROM estimate('rows WHERE s > '''' AND tenant = 40 AND day >= 4025');
-- ... also if it was made first
BEGIN;
DROP INDEX rows_all;
CREATE INDEX rows_all ON rows USING rangefilter (tenant, day, n) WITH (bits_per_key = 30);
SELECT * FROM estimate('rows WHERE s > '''' AND tenant = 40 AND day >= 4025');
ROLLBACK;
DROP INDEX rows_day;
ANALYZE rows;
SELECT n, condition, e.* FROM rows_conditions, estimate('rows WHERE ' || condition) e ORDER BY n;
-- keys that repeat are ANALYZE's business
CREATE INDEX rows_two ON rows USING rangefilter (tenant, day);
DROP INDEX rows_all;
SELECT * FROM estimate('rows WHERE tenant = 40 AND day = 4010');
SELECT * FROM estimate('rows WHERE tenant = 40 AND day = 3910');
SELECT * FROM estimate('rows WHERE tenant = 40 AND day BETWEEN 3900 AND 3949');
SELECT * FROM estimate('rows WHERE tenant = 40');

-- Partial indexes: what they hold depends on the predicate
CREATE TABLE part (id int, k int, status text COLLATE "C", email text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO part SELECT g, CASE WHEN g % 20 = 0 THEN g ELSE -g END, CASE WHEN g % 20 = 0 THEN 'open' ELSE 'done' END,
	CASE WHEN g % 5 = 0 THEN 'a' || lpad(g::text, 5, '0') END FROM generate_series(1, 20000) g;
CREATE INDEX part_k ON part USING rangefilter (k) WHERE status = 'open';
CREATE INDEX part_email ON part USING rangefilter (email) WHERE email IS NOT NULL;
CREATE INDEX part_id ON part USING rangefilter (id, k) WHERE id > 10000;
VACUUM part;
CREATE TABLE part_conditions (n int, condition text);
INSERT INTO part_conditions VALUES
	(1, 'status = ''open'' AND k > 10000'), (2, 'k > 10000 AND status = ''open'''), (3, 'k > 10000'),
	(4, 'status = ''open'' AND k BETWEEN 101 AND 200'), (5, 'status = ''open'' AND k < 0'), (6, 'status = ''done'' AND k < 0'),
	(10, 'email = ''a00100'''), (11, 'email BETWEEN ''a01'' AND ''a015'''), (12, 'email LIKE ''a19%'''), (13, 'email < ''a'''),
	(20, 'id > 15000'), (21, 'id > 10000 AND id < 10100'), (22, 'id = 10020 AND k = 10020'), (23, 'id = 10020 AND k = 1'), (24, 'id = 5');
SELECT n, condition, e.* FROM part_conditions, estimate('part WHERE ' || condition) e ORDER BY n;
ANALYZE part;
SELECT n, condition, e.* FROM part_conditions, estimate('part WHERE ' || condition) e ORDER BY n;

-- Of rows that policies or security barriers hide, estimates tell nothing
CREATE VIEW barrier WITH (security_barrier) AS SELECT k FROM twig WHERE k % 2 = 0;
CREATE VIEW open AS SELECT k FROM twig;
CREATE ROLE regress_rf_viewer;
GRANT USAGE ON SCHEMA rf_estimate TO regress_rf_viewer;
GRANT SELECT ON barrier, open TO regress_rf_viewer;
SET ROLE regress_rf_viewer;
SELECT * FROM estimate('barrier WHERE k BETWEEN 1 AND 1000');
SELECT * FROM estimate('open WHERE k BETWEEN 1 AND 1000');
RESET ROLE;

-- With skipping off nothing is asked
SET rangefilter.enable = off;
SELECT * FROM estimate('t WHERE id BETWEEN 100 AND 119 AND c = 1');
SELECT * FROM estimate('twig WHERE k BETWEEN 1 AND 1000');
RESET rangefilter.enable;

DROP SCHEMA rf_estimate CASCADE;
DROP ROLE regress_rf_viewer;
