-- Skipping by values that are known only at execution.  Every result is
-- compared with that of rangefilter.enable = off.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA gate;
SET search_path = gate, public;
SET timezone = 'UTC';
SET plan_cache_mode = force_generic_plan;
SET track_counts = on;
-- Larger tables, too, are to have gates.
SET rangefilter.defer_partitions = 1000;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/gates.sql
\set ECHO none
\i :helpers
\set ECHO all

CREATE TABLE t (part int, k int, n int, at timestamptz, tx text COLLATE "C") PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 4) p \gexec
-- another order of columns, with dropped ones
CREATE TABLE t5 (gone int, tx text COLLATE "C", at timestamptz, gone2 text, n int, k int, part int);
ALTER TABLE t5 DROP gone, DROP gone2;
ALTER TABLE t ATTACH PARTITION t5 FOR VALUES IN (5);
-- partitioned once more
CREATE TABLE t6 PARTITION OF t FOR VALUES IN (6) PARTITION BY RANGE (n);
CREATE TABLE t6a PARTITION OF t6 FOR VALUES FROM (MINVALUE) TO (650);
CREATE TABLE t6b PARTITION OF t6 FOR VALUES FROM (650) TO (MAXVALUE);
-- partition p holds 100 p ... 100 p + 99 in k
INSERT INTO t
SELECT v / 100, v, v, timestamptz '2020-01-01 UTC' + v * interval '1 day', 'k' || to_char(v, 'FM000')
FROM generate_series(0, 699) v;
CREATE INDEX ON t USING rangefilter (k);
CREATE INDEX ON t USING rangefilter (at);
CREATE INDEX ON t USING rangefilter (tx);
CREATE TABLE d (id int, name text, at timestamptz);
INSERT INTO d SELECT i * 50, 'n' || i, timestamptz '2020-01-01 UTC' + i * interval '50 days' FROM generate_series(0, 19) i;
VACUUM ANALYZE t;
ANALYZE d;

--
-- Parameters of generic plans
--
PREPARE eq (int) AS SELECT * FROM t WHERE k = $1;
EXPLAIN (COSTS OFF) EXECUTE eq (250);
SELECT gates('EXECUTE eq (250)');
SELECT gates('EXECUTE eq (1000)');
SELECT gates('EXECUTE eq (NULL)');
PREPARE rng (int, int) AS SELECT k, part FROM t WHERE k BETWEEN $1 AND $2;
SELECT gates('EXECUTE rng (150, 210)');
SELECT gates('EXECUTE rng (210, 150)');
SELECT gates('EXECUTE rng (NULL, 150)');
PREPARE half (int) AS SELECT k FROM t WHERE k > $1 AND k <= 220;
SELECT gates('EXECUTE half (150)');
PREPARE arr (int[]) AS SELECT k FROM t WHERE k = ANY ($1);
SELECT gates('EXECUTE arr (''{5,505,NULL}'')');
SELECT gates('EXECUTE arr (''{}'')');
SELECT gates('EXECUTE arr (NULL)');
-- also for many values, which takes longer than the small scans
SELECT gates(format('EXECUTE arr (''{%s}'')', string_agg((1000 + 2 * g)::text, ','))) FROM generate_series(1, 300) g;
PREPARE lst (int, int) AS SELECT k FROM t WHERE k IN ($1, $2, 7);
SELECT gates('EXECUTE lst (205, NULL)');
PREPARE ors (int, text, int) AS SELECT k FROM t WHERE (k = $1 AND n > 0) OR tx = $2 OR (k = $3 AND tx > 'a');
SELECT gates('EXECUTE ors (105, ''k305'', 405)');
SELECT gates('EXECUTE ors (NULL, NULL, NULL)');
SELECT gates('EXECUTE ors (NULL, ''k305'', NULL)');
PREPARE lk (text) AS SELECT k FROM t WHERE tx LIKE $1;
SELECT gates('EXECUTE lk (''k30%'')');
SELECT gates('EXECUTE lk (''%30'')');
SELECT gates('EXECUTE lk (NULL)');
PREPARE pre (text) AS SELECT k FROM t WHERE starts_with(tx, $1);
SELECT gates('EXECUTE pre (''k30'')');
PREPARE pre_like (text) AS SELECT k FROM t WHERE textlike(tx, $1);
SELECT gates('EXECUTE pre_like (''k30%'')');
SELECT gates('EXECUTE pre_like (''%30'')');
PREPARE big (bigint) AS SELECT k FROM t WHERE $1 > k;
SELECT gates('EXECUTE big (50)');
SELECT gates('EXECUTE big (-9223372036854775808)');
PREPARE within (int4range) AS SELECT k FROM t WHERE k <@ $1;
SELECT gates('EXECUTE within (''[95,105)'')');
SELECT gates('EXECUTE within (''empty'')');
-- the value is computed once, a volatile one not at all
PREPARE sum (int) AS SELECT k FROM t WHERE k = $1 + 1;
SELECT gates('EXECUTE sum (250)');
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = (random() * 0)::int;
-- what the gate must not look at
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = n;
-- run-time pruning by the partition key stays
PREPARE prune (int, int) AS SELECT k FROM t WHERE part = $1 AND k = $2;
SELECT gates('EXECUTE prune (2, 250)');
SELECT gates('EXECUTE prune (2, 350)');

