-- Functions for the tests of gates, which include this file.

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

-- A plan in the words of PostgreSQL 15: later ones name the results of subqueries
-- and the sides of equalities differently, give fractions of rows, and say what
-- was disabled.
CREATE FUNCTION plan_of(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) ', options) || query LOOP
		CONTINUE WHEN line ~ '^ *Disabled: ';
		line := regexp_replace(line, '\n *["<]?Disabled[^\n]*', '', 'g');
		line := replace(line, '.00 loops=', ' loops=');
		line := regexp_replace(line, 'Memory: \d+kB', 'in memory');
		line := regexp_replace(line, 'InitPlan (\d) \(returns \$\d\)', 'InitPlan \1');
		line := replace(line, '(InitPlan 1).col1', '$0');
		line := replace(line, 'ANY (day = (hashed SubPlan 2).col1)', 'hashed SubPlan 2');
		RETURN NEXT replace(line, '(k = d.id)', '(d.id = k)');
	END LOOP;
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
	FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Gate")') g
	WHERE coalesce(g ? current_setting('gates.of', true), true);
	RETURN concat(coalesce(a, 'no rows'), ': ', skipped);
END
$$;
