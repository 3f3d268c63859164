-- Encodings and sets of keys by example.  What they must be for all values is
-- tested in rf_keytest_random.
CREATE EXTENSION rf_keytest;
SET datestyle = 'ISO, YMD';
SET intervalstyle = 'postgres';
SET timezone = 'UTC';
SET extra_float_digits = 1;
SET bytea_output = 'hex';
SET lc_monetary = 'C';
\pset null '(refused)'

-- One key for all that is equal
SELECT rf_key('-0'::float8) = rf_key('0'::float8) AS float8_zero,
	   rf_key('-0'::float4) = rf_key('0'::float4) AS float4_zero,
	   rf_key(rf_float8(-1)) = rf_key('NaN'::float8) AS float8_nan,
	   rf_key(rf_float4(x'7F800001'::int)) = rf_key('NaN'::float4) AS float4_nan,
	   rf_key(1.000) = rf_key(1::numeric) AS numeric_scale,
	   rf_key(-0.00) = rf_key(0::numeric) AS numeric_zero,
	   rf_key(10000e-4) = rf_key(1::numeric) AS numeric_zeros,
	   rf_key(interval '1 mon -1 day') = rf_key(interval '696 hours') AS interval,
	   rf_key('a '::char(5)) = rf_key('a'::char(1)) AS bpchar,
	   rf_key('10.0.0.0/8'::cidr) = rf_key('10.0.0.0/8'::inet) AS cidr,
	   rf_key('x'::varchar) = rf_key('x'::text) AS varchar;
-- PostgreSQL writes no zero digits at the ends of a numeric, but compares them
SELECT n, v, v = n AS equal, rf_key(v) = rf_key(n) AS same_key
FROM (VALUES (20000, rf_numeric(20001, 0)), (2.5, rf_numeric(2.50004, 0)),
			 (1, rf_numeric(20001, 1))) AS t (n, v);
-- and two for what is not
SELECT rf_key('a '::text) <> rf_key('a'::text) AS text,
	   rf_key('12:00+00'::timetz) <> rf_key('13:00+01'::timetz) AS timetz,
	   rf_key('10.0.0.1/8'::inet) <> rf_key('10.0.0.2/8'::inet) AS inet_host,
	   rf_key('10.0.0.0/8'::inet) <> rf_key('10.0.0.0/9'::inet) AS inet_bits,
	   rf_key(1e-16383) <> rf_key(0::numeric) AS numeric;

-- Each encoding has a number of its own
SELECT string_agg(concat(t, ' ', rf_key_codec_id(t)), ', ' ORDER BY rf_key_codec_id(t), t) AS codecs,
	   count(DISTINCT rf_key_codec_id(t)) AS different
FROM unnest('{int2,int4,int8,oid,float4,float8,timestamp,timestamptz,date,
	time,timetz,money,bool,macaddr,macaddr8,numeric,interval,uuid,text,varchar,
	bpchar,name,bytea,inet,cidr}'::regtype[]) AS t;

-- The bytes themselves are on disk: a change here takes a new codec id.
SELECT rf_key(1::int2) AS int2, rf_key(-1::int4) AS int4,
	   rf_key(1::int8) AS int8, rf_key(1::oid) AS oid;
SELECT rf_key(1::float4) AS float4, rf_key(-1::float8) AS float8,
	   rf_key(true) AS bool, rf_key('1'::money) AS money;
SELECT rf_key('2000-01-02'::date) AS date,
	   rf_key('2000-01-01 00:00:01'::timestamp) AS timestamp,
	   rf_key('2000-01-01 00:00:01+00'::timestamptz) AS timestamptz,
	   rf_key('00:00:01'::time) AS time;
SELECT rf_key('00:00:01+01'::timetz) AS timetz,
	   rf_key('08:00:2b:01:02:03'::macaddr) AS macaddr,
	   rf_key('08:00:2b:01:02:03:04:05'::macaddr8) AS macaddr8;
SELECT rf_key(v) AS numeric, v FROM unnest('{-Infinity,-10000.5,-1,-0.0001,0,
	1e-8,0.0001,1,1.5,10000,20000,Infinity,NaN}'::numeric[]) AS v;