--
-- What is computed of the rows: by the scans
--
PREPARE cols (int) AS SELECT k + 1, tx || '!', tableoid::regclass, ctid, t, (SELECT max(id) FROM d WHERE d.id <= t.k) FROM t WHERE k = $1;
SELECT plan_of($$EXECUTE cols (555)$$, 'COSTS OFF, VERBOSE');
EXECUTE cols (555);
EXECUTE cols (444);
SELECT gates('EXECUTE cols (555)');
PREPARE cnt (int) AS SELECT count(*) FROM t WHERE k < $1;
SELECT gates('EXECUTE cnt (120)');
PREPARE lmt (int) AS SELECT k FROM t WHERE k >= $1 LIMIT 3;
SELECT gates('EXECUTE lmt (350)');
PREPARE mnx (int) AS SELECT min(k), max(k) FROM t WHERE k > $1 AND k < 450;
SELECT gates('EXECUTE mnx (350)');
PREPARE lck (int) AS SELECT k FROM t WHERE k = $1 FOR UPDATE;
SELECT gates('EXECUTE lck (350)');

--
-- Stable functions and operators
--
INSERT INTO t VALUES (3, 399, 0, now(), 'new');
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE at > now() - interval '1 hour';
SELECT gates('SELECT k FROM t WHERE at > now() - interval ''1 hour''');
SELECT gates('SELECT k FROM t WHERE at < ''2020-02-01''::date');
SELECT gates('SELECT k FROM t WHERE at = timestamp ''2020-12-31''');
SELECT gates('SELECT k FROM t WHERE at > timestamp ''infinity''');
SELECT gates('SELECT k FROM t WHERE at < ''5874897-12-31''::date');
DELETE FROM t WHERE tx = 'new';
-- by an operator with one argument
CREATE FUNCTION is_past(timestamptz) RETURNS boolean STABLE STRICT LANGUAGE plpgsql AS $$ BEGIN RETURN $1 < now(); END $$;
CREATE OPERATOR !!! (FUNCTION = is_past, RIGHTARG = timestamptz);
SELECT gates('SELECT k FROM t WHERE !!! at AND k > 690');
-- not with a value of the same row
SELECT gates('SELECT k FROM t WHERE at = timestamp ''2020-01-01'' + k * interval ''1 day'' AND n % 100 = 7');
-- local times and instants: bounds lie far enough outward in every time zone
CREATE TABLE z (part int, ts timestamp, d date) PARTITION BY LIST (part);
SELECT format('CREATE TABLE z%s PARTITION OF z FOR VALUES IN (%s)', p, p)
FROM generate_series(0, 3) p \gexec
INSERT INTO z SELECT p, x, x FROM generate_series(0, 3) p,
	generate_series(timestamp '2020-03-29' + p * interval '10 days', timestamp '2020-03-30' + p * interval '10 days', '30 min') x;
INSERT INTO z VALUES (0, '-infinity', '-infinity'), (3, 'infinity', 'infinity');
CREATE INDEX ON z USING rangefilter (ts);
CREATE INDEX ON z USING rangefilter (d);
VACUUM ANALYZE z;
SET timezone = 'Europe/Berlin';
SELECT op, v, gates(format('SELECT * FROM z WHERE ts %s timestamptz %L', op, v)),
	gates(format('SELECT * FROM z WHERE timestamptz %2$L %1$s d', op, v))
FROM unnest('{=,<,>=}'::text[]) op, unnest('{2020-03-29 02:30,2020-04-08 00:00+02,2030-01-01,infinity,-infinity}'::text[]) v;
SET timezone = 'Pacific/Kiritimati';
SELECT gates('SELECT * FROM z WHERE ts = timestamptz ''2020-04-08 00:00+14''');
SET timezone = 'UTC';
-- the ends of time, where no bounds lie outward
INSERT INTO z VALUES (0, '4714-11-24 00:00:01 BC', '4714-11-24 BC'), (3, '294276-12-31 23:59:59', '5874897-12-31');
SET timezone = 'Etc/GMT-12';
SELECT gates(format('SELECT * FROM z WHERE ts %s (SELECT %L::timestamptz)', op, v))
FROM unnest('{<=,>}'::text[]) op, unnest('{294276-12-31 23:00+00,4714-11-24 00:00+00 BC}'::text[]) v;
-- a time zone that no place has: its clocks change by 160 hours
SET timezone = 'AAA100BBB-60,J98/2,J300/2';
SELECT op, gates(format('SELECT * FROM z WHERE ts %s timestamptz ''2020-04-12 12:00+00''', op)),
	gates(format('SELECT * FROM z WHERE d %s timestamptz ''2020-04-12 12:00+00''', op))
FROM unnest('{<,>}'::text[]) op;
SET timezone = 'UTC';

--
-- Init plans
--
SELECT plan_of($$SELECT * FROM t WHERE k = (SELECT max(id) FROM d WHERE name < 'n2')$$);
SELECT gates('SELECT k FROM t WHERE k = (SELECT max(id) FROM d WHERE name < ''n2'')');
SELECT gates('SELECT k FROM t WHERE k > (SELECT 600)');
SELECT gates('SELECT k FROM t WHERE k = ANY (ARRAY(SELECT id FROM d WHERE id < 120))');
SELECT gates('SELECT k FROM t WHERE k = (SELECT id FROM d WHERE id < 0)');

