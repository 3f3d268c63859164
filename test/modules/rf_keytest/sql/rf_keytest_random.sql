-- Properties of encodings and key sets, on random and on extreme values.
--
-- Without failures the output is always the same, whatever the seed.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS rf_keytest;
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres';
SET extra_float_digits = 1;
SET lc_monetary = 'C';
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/seed.sql
\set ECHO none
\i :helpers
\set ECHO all

-- Sets against a bitmap model; random bytes shown as keys
SELECT rf_keyset_check(:seed, 5000);
SELECT rf_show_check(:seed, 300);

--
-- Random values
--

-- Integers of all magnitudes
CREATE FUNCTION rnd() RETURNS int8 LANGUAGE sql VOLATILE AS $$
	SELECT ((floor(random() * 4294967296)::int8 << 32) |
			floor(random() * 4294967296)::int8) >> floor(random() * 64)::int
$$;
-- from 0 to n - 1
CREATE FUNCTION rnd(n int) RETURNS int LANGUAGE sql VOLATILE AS $$
	SELECT floor(random() * n)::int
$$;
-- one of some
CREATE FUNCTION rnd(choice anyarray) RETURNS anyelement LANGUAGE sql VOLATILE AS $$
	SELECT choice[1 + rnd(cardinality(choice))]
$$;
-- short strings of few letters, so that they meet, and some near the cut
CREATE FUNCTION rnd_text() RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN rnd(12) > 0 THEN '' ELSE repeat(rnd('{a,b,é," "}'::text[]), 996 + rnd(5)) END ||
		coalesce(string_agg(rnd(ARRAY['a', 'a', 'b', ' ', ' ', 'B', 'é', '!', E'\x01', '~', '€', '😀', '-']), ''), '')
	FROM generate_series(1, rnd(rnd('{3,6,9}'::int[])))
$$;
CREATE FUNCTION rnd_bytea() RETURNS bytea LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN rnd(12) > 0 THEN '' ELSE decode(repeat(rnd('{61,ff,00}'::text[]), 996 + rnd(5)), 'hex') END ||
		coalesce(string_agg(decode(rnd('{00,01,61,62,fe,ff,ff}'::text[]), 'hex'), ''), '')
	FROM generate_series(1, rnd(6))
$$;

CREATE TABLE seeds AS
	SELECT v::int8 FROM unnest('{-9223372036854775808,-9223372036854775807,
		9223372036854775806,9223372036854775807,0,1,-1,2,-2,32767,32768,-32768,
		-32769,2147483647,2147483648,-2147483648,-2147483649,4294967295,
		4294967296,86400,-86400,1461,16777216,16777217}'::numeric[]) v
	UNION ALL SELECT rnd() FROM generate_series(1, 1500);

CREATE TABLE pool_int8 AS SELECT v FROM seeds;
CREATE TABLE pool_int4 AS SELECT v::int4 FROM seeds WHERE v BETWEEN -2147483648 AND 2147483647;
CREATE TABLE pool_int2 AS SELECT v::int2 FROM seeds WHERE v BETWEEN -32768 AND 32767;
CREATE TABLE pool_oid AS SELECT (v & 4294967295)::oid AS v FROM seeds;
CREATE TABLE pool_bool AS SELECT v FROM unnest('{f,t}'::bool[]) v;
CREATE TABLE pool_money AS SELECT (v * 0.01)::money AS v FROM seeds;

