-- For tests of skipping while planning, which include this file.
\ir plans.sql

-- Runs a query with skipping and without: how many rows has it, and what was
-- skipped, and by which conditions?
CREATE FUNCTION compared(query text, conditions bool, OUT n bigint, OUT skipped text)
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	hash text[];
	got text;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	SELECT coalesce(string_agg(concat(e->>'Partitions Skipped', ' of ', e->>'Partitions Considered',
		CASE WHEN conditions THEN concat(' by ', e->>'Partition Cond') END), ', '), 'nothing')
	INTO skipped
	FROM jsonb_path_query(plan, 'strict $.**?(exists(@."Partitions Skipped"))') e;
	FOREACH got IN ARRAY '{on,off}'::text[] LOOP
		PERFORM set_config('rangefilter.enable', got, true);
		EXECUTE format('SELECT count(*), md5(string_agg(r::text, '','' ORDER BY r::text)) FROM (%s) r', query)
		INTO n, got;
		hash := hash || coalesce(got, 'empty');
	END LOOP;
	PERFORM set_config('rangefilter.enable', 'on', true);
	IF hash[1] <> hash[2] THEN
		RAISE EXCEPTION 'wrong result: %', query;
	END IF;
END
$$;

-- What a query skips while it is planned, and how many rows it has.
CREATE FUNCTION skips(query text) RETURNS text LANGUAGE sql AS
$$ SELECT concat('skipped ', skipped, ', rows ', n) FROM compared(query, false) $$;

-- What a gate skips.
CREATE FUNCTION gate_skips(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN concat(jsonb_path_query_first(plan, 'strict $.**."Partitions Skipped"'), ' of ',
		jsonb_path_query_first(plan, 'strict $.**."Partitions Considered"'));
END
$$;
