-- The hint of wormhole indexes: it leads to the leaf of every key while nothing
-- has been split, and whatever has happened since, answers stay right.
CREATE TABLE wh_hint (k int8, s text COLLATE "C");
INSERT INTO wh_hint
	SELECT hashint8extended(i, 0), 'https://www.example.org/' || i % 7 || '/' || md5(i::text) || repeat('/long', i % 60)
	FROM generate_series(1, 20000) i;
-- Some are prefixes of others, some have bytes of all kinds.
INSERT INTO wh_hint SELECT i, repeat('a', i) FROM generate_series(1, 600) i;
INSERT INTO wh_hint SELECT i, chr(1 + i % 200) || chr(1 + i % 3) || i FROM generate_series(1, 2000) i;
CREATE TABLE wh_keys AS SELECT k, s FROM wh_hint WHERE hashint8(k) % 20 = 0;
INSERT INTO wh_keys SELECT k + 1, s || ' ' FROM wh_keys;
CREATE INDEX wh_hint_k ON wh_hint USING wormhole (k);
CREATE INDEX wh_hint_s ON wh_hint USING wormhole (s);
VACUUM ANALYZE wh_hint;
VACUUM ANALYZE wh_keys;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- Lookups of keys that are there or not, and of what comes before and after.
CREATE FUNCTION look_up() RETURNS TABLE (rows int8, before numeric, after numeric, strings int8, lasts int8)
LANGUAGE plpgsql AS $$
DECLARE
	o record;
	n int8;
	t text;
BEGIN
	rows := 0; before := 0; after := 0; strings := 0; lasts := 0;
	FOR o IN SELECT * FROM wh_keys LOOP
		SELECT count(*) INTO n FROM wh_hint h WHERE h.k = o.k;
		rows := rows + n;
		SELECT h.k INTO n FROM wh_hint h WHERE h.k < o.k ORDER BY h.k DESC LIMIT 1;
		before := before + coalesce(n, 0);
		SELECT h.k INTO n FROM wh_hint h WHERE h.k > o.k ORDER BY h.k LIMIT 1;
		after := after + coalesce(n, 0);
		SELECT count(*) INTO n FROM wh_hint h WHERE h.s = o.s;
		strings := strings + n;
		SELECT h.s INTO t FROM wh_hint h WHERE h.s <= o.s ORDER BY h.s DESC LIMIT 1;
		lasts := lasts + hashtext(t);
	END LOOP;
	RETURN NEXT;
END $$;

-- Is it as without the hint?
CREATE FUNCTION same_without_hint() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	with_hint record;
	without record;
BEGIN
	with_hint := look_up();
	SET LOCAL wormhole.enable_hint = off;
	without := look_up();
	RETURN with_hint = without;
END $$;

CREATE VIEW wh_hints AS
	SELECT relname, hint_bytes > 0 AS there, hint_hits > 1000 AS hits, stale_walks, directory_descents > 0 AS descents
	FROM pg_class c, LATERAL wormhole_status(c.oid) WHERE relname IN ('wh_hint_k', 'wh_hint_s') ORDER BY 1;

-- Without it all goes through the directory.
SET wormhole.enable_hint = off;
SELECT rows, strings FROM look_up();
SELECT * FROM wh_hints;

-- Nothing is led astray as long as nothing changes.
SET wormhole.enable_hint = on;
SET wormhole.hint_after = 0;
SELECT same_without_hint();
SELECT relname, there, hits, stale_walks FROM wh_hints;

-- It is made when that is repaid, not before: of new indexes, as sessions may share
-- the hints of these.
DROP INDEX wh_hint_k, wh_hint_s;
CREATE INDEX wh_hint_k ON wh_hint USING wormhole (k);
CREATE INDEX wh_hint_s ON wh_hint USING wormhole (s);
\c -
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET wormhole.hint_after = 10000;
SELECT rows FROM look_up();
SELECT relname, there, stale_walks, descents FROM wh_hints;
SET wormhole.hint_after = 2;
SELECT rows FROM look_up();
SELECT * FROM wh_hints;

-- Splits make it stale; once enough walks have been wrong it is made anew.
INSERT INTO wh_hint SELECT k + 3, s || '+' FROM wh_hint;
INSERT INTO wh_hint SELECT k + 5, s || '-' FROM wh_hint;
SELECT same_without_hint();
SELECT same_without_hint();
SELECT relname, there, hits, stale_walks > 0 AS stale FROM wh_hints;
SELECT wormhole_check('wh_hint_k', true) = count(*), wormhole_check('wh_hint_s', true) = count(*) FROM wh_hint;

-- The index is rebuilt, emptied, dropped and made again, under the hint's feet.
REINDEX TABLE wh_hint;
SELECT same_without_hint();
DELETE FROM wh_hint WHERE k % 5 <> 0;
VACUUM wh_hint;
SELECT same_without_hint();
BEGIN;
TRUNCATE wh_hint;
SELECT rows, strings FROM look_up();
INSERT INTO wh_hint SELECT k, s FROM wh_keys;
SELECT same_without_hint();
ROLLBACK;
SELECT same_without_hint();
TRUNCATE wh_hint;
SELECT rows, strings FROM look_up();
INSERT INTO wh_hint SELECT k, s FROM wh_keys;
SELECT same_without_hint();
DROP INDEX wh_hint_k;
CREATE INDEX wh_hint_k ON wh_hint USING wormhole (k);
SELECT same_without_hint();

-- With little memory there is one of them at most, or none.
SET wormhole.hint_memory = '64kB';
SET wormhole.hint_after = 0;
SELECT same_without_hint();
SELECT sum(hint_bytes) < 65536 AS within FROM pg_class c, LATERAL wormhole_status(c.oid)
	WHERE relname IN ('wh_hint_k', 'wh_hint_s');
SET wormhole.hint_memory = '1GB';
SELECT same_without_hint();
RESET wormhole.hint_memory;

-- Equal keys on many leaves; positions that are prefixes.
CREATE TABLE wh_equal AS SELECT (i / 4000)::text COLLATE "C" AS s, i FROM generate_series(1, 20000) i;
CREATE INDEX wh_equal_s ON wh_equal USING wormhole (s) WITH (deduplicate = off);
CREATE INDEX wh_equal_si ON wh_equal USING wormhole (s, i);
VACUUM ANALYZE wh_equal;
SELECT s, (SELECT count(*) FROM wh_equal e WHERE e.s = v.s), (SELECT min(i) FROM wh_equal e WHERE e.s = v.s), (SELECT max(i) FROM wh_equal e WHERE e.s = v.s)
	FROM (VALUES (''), ('0'), ('1'), ('2'), ('30'), ('4'), ('5'), ('9')) v(s);
INSERT INTO wh_equal SELECT '2', i FROM generate_series(20001, 21000) i;
SELECT count(*) FROM wh_equal WHERE s = '2';
SELECT wormhole_check('wh_equal_s', true), wormhole_check('wh_equal_si', true);

-- Temporary tables, whose buffers are the session's.
CREATE TEMP TABLE wh_temp AS SELECT hashint8extended(i, 0) AS k FROM generate_series(1, 20000) i;
CREATE INDEX wh_temp_k ON wh_temp USING wormhole (k);
SELECT count(*) FROM generate_series(1, 20000) i, LATERAL (SELECT FROM wh_temp WHERE k = hashint8extended(i, 0) OFFSET 0) x;
DROP TABLE wh_temp, wh_equal, wh_hint, wh_keys CASCADE;
DROP FUNCTION look_up, same_without_hint;