SELECT rf_key('1 day -1 us'::interval) AS interval,
	   rf_key('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid) AS uuid;
SELECT rf_key('ab'::text) AS text, rf_key('ab '::char(4)) AS bpchar,
	   rf_key('ab'::name) AS name, rf_key('\x00ff'::bytea) AS bytea,
	   rf_key(''::text) AS empty;
SELECT rf_key('10.1.2.3'::inet) AS host, rf_key('10.1.2.3/12'::inet) AS net;
SELECT rf_key('2001:db8::1/33'::inet) AS v6;

-- Long strings are cut, all alike
SELECT length(rf_key(repeat('x', n))) AS text,
	   length(rf_key(repeat('x', n)::bpchar)) AS bpchar,
	   length(rf_key(repeat('x', n)::bytea)) AS bytea,
	   right(rf_key_show(repeat('x', n)), 5) AS shown
FROM unnest('{999,1000,1001,1000000}'::int[]) AS n;
SELECT length(rf_key('a' || repeat(' ', 2000)::bpchar)) AS blanks,
	   length(rf_key(('a' || repeat(' ', 2000) || 'b')::bpchar)) AS more,
	   length(rf_key(10::numeric ^ 131071)) AS high,
	   length(rf_key(10::numeric ^ 131071 - 1)) AS digits,
	   length(rf_key(1 - 10::numeric ^ 131071)) AS negative,
	   length(rf_key(1e-16383)) AS low;

-- Keys as text
SELECT rf_key_show(1.50), rf_key_show(-12345.0067), rf_key_show(1e10),
	   rf_key_show(1e-10), rf_key_show('-Infinity'::numeric);
SELECT left(rf_key_show(v), 20) AS starts, right(rf_key_show(v), 7) AS ends,
	   length(rf_key_show(v)) AS length
FROM (VALUES (10::numeric ^ 131071), (1 - 10::numeric ^ 131071), (1e-16383),
			 (repeat('12345678', 500)::numeric / 10)) AS n (v);
SELECT rf_key_show(interval '1 year 2 mons 3 days 04:05:06.789'),
	   rf_key_show(interval '-1 us'), rf_key_show(interval '178956970 years'),
	   rf_key_show(true), rf_key_show('-infinity'::date),
	   rf_key_show('infinity'::timestamptz), rf_key_show('24:00'::time);
SELECT rf_key_show('12:00:00-08'::timetz),
	   rf_key_show('12:00+00'::timetz AT TIME ZONE interval '30000 hours'),
	   rf_key_show('10.1.2.3/12'::inet), rf_key_show('::1'::inet),
	   rf_key_show('a '::char(3)) || '|', rf_key_show('\x61ff'::bytea);
-- of bytes that are none
SELECT t AS type, rf_key_show_bytes(t, '\xffffffffffffffff') AS shown
FROM unnest('{int2,int4,int8,oid,float4,float8,timestamp,timestamptz,date,
	time,timetz,money,bool,macaddr,macaddr8,numeric,interval,uuid,text,bpchar,
	name,bytea,inet}'::regtype[]) AS t;

-- Strategies: 1 <, 2 <=, 3 =, 4 >=, 5 >
CREATE FUNCTION sets(type regtype, constant anyelement,
					 OUT lt text, OUT le text, OUT eq text, OUT ge text, OUT gt text)
LANGUAGE sql AS $$
	SELECT rf_key_set(type, 1, constant), rf_key_set(type, 2, constant),
		   rf_key_set(type, 3, constant), rf_key_set(type, 4, constant),
		   rf_key_set(type, 5, constant)
$$;

-- Integers of another width: all or nothing past the end
SELECT v, s.* FROM unnest('{-9223372036854775808,-32769,-32768,0,32767,32768,
	9223372036854775807}'::int8[]) AS v, sets('int2', v) AS s;
SELECT v, s.* FROM unnest('{-9223372036854775808,-9223372036854775807,
	9223372036854775806,9223372036854775807}'::int8[]) AS v, sets('int8', v) AS s;

-- A float8 among float4: rounded outward
SELECT v, s.* FROM unnest('{0.1,0.5,0,-0,-infinity,infinity,NaN,1e300,-1e300,
	3.4028234663852886e38,3.402823466385289e38,1e-300,-1e-300,
	1.401298464324817e-45,2e-45}'::float8[]) AS v, sets('float4', v) AS s;
SELECT v, s.* FROM unnest('{0.1,NaN,infinity}'::float4[]) AS v, sets('float8', v) AS s;

-- A timestamp among dates, and a date among timestamps
SELECT v, s.* FROM unnest('{2020-02-02 00:00,2020-02-02 00:00:00.000001,
	2020-02-01 23:59:59.999999,-infinity,infinity,4714-11-24 00:00:00 BC,
	294276-12-31 23:59:59.999999}'::timestamp[]) AS v, sets('date', v) AS s;
SELECT v, s.* FROM unnest('{2020-02-02,-infinity,infinity,4714-11-24 BC,
	294276-12-31,294277-01-01,5874897-12-31}'::date[]) AS v, sets('timestamp', v) AS s;
-- Operators that depend on the time zone are refused
SELECT (sets('date', v)).eq AS date, (sets('timestamp', v)).eq AS timestamp,
	   (sets('timestamptz', v)).eq AS timestamptz
FROM (VALUES ('2020-02-02 00:00+00'::timestamptz)) AS t (v);
SELECT (sets('timestamptz', '2020-02-02'::date)).eq AS date,
	   (sets('timestamptz', '2020-02-02 00:00'::timestamp)).eq AS timestamp;

-- Strict bounds
SELECT v, s.* FROM unnest('{b,"",ab}'::text[]) AS v, sets('text', v) AS s;
SELECT v, s.* FROM unnest('{"b  ",""}'::char(3)[]) AS v, sets('bpchar', v) AS s;
SELECT v, s.* FROM unnest('{false,true}'::bool[]) AS v, sets('bool', v) AS s;
SELECT v, s.* FROM unnest('{NaN,Infinity,-Infinity,0}'::numeric[]) AS v, sets('numeric', v) AS s;
SELECT v, s.* FROM unnest('{::,255.255.255.255}'::inet[]) AS v, sets('inet', v) AS s;
-- become inclusive where the constant was cut
SELECT n, strategy,
	   replace(rf_key_set('text', strategy, repeat('x', n)), repeat('x', 999), '~') AS set
FROM unnest('{999,1000,1001}'::int[]) AS n, generate_series(1, 5) AS strategy;
-- or its key stands for more
SELECT s.* FROM sets('timetz', '12:00+00'::timetz AT TIME ZONE interval '30000 hours') AS s;

-- Unknown types and strategies
SELECT rf_key_set('int4', 3, 1::numeric), rf_key_set('int4', 0, 1),
	   rf_key_set('int4', 6, 1), rf_key_set('bpchar', 3, 'a'::text),
	   rf_key_set('text', 3, 'a'::bpchar), rf_key_set('oid', 3, 1);
SELECT rf_key('{}'::json);

-- Text and name; a name has no more than 63 bytes, the constant may
SELECT rf_key_set('text', 3, 'a'::name) AS text, rf_key_set('name', 5, 'a'::text) AS name,
	   rf_key_set('name', 3, repeat('x', 70)) = format('[%1$s, %1$s]', repeat('x', 70)) AS long;

-- Collations: no ranges without C, nothing at all where '=' is not bytes
SELECT c.collname, t AS type, rf_key_ordered(t, c.oid) AS ordered,
	   rf_key_set(t, 1, 'a'::text, c.oid) AS lt, rf_key_set(t, 3, 'a'::text, c.oid) AS eq
FROM pg_collation c, unnest('{text,name}'::regtype[]) AS t
WHERE c.collname IN ('C', 'POSIX') AND c.collnamespace = 'pg_catalog'::regnamespace
ORDER BY 1, 2;
SELECT rf_key_set('text', 3, 'a'::text, 0) AS no_collation,
	   rf_key_ordered('text', 0) AS ordered, rf_key_ordered('int4', 0) AS int4;
-- The database's own, whatever it is
SELECT rf_key_ordered('text', 'default'::regcollation) =
	   (datlocprovider = 'b' OR datlocprovider = 'c' AND datcollate IN ('C', 'POSIX')) AS ordered,
	   rf_key_set('text', 3, 'a'::text, 'default'::regcollation) AS eq
FROM pg_database WHERE datname = current_database();

-- Prefixes
SELECT prefix, rf_key_prefix_set('bytea', prefix::bytea) AS set
FROM unnest('{"",61,61ff,61fffe,61feff,ff,ffff,00}'::text[]) AS hex, concat('\x', hex) AS prefix;
SELECT t AS type, p AS prefix, rf_key_prefix_set(t, p::bytea) AS set
FROM unnest('{text,name,bpchar,int4}'::regtype[]) AS t,
	 unnest('{"","ab","ab  ","  "}'::text[]) AS p;
SELECT n, replace(rf_key_prefix_set('bpchar', (repeat('x', n) || repeat(' ', 5))::bytea),
				  repeat('x', 990), '~') AS set
FROM unnest('{990,995,1000,1001}'::int[]) AS n;

DROP FUNCTION sets;
DROP EXTENSION rf_keytest;
