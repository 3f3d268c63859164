-- Inside a table the summary tells ranges of heap blocks apart: bitmap scans.
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET client_min_messages = warning;
SET enable_indexscan = off;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/plans.sql
\set ECHO none
\i :helpers
\set ECHO all

-- The lines of a plan that tell how many blocks were read; N for numbers that
-- nobody promises.
CREATE FUNCTION scans(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off) ' || query LOOP
		line := in_old_words(line);
		-- ten rows for each block that the summary tells
		line := regexp_replace(line, '(Bitmap Index Scan on \w+) .*rows=(\d+)0(\.00)? loops=1\)', '\1: \2 blocks');
		line := regexp_replace(line, '(Bitmap Index Scan on \w+) .*rows=0(\.00)? loops=1\)', '\1: no block');
		line := regexp_replace(line, '\(actual rows=(\d+)(\.00)? loops=1\)', '(\1 rows)');
		IF line !~ 'Removed|Index Searches' THEN
			RETURN NEXT line;
		END IF;
	END LOOP;
END;
$$;
-- Is the answer the same without?
CREATE FUNCTION same(query text) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	mine text;
	right_one text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO mine;
	PERFORM set_config('enable_bitmapscan', 'off', true), set_config('rangefilter.enable', 'off', true);
	EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO right_one;
	PERFORM set_config('enable_bitmapscan', 'on', true), set_config('rangefilter.enable', 'on', true);
	RETURN mine IS NOT DISTINCT FROM right_one;
END;
$$;

