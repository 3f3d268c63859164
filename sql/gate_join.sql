-- Hash joins give their values to the scans on their outer side.  Every result
-- is compared with that of rangefilter.enable = off.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA gate_join;
SET search_path = gate_join, public;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 0;
SET gates.of = 'Partition Hash Cond';
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/gates.sql
\set ECHO none
\i :helpers
\set ECHO all

CREATE TABLE t (part int, k int, n int, tx text COLLATE "C") PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 4) p \gexec
-- another order of columns, with dropped ones
CREATE TABLE t5 (gone int, tx text COLLATE "C", gone2 text, n int, k int, part int);
ALTER TABLE t5 DROP gone, DROP gone2;
ALTER TABLE t ATTACH PARTITION t5 FOR VALUES IN (5);
-- partitioned once more
CREATE TABLE t6 PARTITION OF t FOR VALUES IN (6) PARTITION BY RANGE (n);
CREATE TABLE t6a PARTITION OF t6 FOR VALUES FROM (MINVALUE) TO (650);
CREATE TABLE t6b PARTITION OF t6 FOR VALUES FROM (650) TO (MAXVALUE);
-- partition p holds 100 p ... 100 p + 99 in k, five times, and a NULL
INSERT INTO t
SELECT v / 100, v, v, 'k' || to_char(v, 'FM000')
FROM generate_series(0, 699) v, generate_series(1, 5);
INSERT INTO t SELECT p, NULL, 100 * p, NULL FROM generate_series(0, 6) p;
CREATE INDEX ON t USING rangefilter (k);
CREATE INDEX ON t USING rangefilter (tx);
CREATE INDEX ON t USING rangefilter ((n / 10));
CREATE TABLE d (id int, name text, big bigint, tx text, vc varchar(9));
INSERT INTO d SELECT i * 25, 'n' || i / 4, i * 25, 'k' || to_char(i * 25, 'FM000'), 'k' || to_char(i * 25, 'FM000')
FROM generate_series(0, 39) i;
INSERT INTO d VALUES (NULL, 'n1', NULL, NULL, NULL), (NULL, 'none', NULL, NULL, NULL);
VACUUM ANALYZE t;
ANALYZE d;
CREATE TABLE kinds AS SELECT 313 AS id;

