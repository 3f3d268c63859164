-- What index-only scans of a wormhole index make of its keys: every type, with
-- prefixes of pages of every length, in both directions, in part and one by one.
SET max_parallel_workers_per_gather = 0;
SET extra_float_digits = 1;

-- The rows of a query by index-only scans and by sequential ones, as text.
CREATE FUNCTION rows_of(query text, indexed bool, OUT result text[]) LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	PERFORM set_config(name, CASE WHEN indexed THEN 'off' ELSE 'on' END, true)
		FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort,enable_hashjoin,enable_mergejoin,enable_material,enable_memoize,enable_hashagg}'::text[]) name;
	PERFORM set_config('enable_indexscan', CASE WHEN indexed THEN 'on' ELSE 'off' END, true);
	PERFORM set_config('enable_indexonlyscan', CASE WHEN indexed THEN 'on' ELSE 'off' END, true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	IF (plan ~ 'Index Only Scan') <> indexed OR (indexed AND plan ~ 'Seq Scan on t[ \n]') THEN
		RAISE 'not the plan that was meant: %', plan;
	END IF;
	EXECUTE 'SELECT array_agg(x::text ORDER BY x::text COLLATE "C") FROM (' || query || ') x' INTO result;
END $$;

-- Is a query's result in order?
CREATE FUNCTION in_order(query text, OUT result bool) LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off;
	SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on;
	EXECUTE 'SELECT coalesce(bool_and(k >= before), true)
		FROM (SELECT k, lag(k) OVER () AS before FROM (' || query || ') x) y' INTO result;
END $$;

CREATE FUNCTION check_type(type text, value text, definition text, OUT result text) LANGUAGE plpgsql AS $$
DECLARE
	query text;
	plain text;
	n int := 0;
BEGIN
	EXECUTE 'CREATE TABLE t (k ' || type || ', v text)';
	EXECUTE 'INSERT INTO t SELECT ' || value || ', repeat(i::text, i % 9) FROM generate_series(-1500, 1500) i';
	INSERT INTO t SELECT NULL FROM generate_series(1, 700);
	-- Dense and scattered ones are there; now many rows of one key.
	INSERT INTO t SELECT k FROM (SELECT k FROM t WHERE k IS NOT NULL ORDER BY k LIMIT 1 OFFSET 1000) x, generate_series(1, 900);
	EXECUTE 'CREATE INDEX t_k ON t USING wormhole (k ' || definition;
	-- Half of the entries are inserted one by one.
	EXECUTE 'INSERT INTO t SELECT ' || value || ', NULL FROM generate_series(1501, 4000) i';
	ANALYZE t;
	FOREACH query IN ARRAY ARRAY['SELECT k FROM t ORDER BY k', 'SELECT k FROM t ORDER BY k DESC',
		'SELECT k FROM t WHERE k >= (SELECT k FROM t s ORDER BY k LIMIT 1 OFFSET 900) ORDER BY k',
		'SELECT k FROM t WHERE k < (SELECT k FROM t s ORDER BY k LIMIT 1 OFFSET 1200) ORDER BY k DESC',
		'SELECT k FROM t WHERE k IS NULL',
		'SELECT y.k FROM (SELECT DISTINCT k AS d FROM t) p, LATERAL (SELECT k FROM t WHERE t.k = p.d OFFSET 0) y']
	LOOP
		IF definition ~ 'INCLUDE' THEN
			query := regexp_replace(query, '(^|\()SELECT (y\.)?k FROM', '\1SELECT \2k, \2v FROM');
			query := replace(query, '(SELECT k FROM t WHERE', '(SELECT k, v FROM t WHERE');
		END IF;
		-- The point is the values, so the rows need not come in this order.  Those found
		-- key by key are all that have one.
		plain := replace(replace(query, 'ORDER BY k DESC', ''), ' ORDER BY k', CASE WHEN query ~ 'OFFSET [0-9]{2}' THEN ' ORDER BY k' ELSE '' END);
		IF query ~ 'LATERAL' THEN
			plain := regexp_replace(plain, '^.*LATERAL \((SELECT .* FROM t) WHERE.*$', '\1 WHERE k IS NOT NULL');
		END IF;
		IF rows_of(query, true) IS DISTINCT FROM rows_of(plain, false) THEN
			result := concat_ws('; ', result, query);
		END IF;
		n := n + 1;
	END LOOP;
	IF NOT in_order('SELECT k FROM t WHERE k IS NOT NULL ORDER BY k') THEN
		result := concat_ws('; ', result, 'order');
	END IF;
	PERFORM wormhole_check('t_k', true);
	DROP TABLE t;
	result := coalesce('wrong: ' || result, n || ' as they should be');
END $$;

SELECT type, definition, check_type(type, value, definition)
	FROM (VALUES ('int2', 'i * 7'), ('int4', 'CASE i % 3 WHEN 0 THEN i WHEN 1 THEN hashint4(i) ELSE -2147483648 + (i + 1500) END'),
		('int8', 'CASE i % 3 WHEN 0 THEN i WHEN 1 THEN hashint8extended(i, 1) ELSE 9223372036854775807 - (i + 1500) END'),
		('int8', '1000000000000 + i'), ('oid', '(4294960000 + i)::oid'), ('date', 'date ''2000-01-01'' + 100 * i'),
		('timestamp', 'timestamp ''2026-01-01'' + i * interval ''7.77 s'''),
		('timestamptz', 'timestamptz ''1999-12-31 23:59+00'' + i * interval ''1 h'''),
		('time', 'time ''12:00'' + i * interval ''1.5 s'''), ('money', '(i / 7.0)::numeric::money'), ('bool', 'i % 3 = 0'),
		('float4', 'CASE i % 50 WHEN 0 THEN ''-0'' WHEN 1 THEN ''NaN'' WHEN 2 THEN ''-Infinity'' ELSE (i / 7.0)::float4 END'),
		('float8', 'CASE i % 50 WHEN 0 THEN ''-0'' WHEN 1 THEN ''NaN'' WHEN 2 THEN ''Infinity'' WHEN 3 THEN 0 ELSE exp(i / 9.0) END'),
		('uuid', 'CASE WHEN i % 2 = 0 THEN md5(i::text)::uuid ELSE (''00000000-0000-0000-0000-'' || lpad(to_hex(i + 1500), 12, ''0''))::uuid END'),
		('text COLLATE "C"', 'CASE i % 4 WHEN 0 THEN repeat(''x'', abs(i) / 16) WHEN 1 THEN chr(1) || to_hex(i) || chr(1) WHEN 2 THEN md5(i::text) ELSE ''https://www.example.org/'' || repeat(''long/'', 30) || i END'),
		('text COLLATE "C"', '''a common beginning of them all, '' || repeat(''z'', 90 + abs(i) % 10) || i'),
		('bytea', 'decode(lpad(to_hex(i + 1500), 8, ''0''), ''hex'')'),
		('name', 'left(md5(i::text), 1 + abs(i) % 32)'), ('macaddr', '(''00:01:02:03:'' || lpad(to_hex(abs(i) / 100), 2, ''0'') || '':'' || lpad(to_hex(abs(i) % 100), 2, ''0''))::macaddr'),
		('numeric', 'CASE WHEN i % 2 = 0 THEN i / 100.0 ELSE round(i / 100.0, 1) END'),
		('char(9)', 'left(md5(i::text), 5 + abs(i) % 5)'), ('interval', 'i * interval ''1 day 1 h''')) AS types(type, value),
		unnest(ARRAY[')', 'DESC)', 'NULLS FIRST) INCLUDE (v)']) AS definition;

-- Several columns, with a condition that is no range.
CREATE TABLE t2 AS SELECT i % 7 AS a, md5(i::text) COLLATE "C" AS b, CASE WHEN i % 5 > 0 THEN i END AS c, repeat('wide', i % 200) AS w FROM generate_series(1, 4000) i;
CREATE INDEX t2_abc ON t2 USING wormhole (a DESC, b, c NULLS FIRST) INCLUDE (w);
VACUUM ANALYZE t2;
SELECT query, rows_of(query, true) = rows_of(query, false) AS same
	FROM unnest(ARRAY['SELECT a, b, c, w FROM t2', 'SELECT a, c, w FROM t2 WHERE b < ''8''', 'SELECT b, c FROM t2 WHERE a = 3 AND c IS NULL',
		'SELECT a, b, w FROM t2 WHERE a IN (1, 5) AND b > ''e''']) query;

-- Columns of all lengths and alignments behind each other, with nulls and bytes that
-- are escaped in keys, up and down.
CREATE TABLE t4 AS SELECT i % 2 = 0 AS b, (i % 300 - 150)::int2 AS s, repeat(chr(97 + i % 3), i % 140) COLLATE "C" AS t,
	md5(i::text)::uuid AS u, i::int8 * 1000003 - 5000000 AS n, CASE WHEN i % 11 <> 0 THEN repeat(chr(1 + i % 4), i % 200) END COLLATE "C" AS x,
	(i / 3.0)::float4 AS f, decode(repeat('00ff01', i % 50), 'hex') AS y, '12:00'::time + i * interval '1.001 s' AS h
	FROM generate_series(1, 4000) i;
CREATE FUNCTION same_with(definition text, query text, OUT result bool) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'CREATE INDEX t4_x ON t4 USING wormhole ' || definition;
	result := rows_of(query, true) = rows_of(query, false);
	DROP INDEX t4_x;
END $$;
VACUUM ANALYZE t4;
SELECT definition, same_with(definition, 'SELECT ' || regexp_replace(definition, '[()]| DESC', '', 'g') || ' FROM t4') AS same
	FROM unnest(ARRAY['(b, s, t, u, n, x, f, y, h)', '(b DESC, s, t DESC, u DESC, n DESC, x DESC, f, y DESC, h DESC)',
		'(t DESC)', '(u DESC)', '(y DESC)', '(s, n)', '(t, b, x)', '(x, t, n DESC)', '(u, h, s DESC)']) definition;

-- Strings long enough for a header of four bytes, behind others of any length.
CREATE TABLE t5 AS SELECT repeat('q', a) COLLATE "C" AS a, repeat('b', 100 + b) COLLATE "C" AS b FROM generate_series(1, 9) a, generate_series(1, 60) b;
CREATE INDEX t5_ab ON t5 USING wormhole (a, b);
VACUUM ANALYZE t5;
SELECT rows_of('SELECT a, b FROM t5', true) = rows_of('SELECT a, b FROM t5', false) AS same;

-- Cursors that turn round within batches and at their ends; the rows of one
-- value are several lists of TIDs, some of which are cut by leaves' bounds.
CREATE FUNCTION wander(query text, OUT result text) LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	expected text[];
	got text;
	at int := 0;				-- 0: before the first row
	steps int;
	n int;
BEGIN
	PERFORM setseed(0.25);
	SET LOCAL enable_seqscan = on; SET LOCAL enable_sort = on; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_indexscan = off;
	EXECUTE 'SELECT array_agg(x::text) FROM (' || query || ') x' INTO expected;
	n := cardinality(expected);
	SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_bitmapscan = off;
	OPEN c SCROLL FOR EXECUTE 'SELECT x::text FROM (' || query || ') x';
	FOR i IN 1 .. 1500 LOOP
		steps := CASE WHEN random() < 0.5 THEN 1 ELSE (random() * random() * 1500)::int END;
		IF random() < 0.48 THEN
			steps := -steps;
		END IF;
		IF abs(steps) > 1 THEN
			EXECUTE format('MOVE RELATIVE %s FROM %I', steps, c);
			at := greatest(0, least(n + 1, at + steps));
			steps := sign(steps);
		END IF;
		EXECUTE format('FETCH RELATIVE %s FROM %I', steps, c) INTO got;
		at := greatest(0, least(n + 1, at + steps));
		IF got IS DISTINCT FROM expected[at] THEN	-- null outside of 1 to n
			result := format('step %s, row %s: %s, not %s', i, at, got, expected[at]);
			RETURN;
		END IF;
	END LOOP;
	CLOSE c;
	result := 'as expected';
END $$;
CREATE TABLE t3 AS SELECT i / 700 AS few, md5(i::text)::uuid AS u, hashint8(i)::int8 * i AS n FROM generate_series(1, 6000) i;
CREATE INDEX t3_few ON t3 USING wormhole (few);
CREATE INDEX t3_u ON t3 USING wormhole (u);
CREATE INDEX t3_n ON t3 USING wormhole (n DESC) INCLUDE (few);
INSERT INTO t3 SELECT i / 700, md5(i::text)::uuid, i FROM generate_series(1, 7000, 3) i;
VACUUM ANALYZE t3;
SELECT wander('SELECT few FROM t3 ORDER BY few');
SELECT wander('SELECT few FROM t3 WHERE few BETWEEN 3 AND 5 ORDER BY few DESC');
SELECT wander('SELECT u FROM t3 ORDER BY u');
SELECT wander('SELECT u FROM t3 WHERE u > ''40000000-0000-0000-0000-000000000000'' ORDER BY u DESC');
SELECT wander('SELECT n FROM t3 WHERE n < 1000000 ORDER BY n');

-- Mark and restore, over batches.
SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_sort = off; SET enable_seqscan = off;
SET enable_bitmapscan = off; SET enable_material = off;
EXPLAIN (COSTS off) SELECT count(*), sum(a.few + b.few) FROM t3 a JOIN t3 b USING (few);
SELECT count(*), sum(a.few + b.few) FROM t3 a JOIN t3 b USING (few);
SELECT sum(n * n), sum(n * n * few * 2) FROM (SELECT few, count(*) AS n FROM t3 GROUP BY few) x;

-- A row with -0, in the place of a row that was deleted, between rows with 0: lists of row
-- addresses keep what index-only scans return, also when their last row is deleted.
CREATE TABLE t6 AS SELECT i, CASE WHEN i = 100 THEN 7 ELSE 0 END::float8 AS f, i / 200 AS n FROM generate_series(1, 150) i;
CREATE INDEX t6_f ON t6 USING wormhole (f);
CREATE INDEX t6_n ON t6 USING wormhole (n, f);
DELETE FROM t6 WHERE i = 100;
VACUUM t6;
INSERT INTO t6 VALUES (1000, '-0', 0);
SELECT ctid FROM t6 WHERE i = 1000;
VACUUM t6;
SELECT f::text, count(*) FROM t6 WHERE f = 0 GROUP BY 1 ORDER BY 1;
SELECT f::text, count(*) FROM t6 WHERE n = 0 AND f = 0 GROUP BY 1 ORDER BY 1;
DELETE FROM t6 WHERE i = 150;
VACUUM t6;
EXPLAIN (COSTS off) SELECT f::text, count(*) FROM t6 WHERE f = 0 GROUP BY 1;
SELECT f::text, count(*) FROM t6 WHERE f = 0 GROUP BY 1 ORDER BY 1;
SELECT f::text, count(*) FROM t6 WHERE n = 0 AND f = 0 GROUP BY 1 ORDER BY 1;
SELECT f::text, count(*) FROM t6 WHERE i > 0 GROUP BY 1 ORDER BY 1;
SELECT wormhole_check('t6_f', true), wormhole_check('t6_n', true);
DROP TABLE t2, t3, t4, t5, t6;
DROP FUNCTION rows_of, in_order, check_type, wander, same_with;
