-- Small partitions: the run is on the metapage, and the index is one page.  It grows into more
-- pages by itself, and becomes one page again.
CREATE SCHEMA rf_one_page;
SET rangefilter.autosummarize = off;
SET search_path = rf_one_page, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/skips.sql
\set ECHO none
\i :helpers
\set ECHO all

LOAD 'rangefilter';
-- Numbers that are not dense, and strings.
CREATE FUNCTION num(p int, g int) RETURNS int8 IMMUTABLE LANGUAGE sql AS
$$ SELECT hashint8extended(g, p) $$;
CREATE FUNCTION str(p int, g int) RETURNS text IMMUTABLE LANGUAGE sql AS
$$ SELECT 'https://example.org/' || p || '/' || md5(g::text) $$;
-- Questions for keys that are there, and for others.
CREATE FUNCTION asked(n int) RETURNS TABLE (what text, rows bigint, skipped text) LANGUAGE sql AS
$$
	SELECT c.what, sum(c.n), string_agg(DISTINCT c.skipped, '; ' ORDER BY c.skipped) FROM (
		SELECT '1 there' AS what, x.* FROM generate_series(1, n, n / 7 | 1) g,
			compared(format('SELECT * FROM t WHERE k = %s', num(1 + g % 2, g)), false) x
		UNION ALL SELECT '2 not there', x.* FROM generate_series(1, 20) g,
			compared(format('SELECT * FROM t WHERE k = %s', num(7, g)), false) x
		UNION ALL SELECT '3 ranges', x.* FROM generate_series(1, 20) g,
			compared(format('SELECT * FROM t WHERE k BETWEEN %1$s AND %1$s + 1000000000', num(9, g) / 2), false) x
		UNION ALL SELECT '4 strings', x.* FROM generate_series(1, n, n / 7 | 1) g,
			compared(format('SELECT * FROM t WHERE s = %L', str(1 + g % 2, g)), false) x
		UNION ALL SELECT '5 other strings', x.* FROM generate_series(1, 20) g,
			compared(format('SELECT * FROM t WHERE s = %L', str(1 + g % 2, -g)), false) x
		UNION ALL SELECT '6 NULL', x.* FROM compared('SELECT * FROM t WHERE s IS NULL', false) x) c
	GROUP BY c.what ORDER BY c.what