-- 5,000 rows, 10 a block: 500 blocks.
CREATE TABLE t (k bigint, s text COLLATE "C", n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE t ALTER pad SET STORAGE plain;
INSERT INTO t SELECT hashint8extended(i, 0), 'key ' || hashint8(i), CASE WHEN i % 1000 <> 0 THEN i / 100 END, repeat('x', 740)
	FROM generate_series(1, 5000) i;
CREATE INDEX t_k ON t USING rangefilter (k) WITH (pages_per_range = 10);
VACUUM ANALYZE t;
SELECT scans($$SELECT n FROM t WHERE k = (SELECT k FROM t ORDER BY pad, n DESC NULLS LAST, k LIMIT 1)$$);
SELECT k AS one FROM t WHERE n = 7 ORDER BY k LIMIT 1 \gset
SELECT k AS two FROM t WHERE n = 44 ORDER BY k LIMIT 1 \gset
SELECT scans(format('SELECT n FROM t WHERE k = %s', :one));
SELECT scans(format('SELECT n FROM t WHERE k = ANY (ARRAY[%s, %s])', :one, :two));
SELECT scans(format('SELECT n FROM t WHERE k BETWEEN %s - 1 AND %1$s', :one));
SELECT scans('SELECT n FROM t WHERE k = 1');
SELECT bool_and(same(format('SELECT * FROM t WHERE k = %s', k))) FROM t WHERE n % 20 = 3;
SELECT bool_and(same(format('SELECT n FROM t WHERE k >= %s AND k < %1$s + 1000000000000000::bigint * %s', k, n))) FROM t WHERE n % 20 = 3 AND k < 8000000000000000000;

-- Without the setting all blocks are read, by plans made before as well.
PREPARE q AS SELECT n FROM t WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SELECT scans(format('EXECUTE q(%s)', :one));
SET rangefilter.enable = off;
SELECT scans(format('EXECUTE q(%s)', :one));
RESET rangefilter.enable;
RESET enable_seqscan;
RESET plan_cache_mode;
DEALLOCATE q;

-- Rows that come into summarized blocks: with a new key, which the delta gets;
-- with a key that is elsewhere, which makes a range loose.
DELETE FROM t WHERE n BETWEEN 10 AND 12;
VACUUM t;
INSERT INTO t VALUES (5, 'five', 99, repeat('x', 740));
SELECT delta_keys FROM rangefilter_status('t_k');
SELECT scans('SELECT n FROM t WHERE k = 5');
INSERT INTO t VALUES (:one, 'again', 98, repeat('x', 740));
SELECT delta_keys FROM rangefilter_status('t_k');
SELECT scans(format('SELECT n FROM t WHERE k = %s', :one));
SELECT same(format('SELECT * FROM t WHERE k = %s', :one));
SELECT rangefilter_verify('t_k');
-- Another key of the same range of blocks leaves no further trace.
INSERT INTO t VALUES (:two, 'again', 97, repeat('x', 740));
SELECT scans(format('SELECT n FROM t WHERE k = %s', :two));
SELECT rangefilter_summarize('t_k'), delta_keys FROM rangefilter_status('t_k');
SELECT delta_keys FROM rangefilter_status('t_k');
SELECT scans('SELECT n FROM t WHERE k = 5');
SELECT scans(format('SELECT n FROM t WHERE k = %s', :one));

-- The tail is read as long as it is open; what the segment has is still known.
INSERT INTO t SELECT hashint8extended(i, 0), 'key ' || hashint8(i), 60, repeat('x', 740) FROM generate_series(5001, 6600) i;
SELECT tail_open, summarized_blocks < heap_blocks AS tail FROM rangefilter_status('t_k');
SELECT scans(format('SELECT n FROM t WHERE k = %s', :two));
SELECT bool_and(same(format('SELECT * FROM t WHERE k = %s', k))) FROM t WHERE n % 20 = 0;
VACUUM t;
SELECT scans(format('SELECT n FROM t WHERE k = %s', :two));

-- Several columns, strings, prefixes, NULLs, partial and expression indexes.
CREATE INDEX t_ns ON t USING rangefilter (n, s) WITH (pages_per_range = 10);
CREATE INDEX t_s ON t USING rangefilter (s) WITH (pages_per_range = 10);
CREATE INDEX t_part ON t USING rangefilter (n) WITH (pages_per_range = 10) WHERE pad > 'x';
CREATE INDEX t_expr ON t USING rangefilter ((n * 2)) WITH (pages_per_range = 10);
ANALYZE t;
SELECT s AS string FROM t WHERE n = 33 ORDER BY s LIMIT 1 \gset
SELECT scans(format('SELECT n FROM t WHERE s = %L', :'string'));
SELECT scans(format('SELECT n FROM t WHERE s LIKE %L', :'string' || '%'));
SELECT scans(format('SELECT s FROM t WHERE n = 33 AND s >= %L AND s < %1$L || ''a''', :'string'));
SELECT scans('SELECT count(*) FROM t WHERE n IS NULL');
SELECT scans('SELECT count(*) FROM t WHERE n * 2 = 66');
SELECT bool_and(same(format('SELECT * FROM t WHERE n = %s', i)) AND same(format('SELECT * FROM t WHERE n = %s AND pad > ''x''', i)) AND
	same(format('SELECT * FROM t WHERE n * 2 BETWEEN %s AND %s', i, i + 3)) AND same(format('SELECT * FROM t WHERE s > %L AND n = %s', 'key ' || i, i)))
	FROM generate_series(-1, 62, 3) i;
SELECT same('SELECT * FROM t WHERE n IS NULL'), same('SELECT * FROM t WHERE n IS NOT NULL AND n < 3'), same('SELECT * FROM t WHERE s IS NULL');

-- Without places, and where nothing says how many: as many as cost no space.
SELECT pg_relation_size('t_k') AS size \gset
ALTER INDEX t_k SET (pages_per_range = 0);
DROP INDEX t_ns, t_s, t_part, t_expr;
REINDEX INDEX t_k;
SELECT scans(format('SELECT n FROM t WHERE k = %s', :two));
SELECT pg_relation_size('t_k') AS none \gset
ALTER INDEX t_k RESET (pages_per_range);
REINDEX INDEX t_k;
SELECT scans(format('SELECT n FROM t WHERE k = %s', :two));
SELECT pg_relation_size('t_k') = :none AS as_large;

-- Many more keys than fit the metapage: places have pages of their own.
CREATE TABLE l (k int, v int) WITH (autovacuum_enabled = off);
INSERT INTO l SELECT i % 60000 * 10, i FROM generate_series(1, 180000) i;
CREATE INDEX l_k ON l USING rangefilter (k) WITH (pages_per_range = 4, bits_per_key = 64);
CREATE INDEX l_v ON l USING rangefilter (v) WITH (pages_per_range = 4, bits_per_key = 20);
ANALYZE l;
SELECT scans('SELECT v FROM l WHERE k = 300000 ORDER BY v');
SELECT scans('SELECT v FROM l WHERE v BETWEEN 120000 AND 120003');
SELECT bool_and(same(format('SELECT * FROM l WHERE k BETWEEN %s AND %s', i, i + 25)) AND same(format('SELECT * FROM l WHERE v BETWEEN %s AND %s', i, i + 100)))
	FROM generate_series(-10, 600010, 60000) i;
SELECT rangefilter_verify('l_k'), rangefilter_verify('l_v');

-- The end of the table is cut off; what the summary says of it stays.  Under
-- SERIALIZABLE the executor reads whatever block it is told.
CREATE TABLE cut (k int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE cut ALTER pad SET STORAGE plain;
INSERT INTO cut SELECT i, repeat('x', 7500) FROM generate_series(1, 100) i;
CREATE INDEX cut_k ON cut USING rangefilter (k) WITH (pages_per_range = 2);
DELETE FROM cut WHERE k > 90;
VACUUM (TRUNCATE on) cut;
SELECT heap_blocks, summarized_blocks FROM rangefilter_status('cut_k');
SET enable_seqscan = off;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT scans('SELECT k FROM cut WHERE k = 95');
SELECT scans('SELECT k FROM cut WHERE k BETWEEN 89 AND 95');
COMMIT;
RESET enable_seqscan;
DROP TABLE cut;

-- What cannot be.
CREATE INDEX ON l USING rangefilter (k) WITH (pages_per_range = 200000);

-- Joins: the inner side is asked with the values of the outer one.
CREATE TABLE d (k bigint);
INSERT INTO d VALUES (:one), (:two), (1);
ANALYZE d;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS off) SELECT count(*) FROM d JOIN t USING (k);
SELECT count(*) FROM d JOIN t USING (k);
SELECT same('SELECT * FROM d JOIN t USING (k)');

-- However often that is, it takes no more memory.
SET enable_seqscan = off;
BEGIN;
DECLARE many CURSOR FOR SELECT l.v FROM generate_series(1, 5000) i JOIN l ON l.v = i + 10000;
MOVE 10 IN many;
SELECT sum(used_bytes) AS used FROM pg_backend_memory_contexts WHERE name NOT LIKE 'Cac%' \gset
MOVE 4000 IN many;
SELECT sum(used_bytes) - :used < 200000 AS little FROM pg_backend_memory_contexts WHERE name NOT LIKE 'Cac%';
COMMIT;
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- Of the rows of one COPY the first go to the tail, which is open, the others into
-- old blocks: that it is open says nothing of those.
CREATE TABLE copied (k int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE copied ALTER pad SET STORAGE plain;
INSERT INTO copied SELECT g, '' FROM generate_series(1, 2000) g;
CREATE INDEX copied_k ON copied USING rangefilter (k) WITH (pages_per_range = 1);
INSERT INTO copied SELECT g, '' FROM generate_series(5001, 6100) g;
DELETE FROM copied WHERE k <= 1000;
VACUUM (INDEX_CLEANUP off) copied;
INSERT INTO copied VALUES (7000, repeat('x', 7800));
COPY copied (k) FROM STDIN;
8001
8002
8003
8004
8005
8006
8007
8008
8009
8010
8011
8012
8013
8014
8015
8016
8017
8018
8019
8020
8021
8022
8023
8024
8025
8026
8027
8028
8029
8030
\.
SELECT tail_open, (SELECT count(DISTINCT (ctid::text::point)[0] < summarized_blocks) FROM copied WHERE k > 8000) AS places
FROM rangefilter_status('copied_k');
SELECT rangefilter_verify('copied_k');
DROP TABLE copied;

DROP FUNCTION scans, same;
DROP TABLE t, l, d;