--
-- Nested loops: asked at each rescan.  Gates cost what scans cost, so other indexes
-- have to give core the loops.
--
CREATE INDEX t_loop ON t (k);
CREATE INDEX t_at ON t (at);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT plan_of($$SELECT * FROM d JOIN t ON t.k = d.id WHERE d.name < 'n15'$$);
SELECT gates('SELECT d.*, k FROM d JOIN t ON t.k = d.id WHERE d.name < ''n15''');
SELECT gates('SELECT d.*, k FROM d LEFT JOIN t ON t.k = d.id');
SELECT gates('SELECT d.*, k FROM d LEFT JOIN t ON t.k = d.id AND t.n > 300');
SELECT gates('SELECT * FROM d WHERE EXISTS (SELECT FROM t WHERE t.k = d.id AND t.n < 320)');
SELECT gates('SELECT * FROM d WHERE NOT EXISTS (SELECT FROM t WHERE t.k = d.id)');
SELECT gates('SELECT d.*, k FROM d JOIN t ON t.at BETWEEN d.at AND d.at + interval ''1 day''');
SELECT gates('SELECT d.*, x.* FROM d, LATERAL (SELECT k FROM t WHERE t.k > d.id ORDER BY k LIMIT 2) x');
SELECT gates('SELECT d.*, (SELECT count(*) FROM t WHERE t.k > d.id) FROM d');
SELECT gates('SELECT a.k, b.k FROM t a JOIN t b ON b.k = a.k + 100 WHERE a.k BETWEEN 110 AND 112');
SELECT gates('SELECT d.*, k FROM (SELECT id FROM d UNION ALL SELECT NULL UNION ALL SELECT 5) d LEFT JOIN t ON t.k = d.id');
-- beside a list, which is longer than what is asked for
SELECT gates(format('SELECT d.*, k FROM d JOIN t ON t.k = d.id WHERE t.k >= 0 AND t.tx = ANY (%L)', array_agg('k' || to_char(g, 'FM000'))))
FROM generate_series(0, 690, 2) g;
-- of a sample
SELECT gates('SELECT d.*, k FROM d JOIN t TABLESAMPLE BERNOULLI (0) ON t.k = d.id');
-- the value is that of an expression
SELECT gates('SELECT d.*, k FROM d JOIN t ON t.k = CASE WHEN d.id < 300 THEN d.id + 1 ELSE d.id END');
-- a scan that needs one relation, for what it returns, and asks for values of two
SELECT gates('SELECT a.id, b.id, s.* FROM d a JOIN d b ON a.name < b.name LEFT JOIN LATERAL (SELECT k, a.name AS x FROM t) s ON s.k = b.id AND s.k >= a.id');
-- a hashed subplan in the scans depends on the outer side
SELECT gates('SELECT d.id, x.k FROM d, LATERAL (SELECT k FROM t WHERE k BETWEEN d.id AND d.id + 150
	AND (n IN (SELECT d2.id FROM d d2 WHERE d2.id > d.id + 50 OFFSET 0) OR n < -1) OFFSET 0) x');
-- and keeps rows of its own, which a member that is first started later must not be given
SELECT gates('SELECT d.id, x.k FROM d, LATERAL (SELECT k FROM t WHERE k BETWEEN d.id AND d.id + 1
	AND n NOT IN (SELECT max(d2.id) FROM d d2 WHERE d2.id BETWEEN d.id - 10 AND d.id + 10 GROUP BY d2.name) OFFSET 0) x');
-- rescanned without another question
PREPARE crs (int) AS SELECT x, k FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN t ON k BETWEEN $1 AND $1 + 2;
SELECT gates('EXECUTE crs (99)');
-- ... after a scan that was not read to its end
PREPARE cut (int) AS SELECT x FROM (VALUES (100), (50), (98), (98), (100), (98)) v (x) WHERE EXISTS (SELECT FROM t WHERE k BETWEEN $1 AND $1 + 2 AND n > x);
SELECT gates('EXECUTE cut (99)');
PREPARE jn (int) AS SELECT d.id, k FROM d JOIN t ON t.k = d.id WHERE t.k > $1;
SELECT gates('EXECUTE jn (430)');
RESET enable_material;
RESET enable_memoize;
SELECT gates('SELECT a.id, b.id, k FROM d a JOIN d b ON a.id < b.id JOIN t ON t.k = b.id');
RESET enable_hashjoin;
RESET enable_mergejoin;

--
-- Ordered, parallel and partitionwise plans
--
PREPARE ord (text) AS SELECT k, tx FROM t WHERE tx > $1 ORDER BY k LIMIT 5;
EXPLAIN (COSTS OFF) EXECUTE ord ('k550');
SELECT gates('EXECUTE ord (''k550'')');
PREPARE mj (text) AS SELECT a.k, b.k FROM t1 a JOIN (SELECT * FROM t1 UNION ALL SELECT * FROM t2) b ON a.k = b.k WHERE b.tx < $1;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT gates('EXECUTE mj (''k190'')');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX t_loop, t_at;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
PREPARE par (int) AS SELECT count(*), sum(n) FROM t WHERE k > $1;
EXPLAIN (COSTS OFF) EXECUTE par (550);
SELECT answer('EXECUTE par (550)');
-- each of three processes counts the gates that it comes to
SELECT gates('EXECUTE par (550)') ~ 'skipped ([5-9]|1[0-5]) of' AS counted;
SET enable_parallel_append = off;
PREPARE par2 (int) AS SELECT count(*), sum(n) FROM t WHERE k > $1;
EXPLAIN (COSTS OFF) EXECUTE par2 (550);
SELECT gates('EXECUTE par2 (550)') LIKE '%skipped %' AS counted;
SET parallel_leader_participation = off;
SELECT count(*) AS counts FROM plan_of($$EXECUTE par2 (550)$$, 'ANALYZE, COSTS OFF, TIMING OFF') line WHERE line ~ 'Partitions Skipped';
SELECT answer('EXECUTE par2 (550)');
RESET parallel_leader_participation;
RESET enable_parallel_append;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
PREPARE pwj (int) AS SELECT a.k, b.tx FROM t a JOIN t b ON a.part = b.part AND a.n = b.n WHERE a.k = $1 AND b.tx > 'k2';
SELECT plan_of($$EXECUTE pwj (250)$$);
SELECT gates('EXECUTE pwj (250)');
PREPARE pwa (int) AS SELECT part, count(*) FROM t WHERE k > $1 GROUP BY part;
SELECT gates('EXECUTE pwa (460)');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
CREATE INDEX t_loop ON t (k);
SELECT gates('SELECT a.k, b.k FROM t a JOIN t b ON a.part = b.part AND a.k = b.k WHERE a.n IN (5, 205)');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;

