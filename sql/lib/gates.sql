-- Functions for the tests of gates, which include this file.
\ir plans.sql

-- The rows a query returns, in short.
CREATE FUNCTION answer(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	line text;
	lines text[] := '{}';
BEGIN
	FOR line IN EXECUTE query LOOP
		lines := lines || coalesce(line, 'NULL');
	END LOOP;
	RETURN array_length(lines, 1) || ' rows '
		|| md5((SELECT string_agg(x, ',' ORDER BY x) FROM unnest(lines) x));
END
$$;

-- Runs a query with skipping and without; tells how many gates there are and
-- what they skipped.  Only those that have what is in "gates.of", if it is set.
CREATE FUNCTION gates(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	skipped text;
	a text;
	b text;
BEGIN
	a := answer(query);
	PERFORM set_config('rangefilter.enable', 'off', true);
	b := answer(query);
	PERFORM set_config('rangefilter.enable', 'on', true);
	IF a IS DISTINCT FROM b THEN
		RAISE EXCEPTION 'wrong result: % instead of % for %', a, b, query;
	END IF;
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	SELECT count(*) || ' gates, skipped ' || sum((g->>'Partitions Skipped')::int)
		|| ' of ' || sum((g->>'Partitions Considered')::int)
	INTO skipped
	FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Append")') g
	WHERE coalesce(g ? current_setting('gates.of', true), true);
	RETURN concat(coalesce(a, 'no rows'), ': ', skipped);
END
$$;