--
-- Kinds of joins
--
EXPLAIN (COSTS OFF) SELECT * FROM t JOIN d ON t.k = d.id WHERE d.name = 'n1';
SELECT plan_of($$SELECT * FROM t JOIN d ON t.k = d.id WHERE d.name = 'n1'$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
EXPLAIN (COSTS OFF, VERBOSE) SELECT t.tx || 'x', t.tableoid FROM t JOIN d ON t.k = d.id WHERE d.name = 'n1' AND part < 2;
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n1''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id AND t.n > d.id - 3 WHERE d.name = ''n1''');
-- values for the inner side of a join below are not asked for on its outer side
CREATE TABLE shifted AS SELECT (v + 350) % 700 AS k, v AS n FROM generate_series(0, 699) v;
ANALYZE shifted;
SET join_collapse_limit = 1;
EXPLAIN (COSTS OFF) SELECT t.k, s.k AS other FROM (t JOIN shifted s ON t.n = s.n) JOIN d ON s.k = d.id WHERE d.name = 'n1';
SELECT gates('SELECT t.k, s.k AS other FROM (t JOIN shifted s ON t.n = s.n) JOIN d ON s.k = d.id WHERE d.name = ''n1''');
RESET join_collapse_limit;
-- no value but NULL, none at all
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''none''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''nobody''');
-- semi-join; outer joins that keep the rows of d, and those that keep t's
SELECT gates('SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE name = ''n2'')');
SELECT gates('SELECT * FROM t WHERE EXISTS (SELECT FROM d WHERE id = k AND name = ''n2'' AND d.big <> t.n)');
SELECT gates('SELECT t.*, d.id FROM (SELECT * FROM d WHERE name IN (''n1'', ''n9'', ''none'')) d LEFT JOIN t ON t.k = d.id');
SELECT gates('SELECT t.*, d.id FROM t LEFT JOIN (SELECT * FROM d WHERE name = ''n1'') d ON t.k = d.id');
SELECT gates('SELECT t.*, d.id FROM t FULL JOIN (SELECT * FROM d WHERE name = ''n1'') d ON t.k = d.id');
SELECT gates('SELECT * FROM t WHERE NOT EXISTS (SELECT FROM d WHERE id = k AND name = ''n2'')');
SELECT gates('SELECT * FROM t WHERE k NOT IN (SELECT id FROM d WHERE name = ''n2'')');
-- other types, casts, expressions
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.big WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN (SELECT * FROM d UNION ALL SELECT NULL, ''n3'', 1 << 40, NULL, NULL) d ON t.k = d.big WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.tx = d.tx WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.tx = d.vc WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id + 100 WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.n / 10 = d.id / 10 WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k + 0 = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id + (random() * 0)::int WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = CASE WHEN d.id > 0 THEN d.id END WHERE d.name = ''n3''');
-- ... of values that are not known any more when the table is complete
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id + (SELECT min(id) FROM d) WHERE d.name = ''n3''');
-- several keys, of one join and of two; with what is known otherwise
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id AND t.tx = d.tx WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id JOIN d e ON t.tx = e.tx WHERE d.id > 120 AND e.id < 260');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id JOIN d e ON t.k = e.big WHERE d.id > 120 AND e.id < 260');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3'' AND t.tx < ''k310''');
PREPARE par (text) AS SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.id BETWEEN 110 AND 510 AND t.tx < $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE par ('k310');
SELECT plan_of($$EXECUTE par ('k310')$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT gates('EXECUTE par (''k310'')');
SELECT gates('EXECUTE par (NULL)');
PREPARE shifted (int) AS SELECT t.*, d.id FROM t JOIN d ON t.k = d.id + $1 WHERE d.name = 'n3';
SELECT gates('EXECUTE shifted (100)');
-- a list that is known otherwise
PREPARE listed (text[]) AS SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.id BETWEEN 110 AND 510 AND t.tx = ANY ($1);
SELECT plan_of($$EXECUTE listed ('{k125,k325}')$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT gates($$EXECUTE listed ('{k125,k325}')$$);
RESET plan_cache_mode;
-- beside a gate below a join that gives it no values
SELECT gates('SELECT t.k, x.n FROM t JOIN d ON t.k = d.id JOIN (SELECT n, part FROM t WHERE k = (SELECT 310) OFFSET 0) x ON x.part = t.part WHERE d.name = ''n3''');
SELECT gates('SELECT t.k, x.n FROM t JOIN d ON t.k = d.id JOIN (SELECT n, part FROM t b JOIN kinds ON b.n + b.part = kinds.id WHERE k = (SELECT 310) OFFSET 0) x ON x.part = t.part WHERE d.name = ''n3''');
-- by way of other joins
SELECT gates('SELECT t.*, d.id, e.id FROM (t LEFT JOIN d e ON t.n = e.id) JOIN d ON t.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id, e.id FROM (d e LEFT JOIN t ON t.n = e.id) JOIN d ON coalesce(t.k, 75) = d.id WHERE d.name = ''n0''');
-- ... a nested loop among them, which fills columns with NULLs where its inner side finds no row
CREATE INDEX t_coalesce ON t USING rangefilter ((coalesce(k, 75)));
SET enable_material = off;
SELECT plan_of('SELECT t.*, d.id FROM (kinds LEFT JOIN t ON t.n BETWEEN kinds.id AND kinds.id) JOIN d ON coalesce(t.k, 75) = d.id WHERE d.name = ''n0''');
SELECT gates('SELECT t.*, d.id FROM (kinds LEFT JOIN t ON t.n BETWEEN kinds.id AND kinds.id) JOIN d ON coalesce(t.k, 75) = d.id WHERE d.name = ''n0''');
RESET enable_material;
SELECT gates('SELECT t.*, d.id, e.id FROM (d e LEFT JOIN t ON t.n = e.id) JOIN d ON coalesce(t.k, 75) = d.id WHERE d.name = ''n0''');
DROP INDEX t_coalesce;
SELECT gates('SELECT a.k, b.k FROM t a JOIN t b ON a.n = b.k JOIN d ON d.id = b.k WHERE d.name = ''n4''');
SELECT gates('SELECT x.k, d.id FROM (SELECT * FROM t WHERE EXISTS (SELECT FROM d e WHERE e.id = t.n) OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.k, d.id FROM (SELECT * FROM t WHERE NOT EXISTS (SELECT FROM d e WHERE e.id = t.n + 1) OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');

-- beside a function that is called while the plan is started, and starts another one
CREATE FUNCTION asking(i int) RETURNS int STABLE LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE 'SELECT FROM d';
	RETURN i;
END
$$;
CREATE TABLE pruned (part int) PARTITION BY LIST (part);
CREATE TABLE pruned1 PARTITION OF pruned FOR VALUES IN (1);
CREATE TABLE pruned2 PARTITION OF pruned FOR VALUES IN (2);
INSERT INTO pruned VALUES (1), (2);
SELECT gates('SELECT part, (SELECT sum(t.n) FROM t JOIN d ON t.k = d.id WHERE d.name = ''n1'') FROM pruned WHERE part = asking(1)');

--
-- What is in between: what keeps rows from one scan to the next, or whose result
-- is not that of its rows, gets all of them
--
SELECT gates('SELECT x.*, d.id FROM (SELECT k, n FROM t WHERE n > 5 OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT k, n FROM t WHERE n > 5 OFFSET 0) x JOIN d ON x::text = ''('' || d.id || '','' || d.id || '')''');
SELECT gates('SELECT x.*, d.id FROM (SELECT n, k FROM t ORDER BY n, k LIMIT 800) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT k, count(*) FROM t GROUP BY k) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT k, row_number() OVER (ORDER BY k) FROM t) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT DISTINCT k FROM t) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('WITH x AS MATERIALIZED (SELECT k FROM t) SELECT x.*, d.id FROM x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('WITH x AS MATERIALIZED (SELECT id FROM d WHERE name = ''n3'') SELECT t.* FROM t JOIN x ON t.k = x.id');
-- ... also where the query has other subplans
SELECT gates('WITH x AS MATERIALIZED (SELECT id FROM d WHERE name = ''n3'') SELECT t.k, (SELECT count(*) FROM kinds WHERE kinds.id > t.k) FROM t JOIN x ON t.k = x.id');
SELECT gates('WITH x AS MATERIALIZED (SELECT id FROM d WHERE name = ''n3'') SELECT t.k, (SELECT count(*) FROM x) FROM t JOIN x ON t.k = x.id');
SELECT gates('SELECT x.*, d.id FROM (SELECT k FROM t LIMIT 800) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
-- constants, other columns and expressions in place of the key
SELECT gates('SELECT x.* FROM (SELECT k, tx FROM t WHERE part < 3 UNION ALL SELECT n, tx FROM t WHERE part > 2 UNION ALL SELECT 300, tx FROM t WHERE n = 5) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.* FROM (SELECT k a, k b FROM t WHERE part < 5 UNION ALL SELECT k, n FROM t WHERE part > 4) x JOIN d ON x.a = d.id JOIN d e ON x.b = e.id WHERE d.name = ''n3'' AND e.name < ''n5''');
-- two columns in one arm, the same one twice in the other
CREATE TABLE apart AS SELECT DISTINCT k, k - 300 AS n FROM t WHERE k >= 300;
CREATE INDEX ON apart USING rangefilter (k);
CREATE TABLE twice AS SELECT k FROM t;
CREATE INDEX ON twice USING rangefilter (k);
ANALYZE apart, twice;
SELECT gates('SELECT x.* FROM (SELECT k a, k b FROM twice UNION ALL SELECT k, n FROM apart) x JOIN d ON x.a = d.id JOIN d e ON x.b = e.id WHERE d.name = ''n3'' AND e.name = ''n0''');
SELECT gates('SELECT x.* FROM (SELECT k a, k b FROM twice UNION ALL SELECT n, k FROM apart) x JOIN d ON x.a = d.id JOIN d e ON x.b = e.id WHERE d.name = ''n0'' AND e.name = ''n3''');
SELECT gates('SELECT x.* FROM (SELECT k a, n b FROM apart UNION ALL SELECT k, k FROM twice) x JOIN d ON x.a = d.id JOIN d e ON x.b = e.id WHERE d.name = ''n3'' AND e.name = ''n0''');
PREPARE lower (int) AS SELECT x.* FROM (SELECT k a, k b FROM twice UNION ALL SELECT n, k FROM apart) x JOIN d ON x.a = d.id JOIN d e ON x.b = e.id WHERE d.name = 'n0' AND e.name = 'n3' AND x.b < $1;
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE lower (340)'), gates('EXECUTE lower (100)');
RESET plan_cache_mode;
-- ... of which one arm's index is asked again and again
SET enable_memoize = off;
SELECT gates('SELECT g, y.* FROM generate_series(350, 700, 350) g, LATERAL (SELECT x.* FROM (SELECT k a, k b, k c FROM twice UNION ALL SELECT k, n, k FROM apart) x JOIN d ON x.a = d.id JOIN d e ON x.b = e.id WHERE d.name = ''n3'' AND e.name = ''n0'' AND x.c < g OFFSET 0) y');
RESET enable_memoize;
-- the index of another arm is on the same type, but sorts it otherwise
CREATE TABLE negative AS SELECT k - 650 AS k FROM t;
CREATE INDEX ON negative USING rangefilter (k oid_ops);
ANALYZE negative;
SELECT gates('SELECT x.* FROM (SELECT k FROM twice UNION ALL SELECT k FROM negative) x JOIN (SELECT id - 650 AS id, name FROM d) d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.* FROM (SELECT k FROM negative UNION ALL SELECT k FROM twice) x JOIN (SELECT id - 650 AS id, name FROM d) d ON x.k = d.id WHERE d.name = ''n3''');
PREPARE signed (int) AS SELECT * FROM (SELECT k FROM twice UNION ALL SELECT k FROM negative) x WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE signed (-350)'), gates('EXECUTE signed (0)'), gates('EXECUTE signed (350)');
RESET plan_cache_mode;
-- the index of another arm is a partial one
CREATE TABLE whole AS SELECT k FROM t;
CREATE INDEX ON whole USING rangefilter (k);
CREATE TABLE partly AS SELECT k FROM t;
CREATE INDEX ON partly USING rangefilter (k) WHERE k < 300;
ANALYZE whole, partly;
SELECT gates('SELECT x.* FROM (SELECT k FROM whole UNION ALL SELECT k FROM partly) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.* FROM (SELECT k FROM partly UNION ALL SELECT k FROM whole) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
-- ... whose table is not named
SELECT line FROM plan_of($$SELECT x.k FROM (SELECT k FROM whole UNION ALL SELECT k FROM partly) x JOIN d ON x.k = d.id WHERE d.name = 'n3'$$) line WHERE line ~ 'Table:';
-- what arms read that is no column of theirs
SELECT count(*) > 0 AS shown
FROM plan_of($$SELECT x.* FROM (SELECT k, tableoid FROM whole UNION ALL SELECT k, tableoid FROM partly) x JOIN d ON x.k = d.id WHERE d.name = 'n3'$$, 'COSTS OFF, VERBOSE');
-- an arm without the condition that no row of the others satisfies
PREPARE arms (text) AS SELECT x.* FROM (SELECT k FROM t WHERE tx = $1 UNION ALL SELECT k FROM whole UNION ALL SELECT k FROM t WHERE tx = $1) x JOIN d ON x.k = d.id WHERE d.name = 'n3';
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE arms (''k300'')'), gates('EXECUTE arms (NULL)');
RESET plan_cache_mode;
-- long values, which a hash table holds compressed, are not asked for
CREATE TABLE long AS SELECT repeat('x', 600000) || i AS tx FROM generate_series(1, 2) i UNION ALL SELECT 'k300';
ANALYZE long;
SELECT gates('SELECT t.* FROM t JOIN long ON t.tx = long.tx WHERE long.tx < ''x''');
SELECT gates('SELECT t.* FROM t JOIN long ON t.tx = long.tx');

--
-- Scans that are started again, with other values
--
SET enable_memoize = off;
SELECT plan_of($$SELECT g, x.* FROM generate_series(0, 9) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = 'n' || g OFFSET 0) x$$);
SELECT gates('SELECT g, x.* FROM generate_series(0, 9) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n'' || g OFFSET 0) x');
-- the table stays, the scans do not
SELECT gates('SELECT g, x.* FROM generate_series(0, 3) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n2'' AND t.n > g * 100 OFFSET 0) x');
-- no row is found in one scan, and in the next one
SELECT gates('SELECT g, x.* FROM unnest(''{8,9,2,9,none,3}''::text[]) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n'' || g OFFSET 0) x');
SELECT gates('SELECT d.id, (SELECT count(*) FROM t JOIN d e ON t.k = e.id WHERE e.id > d.id AND e.id < d.id + 80) FROM d');
-- rows kept from one scan to the next are not those for other values
SELECT gates('SELECT g, x.* FROM generate_series(0, 9) g,
	LATERAL (SELECT a.k, d.id FROM (SELECT k FROM t ORDER BY n OFFSET 0) a JOIN d ON a.k = d.id WHERE d.name = ''n'' || g OFFSET 0) x');
RESET enable_memoize;

--
-- Large hash tables: more than one batch; more values than are asked for
--
CREATE TABLE b (part int, k int, v text) PARTITION BY LIST (part);
SELECT format('CREATE TABLE b%s PARTITION OF b FOR VALUES IN (%s)', p, p)
FROM generate_series(0, 3) p \gexec
INSERT INTO b SELECT p, 1000 * p + i % 500, 'v' FROM generate_series(0, 3) p, generate_series(1, 5000) i;
CREATE INDEX ON b USING rangefilter (k);
CREATE TABLE l (id int, v text);
INSERT INTO l SELECT 2000 + i % 500, repeat('x', 100) FROM generate_series(1, 3000) i;
VACUUM ANALYZE b;
ANALYZE l;
SELECT gates('SELECT b.k, l.* FROM b JOIN l ON b.k = l.id');
-- not the column for the values of an expression of it
SELECT gates('SELECT count(*) FROM b JOIN l ON b.k + 1000 = l.id');
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
EXPLAIN (COSTS OFF) SELECT b.k, l.* FROM b JOIN l ON b.k = l.id;
SELECT gates('SELECT b.k, l.* FROM b JOIN l ON b.k = l.id');
-- frequent values are treated specially then
INSERT INTO b SELECT 1, 1000, 'v' FROM generate_series(1, 5000);
ANALYZE b;
SELECT gates('SELECT b.k, l.* FROM b JOIN l ON b.k = l.id - 1000');
RESET work_mem;
RESET hash_mem_multiplier;
-- many rows; many values; values that would take longer than the scan
SELECT gates('SELECT b.k, l.id FROM b JOIN (SELECT 500 + 501 * (i % 2) AS id FROM generate_series(1, 10000) i) l ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN (SELECT 500 + 501 * (i % 2) AS id FROM generate_series(1, 10001) i) l ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN generate_series(2001, 3000) l(id) ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN generate_series(2000, 3000) l(id) ON b.k = l.id');
CREATE TABLE s AS SELECT i AS id FROM generate_series(600, 2100, 7) i;
ANALYZE s;
SELECT gates('SELECT t.k, s.id FROM t JOIN s ON t.k = s.id WHERE s.id < 1100');
SELECT gates('SELECT t.k, s.id FROM t JOIN s ON t.k = s.id');
-- more are expected than there are
SELECT gates('SELECT b.k, l.id FROM b JOIN (SELECT 2000 AS id FROM generate_series(1, 3) OFFSET 0) l ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN (SELECT 2000 AS id FROM generate_series(1, 3), generate_series(1, 1) g LIMIT 20000) l ON b.k = l.id');

--
-- Partitions with other indexes or none; partial and multi-column ones
--
CREATE TABLE u (part int, a int, b int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE u%s PARTITION OF u FOR VALUES IN (%s)', p, p)
FROM generate_series(1, 4) p \gexec
INSERT INTO u SELECT p, a, a * 10 + p FROM generate_series(1, 4) p, generate_series(1, 50) a, generate_series(1, 5);
CREATE INDEX ON u1 USING rangefilter (a, b);
CREATE INDEX ON u2 USING rangefilter (b, a);
CREATE INDEX ON u3 USING rangefilter (b) WHERE a > 0;
CREATE INDEX ON u4 (b);
ANALYZE u;
CREATE TABLE e (a int, b int);
INSERT INTO e SELECT i, i * 10 + 1 FROM generate_series(10, 14) i;
ANALYZE e;
SELECT gates('SELECT u.* FROM u JOIN e USING (a, b)');
SELECT gates('SELECT u.* FROM u JOIN e ON u.b = e.b + 1');
-- a gate that is there already asks one more index of those members that it asks
CREATE TABLE w (part int, a int, b int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE w%s PARTITION OF w FOR VALUES IN (%s)', p, p)
FROM generate_series(1, 4) p \gexec
INSERT INTO w SELECT p, a, a + 1000 + p FROM generate_series(1, 4) p, generate_series(1, 50) a, generate_series(1, 5);
CREATE INDEX ON w1 USING rangefilter (a);
CREATE INDEX ON w1 USING rangefilter (b);
CREATE INDEX ON w2 USING rangefilter (b);
CREATE INDEX ON w3 USING rangefilter (a);
ANALYZE w;
PREPARE old (int) AS SELECT w.* FROM w JOIN e ON w.b = e.a + 1000 WHERE w.a >= $1 AND w.a < $1 + 40;
SET plan_cache_mode = force_generic_plan;
SELECT plan_of('EXECUTE old (1)');
SELECT gates('EXECUTE old (1)');
SELECT gates('EXECUTE old (60)');
RESET plan_cache_mode;
-- ... but not of one that it does not ask, the only one of forty with this index
CREATE TABLE many (part int, a int, b int) PARTITION BY LIST (part);
DO $$
BEGIN
	FOR p IN 0 .. 39 LOOP
		EXECUTE format('CREATE TABLE many%s PARTITION OF many FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p);
		EXECUTE format('CREATE INDEX ON many%s USING rangefilter (%I)', p, CASE p WHEN 0 THEN 'b' ELSE 'a' END);
	END LOOP;
END
$$;
INSERT INTO many SELECT p, 10 * p + i, 10 * p + i FROM generate_series(0, 39) p, generate_series(0, 9) i;
VACUUM ANALYZE many;
-- (Larger tables are deferred.)
SET rangefilter.defer_partitions = 41;
PREPARE other (int) AS SELECT many.* FROM many JOIN e ON many.b = e.b WHERE many.a = $1;
SET plan_cache_mode = force_generic_plan;
SELECT gates('EXECUTE other (111)');
RESET rangefilter.defer_partitions;
RESET plan_cache_mode;
-- a single one, beside members of which other indexes are asked
CREATE TABLE single (part int, a int, b int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE single%s PARTITION OF single FOR VALUES IN (%s)', p, p)
FROM generate_series(1, 3) p \gexec
INSERT INTO single SELECT p, a, a + 100 * p FROM generate_series(1, 3) p, generate_series(1, 50) a, generate_series(1, 5);
CREATE INDEX ON single1 USING rangefilter (a);
CREATE INDEX ON single2 USING rangefilter (b);
CREATE INDEX ON single3 USING rangefilter (b);
VACUUM ANALYZE single;
PREPARE single (int) AS SELECT single.* FROM single JOIN e ON single.b = e.a + 200 WHERE single.a >= $1;
SET plan_cache_mode = force_generic_plan;
SELECT plan_of('EXECUTE single (1)');
SELECT gates('EXECUTE single (1)');
RESET plan_cache_mode;
CREATE INDEX ON u USING rangefilter (a, b);
SELECT gates('SELECT u.* FROM u JOIN e USING (a, b)');
SELECT gates('SELECT u.* FROM u JOIN e ON u.a = e.a + 40');
SELECT gates('SELECT u.* FROM u JOIN e ON u.b = e.b + 3000');
-- an index of both columns is better than that of one
CREATE INDEX u_a ON u USING rangefilter (a);
SELECT gates('SELECT u.* FROM u JOIN e USING (a, b)');
DROP INDEX u_a;
CREATE INDEX ON u USING rangefilter (b);
SELECT gates('SELECT u.* FROM u JOIN e ON u.b = e.b');

--
-- UPDATE, DELETE, MERGE, row locks, cursors, functions
--
BEGIN;
EXPLAIN (COSTS OFF) UPDATE t SET n = -d.id FROM d WHERE t.k = d.id AND d.name = 'n3';
UPDATE t SET n = -d.id FROM d WHERE t.k = d.id AND d.name = 'n3';
SELECT count(*), sum(n) FROM t WHERE n < 0;
UPDATE t SET k = k + 200 FROM d WHERE t.k = d.id AND d.name = 'n3';
SELECT count(*) FROM t JOIN d ON t.k = d.id WHERE d.name IN ('n3', 'n5');
DELETE FROM t USING d WHERE t.k = d.id AND d.name = 'n4';
MERGE INTO t USING (SELECT * FROM d WHERE name IN ('n0', 'n8')) s ON t.k = s.id
	WHEN MATCHED AND s.id > 30 THEN DELETE
	WHEN MATCHED THEN UPDATE SET n = 1000 + s.id
	WHEN NOT MATCHED THEN INSERT VALUES (0, -s.id, 0);
SELECT count(*), sum(n), sum(k) FROM t;
ROLLBACK;
SELECT gates('SELECT t.k FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3'' FOR UPDATE OF t');
-- rows the same statement's functions put in place
CREATE FUNCTION add(value int) RETURNS int LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO t VALUES (0, value, 0); RETURN value; END $$;
BEGIN;
SELECT count(*) FROM t JOIN (SELECT add(id) AS id FROM d WHERE name = 'n3' OFFSET 0) d ON t.k = d.id;
SELECT count(*) FROM t JOIN d ON t.k = d.id WHERE name = 'n3';
DECLARE c CURSOR FOR SELECT t.k FROM t JOIN d ON t.k = d.id WHERE d.name = 'n3' FOR UPDATE OF t;
FETCH c;
UPDATE t SET n = 7 WHERE CURRENT OF c RETURNING k, n;
ROLLBACK;
CREATE FUNCTION look(what text) RETURNS SETOF int LANGUAGE plpgsql AS
$$
DECLARE
	x int;
BEGIN
	FOR x IN SELECT t.k FROM t JOIN d ON t.k = d.id WHERE d.name = what LOOP
		RETURN NEXT x;
		DELETE FROM t WHERE k = x + 25 AND part = 3;
	END LOOP;
END
$$;
BEGIN;
SELECT count(*) FROM look('n3');
ROLLBACK;
VACUUM t;
-- the setting, for a plan that is kept
SET plan_cache_mode = force_generic_plan;
PREPARE kept (text) AS SELECT count(*) FROM t JOIN d ON t.k = d.id WHERE d.name = $1;
EXECUTE kept ('n3');
SELECT gates('EXECUTE kept (''n3'')');
SELECT gates('EXECUTE kept (''n1'')');
INSERT INTO t VALUES (0, 300, 0);
EXECUTE kept ('n3');
SELECT gates('EXECUTE kept (''n3'')');
DELETE FROM t WHERE part = 0 AND k = 300;
SET rangefilter.enable = off;
EXPLAIN (COSTS OFF) EXECUTE kept ('n3');
RESET rangefilter.enable;
RESET plan_cache_mode;

--
-- Ordered, parallel and partitionwise plans, run-time pruning, inheritance
--
CREATE INDEX t_order ON t (k);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT gates('SELECT x.* FROM (SELECT * FROM t ORDER BY k OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.* FROM (SELECT k FROM t OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX t_order;
SET plan_cache_mode = force_generic_plan;
PREPARE prune (int) AS SELECT t.* FROM t JOIN d ON t.k = d.id WHERE d.name = 'n3' AND part IN ($1, $1 + 1);
SELECT gates('EXECUTE prune (2)');
SELECT gates('EXECUTE prune (4)');
RESET plan_cache_mode;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_parallel_hash = off;
SELECT answer('SELECT count(*), sum(t.n) FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT count(*), sum(t.n) FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3''') NOT LIKE '%skipped 0 of%' AS counted;
-- each of two workers counts its own
SET parallel_leader_participation = off;
SELECT substring(gates('SELECT count(*), sum(t.n) FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3''') FROM 'of (.*)')::int <= 16 AS counted_once;
RESET parallel_leader_participation;
SET enable_parallel_append = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(t.n) FROM t JOIN d ON t.k = d.id WHERE d.name = 'n3';
SELECT gates('SELECT count(*), sum(t.n) FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3''') NOT LIKE '%skipped 0 of%' AS counted;
RESET enable_parallel_append;
SET enable_parallel_hash = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM b JOIN l ON b.k = l.id;
SELECT gates('SELECT count(*) FROM b JOIN l ON b.k = l.id');
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
SET enable_partitionwise_join = on;
SELECT gates('SELECT a.k, b.n FROM t a JOIN t b ON a.part = b.part AND a.n = b.n JOIN d ON d.id = a.k WHERE d.name = ''n3''');
RESET enable_partitionwise_join;
CREATE TABLE p (k int, v text);
CREATE TABLE c1 () INHERITS (p);
CREATE TABLE c2 (extra int) INHERITS (p);
INSERT INTO p SELECT i / 5, 'p' FROM generate_series(0, 499) i;
INSERT INTO c1 SELECT i / 5, 'c1' FROM generate_series(500, 999) i;
INSERT INTO c2 SELECT i / 5, 'c2', 1 FROM generate_series(1000, 1499) i;
CREATE INDEX ON p USING rangefilter (k);
CREATE INDEX ON c1 USING rangefilter (k);
CREATE INDEX ON c2 USING rangefilter (k);
ANALYZE p;
SELECT gates('SELECT p.* FROM p JOIN d ON p.k = d.id WHERE d.name = ''n1''');
-- a table is no member where it is named itself, be it one elsewhere
SELECT gates('SELECT c1.* FROM c1 JOIN d ON c1.k = d.id WHERE d.name = ''n0'' AND EXISTS (SELECT FROM p WHERE p.k + 0 = d.id)');

--
-- Volatile functions run for all rows that core computes them for, also behind OFFSET 0
--
CREATE SEQUENCE calls;
CREATE FUNCTION calls_of(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := nextval('calls');
BEGIN
	EXECUTE query;
	RETURN nextval('calls') - before - 1;
END $$;
CREATE FUNCTION same_calls(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	calls bigint := calls_of(query);
	off bigint;
BEGIN
	SET LOCAL rangefilter.enable = off;
	off := calls_of(query);
	SET LOCAL rangefilter.enable = on;
	RETURN CASE WHEN calls = off THEN calls || ' calls' ELSE format('%s calls, not %s', calls, off) END;
END $$;
CREATE TABLE few AS SELECT 305 AS id;
ANALYZE few;
SELECT gates('SELECT * FROM (SELECT k FROM t OFFSET 0) x JOIN few ON x.k = few.id');
SELECT same_calls('SELECT * FROM (SELECT k, nextval(''calls'') FROM t OFFSET 0) x JOIN few ON x.k = few.id');
SELECT same_calls('SELECT * FROM (SELECT k FROM t WHERE nextval(''calls'') > 0 OFFSET 0) x JOIN few ON x.k = few.id');
SELECT same_calls('SELECT * FROM (SELECT k FROM t5 WHERE nextval(''calls'') > 0 OFFSET 0) x JOIN few ON x.k = few.id');
SELECT same_calls('SELECT * FROM (SELECT k, nextval(''calls'') FROM (SELECT k FROM t OFFSET 0) y OFFSET 0) x JOIN few ON x.k = few.id');
SELECT same_calls('SELECT * FROM (SELECT t.k FROM t JOIN d e ON t.k = e.id AND nextval(''calls'') > 0 OFFSET 0) x JOIN few ON x.k = few.id');
SET enable_memoize = off;
SELECT same_calls('SELECT * FROM (SELECT t.k FROM t, LATERAL (SELECT nextval(''calls''), t.n FROM generate_series(1, 2) OFFSET 0) s OFFSET 0) x JOIN few ON x.k = few.id');
RESET enable_memoize;
SELECT same_calls('SELECT * FROM (SELECT k, (SELECT nextval(''calls'') FROM few WHERE few.id <> t.k) FROM t OFFSET 0) x JOIN few ON x.k = few.id');
-- ... and not for an inner side that core does not read
SELECT gates('SELECT * FROM t JOIN (SELECT id FROM few OFFSET 0) x ON t.k = x.id WHERE t.n + t.part < 0');
SELECT same_calls('SELECT * FROM t JOIN (SELECT id, nextval(''calls'') FROM few OFFSET 0) x ON t.k = x.id WHERE t.n + t.part < 0');
SELECT same_calls('WITH x AS MATERIALIZED (SELECT id, nextval(''calls'') FROM few) SELECT * FROM t JOIN x ON t.k = x.id WHERE t.n + t.part < 0');
SELECT same_calls('SELECT * FROM t JOIN (SELECT nextval(''calls'') + few.id AS id FROM few OFFSET 0) x ON t.k = x.id WHERE t.n + t.part < 0');
-- ... whose rows are not locked, either
BEGIN;
SELECT count(*) FROM t JOIN (SELECT id FROM few FOR UPDATE) x ON t.k = x.id WHERE t.n + t.part < 0;
SELECT xmax <> 0 AS locked FROM few;
ROLLBACK;

--
-- Where rows are hidden from the user, EXPLAIN tells nothing, and with ANALYZE
-- nothing is skipped
--
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON t USING (k % 2 = 0);
CREATE ROLE regress_rf_gate_join;
GRANT USAGE ON SCHEMA gate_join TO regress_rf_gate_join;
GRANT SELECT ON t, d TO regress_rf_gate_join;
SET ROLE regress_rf_gate_join;
SELECT plan_of($$SELECT * FROM t JOIN d ON t.k = d.id WHERE d.name = 'n1'$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
RESET ROLE;
-- Operators that might tell of hidden rows are not asked for: by the owner both
-- are, by the others what is leakproof.
CREATE TABLE secret (part int, k int, x numeric) PARTITION BY LIST (part);
CREATE TABLE secret1 PARTITION OF secret FOR VALUES IN (1);
CREATE TABLE secret2 PARTITION OF secret FOR VALUES IN (2);
INSERT INTO secret SELECT 1 + i / 1000, i, i FROM generate_series(0, 1999) i;
CREATE INDEX ON secret USING rangefilter (k);
CREATE INDEX ON secret USING rangefilter (x);
VACUUM ANALYZE secret;
CREATE TABLE guess (k int, x numeric, name text);
INSERT INTO guess SELECT i, i, 'n' || i FROM generate_series(1, 3) i;
ANALYZE guess;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM secret WHERE part > 0;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY first ON secret USING (part = 1 OR part = 2);
GRANT SELECT ON secret, guess, barrier TO regress_rf_gate_join;
PREPARE by_number AS SELECT secret.* FROM secret JOIN guess ON secret.x = guess.x WHERE name = 'n1';
PREPARE by_both AS SELECT secret.* FROM secret JOIN guess ON secret.x = guess.x AND secret.k = guess.k WHERE name = 'n1';
PREPARE by_view AS SELECT barrier.* FROM barrier JOIN guess ON barrier.x = guess.x AND barrier.k = guess.k WHERE name = 'n1';
SELECT plan_of('EXECUTE by_number');
SELECT plan_of('EXECUTE by_both');
SELECT plan_of('EXECUTE by_view');
SET ROLE regress_rf_gate_join;
SELECT plan_of('EXECUTE by_number');
SELECT plan_of('EXECUTE by_both');
SELECT plan_of('EXECUTE by_view');
EXECUTE by_number;
EXECUTE by_both;
EXECUTE by_view;
RESET ROLE;
DROP OWNED BY regress_rf_gate_join;
DROP ROLE regress_rf_gate_join;
DROP SCHEMA gate_join CASCADE;
