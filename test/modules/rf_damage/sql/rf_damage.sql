-- Unique checks of which core asks btrees alone: one that only says whether the key is unique
-- (UNIQUE_CHECK_PARTIAL), and one of a row that has its entry (UNIQUE_CHECK_EXISTING).
SET client_min_messages = warning;
LOAD 'rangefilter';
CREATE EXTENSION rangefilter;
CREATE EXTENSION rf_damage;
\set no_error 2
\set existing 3
CREATE TABLE once (k int8);
INSERT INTO once SELECT generate_series(1, 100);
CREATE UNIQUE INDEX once_k ON once USING wormhole (k);
SELECT rf_insert('once_k', 5, ctid, :existing) FROM once WHERE k = 5;
-- That made no entry.
SELECT wormhole_check('once_k', true);
-- Another row has the key; no row has it.
SELECT rf_insert('once_k', 5, ctid, :existing) FROM once WHERE k = 6;
SELECT rf_insert('once_k', 200, ctid, :existing) FROM once WHERE k = 6;
-- Entries are made, of a new key and of one that is there; the latter is found behind the row itself.
SELECT rf_insert('once_k', 300, ctid, :no_error) AS new, rf_insert('once_k', 5, ctid, :no_error) AS again
FROM once WHERE k = 7;
SELECT wormhole_check('once_k');
SELECT rf_insert('once_k', 5, ctid, :existing) FROM once WHERE k = 5;