--
-- UPDATE, DELETE, MERGE
--
BEGIN;
PREPARE upd (int) AS UPDATE t SET n = -1 WHERE k = $1 RETURNING k, n;
SELECT gates('EXECUTE upd (250)');
PREPARE del (int) AS DELETE FROM t WHERE k > $1 AND k < 110 RETURNING k;
SELECT plan_of($$EXECUTE del (105)$$);
EXECUTE del (105);
SELECT count(*), sum(n) FROM t;
ROLLBACK;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
BEGIN;
SELECT plan_of($$UPDATE t SET n = d.id FROM d WHERE t.k = d.id AND d.id < 120$$);
UPDATE t SET n = -d.id FROM d WHERE t.k = d.id AND d.id < 120;
SELECT k, n FROM t WHERE n < 0 ORDER BY k;
DELETE FROM t USING d WHERE t.k = d.id AND d.id > 420;
MERGE INTO t USING d ON t.k = d.id AND d.id < 320
	WHEN MATCHED AND d.id > 220 THEN DELETE
	WHEN MATCHED THEN UPDATE SET n = 1000 + d.id
	WHEN NOT MATCHED THEN INSERT VALUES (0, -d.id, 0);
SELECT count(*), sum(n), sum(k) FROM t;
ROLLBACK;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_seqscan;
DROP INDEX t_loop;

--
-- Inheritance and UNION ALL: constants, too
--
CREATE TABLE p (k int, v text);
CREATE TABLE c1 () INHERITS (p);
CREATE TABLE c2 (extra int) INHERITS (p);
CREATE TABLE c3 () INHERITS (c1);
INSERT INTO p SELECT i, 'p' FROM generate_series(0, 99) i;
INSERT INTO c1 SELECT i, 'c1' FROM generate_series(100, 199) i;
INSERT INTO c2 SELECT i, 'c2', 1 FROM generate_series(200, 299) i;
INSERT INTO c3 SELECT i, 'c3' FROM generate_series(300, 399) i;
CREATE INDEX ON p USING rangefilter (k);
CREATE INDEX ON c1 USING rangefilter (k);
CREATE INDEX ON c2 USING rangefilter (k);
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE k = 150;
SELECT gates('SELECT * FROM p WHERE k = 150');
CREATE INDEX ON c3 USING rangefilter (k);
SELECT gates('SELECT * FROM p WHERE k = 150');
SELECT gates('SELECT * FROM ONLY p WHERE k = 50');
-- A prepared plan of theirs, too, follows rangefilter.enable.
PREPARE inherited (int) AS SELECT * FROM p WHERE k = $1;
SELECT plan_of('EXECUTE inherited (150)');
SET rangefilter.enable = off;
SELECT plan_of('EXECUTE inherited (150)');
RESET rangefilter.enable;
-- Of many indexes a few are named.
CREATE TABLE c4 () INHERITS (p);
CREATE TABLE c5 () INHERITS (p);
CREATE INDEX ON c4 USING rangefilter (k);
CREATE INDEX ON c5 USING rangefilter (k);
EXPLAIN (COSTS OFF) SELECT * FROM p WHERE k = 150;
DROP TABLE c4, c5;
SELECT plan_of($$SELECT * FROM (SELECT k, v FROM c1 UNION ALL SELECT k, v FROM c2 UNION ALL SELECT k, tx FROM t) u WHERE k = 250$$);
SELECT gates('SELECT * FROM (SELECT k, v FROM c1 UNION ALL SELECT k, v FROM c2 UNION ALL SELECT k, tx FROM t) u WHERE k = 250');
PREPARE un (int) AS SELECT k, v FROM c1 WHERE k = $1 UNION ALL SELECT k, tx FROM t WHERE k = $1;
SELECT gates('EXECUTE un (250)');
-- an arm that is a gate with an init plan of its own, which may depend on the outer side
-- an arm that returns what its gate asks for
PREPARE out (int) AS SELECT * FROM (SELECT k, $1 AS x FROM c1 UNION ALL SELECT k, 7 FROM c2 UNION ALL SELECT k, $1 + 0 FROM t) u WHERE k = $1 AND k <= $1 + 0;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE out (250);
SELECT gates('EXECUTE out (250)');
PREPARE arm (int) AS SELECT k, n FROM t WHERE k >= $1 AND n + 0 = (SELECT 650) UNION ALL SELECT k, part FROM t WHERE k >= $1;
SELECT gates('EXECUTE arm (600)');
SELECT gates('SELECT * FROM d, LATERAL (SELECT k, n FROM t WHERE k = d.id AND n + 0 = (SELECT d.id + 0) UNION ALL SELECT k, part FROM t WHERE k = d.id OFFSET 0) u');

