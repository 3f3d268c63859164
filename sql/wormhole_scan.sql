-- Scans through a wormhole index return what scans through a btree with the same
-- definition do, in the same order, and with plans of the same kind.
SET client_min_messages = warning;
SET timezone = 'America/New_York';
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_seqscan = off;
SET enable_sort = off;

-- Two tables with the same rows, one with each kind of index.
CREATE FUNCTION make_pair(columns text, rows text, keys text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS pair_w, pair_b;
	EXECUTE 'CREATE TEMP TABLE pair_w (' || columns || ')';
	EXECUTE 'INSERT INTO pair_w ' || rows;
	CREATE TEMP TABLE pair_b AS TABLE pair_w;
	EXECUTE 'CREATE INDEX ON pair_w USING wormhole (' || keys || ')';
	EXECUTE 'CREATE INDEX ON pair_b USING btree (' || keys || ')';
	ANALYZE pair_w, pair_b;
END $$;

-- A query about table t on both, as index-only, index and bitmap scan.  Returns
-- how many rows it has, or what differs.  (Core finds out more of the values there
-- are from a btree, and so chooses bitmaps for other conditions.)
CREATE FUNCTION same_scan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
	rows text[];
	plans text[];
	way text;
	side text;
	line text;
BEGIN
	FOREACH way IN ARRAY ARRAY['indexonlyscan', 'indexscan', 'bitmapscan'] LOOP
		PERFORM set_config('enable_' || w, (w = way)::text, true) FROM unnest(ARRAY['indexonlyscan', 'indexscan', 'bitmapscan']) w;
		PERFORM set_config('enable_sort', (way = 'bitmapscan')::text, true);
		rows := '{}';
		plans := '{}';
		FOREACH side IN ARRAY ARRAY['pair_w', 'pair_b'] LOOP
			EXECUTE 'SELECT count(*), coalesce(string_agg(x::text, '';''), '''') FROM (' || regexp_replace(query, '\mt\M', side, 'g') || ') x' INTO n, line;
			IF way = 'bitmapscan' THEN
				SELECT string_agg(l, ';' ORDER BY l) INTO line FROM unnest(string_to_array(line, ';')) l;
			END IF;
			rows := rows || line;
			FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || regexp_replace(query, '\mt\M', side, 'g') LOOP
				plans := plans || regexp_replace(line, 'pair_[wb]', 'pair', 'g');
			END LOOP;
		END LOOP;
		IF rows[1] IS DISTINCT FROM rows[2] THEN
			RETURN format('%s: %s, not %s', way, left(rows[1], 500), left(rows[2], 500));
		END IF;
		IF way <> 'bitmapscan' AND plans[: cardinality(plans) / 2] IS DISTINCT FROM plans[cardinality(plans) / 2 + 1 :] THEN
			RETURN format('%s: other plans: %s', way, array_to_string(plans, E'\n'));
		END IF;
	END LOOP;
	RETURN n;
END $$;

-- Lists of values: duplicates, NULLs, none at all, in both directions.
SELECT make_pair('a int, b int, c text COLLATE "C"',
	'SELECT CASE WHEN g % 11 <> 0 THEN g % 100 END, CASE WHEN g % 7 <> 0 THEN g % 13 END, ''v'' || g % 40 FROM generate_series(1, 6000) g', 'a, b DESC, c');
SELECT condition, same_scan('SELECT a, b, c FROM t WHERE ' || condition || ' ORDER BY a, b DESC, c') AS forward,
	same_scan('SELECT a, b, c FROM t WHERE ' || condition || ' ORDER BY a DESC, b, c DESC') AS backward
FROM unnest(ARRAY['a = ANY (''{5,3,5,NULL,99,3,1000,-1}'')', 'a = ANY (''{NULL,NULL}'')', 'a = ANY (''{}'')', 'a = ANY (NULL::int[])',
	'a = ANY (''{7}'') AND b = ANY (''{3,1,3,NULL}'')', 'a IN (50, 7, 7) AND b IS NULL', 'a IN (50, 7, 7) AND b IS NOT NULL',
	'a IS NULL', 'a IS NULL AND b = ANY (''{3,1}'')', 'a IS NOT NULL AND b = 3', 'a < ANY (''{5,2,NULL}'')', 'a >= ANY (''{98,99}'')',
	'a < ALL (''{5,9}'')', 'a = ANY (''{5,6,7,8,9}'') AND a > 6', 'a = ANY (''{5,6,7,8,9}'') AND a = ANY (''{1,8,9,20}'')',
	'a > 5 AND a > 90 AND a <= 95 AND a < 200', 'a > 95 AND a < 5', 'a = 5 AND a = 6', 'a = 5 AND b > 3 AND b <= 9', 'a > 96 AND b = 4 AND c > ''v2''',
	'a = NULL', 'a > NULL AND b = 3', 'a = 9 AND b = 5 AND c = ANY (''{v0,v9,v9,v39}'')', 'b = ANY (''{1,2}'') AND c = ''v9''',
	'a = ANY (''{5,6}''::int8[])', 'a = ANY (''{5,6}''::int2[])', 'a IS NULL AND a IS NOT NULL']) condition;