$$;
CREATE TABLE t (p int, k int8, s text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT p, num(p, g), str(p, g) FROM generate_series(1, 2) p, generate_series(1, 1000) g;
INSERT INTO t VALUES (1, NULL, NULL);
CREATE INDEX ON t USING rangefilter (k);
CREATE INDEX ON t USING rangefilter (s) WITH (filter = surf);
CREATE FUNCTION sizes() RETURNS TABLE (index regclass, pages bigint, levels int, in_delta bigint, lost bigint) LANGUAGE sql AS
$$
	SELECT i, pg_relation_size(i) / 8192, s.levels, s.delta_keys,
		rangefilter_verify(i) - (SELECT count(*) FROM t1)
	FROM unnest('{t1_k_idx,t1_s_idx}'::regclass[]) i, rangefilter_status(i) s
$$;

SELECT * FROM sizes();
SELECT * FROM asked(1000);
-- Half of the metapage is the filter's, for however few keys.
SELECT index, filter, keys, bits_per_key = round(5000 * 8.0 / keys, 1)::float8 AS bits FROM
	unnest('{t1_k_idx,t1_s_idx}'::regclass[]) i, rangefilter_status(i);

-- Gates read the run on the metapage.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CREATE TABLE d AS SELECT num(1, g) AS k, g FROM generate_series(1, 60) g;
INSERT INTO d SELECT num(7, g), g FROM generate_series(1, 60) g;
ANALYZE d;
SELECT n, gate_skips(q) FROM (VALUES ('SELECT * FROM d JOIN LATERAL (SELECT k FROM t WHERE t.k = d.k OFFSET 0) x ON true')) v (q),
	compared(q, false);
RESET enable_hashjoin;
RESET enable_mergejoin;
-- Prepared statements, planned again and again.
PREPARE one(int8) AS SELECT count(*) FROM t WHERE k = $1;
SET plan_cache_mode = force_custom_plan;
EXECUTE one(num(1, 5));
EXECUTE one(num(2, 5));
EXECUTE one(num(3, 5));
RESET plan_cache_mode;

-- New rows are in a page of the delta; more of them in levels, for which there is room beside the run.
INSERT INTO t SELECT 1, num(1, g), str(1, g) FROM generate_series(1001, 1010) g;
SELECT * FROM sizes();
SELECT * FROM asked(1010);
CREATE PROCEDURE trickle(target text, first int, n int) LANGUAGE plpgsql AS
$$
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('INSERT INTO %s FROM generate_series(%s, %s) g', target, first + (i - 1) * 150, first + i * 150 - 1);
		COMMIT;
	END LOOP;
END
$$;
CALL trickle('t SELECT 1, num(1, g), str(1, g)', 1011, 30);
SELECT index, pages > 4 AS pages, levels > 0 AS levels, in_delta > 4000 AS in_delta, lost FROM sizes();
SELECT * FROM asked(5000);
-- A summary of so many rows has pages of its own, and fewer ones the metapage again.
VACUUM t1;
SELECT index, pages > 4 AS pages, levels, in_delta, lost FROM sizes();
SELECT * FROM asked(5000);
DELETE FROM t1 WHERE k NOT IN (SELECT num(1, g) FROM generate_series(1, 1000) g);
VACUUM t1;
SELECT index, bits_per_key = round(5000 * 8.0 / keys, 1)::float8 AS bits, rangefilter_verify(index) - (SELECT count(*) FROM t1) AS lost
FROM unnest('{t1_k_idx,t1_s_idx}'::regclass[]) i, rangefilter_status(i);
SELECT * FROM asked(1000);
REINDEX TABLE t1;
SELECT * FROM sizes();
-- No rows, and a table that is as empty as that.
DELETE FROM t1;
VACUUM t1;
SELECT * FROM sizes();
SELECT * FROM asked(1000);

-- A table that is filled behind CREATE INDEX has a page for new keys besides, from the first row on.
TRUNCATE t1;
SELECT * FROM sizes();
SET rangefilter.autosummarize = on;
INSERT INTO t SELECT 1, num(1, g), str(1, g) FROM generate_series(1, 1000) g;
SELECT rangefilter_summarize(i) IS NOT NULL AS done FROM unnest('{t1_k_idx,t1_s_idx}'::regclass[]) i;
SELECT * FROM sizes();
SET rangefilter.autosummarize = off;

-- How many rows there may be: 5000 bytes for 14 bits each, or for what else is asked for; duplicates count.
CREATE TABLE few AS SELECT num(1, g) AS k, g FROM generate_series(1, 2857) g;
CREATE TABLE more AS SELECT num(1, g) AS k, g FROM generate_series(1, 2858) g;
CREATE INDEX few_k ON few USING rangefilter (k);
CREATE INDEX few_g ON few USING rangefilter (g);
CREATE INDEX few_20 ON few USING rangefilter (k) WITH (bits_per_key = 20);
CREATE INDEX more_k ON more USING rangefilter (k);
CREATE INDEX more_8 ON more USING rangefilter (k) WITH (bits_per_key = 8);
SELECT i, pg_relation_size(i) / 8192 AS pages, rangefilter_verify(i) AS rows
FROM unnest('{few_k,few_g,few_20,more_k,more_8}'::regclass[]) i;
-- Strings that no 14 bits can tell apart, or whose bounds are long.
CREATE TABLE words AS SELECT repeat(chr(97 + g % 26), 40 + g % 200) || md5(g::text) || repeat('z', 100) AS w
FROM generate_series(1, 1500) g;
CREATE INDEX words_surf ON words USING rangefilter (w COLLATE "C") WITH (filter = surf);
CREATE INDEX words_auto ON words USING rangefilter (w COLLATE "C");
CREATE INDEX words_two ON words USING rangefilter (w COLLATE "C", length(w));
SELECT i, pg_relation_size(i) / 8192 AS pages, filter, rangefilter_verify(i) AS rows
FROM unnest('{words_surf,words_auto,words_two}'::regclass[]) i, rangefilter_status(i);

-- Places beside the run.  They are as fine as they would be alone, or the run has pages.
CREATE TABLE wide (k int8, g int, pad text);
ALTER TABLE wide ALTER pad SET STORAGE plain;
INSERT INTO wide SELECT num(1, g), g % 20, repeat('x', 700) FROM generate_series(1, 2000) g;
CREATE INDEX wide_k ON wide USING rangefilter (k);
CREATE INDEX wide_g ON wide USING rangefilter (g);
CREATE INDEX wide_1 ON wide USING rangefilter ((k + 1)) WITH (pages_per_range = 1);
ANALYZE wide;
SELECT i, pg_relation_size(i) / 8192 AS pages, rangefilter_verify(i) AS rows FROM unnest('{wide_k,wide_g,wide_1}'::regclass[]) i;
SET enable_seqscan = off;
-- How many blocks the places tell: EXPLAIN shows ten rows for each.
CREATE FUNCTION blocks(query text) RETURNS int LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, 'strict $.** ? (@."Node Type" == "Bitmap Index Scan")."Actual Rows"')::numeric / 10;
END
$$;
SELECT sum(n) AS rows FROM generate_series(1, 2000, 100) g, compared(format('SELECT * FROM wide WHERE k = %s', num(1, g)), false);
SELECT max(blocks(format('SELECT * FROM wide WHERE k = %s', num(1, g)))) <= 8 AS few_blocks FROM generate_series(1, 2000, 100) g;
SELECT max(blocks(format('SELECT * FROM wide WHERE k + 1 = %s', num(1, g) + 1))) <= 8 AS few_blocks FROM generate_series(1, 2000, 100) g;
SELECT n FROM compared('SELECT * FROM wide WHERE g = 7', false);
-- Levels have room beside both.
CALL trickle('wide SELECT num(2, g), g, NULL', 1, 60);
SELECT i, levels > 0 AS levels, delta_keys > 8000 AS keys, rangefilter_verify(i) AS rows FROM unnest('{wide_k,wide_1}'::regclass[]) i, rangefilter_status(i);
SELECT sum(n) AS rows FROM generate_series(1, 2000, 100) g, compared(format('SELECT * FROM wide WHERE k = %s', num(1, g)), false);
-- So many rows that the run would leave them coarser places.
CREATE TABLE tight (k int8, pad text);
ALTER TABLE tight ALTER pad SET STORAGE plain;
INSERT INTO tight SELECT num(1, g), repeat('x', 3000) FROM generate_series(1, 2800) g;
ANALYZE tight;
CREATE INDEX tight_k ON tight USING rangefilter (k);
SELECT pg_relation_size('tight_k') / 8192 AS pages,
	max(blocks(format('SELECT * FROM tight WHERE k = %s', num(1, g)))) <= 6 AS few_blocks FROM generate_series(1, 2800, 140) g;
