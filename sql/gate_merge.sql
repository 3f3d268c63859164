-- Merge joins give the values that one side has sorted to the scans on the other
-- one.  Every result is compared with that of rangefilter.enable = off.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA gate_merge;
SET search_path = gate_merge, public;
SET enable_nestloop = off;
SET enable_hashjoin = off;
SET max_parallel_workers_per_gather = 0;
SET gates.of = 'Skip Merge Cond';
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

--
-- Either side may be the one whose values are known: the outer one is sorted when
-- the inner one is begun, the inner one is asked early
--
SELECT plan_of($$SELECT * FROM t JOIN d ON t.k = d.id WHERE d.name = 'n1'$$);
SELECT plan_of($$SELECT * FROM t JOIN d ON t.k = d.id WHERE d.name = 'n1'$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan_of($$SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE d.name = 'n1')$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan_of($$SELECT * FROM (SELECT * FROM d WHERE name = 'n1') d LEFT JOIN t ON t.k = d.id$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n1''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id AND t.n > d.id - 3 WHERE d.name = ''n1''');
-- no value but NULL, none at all
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''none''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''nobody''');
SELECT gates('SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE name = ''none'')');
SELECT gates('SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE name = ''nobody'')');
-- semi-join; outer joins that keep the rows of d, and those that keep t's
SELECT gates('SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE name = ''n2'')');
SELECT gates('SELECT * FROM t WHERE EXISTS (SELECT FROM d WHERE id = k AND name = ''n2'' AND d.big <> t.n)');
SELECT gates('SELECT t.*, d.id FROM (SELECT * FROM d WHERE name IN (''n1'', ''n9'', ''none'')) d LEFT JOIN t ON t.k = d.id');
SELECT gates('SELECT d.* FROM (SELECT * FROM d WHERE name IN (''n1'', ''n9'', ''none'')) d WHERE EXISTS (SELECT FROM t WHERE t.k = d.id)');
SELECT gates('SELECT d.* FROM (SELECT * FROM d WHERE name IN (''n1'', ''n9'', ''none'')) d WHERE NOT EXISTS (SELECT FROM t WHERE t.k = d.id)');
SELECT gates('SELECT t.*, d.id FROM t LEFT JOIN (SELECT * FROM d WHERE name = ''n1'') d ON t.k = d.id');
SELECT gates('SELECT t.*, d.id FROM t FULL JOIN (SELECT * FROM d WHERE name = ''n1'') d ON t.k = d.id');
SELECT gates('SELECT * FROM t WHERE NOT EXISTS (SELECT FROM d WHERE id = k AND name = ''n2'')');
SELECT gates('SELECT * FROM t WHERE k NOT IN (SELECT id FROM d WHERE name = ''n2'')');
-- downwards, with NULLs first
SELECT plan_of($$SELECT t.k FROM t JOIN d ON t.k = d.id WHERE d.name IN ('n1', 'none') ORDER BY t.k DESC$$);
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name IN (''n1'', ''none'') ORDER BY t.k DESC');
SELECT gates('SELECT * FROM t WHERE k IN (SELECT id FROM d WHERE name IN (''n2'', ''none'')) ORDER BY k DESC');
-- other types, casts, expressions
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.big WHERE d.name = ''n3''');
SELECT gates('SELECT t.* FROM t WHERE k IN (SELECT big FROM d WHERE d.name = ''n3'')');
SELECT gates('SELECT t.*, d.id FROM t JOIN (SELECT * FROM d UNION ALL SELECT NULL, ''n3'', 1 << 40, NULL, NULL) d ON t.k = d.big WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.tx = d.tx WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.tx = d.vc WHERE d.name = ''n3''');
SELECT gates('SELECT t.tx FROM t WHERE tx IN (SELECT tx FROM d WHERE d.name = ''n3'')');
CREATE TABLE days (part int, day date, at timestamp) PARTITION BY LIST (part);
CREATE TABLE days1 PARTITION OF days FOR VALUES IN (1);
CREATE TABLE days2 PARTITION OF days FOR VALUES IN (2);
INSERT INTO days SELECT 1 + i / 50, date '2024-01-01' + i, timestamp '2024-01-01' + i * interval '1 day' FROM generate_series(0, 99) i;
CREATE INDEX ON days USING rangefilter (day);
CREATE INDEX ON days USING rangefilter (at);
VACUUM ANALYZE days;
CREATE TABLE moments AS SELECT date '2024-03-01' + i AS day, timestamp '2024-03-01' + i * interval '1 day' AS at FROM generate_series(0, 2) i;
ANALYZE moments;
SELECT gates('SELECT days.* FROM moments m LEFT JOIN days ON days.day = m.at');
SELECT gates('SELECT days.* FROM moments m LEFT JOIN days ON days.at = m.day');
SELECT gates('SELECT * FROM days WHERE EXISTS (SELECT FROM moments m WHERE days.day = m.at)');
SELECT gates('SELECT * FROM days WHERE EXISTS (SELECT FROM moments m WHERE days.at = m.day)');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id + 100 WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.n / 10 = d.id / 10 WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k + 0 = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id + (random() * 0)::int WHERE d.name = ''n3''');
-- several keys, of one join and of two; with what is known otherwise
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id AND t.tx = d.tx WHERE d.name = ''n3''');
SELECT gates('SELECT * FROM t WHERE (k, tx) IN (SELECT id, tx FROM d WHERE name = ''n3'')');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id JOIN d e ON t.tx = e.tx WHERE d.id > 120 AND e.id < 260');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id JOIN d e ON t.k = e.big WHERE d.id > 120 AND e.id < 260');
SELECT gates('SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n3'' AND t.tx < ''k310''');
PREPARE par (text) AS SELECT t.*, d.id FROM t JOIN d ON t.k = d.id WHERE d.id BETWEEN 110 AND 510 AND t.tx < $1;
SET plan_cache_mode = force_generic_plan;
SELECT plan_of($$EXECUTE par ('k310')$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT gates('EXECUTE par (''k310'')');
SELECT gates('EXECUTE par (NULL)');
RESET plan_cache_mode;
-- a table on each side: the smaller one gives its values
SELECT plan_of($$SELECT a.k FROM t a JOIN t b ON a.k = b.k WHERE b.n = 305 AND a.part < 4 AND b.part > 2$$);
SELECT gates('SELECT a.k FROM t a JOIN t b ON a.k = b.k WHERE b.n = 305');
SELECT gates('SELECT a.k FROM t a JOIN t b ON a.k = b.n WHERE a.part = 1');

--
-- What is in between
--
CREATE INDEX t_order ON t (k);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT plan_of($$SELECT t.k FROM t JOIN (SELECT id FROM d WHERE name = 'n3' OFFSET 0) d ON t.k = d.id WHERE t.part IN (1, 3)$$);
SELECT gates('SELECT t.k FROM t JOIN (SELECT id FROM d WHERE name = ''n3'' OFFSET 0) d ON t.k = d.id');
SELECT gates('SELECT t.k FROM t WHERE part = 3 AND k IN (SELECT id FROM d WHERE name = ''n5'')');
SELECT gates('SELECT d.id FROM d WHERE name IN (''n3'', ''n5'') AND NOT EXISTS (SELECT FROM t WHERE part = 3 AND k = d.id)');
SELECT plan_of($$SELECT t.k FROM (SELECT * FROM t WHERE part IN (1, 3) ORDER BY k, n OFFSET 0) t JOIN (SELECT id, big FROM d WHERE name = 'n3' OFFSET 0) d ON t.k = d.id AND t.n = d.big$$);
SELECT gates('SELECT t.k FROM (SELECT * FROM t WHERE part IN (1, 3) ORDER BY k, n OFFSET 0) t JOIN (SELECT id, big FROM d WHERE name = ''n3'' OFFSET 0) d ON t.k = d.id AND t.n = d.big');
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX t_order;
SELECT gates('SELECT x.*, d.id FROM (SELECT k, n FROM t WHERE n > 5 OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT k, n FROM t ORDER BY k, n OFFSET 0) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT n, k FROM t ORDER BY n, k LIMIT 800) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT n, k FROM t ORDER BY k, n LIMIT 800) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT k, count(*) FROM t GROUP BY k) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT x.*, d.id FROM (SELECT k, row_number() OVER (ORDER BY k) FROM t) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('WITH x AS MATERIALIZED (SELECT k FROM t) SELECT x.*, d.id FROM x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id, e.id FROM (t LEFT JOIN d e ON t.n = e.id) JOIN d ON t.k = d.id WHERE d.name = ''n3''');
SELECT gates('SELECT t.*, d.id, e.id FROM (d e LEFT JOIN t ON t.n = e.id) JOIN d ON coalesce(t.k, 75) = d.id WHERE d.name = ''n0''');
SELECT gates('SELECT a.k, b.k FROM t a JOIN t b ON a.n = b.k JOIN d ON d.id = b.k WHERE d.name = ''n4''');
SELECT gates('SELECT x.* FROM (SELECT k, tx FROM t WHERE part < 3 UNION ALL SELECT n, tx FROM t WHERE part > 2 UNION ALL SELECT 300, tx FROM t WHERE n = 5) x JOIN d ON x.k = d.id WHERE d.name = ''n3''');
-- the values come from what keeps no row, from distinct rows, a few of them, or an index
SELECT gates('SELECT t.k FROM t JOIN (SELECT DISTINCT id FROM d WHERE name IN (''n3'', ''n4'')) d ON t.k = d.id');
SET enable_hashagg = off;
SELECT gates('SELECT t.k FROM t JOIN (SELECT DISTINCT id FROM d WHERE name IN (''n3'', ''n4'')) d ON t.k = d.id');
RESET enable_hashagg;
SELECT gates('SELECT t.k FROM t JOIN (SELECT id FROM d ORDER BY id LIMIT 5) d ON t.k = d.id');
SELECT gates('SELECT t.k FROM t JOIN (SELECT id, count(*) FROM d WHERE name = ''n4'' GROUP BY id) d ON t.k = d.id');
CREATE TABLE keyed AS SELECT * FROM d WHERE id IS NOT NULL;
ALTER TABLE keyed ADD PRIMARY KEY (id);
ANALYZE keyed;
SET enable_seqscan = off;
SELECT gates('SELECT t.k FROM t JOIN keyed ON t.k = keyed.id WHERE name = ''n4''');
RESET enable_seqscan;
SELECT gates('SELECT t.k FROM t JOIN keyed ON t.k = keyed.id WHERE name = ''n4''');

--
-- Scans that are started again: with the same values only
--
SET enable_memoize = off;
SELECT plan_of($$SELECT g, x.* FROM generate_series(0, 3) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = 'n2' AND t.n > g * 100 AND part > 4 OFFSET 0) x$$);
SELECT gates('SELECT g, x.* FROM generate_series(0, 3) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n2'' AND t.n > g * 100 OFFSET 0) x');
SELECT gates('SELECT g, x.* FROM generate_series(0, 3) g,
	LATERAL (SELECT k FROM t WHERE k IN (SELECT id FROM d WHERE name = ''n2'') AND t.n > g * 100 OFFSET 0) x');
SELECT gates('SELECT g, x.* FROM generate_series(0, 9) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n'' || g OFFSET 0) x');
SELECT gates('SELECT g, x.* FROM generate_series(0, 9) g,
	LATERAL (SELECT k FROM t WHERE k IN (SELECT id FROM d WHERE name = ''n'' || g) OFFSET 0) x');
SELECT gates('SELECT g, x.* FROM unnest(''{8,9,2,9,none,3}''::text[]) g,
	LATERAL (SELECT t.k, d.id FROM t JOIN d ON t.k = d.id WHERE d.name = ''n'' || g OFFSET 0) x');
SELECT gates('SELECT d.id, (SELECT count(*) FROM t JOIN d e ON t.k = e.id WHERE e.id > d.id AND e.id < d.id + 80) FROM d');
SELECT gates('SELECT d.id, (SELECT count(*) FROM t JOIN d e ON t.k = e.id WHERE t.n > d.id AND e.name = ''n3'') FROM d');
-- what is volatile is computed once, like the gate's values of it
CREATE SEQUENCE calls;
SELECT g, count(*), count(x.k) FROM generate_series(0, 3) g,
	LATERAL (SELECT t.k FROM (SELECT nextval('calls')::int * 100 AS id FROM d WHERE name = 'n2' OFFSET 0) d LEFT JOIN t ON t.k = d.id AND t.n >= g OFFSET 0) x
GROUP BY g ORDER BY g;
RESET enable_memoize;
-- what an init plan returns stays the same
SELECT gates('SELECT t.k FROM t JOIN d ON t.k = d.id WHERE d.name = (SELECT min(name) FROM d WHERE id > 300)');
SELECT gates('SELECT t.k FROM t WHERE k IN (SELECT id FROM d WHERE name = (SELECT min(name) FROM d WHERE id > 300))');

--
-- How many rows and values; sorts on disk
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
SELECT gates('SELECT b.k FROM b WHERE k IN (SELECT id FROM l)');
SET work_mem = '64kB';
SELECT gates('SELECT b.k, l.* FROM b JOIN l ON b.k = l.id');
SELECT gates('SELECT b.k FROM b WHERE k IN (SELECT id FROM l WHERE v <> ''y'' OFFSET 0)');
SELECT gates('SELECT b.k FROM b WHERE EXISTS (SELECT FROM l WHERE id = k AND v <> b.v)');
RESET work_mem;
SELECT gates('SELECT b.k, l.id FROM b JOIN (SELECT 500 + 501 * (i % 2) AS id FROM generate_series(1, 10000) i) l ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN (SELECT 500 + 501 * (i % 2) AS id FROM generate_series(1, 10001) i) l ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN generate_series(2001, 3000) l(id) ON b.k = l.id');
SELECT gates('SELECT b.k, l.id FROM b JOIN generate_series(2000, 3000) l(id) ON b.k = l.id');
-- more than are expected
CREATE FUNCTION numbers(n int) RETURNS SETOF int LANGUAGE plpgsql ROWS 10 AS
$$ BEGIN RETURN QUERY SELECT CASE WHEN i = 1 THEN 1001 ELSE 2000 + i % 2 END FROM generate_series(1, n) i; END $$;
SELECT gates('SELECT b.k, n FROM b JOIN numbers(10000) n ON b.k = n');
SELECT gates('SELECT b.k, n FROM b JOIN numbers(10001) n ON b.k = n');
SELECT gates('SELECT b.k, n FROM b JOIN numbers(30000) n ON b.k = n');
SELECT gates('SELECT b.k, n FROM numbers(10000) n LEFT JOIN b ON b.k = n');
SELECT gates('SELECT b.k, n FROM numbers(10001) n LEFT JOIN b ON b.k = n');
SELECT gates('SELECT b.k, n FROM numbers(10002) n LEFT JOIN b ON b.k = n');
SELECT gates('SELECT k FROM b WHERE k IN (SELECT numbers(10000))');
SELECT gates('SELECT k FROM b WHERE EXISTS (SELECT FROM numbers(10000) n WHERE n = k AND b.v > n::text)');
SELECT gates('SELECT k FROM b WHERE EXISTS (SELECT FROM numbers(10001) n WHERE n = k AND b.v > n::text)');

--
-- Members that are asked late, when the join is under way
--
CREATE TABLE o (k int, other int) PARTITION BY RANGE (k);
SELECT format('CREATE TABLE o%s PARTITION OF o FOR VALUES FROM (%s) TO (%s)', p, p * 100, p * 100 + 100)
FROM generate_series(0, 3) p \gexec
INSERT INTO o SELECT i, i / 2 FROM generate_series(0, 399) i;
CREATE INDEX ON o (k, other);
CREATE INDEX ON o2 USING rangefilter (other);
CREATE INDEX ON o3 USING rangefilter (other);
VACUUM ANALYZE o;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE late (int) AS SELECT * FROM o WHERE k < $1 AND EXISTS (SELECT FROM (SELECT k AS id, other + 0 AS other FROM o2 UNION ALL SELECT i, 10 FROM generate_series(0, 20) i OFFSET 0) x WHERE x.id = o.k AND x.other = o.other);
SELECT plan_of('EXECUTE late (250)');
SELECT gates('EXECUTE late (350)');
RESET enable_bitmapscan;
RESET enable_seqscan;
RESET plan_cache_mode;

--
-- UPDATE, DELETE, MERGE, row locks, functions
--
BEGIN;
SELECT plan_of($$UPDATE t SET n = -d.id FROM d WHERE t.k = d.id AND d.name = 'n3' AND part < 4$$);
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
SELECT count(*) FROM t WHERE k IN (SELECT add(id) AS id FROM d WHERE name = 'n3' OFFSET 0);
SELECT count(*) FROM t WHERE k IN (SELECT id FROM d WHERE name = 'n3');
ROLLBACK;
VACUUM t;
-- the setting, for a plan that is kept; in cursors there are no gates
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
SELECT plan_of($$EXECUTE kept ('n3')$$);
RESET rangefilter.enable;
RESET plan_cache_mode;
SELECT plan_of($$DECLARE c SCROLL CURSOR FOR SELECT t.k FROM t JOIN d ON t.k = d.id WHERE d.name = 'n3' AND part < 2$$);

--
-- Parallel and partitionwise plans, inheritance
--
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
-- each process has the values of its own sort, if that is of all rows
SET enable_parallel_append = off;
SELECT plan_of($$SELECT count(*), sum(b.k) FROM b JOIN l ON b.k = l.id$$);
SELECT gates('SELECT count(*), sum(b.k) FROM b JOIN l ON b.k = l.id') NOT LIKE '%skipped 0 of%' AS counted;
RESET enable_parallel_append;
SELECT gates('SELECT count(*), sum(b.k) FROM b JOIN l ON b.k = l.id') NOT LIKE '%skipped 0 of%' AS counted;
SELECT gates('SELECT count(*), sum(k) FROM b WHERE k IN (SELECT id FROM l)') NOT LIKE '%skipped 0 of%' AS counted;
-- rows that workers read first
SELECT plan_of($$SELECT count(*), sum(b.k) FROM l LEFT JOIN b ON b.k = l.id$$);
SELECT answer('SELECT count(*), sum(b.k) FROM l LEFT JOIN b ON b.k = l.id');
-- the same again and again
SELECT plan_of($$SELECT v.n, x.* FROM (VALUES (1), (2), (3)) v (n), LATERAL (SELECT count(*), sum(b.k), v.n AS m FROM l LEFT JOIN b ON b.k = l.id OFFSET 0) x$$);
SELECT v.n, x.* FROM (VALUES (1), (2), (3)) v (n), LATERAL (SELECT count(*), sum(b.k), v.n AS m FROM l LEFT JOIN b ON b.k = l.id OFFSET 0) x;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;
SET enable_partitionwise_join = on;
SELECT gates('SELECT a.k, b.n FROM t a JOIN t b ON a.part = b.part AND a.k = b.k WHERE b.n % 200 = 7');
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

--
-- Where numbers would tell too much, they are left out; by operators that might
-- tell of hidden rows nothing is asked
--
CREATE TABLE secret (part int, k int, x numeric) PARTITION BY LIST (part);
CREATE TABLE secret1 PARTITION OF secret FOR VALUES IN (1);
CREATE TABLE secret2 PARTITION OF secret FOR VALUES IN (2);
INSERT INTO secret SELECT 1 + i / 1000, i, i FROM generate_series(0, 1999) i;
CREATE INDEX ON secret USING rangefilter (k);
CREATE INDEX ON secret USING rangefilter (x);
VACUUM ANALYZE secret;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON secret USING (k % 2 = 0);
CREATE ROLE regress_rf_gate_merge;
GRANT USAGE ON SCHEMA gate_merge TO regress_rf_gate_merge;
GRANT SELECT ON secret, d TO regress_rf_gate_merge;
SET ROLE regress_rf_gate_merge;
SELECT plan_of($$SELECT secret.* FROM secret JOIN d ON secret.k = d.id WHERE d.name = 'n1'$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan_of($$SELECT secret.* FROM secret JOIN d ON secret.x = d.id WHERE d.name = 'n1'$$);
RESET ROLE;
DROP OWNED BY regress_rf_gate_merge;
DROP ROLE regress_rf_gate_merge;
DROP SCHEMA gate_merge CASCADE;