-- Lists of which there are many combinations, and more than ranges are made of.
SELECT n, same_scan(format('SELECT a, b FROM t WHERE a = ANY (ARRAY(SELECT 2 * g FROM generate_series(-100, %1$s) g)) AND b = ANY (ARRAY(SELECT 3 * g FROM generate_series(-100, %1$s) g))', n))
FROM unnest(ARRAY[20, 400]) n;

-- Values that only the execution knows, NULL among them; arrays again and again.
SET enable_material = off;
SET enable_memoize = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT same_scan('SELECT v.x, t.a, t.b, t.c FROM (VALUES (3), (NULL), (3), (200), (7)) v(x), LATERAL (SELECT * FROM t WHERE a = v.x OFFSET 0) t'),
	same_scan('SELECT v.x, t.a, t.b FROM (VALUES (''{3,NULL,4,3}''::int[]), (NULL), (''{}''), (''{99,7}'')) v(x), LATERAL (SELECT * FROM t WHERE a = ANY (v.x) ORDER BY a DESC, b OFFSET 0) t'),
	same_scan('SELECT v.x, t.a, t.b FROM (VALUES (3), (NULL), (98), (NULL), (200)) v(x), LATERAL (SELECT * FROM t WHERE a > v.x ORDER BY a, b DESC, c LIMIT 4) t');
RESET enable_material; RESET enable_memoize; RESET enable_hashjoin; RESET enable_mergejoin;

-- The first and last, none of them NULL; DISTINCT and groups in order.
SELECT same_scan('SELECT min(a), max(a), (SELECT min(b) FROM t WHERE a = 5), (SELECT max(b) FROM t WHERE a = 5) FROM t WHERE a > 3'),
	same_scan('SELECT a, count(*) FROM t WHERE a > 90 GROUP BY a ORDER BY a'), same_scan('SELECT DISTINCT ON (a) a, b FROM t WHERE a > 40 ORDER BY a DESC, b'),
	same_scan('SELECT a, b, c FROM t WHERE a > 3 ORDER BY a, b DESC, c LIMIT 10 OFFSET 2000');

-- Merge joins, whose marks are in the midst of equal keys.
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT same_scan('SELECT x.a, count(*), count(y.b) FROM t x JOIN t y ON x.a = y.a WHERE x.a < 40 AND x.b < 3 AND y.b > 9 GROUP BY x.a ORDER BY x.a'),
	same_scan('SELECT x.a, x.b, count(*) FROM t x JOIN t y USING (a, b) WHERE x.c < ''v2'' GROUP BY 1, 2 ORDER BY 1, 2 DESC'),
	same_scan('SELECT count(*) FROM t x FULL JOIN (SELECT * FROM t WHERE a = ANY (''{1,1,2,50}'')) y ON x.a = y.a WHERE x.a < 60 OR y.a IS NOT NULL');
RESET enable_hashjoin; RESET enable_nestloop; RESET enable_material;

