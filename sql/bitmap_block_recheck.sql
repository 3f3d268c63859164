-- Blocks that the summary tells are looked into before they go into a bitmap: how
-- many are left then, and is the answer right?
CREATE SCHEMA winnow;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = winnow, public;
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_indexscan = off;

-- Runs a query by a bitmap scan and without rangefilter.  How many rows, blocks that the
-- summary told (EXPLAIN shows ten rows for each), and blocks that the scan read.
CREATE FUNCTION scanned(query text, OUT n bigint, OUT told int, OUT read int, OUT same bool) LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	mine text;
	right_one text;
BEGIN
	query := format('SELECT count(*) AS n, coalesce(string_agg(q::text, E''\n'' ORDER BY q::text), '''') AS rows FROM (%s) q', query);
	EXECUTE query INTO n, mine;
	EXECUTE 'EXPLAIN (ANALYZE, TIMING off, SUMMARY off, FORMAT json) ' || query INTO plan;
	SELECT sum(rows::numeric / 10) INTO told
	FROM jsonb_path_query(plan, 'strict $.** ? (@."Node Type" == "Bitmap Index Scan")."Actual Rows"') rows;
	read := coalesce((jsonb_path_query_first(plan, '$.**."Lossy Heap Blocks"'))::int, 0);
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true),
		set_config('rangefilter.enable', 'off', true);
	EXECUTE query INTO n, right_one;
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true),
		set_config('rangefilter.enable', 'on', true);
	same := mine = right_one;
END
$$;

-- Ten rows a block, ranges of 20 blocks.
CREATE TABLE t (gone text, k int, n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE t ALTER pad SET STORAGE plain;
INSERT INTO t SELECT 'x', (g * 7919::bigint % 10007)::int, g, repeat('x', 740) FROM generate_series(1, 10000) g;
ALTER TABLE t DROP gone;
CREATE INDEX t_k ON t USING rangefilter (k) WITH (pages_per_range = 20, bits_per_key = 24);
SELECT k AS one FROM t WHERE n = 17 \gset
SELECT k AS two FROM t WHERE n = 5017 \gset
SELECT * FROM scanned('SELECT * FROM t WHERE k = ' || :one);
SELECT * FROM scanned(format('SELECT * FROM t WHERE k IN (%s, %s)', :one, :two));
SELECT * FROM scanned(format('SELECT * FROM t WHERE k = %s::bigint', :one));
SELECT * FROM scanned(format('SELECT * FROM t WHERE k >= %s AND k < %1$s + 2', :one));
SELECT bool_and(same AND read <= told) FROM generate_series(0, 10000, 333) k, scanned('SELECT * FROM t WHERE k = ' || k);

-- Versions that the snapshot sees, wherever they are: after an update on the same page (HOT),
-- to another one, of the key, and one that is only aborted.
UPDATE t SET pad = 'short' WHERE n BETWEEN 11 AND 20;
UPDATE t SET pad = 'shorter' WHERE n = 17;
SELECT * FROM scanned('SELECT * FROM t WHERE k = ' || :one);
UPDATE t SET k = -1 WHERE n = 17;
SELECT * FROM scanned('SELECT * FROM t WHERE k = ' || :one);
SELECT * FROM scanned('SELECT * FROM t WHERE k = -1');
BEGIN;
UPDATE t SET k = -2 WHERE n = 5017;
SAVEPOINT s;
UPDATE t SET k = -3 WHERE n = 5017;
SELECT * FROM scanned('SELECT * FROM t WHERE k = -3');
ROLLBACK TO s;
SELECT * FROM scanned('SELECT * FROM t WHERE k = -2');
ROLLBACK;
SELECT * FROM scanned('SELECT * FROM t WHERE k = ' || :two);

-- Of a chain of HOT updates the last version may be the only one on the page.
CREATE TABLE hot (k int, n int) WITH (autovacuum_enabled = off, fillfactor = 40);
INSERT INTO hot SELECT g, 0 FROM generate_series(1, 1000) g;
CREATE INDEX hot_k ON hot USING rangefilter (k) WITH (pages_per_range = 2, bits_per_key = 24);
UPDATE hot SET n = 1 WHERE k = 500;
VACUUM hot;
SELECT * FROM scanned('SELECT * FROM hot WHERE k = 500');

-- A new value in the last block, whose key comes to an earlier block as well, is looked for from there on.
INSERT INTO hot VALUES (-7, 0);
SELECT told > 1 AS more_than_one, same FROM scanned('SELECT * FROM hot WHERE k = -7');
UPDATE hot SET k = -7 WHERE k = 5;
SELECT ctid < '(1,0)' AS in_first_block, count(*) FROM hot WHERE k = -7 GROUP BY 1 ORDER BY 1;
SELECT n, told, same FROM scanned('SELECT * FROM hot WHERE k = -7');

-- A new value that is in the last block is in none before.
VACUUM t;
INSERT INTO t SELECT -4, 10000 + g, repeat('x', 740) FROM generate_series(1, 40) g;
SELECT * FROM scanned('SELECT * FROM t WHERE k = -4');
SELECT * FROM scanned(format('SELECT * FROM t WHERE k IN (-4, %s)', :two));
UPDATE t SET k = -4 WHERE n = 5000;
SELECT * FROM scanned('SELECT * FROM t WHERE k = -4');

-- A cursor's snapshot sees what was there when it was opened.
BEGIN;
DECLARE c CURSOR FOR SELECT n FROM t WHERE k = :two;
DELETE FROM t WHERE k = :two;
INSERT INTO t VALUES (:two, 20000, 'new');
FETCH ALL FROM c;
ROLLBACK;

-- A column that is newer than its rows; NULLs.
ALTER TABLE t ADD late int DEFAULT 5;
INSERT INTO t SELECT g, 10000 + g, repeat('x', 700), g % 50 FROM generate_series(1, 2000) g;
INSERT INTO t VALUES (NULL, 30000, 'null', NULL);
CREATE INDEX t_late ON t USING rangefilter (late) WITH (pages_per_range = 20, bits_per_key = 24);
SELECT n, read < told AS fewer, same FROM scanned('SELECT * FROM t WHERE late = 49');
SELECT n, same FROM scanned('SELECT * FROM t WHERE late = 5');
SELECT n, same FROM scanned('SELECT * FROM t WHERE late IS NULL');
SELECT n, same FROM scanned('SELECT * FROM t WHERE late IS NULL OR late = 49');
SELECT n, same FROM scanned('SELECT * FROM t WHERE k IS NULL');

-- Blocks that came since count as well.
VACUUM t;
INSERT INTO t SELECT -100 - g, 40000 + g, repeat('x', 700), 7 FROM generate_series(1, 3000) g;
SELECT tail_open FROM rangefilter_status('t_k');
SELECT n, read, same FROM scanned('SELECT * FROM t WHERE k = -110');

-- It gives up where most blocks have a match, and after 256 blocks.
CREATE TABLE many (k int, n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE many ALTER pad SET STORAGE plain;
INSERT INTO many SELECT g / 5000, g, repeat('x', 740) FROM generate_series(1, 10000) g;
CREATE INDEX many_k ON many USING rangefilter (k) WITH (pages_per_range = 10);
SELECT * FROM scanned('SELECT k, n FROM many WHERE k = 1');
UPDATE many SET k = 3 WHERE n = 2;
UPDATE many SET k = 3 WHERE n = 9999;
REINDEX INDEX many_k;
SELECT k, r.* FROM (VALUES (2), (3)) v (k), scanned('SELECT k, n FROM many WHERE k = ' || k) r;
DROP INDEX many_k;
CREATE INDEX many_k ON many USING rangefilter (k) WITH (pages_per_range = 300);
SELECT * FROM scanned('SELECT k, n FROM many WHERE k = 2');

-- Types by value.
CREATE TABLE types (a smallint, b bigint, c oid, d date, e timestamptz, f real, g float8, s text COLLATE "C", pad text)
	WITH (autovacuum_enabled = off);
ALTER TABLE types ALTER pad SET STORAGE plain;
INSERT INTO types SELECT i - 1000, i * 1000000007::bigint, i, date '2000-01-01' + i, timestamptz '2000-01-01 UTC' + i * interval '1 hour',
	i * 1.5, -i * 0.25, 'key ' || i, repeat('x', 700) FROM generate_series(1, 1500) i;
INSERT INTO types VALUES (0, 0, 0, 'infinity', '-infinity', 'NaN', '-0', '', repeat('x', 700));
SELECT format('CREATE INDEX ON types USING rangefilter (%s) WITH (pages_per_range = 10, bits_per_key = 24)', c)
FROM unnest('{a,b,c,d,e,f,g}'::text[]) c
\gexec
SELECT condition, r.* FROM unnest(ARRAY['a = -800', 'b = 200000001400', 'c = 200', 'd = ''2000-07-19''', 'd = ''infinity''',
	'e = ''2000-01-09 08:00 UTC''', 'e < ''2000-01-01 UTC''', 'f = 300', 'f = ''NaN''', 'g = -50', 'g = 0', 'g > -1']) condition,
	scanned('SELECT * FROM types WHERE ' || condition) r;

