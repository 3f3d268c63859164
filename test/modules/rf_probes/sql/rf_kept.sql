-- What a gate makes anew in each round of a nested loop: only the sets of keys that depend on
-- values that have changed.  Every result is compared with that of rangefilter.enable = off.
SET client_min_messages = warning;
LOAD 'rangefilter';
CREATE EXTENSION IF NOT EXISTS rangefilter;
CREATE EXTENSION IF NOT EXISTS rf_probes;
CREATE SCHEMA kept;
SET search_path = kept, public;
SET max_parallel_workers_per_gather = 0;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SET enable_bitmapscan = off;

-- Two columns in one index; and in indexes of their own, also for texts.
CREATE TABLE m (p int, a int, b int, c int, d int, t text COLLATE "C", v int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE m%s PARTITION OF m FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 3) p \gexec
INSERT INTO m SELECT n % 4, a, n * 7 % 97, a, n * 7 % 97, 't' || a, n FROM generate_series(1, 12000) n, LATERAL (SELECT n % 4 * 500 + n * 13 % 400 AS a) x;
CREATE INDEX m_ab ON m USING rangefilter (a, b);
CREATE INDEX m_c ON m USING rangefilter (c);
CREATE INDEX m_d ON m USING rangefilter (d);
CREATE INDEX m_t ON m USING rangefilter (t);
-- The outer side: NULLs, values that repeat, lists that change rarely and have NULLs.
CREATE TABLE o AS SELECT i, nullif(i * 7 % 53, 3) AS b, i / 20 AS g, 't' || i * 31 % 2000 AS t,
	CASE WHEN i / 20 = 2 THEN NULL ELSE ARRAY(SELECT nullif(x * 37 % 2000, 74) FROM generate_series(1, 40) x) || i / 20 END AS l
	FROM generate_series(1, 120) i;
CREATE TABLE lists AS SELECT DISTINCT ON (g) g, l FROM o ORDER BY g, i;
VACUUM ANALYZE m, o, lists;

CREATE FUNCTION gates(query text) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		IF line ~ 'Range Filter Gate' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END
$$;

-- A query that has $1 as the number of rounds, and in each the rows of m that satisfy a condition: is there a
-- gate, is the result that without skipping, and how many sets of keys do 100 more rounds make?
\set query 'SELECT (SELECT ARRAY[count(*), sum(m.v)] FROM m WHERE %s) FROM o WHERE o.i <= $1'
CREATE FUNCTION rounds(condition text, arguments text DEFAULT '', types text DEFAULT '', query text DEFAULT :'query')
RETURNS TABLE (gate bool, same bool, sets_made int) LANGUAGE plpgsql AS
$$
DECLARE
	expected bigint[];
	result bigint[];
	sets bigint[] = '{}';
	n int;
BEGIN
	EXECUTE format('PREPARE q (int%s) AS SELECT ARRAY[count(*), sum(hashtext(q::text))] FROM (%s) q', types, format(query, condition));
	gate := gates(format('EXECUTE q (0%s)', arguments));
	same := true;
	FOREACH n IN ARRAY '{0,10,110}'::int[] LOOP
		sets := sets || rf_sets_made();
		EXECUTE format('EXECUTE q (%s%s)', n, arguments) INTO result;
		sets := sets || rf_sets_made();
		PERFORM set_config('rangefilter.enable', 'off', false);
		EXECUTE format('EXECUTE q (%s%s)', n, arguments) INTO expected;
		PERFORM set_config('rangefilter.enable', 'on', false);
		same := same AND result IS NOT DISTINCT FROM expected;
	END LOOP;
	sets_made := sets[6] - sets[5] - sets[4] + sets[3];
	DEALLOCATE q;
	RETURN NEXT;
END
$$;

SELECT string_agg(n::text, ', ') AS list, format(', ''{%s}''', string_agg(n::text, ',')) AS short FROM (SELECT x * 17 AS n FROM generate_series(1, 50) x) y \gset
SELECT format(', ''{%s}''', string_agg(x::text, ',')) AS long FROM generate_series(1, 8000, 2) x \gset
SELECT string_agg(format('m.a BETWEEN %s AND %s', x * 40, x * 40 + 15), ' OR ') AS ranges FROM generate_series(1, 25) x \gset
-- The loop's value alone.
SELECT * FROM rounds('m.d = o.b');
-- Constants beside it: lists, and ORs of ranges.
SELECT * FROM rounds('m.a IN (' || :'list' || ') AND m.b = o.b');
SELECT * FROM rounds('m.b IN (' || :'list' || ') AND m.a = o.b');
SELECT * FROM rounds('(' || :'ranges' || ') AND m.b = o.b');
SELECT * FROM rounds('m.c IN (' || :'list' || ') AND m.c > 10 AND m.d = o.b');
-- Under OR, lists are looked at again.
SELECT * FROM rounds('m.c IN (' || :'list' || ') OR m.d = o.b OR m.c IN (7, 9)');
SELECT * FROM rounds('m.c IN (' || :'list' || ') OR m.c = o.i * 15');
SELECT * FROM rounds('(m.c IN (' || :'list' || ') OR m.c = o.b) AND m.d = ANY (o.l)');
-- Parameters that are the same in all rounds; some with more values than are combined with the loop's.
SELECT * FROM rounds('m.a = ANY ($2) AND m.b = o.b', :'short', ', int[]');
SELECT * FROM rounds('m.a = ANY ($2) AND m.b = o.b', :'long', ', int[]');
SELECT * FROM rounds('m.a = ANY ($2) AND m.b = o.b', ', NULL', ', int[]');
SELECT * FROM rounds('m.a > $2 AND m.b = o.b', ', 700', ', int');
SELECT * FROM rounds('m.c = ANY ((SELECT array_agg(x * 7) FROM generate_series(1, 300) x)::int[]) AND m.d = o.b');
-- Lists that change in some rounds; texts, whose keys are the values' own bytes.
SELECT * FROM rounds('m.a = ANY (o.l) AND m.b = o.b');
SELECT * FROM rounds('m.t = o.t AND m.c IN (' || :'list' || ')');
SELECT * FROM rounds('m.d = o.b AND m.t = ANY (ARRAY[''t531'', o.g::text, ''t'' || 7 * o.g])');
SELECT * FROM rounds('(m.t = ''t'' || 7 * o.g OR m.t = $2) AND m.d = o.b', ', ''t1665''', ', text');
-- Parameters of two levels, and two subplans.
SELECT * FROM rounds('m.a = ANY (g.l) AND m.b = o.b', query => 'SELECT (SELECT sum((SELECT sum(m.v) FROM m WHERE %s)) FROM o WHERE o.i <= $1 AND o.g = g.g) FROM lists g');
SELECT * FROM rounds('m.a = ANY (o.l) AND m.b = o.b', query => 'SELECT (SELECT count(*) FROM m WHERE %s), (SELECT max(m.v) FROM m WHERE m.c IN (' || :'list' || ') AND m.d = o.b) FROM o WHERE o.i <= $1');

