-- What tests of deferred scans share.

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

-- Runs a command for the numbers from 0 to n - 1, in the places of #.
CREATE PROCEDURE make_partitions(format text, n int) LANGUAGE plpgsql AS
$$ BEGIN FOR i IN 0 .. n - 1 LOOP EXECUTE replace(format, '#', i::text); END LOOP; END $$;
