--
-- Digests of strings and of rows: what is skipped is the same with digests and without
--
CREATE SCHEMA rf_string_digests;
SET search_path = rf_string_digests, public;
LOAD 'rangefilter';

-- Strings of digits, words, bytes of all values, and rows.  Few are empty, or longer than keys.
CREATE FUNCTION word(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT string_agg((ARRAY['the', 'con', 'an', 're', 'ing', 's', 'ba', 'ver', 'ti', 'qu', 'or', 'mo', 'xe', 'li', 'ka', 'u'])
	[1 + (hashint8extended(n, i) & 15)], '') FROM generate_series(1, 4 + (n % 3)::int) i
$$;
CREATE FUNCTION value(kind text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
SELECT CASE
	WHEN n % 1009 = 0 THEN ''
	WHEN n % 1013 = 0 THEN repeat('long ', 250) || n
	WHEN kind = 'digits' THEN md5(n::text)
	ELSE 'id-' || word(n) END
$$;
CREATE FUNCTION bytes(n bigint) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
SELECT CASE WHEN n % 7 = 0 THEN '\xffff'::bytea ELSE '' END
	|| decode(translate(md5(n::text), '0123456789abcdef', '0f0f0f0f0f0ffff0'), 'hex')
	|| CASE WHEN n % 1013 = 0 THEN decode(repeat('ff', 1200), 'hex') ELSE '' END
$$;
CREATE TABLE digits (p int, k text COLLATE "C", n int) PARTITION BY LIST (p);
CREATE TABLE words (p int, k text COLLATE "C", n int) PARTITION BY LIST (p);
CREATE TABLE bytes (p int, k bytea, n int) PARTITION BY LIST (p);
CREATE TABLE rows (p int, k text COLLATE "C", n int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES IN (%2$s)', t, i)
FROM unnest('{digits,words,bytes,rows}'::text[]) t, generate_series(1, 40) i
\gexec
INSERT INTO digits SELECT n % 40 + 1, value('digits', n), 0 FROM generate_series(1, 12000) n;
INSERT INTO words SELECT n % 40 + 1, value('words', n), 0 FROM generate_series(1, 12000) n;
INSERT INTO bytes SELECT n % 40 + 1, bytes(n), 0 FROM generate_series(1, 12000) n;
INSERT INTO rows SELECT n % 40 + 1, value('words', n / 2), n % 100 FROM generate_series(1, 12000) n;
CREATE INDEX ON digits USING rangefilter (k);
CREATE INDEX ON words USING rangefilter (k);
CREATE INDEX ON bytes USING rangefilter (k);
CREATE INDEX ON rows USING rangefilter (k, n);

-- Most filters have hashes.
SELECT relname, count(*) FILTER (WHERE filter = 'pair') > 30 AS pairs FROM pg_class, rangefilter_status(oid)
WHERE relkind = 'I' AND relnamespace = 'rf_string_digests'::regnamespace GROUP BY 1 ORDER BY 1;

-- Conditions about values of which some are there.
CREATE TABLE questions (q serial, t text, condition text);
INSERT INTO questions (t, condition)
SELECT t, CASE n % 8
	WHEN 0 THEN format('k LIKE %L', left(v, 7) || '%')
	WHEN 1 THEN format('k > %L AND k < %L', v, v || '~')
	WHEN 2 THEN format('k BETWEEN %L AND %L', left(v, 5), v)
	WHEN 3 THEN format('k IN (%L, %L)', v, v || 'a')
	WHEN 4 THEN format('k = %L AND n = %s', v, n % 100)
	ELSE format('k = %L', v) END
FROM unnest('{digits,words,rows}'::text[]) t, generate_series(11000, 13000, 7) n, value(t, n) v;
INSERT INTO questions (t, condition)
SELECT 'bytes', CASE n % 6
	WHEN 0 THEN format('k LIKE %L::bytea || %L::bytea', substr(v, 1, 6), '%')
	WHEN 1 THEN format('k > %L AND k < %L', v, v || '\x01')
	WHEN 2 THEN format('k BETWEEN %L AND %L', substr(v, 1, 3), v)
	ELSE format('k = %L', v) END
FROM generate_series(11000, 13000, 5) n, bytes(n) v;
INSERT INTO questions (t, condition)
SELECT t, format('k %s', c) FROM unnest('{digits,words,bytes,rows}'::text[]) t,
	unnest(ARRAY['= ''''', '< ''0''', '> ''z''', '> ''id-xex''', 'IS NULL', 'BETWEEN ''a'' AND ''a1''']) c;
INSERT INTO questions (t, condition)
SELECT t, format('k = repeat(''long '', %s) || %s', n, m) FROM unnest('{digits,words,rows}'::text[]) t,
	unnest(ARRAY[3, 200, 250]) n, unnest(ARRAY[1013, 1014]) m;

CREATE FUNCTION skipped(t text, condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT * FROM %I WHERE %s', t, condition) LOOP
		IF line ~ 'Partitions Skipped' THEN
			RETURN substring(line, 'Skipped: (.*)');
		END IF;
	END LOOP;
	RETURN 'none';
END $$;
CREATE TABLE answers (round int, q int, digests boolean, rows bigint, skipped text);
CREATE FUNCTION ask(round int, digests boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	question record;
	n bigint;
BEGIN
	FOR question IN SELECT * FROM questions ORDER BY q LOOP
		EXECUTE format('SELECT count(*) FROM %I WHERE %s', question.t, question.condition) INTO n;
		INSERT INTO answers VALUES (round, question.q, digests, n, skipped(question.t, question.condition));
	END LOOP;
END $$;

-- Questions until there are digests: the session's own, or shared ones.
CREATE FUNCTION digests() RETURNS bigint LANGUAGE sql AS
$$ SELECT entries + indexes FROM rangefilter_session_cache(), rangefilter_shared_cache() WHERE what = 'digests' $$;
CREATE FUNCTION warm(t text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	before bigint = digests();
BEGIN
	FOR i IN 1 .. 300 LOOP
		PERFORM skipped(t, format('k = %L', CASE t WHEN 'bytes' THEN bytes(100000 + i)::text WHEN 'digits' THEN md5('d' || i)
			ELSE 'id-' || word(100000 + i) END));
	END LOOP;
	RETURN digests() - before > 30;
END $$;
SELECT t, warm(t) FROM unnest('{digits,words,bytes,rows}'::text[]) t;

SELECT ask(1, true);

-- New keys, that the digests do not have.
INSERT INTO digits SELECT n % 40 + 1, value('digits', n), 1 FROM generate_series(12001, 12100) n;
INSERT INTO words SELECT n % 40 + 1, value('words', n), 1 FROM generate_series(12001, 12100) n;
INSERT INTO words VALUES (3, 'a'), (4, ''), (5, 'id-'), (6, NULL), (7, 'zz'), (8, 'id-xex' || chr(1114000));
INSERT INTO bytes SELECT n % 40 + 1, bytes(n), 1 FROM generate_series(12001, 12100) n;
INSERT INTO rows SELECT n % 40 + 1, value('words', n), n % 100 FROM generate_series(12001, 12100) n;
SELECT ask(2, true);
SELECT t, warm(t) OR digests() > 120 AS digests FROM unnest('{digits,words,bytes,rows}'::text[]) t;
SELECT ask(3, true);

-- Without digests; and without skipping.
SET rangefilter.cache_size = 0;
SELECT ask(3, false);
SELECT a.q, t, condition, a.skipped, b.skipped FROM answers a JOIN answers b USING (round, q) JOIN questions USING (q)
WHERE a.digests AND NOT b.digests AND (a.skipped, a.rows) IS DISTINCT FROM (b.skipped, b.rows) ORDER BY 1;
SELECT t, round, sum(rows) AS rows, sum(split_part(skipped, ' ', 1)::int) FILTER (WHERE skipped <> 'none') > 500 AS skipped
FROM answers JOIN questions USING (q) WHERE digests GROUP BY 1, 2 ORDER BY 1, 2;
SET rangefilter.enable = off;
SELECT ask(4, false);
SELECT a.q, t, condition, a.rows, b.rows FROM answers a JOIN answers b USING (q) JOIN questions USING (q)
WHERE a.round = 3 AND a.digests AND b.round = 4 AND a.rows <> b.rows ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA rf_string_digests CASCADE;