-- Floats by their bits (all exponents, subnormals, NaNs), and plain ones
CREATE TABLE pool_float4 AS
	SELECT rf_float4(((v >> 32) # v)::bit(32)::int) AS v FROM (SELECT rnd() # (rnd() << 32) AS v FROM generate_series(1, 1500)) r
	UNION ALL SELECT v::float4 FROM seeds
	UNION ALL SELECT (rnd(100) / 10.0)::float4 FROM generate_series(1, 100)
	UNION ALL SELECT unnest('{0,-0,NaN,infinity,-infinity,3.4028235e38,-3.4028235e38,3.4028233e38,
		1e-45,-1e-45,3e-45,1.1754944e-38,1.1754942e-38,-1.1754942e-38,0.1,0.5}'::float4[])
	UNION ALL SELECT rf_float4(b) FROM unnest(ARRAY[-1, x'7F800001'::int, x'FF800001'::int]) b;
-- around every float4, the float8 equal to it and its neighbours
CREATE FUNCTION bits(v float8) RETURNS int8 LANGUAGE sql IMMUTABLE AS $$
	SELECT ('x' || encode(float8send(v), 'hex'))::bit(64)::int8
$$;
CREATE TABLE pool_float8 AS
	SELECT rf_float8(v) AS v FROM seeds
	UNION ALL SELECT rf_float8(rnd() # (rnd() << 32)) FROM generate_series(1, 1000)
	UNION ALL SELECT v::float8 FROM seeds
	UNION ALL SELECT rf_float8(bits(v::float8) + rnd(3) - 1) FROM pool_float4 WHERE v <> 0
	UNION ALL SELECT (rnd(100)::float8 / 10) FROM generate_series(1, 100)
	UNION ALL SELECT unnest('{0,-0,NaN,infinity,-infinity,1.7976931348623157e308,-1.7976931348623157e308,
		5e-324,-5e-324,2.2250738585072014e-308,1e300,-1e300,3.4028235677973362e38,3.4028235677973366e38,
		3.402823466385289e38,-3.402823466385289e38,7e-46,-7e-46,7.006492321624085e-46,1e-300,-1e-300,0.1,0.5}'::float8[]);

CREATE TABLE pool_date AS
	SELECT date '2000-01-01' + (v >> rnd('{0,8}'::int[]))::int AS v FROM seeds WHERE v BETWEEN -2451545 AND 2145031483
	UNION ALL SELECT date '2020-01-01' + rnd(30) FROM generate_series(1, 300)
	UNION ALL SELECT unnest('{infinity,-infinity,4714-11-24 BC,4714-11-25 BC,5874897-12-31,294276-12-30,
		294276-12-31,294277-01-01,294277-01-02,1999-12-31,2000-01-01,2000-01-02}'::date[]);
-- midnights, their neighbours, and any time
CREATE TABLE pool_timestamp AS
	SELECT v::timestamp + rnd('{0,0,-1,1}'::int[]) * interval '1 us' AS v FROM pool_date
		WHERE v BETWEEN date '4714-11-25 BC' AND date '294276-12-30'
	UNION ALL SELECT timestamp '2000-01-01' + v * interval '1 us' FROM seeds WHERE abs(v / 2) < 100000000000000000
	UNION ALL SELECT unnest('{infinity,-infinity,4714-11-24 00:00:00 BC,4714-11-24 00:00:00.000001 BC,
		294276-12-31 23:59:59.999999,294276-12-31 00:00,294276-12-31 00:00:00.000001}'::timestamp[]);
CREATE TABLE pool_timestamptz AS SELECT v AT TIME ZONE 'UTC' AS v FROM pool_timestamp;
CREATE TABLE pool_time AS
	SELECT time '00:00' + rnd() * interval '1 us' AS v FROM generate_series(1, 1000)
	UNION ALL SELECT make_time(rnd(24), rnd(2) * 30, 0) FROM generate_series(1, 200)
	UNION ALL SELECT unnest('{00:00,23:59:59.999999,24:00,12:00}'::time[]);
-- zones on earth, the widest that are read, and what AT TIME ZONE makes
CREATE TABLE pool_timetz AS
	SELECT (v::text || '+00')::timetz AT TIME ZONE make_interval(secs => CASE rnd(8)
			WHEN 0 THEN rnd(115199) - 57599
			WHEN 1 THEN rnd(200000000) - 100000000
			WHEN 2 THEN rnd() >> 32
			ELSE (rnd(27) - 13) * 3600 END) AS v FROM pool_time
	UNION ALL SELECT (h || ':00' || z || ':00')::timetz FROM generate_series(0, 24) h, unnest('{-15,-01,+00,+01,+15}'::text[]) z
	UNION ALL SELECT unnest('{00:00+15:59:59,24:00-15:59:59,23:59:59.999999-15:59:59,00:00:00.000001+15:59:59}'::timetz[]);
CREATE TABLE pool_interval AS
	SELECT make_interval(months => (rnd() >> 32)::int, days => (rnd() >> 32)::int) + (rnd() >> 1) * interval '1 us' AS v FROM generate_series(1, 700)
	UNION ALL SELECT make_interval(months => rnd(5) - 2, days => rnd(121) - 60, hours => (rnd(61) - 30) * 24) FROM generate_series(1, 700)
	UNION ALL SELECT make_interval(months => m, days => d, hours => h) + rnd(3) * interval '1 us'
		FROM unnest('{-2147483648,-1,0,1,2147483647}'::int[]) m, unnest('{-2147483648,-30,0,30,2147483647}'::int[]) d,
			 unnest('{-2147483647,-720,0,720,2147483647}'::int[]) h
	UNION ALL SELECT make_interval(months => m, days => d) + t
		FROM unnest('{-2147483648,2147483647}'::int[]) m, unnest('{-2147483648,2147483647}'::int[]) d,
			 unnest('{2562047788:00:54.775806,-2562047788:00:54.775807}'::interval[]) t
	-- the greatest interval is infinity since PostgreSQL 17
	UNION ALL SELECT (CASE WHEN current_setting('server_version_num')::int < 170000
		THEN '2147483647 mons 2147483647 days 2562047788:00:54.775807' ELSE 'infinity' END)::interval;

CREATE TABLE pool_numeric AS
	SELECT v::numeric / rnd('{1,10,1000,10000,100000000}'::numeric[]) AS v FROM seeds
	UNION ALL SELECT (rnd() % 100) * 10::numeric ^ (rnd(30) - 15) FROM generate_series(1, 600)
	UNION ALL SELECT (rnd() % 3 || repeat(rnd('{0,9,0001,1234}'::text[]), rnd(700)) || rnd(2) || rnd('{"",.,.000,.01}'::text[]) || rnd(2))::numeric FROM generate_series(1, 200)
	UNION ALL SELECT s * (10::numeric ^ 131071 + d) FROM unnest('{-1,1}'::numeric[]) s, unnest('{-1,0,1}'::numeric[]) d
	UNION ALL SELECT s * d FROM unnest('{-1,1,0,10000}'::numeric[]) s, unnest('{1e-16383,1,1.0,0.1,0.00010000,9999,10000,1e5}'::numeric[]) d
	UNION ALL SELECT unnest('{NaN,Infinity,-Infinity}'::numeric[]);
CREATE TABLE pool_uuid AS
	SELECT overlay(md5(random()::text) placing repeat(rnd('{0,f,a}'::text[]), 8 * rnd(4)) from 1)::uuid AS v FROM generate_series(1, 1000)
	UNION ALL SELECT unnest('{00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff,
		00000000-0000-0000-0000-000000000001,80000000-0000-0000-0000-000000000000}'::uuid[]);
CREATE TABLE pool_macaddr8 AS
	SELECT overlay(md5(random()::text) placing repeat(rnd('{0,f,8}'::text[]), rnd(16)) from 1 for 16)::varchar(16)::macaddr8 AS v FROM generate_series(1, 1000)
	UNION ALL SELECT unnest('{0000000000000000,ffffffffffffffff,7fffffffffffffff,8000000000000000}'::macaddr8[]);
CREATE TABLE pool_macaddr AS
	SELECT substr(replace(v::text, ':', ''), 1, 12)::macaddr AS v FROM pool_macaddr8;
CREATE TABLE pool_inet AS
	SELECT set_masklen(rnd('{0.0.0.0,10.0.0.0,10.255.255.0,255.255.255.255,192.168.1.1,127.255.255.255}'::inet[]), rnd(33)) AS v FROM generate_series(1, 500)
	UNION ALL SELECT set_masklen('0.0.0.0'::inet + (rnd() & 4294967295), rnd(33)) FROM generate_series(1, 500)
	UNION ALL SELECT set_masklen(rnd('{::,::1,2001:db8::,2001:db8::ff00,ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff,8000::}'::inet[]), rnd(129)) FROM generate_series(1, 500)
	UNION ALL SELECT set_masklen((substr(regexp_replace(md5(random()::text), '(....)', '\1:', 'g'), 1, 39))::inet, rnd(129)) FROM generate_series(1, 300);
CREATE TABLE pool_cidr AS SELECT network(v) AS v FROM pool_inet;

CREATE TABLE pool_text AS
	SELECT rnd_text() AS v FROM generate_series(1, 1500)
	UNION ALL SELECT unnest(ARRAY['', ' ', repeat('a', 999), repeat('a', 1000), repeat('a', 1001),
		repeat('a', 1000) || 'b', 'a' || repeat(' ', 1200), 'a' || repeat(' ', 1200) || 'b', U&'\+10FFFF']);
CREATE TABLE pool_varchar AS SELECT v::varchar FROM pool_text;
CREATE TABLE pool_bpchar AS SELECT v::bpchar FROM pool_text
	UNION ALL SELECT left(v, 6)::char(8)::bpchar FROM pool_text;
CREATE TABLE pool_name AS SELECT left(v, 70)::name AS v FROM pool_text;
CREATE TABLE pool_bytea AS
	SELECT rnd_bytea() AS v FROM generate_series(1, 1500)
	UNION ALL SELECT unnest('{"","\\x00","\\xff","\\xffff","\\xffffff"}'::bytea[]);

--
-- Keys sort and equate as the values do
--
CREATE TABLE types AS
	SELECT substr(relname, 6)::regtype AS type, oid::regclass AS pool,
		   CASE WHEN substr(relname, 6) IN ('text', 'varchar', 'bpchar', 'name') THEN ' COLLATE "C"' ELSE '' END AS c_collate
	FROM pg_class WHERE relname LIKE 'pool\_%' AND relkind = 'r' AND relnamespace = 'public'::regnamespace;
SELECT type FROM types WHERE type <> (SELECT atttypid FROM pg_attribute WHERE attrelid = pool AND attname = 'v');
-- Sorted by value, each must relate to the one before as their keys do.  Only
-- keys of full length may be those of different values, and those at either
-- end for timetz.
DO $$
DECLARE
	t record;
BEGIN
	CREATE TABLE order_result (type regtype, "values" int, too_few bool, wrong_order int,
							   wrong_equal int, wrong_different int, shown_wrong int);
	FOR t IN SELECT * FROM types LOOP
		EXECUTE format('ALTER TABLE %s ADD k bytea, ADD shared bool, ADD pick text', t.pool);
		EXECUTE format('UPDATE %s SET k = rf_key(v)', t.pool);
		EXECUTE format($q$UPDATE %s SET shared = length(k) = 1000 OR
			%L::regtype = 'timetz'::regtype AND k IN ('\x0000000000000000', '\xffffffffffffffff')$q$, t.pool, t.type);
		EXECUTE format($q$
			INSERT INTO order_result
			SELECT %L, count(*), count(DISTINCT k) < least(count(*) / 5, 1000) AND %1$L::regtype <> 'bool'::regtype,
				   count(*) FILTER (WHERE k < before_k),
				   count(*) FILTER (WHERE v = before_v AND k <> before_k),
				   count(*) FILTER (WHERE v <> before_v AND k = before_k AND NOT shared),
				   count(*) FILTER (WHERE CASE WHEN NOT shared THEN %4$s IS DISTINCT FROM k END)
			FROM (SELECT *, lag(v) OVER w AS before_v, lag(k) OVER w AS before_k
				  FROM %2$s WINDOW w AS (ORDER BY v%3$s)) s$q$,
			t.type, t.pool, t.c_collate,
			-- (what AT TIME ZONE makes cannot always be read again)
			CASE t.type WHEN 'cidr'::regtype THEN 'rf_key(rf_key_show(v)::inet)'
				WHEN 'timetz'::regtype THEN 'CASE WHEN abs(extract(timezone FROM v)) < 57600 THEN rf_key(rf_key_show(v)::timetz) ELSE k END'
				ELSE format('rf_key(rf_key_show(v)::%I)', (SELECT typname FROM pg_type WHERE oid = t.type)) END);
	END LOOP;
END $$;
SELECT type FROM order_result ORDER BY type::text;
SELECT :seed AS seed, * FROM order_result
WHERE too_few OR wrong_order + wrong_equal + wrong_different + shown_wrong > 0;

-- Damaged keys are shown somehow
DO $$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT * FROM types LOOP
		EXECUTE format($q$
			SELECT count(rf_key_show_bytes(%L, substr(set_byte(k, rnd(length(k)), rnd(256)), 1, greatest(length(k) - rnd(3), 0))))
			FROM %s WHERE length(k) > 0$q$, t.type, t.pool);
	END LOOP;
END $$;

--
-- Comparisons: every operator of btree's families between supported types
--
CREATE TABLE operators AS
	SELECT l.type AS "left", r.type AS "right", amopstrategy AS strategy, oprname AS op, l.pool AS left_pool, r.pool AS right_pool,
		   l.c_collate, provolatile = 'i' AS immutable
	FROM pg_amop
		 JOIN pg_opclass c ON opcfamily = amopfamily AND opcintype = amoplefttype AND opcdefault
		 JOIN pg_am a ON a.oid = opcmethod AND amname = 'btree'
		 JOIN pg_operator o ON o.oid = amopopr
		 JOIN pg_proc p ON p.oid = oprcode
		 JOIN types l ON CASE l.type WHEN 'varchar'::regtype THEN 'text' WHEN 'cidr'::regtype THEN 'inet' ELSE l.type END = amoplefttype
		 JOIN types r ON CASE r.type WHEN 'varchar'::regtype THEN 'text' WHEN 'cidr'::regtype THEN 'inet' ELSE r.type END = amoprighttype;
CREATE TABLE comparison_result (c text, "left" regtype, op text, "right" regtype, immutable bool,
	refused int, answered int, lost int, surplus int, is_true int, is_false int);

-- Which values are picked: some of either end (infinities and the like), then
-- some at random, in such an order that equal or near ones of several types are
-- picked together, but not too many of them.
DO $$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT * FROM types LOOP
		EXECUTE format($q$
			WITH near AS (SELECT ctid AS row, k, md5(%2$s || current_setting('rf_keytest.seed')) AS pick FROM %1$s),
				 ranked AS (SELECT *, row_number() OVER (PARTITION BY pick ORDER BY row) AS nth,
								   row_number() OVER (PARTITION BY k ORDER BY row) AS nth_equal,
								   dense_rank() OVER (ORDER BY k) AS lowest,
								   dense_rank() OVER (ORDER BY k DESC) AS highest FROM near)
			UPDATE %1$s p SET pick = CASE WHEN nth > 5 OR nth_equal > 3 THEN 'z' WHEN lowest < 5 OR highest < 5 THEN '' ELSE r.pick END
			FROM ranked r WHERE p.ctid = r.row$q$, t.pool,
			CASE WHEN t.type IN ('float4'::regtype, 'float8'::regtype) THEN '(bits(v::float8) >> 32)'
				 WHEN t.type IN ('date'::regtype, 'timestamp'::regtype) THEN 'v::date'
				 ELSE 'k' END);
		EXECUTE format('CREATE INDEX ON %s (pick)', t.pool);
	END LOOP;
END $$;

-- Takes all pairs of some values of both sides.  lost: the operator says yes
-- and the key is not in the set.  surplus: the operator says no and the key is
-- in the set, without being one that is shared.
CREATE PROCEDURE compare(c text, only_left text[]) LANGUAGE plpgsql AS $$
DECLARE
	o record;
	c_collate text;
	shared text;
BEGIN
	FOR o IN SELECT * FROM operators WHERE only_left IS NULL OR "left" = ANY (only_left::regtype[]) LOOP
		c_collate := CASE WHEN o.c_collate = '' THEN '' ELSE format(' COLLATE %I', c) END;
		shared := CASE WHEN o.c_collate = '' THEN '' ELSE format(' OR length(rf_key(l.v COLLATE %I)) = 1000', c) END;
		EXECUTE format($q$
			INSERT INTO comparison_result
			SELECT %L, %L, %L, %L, %L, count(*) FILTER (WHERE got IS NULL), count(got),
				   count(*) FILTER (WHERE wanted AND NOT got),
				   count(*) FILTER (WHERE NOT wanted AND got AND NOT shared),
				   count(*) FILTER (WHERE wanted), count(*) FILTER (WHERE NOT wanted)
			FROM (SELECT l.v %s r.v%s AS wanted, rf_key_matches(l.v, %s, r.v, %L::regcollation) AS got, l.shared%s AS shared
				  FROM (SELECT * FROM %s ORDER BY pick LIMIT 110) l,
					   (SELECT * FROM %s ORDER BY pick LIMIT 110) r) s$q$,
			c, o."left", o.op, o."right", o.immutable,
			o.op, c_collate, o.strategy, format('%I', c), shared, o.left_pool, o.right_pool);
	END LOOP;
END $$;
CALL compare('C', NULL);
-- Which pairs of types, and which of them are refused
SELECT "left", "right", bool_and(immutable) AS immutable, count(*) AS operators,
	   bool_and(refused = 0) AS answered, bool_and(answered = 0) AS refused,
	   bool_and(is_true > 0 AND is_false > 0) AS tested
FROM comparison_result GROUP BY 1, 2 ORDER BY "left"::text COLLATE "C", "right"::text COLLATE "C";
SELECT :seed AS seed, * FROM comparison_result WHERE lost + surplus > 0 OR refused > 0 AND answered > 0;

-- Other collations: '=' only, but for those of ICU.
-- (Not every server has such collations.)
TRUNCATE comparison_result;
DO $$
DECLARE
	libc text := min(collname) FROM pg_collation
				 WHERE collprovider = 'c' AND collname NOT IN ('C', 'POSIX', 'ucs_basic') AND
					   collencoding IN (-1, pg_char_to_encoding('UTF8'));
BEGIN
	IF libc IS NOT NULL THEN
		CALL compare(libc, '{text,varchar,bpchar,name}');
	END IF;
	BEGIN
		CREATE COLLATION icu (provider = icu, locale = 'und');
		CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
	EXCEPTION WHEN feature_not_supported THEN
		RETURN;
	END;
	CALL compare('icu', '{text,varchar,bpchar,name}');
	CALL compare('blind', '{text,varchar,bpchar,name}');
END $$;
CALL compare('default', '{text,varchar,bpchar,name}');
SELECT :seed AS seed, * FROM comparison_result
WHERE lost + surplus > 0 OR refused > 0 AND answered > 0 OR
	  (answered > 0) <> CASE c
		WHEN 'default' THEN op = '=' OR rf_key_ordered("left", 'default'::regcollation)
		WHEN 'icu' THEN true
		WHEN 'blind' THEN true
		ELSE op = '=' END;

--
-- Prefixes
--
CREATE TABLE prefix_result (type regtype, how text, lost int, surplus int, is_true int, is_false int);
CREATE PROCEDURE prefixes(type text, how text, wanted text, prefix text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format($q$
		INSERT INTO prefix_result
		SELECT %L, %L, count(*) FILTER (WHERE wanted AND NOT got),
			   count(*) FILTER (WHERE NOT wanted AND got AND NOT shared),
			   count(*) FILTER (WHERE wanted), count(*) FILTER (WHERE NOT wanted)
		FROM (SELECT %s AS wanted, rf_key_starts_with(l.v, %s) AS got, l.shared
			  FROM (SELECT * FROM pool_%s ORDER BY pick LIMIT 300) l,
				   (SELECT substr(v, 1, CASE WHEN length(v) < 20 THEN rnd(5) ELSE length(v) - rnd(5) END) AS v
					FROM pool_%s ORDER BY pick LIMIT 150) p) s$q$,
		type, how, wanted, prefix, type, CASE type WHEN 'bytea' THEN 'bytea' ELSE 'text' END);
END $$;
CREATE FUNCTION cut_off(t text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
	SELECT substr(convert_to(t, 'UTF8'), 1, greatest(octet_length(t) - 1, 0))
$$;
CALL prefixes('text', 'LIKE', $$l.v LIKE p.v || '%' COLLATE "C"$$, $$convert_to(p.v, 'UTF8')$$);
CALL prefixes('text', '^@', $$l.v ^@ p.v COLLATE "C"$$, $$convert_to(p.v, 'UTF8')$$);
CALL prefixes('varchar', 'LIKE', $$l.v LIKE p.v || '%' COLLATE "C"$$, $$convert_to(p.v, 'UTF8')$$);
CALL prefixes('name', 'LIKE', $$l.v LIKE p.v || '%' COLLATE "C"$$, $$convert_to(p.v, 'UTF8')$$);
CALL prefixes('bytea', 'LIKE', $$l.v LIKE p.v || '%'::bytea$$, 'p.v');
-- (a bpchar's key has no blanks at its end: it does not tell how many there are)
CALL prefixes('bpchar', 'LIKE', $$l.v LIKE p.v || '%' COLLATE "C" OR
								  l.v = p.v::bpchar AND p.v LIKE '% ' COLLATE "C"$$, $$convert_to(p.v, 'UTF8')$$);
-- and prefixes that end within a character
CALL prefixes('text', 'bytes',
			  $$substr(convert_to(l.v, 'UTF8'), 1, length(cut_off(p.v))) = cut_off(p.v)$$, 'cut_off(p.v)');
DO $$
BEGIN
	IF to_regcollation('icu') IS NOT NULL THEN
		CALL prefixes('text', 'LIKE, ICU', $q$l.v LIKE p.v || '%' COLLATE icu$q$, $q$convert_to(p.v, 'UTF8')$q$);
	END IF;
	CALL prefixes('text', 'LIKE, default', $q$l.v LIKE p.v || '%' COLLATE "default"$q$, $q$convert_to(p.v, 'UTF8')$q$);
END $$;
SELECT :seed AS seed, * FROM prefix_result WHERE lost + surplus > 0 OR is_true = 0 OR is_false = 0;

--
-- Megabyte strings, plain, compressed and out of line
--
CREATE TABLE big (n serial, storage text, t text, b bytea, c bpchar);
ALTER TABLE big ALTER t SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL;
INSERT INTO big (storage, t)
	SELECT 'external', head || repeat(filler, 1000000) || tail
	FROM unnest('{a,b}'::text[]) head, unnest('{" ",x}'::text[]) filler, unnest('{"",a," "}'::text[]) tail;
ALTER TABLE big ALTER t SET STORAGE MAIN, ALTER b SET STORAGE MAIN, ALTER c SET STORAGE MAIN;
INSERT INTO big (storage, t) SELECT 'main', t FROM big;
UPDATE big SET b = t::bytea, c = t::bpchar;
SELECT storage, min(pg_column_size(t)) > 100000 AS whole, count(*) FROM big GROUP BY 1 ORDER BY 1;
SELECT :seed AS seed, n FROM big
WHERE rf_key(t) <> substr(b, 1, 1000) OR rf_key(b) <> substr(b, 1, 1000) OR rf_key(c) <> substr(rtrim(t)::bytea, 1, 1000);
SELECT count(*) AS pairs, count(*) FILTER (WHERE l.t < r.t COLLATE "C" AND NOT rf_key_matches(l.t, 1, r.t, '"C"'::regcollation)) AS lost,
	   count(*) FILTER (WHERE l.c = r.c AND NOT rf_key_matches(l.c, 3, r.c, '"C"'::regcollation)) AS lost_bpchar
FROM big l, big r;