-- Comparisons with other types, also with values that the column's own cannot have.
CREATE FUNCTION across(type text, rows text, operands text[]) RETURNS TABLE (key text, operand text, n text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM make_pair('a ' || type, rows, 'a');
	RETURN QUERY SELECT type, o, (SELECT string_agg(same_scan('SELECT a FROM t WHERE a ' || op || ' ' || o || ' ORDER BY a'
				|| CASE WHEN op IN ('>', '=') THEN ' DESC' ELSE '' END), ' ' ORDER BY i)
			FROM unnest(ARRAY['<', '<=', '=', '>=', '>']) WITH ORDINALITY ops(op, i))
		FROM unnest(operands) WITH ORDINALITY os(o, j) ORDER BY j;
END $$;
SELECT * FROM across('int2', 'SELECT g FROM generate_series(-32768, 32767, 50) g', ARRAY['''32767''::int4', '40000::int4', '-40000', '''9e18''::numeric::int8', '-32768::int8', '82::int8']);
SELECT * FROM across('int4', 'SELECT g * 1000000 FROM generate_series(-2147, 2147) g', ARRAY['''-5''::int2', '32767::int2', '5000000::int8', '''9000000000''::int8', '''-9223372036854775808''::int8']);
SELECT * FROM across('int8', 'SELECT g::int8 * 1000000000000 FROM generate_series(-900, 900) g', ARRAY['0::int2', '''-1''::int2', '2000000000::int4', '''-2147483648''::int4']);
SELECT * FROM across('float4', 'SELECT (g / 10.0)::float4 FROM generate_series(-900, 900) g UNION ALL SELECT unnest(ARRAY[''NaN'', ''Infinity'', ''-Infinity'', ''-0'', ''0'']::float4[])',
	ARRAY['0.1::float8', '0.1::float4::float8', '1e300::float8', '''-1e300''::float8', '''NaN''::float8', '''-Infinity''::float8', '''-0''::float8', '1e-300::float8']);
SELECT * FROM across('float8', 'SELECT g / 10.0 FROM generate_series(-900, 900) g UNION ALL SELECT unnest(ARRAY[''NaN'', ''Infinity'', ''-Infinity'', ''-0'', ''5e-324'']::float8[])',
	ARRAY['0.1::float4', '0.5::float4', '''NaN''::float4', '''Infinity''::float4', '''-0''::float4']);
SELECT * FROM across('date', 'SELECT date ''2024-01-01'' + g FROM generate_series(1, 400) g UNION ALL SELECT unnest(ARRAY[''infinity'', ''-infinity'', ''4000-01-01 BC'', ''5000000-01-01'']::date[])',
	ARRAY['''2024-03-10 00:00''::timestamp', '''2024-03-10 00:00:01''::timestamp', '''2024-03-10 05:00+00''::timestamptz', '''2024-03-10 04:59:59+00''::timestamptz', '''infinity''::timestamp', '''-infinity''::timestamptz']);
SELECT * FROM across('timestamp', 'SELECT timestamp ''2024-03-09'' + g * interval ''17 min'' FROM generate_series(1, 400) g UNION ALL SELECT unnest(ARRAY[''infinity'', ''-infinity'']::timestamp[])',
	ARRAY['''2024-03-10''::date', '''2024-03-10 07:00+00''::timestamptz', '''2024-03-10 06:59:59+00''::timestamptz', '''infinity''::date', '''5000000-01-01''::date', '''4000-01-01 BC''::date']);
SELECT * FROM across('timestamptz', 'SELECT timestamptz ''2024-11-02'' + g * interval ''17 min'' FROM generate_series(1, 400) g UNION ALL SELECT unnest(ARRAY[''infinity'', ''-infinity'']::timestamptz[])',
	ARRAY['''2024-11-03''::date', '''2024-11-03 01:30''::timestamp', '''2024-11-03 02:00''::timestamp', '''-infinity''::date', '''4000-01-01 BC''::date']);
-- Time zones that no place has.
SET timezone = 100;
SELECT * FROM across('date', 'SELECT date ''2024-01-01'' + g FROM generate_series(1, 400) g', ARRAY['''2024-03-10 05:00+00''::timestamptz']);
SET timezone = -100;
SELECT * FROM across('timestamp', 'SELECT timestamp ''2024-03-01'' + g * interval ''1 hour'' FROM generate_series(1, 400) g', ARRAY['''2024-03-10 07:00+00''::timestamptz']);
SELECT * FROM across('timestamptz', 'SELECT timestamptz ''2024-03-01 00:00+00'' + g * interval ''1 hour'' FROM generate_series(1, 400) g', ARRAY['''2024-03-10''::date', '''2024-03-10 07:00''::timestamp']);
SET timezone = 'America/New_York';
SELECT * FROM across('text COLLATE "C"', 'SELECT ''n'' || g FROM generate_series(1, 900) g', ARRAY['''n5''::name', '''n500''::varchar', '''''::name', 'repeat(''n'', 63)::name']);
SELECT * FROM across('name', 'SELECT (''n'' || g)::name FROM generate_series(1, 900) g', ARRAY['''n5''::text COLLATE "C"', 'repeat(''n'', 100)::text COLLATE "C"', '''''::text COLLATE "C"']);

-- Prefixes.
SELECT make_pair('a text COLLATE "C", b text COLLATE "C"', 'SELECT chr(97 + g % 5) || CASE g % 4 WHEN 0 THEN '''' WHEN 1 THEN ''%'' WHEN 2 THEN chr(255) ELSE chr(128512) END || g, g::text FROM generate_series(1, 2000) g', 'a, b');
SELECT pattern, same_scan('SELECT a FROM t WHERE a LIKE ' || quote_literal(pattern) || ' ORDER BY a DESC')
FROM unnest(ARRAY['a%', 'a\%%', 'a\%1_', 'aÿ%', 'aÿ1%', 'a😀%', 'a4', '%4', '', '_4', 'e%9']) pattern;
SELECT same_scan('SELECT a FROM t WHERE a ~ ''^b1[0-9]'' ORDER BY a'), same_scan('SELECT a FROM t WHERE a ^@ ''c'' ORDER BY a'),
	same_scan('SELECT a FROM t WHERE a NOT LIKE ''a%'' ORDER BY a');

-- Cursors turn round between the values of a list, at its ends and where it has gaps.
CREATE FUNCTION to_and_fro(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	w refcursor;
	b refcursor;
	x text;
	y text;
	n int := 0;
	step int;
BEGIN
	PERFORM setseed(0.5);
	OPEN w SCROLL FOR EXECUTE regexp_replace(query, '\mt\M', 'pair_w', 'g');
	OPEN b SCROLL FOR EXECUTE regexp_replace(query, '\mt\M', 'pair_b', 'g');
	FOR i IN 1 .. 1200 LOOP
		step := CASE WHEN i % 50 = 0 THEN (random() * 400)::int - 200 WHEN random() < 0.5 THEN 1 ELSE -1 END;
		EXECUTE format('FETCH RELATIVE %s FROM %I', step, w) INTO x;
		EXECUTE format('FETCH RELATIVE %s FROM %I', step, b) INTO y;
		IF x IS DISTINCT FROM y THEN
			RETURN format('%s: %s, not %s', i, x, y);
		END IF;
		n := n + (x IS NOT NULL)::int;
	END LOOP;
	RETURN n > 600;
END $$;
SELECT make_pair('a int, b int', 'SELECT g % 50 * 2, g FROM generate_series(1, 3000) g', 'a, b');
SET enable_bitmapscan = off;
SELECT to_and_fro('SELECT (a, b)::text FROM t WHERE a = ANY (''{4,5,8,8,9,40,41,98,NULL}'') ORDER BY a, b'),
	to_and_fro('SELECT (a, b)::text FROM t WHERE a = ANY (''{4,5,8,8,9,40,41,98,NULL}'') ORDER BY a DESC, b DESC'),
	to_and_fro('SELECT (a, b)::text FROM t WHERE a > 10 AND b < 1000 ORDER BY a, b'), to_and_fro('SELECT (a, b)::text FROM t ORDER BY a DESC, b DESC');
SET enable_indexonlyscan = off;
SELECT to_and_fro('SELECT (a, b)::text FROM t WHERE a = ANY (''{4,5,8,8,9,40,41,98,NULL}'') ORDER BY a, b'), to_and_fro('SELECT (a, b)::text FROM t ORDER BY a DESC, b DESC');
DROP TABLE pair_w, pair_b;
DROP FUNCTION make_pair, same_scan, across, to_and_fro;
