-- Deferred scans of other tables: of several levels; keys that are expressions, several columns,
-- a part of the rows; indexes that only partitions have; conditions on the partition key.  Every
-- result is compared with that of rangefilter.enable = off.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA deferred_tables;
SET search_path = deferred_tables, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/deferred.sql
\set ECHO none
\i :helpers
\set ECHO all

CREATE TABLE d (id int, name text);
INSERT INTO d
SELECT k, 'n' || k / 180 FROM generate_series(0, 19999, 180) k UNION ALL VALUES (50000, 'none'), (NULL, 'null');
ANALYZE d;
CREATE TABLE x (a int, b int, k int, doc jsonb) PARTITION BY RANGE (a);
CALL make_partitions('CREATE TABLE x# PARTITION OF x FOR VALUES FROM (#0) TO (10 + #0) PARTITION BY LIST (b)', 9);
DO $$
BEGIN
	FOR p IN 0 .. 8 LOOP
		CALL make_partitions(format('CREATE TABLE x%s_# PARTITION OF x%1$s FOR VALUES IN (#)', p), 5);
	END LOOP;
END $$;
-- one level more, a member that is a leaf, and one without partitions
CREATE TABLE x9 PARTITION OF x FOR VALUES FROM (90) TO (100);
CREATE TABLE x10 PARTITION OF x FOR VALUES FROM (100) TO (110) PARTITION BY LIST (b);
CREATE TABLE x0_rest PARTITION OF x0 DEFAULT PARTITION BY RANGE (k);
CREATE TABLE x0_rest_a (doc jsonb, k int, b int, a int);
ALTER TABLE x0_rest ATTACH PARTITION x0_rest_a FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
INSERT INTO x SELECT v / 100, v % 5, v, jsonb_build_object('v', v) FROM generate_series(0, 9999) v;
INSERT INTO x SELECT 1, 77, v, jsonb_build_object('v', v) FROM generate_series(20000, 20099) v;
CREATE INDEX ON x USING rangefilter (k);
CREATE INDEX ON x USING rangefilter (((doc->>'v')::int));
VACUUM ANALYZE x;
SET rangefilter.defer_partitions = 4;
SELECT deferred('SELECT * FROM d JOIN x ON x.k = d.id WHERE d.name = ''n7''');
SELECT deferred('SELECT * FROM d JOIN x ON x.k = d.id + 20000 - 1260 WHERE d.name = ''n7''');
SELECT deferred('SELECT tableoid::regclass, x FROM x WHERE k IN ((SELECT 20050), (SELECT 5), (SELECT 9876))');
SELECT deferred('SELECT * FROM x WHERE (doc->>''v'')::int = (SELECT 20050)');
SELECT deferred('SELECT * FROM d JOIN x ON (doc->>''v'')::int = d.id WHERE d.name IN (''n7'', ''n8'')');
SELECT deferred('SELECT x.* FROM x WHERE k = (SELECT 123) AND a = (SELECT 1)');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT deferred('SELECT * FROM generate_series(0, 21000, 150) g JOIN x ON x.k = g');
SELECT deferred('SELECT * FROM generate_series(0, 21000, 1500) g LEFT JOIN x ON (doc->>''v'')::int = g');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

CREATE TABLE y (part int, a int, b text, c int) PARTITION BY HASH (c);
CALL make_partitions('CREATE TABLE y# PARTITION OF y FOR VALUES WITH (MODULUS 6, REMAINDER #)', 6);
INSERT INTO y SELECT v % 6, v / 10, 'b' || v % 10, nullif(v / 100, 7) FROM generate_series(0, 5999) v;
CREATE INDEX ON y USING rangefilter (a, b);
CREATE INDEX ON y USING rangefilter (c) WHERE part < 3;
VACUUM ANALYZE y;
SELECT deferred('SELECT * FROM y WHERE a = (SELECT 55) AND b = (SELECT ''b3'')');
SELECT deferred('SELECT * FROM y WHERE a = (SELECT 55)');
SELECT deferred('SELECT * FROM y WHERE a = 55 AND b >= (SELECT ''b3'')');
SELECT deferred('SELECT * FROM y WHERE c = (SELECT 5) AND part < 3');
SELECT deferred('SELECT * FROM y WHERE c = (SELECT 5) AND part < 2');
SELECT deferred('SELECT * FROM y WHERE c = (SELECT 5)');
SELECT deferred('SELECT * FROM y WHERE c IS NULL AND a = (SELECT 75)');
SELECT deferred('SELECT y.* FROM generate_series(0, 700, 50) g, LATERAL (SELECT * FROM y WHERE a = g AND b = ''b'' || g % 7 ORDER BY c LIMIT 1) y');
SELECT deferred('SELECT * FROM y, d WHERE y.a = d.id AND y.part < 3 AND d.name = ''n2''');