--
-- Indexes of other kinds: partial, on expressions, missing ones
--
CREATE INDEX ON t USING rangefilter ((n / 10));
CREATE INDEX ON t USING rangefilter (n) WHERE part > 2;
PREPARE ex (int) AS SELECT k FROM t WHERE n / 10 = $1;
SELECT gates('EXECUTE ex (33)');
PREPARE prt (int) AS SELECT k FROM t WHERE n = $1 AND part > 2;
SELECT gates('EXECUTE prt (333)');
PREPARE nop (int) AS SELECT k FROM t WHERE n = $1;
SELECT gates('EXECUTE nop (333)');
-- on several columns
CREATE TABLE m (part int, a int, b text COLLATE "C") PARTITION BY LIST (part);
SELECT format('CREATE TABLE m%s PARTITION OF m FOR VALUES IN (%s)', p, p)
FROM generate_series(0, 3) p \gexec
INSERT INTO m SELECT p, a, 'b' || p || a FROM generate_series(0, 3) p, generate_series(0, 9) a;
CREATE INDEX ON m USING rangefilter (a, b);
ANALYZE m;
PREPARE mc (int, text) AS SELECT * FROM m WHERE a = $1 AND b >= $2 AND b < 'b4';
EXPLAIN (COSTS OFF) EXECUTE mc (5, 'b3');
SELECT gates('EXECUTE mc (5, ''b3'')');
SELECT gates('EXECUTE mc (5, NULL)');
PREPARE mb (text) AS SELECT * FROM m WHERE b = $1;
SELECT gates('EXECUTE mb (''b35'')');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT gates('SELECT * FROM (VALUES (1, ''b11''), (2, ''b32''), (3, ''b00'')) v (x, y), LATERAL (SELECT * FROM m WHERE a = x AND b = y OFFSET 0) m');
SELECT gates('SELECT * FROM (VALUES (''b11''), (''b31''), (''b00'')) v (y), LATERAL (SELECT * FROM m WHERE a = 1 AND b = y OFFSET 0) m');
RESET enable_hashjoin;
RESET enable_mergejoin;
CREATE TABLE u (part int, k int) PARTITION BY LIST (part);
CREATE TABLE u1 PARTITION OF u FOR VALUES IN (1);
CREATE TABLE u2 PARTITION OF u FOR VALUES IN (2);
CREATE TABLE u3 PARTITION OF u FOR VALUES IN (3);
INSERT INTO u SELECT 1 + i % 3, i % 3 * 100 + i / 3 FROM generate_series(0, 299) i;
CREATE INDEX ON u1 USING rangefilter (k);
CREATE INDEX ON u3 USING rangefilter (k);
CREATE INDEX ON u2 (k);
ANALYZE u;
PREPARE mixed (int) AS SELECT * FROM u WHERE k = $1;
EXPLAIN (COSTS OFF) EXECUTE mixed (250);
SELECT gates('EXECUTE mixed (250)');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT gates('SELECT * FROM d, LATERAL (SELECT * FROM u WHERE u.k = d.id OFFSET 0) u');
RESET enable_hashjoin;
RESET enable_mergejoin;

--
-- Functions
--
CREATE FUNCTION look(value int) RETURNS SETOF int LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN QUERY SELECT k FROM t WHERE k = value; END $$;
CREATE FUNCTION walk(value int) RETURNS SETOF int LANGUAGE plpgsql AS
$$ DECLARE r record; BEGIN FOR r IN SELECT k FROM t WHERE k > value LOOP RETURN NEXT r.k; END LOOP; END $$;
CREATE FUNCTION fetched(value int) RETURNS SETOF int LANGUAGE plpgsql AS
$$
DECLARE
	looks CURSOR (v int) FOR SELECT k FROM t WHERE k > v;
	x int;
BEGIN
	OPEN looks (value);
	LOOP FETCH looks INTO x; EXIT WHEN NOT FOUND; RETURN NEXT x; END LOOP;
	CLOSE looks;
