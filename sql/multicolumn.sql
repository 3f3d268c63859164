-- Indexes on several columns.
-- Results are compared with rangefilter.enable = off throughout.
LOAD 'rangefilter';
SET client_min_messages = warning;
SET timezone = 'UTC';
SET datestyle = 'ISO, YMD';
CREATE SCHEMA multicolumn;
SET search_path = multicolumn, public;

-- Runs a query with skipping and without; tells what was skipped, and by which
-- condition.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/skips.sql
\set ECHO none
\i :helpers
\set helpers :abs_srcdir /sql/lib/versions.sql
\i :helpers
\set ECHO all
CREATE FUNCTION asked(condition text, tab text DEFAULT 'ev') RETURNS text LANGUAGE sql AS
$$ SELECT concat('rows ', n, ', skipped ', skipped) FROM compared(format('SELECT * FROM %s WHERE %s', tab, condition), true) $$;

--
-- Tenants are in all partitions, each with hours of the partition's own; the
-- last one has NULLs.
--
CREATE TABLE ev (part int, tenant int, at timestamp, kind text COLLATE "C", flag bool, v int)
	PARTITION BY LIST (part);
SELECT format('CREATE TABLE ev%s PARTITION OF ev FOR VALUES IN (%s) WITH (autovacuum_enabled = off)', p, p)
FROM generate_series(0, 5) p \gexec
INSERT INTO ev
SELECT p, t, timestamp '2020-01-01' + (10 * p + t + h * 100) * interval '1 hour', 'k' || t, h % 2 = 0, 1000 * p + h
FROM generate_series(0, 4) p, generate_series(0, 4) t, generate_series(0, 19) h;
INSERT INTO ev VALUES (5, NULL, '2020-01-01', 'k1', true, 1), (5, 1, NULL, NULL, false, 2), (5, NULL, NULL, NULL, NULL, NULL);
CREATE INDEX ev_at ON ev USING rangefilter (tenant, at) WITH (bits_per_key = 64);
CREATE INDEX ev_v ON ev USING rangefilter (kind, flag, v) WITH (bits_per_key = 64);
SELECT "table", filter, rows, keys, min, max, has_nulls FROM rangefilter_status('ev_at') ORDER BY 1;
SELECT "table", filter, rows, keys, min, max, has_nulls FROM rangefilter_status('ev_v') ORDER BY 1;
SELECT rangefilter_verify('ev_at'), rangefilter_verify('ev_v');

--
-- Conditions
--
-- equality on the first, anything on the second
SELECT asked($$tenant = 2 AND at = '2020-01-02 08:00'$$);
SELECT asked($$at = '2020-01-02 08:00' AND 2 = tenant$$);
SELECT asked($$tenant = 2 AND at BETWEEN '2020-01-02 00:00' AND '2020-01-02 09:00'$$);
SELECT asked($$tenant = 2 AND at >= '2020-01-02' AND at < '2020-01-02 09:00'$$);
SELECT asked($$tenant = 2 AND at < '2020-01-01 03:00'$$);
SELECT asked($$tenant = 2 AND at > '2020-03-21'$$);
SELECT asked($$tenant = 2 AND at IN ('2020-01-01 02:00', '2020-01-01 22:00', '2021-01-01')$$);
SELECT asked($$tenant = 1 AND at IS NULL$$);
SELECT asked($$tenant = 1 AND at IS NOT NULL$$);
SELECT asked($$tenant IS NULL AND at = '2020-01-01'$$);
SELECT asked($$tenant IS NULL AND at IS NULL$$);
SELECT asked($$(tenant = 1 OR tenant IS NULL) AND at = '2020-01-01'$$);
-- several values of the first
SELECT asked($$tenant IN (1, 2, 3) AND at < '2020-01-01 04:00'$$);
SELECT asked($$tenant IN (1, 4) AND at = '2020-01-02 07:00'$$);
SELECT asked($$tenant BETWEEN 1 AND 3 AND at = '2020-01-02 07:00'$$);
SELECT asked($$(tenant = 1 OR tenant = 3) AND at = '2020-01-02 07:00'$$);
-- a range of the first: the second does not count
SELECT asked($$tenant > 3 AND at = '2020-01-02 07:00'$$);
SELECT asked($$tenant > 4$$);
SELECT asked($$tenant = 7$$);
SELECT asked($$tenant IS NULL$$);
-- no condition on the first: nothing to skip by
SELECT asked($$at = '2020-01-02 07:00'$$);
SELECT asked($$at = '2020-01-02 07:00' AND tenant + 0 = 1$$);
-- constants of other types, beyond the column's type, and impossible ones
SELECT asked($$tenant = 2::bigint AND at = date '2020-01-02'$$);
SELECT asked($$tenant = 5000000000 AND at = '2020-01-02'$$);
SELECT asked($$tenant < 5000000000 AND tenant > 2 AND tenant < 4 AND at = '2020-01-01 03:00'$$);
SELECT asked($$tenant = 2 AND at > '2020-02-01' AND at < '2020-01-01'$$);