-- What would cost more than the scans asks no index.
CREATE FUNCTION asked(query text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	counts bigint[] = '{}';
	result bigint;
BEGIN
	FOR i IN 1 .. 2 LOOP
		EXECUTE query INTO result;
		counts := counts || (SELECT sum(pg_stat_get_xact_numscans(inhrelid))::bigint FROM pg_inherits WHERE inhparent = 'm_ab'::regclass);
	END LOOP;
	RETURN counts[2] - counts[1];
END
$$;
PREPARE dear (int[]) AS SELECT sum((SELECT count(*) FROM m WHERE m.a = ANY ($1) AND m.b = o.b)) FROM o WHERE o.i <= 30;
SELECT asked('EXECUTE dear (' || substr(:'long', 2) || ')');

-- While a query is planned, a long list is sorted once for the table and once for all partitions, also that of texts; of more
-- lists than are remembered some are sorted again.  So many times 1,000 sets of keys are made, and the rows are those without skipping.
CREATE FUNCTION planned(condition text, OUT thousands int, OUT same bool) LANGUAGE plpgsql AS
$$
DECLARE
	sets bigint = rf_sets_made();
	counts bigint[] = '{}';
	n bigint;
BEGIN
	EXECUTE 'EXPLAIN SELECT count(*) FROM m WHERE ' || condition;
	thousands := (rf_sets_made() - sets) / 1000;
	FOR i IN 1 .. 2 LOOP
		EXECUTE 'SELECT count(*) FROM m WHERE ' || condition INTO n;
		counts := counts || n;
		PERFORM set_config('rangefilter.enable', 'off', false);
	END LOOP;
	PERFORM set_config('rangefilter.enable', 'on', false);
	same := counts[1] = counts[2];
END
$$;
SELECT format('m.c = ANY (''{%s}'')', string_agg(x::text, ',')) AS thousand FROM generate_series(1, 2000, 2) x \gset
SELECT format('m.t = ANY (''{%s}'')', string_agg('t' || x, ',')) AS texts FROM generate_series(1, 2000, 2) x \gset
SELECT string_agg(format('m.c = ANY (''{%s}'')', l), ' AND ') AS many
FROM generate_series(1, 10) i, LATERAL (SELECT string_agg(x::text, ',') AS l FROM generate_series(i, 2000, 2) x) y \gset
SELECT * FROM planned(:'thousand');
SELECT * FROM planned(:'texts');
SELECT * FROM planned(:'thousand' || ' AND ' || :'texts');
SELECT thousands < 120 AS some_again, same FROM planned(:'many');
-- A function that is called while the query is planned plans others; one that fails, and the same again.
CREATE FUNCTION other(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN PERFORM planned('m.c = ANY (''{' || (SELECT string_agg(x::text, ',') FROM generate_series(1, n) x) || '}'')'); RETURN 0; END $$;
SELECT * FROM planned(:'thousand' || ' AND m.d < 100 + other(1000) AND ' || :'texts');
\set SHOW_CONTEXT never
SELECT * FROM planned(:'thousand' || ' AND m.d < 1 / other(1000)');
SELECT * FROM planned(:'thousand');

-- Where rows are hidden, and in inheritance trees, gates ask for constants, too.
CREATE TABLE parent (a int, b int, v int);
CREATE TABLE child1 () INHERITS (parent);
CREATE TABLE child2 () INHERITS (parent);
INSERT INTO child1 SELECT a, b, v FROM m WHERE p < 2;
INSERT INTO child2 SELECT a, b, v FROM m WHERE p >= 2;
CREATE INDEX ON child1 USING rangefilter (a, b);
CREATE INDEX ON child2 USING rangefilter (a, b);
VACUUM ANALYZE parent, child1, child2;
SELECT * FROM rounds('m.a IN (' || :'list' || ') AND m.b = o.b', query => replace(:'query', 'FROM m', 'FROM parent m'));
CREATE ROLE kept_user;
GRANT USAGE ON SCHEMA kept TO kept_user;
GRANT SELECT ON m, o TO kept_user;
ALTER TABLE m ENABLE ROW LEVEL SECURITY;
CREATE POLICY thirds ON m USING (v % 3 > 0);
SET ROLE kept_user;
SELECT * FROM rounds('m.a IN (' || :'list' || ') AND m.b = o.b');
RESET ROLE;

DROP SCHEMA kept CASCADE;
DROP ROLE kept_user;
DROP EXTENSION rf_probes, rangefilter CASCADE;
