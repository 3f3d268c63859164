--
-- Plans tell nothing of rows that policies or security barriers hide: for a value
-- that only a hidden row has and one that none has they are the same, letter by
-- letter, however they are shown.
--
CREATE SCHEMA secured;
SET search_path = secured, public;
SET client_min_messages = warning;
SET jit = off;
SET track_counts = on;
LOAD 'rangefilter';

-- What EXPLAIN says of a query, all in one.  What the query did is undone.
CREATE FUNCTION explained(query text, options text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	line text;
	lines text := '';
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) ', options) || query LOOP
		lines := lines || line || E'\n';
	END LOOP;
	RAISE EXCEPTION USING ERRCODE = 'RFUND', DETAIL = lines;
EXCEPTION WHEN SQLSTATE 'RFUND' THEN
	GET STACKED DIAGNOSTICS lines = PG_EXCEPTION_DETAIL;
	RETURN lines;
END
$$;

-- The same with names for a value and what is computed of it.
CREATE FUNCTION explained(query text, options text, value int) RETURNS text
LANGUAGE sql AS
$$
	SELECT replace(replace(replace(explained(replace(query, 'V', value::text), options), value::text, 'V'),
		(value + 1)::text, 'V + 1'), (value + 50)::text, 'V + 50')
$$;

