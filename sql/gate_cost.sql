-- What joins into a table with gates cost: which one the planner takes by itself.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA gate_cost;
SET search_path = gate_cost, public;
-- Larger tables, too, are to have gates.
SET rangefilter.defer_partitions = 1000;

-- The joins of a plan, each with what its outer side is, and what is skipped.
CREATE FUNCTION chosen(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(concat(j->>'Node Type', ' ' || (j->>'Hash Cond')), '; ')
			FROM jsonb_path_query(plan, 'strict $.**?(@."Node Type" like_regex "Join|Loop|Gather")') j)
		|| ': skipped ' || coalesce((SELECT sum((g->>'Partitions Skipped')::int) || ' of ' || sum((g->>'Partitions Considered')::int)
									 FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Gate")') g),
									'nothing');
END
$$;
-- The cost of a query's plan, of the part below an aggregate.
CREATE FUNCTION cost(query text) RETURNS float
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Total Cost';
END
$$;

-- A star: 40 days, on each of which 5 of 200 devices report 200 times
CREATE TABLE fact (day int, device_id int, model_id int, v int) PARTITION BY LIST (day);
SELECT format('CREATE TABLE fact%s PARTITION OF fact FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', d, d)
FROM generate_series(0, 39) d \gexec
INSERT INTO fact SELECT d, d * 5 + n % 5, n % 10, n FROM generate_series(0, 39) d, generate_series(1, 1000) n;
CREATE INDEX ON fact USING rangefilter (device_id);
CREATE TABLE dim (id int PRIMARY KEY, name text, site int) WITH (autovacuum_enabled = off);
INSERT INTO dim SELECT g, 'device ' || g, g / 50 FROM generate_series(0, 199) g;
CREATE TABLE model (id int PRIMARY KEY, maker int) WITH (autovacuum_enabled = off);
INSERT INTO model SELECT g, g % 2 FROM generate_series(0, 9) g;
VACUUM ANALYZE fact, dim, model;

-- Few values: a nested loop; more: a hash join, with gates as well
SELECT chosen('SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.name = ''device 77''');
SELECT chosen('SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.site = 2');
EXPLAIN (COSTS OFF) SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.site = 0 AND day IN (0, 20, 39);
SELECT chosen('SELECT count(*) FROM fact WHERE device_id IN (SELECT id FROM dim WHERE site = 2)');
-- the join that leaves out partitions comes first
SELECT chosen('SELECT count(*) FROM fact JOIN model ON fact.model_id = model.id JOIN dim ON fact.device_id = dim.id WHERE dim.site = 2 AND model.maker = 1');
-- where reading everything would pay parallel workers, a few partitions do not
SET enable_nestloop = off;
SET parallel_setup_cost = 200;
SET parallel_tuple_cost = 0;
SELECT chosen('SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.id BETWEEN 100 AND 104');
SELECT chosen('SELECT count(*) FROM fact JOIN dim ON fact.device_id + 0 = dim.id WHERE dim.id BETWEEN 100 AND 104') ~ 'Gather' AS parallel;
-- nor if workers cost nothing themselves: each opens all partitions
SET parallel_setup_cost = 0;
RESET parallel_tuple_cost;
SELECT chosen('SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.id BETWEEN 100 AND 104');
-- nor by a hash table that workers share, which gives gates no values
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
SET cpu_operator_cost = 0.0001;
SELECT chosen('SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.id BETWEEN 100 AND 104');
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
RESET cpu_operator_cost;
RESET parallel_setup_cost;
RESET enable_nestloop;

-- What a hash join costs, by how much it is expected to leave out
SET max_parallel_workers_per_gather = 0;
SET enable_nestloop = off;
SET enable_mergejoin = off;
CREATE FUNCTION share(query text) RETURNS numeric
LANGUAGE plpgsql AS
$$
DECLARE
	a float := cost(query);
	b float;
BEGIN
	PERFORM set_config('rangefilter.enable', 'off', true);
	b := cost(query);
	PERFORM set_config('rangefilter.enable', 'on', true);
	RETURN round((a / b)::numeric, 1);
END
$$;
SELECT join_to, share('SELECT * FROM fact JOIN ' || join_to)
FROM unnest('{"dim ON device_id = id WHERE id < 5",
	"dim ON device_id = id WHERE id < 20",
	"dim ON device_id = id WHERE id < 50",
	"dim ON device_id = id",
	"dim ON device_id = id::bigint WHERE id < 5",
	"dim ON device_id + 0 = id WHERE id < 5",
	"dim ON v = id WHERE id < 5",
	"dim ON device_id = id::numeric WHERE id < 5",
	"generate_series(1, 5) id ON device_id = id",
	"generate_series(1, 20000) id ON device_id = id",
	"(SELECT DISTINCT id FROM dim WHERE id < 5) d ON device_id = id"}'::text[]) join_to;
-- of UNION ALL this is not known
SELECT share('SELECT * FROM (SELECT day, device_id FROM fact UNION ALL SELECT day, device_id FROM fact) f JOIN dim ON device_id = id WHERE id < 5');
-- a partial index is not asked for the values of a join
CREATE INDEX fact_partial ON fact USING rangefilter (day) WHERE v > 0;
SELECT share('SELECT * FROM fact JOIN dim ON day = id WHERE id < 5');
DROP INDEX fact_partial;
-- few values, of as many rows as are read from a hash table, and of more
SELECT share('SELECT * FROM fact WHERE device_id IN (SELECT model_id FROM fact WHERE day < 11)');
SET enable_hashagg = off;
SET enable_sort = off;
SELECT share('SELECT * FROM fact WHERE device_id IN (SELECT model_id FROM fact WHERE day < 10)');
SELECT share('SELECT * FROM fact WHERE device_id IN (SELECT model_id FROM fact WHERE day < 11)');
RESET enable_hashagg;
RESET enable_sort;
-- as many values as are asked for, and one more
CREATE TABLE wide (day int, k int) PARTITION BY LIST (day);
CREATE TABLE wide1 PARTITION OF wide FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE wide2 PARTITION OF wide FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO wide SELECT 1, 0 FROM generate_series(1, 20000);
INSERT INTO wide SELECT 2, n FROM generate_series(1, 20000) n;
CREATE INDEX ON wide USING rangefilter (k);
CREATE TABLE many (id int) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT generate_series(1, 1000);
VACUUM ANALYZE wide, many;
SELECT share('SELECT * FROM wide JOIN many ON k = id') < 1 AS cheaper;
INSERT INTO many VALUES (1001);
VACUUM ANALYZE many;
SELECT share('SELECT * FROM wide JOIN many ON k = id') < 1 AS cheaper;
-- where scans cost nothing, nothing is saved
SET seq_page_cost = 0;
SET cpu_tuple_cost = 0;
SELECT share('SELECT * FROM fact JOIN dim ON device_id = id WHERE id < 5');
RESET seq_page_cost;
RESET cpu_tuple_cost;
-- joins that keep the rows of fact
SELECT share('SELECT * FROM fact LEFT JOIN (SELECT * FROM dim WHERE id < 5) d ON device_id = id');
SELECT share('SELECT * FROM fact WHERE NOT EXISTS (SELECT FROM dim WHERE device_id = id AND id < 5)');
SELECT share('SELECT * FROM (SELECT * FROM dim WHERE id < 5) d LEFT JOIN fact ON device_id = id');
SELECT share('SELECT * FROM fact WHERE device_id IN (SELECT id FROM dim WHERE id < 5)');
-- tables that ANALYZE does not know
CREATE TABLE unknown (day int, device_id int) PARTITION BY LIST (day);
CREATE TABLE unknown1 PARTITION OF unknown FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE unknown2 PARTITION OF unknown FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO unknown SELECT 1 + n % 2, n FROM generate_series(1, 20000) n;
CREATE INDEX ON unknown USING rangefilter (device_id);
SELECT share('SELECT * FROM unknown JOIN dim ON device_id = id WHERE id = 3 OR name = ''x''');
-- of which it knows only the partitions, and all but one partition
ANALYZE unknown1, unknown2;
SELECT share('SELECT * FROM unknown JOIN dim ON device_id = id WHERE id = 3 OR name = ''x''');
ANALYZE unknown;
CREATE TABLE unknown3 PARTITION OF unknown FOR VALUES IN (3) WITH (autovacuum_enabled = off);
INSERT INTO unknown SELECT 3, n FROM generate_series(1, 20000) n;
SELECT share('SELECT * FROM unknown JOIN dim ON device_id = id WHERE id = 3 OR name = ''x''');
-- What a scan with a gate costs, where each partition has all values: by one condition, one on several values, and two
CREATE INDEX ON fact USING rangefilter (model_id);
SET plan_cache_mode = force_generic_plan;
PREPARE equal (int) AS SELECT * FROM fact WHERE model_id = $1;
PREPARE any_of (int[]) AS SELECT * FROM fact WHERE model_id = ANY ($1);
PREPARE below (int, int) AS SELECT * FROM fact WHERE model_id = $1 AND model_id < $2;
SELECT query, share(query) FROM unnest('{EXECUTE equal (1),EXECUTE any_of (NULL),"EXECUTE below (1, 2)"}'::text[]) query;
RESET plan_cache_mode;
-- in cursors there are no gates
SET cursor_tuple_fraction = 1;
EXPLAIN (COSTS OFF) DECLARE c CURSOR FOR SELECT count(*) FROM fact JOIN dim ON fact.device_id = dim.id WHERE dim.site = -2 AND day < 2;
-- Where a policy hides rows, gates do not ask by operators that may tell of them
CREATE TABLE hidden (day int, x numeric) PARTITION BY LIST (day);
CREATE TABLE hidden1 PARTITION OF hidden FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE hidden2 PARTITION OF hidden FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO hidden SELECT 1 + n / 10001, n FROM generate_series(1, 20000) n;
CREATE INDEX ON hidden USING rangefilter (x);
VACUUM ANALYZE hidden;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
CREATE POLICY early ON hidden USING (day < 3);
CREATE ROLE regress_rf_gate_cost;
GRANT USAGE ON SCHEMA gate_cost TO regress_rf_gate_cost;
GRANT SELECT ON hidden TO regress_rf_gate_cost;
SELECT share('SELECT * FROM hidden JOIN (SELECT 5::numeric AS id OFFSET 0) d ON x = id') < 0.8 AS cheaper;
SET ROLE regress_rf_gate_cost;
SELECT share('SELECT * FROM hidden JOIN (SELECT 5::numeric AS id OFFSET 0) d ON x = id') < 0.8 AS cheaper;
RESET ROLE;
DROP OWNED BY regress_rf_gate_cost;
DROP ROLE regress_rf_gate_cost;
DROP SCHEMA gate_cost CASCADE;
