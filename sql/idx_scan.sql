-- What is asked counts as a scan of the index in pg_stat_all_indexes, so that
-- nobody takes it for unused.
LOAD 'rangefilter';
CREATE SCHEMA idx_scan;
SET search_path = idx_scan, public;
SET max_parallel_workers_per_gather = 0;
SET track_counts = on;

CREATE TABLE t (part int, k int, l int) PARTITION BY LIST (part);
DO $$
BEGIN
	FOR p IN 0 .. 63 LOOP
		EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p);
	END LOOP;
END
$$;
INSERT INTO t SELECT g % 64, g % 64 + 64 * (g * 7 % 1000), g FROM generate_series(1, 6400) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t0_l ON t0 USING rangefilter (l);
CREATE TABLE elsewhere (a int, b int);
INSERT INTO elsewhere VALUES (1, 1), (2, 2);

-- Of this session, including what it has not passed on yet.
CREATE VIEW asked AS
	SELECT a.probes, i.relname AS leaf, c.relname AS index, c.oid
	FROM rangefilter_activity a JOIN pg_class c ON c.oid = a.index JOIN pg_class i ON i.oid = a."table"
	WHERE c.relnamespace = 'idx_scan'::regnamespace;
-- By how much have the server's counts grown, and by how much ours?
CREATE TABLE seen (oid oid PRIMARY KEY, scans bigint, probes numeric);
CREATE PROCEDURE forget() LANGUAGE sql AS
$$
	DELETE FROM seen;
	INSERT INTO seen SELECT oid, pg_stat_get_numscans(oid), probes FROM asked
$$;
CREATE VIEW grown AS
	SELECT leaf, index, pg_stat_get_numscans(oid) - scans AS scans, a.probes - s.probes AS probes
	FROM asked a JOIN seen s USING (oid);
-- Passes counts on.
\set pass 'SELECT count(*) > 0 AS passed FROM asked; SELECT pg_stat_force_next_flush();'
-- Skipped, not skipped; planned by metapages, from the second time on by cached ones, then by digests.
:pass
CALL forget();
DO $$
BEGIN
	FOR i IN 1 .. 300 LOOP
		EXECUTE 'SELECT FROM t WHERE k = 64 * ' || i;
	END LOOP;
END
$$;
:pass
SELECT index LIKE 't%_k_idx' AS on_k, probes, count(*), min(scans) >= min(probes) AS all_counted, max(scans) <= 2 * max(probes) AS not_too_many
FROM grown GROUP BY 1, 2 ORDER BY 1 DESC;
-- Indexes that only partitions have.
CALL forget();
SELECT count(*) FROM t WHERE l = -1;
:pass
SELECT scans FROM grown WHERE index = 't0_l';
-- Gates: of parameters, and of joins, which ask again and again.
SET plan_cache_mode = force_generic_plan;
PREPARE q (int) AS SELECT count(*) FROM t WHERE k = $1;
CALL forget();
EXECUTE q (-1);
EXECUTE q (-2);
:pass
SELECT scans, count(*) FROM grown WHERE index <> 't0_l' GROUP BY 1;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CALL forget();
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT FROM elsewhere e, LATERAL (SELECT FROM t WHERE k = - e.a OFFSET 0) x \g /dev/null
SELECT count(*) FROM elsewhere e, LATERAL (SELECT FROM t WHERE k = - e.a OFFSET 0) x;
:pass
SELECT bool_and(scans > 0) FROM grown WHERE index <> 't0_l';
-- Of two conditions that must be true the one on fewer values is asked first; then its NO is enough.
CREATE TABLE pair (part int, a int, b int) PARTITION BY LIST (part);
CREATE TABLE pair0 PARTITION OF pair FOR VALUES IN (0) WITH (autovacuum_enabled = off);
CREATE TABLE pair1 PARTITION OF pair FOR VALUES IN (1) WITH (autovacuum_enabled = off);
INSERT INTO pair SELECT g % 2, g, g FROM generate_series(1, 100) g;
CREATE INDEX pair_a ON pair USING rangefilter (a);
CREATE INDEX pair_b ON pair USING rangefilter (b);
PREPARE two (int[], int[]) AS SELECT count(*) FROM pair WHERE a = ANY ($1) AND b = ANY ($2);
EXECUTE two ('{1,2,51,52}', '{5}');
:pass
SELECT index, probes FROM asked WHERE index ~ '^pair' ORDER BY 1;
EXECUTE two ('{1,2,51,52}', '{-1}');
:pass
SELECT index, probes FROM asked WHERE index ~ '^pair' ORDER BY 1;
-- Of conditions with OR the values of all arms count, of an arm the fewest.
CREATE INDEX pair_sum ON pair USING rangefilter ((a + b));
PREPARE arms (int[], int[], int[]) AS SELECT count(*) FROM pair
	WHERE (a = ANY ($1) AND b = ANY ($1) OR a = ANY ($2) AND b = ANY ($2)) AND a + b = ANY ($3);
