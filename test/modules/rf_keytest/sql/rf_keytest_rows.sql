-- Keys of rows of several columns: their order, their ranges, reading them back.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS rf_keytest;
CREATE SCHEMA row_keys;
SET search_path = row_keys, public;
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres';
SET lc_monetary = 'C';
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/seed.sql
\set ECHO none
\i :helpers
\set ECHO all

--
-- What keys look like
--
CREATE FUNCTION hex(bytea) RETURNS text LANGUAGE sql AS $$ SELECT encode($1, 'hex') $$;
SELECT hex(rf_row_key(true, 'a', 5)) AS int4, hex(rf_row_key(true, 'd', 5)) AS "desc",
	   hex(rf_row_key(true, 'a', 5::int8)) AS int8, hex(rf_row_key(true, 'a', 5::int2)) AS int2,
	   hex(rf_row_key(true, 'a', true)) AS bool;
SELECT hex(rf_row_key(true, 'aa', NULL::int, 1::int2)) AS nulls_last,
	   hex(rf_row_key(true, 'AA', NULL::int, 1::int2)) AS nulls_first;
SELECT hex(rf_row_key(true, 'aa', 'ab'::text, ''::text)) AS text,
	   hex(rf_row_key(true, 'aa', '\x000102'::bytea, '\xff00'::bytea)) AS bytea,
	   hex(rf_row_key(true, 'd', '\x000102'::bytea)) AS "desc";
SELECT hex(rf_row_key(true, 'aa', '10.1.2.0/24'::inet, 1::int2)) AS inet,
	   hex(rf_row_key(true, 'a', '00112233-4455-6677-8899-aabbccddeeff'::uuid)) AS uuid;
SELECT hex(rf_row_key(true, 'aa', -1.5::numeric, 10001::numeric)) AS numeric;
SELECT length(rf_row_key(false, 'aa', repeat('a', 998), 1::int2)) AS "998",
	   length(rf_row_key(false, 'aa', repeat('a', 5000), 1)) AS cut,
	   length(rf_row_key(true, 'aa', repeat('a', 5000), 1)) AS whole;

-- and as text
SELECT rf_row_show(false, 'ada', 5, 'x'::text, NULL::date),
	   rf_row_show(false, 'ad', 5, 2.50),
	   rf_row_show(false, 'dD', '1.2.3.4/8'::inet, interval '1 day'),
	   substr(rf_row_show(false, 'aa', repeat('a', 5000), 1), 990) AS cut;
SELECT rf_row_show_bytes('aa', '\x0180', NULL::int, NULL::text) AS in_number,
	   rf_row_show_bytes('aa', '\x01800000050161', NULL::int, NULL::text) AS in_text,
	   rf_row_show_bytes('aa', '\x0180000005', NULL::int, NULL::text) AS between,
	   rf_row_show_bytes('aa', '\x0180000005016100ff', NULL::int, NULL::text) AS goes_on,
	   rf_row_show_bytes('a', '\x05', NULL::int) AS no_marker,
	   rf_row_show_bytes('a', '\x010107', NULL::text) AS bad_escape,
	   rf_row_show_bytes('a', '\x0103', NULL::bool) AS bad_number,
	   rf_row_show_bytes('a', '\x0109', NULL::inet) AS bad_inet,
	   rf_row_show_bytes('a', '\x01040a00000018', NULL::inet) AS cut_inet,
	   rf_row_show_bytes('aa', '', NULL::int, NULL::int) AS empty;

--
-- Random rows of random types: few values each, so that columns are equal
--
CREATE FUNCTION rnd(n int) RETURNS int LANGUAGE sql VOLATILE AS $$
	SELECT floor(random() * n)::int
