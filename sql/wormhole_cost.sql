-- Which index the planner chooses where there is a wormhole index and a btree, and
-- what wormhole_status() says of one.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE wc (k int8, d int, s text COLLATE "C", a int, b int, v int) WITH (autovacuum_enabled = off);
INSERT INTO wc SELECT hashint8extended(i, 0), i % 500, 'https://www.example.org/some/long/path/' || md5(i::text), i / 100, i % 100, i FROM generate_series(1, 50000) i;
-- A sample of all rows: the same statistics each time.
ALTER TABLE wc ALTER k SET STATISTICS 200;
CREATE INDEX wc_k_wormhole ON wc USING wormhole (k);
CREATE INDEX wc_k_btree ON wc USING btree (k);
CREATE INDEX wc_s_wormhole ON wc USING wormhole (s);
CREATE INDEX wc_s_btree ON wc USING btree (s);
CREATE INDEX wc_ab_wormhole ON wc USING wormhole (a, b);
CREATE INDEX wc_ab_btree ON wc USING btree (a, b);
-- Full of space: not where many of its pages would be read.
CREATE INDEX wc_d_wormhole ON wc USING wormhole (d) WITH (fillfactor = 10, deduplicate = off);
CREATE INDEX wc_d_btree ON wc USING btree (d);
VACUUM ANALYZE wc;