-- three columns
SELECT asked($$kind = 'k1' AND flag AND v = 2004$$);
SELECT asked($$kind = 'k1' AND NOT flag AND v = 2004$$);
SELECT asked($$kind = 'k1' AND flag IS NULL AND v = 2004$$);
SELECT asked($$kind = 'k1' AND flag IS NOT FALSE AND v BETWEEN 2000 AND 2010$$);
SELECT asked($$kind = 'k1' AND flag IS NOT NULL AND v = 2004$$);
SELECT asked($$kind = 'k1' AND v = 2004$$);
SELECT asked($$kind IN ('k1', 'k3', 'x') AND flag IN (true, false) AND v IN (1, 1001, 9999)$$);
SELECT asked($$kind LIKE 'k1%' AND flag AND v = 2004$$);
SELECT asked($$kind LIKE 'k9%'$$);
SELECT asked($$kind LIKE 'k1' AND flag AND v = 2004$$);

-- OR
SELECT asked($$tenant = 1 AND (at = '2020-01-01 01:00' OR at = '2020-01-01 11:00')$$);
SELECT asked($$tenant = 1 AND (at = '2020-01-01 01:00' OR at IS NULL)$$);
SELECT asked($$(tenant = 1 AND at = '2020-01-01 01:00') OR (tenant = 2 AND at = '2020-01-01 22:00')$$);
SELECT asked($$(tenant = 1 AND at = '2020-01-01 01:00') OR tenant = 9$$);
SELECT asked($$(tenant = 1 AND at = '2020-01-01 01:00') OR at = '2020-01-01 11:00'$$);
SELECT asked($$(tenant = 1 AND at = '2020-01-01 01:00') OR (kind = 'k1' AND flag AND v = 2004)$$);
SELECT asked($$kind = 'k1' AND (flag OR NOT flag) AND (v = 2004 OR v = 3001)$$);
SELECT asked($$tenant = 1 AND kind = 'k1' AND flag AND (at = '2020-01-01 01:00' OR v = 2004)$$);
SELECT asked($$tenant = 1 AND ((at = '2020-01-01 01:00' AND v = 0) OR (at = '2020-01-01 11:00' AND v = 1000))$$);
-- one arm is about a column twice, the other not at all
SELECT asked($$(tenant < 0 AND (tenant = -1 OR tenant = -2)) OR (kind = 'k1' AND flag AND v = 2004)$$);
SELECT asked($$(kind = 'k1' AND flag AND v = 2004) OR (tenant < 9 AND (tenant = 7 OR tenant = 8))$$);

-- more values than are worth listing, in one column or by combination
SELECT asked(format($$tenant IN (%s) AND at = '2020-01-01 01:00'$$, string_agg((2 * g)::text, ', '))) LIKE 'rows 0, skipped 1 of 6%'
FROM generate_series(0, 1500) g;
SELECT asked(format($$tenant IN (%s) AND at IN (%s)$$, string_agg((2 * g)::text, ', '), string_agg(format('timestamp %L', timestamp '2019-01-01' + g * interval '1 day'), ', '))) LIKE 'rows 0, skipped 1 of 6%'
FROM generate_series(0, 50) g;
SELECT asked(format($$tenant IN (%s) AND at IN (%s)$$, string_agg((2 * g)::text, ', '), string_agg(format('timestamp %L', timestamp '2019-01-01' + g * interval '1 day'), ', '))) LIKE 'rows 0, skipped 6 of 6%'
FROM generate_series(0, 20) g;

SELECT asked($$tenant BETWEEN 1 AND 99 AND at = '2020-01-01 01:00'$$);
SELECT asked($$tenant BETWEEN 1 AND 199 AND at = '2020-01-01 01:00'$$);