-- Is a key that is not there denied while bytes of the delta's page are others?
SET rangefilter.autosummarize = off;
CREATE TABLE delta (k int8, s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX delta_k ON delta USING rangefilter (k);
CREATE INDEX delta_s ON delta USING rangefilter (s);
INSERT INTO delta SELECT g, 'key ' || g FROM generate_series(1, 50) g;
CREATE FUNCTION denied(index regclass, at int, bytes bytea) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	before bytea := substr(rf_page(index, 1), at + 1, length(bytes));
	may bool;
BEGIN
	PERFORM rf_damage(index, 1, at, bytes);
	may := CASE WHEN index = 'delta_k'::regclass THEN rangefilter_may_contain(index, 0, 0)
		ELSE rangefilter_may_contain(index, 'no'::text, 'no') END;
	PERFORM rf_damage(index, 1, at, before);
	RETURN NOT may;
END $$;
SELECT index, what, denied(index, at, bytes) FROM (VALUES
	('delta_k'::regclass, 'nothing', 0, ''::bytea),
	('delta_k', 'the end within a stride', 12, '\x3002'),
	('delta_k', 'a stride less', 12, '\xa801'),
	('delta_k', 'pd_upper', 14, '\xf81f'),
	('delta_s', 'nothing', 0, ''),
	('delta_s', 'the end within an offset', 12, '\x8d00'),
	('delta_s', 'an offset less', 12, '\x8a00'),
	('delta_s', 'an offset before the keys', 40, '\x8800'),
	('delta_s', 'an offset at the end', 40, '\xff1f'),
	('delta_s', 'a length behind the end', 8185, '\xff')) x (index, what, at, bytes);
-- The page is not there: what is told of the index, and an insert.
SELECT rf_damage('delta_k', 0, 112, '\xffff0000');
SELECT delta_keys, min, max, rangefilter_may_contain('delta_k', 0, 0) FROM rangefilter_status('delta_k');
INSERT INTO delta VALUES (100, 'key');
-- Of one of two partitions such a page is not there: it is read, whatever is asked.
CREATE TABLE parts (p int, k int8) PARTITION BY LIST (p);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE INDEX parts_k ON parts USING rangefilter (k);
INSERT INTO parts VALUES (1, 1), (2, 2);
SELECT rf_damage('parts2_k_idx', 0, 112, '\xffff0000');
EXPLAIN (COSTS OFF) SELECT * FROM parts WHERE k = 3;
EXPLAIN (COSTS OFF) SELECT * FROM parts WHERE k IS NULL;
-- The list of spare blocks names a page in use, which is passed over.
CREATE TABLE spare (k int8) WITH (autovacuum_enabled = off);
CREATE INDEX spare_k ON spare USING rangefilter (k);
CREATE PROCEDURE trickle(low int, high int) LANGUAGE plpgsql AS
	'BEGIN FOR i IN low .. high LOOP INSERT INTO spare SELECT 100 * i + g FROM generate_series(1, 100) g; END LOOP; END';
CALL trickle(1, 11);
SELECT get_byte(rf_page('spare_k', 0), 100) AS spares, get_byte(rf_page('spare_k', 0), 112) AS used;
SELECT rf_damage('spare_k', 0, 208, substr(rf_page('spare_k', 0), 113, 4));
CALL trickle(12, 22);
SELECT levels, level_keys, delta_keys, rangefilter_verify('spare_k') FROM rangefilter_status('spare_k');
-- A string that cannot be read: its page is not merged when it is full, and some pages more are filled.
CREATE TABLE strings (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX strings_s ON strings USING rangefilter (s);
INSERT INTO strings SELECT repeat('s', 900) || g FROM generate_series(1, 5) g;
SELECT rf_damage('strings_s', 1, 40, '\x0001');
INSERT INTO strings SELECT repeat('s', 900) || g FROM generate_series(6, 60) g;
SELECT levels, delta_keys, tail_open, rangefilter_may_contain('strings_s', 's'::text, 's') FROM rangefilter_status('strings_s');
-- One that is said to be longer than keys are.
CREATE TABLE longer (s text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX longer_s ON longer USING rangefilter (s);
INSERT INTO longer SELECT repeat('s', 900) || g FROM generate_series(1, 5) g;
SELECT rf_damage('longer_s', 1, 8192 - 2 * (2 + 901), '\x4d04');
INSERT INTO longer SELECT repeat('s', 900) || g FROM generate_series(6, 20) g;
SELECT levels, delta_keys FROM rangefilter_status('longer_s');
-- The same page is not there at all: no other one is merged without it, and none of its rows is lost.
SELECT rf_damage('longer_s', 0, 112, '\xffff0000');
INSERT INTO longer SELECT repeat('s', 900) || g FROM generate_series(21, 40) g;
SELECT levels, rangefilter_may_contain('longer_s', repeat('s', 900) || 1, repeat('s', 900) || 1) FROM rangefilter_status('longer_s');
-- Where the delta has not room for all keys (RF_DELTA_OVERFLOW), others are not written to it in vain.
CREATE TABLE missing (k int8) WITH (autovacuum_enabled = off);
INSERT INTO missing SELECT generate_series(1, 100);
CREATE INDEX missing_k ON missing USING rangefilter (k);
SELECT rf_damage('missing_k', 0, 68, '\x04');
INSERT INTO missing VALUES (1000);
SELECT delta_keys, rangefilter_may_contain('missing_k', 1000, 1000), rangefilter_may_contain('missing_k', 2000, 2000) FROM rangefilter_status('missing_k');
-- A rangefilter index vouches for no uniqueness.
SELECT rf_insert('spare_k', 0, '(0,1)');
INSERT INTO spare SELECT -g FROM generate_series(1, 1000) g;
SELECT tail_open, rf_insert('spare_k', 0, format('(%s,1)', pg_relation_size('spare') / 8192 - 1)::tid) FROM rangefilter_status('spare_k');

-- A split that an error has cut short, whose halves become empty: VACUUM leaves them, since the
-- directory does not lead to the right one.
CREATE TABLE halves (k int8) WITH (autovacuum_enabled = off);
INSERT INTO halves SELECT 1000000::int8 * g FROM generate_series(1, 1000) g;
CREATE INDEX halves_k ON halves USING wormhole (k) WITH (fillfactor = 10);
CREATE FUNCTION leaves() RETURNS text LANGUAGE sql AS $$
	SELECT format('%s leaves, %s free, %s split by half; %s keys', leaf_pages, free_pages,
		(SELECT count(*) FROM generate_series(1, pg_relation_size('halves_k') / 8192 - 1) b WHERE get_byte(rf_page('halves_k', b::int), 58) & 6 = 4),
		wormhole_check('halves_k', true)) FROM wormhole_status('halves_k')
$$;
-- Inserts find their leaf by the hint, and the root is damaged when a split needs it.
SELECT get_byte(rf_page('halves_k', 0), 72) AS root \gset
SET wormhole.hint_after = 0;
INSERT INTO halves SELECT 500500000 + g FROM generate_series(1, 4000) g WHERE g <> 10 OR rf_damage('halves_k', :root, 62, '\x0000') IS NULL;
SELECT rf_damage('halves_k', :root, 62, '\x96ff');
DELETE FROM halves WHERE k BETWEEN 300000000 AND 700000000;
VACUUM (INDEX_CLEANUP ON) halves;
SELECT leaves();
-- An insert completes the split, and they can go.
INSERT INTO halves VALUES (500500000);
DELETE FROM halves WHERE k = 500500000;
VACUUM (INDEX_CLEANUP ON) halves;
SELECT leaves();
-- The halves of a leaf that is split by a key in its middle have gaps among their entries.
CREATE TABLE gaps (k int8) WITH (autovacuum_enabled = off);
INSERT INTO gaps SELECT 10 * g FROM generate_series(1, 2000) g;
CREATE INDEX gaps_k ON gaps USING wormhole (k) WITH (fillfactor = 100);
CREATE FUNCTION slots() RETURNS int8 LANGUAGE sql AS $$
	SELECT sum(get_byte(p, 56) + 256 * get_byte(p, 57))
	FROM generate_series(1, pg_relation_size('gaps_k') / 8192 - 1) b, rf_page('gaps_k', b::int) p
$$;
SELECT slots() AS before, leaf_pages AS leaves FROM wormhole_status('gaps_k') \gset
INSERT INTO gaps VALUES (1005);
SELECT leaf_pages - :leaves AS leaves, slots() - :before > 50 AS gaps FROM wormhole_status('gaps_k');

-- The rows of a list are dead, and marked so.  A row between them is not.
CREATE TABLE lists (k int8, v int) WITH (autovacuum_enabled = off);
INSERT INTO lists SELECT g % 2, g FROM generate_series(1, 200) g;
CREATE INDEX lists_k ON lists USING wormhole (k);
DELETE FROM lists WHERE k = 1;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(v) FROM lists WHERE k = 1;
SELECT rf_insert('lists_k', 1, '(0,100)');
SELECT count(v) FROM lists WHERE k = 1;
-- Of some lists VACUUM leaves one row: its entry takes no more room than one that is made anew.
CREATE TABLE rest (k text COLLATE "C", n int) WITH (autovacuum_enabled = off);
INSERT INTO rest SELECT repeat('k', 10 + g / 3), g % 3 FROM generate_series(0, 59) g;
CREATE INDEX rest_k ON rest USING wormhole (k);
DELETE FROM rest WHERE n > 0 AND length(k) < 20;
VACUUM (INDEX_CLEANUP ON) rest;
CREATE FUNCTION upper() RETURNS int LANGUAGE sql AS
	$$SELECT get_byte(p, 14) + 256 * get_byte(p, 15) FROM rf_page('rest_k', 1) p$$;
SELECT upper() AS before \gset
REINDEX INDEX rest_k;
SELECT wormhole_check('rest_k'), upper() - :before AS less;
-- An entry for a row behind the end of the table, in a leaf that is full when a row changes.
RESET enable_seqscan;
CREATE TABLE beyond (k int8, v int) WITH (autovacuum_enabled = off);
INSERT INTO beyond SELECT g, 0 FROM generate_series(1, 50) g;
CREATE INDEX beyond_k ON beyond USING wormhole (k);
CREATE INDEX beyond_v ON beyond (v);
SELECT count(rf_insert('beyond_k', 1000 + g, '(0,1)')) FROM generate_series(1, 600) g;
SELECT rf_insert('beyond_k', 25, '(1,1)');
DO 'BEGIN FOR i IN 1 .. 100 LOOP UPDATE beyond SET v = v + 1 WHERE k = 1; END LOOP; END';
