-- EXPLAIN of plans that skip partitions.
LOAD 'rangefilter';
CREATE SCHEMA explained;
SET search_path = explained, public;

CREATE TABLE ev (day int, dev int, "Note" text) PARTITION BY LIST (day);
CREATE TABLE ev1 PARTITION OF ev FOR VALUES IN (1);
CREATE TABLE ev2 PARTITION OF ev FOR VALUES IN (2);
CREATE TABLE ev3 PARTITION OF ev FOR VALUES IN (3) PARTITION BY LIST (dev);
CREATE TABLE ev3a PARTITION OF ev3 FOR VALUES IN (300, 301, 302);
CREATE TABLE ev3b PARTITION OF ev3 DEFAULT;
CREATE INDEX ev_dev ON ev USING rangefilter (dev);
CREATE INDEX "ev Note" ON ev USING rangefilter ("Note" COLLATE "C");
INSERT INTO ev SELECT d, d * 100 + g, 'n' || d || g FROM generate_series(1, 3) d, generate_series(0, 9) g;
ANALYZE ev;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/plans.sql
\set ECHO none
\i :helpers
\set ECHO all

-- the formats
SELECT plan_of($$SELECT * FROM ev WHERE dev = 105$$);
SELECT plan_of($$SELECT * FROM ev e WHERE dev = 105 AND "Note" LIKE 'n1%'$$, 'COSTS OFF, VERBOSE');
SELECT plan_of($$SELECT * FROM ev WHERE dev = 105$$, 'COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan_of($$SELECT * FROM ev WHERE dev = 105$$, 'COSTS OFF, FORMAT JSON');
SELECT plan_of($$SELECT * FROM ev WHERE dev = 105$$, 'COSTS OFF, FORMAT YAML');
SELECT plan_of($$SELECT * FROM ev WHERE dev = 105$$, 'COSTS OFF, FORMAT XML');

-- several tables, or one several times
SELECT plan_of($$SELECT * FROM ev a, ev b WHERE a.dev = 105 AND b."Note" = 'n23'$$);
SELECT plan_of($$SELECT * FROM ev a, ev b WHERE a.dev = 105 AND b."Note" = 'n23'$$, 'COSTS OFF, FORMAT JSON');
SELECT plan_of($$SELECT * FROM ev a, ev b WHERE a.dev = 105 AND b."Note" = 'n23'$$, 'COSTS OFF, FORMAT XML');
SELECT plan_of($$SELECT * FROM ev WHERE dev = 105 OR "Note" = 'n23'$$);
SELECT plan_of($$SELECT * FROM ev a, ev b WHERE a.dev = 105 AND b.day = a.day$$);

-- nothing is left, nothing is skipped, nothing is asked
SELECT plan_of($$SELECT * FROM ev WHERE dev = 5$$);
EXPLAIN (COSTS OFF) SELECT * FROM ev WHERE dev > 5 AND day < 3;
EXPLAIN (COSTS OFF) SELECT * FROM ev WHERE dev + 0 = 5 AND day < 3;
SELECT plan_of($$SELECT * FROM ev WHERE day = 2 AND dev = 5$$);

-- pruned by the partition key, too; at both levels
SELECT plan_of($$SELECT * FROM ev WHERE day > 1 AND dev = 301$$);
SELECT plan_of($$SELECT * FROM ev WHERE day > 1 AND dev = 305$$);

-- subqueries, alternatives of which one is taken, MIN and MAX
SELECT plan_of($$SELECT (SELECT count(*) FROM ev WHERE dev = 205) FROM ev1 WHERE dev IN (SELECT dev - 100 FROM ev WHERE dev = 205)$$);
SELECT plan_of($$SELECT * FROM ev1 WHERE EXISTS (SELECT FROM ev WHERE dev = 205 AND ev.day = ev1.day) OR dev = 1$$);
SELECT plan_of($$SELECT count(*) FROM ev1 WHERE EXISTS (SELECT FROM ev WHERE dev = 205)$$);
SELECT plan_of($$SELECT min(day) FROM ev WHERE dev = 205$$);
CREATE INDEX ev_day_btree ON ev (day);
CREATE INDEX ev_dev_btree ON ev (dev);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT plan_of($$SELECT min(day) FROM ev WHERE dev = 205$$);
SELECT plan_of($$SELECT * FROM ev WHERE (dev = 205 AND day < (SELECT 5)) OR dev = 105$$);
SELECT plan_of($$SELECT min(dev), max(dev) FROM ev WHERE dev < 205$$);
SELECT plan_of($$SELECT min(dev), max(day) FROM ev WHERE dev < 205$$);
SELECT plan_of($$SELECT min(agg_target) FROM (SELECT dev AS agg_target FROM ev WHERE dev = 205 OFFSET 0) s$$);
SELECT plan_of($$SELECT * FROM ev, (SELECT dev AS agg_target FROM ev WHERE dev = 205 OFFSET 0) s WHERE ev.dev = 105$$);
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX ev_day_btree, ev_dev_btree;

-- statements of other kinds
SELECT plan_of($$UPDATE ev SET "Note" = '' WHERE dev = 105$$);
SELECT plan_of($$INSERT INTO ev SELECT * FROM ev WHERE dev = 105$$);
SELECT plan_of($$CREATE TABLE copied AS SELECT * FROM ev WHERE dev = 105$$);
SELECT plan_of($$DECLARE c CURSOR FOR SELECT * FROM ev WHERE dev = 105$$);
SELECT plan_of($$WITH c AS MATERIALIZED (SELECT * FROM ev WHERE dev = 105) SELECT * FROM c$$);
PREPARE q(int) AS SELECT * FROM ev WHERE dev = $1;
SELECT plan_of($$EXECUTE q(105)$$);
SELECT plan_of($$EXECUTE q(5)$$);
SET rangefilter.enable = off;
EXPLAIN (COSTS OFF) EXECUTE q(105);
RESET rangefilter.enable;
SET rangefilter.enabled = on;

-- a security barrier hides nothing from those who may read the table
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM ev WHERE day > 0;
CREATE VIEW plain AS SELECT * FROM ev WHERE day > 0;
SELECT plan_of($$SELECT * FROM barrier WHERE dev = 105$$);
SELECT plan_of($$SELECT * FROM barrier WHERE dev = 105$$, 'COSTS OFF, FORMAT JSON');
SELECT plan_of($$SELECT * FROM plain WHERE dev = 105$$);
SELECT plan_of($$SELECT * FROM barrier b, ev WHERE b.dev = 105 AND ev.dev = 205$$);

-- a subquery beside one of which the planner throws one of two plans away
CREATE TABLE other AS SELECT g AS a FROM generate_series(1, 100) g;
ANALYZE other;
SELECT plan_of($$SELECT (SELECT count(*) FROM ev WHERE dev = 105) FROM other o WHERE a = 7 OR EXISTS (SELECT FROM other p WHERE p.a = o.a + 1)$$);

-- an expression that the planner keeps in a PlaceHolderVar
SELECT plan_of($$SELECT * FROM other LEFT JOIN (SELECT dev, coalesce(day, 0) AS d FROM ev) s ON true WHERE (s.dev = 105 AND s.d = 1) OR (s.dev = 106 AND s.d = 2)$$);

SET client_min_messages = warning;
DROP SCHEMA explained CASCADE;