-- parameters, joins, changes
PREPARE q(int, timestamp) AS SELECT count(*) FROM ev WHERE tenant = $1 AND at = $2;
SET plan_cache_mode = force_custom_plan;
SELECT plan_of($$EXECUTE q(2, '2020-01-02 08:00')$$);
EXECUTE q(2, '2020-01-02 08:00');
BEGIN;
INSERT INTO ev VALUES (0, 2, '2020-01-02 08:00', 'new', NULL, 77), (1, 2, NULL, 'new', NULL, 78);
EXECUTE q(2, '2020-01-02 08:00');
SELECT asked($$tenant = 2 AND at IS NULL$$);
SELECT asked($$kind = 'new' AND flag IS NULL AND v = 77$$);
SELECT delta_keys, has_nulls FROM rangefilter_status('ev_at') ORDER BY "table" LIMIT 2;
UPDATE ev SET at = '2025-01-01' WHERE tenant = 2 AND at = '2020-01-02 08:00';
SELECT asked($$tenant = 2 AND at = '2025-01-01'$$);
SELECT rangefilter_verify('ev_at'), rangefilter_verify('ev_v');
ROLLBACK;
EXECUTE q(2, '2020-01-02 08:00');

-- Values that are known only at execution
CREATE FUNCTION gates(query text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
	skipped text;
	a text;
	b text;
BEGIN
	EXECUTE query INTO a;
	PERFORM set_config('rangefilter.enable', 'off', true);
	EXECUTE query INTO b;
	PERFORM set_config('rangefilter.enable', 'on', true);
	IF a IS DISTINCT FROM b THEN
		RAISE EXCEPTION 'wrong result: % instead of % for %', a, b, query;
	END IF;
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	SELECT string_agg(concat(g->>'Partitions Skipped', ' of ', g->>'Partitions Considered', ' by ', g->>'Partition Cond'), ', ')
	INTO skipped
	FROM jsonb_path_query(plan, 'strict $.**?(@."Custom Plan Provider" == "Range Filter Append")') g;
	RETURN concat('count ', a, ', skipped ', coalesce(skipped, 'nothing'));
END
$$;
VACUUM ANALYZE ev;
SET plan_cache_mode = force_generic_plan;
SELECT gates($$EXECUTE q(2, '2020-01-02 08:00')$$);
SELECT gates($$EXECUTE q(2, '2030-01-02 08:00')$$);
SELECT gates($$EXECUTE q(NULL, '2020-01-02 08:00')$$);
PREPARE several(int[], timestamp) AS SELECT count(*) FROM ev WHERE tenant = ANY ($1) AND at <= $2;
SELECT gates($$EXECUTE several('{1, 3}', '2020-01-01 03:00')$$);
PREPARE later(timestamp) AS SELECT count(*) FROM ev WHERE at > $1;
SELECT gates($$EXECUTE later('2020-01-01 03:00')$$);
PREPARE three(text, bool, int) AS SELECT count(*) FROM ev WHERE kind = $1 AND flag = $2 AND (v = $3 OR v = $3 + 1000);
SELECT gates($$EXECUTE three('k2', true, 1004)$$);
SELECT gates($$SELECT count(*) FROM ev WHERE tenant IS NULL AND at <= now()$$);
CREATE TABLE one AS SELECT 3 AS tenant, timestamp '2020-01-01 23:00' AS at;
ANALYZE one;
-- (since PostgreSQL 16 the sides of equalities are the other way round)
SELECT replace(replace(gates($$SELECT count(*) FROM one, LATERAL (SELECT FROM ev WHERE ev.tenant = one.tenant AND ev.at = one.at OFFSET 0) ev$$),
	'tenant = one.tenant', 'one.tenant = tenant'), 'at = one.at', 'one.at = at') AS gates;
-- In a loop, where a pattern says nothing of the second column in some rounds
CREATE TABLE m (part int, a int, b text COLLATE "C") PARTITION BY LIST (part);
CREATE TABLE m0 PARTITION OF m FOR VALUES IN (0);
CREATE TABLE m1 PARTITION OF m FOR VALUES IN (1);
INSERT INTO m VALUES (0, 1, 'k1'), (1, 1, 'x9'), (1, 3, 'k3');
CREATE INDEX ON m USING rangefilter (a, b);
SELECT split_part(gates($$SELECT sum(n) FROM (VALUES (1, 'k%'), (1, '%9'), (1, 'x%'), (2, '%9'), (3, 'k%'), (3, '%9')) v (a, p),
	LATERAL (SELECT count(*) AS n FROM m WHERE m.a = v.a AND m.b LIKE v.p OFFSET 0) m$$), ' by ', 1);
-- The same as an arm of an OR
CREATE INDEX ON m USING rangefilter (b);
SELECT split_part(gates(format($$SELECT sum(n) FROM (VALUES (9, 'z%%'), (9, '%%9'), (1, 'x%%'), (2, '%%9'), (9, NULL), (NULL, '%%9'), (3, NULL)) v (a, p),
	LATERAL (SELECT count(*) AS n FROM m WHERE %s OFFSET 0) m$$, condition)), ' by ', 1)
FROM unnest('{m.a = v.a OR m.b LIKE v.p,m.a = v.a OR (m.b LIKE v.p AND m.b > ''a''),(m.a = v.a AND m.b LIKE v.p) OR m.b LIKE v.p}'::text[]) condition;
DROP TABLE m;
-- The most columns that an index can have
CREATE TABLE m (part int, a int, b int, c int, d int, e int, f int, g int, h int) PARTITION BY LIST (part);
CREATE TABLE m0 PARTITION OF m FOR VALUES IN (0);
CREATE TABLE m1 PARTITION OF m FOR VALUES IN (1);
INSERT INTO m SELECT p, p, 1, 2, 3, 4, 5, 6, n FROM generate_series(0, 1) p, generate_series(1, 20) n;
CREATE INDEX ON m USING rangefilter (a, b, c, d, e, f, g, h);
SELECT split_part(gates('SELECT count(*) FROM m WHERE a = (SELECT 1)'), ' by ', 1);
DROP TABLE m;
DEALLOCATE ALL;

--
-- What cannot be compared bytewise, expressions, predicates, other column orders
--
CREATE TABLE x (part int, a text, b int, c numeric, d date) PARTITION BY LIST (part);
CREATE TABLE x0 PARTITION OF x FOR VALUES IN (0);
CREATE TABLE x1 (d date, gone int, c numeric, b int, a text, part int);
ALTER TABLE x1 DROP gone;
ALTER TABLE x ATTACH PARTITION x1 FOR VALUES IN (1);
CREATE INDEX x_ab ON x USING rangefilter (lower(a), b, (c * 2));
CREATE INDEX x_dc ON x USING rangefilter (d, c) WHERE b > 0;
INSERT INTO x SELECT g % 2, 'A' || g / 2 % 10, g % 2 * 100 + g / 2, g / 4.0, date '2020-01-01' + g % 2 * 100 + g / 2 FROM generate_series(0, 99) g;
SELECT rangefilter_summarize('x_ab') > 0, rangefilter_summarize('x_dc') > 0;
SELECT asked($$lower(a) = 'a5' AND b = 105$$, 'x');
SELECT asked($$lower(a) = 'a5' AND b = 105 AND c * 2 = 52.5$$, 'x');
SELECT asked($$lower(a) = 'a5' AND b > 100$$, 'x');
SELECT asked($$d = '2020-01-31' AND c >= 15.0 AND b > 0$$, 'x');
SELECT asked($$d = '2020-01-31' AND c >= 15.0$$, 'x');
SELECT rangefilter_verify('x_ab'), rangefilter_verify('x_dc');
DROP TABLE x;

-- Long strings: keys are cut, and the columns behind them with them.
CREATE TABLE l (part int, a text COLLATE "C", b int) PARTITION BY LIST (part);
CREATE TABLE l0 PARTITION OF l FOR VALUES IN (0);
CREATE TABLE l1 PARTITION OF l FOR VALUES IN (1);
CREATE INDEX l_ab ON l USING rangefilter (a, b);
INSERT INTO l SELECT p, repeat(chr(97 + p), n), n FROM generate_series(0, 1) p, unnest('{990,997,998,999,1000,1001,2000}'::int[]) n;
INSERT INTO l VALUES (0, repeat('a', 1500) || E'\x01', 1), (1, NULL, 1);
SELECT rangefilter_summarize('l_ab') > 0, rangefilter_verify('l_ab') FROM generate_series(1, 2);
SELECT n, asked(format('a = repeat(''a'', %s) AND b = %s', n, b), 'l') LIKE 'rows 1, skipped 1 of 2%' AS right, asked(format('a = repeat(''b'', %s) AND b > %s', n, b), 'l') LIKE 'rows 0, skipped % of 2%' AS none
FROM (SELECT n, n AS b FROM unnest('{990,997,998,999,1000,1001,2000}'::int[]) n) v;
SELECT asked(format('a < %L', repeat('a', 1001)), 'l') LIKE 'rows 5, skipped 1 of 2%' AS less;
SELECT length(min) < 80 AS min, length(max) AS max FROM rangefilter_status('l_ab') ORDER BY "table";
DROP TABLE l;

--
-- Definitions
--
CREATE TABLE d (a int, b text, c point, e text COLLATE "C", f int, g int, h int, i int, j int, k int);
CREATE INDEX ON d USING rangefilter (a, b, e, f, g, h, i, j);
CREATE INDEX ON d USING rangefilter (a, b, e, f, g, h, i, j, k);
CREATE INDEX ON d USING rangefilter (a, c);
CREATE INDEX ON d USING rangefilter (a, f) WITH (filter = snarf);
CREATE INDEX ON d USING rangefilter (a) INCLUDE (f);
SELECT refused($$CREATE INDEX ON d USING rangefilter (a, f DESC)$$);
CREATE INDEX d_wide ON d USING rangefilter (a, f) WITH (filter = surf, suffix = hash, bits_per_key = 20);
INSERT INTO d (a, f) SELECT g, g FROM generate_series(1, 100) g;
REINDEX INDEX d_wide;
SELECT rows, keys, filter, min, max FROM rangefilter_status('d_wide');
-- nothing is asked before there is something to build an index on
CREATE TABLE dp (a int, b int) PARTITION BY LIST (a);
CREATE INDEX ON dp USING rangefilter (a, b, a, b, a, b, a, b, a);
CREATE TABLE dp1 PARTITION OF dp FOR VALUES IN (1);
DROP TABLE dp;

-- An insert writes nothing if the filter has the row by mistake.  The filter must then have its leading
-- columns, too: with four bits a key it is often wrong.
CREATE TABLE covered (p int, a int, b int) PARTITION BY LIST (p);
CREATE TABLE covered1 PARTITION OF covered FOR VALUES IN (1);
CREATE TABLE covered2 PARTITION OF covered FOR VALUES IN (2);
INSERT INTO covered SELECT 1, hashint4(i), i FROM generate_series(1, 3000) i;
CREATE INDEX covered_a_b ON covered USING rangefilter (a, b) WITH (bits_per_key = 4);
DO $$
BEGIN
	FOR i IN 3001 .. 4000 LOOP
		INSERT INTO covered VALUES (1, hashint4(i), i);
	END LOOP;
END
$$;
SELECT delta_keys < 1000 AS some_covered FROM rangefilter_status('covered_a_b') WHERE "table" = 'covered1'::regclass;
DO $$
DECLARE
	lost int := 0;
	n int;
BEGIN
	FOR i IN 3001 .. 4000 LOOP
		EXECUTE format('SELECT count(*) FROM covered WHERE a = %s', hashint4(i)) INTO n;
		lost := lost + (n = 0)::int;
	END LOOP;
	IF lost > 0 THEN
		RAISE EXCEPTION '% rows are lost', lost;
	END IF;
END
$$;
DROP TABLE covered;

--
-- rangefilter_may_contain(): bounds are values of the first column
--
SELECT rangefilter_may_contain('ev_at', 4, 4), rangefilter_may_contain('ev_at', 5, 5),
	   rangefilter_may_contain('ev_at', NULL, -1), rangefilter_may_contain('ev_v', 'k5'::text, NULL);
SELECT "table" FROM rangefilter_status('ev_at') WHERE rangefilter_may_contain(index, 3, 3) ORDER BY 1;
SELECT rangefilter_may_contain('ev_at', ROW(4), ROW(4));
-- It takes SELECT on all columns.
CREATE ROLE multicolumn_reader;
GRANT USAGE ON SCHEMA multicolumn TO multicolumn_reader;
GRANT SELECT (tenant) ON ev TO multicolumn_reader;
SET ROLE multicolumn_reader;
SELECT rangefilter_may_contain('ev_at', 4, 4);
SELECT count(min), count(keys) FROM rangefilter_status('ev_at');
RESET ROLE;
GRANT SELECT (tenant, at) ON ev1 TO multicolumn_reader;
GRANT SELECT (at) ON ev TO multicolumn_reader;
SET ROLE multicolumn_reader;
SELECT rangefilter_may_contain('ev_at', 4, 4);
SELECT count(min), count(keys) FROM rangefilter_status('ev_at');
RESET ROLE;
DROP SCHEMA multicolumn CASCADE;
DROP ROLE multicolumn_reader;