$$;
CREATE TABLE pools (type text, vals text[]);
INSERT INTO pools VALUES
	('int2', '{-32768,-1,0,1,256,32767}'),
	('int4', '{-2147483648,-256,-1,0,1,2,65536,2147483647}'),
	('int8', '{-9223372036854775808,-1,0,1,4294967296,9223372036854775807}'),
	('oid', '{0,1,4294967295}'),
	('bool', '{f,t}'),
	('float4', '{-Infinity,-1.5,-0,0,1e-45,0.1,3e38,Infinity,NaN}'),
	('float8', '{-Infinity,-1.5,-0,0,5e-324,0.1,1e300,Infinity,NaN}'),
	('money', '{-1.00,0,92233720368547758.07}'),
	('date', '{-infinity,1999-12-31,2000-01-01,2000-01-02,infinity}'),
	('time', '{00:00,12:00,24:00}'),
	('timetz', '{00:00+01,12:00+00,13:00+01,24:00-12}'),
	('timestamp', '{-infinity,2000-01-01,2000-01-01 00:00:00.000001,infinity}'),
	('timestamptz', '{-infinity,2000-01-01,1999-12-31 23:59:59.999999,infinity}'),
	('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,ff:ff:ff:ff:ff:ff}'),
	('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,ff:ff:ff:ff:ff:ff:ff:ff}'),
	('interval', '{-1 day,0,24:00,1 day,1 mon,30 days}'),
	('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,ffffffff-ffff-ffff-ffff-ffffffffffff}'),
	('inet', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/24,10.0.0.1/24,10.0.0.1,255.255.255.255,::,::1,2001:db8::/32}'),
	('cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/24,10.0.0.1,::/0}'),
	('numeric', '{-Infinity,-10000.0001,-10000,-1.0,-1,-0.00005,0,0.0,0.00005,1,1.00,1.0001,9999,10000,10001,100000000,Infinity,NaN}');
INSERT INTO pools SELECT t, ARRAY['', 'a', 'a ', 'aa', 'ab', 'b', E'a\x01', E'\x01', E'\x01\x02', E'\x02', 'é', '~'] ||
	ARRAY(SELECT repeat('a', n) || s FROM generate_series(996, 1001) n, unnest('{"",b," "}'::text[]) s)
	FROM unnest('{text,varchar,bpchar}'::text[]) t;
INSERT INTO pools VALUES ('name', ARRAY['', 'a', 'aa', 'ab', E'\x01']),
	('bytea', ARRAY['', '\x00', '\x0000', '\x0001', '\x01', '\x0100', '\x0101', '\x0102', '\x02', '\x61', '\xfe', '\xff', '\xff00', '\xffff'] ||
	ARRAY(SELECT format('\x%s%s', repeat(b, n), s) FROM generate_series(997, 1001) n, unnest('{00,01,ff}'::text[]) b, unnest('{"",00,01,ff}'::text[]) s));
CREATE FUNCTION rnd_value(pool text[]) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.12 THEN NULL ELSE pool[1 + rnd(cardinality(pool))] END
$$;
CREATE TABLE row_result (round int, what text, types text[], flags text, problems int, tested int);

CREATE PROCEDURE check_rows(round int, types text[], flags text) LANGUAGE plpgsql AS $$
DECLARE
	n int := cardinality(types);
	c_collate text[];
	cols text;		-- c1, c2
	pair text;		-- l.c1, l.c2, r.c1, r.c2
	ordering text;
	same text;
	wanted text;
	k int;
	op text;
	strategy int;
