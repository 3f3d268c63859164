-- A reach that sees the unexpected answers "unknown": less is skipped, or things
-- are done as core does them, and every result stays right.
LOAD 'rangefilter';
CREATE EXTENSION rangefilter;
CREATE EXTENSION rf_core;
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET jit = off;

CREATE TABLE t (part int, k int) PARTITION BY LIST (part);
DO $$BEGIN
	FOR p IN 0..69 LOOP
		EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%1$s)', p);
	END LOOP;
END$$;
INSERT INTO t SELECT g / 10, g FROM generate_series(0, 699) g;
CREATE INDEX ON t USING rangefilter (k);
CREATE TABLE d (id int, name text);
INSERT INTO d SELECT g, 'n' || g FROM generate_series(0, 699) g;
VACUUM ANALYZE t, d;

-- What is skipped, in planning and at execution, and is the result right?
CREATE FUNCTION skipped(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	mine text;
	right_one text;
BEGIN
	EXECUTE query INTO mine;
	PERFORM set_config('rangefilter.enable', 'off', true);
	EXECUTE query INTO right_one;
	PERFORM set_config('rangefilter.enable', 'on', true);
	IF mine IS DISTINCT FROM right_one THEN
		RAISE EXCEPTION 'wrong result: % instead of %', mine, right_one;
	END IF;
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	RETURN coalesce((SELECT string_agg(concat(e->>'Partitions Skipped', ' of ', e->>'Partitions Considered'), ', ')
		FROM jsonb_path_query(plan, 'strict $.**?(exists(@."Partitions Skipped"))') e), 'nothing');
END $$;
CREATE FUNCTION skips() RETURNS TABLE (constant text, "join" text) LANGUAGE sql AS $$
	SELECT skipped('SELECT count(*), min(k) FROM t WHERE k BETWEEN 105 AND 123'),
		skipped('SELECT count(*), min(k) FROM t JOIN d ON t.k = d.id WHERE d.name IN (''n7'', ''n503'')')
$$;
SELECT skips();
SELECT reach, rf_core_doubt(reach), skips() FROM unnest('{hash,members,words,query,snapshot,record,clock}'::text[]) reach;
SELECT rf_core_doubt('nonsense');

-- A plan that is kept is right after changes, whatever the clock says.
SELECT rf_core_doubt('clock', 'snapshot');
SET plan_cache_mode = force_generic_plan;
PREPARE q AS SELECT count(*), min(part), max(part) FROM t WHERE k = 2000;
EXECUTE q;
EXECUTE q;
INSERT INTO t VALUES (50, 2000);
EXECUTE q;
EXECUTE q;
INSERT INTO t VALUES (3, 2000);
EXECUTE q;
DEALLOCATE q;

-- (In another session: numbers that a doubtful clock has given are greater than those of core's.)
\c
LOAD 'rangefilter';
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET jit = off;

-- Without records of our own an ordered index has core's.
SELECT rf_core_doubt('record');
CREATE TABLE w (k int);
CREATE INDEX w_k ON w USING wormhole (k);
INSERT INTO w SELECT hashint4(g) FROM generate_series(1, 5000) g;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DELETE FROM w WHERE k % 2 = 0;
SELECT count(*) FROM w WHERE k > 0;
INSERT INTO w SELECT hashint4(g) FROM generate_series(5001, 10000) g;
SELECT wormhole_check('w_k', true) > 0 AS entries, count(*) FROM w;
SELECT count(*) = (SELECT count(*) FROM w WHERE k + 0 > 0) AS same FROM w WHERE k > 0;
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING wormhole (k);
INSERT INTO u SELECT hashint4(g) FROM generate_series(1, 5000) g;
SELECT wormhole_check('u_k', true);

-- Nor does an insert append keys to a rangefilter index by itself.
INSERT INTO t SELECT 5, 3000 + g FROM generate_series(1, 3) g;
SELECT delta_keys FROM rangefilter_status('t5_k_idx');
SELECT skipped('SELECT count(*), min(part) FROM t WHERE k BETWEEN 3001 AND 3003');

SELECT rf_core_doubt('');
INSERT INTO t SELECT 5, 3003 + g FROM generate_series(1, 3) g;
SELECT delta_keys FROM rangefilter_status('t5_k_idx');
SELECT skipped('SELECT count(*), min(part) FROM t WHERE k BETWEEN 3001 AND 3009');
SELECT skips();
-- A query that is started without a snapshot leaves nothing out.  Since 17 a server with assertions
-- refuses to start one; then the answer is given here.
SELECT current_setting('debug_assertions')::bool AND current_setting('server_version_num')::int >= 170000 AS asserted \gset
\if :asserted
\set started 'SELECT 71 AS tables'
\else
\set started 'SELECT rf_core_start(''SELECT FROM t WHERE k = 105'') AS tables'
\endif
:started;
DROP TABLE t, d, w, u;
DROP EXTENSION rf_core;
