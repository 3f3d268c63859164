-- Loops over gates where core expects far too few rounds.  Every result is
-- compared with that of rangefilter.enable = off.
LOAD 'rangefilter';
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA gate_loop;
SET search_path = gate_loop, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/gates.sql
\set ECHO none
\i :helpers
\set ECHO all

-- What members of fact are asked for, and how often.
CREATE FUNCTION asked(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	PERFORM gates(query);
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(CASE WHEN g ? 'Skip Cond' THEN 'values' ELSE 'hash table' END || ' of ' || (g->>'Actual Loops') || ' scans', ', ')
			FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Gate")') g);
END
$$;

-- Does the plan show this?
CREATE FUNCTION shows(query text, pattern text) RETURNS bool
LANGUAGE plpgsql AS
$$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN plan ~ pattern;
END
$$;

-- The cost of a query's plan, as a share of what it costs without gates.
CREATE FUNCTION cost_share(query text) RETURNS numeric
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	cost float;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	cost := plan->0->'Plan'->>'Total Cost';
	PERFORM set_config('rangefilter.enable', 'off', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	PERFORM set_config('rangefilter.enable', 'on', true);
	RETURN round((cost / (plan->0->'Plan'->>'Total Cost')::float)::numeric, 1);
END
$$;

-- 20 days, each with 10 of 200 devices; every day all three kinds
CREATE TABLE fact (day int, device int, kind int, n int) PARTITION BY LIST (day);
SELECT format('CREATE TABLE fact%s PARTITION OF fact FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', d, d)
FROM generate_series(0, 19) d \gexec
INSERT INTO fact SELECT d, d * 10 + n % 10, n % 3, d * 1000 + n FROM generate_series(0, 19) d, generate_series(1, 1000) n;
CREATE INDEX ON fact USING rangefilter (device);
CREATE INDEX ON fact USING rangefilter (kind);
-- of 200 devices 151 are at site 0, where core expects a share of the sites
CREATE TABLE device (id int PRIMARY KEY, site int) WITH (autovacuum_enabled = off);
INSERT INTO device SELECT g, greatest(g - 149, 0) FROM generate_series(0, 199) g;
CREATE TABLE site (id int PRIMARY KEY, name text) WITH (autovacuum_enabled = off);
INSERT INTO site SELECT g, 'site ' || g FROM generate_series(0, 199) g;
CREATE TABLE kind (id int PRIMARY KEY, name text) WITH (autovacuum_enabled = off);
INSERT INTO kind SELECT g, 'kind ' || g FROM generate_series(0, 2) g;
VACUUM ANALYZE fact, device, site, kind;
CREATE VIEW at_site AS SELECT d.id FROM device d JOIN site s ON d.site = s.id WHERE s.name = 'site 0';

-- Rows of one table: a loop
SELECT asked('SELECT count(*) FROM fact JOIN device d ON fact.device = d.id WHERE d.id = 77 OR d.id = 78');
SELECT asked('SELECT count(*) FROM fact WHERE device IN (SELECT site + 27 FROM device WHERE site >= 49)');
SELECT asked('SELECT count(*) FROM device d WHERE d.id IN (77, 78) AND EXISTS (SELECT FROM fact WHERE fact.device = d.id AND n <> 0)');
SELECT asked('SELECT count(*) FROM device d WHERE d.id IN (77, 78) AND NOT EXISTS (SELECT FROM fact WHERE fact.device = d.id AND n <> 0)');
-- Of a join, one row is expected and 150 come: the hash join
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device = d.id');
SELECT asked('SELECT count(*) FROM at_site d LEFT JOIN fact ON fact.device = d.id');
-- of a subquery and of a CTE
SELECT asked('SELECT count(*) FROM fact JOIN (SELECT id FROM at_site OFFSET 0) d ON fact.device = d.id');
SELECT asked('WITH d AS MATERIALIZED (SELECT id FROM at_site) SELECT count(*) FROM fact JOIN d ON fact.device = d.id');
-- of an anti-join, whose sides cannot be exchanged
SELECT asked('SELECT count(*) FROM (SELECT id FROM at_site OFFSET 0) d WHERE NOT EXISTS (SELECT FROM fact WHERE fact.device = d.id)');
-- of arms of UNION ALL: as good as those of tables
SELECT asked('SELECT count(*) FROM fact JOIN (SELECT id FROM device WHERE id = 77 UNION ALL SELECT id FROM device WHERE id = 78) d ON fact.device = d.id');
-- Where only loops can join, the one with gates
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device BETWEEN d.id AND d.id + 1');
-- ... also where an equality has columns of both relations on one side
SELECT asked('SELECT count(*) FROM (device d JOIN site s ON d.site = s.id AND s.name = ''site 0'')
	LEFT JOIN fact ON fact.device BETWEEN d.id AND d.id + 1 AND ' || condition)
FROM unnest('{d.id - d.id = fact.kind * 0 + s.id,fact.kind * 0 + s.id = d.id - d.id}'::text[]) condition;
-- ... and not where a hash join still can
SET enable_mergejoin = off;
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device = d.id');
SET enable_hashjoin = off;
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device = d.id');
-- of a few expected rows: unless the rows of fact are kept in memory, and a round over them costs less
CREATE VIEW at_sites AS SELECT d.id FROM device d JOIN site s ON d.site = s.id WHERE s.id < 2;
SELECT asked('SELECT count(*) FROM fact JOIN at_sites d ON fact.device = d.id');
SELECT asked('SELECT count(*) FROM fact JOIN at_sites d ON fact.device = d.id AND n % 1000 = 7');
-- (core does not materialize where it expects one row)
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device = d.id AND n % 1000 = 7');
SET enable_material = off;
SELECT asked('SELECT count(*) FROM fact JOIN at_sites d ON fact.device = d.id AND n % 1000 = 7');
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- By another index core joins by the same loop: its cost with gates is not more
CREATE INDEX fact_device ON fact (device);
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device = d.id');
-- values from further up, which core asks that index for
SELECT asked('SELECT count(*) FROM at_site d LEFT JOIN (kind k JOIN fact ON fact.kind = k.id AND k.name = ''kind 1'') ON fact.device = d.id');
DROP INDEX fact_device;
-- Bitmaps of several of our indexes are none that core has without us: a loop for rows of a table, and not for those of a subquery
CREATE TABLE paged (day int, a int, b int, pad text) PARTITION BY LIST (day);
SELECT format('CREATE TABLE paged%s PARTITION OF paged FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', d, d)
FROM generate_series(0, 3) d \gexec
INSERT INTO paged SELECT d, d * 50 + n / 20, d * 50 + n / 20, repeat('x', 500) FROM generate_series(0, 3) d, generate_series(0, 999) n;
CREATE INDEX ON paged USING rangefilter (a) WITH (pages_per_range = 2);
CREATE INDEX ON paged USING rangefilter (b) WITH (pages_per_range = 2);
VACUUM ANALYZE paged;
SELECT shows('SELECT count(*) FROM paged JOIN device d ON paged.a = d.id AND paged.b = d.id + 0 WHERE d.site = 3', 'Range Filter Gate.*BitmapAnd');
SELECT shows('SELECT count(*) FROM paged JOIN (SELECT id FROM device WHERE site = 3 OFFSET 0) d ON paged.a = d.id AND paged.b = d.id + 0', 'BitmapAnd');
DROP TABLE paged;
-- GEQO throws join relations away
SET geqo_threshold = 2;
SELECT asked('SELECT count(*) FROM fact JOIN at_site d ON fact.device = d.id');
RESET geqo_threshold;
-- Outer rows that come for each row of a table further up
CREATE INDEX device_site ON device (site);
SELECT asked('SELECT count(*) FROM site s LEFT JOIN (device d JOIN fact ON fact.device = d.id) ON d.site = s.id WHERE s.name = ''site 0''');
DROP INDEX device_site;
-- values from further up
SELECT asked('SELECT count(*) FROM at_site d LEFT JOIN (kind k JOIN fact ON fact.kind = k.id AND k.name = ''kind 1'') ON fact.device = d.id');
-- A round repeats all of a join: for each device a scan of readings as well (which would take minutes)
CREATE TABLE reading (device int) WITH (autovacuum_enabled = off);
INSERT INTO reading SELECT n % 200 FROM generate_series(1, 20000) n;
ANALYZE reading;
SELECT shows('SELECT count(*) FROM at_site d WHERE d.id IN
	(SELECT fact.device FROM fact JOIN reading ON reading.device = fact.device)', 'Range Filter Gate');
-- Joins of partitions: of rows of a table, and of those of a join
CREATE TABLE event (day int, device int, a int, b int) PARTITION BY LIST (day);
SELECT format('CREATE TABLE event%s PARTITION OF event FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', d, d)
FROM generate_series(0, 1) d \gexec
INSERT INTO event SELECT d, d * 10 + n % 10, n / 10, n / 10 FROM generate_series(0, 1) d, generate_series(1, 1000) n;
CREATE TABLE shift (day int, a int, b int) PARTITION BY LIST (day);
SELECT format('CREATE TABLE shift%s PARTITION OF shift FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', d, d)
FROM generate_series(0, 1) d \gexec
INSERT INTO shift SELECT d, n, n FROM generate_series(0, 1) d, generate_series(0, 100) n;
ANALYZE event, shift;
SET enable_partitionwise_join = on;
SELECT asked('SELECT count(*) FROM event e JOIN fact ON e.day = fact.day AND e.device = fact.device WHERE e.a = 7 AND e.b = 7 AND fact.day < 2');
SELECT asked('SELECT count(*) FROM fact JOIN event e ON e.day = fact.day AND e.device = fact.device WHERE e.a = 7 AND e.b = 7 AND fact.day < 2');
-- (of which PostgreSQL 19 plans one with another join)
SELECT asked('SELECT count(*) FROM event e JOIN shift s ON e.day = s.day AND e.a = s.a AND e.b = s.b
	JOIN fact ON e.day = fact.day AND e.device = fact.device WHERE s.a < 20 AND e.b < 20 AND fact.day < 2') ~ '^(hash table of 1 scans(, )?)+$';
RESET enable_partitionwise_join;
-- A hash join that gives its values to gates is made cheaper once
CREATE INDEX ON event USING rangefilter (device);
VACUUM ANALYZE event;
SET enable_nestloop = off;
SELECT cost_share('SELECT count(*) FROM event e JOIN fact ON e.device = fact.device WHERE e.a = 7 AND e.b = 7');
RESET enable_nestloop;

-- A value that all members hold closes no gate; of a combination that is not known
SELECT condition, cost_share('SELECT * FROM fact WHERE ' || condition)
FROM unnest('{kind = (SELECT 1),device = (SELECT 1),kind = ANY (ARRAY(SELECT 1)),kind = (SELECT 1) AND device = (SELECT 1)}'::text[]) condition;

-- EXISTS on the inner side of a loop: once into a hash table, as without gates
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT shows('SELECT count(*) FROM site s JOIN device d ON d.id = s.id + 1
	WHERE d.site = 7 OR EXISTS (SELECT FROM fact WHERE fact.device = d.id AND day < 2 AND n < 10)', 'hashed SubPlan');
SELECT shows('SELECT count(*) FROM site s JOIN device d ON d.id = s.id + 1
	WHERE d.site = 7 OR EXISTS (SELECT FROM kind k JOIN fact ON fact.kind + 0 >= k.id
		WHERE k.name = ''kind 1'' AND fact.device = d.id AND day < 2 AND n < 10)', 'hashed SubPlan');
-- ... each of them, and it costs no more than without gates, whatever else is joined
SELECT shows('SELECT count(*) FROM site s JOIN device d ON d.id = s.id + 1' || condition, 'hashed SubPlan.*hashed SubPlan') AS hashed,
	cost_share('SELECT count(*) FROM site s JOIN device d ON d.id = s.id + 1 JOIN kind k ON k.id = d.site' || condition) <= 1 AS cheap
FROM (SELECT ' WHERE d.site = CASE WHEN d.id > 0 THEN 7 END OR EXISTS (SELECT FROM fact WHERE fact.device = d.id AND day < 2 AND n < 10)
	OR EXISTS (SELECT FROM fact WHERE fact.device = d.id + 1 AND day < 2 AND n < 10)') x (condition);
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;

-- What a gate above one scan costs: a share of the scan, and the questions, in operators.
CREATE FUNCTION charged(query text, OUT share numeric, OUT asking numeric, OUT row_share numeric)
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	gate jsonb;
	scan jsonb;
	path CONSTANT jsonpath := 'strict $.**?(@."Custom Plan Provider" == "Range Filter Gate")';
	child CONSTANT jsonpath := '$.Plans[*] ? (@."Parent Relationship" != "InitPlan")';
BEGIN
	PERFORM set_config('cpu_operator_cost', '0', true);
	DISCARD PLANS;
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	gate := jsonb_path_query_first(plan, path);
	scan := jsonb_path_query_first(gate, child);
	share := (gate->>'Total Cost')::numeric / (scan->>'Total Cost')::numeric;
	row_share := (gate->>'Plan Rows')::numeric / (scan->>'Plan Rows')::numeric;
	PERFORM set_config('cpu_operator_cost', '100', true);
	DISCARD PLANS;
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	gate := jsonb_path_query_first(plan, path);
	scan := jsonb_path_query_first(gate, child);
	asking := round(((gate->>'Total Cost')::numeric - share * (scan->>'Total Cost')::numeric) / 100, -1);
	share := round(share, 2);
	row_share := round(row_share, 2);
	PERFORM set_config('cpu_operator_cost', '0.0025', true);
END
$$;
CREATE TABLE part (a int, b int, c int) WITH (autovacuum_enabled = off);
CREATE TABLE part1 () INHERITS (part) WITH (autovacuum_enabled = off);
CREATE TABLE part2 () INHERITS (part) WITH (autovacuum_enabled = off);
INSERT INTO part1 SELECT n, n % 100, n FROM generate_series(1, 1000) n;
INSERT INTO part2 SELECT n, n % 100, n FROM generate_series(1001, 4000) n;
CREATE INDEX part1_a ON part1 USING rangefilter (a);
CREATE INDEX part1_b ON part1 USING rangefilter (b);
CREATE INDEX part1_c ON part1 USING rangefilter ((c / 2));
ANALYZE part, part1, part2;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_material = off;
-- of values known when the query begins: one, many, ranges, several columns
SELECT condition, (charged('SELECT * FROM part WHERE ' || condition)).*
FROM unnest('{a = (SELECT 1),b = (SELECT 1),a > (SELECT 1),a = ANY (ARRAY(SELECT 1)),"a IN ((SELECT 1), 2, 3)",
	(SELECT 1) = a,a = (SELECT 1) AND b = (SELECT 1),a = (SELECT 1) AND b > (SELECT 1),a = (SELECT 1) AND a = (SELECT 2),
	c / 2 = (SELECT 1),a = (SELECT 1) OR b = (SELECT 1),a = (SELECT 1) AND b = 7,a = 7,"a IN (5, 7, 9)"}'::text[]) condition;
PREPARE by_parameter (int) AS SELECT * FROM part WHERE a = $1;
SET plan_cache_mode = force_generic_plan;
SELECT (charged('EXECUTE by_parameter (1)')).*;
RESET plan_cache_mode;
SELECT condition, (charged('SELECT * FROM fact WHERE day = 3 AND ' || condition)).*
FROM unnest('{device = (SELECT 1),kind = (SELECT 1),device = ANY (ARRAY(SELECT 1)),"device IN ((SELECT 1), 2, 3)",
	device = (SELECT 1) AND kind = (SELECT 1),device = (SELECT 1) AND n = (SELECT 1),device + 0 = (SELECT 1) AND kind > (SELECT 1)}'::text[]) condition;
-- of values of another relation
SELECT condition, (charged('SELECT * FROM device JOIN part ON ' || condition || ' WHERE device.id = 77')).*
FROM unnest('{a = site,b = site,a BETWEEN site AND site + 10,a = site AND b = site + 1,a = site AND c = site,c / 2 = site,
	a = site OR b = site}'::text[]) condition;
SELECT condition, (charged('SELECT * FROM device JOIN fact ON ' || condition || ' WHERE device.id = 77 AND day = 3')).*
FROM unnest('{device.id = fact.device,fact.device = site,kind = site,fact.device = site AND kind = site,fact.device = site AND kind = 2,
	kind = (SELECT 1) AND n = site}'::text[]) condition;
-- of what is not known
CREATE TABLE strange () INHERITS (part) WITH (autovacuum_enabled = off);
INSERT INTO strange SELECT n, n % 100, n FROM generate_series(4001, 5000) n;
CREATE INDEX ON strange USING rangefilter (a);
DROP INDEX part1_a;
SELECT (charged('SELECT * FROM part WHERE a = (SELECT 1)')).*;
CREATE INDEX ON strange USING rangefilter (b);
DROP INDEX part1_b;
SELECT (charged('SELECT * FROM part WHERE b = (SELECT 1)')).*;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET enable_material;
DROP SCHEMA gate_loop CASCADE;