BEGIN
	SELECT array_agg(CASE WHEN t IN ('text', 'varchar', 'bpchar', 'name') THEN ' COLLATE "C"' ELSE '' END ORDER BY i)
	INTO c_collate FROM unnest(types) WITH ORDINALITY u(t, i);
	SELECT string_agg('c' || i, ', ' ORDER BY i),
		   string_agg('l.c' || i, ', ' ORDER BY i) || ', ' || string_agg('r.c' || i, ', ' ORDER BY i),
		   string_agg(format('c%1$s%2$s %3$s', i, c_collate[i], CASE substr(flags, i, 1)
				WHEN 'a' THEN 'ASC NULLS LAST' WHEN 'A' THEN 'ASC NULLS FIRST'
				WHEN 'd' THEN 'DESC NULLS LAST' ELSE 'DESC NULLS FIRST' END), ', ' ORDER BY i),
		   string_agg(format('(c%1$s IS NULL AND b%1$s IS NULL OR coalesce(c%1$s = b%1$s%2$s, false))', i, c_collate[i]), ' AND ' ORDER BY i)
	INTO cols, pair, ordering, same FROM generate_series(1, n) i;
	EXECUTE 'CREATE TEMP TABLE r AS SELECT ' ||
		(SELECT string_agg(format('rnd_value(%L)::%I AS c%s', vals, type, i), ', ')
		 FROM unnest(types) WITH ORDINALITY u(t, i) JOIN pools ON type = t) ||
		' FROM generate_series(1, 150)';
	EXECUTE format('ALTER TABLE r ADD whole bytea, ADD cut bytea');
	EXECUTE format('UPDATE r SET whole = rf_row_key(true, %1$L, %2$s), cut = rf_row_key(false, %1$L, %2$s)', flags, cols);

	-- Sorted by value, each relates to the one before as their keys do
	EXECUTE format($q$
		INSERT INTO row_result SELECT %s, 'order', %L, %L,
			count(*) FILTER (WHERE whole < before OR (whole = before) <> same OR cut <> substr(whole, 1, 1000)), count(*)
		FROM (SELECT whole, cut, before, %s AS same
			  FROM (SELECT *, lag(whole) OVER w AS before, %s FROM r WINDOW w AS (ORDER BY %s)) s) t
		WHERE before IS NOT NULL$q$, round, types, flags, same,
		(SELECT string_agg(format('lag(c%s) OVER w AS b%1$s', i), ', ') FROM generate_series(1, n) i), ordering);

	-- They can be read back
	EXECUTE format($q$
		INSERT INTO row_result SELECT %1$s, 'reading back', %2$L, %3$L,
			count(*) FILTER (WHERE NOT rf_row_reads_back(%3$L, %4$s)), count(*) FROM r$q$, round, types, flags, cols);

	-- Ranges hold the keys they should, and no others
	k := rnd(n);
	strategy := rnd(6);
	op := ('{<,<=,=,>=,>}'::text[])[strategy];
	SELECT string_agg(format('(l.c%1$s IS NULL AND r.c%1$s IS NULL OR coalesce(l.c%1$s = r.c%1$s%2$s, false))', i, c_collate[i]), ' AND ')
	INTO wanted FROM generate_series(1, k) i;
	wanted := coalesce(wanted, 'true');
	IF strategy > 0 THEN
		wanted := wanted || format(' AND coalesce(l.c%1$s %2$s r.c%1$s%3$s, false)', k + 1, op, c_collate[k + 1]);
	END IF;
	EXECUTE format($q$
		INSERT INTO row_result SELECT %1$s, 'range', %2$L, %3$L,
			count(*) FILTER (WHERE wanted <> whole OR wanted AND NOT cut OR cut AND NOT wanted AND NOT shared) + count(*) FILTER (WHERE whole IS NULL OR cut IS NULL),
			count(*) FILTER (WHERE wanted)
		FROM (SELECT %4$s AS wanted, length(l.cut) = 1000 AS shared,
					 rf_row_matches(true, %3$L, %5$s, %6$s, %7$s) AS whole,
					 rf_row_matches(false, %3$L, %5$s, %6$s, %7$s) AS cut
			  FROM r l, (SELECT * FROM r LIMIT 40) r) s$q$, round, types, flags, wanted, k, strategy, pair);
	DROP TABLE r;
END $$;
DO $$
DECLARE
	types text[];
	flags text;
BEGIN
	FOR round IN 1..60 LOOP
		types := ARRAY(SELECT type FROM pools ORDER BY random() LIMIT 1 + rnd(3));
		-- strings more often: theirs are the difficult keys
		IF rnd(2) = 0 THEN
			types[1] := ('{text,bytea,numeric,bpchar,inet}'::text[])[1 + rnd(5)];
		END IF;
		SELECT string_agg(substr('aAdD', 1 + rnd(4), 1), '') INTO flags FROM unnest(types);
		CALL check_rows(round, types, flags);
	END LOOP;
	-- and each type once
	FOR types IN SELECT ARRAY[type, 'int2'] FROM pools LOOP
		CALL check_rows(100, types, (ARRAY['aa', 'da'])[1 + rnd(2)]);
	END LOOP;
END $$;
-- Conditions on several columns as one set
SELECT rf_row_set_check(:seed, 1000) > 1000 AS many_members;
SELECT what, count(*) >= 60 AS many_rounds, sum(tested) > 1000 AS many_tests FROM row_result GROUP BY what ORDER BY what;
SELECT :seed AS seed, * FROM row_result WHERE problems > 0;