END
$$;
CREATE FUNCTION plain(value int) RETURNS SETOF int LANGUAGE sql VOLATILE AS
$$ SELECT k FROM t WHERE k = value $$;
-- How many scans does a query begin?
CREATE FUNCTION scans(query text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	before bigint;
	line text;
BEGIN
	SELECT sum(pg_stat_get_xact_numscans(relid)) INTO before FROM pg_partition_tree('t');
	EXECUTE query INTO line;
	RETURN sum(pg_stat_get_xact_numscans(relid)) - before FROM pg_partition_tree('t');
END
$$;
SELECT f, v, gates(format('SELECT * FROM %s(%s)', f, v)), scans(format('SELECT count(*) FROM %s(%s)', f, v))
FROM unnest('{look,walk,fetched,plain}'::text[]) f, unnest('{150,695,NULL}'::text[]) v
WHERE v IS NOT NULL;
SELECT scans('SELECT count(*) FROM generate_series(1, 3) g, look(g * 100)');

--
-- Cursors: forward and backward, and WHERE CURRENT OF
--
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM t WHERE at < now() - interval '1 day';
FETCH c;
UPDATE t SET n = 7 WHERE CURRENT OF c RETURNING k, n;
DECLARE s SCROLL CURSOR FOR SELECT k FROM t WHERE at < now() AND k BETWEEN 298 AND 301 ORDER BY k;
FETCH ALL s;
FETCH BACKWARD ALL s;
DECLARE f CURSOR FOR SELECT k FROM t WHERE at < now() AND k = 450 FOR UPDATE;
FETCH f;
DELETE FROM t WHERE CURRENT OF f RETURNING k;
ROLLBACK;

-- a cursor that is on no row is an error, also if a rule has a condition that no row satisfies
CREATE TABLE flagged (k int, done bool);
CREATE TABLE flagged1 () INHERITS (flagged);
INSERT INTO flagged1 VALUES (1, true);
CREATE INDEX ON flagged USING rangefilter (done);
CREATE INDEX ON flagged1 USING rangefilter (done);
CREATE RULE undone AS ON UPDATE TO flagged WHERE old.done DO INSTEAD NOTHING;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM flagged;
UPDATE flagged SET k = 2 WHERE CURRENT OF c;
ROLLBACK;

--
-- Where rows are hidden from the user, EXPLAIN tells nothing, and with ANALYZE
-- nothing is skipped
--
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON t USING (k % 2 = 0);
CREATE TABLE shown (part int, k int, n int) PARTITION BY LIST (part);
CREATE TABLE shown1 PARTITION OF shown FOR VALUES IN (1);
CREATE TABLE shown2 PARTITION OF shown FOR VALUES IN (2);
CREATE INDEX ON shown USING rangefilter (k);
CREATE ROLE regress_gate;
GRANT USAGE ON SCHEMA gate TO regress_gate;
GRANT SELECT ON t, d, shown TO regress_gate;
SET ROLE regress_gate;
EXPLAIN (COSTS OFF) EXECUTE eq (250);
SELECT plan_of($$EXECUTE eq (250)$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
EXECUTE eq (250);
EXECUTE eq (251);
-- also where only one arm of UNION ALL hides rows
PREPARE secret_first (int) AS SELECT k, n FROM t WHERE k = $1 AND part IN (2, 3) UNION ALL SELECT k, n FROM shown WHERE k = $1;
PREPARE secret_last (int) AS SELECT k, n FROM shown WHERE k = $1 UNION ALL SELECT k, n FROM t WHERE k = $1 AND part IN (2, 3);
EXPLAIN (COSTS OFF) EXECUTE secret_first (251);
EXPLAIN (COSTS OFF) EXECUTE secret_last (251);
RESET ROLE;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;

--
-- The setting; what EXPLAIN says in other formats
--
SET rangefilter.enable = off;
EXPLAIN (COSTS OFF) EXECUTE eq (250);
RESET rangefilter.enable;
SELECT plan_of($$EXECUTE eq (250)$$, 'COSTS OFF, FORMAT YAML');
SELECT plan_of($$EXECUTE eq (250)$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
-- a value that fails does so where some row is looked at
PREPARE bad (int) AS SELECT k FROM t WHERE k = 100 / $1;
EXECUTE bad (0);
PREPARE sparse (int) AS SELECT k FROM t WHERE $1 <> 0 AND k = 100 / $1;
EXECUTE sparse (0);

--
-- A single partition, read for a table with a dropped column
--
CREATE TABLE one (k int, gone int, p int) PARTITION BY LIST (p);
CREATE TABLE one_1 PARTITION OF one FOR VALUES IN (1);
CREATE INDEX ON one USING rangefilter (k);
INSERT INTO one SELECT k, 0, 1 FROM generate_series(1, 100) k;
ALTER TABLE one DROP gone;
SELECT rangefilter_summarize('one_k_idx') >= 0 AS done;
INSERT INTO one SELECT -k, p FROM one WHERE k >= (SELECT 99) RETURNING k, p;
INSERT INTO one SELECT -k, p FROM one WHERE k >= (SELECT 101) RETURNING k, p;

--
-- What a query has not come to yet is in use, too
--
CREATE TABLE later (p int, k int) PARTITION BY LIST (p);
CREATE TABLE later1 PARTITION OF later FOR VALUES IN (1);
CREATE TABLE later2 PARTITION OF later FOR VALUES IN (2);
CREATE INDEX ON later USING rangefilter (k);
INSERT INTO later SELECT p, 7 FROM generate_series(1, 2) p, generate_series(1, 20);
CREATE FUNCTION interrupted(key int, command text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	n int := 0;
	r record;
BEGIN
	FOR r IN SELECT * FROM later WHERE k = key LOOP
		IF n = 0 THEN
			EXECUTE command;
		END IF;
		n := n + 1;
	END LOOP;
	RETURN n || ' rows';
EXCEPTION WHEN object_in_use THEN
	RETURN SQLERRM;
END
$$;
SELECT interrupted(7, 'SELECT');
SELECT interrupted(7, 'TRUNCATE later2');
SELECT interrupted(7, 'ALTER TABLE later DETACH PARTITION later2; ALTER TABLE later2 ALTER k TYPE bigint');

--
-- Just-in-time compilation: not of every small scan of an expensive query
--
CREATE FUNCTION compiled(above float8) RETURNS int LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	PERFORM set_config('jit_above_cost', above::text, true);
	EXECUTE 'EXPLAIN (ANALYZE, TIMING off, FORMAT JSON)
		SELECT * FROM generate_series(1, 1000) x, LATERAL (SELECT * FROM later WHERE later.k = x OFFSET 0) y' INTO plan;
	IF position('Range Filter Append' IN plan::text) = 0 THEN
		RAISE 'no gate: %', plan;
	END IF;
	RETURN coalesce((plan #>> '{0,JIT,Functions}')::int, 0);
END
$$;
SET jit = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT compiled(10) > compiled(10000) AND compiled(10000) > compiled(1e9) OR NOT pg_jit_available() AS ok;
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET jit;

-- under OR, what no index knows of
PREPARE either (int, text) AS SELECT * FROM t WHERE k = $1 OR lower(tx) = $2;
SELECT gates('EXECUTE either (100, ''k305'')');
-- A value that is not computed where what stands beside it is false
PREPARE division (int) AS SELECT k FROM t WHERE ($1 <> 0 AND k = 1000 / $1) OR k = 305;
SELECT gates('EXECUTE division (0)');
SELECT gates('EXECUTE division (10)');
PREPARE root (float8) AS SELECT k FROM t WHERE (n < -1000 AND k = int4(sqrt($1))) OR k = 305;
SELECT gates('EXECUTE root (-1)');
SELECT gates('SELECT x, c FROM (VALUES (0), (10)) v (x), LATERAL (SELECT count(*) c FROM t WHERE (x <> 0 AND k = 1000 / x) OR k = 305) c');
-- ... and those that are: they cannot fail, or fail always
PREPARE conversion (int, smallint) AS SELECT k FROM t WHERE ($1 <> 0 AND k = $1) OR (n > 0 AND k = $2::int) OR (n > 0 AND k = ANY (ARRAY[$1, 1000]))
	OR (n > 0 AND at < now() - interval '1000 years') OR (n > 0 AND at < localtimestamp(3) - interval '1000 years');
SELECT gates('EXECUTE conversion (105, 405::smallint)');
SET enable_hashjoin = off;
SELECT gates('SELECT t.k FROM (VALUES (105), (205)) v (x), LATERAL (SELECT k FROM t WHERE (n > 0 AND k = x) OR k = 305 OFFSET 0) t');
RESET enable_hashjoin;
-- ... but arrays may fail, by an element or by their dimensions
PREPARE elements (int) AS SELECT k FROM t WHERE ($1 <> 0 AND k = ANY (ARRAY[1000 / $1, 5])) OR k = 305;
PREPARE dimensions (int[], int[]) AS SELECT k FROM t WHERE (n < -1000 AND k = ANY (ARRAY[$1, $2])) OR k = 305;
SELECT gates('EXECUTE elements (0)'), gates($$EXECUTE dimensions ('{1}', '{1,2}')$$);
-- ... a subquery that has not run, and a setting
CREATE TABLE two AS SELECT generate_series(1, 2) AS id;
SELECT gates('SELECT k FROM t WHERE (n < 0 AND k = (SELECT id FROM two)) OR k = 305');
CREATE DOMAIN positive AS int CHECK (value > 0);
SELECT gates('SELECT k FROM t WHERE (n < -1000 AND k = (-5)::positive) OR k = 305');
SET gate.k = '105';
PREPARE setting AS SELECT count(*) FROM t WHERE (current_setting('gate.k') <> '' AND k = current_setting('gate.k')::int) OR k = 305;
EXECUTE setting;
SET gate.k = '';
EXECUTE setting;
-- ... and the field of a record that has not been assigned, or has another type now
CREATE FUNCTION field(assigned text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	r record;
	result bigint;
BEGIN
	IF assigned = 'int' THEN
		SELECT 105 AS x INTO r;
	ELSIF assigned = 'text' THEN
		SELECT 'x'::text AS x INTO r;
	END IF;
	SELECT count(*) INTO result FROM t WHERE (n < -1000 AND k = r.x) OR k = 305;
	RETURN result;
END $$;
SELECT field('int'), field('none'), field('text');
-- NULL, and then the value whose datum is 0
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT gates('SELECT x, n FROM (VALUES (NULL), (0), (NULL), (NULL), (0)) v (x), LATERAL (SELECT count(*) n FROM t WHERE k = x) c');
RESET enable_hashjoin;
RESET enable_mergejoin;
--
-- An index that has become invalid when the query comes to its partition is not asked
--
INSERT INTO later SELECT 1, 8 FROM generate_series(1, 20);
VACUUM later;
CREATE FUNCTION scans_of_later2(command text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	before bigint := pg_stat_get_xact_numscans('later2'::regclass);
BEGIN
	PERFORM interrupted(8, command);
	RETURN pg_stat_get_xact_numscans('later2'::regclass) - before;
END
$$;
SELECT scans_of_later2('SELECT');
BEGIN;
SELECT scans_of_later2($$UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'later2_k_idx'::regclass$$);
ROLLBACK;
SELECT scans_of_later2('SELECT');

--
-- Scans by other indexes
--
CREATE INDEX t_order ON t (k);
SET enable_seqscan = off;
-- EXPLAIN ANALYZE shows the scan of a gate of its own, started or not, and of a gate's many scans those that were started
SELECT plan_of($$EXECUTE ord ('k550')$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
-- a scan by TID has a gate, too
PREPARE by_tid (int) AS SELECT k FROM t WHERE k = $1 AND ctid = '(0,1)';
EXPLAIN (COSTS OFF) EXECUTE by_tid (200);
SELECT gates('EXECUTE by_tid (200)');
SET enable_indexscan = off;
PREPARE bitmap (int) AS SELECT * FROM t WHERE k = $1;
SELECT plan_of('EXECUTE bitmap (250)', 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
RESET enable_indexscan;
-- one value is asked for, also where a scan costs less than a page
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_bitmapscan = off;
SELECT gates('SELECT d.id, k FROM d JOIN t ON t.k = d.id');
-- a question for several values takes as long as a scan by an index of any kind
SELECT gates('SELECT d.id, k FROM d JOIN t ON t.k = ANY (ARRAY[d.id, d.id + 3, d.id + 6, d.id + 9])');
SET enable_indexonlyscan = off;
SELECT gates('SELECT d.id, x.k FROM d, LATERAL (SELECT k FROM t WHERE k = ANY (ARRAY[d.id, d.id + 3, d.id + 6, d.id + 9]) AND now() > ''2000-01-01'' OFFSET 0) x');
SELECT gates('SELECT d.id, k FROM d JOIN t ON t.k = ANY (ARRAY[d.id, d.id + 3, d.id + 6, d.id + 9])');
SET enable_indexscan = off;
SET enable_bitmapscan = on;
SELECT gates('SELECT d.id, k FROM d JOIN t ON t.k = ANY (ARRAY[d.id, d.id + 3, d.id + 6, d.id + 9])');
RESET enable_indexonlyscan;
RESET enable_indexscan;
SET enable_bitmapscan = off;
RESET enable_mergejoin;
-- the inner side of a merge join goes back to where equal keys began
CREATE TABLE steps WITH (autovacuum_enabled = off) AS SELECT k FROM generate_series(0, 699) k;
CREATE INDEX ON steps (k);
INSERT INTO t SELECT part, k, n + 1000, at, tx FROM t WHERE part = 4;
VACUUM ANALYZE steps, t;
INSERT INTO steps SELECT 450 FROM generate_series(1, 3);
SET enable_nestloop = off;
SET enable_sort = off;
SELECT plan_of($$SELECT steps.k, n FROM steps JOIN t USING (k) WHERE part = 4 AND at >= (SELECT timestamptz '2021-01-01 UTC')$$);
SELECT gates($$SELECT steps.k, n FROM steps JOIN t USING (k) WHERE part = 4 AND at >= (SELECT timestamptz '2021-01-01 UTC')$$);
RESET enable_sort;
RESET enable_nestloop;
RESET enable_bitmapscan;
RESET enable_hashjoin;
RESET enable_seqscan;
DROP INDEX t_order;

-- arms that ask for different values
PREPARE apart (int, int) AS SELECT k, n FROM t WHERE k = $1 UNION ALL SELECT k, part FROM t WHERE k = $2;
SELECT gates('EXECUTE apart (150, 250)');
-- an arm that reads no table
PREPARE constant (int) AS SELECT k, n FROM t WHERE k = $1 UNION ALL SELECT 1, 2 UNION ALL SELECT k, part FROM t WHERE k = $1;
SELECT gates('EXECUTE constant (250)');
-- Partitions of which one has another index: the others are read whole in a nested loop.
CREATE TABLE mixed (part int, k int, j int) PARTITION BY LIST (part);
CREATE TABLE mixed1 PARTITION OF mixed FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE mixed2 PARTITION OF mixed FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO mixed SELECT 1, i, i FROM generate_series(1, 20000) i;
INSERT INTO mixed SELECT 2, i, i FROM generate_series(50, 59) i;
CREATE INDEX ON mixed USING rangefilter (k);
CREATE INDEX ON mixed1 (j);
VACUUM ANALYZE mixed;
PREPARE mix (int) AS SELECT d.id, k FROM d JOIN mixed ON j = d.id WHERE k >= $1 AND d.name = 'n1';
SELECT plan_of('EXECUTE mix (1)');
SELECT gates('EXECUTE mix (1)');
-- Partitions that are hardly worth asking are asked once nevertheless.
CREATE TABLE tiny (part int, k int) PARTITION BY LIST (part);
CREATE TABLE tiny1 PARTITION OF tiny FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE tiny2 PARTITION OF tiny FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO tiny VALUES (1, 1), (2, 1);
CREATE INDEX ON tiny USING rangefilter (k);
VACUUM ANALYZE tiny;
PREPARE tiny (int) AS SELECT * FROM tiny WHERE k = $1;
SELECT gates('EXECUTE tiny (2)');
-- What a session knows of the table becomes useless at each question.
CREATE TABLE many (part int, k int) PARTITION BY LIST (part);
DO $$
BEGIN
	FOR p IN 0 .. 39 LOOP
		EXECUTE format('CREATE TABLE many%s PARTITION OF many FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p);
	END LOOP;
END
$$;
INSERT INTO many SELECT p, 10 * p + k FROM generate_series(0, 39) p, generate_series(0, 9) k;
CREATE INDEX ON many USING rangefilter (k);
VACUUM ANALYZE many;
CREATE FUNCTION grant_again(i int) RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
	GRANT SELECT ON many TO regress_gate;
	RETURN i;
END
$$;
SELECT gates('SELECT i, k FROM (SELECT grant_again(i) AS i FROM generate_series(1, 400, 10) i OFFSET 0) x, LATERAL (SELECT k FROM many WHERE k = i OFFSET 0) y');
-- ... or while a partition is read, and is made again before the next one is asked
CREATE FUNCTION grant_and_look(i int) RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
	GRANT SELECT ON many TO regress_gate;
	PERFORM FROM many WHERE k = -1;
	RETURN i;
END
$$;
SELECT gates('SELECT i, k FROM generate_series(5, 305, 100) i, LATERAL (SELECT k FROM many WHERE k >= i AND k < i + 30 AND grant_and_look(k) > 0 OFFSET 0) y');
SET client_min_messages = error;
DROP OWNED BY regress_gate;
DROP ROLE regress_gate;
DROP SCHEMA gate CASCADE;