-- Indexes that only partitions have: one has none, and is read each time
CREATE TABLE o (part int, k int, v text) PARTITION BY LIST (part);
CALL make_partitions('CREATE TABLE o# PARTITION OF o FOR VALUES IN (#)', 8);
CREATE TABLE o9 (gone int, v text, k int, part int);
ALTER TABLE o9 DROP gone;
ALTER TABLE o ATTACH PARTITION o9 FOR VALUES IN (9);
INSERT INTO o SELECT p, 1000 * p + v, 'v' || v FROM unnest('{0, 1, 2, 3, 4, 5, 6, 7, 9}'::int[]) p, generate_series(0, 999) v;
DO $$
DECLARE
	leaf regclass;
BEGIN
	FOR leaf IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'o'::regclass AND inhrelid <> 'o3'::regclass LOOP
		EXECUTE format('CREATE INDEX ON %s USING rangefilter (k)', leaf);
	END LOOP;
END $$;
VACUUM ANALYZE o;
SELECT deferred('SELECT * FROM o WHERE k = (SELECT 9007)');
SELECT deferred('SELECT * FROM o WHERE k = (SELECT 3007)');
SELECT deferred('SELECT * FROM o WHERE k IN ((SELECT 1007), (SELECT 9008), (SELECT 55555))');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT deferred('SELECT * FROM generate_series(1, 10001, 1000) g JOIN o ON k = g');
CREATE INDEX ON o3 USING rangefilter (k);
SELECT deferred('SELECT * FROM generate_series(1, 10001, 1000) g JOIN o ON k = g');
DROP INDEX o1_k_idx, o2_k_idx, o3_k_idx;
SELECT deferred('SELECT * FROM generate_series(1, 10001, 1000) g JOIN o ON k = g');

-- A condition on the partition key: later runs are pruned by its value
SELECT deferred('SELECT * FROM generate_series(0, 5900, 100) g JOIN y ON y.a = g / 10 AND y.c = g / 1000');
SELECT deferred('SELECT * FROM generate_series(0, 9900, 100) g JOIN x ON x.k = g AND x.a = g / 100 AND x.b <= g / 2000');
SELECT deferred('SELECT * FROM generate_series(0, 9900, 100) g LEFT JOIN x ON x.k > g AND x.a = g / 100 AND x.b IN (g % 300 / 100, 77)');
-- They are not planned anew.
CREATE FUNCTION plans_made(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	plan := jsonb_path_query_first(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan")');
	RETURN format('%s plans in %s runs', plan->>'Plans Made', plan->>'Actual Loops');
END
$$;
SELECT plans_made('SELECT * FROM generate_series(0, 5900, 10) g JOIN y ON y.a = g / 100 AND y.c = g / 1000');
SELECT plans_made('SELECT * FROM generate_series(0, 9900, 100) g JOIN x ON x.k = g / 4');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

-- Partitions that come and go, and no index any more
PREPARE yq (int) AS SELECT * FROM y WHERE a = $1;
PREPARE xq (int) AS SELECT * FROM x WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
SELECT deferred('EXECUTE xq (9500)');
ALTER TABLE x DETACH PARTITION x9;
SELECT deferred('EXECUTE xq (9500)');
CREATE TABLE x11 PARTITION OF x FOR VALUES FROM (110) TO (120);
INSERT INTO x VALUES (110, 1, 9500);
SELECT deferred('EXECUTE xq (9500)');
TRUNCATE x11;
SELECT deferred('EXECUTE xq (9500)');
SELECT deferred('EXECUTE xq (123)');
SELECT deferred('EXECUTE yq (55)');
ALTER TABLE y RENAME b TO bb;
ALTER TABLE y ADD COLUMN e int DEFAULT 9;
SELECT deferred('SELECT * FROM y WHERE a = (SELECT 55) AND bb = (SELECT ''b3'')');
ALTER TABLE y DROP e;
SELECT deferred('SELECT y FROM y WHERE a = (SELECT 55) AND bb = (SELECT ''b3'')');
DROP INDEX y_a_b_idx;
SELECT deferred('SELECT * FROM y WHERE a = (SELECT 55) AND bb = (SELECT ''b3'')');
RESET plan_cache_mode;
RESET rangefilter.defer_partitions;

DROP SCHEMA deferred_tables CASCADE;