EXECUTE arms ('{1,11,21}', '{31,41,51}', '{-1,-3,-5,-7}');
:pass
SELECT index, probes FROM asked WHERE index ~ '^pair' ORDER BY 1;
DROP TABLE pair;
-- Nobody counts what is gone, or what nobody wants counted.
CALL forget();
BEGIN;
SELECT count(*) FROM t WHERE l = -1;
DROP INDEX t0_l;
COMMIT;
:pass
SELECT pg_stat_get_numscans(oid) FROM seen WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = seen.oid);
SET track_counts = off;
CALL forget();
SELECT count(*) FROM t WHERE k = -1;
:pass
SELECT scans, probes, count(*) FROM grown GROUP BY 1, 2;
SET track_counts = on;
-- Keys are counted for an estimate: one scan, none where the index cannot count the condition.
CREATE TABLE pair (a int, b int) WITH (autovacuum_enabled = off);
INSERT INTO pair SELECT g, g FROM generate_series(1, 1000) g;
CREATE INDEX pair_a_b ON pair USING rangefilter (a, b);
VACUUM pair;
EXPLAIN SELECT FROM pair WHERE a = 2000 \g /dev/null
:pass
SELECT pg_stat_get_numscans('pair_a_b'::regclass);
EXPLAIN SELECT FROM pair WHERE b = 2000 \g /dev/null
:pass
SELECT pg_stat_get_numscans('pair_a_b'::regclass);
-- Nor where another index has counted it already.
CREATE INDEX pair_a ON pair USING rangefilter (a);
CREATE INDEX pair_b ON pair USING rangefilter (b);
EXPLAIN SELECT FROM pair WHERE a = 1 AND b = 2000 \g /dev/null
:pass
SELECT pg_stat_get_numscans('pair_a'::regclass), pg_stat_get_numscans('pair_b'::regclass);
-- An index of a temporary table, which is not found by its file.
CREATE TEMP TABLE m (part int, a int) PARTITION BY LIST (part);
CREATE TEMP TABLE m0 PARTITION OF m FOR VALUES IN (0);
INSERT INTO m SELECT 0, v FROM generate_series(0, 9) v;
CREATE INDEX m_a ON m USING rangefilter (a);
SELECT count(*) FROM m WHERE a = -1;
:pass
SELECT pg_stat_get_numscans('m0_a_idx'::regclass) > 0;

-- Somebody without rights learns nothing by planning what he may not run: the second
-- index is asked as often whatever the first one says.
CREATE ROLE regress_idx_scan;
GRANT USAGE ON SCHEMA idx_scan TO regress_idx_scan;
CREATE TABLE u (part int, a int, b int) PARTITION BY LIST (part);
CREATE TABLE u1 PARTITION OF u FOR VALUES IN (1);
INSERT INTO u SELECT 1, 2 * g, 2 * g FROM generate_series(1, 500) g;
CREATE INDEX ON u USING rangefilter (a);
CREATE INDEX ON u USING rangefilter (b);
CREATE PROCEDURE plan_without_rights(k int) LANGUAGE plpgsql AS
$$
BEGIN
	SET LOCAL ROLE regress_idx_scan;
	EXECUTE format('EXPLAIN SELECT FROM u WHERE a = %s AND b = %s', k, k);
EXCEPTION WHEN insufficient_privilege THEN
	NULL;
END
$$;
CREATE FUNCTION scans() RETURNS bigint LANGUAGE sql AS
$$ SELECT sum(pg_stat_get_numscans(c.oid)) FROM pg_class c WHERE relname ~ '^u1_[ab]_idx' $$;
:pass
SELECT scans() AS before \gset
CALL plan_without_rights(100);
:pass
SELECT scans() - :before AS present \gset
SELECT scans() AS before \gset
CALL plan_without_rights(101);
:pass
SELECT :present = scans() - :before AS tells_nothing;
-- ... also if other columns may be read
GRANT SELECT (part) ON u TO regress_idx_scan;
SELECT scans() AS before \gset
CALL plan_without_rights(200);
:pass
SELECT scans() - :before AS present \gset
SELECT scans() AS before \gset
CALL plan_without_rights(201);
:pass
SELECT :present = scans() - :before AS tells_nothing;
REVOKE ALL ON u FROM regress_idx_scan;
REVOKE ALL ON SCHEMA idx_scan FROM regress_idx_scan;
DROP ROLE regress_idx_scan;
-- The first that the server hears of an index.
SET track_counts = off;
CREATE TABLE quiet (part int, k int) PARTITION BY LIST (part);
CREATE TABLE quiet0 PARTITION OF quiet FOR VALUES IN (0) WITH (autovacuum_enabled = off);
CREATE TABLE quiet1 PARTITION OF quiet FOR VALUES IN (1) WITH (autovacuum_enabled = off);
INSERT INTO quiet VALUES (0, 0), (1, 1);
CREATE INDEX quiet_k ON quiet USING rangefilter (k);
SET track_counts = on;
SELECT count(*) FROM quiet WHERE k = 5;
:pass
SELECT c.relname, pg_stat_get_numscans(c.oid) FROM pg_class c WHERE c.relname ~ '^quiet._k_idx$' ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA idx_scan CASCADE;
