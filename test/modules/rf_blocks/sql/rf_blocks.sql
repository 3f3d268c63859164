-- What computes with numbers of heap blocks does so up to the most blocks a heap can
-- have, 2^32 - 1.
CREATE EXTENSION rf_blocks;

-- Segments that are at most twice as large as what follows are merged.  All sums below would
-- wrap around 2^32, or 2^31.
SELECT rf_start('{4000000000}', 4294967295) AS kept,
	rf_start('{2000000000}', 4294967295) AS merged,
	rf_start('{1000000000,2000000000}', 4294967295) AS both_merged,
	rf_start('{2147483640}', 4294967295) AS merged_at_half,
	rf_start('{100,4294967290}', 4294967295) AS kept_at_the_end;

-- A table that was truncated; a summarize that failed.
SELECT rf_start('{4294967295}', 4294967290) AS cut_off,
	rf_start('{4000000000,4294967295}', 4294967290) AS last_cut_off,
	rf_start('{4294967290}', 4294967295, 4294967294) AS announced_in_tail,
	rf_start('{4294967000,4294967294}', 4294967295, 4294967293) AS announced;

-- The same as computed with larger numbers.
CREATE FUNCTION expected(ends bigint[], blocks bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	first bigint = least(ends[cardinality(ends)], blocks);
	start bigint;
BEGIN
	FOR i IN REVERSE cardinality(ends) .. 1 LOOP
		start := CASE i WHEN 1 THEN 0 ELSE ends[i - 1] END;
		EXIT WHEN start < first AND ends[i] <= blocks AND ends[i] - start > 2 * (blocks - ends[i]);
		first := least(first, start);
	END LOOP;
	RETURN first;
END $$;
WITH cases AS (
	SELECT ARRAY[a, b, c] AS ends, n
	FROM unnest('{8193,1431655765,1431655766,2147483647,2147483648,2863311530,2863311531,4294967294,4294967295}'::bigint[]) n,
		unnest('{1,8192,1000000000,1431655765,2147483648,3000000000}'::bigint[]) a,
		unnest('{2,8193,1431655765,2147483647,2863311531,4294967290}'::bigint[]) b,
		unnest('{3,8194,2147483647,2863311530,4294967294,4294967295}'::bigint[]) c
	WHERE a < b AND b < c)
SELECT count(*), count(*) FILTER (WHERE rf_start(ends, n) <> expected(ends, n)) AS differ FROM cases;

-- Ranges of places.
SELECT * FROM rf_ranges(0, 4294967295, 4096, 4294967294);
SELECT * FROM rf_ranges(0, 4294967295, 4096, 0);
SELECT * FROM rf_ranges(0, 4294967295, 2147483647, 4294967294);
SELECT * FROM rf_ranges(0, 4294967295, 4294967295, 4294967294);
SELECT * FROM rf_ranges(4294967231, 4294967295, 1, 4294967294);
SELECT * FROM rf_ranges(4294967294, 4294967295, 1, 4294967294);
DROP EXTENSION rf_blocks;
