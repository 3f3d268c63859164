-- Does core do what src/core expects of it?  See src/core/README.md.
CREATE EXTENSION rf_core;
SELECT rf_core_members();
SELECT rf_core_words(2000);
SELECT rf_core_query();
SELECT rf_core_hash();

-- The rows of a hash join's table are found in its chunks, as many as it says.
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
CREATE TABLE o (k int, t text);
CREATE TABLE i (k int, t text);
INSERT INTO o SELECT g % 1000, repeat('o', g % 100) FROM generate_series(1, 20000) g;
INSERT INTO i SELECT g, repeat('i', g % 300) FROM generate_series(1, 3000) g;
VACUUM ANALYZE o, i;
CREATE FUNCTION joined(query text, OUT rows bigint) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL rf_core.joins = on;
	EXECUTE query INTO rows;
	SET LOCAL rf_core.joins = off;
END $$;
SELECT joined('SELECT count(i.t || o.t) FROM o JOIN i USING (k)');
SELECT joined('SELECT count(i.t) FROM o JOIN i USING (k) WHERE i.k > 5000');
-- More batches
SET work_mem = '64kB';
SELECT joined('SELECT count(i.t || o.t) FROM o JOIN i USING (k)');
RESET work_mem;

-- The table is built before the outer side is asked for a row.
EXPLAIN (COSTS OFF) SELECT * FROM o JOIN (SELECT k FROM i ORDER BY k LIMIT 0) i USING (k);
CREATE FUNCTION outer_side(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, 'strict $.**?(@."Relation Name" == "o")."Actual Loops"');
END $$;
SET client_min_messages = warning;
SELECT outer_side('SELECT * FROM o JOIN (SELECT k FROM i ORDER BY k LIMIT 0) i USING (k)');
SET rf_core.joins = on;
SELECT outer_side('SELECT * FROM o JOIN (SELECT k FROM i ORDER BY k LIMIT 0) i USING (k)');
RESET rf_core.joins;
RESET client_min_messages;

-- Records of generic WAL look as ours do.
SELECT rf_core_knows_records();
-- A transaction with an id moves the count.
SELECT rf_core_completions() AS before \gset
INSERT INTO o VALUES (1);
SELECT rf_core_completions() > :before AS moves;
-- It moves that of snapshots, too.
SELECT rf_core_next_xmax() AS before \gset
INSERT INTO o VALUES (1);
SELECT rf_core_next_xmax()::text <> :'before' AS moves;
DROP TABLE o, i;