-- Strings.  Not looked into: expressions, rows.
CREATE INDEX ON types USING rangefilter (s) WITH (pages_per_range = 10, bits_per_key = 24);
SELECT * FROM scanned('SELECT * FROM types WHERE s = ''key 200''');
SELECT * FROM scanned('SELECT * FROM types WHERE s LIKE ''key 144%''');
SELECT * FROM scanned('SELECT * FROM types WHERE s = ''''');
CREATE INDEX ON types USING rangefilter ((a + 1)) WITH (pages_per_range = 10, bits_per_key = 24);
SELECT * FROM scanned('SELECT * FROM types WHERE a + 1 = -799');
DROP INDEX types_a_idx, types_b_idx;
CREATE INDEX ON types USING rangefilter (a, b) WITH (pages_per_range = 10, bits_per_key = 24);
SELECT * FROM scanned('SELECT * FROM types WHERE a = -800 AND b = 200000001400');
SELECT * FROM scanned('SELECT * FROM types WHERE a = -800 AND b > 200000001000');
UPDATE types SET b = NULL WHERE a = -799;
SELECT * FROM scanned('SELECT * FROM types WHERE a = -799 AND b IS NULL');

-- Bytes; not inet and name.  A block with a value that is compressed or in the toast table stays.
CREATE TABLE bytes (n int, s text COLLATE "C", b bytea, i inet, m name, x text COLLATE "C", pad text) WITH (autovacuum_enabled = off);
ALTER TABLE bytes ALTER pad SET STORAGE plain;
ALTER TABLE bytes ALTER x SET STORAGE external;
INSERT INTO bytes SELECT n, CASE WHEN n = 333 THEN repeat('long ', 1000) WHEN n % 100 <> 0 THEN 'row ' || n END, decode(md5(n::text), 'hex'),
	'10.0.0.0'::inet + n * 7, 'name' || n, CASE WHEN n = 444 THEN string_agg(md5(g::text), '' ORDER BY g) ELSE 'x' || n END, repeat('x', 740)
FROM generate_series(1, 1000) n, generate_series(1, 100) g GROUP BY n ORDER BY n;
SELECT format('CREATE INDEX ON bytes USING rangefilter (%s) WITH (pages_per_range = 10, bits_per_key = 24)', c)
FROM unnest('{s,b,i,m,x}'::text[]) c
\gexec
SELECT condition, r.* FROM unnest(ARRAY['s = ''row 250''', 's = ''row 331''', 's = repeat(''long '', 1000)', 's LIKE ''long %''',
	's IS NULL AND n < 300', 's IN (''row 251'', ''row 899'')', 'b = ''\xa87ff679a2f3e71d9181a67b7542122c''', 'b > ''\xffa0''',
	'i = ''10.0.0.70''', 'i BETWEEN ''10.0.1.0'' AND ''10.0.1.31''', 'm = ''name77''', 'x = ''x440''', 'x = ''x777''',
	'x = (SELECT string_agg(md5(g::text), '''' ORDER BY g) FROM generate_series(1, 100) g)', 'x < ''d''']) condition,
	scanned('SELECT n, s, b, i, m FROM bytes WHERE ' || condition) r;
UPDATE bytes SET s = 'row 250' WHERE n = 900;
UPDATE bytes SET s = NULL WHERE n = 250;
SELECT * FROM scanned('SELECT n FROM bytes WHERE s = ''row 250''');

-- Keys with the same leading bytes have one rank.  Their places are known nevertheless.
CREATE TABLE twins (u uuid, n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE twins ALTER pad SET STORAGE plain;
INSERT INTO twins SELECT (left(md5((g % 1990)::text), 16) || left(md5(g::text), 16))::uuid, g, repeat('x', 740) FROM generate_series(1, 2000) g;
CREATE INDEX twins_u ON twins USING rangefilter (u) WITH (pages_per_range = 10, bits_per_key = 24);
SELECT filter, keys FROM rangefilter_status('twins_u');
SELECT t.n, r.* FROM (SELECT n, u FROM twins WHERE n IN (1, 3, 500, 1993)) t, scanned(format('SELECT * FROM twins WHERE u = %L', t.u)) r;
SELECT rangefilter_verify('twins_u');

DROP SCHEMA winnow CASCADE;