CREATE FUNCTION chosen(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		result := result || coalesce(' ' || substring(line FROM '(?:Index Only Scan|Index Scan|Bitmap Index Scan|Seq Scan).*'), '');
	END LOOP;
	RETURN result;
END $$;
SELECT query, chosen(query) FROM unnest(ARRAY[
	'SELECT k FROM wc WHERE k = 5',
	'SELECT v FROM wc WHERE k = 5',
	'SELECT v FROM wc WHERE k = ANY (''{1,2,3}'')',
	'SELECT k FROM wc WHERE k BETWEEN 5 AND 10000',
	'SELECT k FROM wc ORDER BY k LIMIT 10',
	'SELECT k FROM wc ORDER BY k DESC',
	'SELECT max(k) FROM wc',
	'SELECT v FROM wc WHERE s = ''x''',
	'SELECT s FROM wc WHERE s LIKE ''https://www.example.org/some/long/path/abc%''',
	'SELECT s FROM wc ORDER BY s',
	'SELECT count(*) FROM wc x JOIN wc y ON x.k = y.k WHERE x.v = 5',
	-- Most of the table in the table's order.
	'SELECT v FROM wc WHERE k > 0',
	'SELECT count(v) FROM wc WHERE d < 400',
	-- One leaf, then many.
	'SELECT d FROM wc WHERE d = 3 LIMIT 1',
	'SELECT count(*) FROM wc WHERE d BETWEEN 100 AND 400',
	'SELECT d FROM wc ORDER BY d',
	-- What core has for btrees only.
	'SELECT a, b FROM wc WHERE (a, b) > (498, 50) ORDER BY a, b',
	'SELECT a, b FROM wc WHERE a = 498 AND b > 50 ORDER BY a, b']) query;

-- The costs of a probe: core's for a btree but for the way down, which is the number of
-- levels if 300 children were on a page, at half of what core takes.
CREATE FUNCTION costs(query text, OUT startup numeric, OUT total numeric) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	startup := plan->0->'Plan'->>'Startup Cost';
	total := plan->0->'Plan'->>'Total Cost';
END $$;
DO $$
DECLARE
	w record;
	b record;
BEGIN
	SELECT * INTO w FROM costs('SELECT v FROM wc WHERE k = 5');
	DROP INDEX wc_k_wormhole;
	SELECT * INTO b FROM costs('SELECT v FROM wc WHERE k = 5');
	IF w.startup >= b.startup OR w.total >= b.total OR b.total - w.total > 0.5 THEN
		RAISE 'wormhole %, btree %', w, b;
	END IF;
	RAISE EXCEPTION SQLSTATE 'RF001';
EXCEPTION WHEN SQLSTATE 'RF001' THEN
	NULL;
END $$;

-- wormhole_status(): each column beside what else tells the same.
CREATE TABLE ws (k int8, d int) WITH (autovacuum_enabled = off);
CREATE INDEX ws_k ON ws USING wormhole (k);
SELECT * FROM wormhole_status('ws_k');
INSERT INTO ws SELECT i, i % 100 FROM generate_series(1, 30000) i;
CREATE INDEX ws_d ON ws USING wormhole (d);
VACUUM ANALYZE ws;
SELECT relname, 1 + leaf_pages + directory_pages + free_pages = pg_relation_size(c.oid) / 8192 AS pages, leaf_pages > 10 AS leaves,
	directory_pages, free_pages, keys, rows, anchors = leaf_pages AS anchors, anchor_length BETWEEN 4 AND 9 AS anchor_length
FROM pg_class c, LATERAL wormhole_status(c.oid) WHERE relname IN ('ws_k', 'ws_d') ORDER BY 1 DESC;
-- Deleted pages; and entries of rows that nobody sees are entries until VACUUM.
DELETE FROM ws WHERE k > 10000;
SELECT keys, rows FROM wormhole_status('ws_k');
VACUUM ws;
SELECT free_pages > 15 AS free, keys, rows, 1 + leaf_pages + directory_pages + free_pages = pg_relation_size('ws_k') / 8192 AS pages FROM wormhole_status('ws_k');
-- Lookups: each is one hit, one stale walk or one descent, so they add up.  The index
-- is a new one: if sessions share hints, that of the old one is there.
DROP INDEX ws_k;
CREATE INDEX ws_k ON ws USING wormhole (k);
CREATE FUNCTION looked_up(n int) RETURNS TABLE (hits bigint, stale bigint, descents bigint, hint boolean) LANGUAGE plpgsql AS $$
DECLARE
	before record;
	i int;
BEGIN
	SELECT * INTO before FROM wormhole_status('ws_k');
	FOR i IN 1 .. n LOOP
		PERFORM FROM ws WHERE k = (i * 7919) % 10000 + 1;
	END LOOP;
	RETURN QUERY SELECT hint_hits - before.hint_hits, stale_walks - before.stale_walks, directory_descents - before.directory_descents, hint_bytes > 0
		FROM wormhole_status('ws_k');
END $$;
\c -
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET wormhole.enable_hint = off;
SELECT * FROM looked_up(500);
SET wormhole.enable_hint = on;
SET wormhole.hint_after = 1000000;
SELECT * FROM looked_up(500);
SET wormhole.hint_after = 0;
SELECT hits > 0 AS some, stale, hits + stale + descents AS all, hint FROM looked_up(500);
SELECT * FROM looked_up(500);
-- Too little memory for any: the directory, always.
CREATE TABLE wl AS SELECT (repeat(md5((i % 50)::text), 32) || i) COLLATE "C" AS s FROM generate_series(1, 8000) i;
CREATE INDEX wl_s ON wl USING wormhole (s);
SET wormhole.hint_memory = '64kB';
SELECT count(*) FROM generate_series(1, 8000) i, LATERAL (SELECT FROM wl WHERE s = repeat(md5((i % 50)::text), 32) || i OFFSET 0) x;
SELECT hint_bytes, hint_hits, stale_walks, directory_descents FROM wormhole_status('wl_s');
RESET wormhole.hint_memory;
-- For whoever may read the table.
CREATE ROLE regress_wc_nobody;
SET ROLE regress_wc_nobody;
SELECT wormhole_status('ws_k');
SELECT wormhole_check('ws_k');
RESET ROLE;
GRANT SELECT ON ws TO regress_wc_nobody;
SET ROLE regress_wc_nobody;
SELECT rows FROM wormhole_status('ws_k');
RESET ROLE;
DROP TABLE wc, ws, wl;
DROP ROLE regress_wc_nobody;
DROP FUNCTION chosen, costs, looked_up;