-- Places that take nearly all of the room: strings in several ranges.  Levels take it, and then there are
-- no bitmap scans.
CREATE TABLE several (k text COLLATE "C", pad text) WITH (autovacuum_enabled = off);
ALTER TABLE several ALTER pad SET STORAGE plain;
INSERT INTO several SELECT str(1, g % 500), repeat('x', 3000) FROM generate_series(1, 1500) g;
ANALYZE several;
CREATE INDEX several_k ON several USING rangefilter (k) WITH (filter = surf);
SELECT pg_relation_size('several_k') / 8192 AS pages,
	max(blocks(format('SELECT * FROM several WHERE k = %L', str(1, g)))) < 100 AS few_blocks FROM generate_series(1, 490, 49) g;
CALL trickle('several SELECT str(2, g), NULL', 1, 40);
SELECT levels > 0 AS levels, delta_keys > 5000 AS keys, tail_open, rangefilter_verify(index) AS rows FROM rangefilter_status('several_k');
SELECT count(blocks(format('SELECT * FROM several WHERE k = %L', str(1, g)))) AS bitmap_scans FROM generate_series(1, 490, 49) g;
SELECT sum(n) AS rows FROM generate_series(1, 490, 49) g, compared(format('SELECT * FROM several WHERE k = %L', str(1, g)), false);
SELECT count(*) < 10 AS few FROM generate_series(1, 500) g WHERE rangefilter_may_contain('several_k', str(1, -g), str(1, -g));
-- Levels that nearly fill the metapage: places stay, as long as levels can do with what room they leave.
CREATE TABLE brim (k text COLLATE "C", pad text) WITH (autovacuum_enabled = off);
ALTER TABLE brim ALTER pad SET STORAGE plain;
INSERT INTO brim SELECT str(1, g), repeat('x', 3000) FROM generate_series(1, 1500) g;
ANALYZE brim;
CREATE INDEX brim_k ON brim USING rangefilter (k) WITH (pages_per_range = 3);
DO $$
BEGIN
	FOR i IN 1 .. 135 LOOP
		INSERT INTO brim VALUES (repeat('a', 120) || repeat(md5(i::text), 24));
	END LOOP;
END $$;
SELECT levels, max(blocks(format('SELECT * FROM brim WHERE k = %L', str(1, g)))) <= 6 AS few_blocks
FROM rangefilter_status('brim_k'), generate_series(1, 1500, 75) g GROUP BY levels;
RESET enable_seqscan;

DROP TABLE t, d, few, more, words, wide, tight, several, brim;
DROP PROCEDURE trickle;
DROP FUNCTION num, str, asked, sizes, compared, skips, gate_skips, plan_of, in_old_words, blocks;
DROP SCHEMA rf_one_page;