-- In which ways of showing it the plan of a query tells values apart: V stands for
-- them.  Hidden rows have 14711 and the 50 numbers behind it; 14811, 14901 and those
-- behind them are nowhere.
CREATE FUNCTION told(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	way text;
	ways text[] := ARRAY['COSTS ON', 'VERBOSE', 'COSTS OFF', 'SETTINGS', 'FORMAT JSON', 'FORMAT YAML',
		'FORMAT XML', 'VERBOSE, FORMAT JSON', 'ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF',
		'ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON'];
	result text[] := '{}';
	plan text;
BEGIN
	IF current_setting('server_version_num')::int >= 160000 AND query !~ 'EXECUTE' THEN
		ways := ways || ARRAY['GENERIC_PLAN', 'GENERIC_PLAN, FORMAT JSON'];
	END IF;
	FOREACH way IN ARRAY ways LOOP
		plan := explained(query, way, 14711);
		IF plan <> explained(query, way, 14811) OR plan <> explained(query, way, 14901) THEN
			result := result || (regexp_match(way, '[A-Z]+'))[1];
		END IF;
	END LOOP;
	RETURN CASE WHEN result = '{}' THEN 'nothing' ELSE (SELECT string_agg(DISTINCT w, ' ') FROM unnest(result) w) END;
END
$$;

-- What a query with a value does: rows, or an error.
CREATE FUNCTION outcome(query text, value int) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	n bigint;
BEGIN
	PERFORM setseed(0);
	EXECUTE replace(query, 'V', value::text) INTO n;
	RETURN n || ' rows, then ' || random();
EXCEPTION WHEN division_by_zero OR array_subscript_error OR datatype_mismatch THEN
	RETURN sqlerrm;
END
$$;

-- The same of a condition with the field of a record, which may have no value or one of another type.
CREATE FUNCTION by_field(value int, kind text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	r record;
	n bigint;
BEGIN
	IF kind = 'int' THEN
		SELECT 100000 AS x INTO r;
	ELSIF kind = 'text' THEN
		SELECT 'y'::text AS x INTO r;
	END IF;
	SELECT count(*) INTO n FROM t WHERE tenant < r.x AND k = value;
	RETURN n || ' rows';
EXCEPTION WHEN others THEN
	RETURN sqlerrm;
END
$$;

-- The same of a table with children that are no partitions.
CREATE FUNCTION by_field_of_h(value int, given bool) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	r record;
	n bigint;
BEGIN
	IF given THEN
		SELECT 100000 AS x INTO r;
	END IF;
	SELECT count(*) INTO n FROM h WHERE tenant < r.x AND k = value;
	RETURN n || ' rows';
EXCEPTION WHEN others THEN
	RETURN sqlerrm;
END
$$;

-- Costs and rows of the nodes of a plan, without gates for single scans.
CREATE FUNCTION costs(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(DISTINCT node, ' ' ORDER BY node)
		FROM (SELECT format('%s/%s/%s', n->>'Startup Cost', n->>'Total Cost', n->>'Plan Rows') AS node
			FROM jsonb_path_query(plan, '$.** ? (exists(@."Node Type"))') n) nodes);
END
$$;
CREATE FUNCTION same_costs(query text) RETURNS boolean
LANGUAGE plpgsql AS
$$
DECLARE
	a text;
	b text;
BEGIN
	a := costs(query);
	PERFORM set_config('rangefilter.enable', 'off', true);
	b := costs(query);
	PERFORM set_config('rangefilter.enable', 'on', true);
	RETURN a = b;
END
$$;

-- Are the rows of a query, for a value that is there, the same without skipping?
CREATE FUNCTION same_rows(query text) RETURNS boolean
LANGUAGE plpgsql AS
$$
DECLARE
	a text;
	b text;
BEGIN
	query := format('SELECT string_agg(q::text, '','' ORDER BY q::text) FROM (%s) q', replace(query, 'V', '14698'));
	EXECUTE query INTO a;
	PERFORM set_config('rangefilter.enable', 'off', true);
	EXECUTE query INTO b;
	PERFORM set_config('rangefilter.enable', 'on', true);
	RETURN a IS NOT DISTINCT FROM b;
END
$$;

-- Pages that a query reads, or its planning: the fewest, since it may read catalogs, too.
CREATE FUNCTION buffers(query text, options text, rounds int DEFAULT 4) RETURNS bigint
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	least_read bigint;
BEGIN
	FOR i IN 1 .. rounds LOOP
		EXECUTE format('EXPLAIN (%s, FORMAT JSON) ', options) || query INTO plan;
		least_read := least(least_read, (SELECT sum((o->>'Shared Hit Blocks')::bigint + (o->>'Shared Read Blocks')::bigint)
			FROM jsonb_path_query(plan, '$[0].*') o));
	END LOOP;
	RETURN least_read;
END
$$;

-- The partitions of t that a query scans.
CREATE FUNCTION scanned(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	before bigint[];
BEGIN
	before := ARRAY(SELECT pg_stat_get_xact_numscans(('t' || p)::regclass) FROM generate_series(1, 4) p);
	EXECUTE query;
	RETURN (SELECT string_agg('t' || p, ' ') FROM generate_series(1, 4) p
		WHERE pg_stat_get_xact_numscans(('t' || p)::regclass) > before[p]);
END
$$;

-- Tenant 1, which has the even numbers, is visible.
CREATE TABLE t (part int, id int, k int, tenant int, note text COLLATE "C") PARTITION BY LIST (part);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%1$s) WITH (autovacuum_enabled = off)', p) FROM generate_series(1, 4) p \gexec
INSERT INTO t SELECT (g - 10000) / 2000 + 1, g, g, 1 + g % 2, 'n' || g FROM generate_series(10000, 17999) g
	WHERE g NOT BETWEEN 14700 AND 15100;
INSERT INTO t SELECT 3, g, g, 2, 'n' || g FROM generate_series(14711, 14761) g;
-- Rows that come after each other fill the same blocks, so the blocks of a leaf tell, too.
CREATE INDEX t_k ON t USING rangefilter (k) WITH (filter = snarf, pages_per_range = 4);
CREATE INDEX t_note ON t USING rangefilter (note);
CREATE INDEX t_big ON t USING rangefilter ((k::bigint)) WITH (pages_per_range = 4);
CREATE INDEX t_id ON t USING btree (id);
VACUUM t;
-- of k nothing is known but by its index
ANALYZE t (tenant);
-- A table that is open to all, whose keys are others.
CREATE TABLE o (part int, k int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE o%s PARTITION OF o FOR VALUES IN (%1$s) WITH (autovacuum_enabled = off)', p) FROM generate_series(1, 3) p \gexec
INSERT INTO o SELECT g / 1000 + 1, g FROM generate_series(0, 2999) g;
CREATE INDEX o_k ON o USING rangefilter (k);
VACUUM o;
-- One that is partitioned as t is, and joined with it partition by partition.
CREATE TABLE alike (part int, id int) PARTITION BY LIST (part);
SELECT format('CREATE TABLE alike%s PARTITION OF alike FOR VALUES IN (%1$s) WITH (autovacuum_enabled = off)', p) FROM generate_series(1, 4) p \gexec
INSERT INTO alike SELECT part, id FROM t WHERE id % 1000 < 2;
ANALYZE alike;
-- What joins get their values from.
CREATE TABLE d (id int, name text);
INSERT INTO d SELECT g, 'd' || g FROM generate_series(14700, 15100) g;
ANALYZE d;
-- Inheritance.
CREATE TABLE h (k int, tenant int, j int);
CREATE TABLE h1 () INHERITS (h);
CREATE TABLE h2 () INHERITS (h);
INSERT INTO h1 SELECT k, tenant, -k FROM t WHERE part < 4;
INSERT INTO h2 SELECT k, tenant, -k FROM t WHERE part = 4;
CREATE INDEX ON h1 USING rangefilter (k);
CREATE INDEX ON h2 USING rangefilter (k);
CREATE INDEX h1_w ON h1 USING wormhole (tenant);
CREATE INDEX h1_j ON h1 USING btree (j);
VACUUM h, h1, h2;

CREATE ROLE regress_rf_owner;
CREATE ROLE regress_rf_reader;
CREATE ROLE regress_rf_bypass BYPASSRLS;
CREATE ROLE regress_rf_viewer;
GRANT USAGE ON SCHEMA secured TO regress_rf_owner, regress_rf_reader, regress_rf_bypass, regress_rf_viewer;
GRANT SELECT ON ALL TABLES IN SCHEMA secured TO regress_rf_reader, regress_rf_bypass;
GRANT UPDATE, DELETE ON t TO regress_rf_reader;
GRANT SELECT ON o, d TO regress_rf_viewer;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON t USING (tenant = 1);
ALTER TABLE t3 ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON t3 USING (tenant = 1);
ALTER TABLE h ENABLE ROW LEVEL SECURITY;
CREATE POLICY visible ON h USING (tenant = 1);
ALTER TABLE h1 ENABLE ROW LEVEL SECURITY;

CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM t WHERE tenant = 1;
CREATE VIEW union_barrier WITH (security_barrier) AS SELECT k, part FROM t WHERE tenant = 1 UNION ALL SELECT k, part FROM o;
CREATE VIEW outer_view AS SELECT * FROM barrier WHERE part > 0;
-- the policies are those for the view's owner
CREATE VIEW of_reader AS SELECT * FROM t;
ALTER VIEW of_reader OWNER TO regress_rf_reader;
GRANT SELECT ON barrier, union_barrier, outer_view, of_reader TO regress_rf_viewer, regress_rf_bypass;
GRANT UPDATE ON barrier TO regress_rf_viewer;

-- What calls these reads what they read: EXPLAIN of a query, or of one that has the
-- planner call them.
CREATE FUNCTION called(value int) RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT count(*) FROM t WHERE k = value); END $$;
CREATE FUNCTION called_by_planner(value int) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RETURN (SELECT count(*) FROM t WHERE k = value); END $$;
CREATE FUNCTION called_parallel(value int) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM count(*) FROM t WHERE k = value; END $$;
-- A cursor's query that was started before.
CREATE FUNCTION rest_read(cursor refcursor) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	r record;
BEGIN
	LOOP
		FETCH cursor INTO r;
		EXIT WHEN NOT FOUND;
	END LOOP;
END
$$;
CREATE FUNCTION read_on(value int) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	r record;
	result bigint;
BEGIN
	FOR r IN SELECT * FROM t WHERE k BETWEEN 10000 AND 10100 OR k = value LOOP
		IF result IS NULL THEN
			result := buffers((SELECT format('SELECT rest_read(%L)', name) FROM pg_cursors
				WHERE statement ~ 'k BETWEEN 10000'), 'ANALYZE, BUFFERS', 1);
		END IF;
	END LOOP;
	RETURN result;
END
$$;

CREATE TABLE queries (n int, query text);
INSERT INTO queries VALUES
	(1, 'SELECT * FROM t WHERE k = V'),
	(2, 'SELECT * FROM t WHERE k BETWEEN V AND V + 50'),
	(3, 'SELECT count(*) FROM t WHERE k IN (V, 3)'),
	(4, 'SELECT * FROM t WHERE note = ''nV'''),
	(5, 'SELECT min(id), max(id) FROM t WHERE k = V'),
	(6, 'SELECT * FROM t WHERE k = (SELECT V)'),
	(7, 'SELECT * FROM t WHERE k::bigint = V'),
	(8, 'SELECT * FROM t JOIN o ON o.k = t.k WHERE t.k = V'),
	(9, 'SELECT * FROM t JOIN d ON d.id = t.k WHERE d.name = ''dV'''),
	(10, 'SELECT * FROM d, LATERAL (SELECT * FROM t WHERE t.k = d.id OFFSET 0) x WHERE d.name = ''dV'''),
	(11, 'SELECT * FROM d, LATERAL (SELECT * FROM t WHERE t.k = d.id LIMIT 1) x WHERE d.id = V'),
	(12, 'SELECT (SELECT count(*) FROM t WHERE k = V), count(*) FROM o'),
	(13, 'SELECT * FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = V AND t.part = o.part)'),
	(14, 'SELECT * FROM (SELECT k FROM t UNION ALL SELECT k FROM o) u WHERE k = V'),
	(15, 'WITH x AS MATERIALIZED (SELECT * FROM t WHERE k = V) SELECT count(*) FROM x'),
	(16, 'UPDATE t SET note = ''x'' WHERE k = V'),
	(17, 'DELETE FROM t WHERE k = V'),
	(18, 'SELECT * FROM t WHERE k = V ORDER BY id LIMIT 1'),
	(19, 'SELECT * FROM t3 WHERE k = V'),
	(20, 'SELECT * FROM t3 WHERE k::bigint = V'),
	(21, 'SELECT * FROM h WHERE k = V'),
	(22, 'SELECT * FROM t WHERE k = V OR k = V + 1 AND note = ''nV''');
PREPARE by_value (int) AS SELECT * FROM t WHERE k = $1;
GRANT SELECT ON queries TO regress_rf_reader, regress_rf_bypass, regress_rf_viewer;

-- All is told to those who may see all, so these queries could tell.
SELECT n FROM queries WHERE told(query) = 'nothing' ORDER BY n;
SET ROLE regress_rf_bypass;
SELECT told('SELECT * FROM t WHERE k = V') <> 'nothing' AS told;
RESET ROLE;
ALTER TABLE t OWNER TO regress_rf_owner;
SET ROLE regress_rf_owner;
SELECT told('SELECT * FROM t WHERE k = V') <> 'nothing' AS told;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
SELECT told('SELECT * FROM t WHERE k = V');
ALTER TABLE t NO FORCE ROW LEVEL SECURITY;
RESET ROLE;
ALTER TABLE t OWNER TO current_user;

-- To whom rows are hidden, nothing.
SET ROLE regress_rf_reader;
SELECT * FROM (SELECT n, told(query) FROM queries OFFSET 0) q WHERE told <> 'nothing' ORDER BY n;
-- Costs and rows are those of not skipping.  (That is not so of open tables.)
SELECT n, query FROM queries WHERE query !~ ' o' AND NOT same_costs(replace(query, 'V', '14711')) ORDER BY n;
-- also where the planner gives parameters to scans that gates are above
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT explained(query, 'COSTS OFF') ~ 'h1_j' AS nested, same_costs(query)
	FROM (VALUES ('SELECT * FROM d JOIN h ON h.j = d.id WHERE d.name = ''d14711'' AND h.k >= 10000')) v (query);
RESET enable_hashjoin;
RESET enable_mergejoin;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 14711;
EXPLAIN (COSTS OFF) SELECT * FROM t3 WHERE k = 14711;
-- However the planner would rather do it
SET plan_cache_mode = force_generic_plan;
SELECT told('EXECUTE by_value (V)');
SET plan_cache_mode = force_custom_plan;
SELECT told('EXECUTE by_value (V)');
RESET plan_cache_mode;
SET enable_seqscan = off;
SELECT * FROM (SELECT n, told(query) FROM queries OFFSET 0) q WHERE told <> 'nothing' ORDER BY n;
RESET enable_seqscan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT * FROM (SELECT n, told(query) FROM queries WHERE query ~ 'JOIN' OFFSET 0) q WHERE told <> 'nothing' ORDER BY n;
RESET enable_hashjoin;
RESET enable_mergejoin;
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SELECT * FROM (SELECT n, told(query) FROM queries OFFSET 0) q WHERE told <> 'nothing' ORDER BY n;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;
-- The rows are those that they are.  Gates do close where nobody looks.
SELECT n FROM queries WHERE query !~ 'UPDATE|DELETE|WITH' AND NOT same_rows(query);
SELECT count(*), min(k), max(k) FROM t WHERE k BETWEEN 14600 AND 14711;
SELECT scanned('SELECT count(*) FROM t WHERE k = 14698');
-- They are kept where partitions are joined one by one.
SET enable_partitionwise_join = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*) AS gates FROM regexp_matches(explained('SELECT * FROM alike JOIN t USING (part, id) WHERE k = 14698', 'COSTS OFF'), 'Range Filter Append', 'g');
RESET enable_partitionwise_join;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- But not where somebody looks at what calls a function.
SELECT scanned('SELECT called(14698)');
SELECT query, options, buffers(format(query, 14711), options) = buffers(format(query, 14811), options) AS same FROM (VALUES
	('SELECT called(%s)', 'ANALYZE, BUFFERS'),
	('SELECT called_by_planner(%s)', 'BUFFERS')) v (query, options);
SELECT (SELECT min(read_on(14711)) FROM generate_series(1, 4)) = (SELECT min(read_on(14811)) FROM generate_series(1, 4)) AS same;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SELECT buffers('SELECT called_parallel(14711)', 'ANALYZE, BUFFERS') = buffers('SELECT called_parallel(14811)', 'ANALYZE, BUFFERS') AS same;
-- Parallel workers skip, too, though they load the library when the query has begun.
SELECT pg_stat_force_next_flush();
SELECT pg_stat_get_tuples_returned('t1'::regclass) AS t1, pg_stat_get_tuples_returned('t3'::regclass) AS t3 \gset before_
SELECT count(*) FROM t WHERE k = 14698;
SELECT pg_stat_force_next_flush();
SELECT pg_stat_get_tuples_returned('t1'::regclass) > :before_t1 AS t1, pg_stat_get_tuples_returned('t3'::regclass) > :before_t3 AS t3;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET parallel_leader_participation;
-- Functions tell nothing either.
\set VERBOSITY terse
-- A user's own conditions and subqueries run, or not, whatever hidden rows have.
SET enable_nestloop = off; SET enable_mergejoin = off;
SELECT outcome(query, 14711) = outcome(query, 14811) AS same, outcome(query, 14811) !~ 'rows' AS failed, query FROM (VALUES
	('SELECT count(*) FROM t JOIN d ON d.id = t.k WHERE d.name = ''dV'' AND 1 / (t.part - 3) IS NOT NULL'),
	('SELECT count(*) FROM t JOIN d ON d.id = t.k WHERE d.name = ''dV'' AND (ARRAY[ARRAY[1], CASE t.part WHEN 3 THEN ARRAY[1, 2] ELSE ARRAY[1] END])[1][1] IS NOT NULL'),
	('SELECT count(*) FROM t JOIN d ON d.id = t.k WHERE d.name = ''dV'' AND GREATEST(CASE t.part WHEN 3 THEN ROW(1) END, CASE t.part WHEN 3 THEN ROW(''x''::text) END) IS NULL'),
	('SELECT count(*) FROM t JOIN d ON d.id = t.k WHERE d.name = ''dV'' AND ARRAY[ARRAY[1], CASE t.part WHEN 3 THEN ARRAY[1, 2] ELSE ARRAY[1] END] IS NOT NULL'),
	('SELECT count(x) FROM (SELECT k, 1 / (part - 3) AS x FROM t OFFSET 0) s JOIN d ON d.id = s.k WHERE d.name = ''dV'''),
	('SELECT count(*) FROM (SELECT k, part FROM t OFFSET 0) s JOIN d ON d.id = s.k WHERE d.name = ''dV'' AND 1 / (s.part - 3) IS NOT NULL'),
	('SELECT count(*) FROM (SELECT k, part FROM t OFFSET 0) s JOIN d ON d.id = s.k WHERE d.name = ''dV'' AND s.part > (SELECT 1 / (count(*) - count(*)) FROM d)'),
	('SELECT count(*) FROM t WHERE part > (SELECT 1 / (count(*) - count(*)) FROM d) AND k = V'),
	('SELECT count(*) FROM t WHERE part >= (SELECT (random() * 0)::int) AND k = V'),
	('SELECT count(*) FROM t WHERE random() >= 0 * part AND (k = V OR k IN (-1, -2) OR k = -3 OR k = -4 OR k = -5 OR k = -6)'),
	('SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100 + 0 * random()) WHERE k = V'),
	('SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100 + 0 * random()) JOIN d ON d.id = t.k WHERE d.name = ''dV''')) v (query);
RESET enable_nestloop; RESET enable_mergejoin;
-- (A parameter of the query tells nothing, above a scan.)
SET plan_cache_mode = force_generic_plan; SET enable_nestloop = off; SET enable_mergejoin = off;
PREPARE above (int) AS SELECT count(*) FROM (SELECT k, part FROM t OFFSET 0) s JOIN d ON d.id = s.k WHERE d.name = 'd14711' AND s.part > $1;
SELECT explained('EXECUTE above (0)', 'COSTS OFF') ~ 'Partition Hash Cond' AS asked;
RESET plan_cache_mode; RESET enable_nestloop; RESET enable_mergejoin;
-- ... nor the error of a record's field that has no value, or one of another type.
SET plan_cache_mode = force_generic_plan;
SELECT by_field(14711, 'int') = by_field(14811, 'int') AS same, by_field(14711, 'none') = by_field(14811, 'none') AS same,
	by_field(14711, 'text') = by_field(14811, 'text') AS same, by_field(14811, 'none');
SELECT by_field_of_h(14811, true), by_field_of_h(14811, false), by_field_of_h(14711, false);
RESET plan_cache_mode;
SELECT rangefilter_may_contain('t_k', 14711, 14711);
SELECT rangefilter_may_contain('t3_k_idx', 14711, 14711);
SELECT * FROM rangefilter_advise('t', 'k');
SELECT * FROM wormhole_status('h1_w');
SELECT min, max, keys, delta_keys, has_nulls FROM rangefilter_status('t3_k_idx');
SELECT probes, skips, bitmap_scans FROM rangefilter_activity WHERE index = 't3_k_idx'::regclass;
\set VERBOSITY default
RESET ROLE;

-- Below views.  Who may read the table need not be kept from anything.
CREATE TABLE view_queries (n int, query text);
INSERT INTO view_queries VALUES
	(1, 'SELECT * FROM barrier WHERE k = V'),
	(2, 'SELECT * FROM union_barrier WHERE k = V'),
	(3, 'SELECT * FROM outer_view WHERE k BETWEEN V AND V + 50'),
	(4, 'SELECT * FROM d, LATERAL (SELECT * FROM barrier b WHERE b.k = d.id OFFSET 0) x WHERE d.name = ''dV'''),
	(5, 'SELECT * FROM barrier JOIN o USING (k) WHERE k = V'),
	(6, 'UPDATE barrier SET note = ''x'' WHERE k = V'),
	(7, 'SELECT * FROM o WHERE part = (SELECT max(part) FROM barrier WHERE k = V)'),
	(8, 'SELECT * FROM of_reader WHERE k = V');
GRANT SELECT ON view_queries TO regress_rf_viewer, regress_rf_bypass;
SELECT n FROM view_queries WHERE told(query) = 'nothing' ORDER BY n;
SET ROLE regress_rf_bypass;
SELECT told('SELECT * FROM barrier WHERE k = V') <> 'nothing' AS told;
SET ROLE regress_rf_viewer;
SELECT * FROM (SELECT n, told(query) FROM view_queries OFFSET 0) q WHERE told <> 'nothing' ORDER BY n;
SELECT n FROM view_queries WHERE query !~ 'EXECUTE| o|union' AND NOT same_costs(replace(query, 'V', '14711')) ORDER BY n;
RESET ROLE;
-- Below a barrier the user's conditions that core pushes down are not noticed either.
CREATE FUNCTION noticed() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM random(); RETURN 0; END $$;
SET ROLE regress_rf_viewer;
SET enable_nestloop = off; SET enable_mergejoin = off;
SELECT outcome(query, 14711) = outcome(query, 14811) AS same, query FROM (VALUES
	('SELECT count(*) FROM barrier WHERE part > (SELECT 1 / (count(*) - count(*)) FROM d) AND k = V'),
	('SELECT count(*) FROM barrier WHERE part > noticed() AND k = V'),
	('SELECT count(*) FROM barrier b WHERE part > (SELECT count(*) FROM d WHERE random() > 2) AND k = V'),
	('SELECT count(*) FROM barrier b JOIN d ON d.id = b.k WHERE d.name = ''dV'' AND b.part > noticed()'),
	('SELECT count(*) FROM barrier b JOIN d ON d.id = b.k AND b.part > noticed() WHERE d.name = ''dV'''),
	('SELECT count(*) FROM (barrier b JOIN d ON d.id = b.k AND b.part > noticed()) JOIN d x ON x.id = d.id WHERE d.name = ''dV'''),
	('SELECT count(*) FROM d x JOIN (barrier b JOIN d ON d.id = b.k AND b.part > noticed()) ON x.id = d.id WHERE d.name = ''dV''')) v (query);
RESET enable_nestloop; RESET enable_mergejoin;
-- What is open to the user is skipped as ever, beside what is not and in a
-- subquery of it.
SELECT query, regexp_matches(explained(query, 'COSTS OFF'), 'Partitions Skipped: .*?(?=\n)', 'g') FROM (VALUES
	('SELECT * FROM barrier JOIN o USING (k) WHERE k = 1500'),
	('SELECT (SELECT count(*) FROM o WHERE k = 1500), count(*) FROM barrier')) v (query);

-- A plan that one role has made is not shown to another one: neither where policies
-- make it depend on the role, nor where a barrier alone does, nor after a right was
-- taken away.
RESET ROLE;
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION skipped(query text) RETURNS text
LANGUAGE sql AS
$$ SELECT CASE WHEN explained(query, 'COSTS OFF') ~ 'Partitions Skipped' THEN 'skipped' ELSE 'not skipped' END $$;
PREPARE kept AS SELECT * FROM barrier WHERE k = 14811;
PREPARE kept_table AS SELECT * FROM t WHERE k = 14811;
SELECT skipped('EXECUTE kept'), skipped('EXECUTE kept_table');
SET ROLE regress_rf_reader;
SELECT skipped('EXECUTE kept_table');
RESET ROLE;
SELECT skipped('EXECUTE kept'), skipped('EXECUTE kept_table');
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
SELECT skipped('EXECUTE kept');
SET ROLE regress_rf_viewer;
SELECT skipped('EXECUTE kept');
RESET ROLE;
SELECT skipped('EXECUTE kept');
GRANT SELECT ON t TO regress_rf_viewer;
SET ROLE regress_rf_viewer;
SELECT skipped('EXECUTE kept');
RESET ROLE;
REVOKE SELECT ON t FROM regress_rf_viewer;
SET ROLE regress_rf_viewer;
SELECT skipped('EXECUTE kept');
RESET ROLE;
-- ... nor where only the first of two queries depends on the role
PREPARE kept_union AS SELECT k FROM barrier WHERE k = 14811 UNION SELECT k FROM o WHERE k = 1500;
SELECT regexp_matches(explained('EXECUTE kept_union', 'COSTS OFF'), 'Partitions Skipped: .*?(?=\n)', 'g');
SET ROLE regress_rf_viewer;
SELECT regexp_matches(explained('EXECUTE kept_union', 'COSTS OFF'), 'Partitions Skipped: .*?(?=\n)', 'g');
RESET ROLE;
RESET plan_cache_mode;

-- Who may read a table that he cannot name sees no more of it.
CREATE SCHEMA secured_inner;
GRANT SELECT ON t TO regress_rf_viewer;
ALTER TABLE t SET SCHEMA secured_inner;
SET ROLE regress_rf_viewer;
SELECT told('SELECT * FROM barrier WHERE k = V');
RESET ROLE;
CREATE INDEX t1_w ON secured.t1 USING wormhole (tenant);
ALTER TABLE secured.t1 SET SCHEMA secured_inner;
GRANT SELECT ON secured_inner.t1 TO regress_rf_viewer;
SELECT 'secured_inner.t_k'::regclass::oid AS t_k, 'secured_inner.t1'::regclass::oid AS t1, 'secured_inner.t1_w'::regclass::oid AS t1_w \gset
SET ROLE regress_rf_viewer;
\set VERBOSITY terse
SELECT rangefilter_may_contain(:t_k, 14711, 14711);
SELECT partitions FROM rangefilter_advise(:t1, 'k');
SELECT rows FROM wormhole_status(:t1_w);
RESET ROLE;
GRANT USAGE ON SCHEMA secured_inner TO regress_rf_viewer;
SET ROLE regress_rf_viewer;
SELECT told('SELECT * FROM barrier WHERE k = V') <> 'nothing' AS told;
SELECT rangefilter_may_contain(:t_k, 14711, 14711);
SELECT partitions FROM rangefilter_advise(:t1, 'k');
SELECT rows FROM wormhole_status(:t1_w);
RESET ROLE;

-- Values of hidden rows, asked of a table that the user may read: by a join in a view that is a barrier, and by a policy's subquery.
CREATE TABLE shown (part int, k int) PARTITION BY LIST (part);
CREATE TABLE shown1 PARTITION OF shown FOR VALUES IN (1);
CREATE TABLE shown2 PARTITION OF shown FOR VALUES IN (2);
CREATE TABLE shown3 PARTITION OF shown FOR VALUES IN (3);
INSERT INTO shown SELECT 1 + g / 1000, g FROM generate_series(0, 2999) g;
CREATE INDEX ON shown USING rangefilter (k);
CREATE TABLE secret (k int, v int);
CREATE VIEW joined WITH (security_barrier) AS SELECT shown.k FROM shown JOIN secret s ON s.k = shown.k AND s.v < shown.part;
CREATE VIEW joined_subquery WITH (security_barrier) AS
	SELECT shown.k FROM shown JOIN (SELECT k, v FROM secret OFFSET 0) s ON s.k = shown.k AND s.v < shown.part;
CREATE VIEW joined_cte WITH (security_barrier) AS
	WITH s AS MATERIALIZED (SELECT k, v FROM secret LIMIT 10) SELECT shown.k FROM shown JOIN s ON s.k = shown.k AND s.v < shown.part;
CREATE VIEW joined_inner_cte WITH (security_barrier) AS
	SELECT shown.k FROM shown JOIN (WITH s AS MATERIALIZED (SELECT k, v FROM secret LIMIT 10) SELECT * FROM s OFFSET 0) s ON s.k = shown.k AND s.v < shown.part;
CREATE VIEW joined_sublink WITH (security_barrier) AS
	SELECT shown.k FROM shown JOIN (SELECT (SELECT max(k) FROM secret) AS k OFFSET 0) s ON s.k = shown.k AND shown.part > 5 + s.k * 0;
CREATE VIEW compared WITH (security_barrier) AS SELECT k FROM shown WHERE k = (SELECT max(k) FROM secret) AND part > 5;
CREATE VIEW seen WITH (security_barrier) AS WITH x AS MATERIALIZED (SELECT 500 AS k) SELECT k FROM shown WHERE k = (SELECT x.k FROM x);
CREATE TABLE guarded (id int, k int, v int);
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY guard ON guarded USING (EXISTS (SELECT FROM shown WHERE shown.k = guarded.k AND shown.k + 0 > 5000 * guarded.v));
GRANT SELECT ON shown, joined, joined_subquery, joined_cte, joined_inner_cte, joined_sublink, compared, seen, guarded TO regress_rf_viewer;
VACUUM ANALYZE shown;
SET enable_nestloop = off; SET enable_mergejoin = off;
CREATE FUNCTION with_secret(query text, value int, who text DEFAULT 'regress_rf_viewer') RETURNS text LANGUAGE plpgsql SECURITY INVOKER AS $$
DECLARE
	plan text;
BEGIN
	RESET ROLE;
	TRUNCATE secret, guarded;
	INSERT INTO secret VALUES (value, 10);
	INSERT INTO guarded VALUES (1, value, 10), (2, 500, 10);
	EXECUTE format('SET ROLE %I', who);
	plan := explained(query, 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
	RESET ROLE;
	RETURN plan;
END $$;
SELECT query, with_secret(query, 1500) = with_secret(query, 2500) AS same
FROM (VALUES ('SELECT * FROM joined'), ('SELECT * FROM joined_subquery'), ('SELECT * FROM joined_cte'), ('SELECT * FROM joined_inner_cte'), ('SELECT * FROM joined_sublink'), ('SELECT * FROM compared'),
	('SELECT * FROM guarded')) v (query);
-- ... also of a table that only those may read whose policy it is
CREATE TABLE checked (id int);
INSERT INTO checked VALUES (1);
ALTER TABLE checked ENABLE ROW LEVEL SECURITY;
CREATE POLICY checks ON checked USING (EXISTS (SELECT FROM shown JOIN secret s ON s.k = shown.k AND s.v < shown.part));
CREATE VIEW checked_for_reader AS SELECT * FROM checked;
ALTER VIEW checked_for_reader OWNER TO regress_rf_reader;
GRANT SELECT ON checked, shown, secret TO regress_rf_reader;
GRANT SELECT ON checked, shown, checked_for_reader TO regress_rf_bypass;
SELECT with_secret('SELECT * FROM checked_for_reader', 1500, 'regress_rf_bypass') = with_secret('SELECT * FROM checked_for_reader', 2500, 'regress_rf_bypass') AS same;
RESET enable_nestloop; RESET enable_mergejoin;
SELECT with_secret('SELECT * FROM seen', 500) ~ 'Partitions Skipped: 2 of 3' AS told;
-- Also where the query itself compares with a subquery on rows that a policy hides: what the barrier is above is planned later.
CREATE VIEW late WITH (security_barrier) AS SELECT k FROM shown WHERE part > 0;
CREATE TABLE mine (k int);
INSERT INTO mine VALUES (500), (1500);
CREATE POLICY mine ON mine USING (k = 500);
GRANT SELECT ON late, mine TO regress_rf_viewer;
SELECT with_secret('SELECT * FROM late WHERE k = (SELECT min(k) FROM mine)', 500) ~ 'Partitions Skipped: 2 of 3' AS told;
ALTER TABLE mine ENABLE ROW LEVEL SECURITY;
SELECT with_secret('SELECT * FROM late WHERE k = (SELECT min(k) FROM mine)', 500) ~ 'Partitions Skipped' AS told;
-- Who may read the columns of a query is told of them.
REVOKE SELECT ON shown FROM regress_rf_viewer;
GRANT SELECT (k) ON shown TO regress_rf_viewer;
SET ROLE regress_rf_viewer;
SELECT skipped('SELECT k FROM shown WHERE k = 500'), skipped('SELECT count(*) FROM shown WHERE k = 500');
RESET ROLE;
-- Through a view of theirs, to which their policies apply, others who may read all are told, also if none of the columns is read.
CREATE POLICY one ON shown USING (k = 500);
ALTER TABLE shown ENABLE ROW LEVEL SECURITY;
CREATE VIEW uncounted AS SELECT 1 AS one FROM shown;
ALTER VIEW uncounted OWNER TO regress_rf_viewer;
GRANT DELETE ON shown TO regress_rf_viewer;
SELECT skipped('SELECT count(*) FROM uncounted');
REVOKE SELECT (k) ON shown FROM regress_rf_viewer;
SELECT skipped('DELETE FROM uncounted');

DROP SCHEMA secured, secured_inner CASCADE;
DROP ROLE regress_rf_owner, regress_rf_reader, regress_rf_bypass, regress_rf_viewer;
