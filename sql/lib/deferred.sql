-- Tables and functions for the tests of deferred scans, which include this file and plans.sql.

-- The rows of a query, in short; or the error.
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	row record;
	lines text[] := '{}';
BEGIN
	FOR row IN EXECUTE query LOOP
		lines := lines || row::text;
	END LOOP;
	RETURN cardinality(lines) || ' rows, '
		|| md5((SELECT coalesce(string_agg(x, ',' ORDER BY x), '') FROM unnest(lines) x));
EXCEPTION WHEN division_by_zero OR raise_exception OR data_exception THEN
	RETURN SQLERRM;
END
$$;

-- Runs a query with deferred scans and without skipping.  Tells how many rows it has, how
-- many deferred scans, and how many partitions these read.
CREATE FUNCTION deferred(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	on_answer text := answer(query);
	off_answer text;
	plan jsonb;
	scans text;
BEGIN
	PERFORM set_config('rangefilter.enable', 'off', true);
	off_answer := answer(query);
	PERFORM set_config('rangefilter.enable', 'on', true);
	IF on_answer IS DISTINCT FROM off_answer THEN
		RAISE EXCEPTION 'wrong result: % instead of % of %', on_answer, off_answer, query;
	END IF;
	IF on_answer NOT LIKE '% rows, %' THEN
		RETURN on_answer;
	END IF;
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	SELECT count(*) || ' deferred' || coalesce(', read ' || string_agg(s->>'Partitions Read', ' and ' ORDER BY n), '')
	INTO scans
	FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Scan")') WITH ORDINALITY s (s, n);
	RETURN split_part(on_answer, ',', 1) || ': ' || scans;
END
$$;

-- A plan, with equalities in one order whatever the version.
CREATE FUNCTION explained(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE sql AS
$$
	SELECT replace(replace(replace(replace(replace(line, '(d.id = t.k)', '(t.k = d.id)'), '((d.id) = k)', '(k = (d.id))'), '(1260 = k)', '(k = 1260)'),
		'((g.g % 1100) = t.k)', '(t.k = (g.g % 1100))'), '($0)', '$0')
	FROM plan_of(query, options) line
$$;

-- t has 38 partitions, one with another order of columns and dropped ones, an empty one and
-- a default one.  Partition p holds 500 p ... 500 p + 499 in k; w has NULLs, and values
-- that are in several partitions.
CREATE TABLE t (part int, k int, w int, n int, at timestamptz, tx text COLLATE "C", u uuid, num numeric)
	PARTITION BY LIST (part);
CREATE PROCEDURE make_partitions(format text, n int) LANGUAGE plpgsql AS
$$ BEGIN FOR i IN 0 .. n - 1 LOOP EXECUTE replace(format, '#', i::text); END LOOP; END $$;
CALL make_partitions('CREATE TABLE t# PARTITION OF t FOR VALUES IN (#) WITH (autovacuum_enabled = off)', 37);
CREATE TABLE t37 (gone int, tx text COLLATE "C", num numeric, at timestamptz, gone2 text, w int, n int, u uuid, k int, part int);
ALTER TABLE t37 DROP gone, DROP gone2;
ALTER TABLE t ATTACH PARTITION t37 FOR VALUES IN (37);
CREATE TABLE t_empty PARTITION OF t FOR VALUES IN (1000);
CREATE TABLE t_default PARTITION OF t DEFAULT;
INSERT INTO t
SELECT v / 500, v, nullif(v / 1200, 3), v % 10, timestamptz '2020-01-01 UTC' + v * interval '1 hour',
	'k' || to_char(v, 'FM00000'), ('00000000-0000-0000-0000-' || to_char(v, 'FM000000000000'))::uuid, v / 4.0
FROM generate_series(0, 19999) v;
CREATE INDEX ON t USING rangefilter (k);
CREATE INDEX ON t USING rangefilter (w);
CREATE INDEX ON t USING rangefilter (at);
CREATE INDEX ON t USING rangefilter (tx);
CREATE INDEX ON t USING rangefilter (u);
CREATE INDEX ON t USING rangefilter (num);
CREATE INDEX ON t (k);
-- The other rows: every 180th value of k, and two that no partition has.
CREATE TABLE d (id int, name text, w int, at timestamptz, tx text, u uuid, num numeric);
INSERT INTO d
SELECT k, 'n' || k / 180, w, at, tx, u, num FROM t WHERE k % 180 = 0
UNION ALL SELECT 50000, 'none', 777, NULL, NULL, NULL, -1
UNION ALL SELECT NULL, 'null', NULL, NULL, NULL, NULL, NULL;
VACUUM ANALYZE t;
ANALYZE d;
-- Which rows need the heap depends on other sessions.
SET enable_indexonlyscan = off;
