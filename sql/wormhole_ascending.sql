-- Ascending keys: the last leaf gets a high bound when it is full.
SET client_min_messages = warning;

CREATE TABLE asc_text (k text COLLATE "C", n int);
CREATE INDEX asc_text_k ON asc_text USING wormhole (k);
INSERT INTO asc_text
SELECT 'https://www.example.org/catalog/section-7/products/number-' ||
	lpad(i::text, 9, '0'), i
FROM generate_series(1, 30000) i;
CREATE TABLE asc_int (k int8);
CREATE UNIQUE INDEX asc_int_k ON asc_int USING wormhole (k);
INSERT INTO asc_int SELECT i FROM generate_series(1, 100000) i;
-- Bytes that have no successor, and keys that are all equal.
CREATE TABLE asc_bytes (k bytea);
CREATE INDEX asc_bytes_k ON asc_bytes USING wormhole (k);
INSERT INTO asc_bytes
SELECT decode(repeat('ff', 50) || lpad(to_hex(i), 6, '0'), 'hex')
FROM generate_series(1, 5000) i;
CREATE TABLE asc_equal (k text COLLATE "C");
CREATE INDEX asc_equal_k ON asc_equal USING wormhole (k) WITH (deduplicate = off);
INSERT INTO asc_equal SELECT repeat('k', 300) FROM generate_series(1, 3000);
-- Several values, and the other direction.
CREATE TABLE asc_two (a text COLLATE "C", b int);
CREATE INDEX asc_two_ab ON asc_two USING wormhole (a, b DESC);
INSERT INTO asc_two SELECT 'the same text ' || i / 1000, -i % 1000
FROM generate_series(1, 20000) i;

CREATE TABLE sizes AS
SELECT name, wormhole_check(name::regclass, true) AS keys,
	pg_relation_size(name) AS grown
FROM unnest(ARRAY['asc_text_k', 'asc_int_k', 'asc_bytes_k', 'asc_equal_k',
		'asc_two_ab']) name;
SELECT name, keys FROM sizes;

-- What comes after the bound, with an empty leaf at the end.
SET enable_seqscan = off;
SET enable_sort = off;
SELECT k FROM asc_text ORDER BY k DESC LIMIT 2;
SELECT max(k), min(k) FROM asc_int;
INSERT INTO asc_int VALUES (100000);
INSERT INTO asc_int VALUES (9223372036854775807), (200000);
SELECT k FROM asc_int ORDER BY k DESC LIMIT 3;
SELECT count(*) FROM asc_int WHERE k > 99990;
INSERT INTO asc_bytes VALUES (decode(repeat('ff', 200), 'hex')), ('\x00');
SELECT count(*), length(max(encode(k, 'hex'))) FROM asc_bytes
WHERE k > decode(repeat('ff', 50), 'hex');
SELECT count(*) FROM asc_text WHERE k LIKE 'https://www.example.org/%';

-- VACUUM gives an empty end back to the leaf before it, or leaves it.
DELETE FROM asc_text WHERE n > 100;
DELETE FROM asc_int WHERE k > 50000;
VACUUM asc_text, asc_int;
SELECT wormhole_check('asc_text_k', true) >= 100 AS text,
	wormhole_check('asc_int_k', true) >= 50000 AS int;
INSERT INTO asc_text
SELECT 'https://www.example.org/catalog/section-7/products/number-' ||
	lpad(i::text, 9, '0'), i
FROM generate_series(101, 30000) i;
INSERT INTO asc_int SELECT i FROM generate_series(50001, 100000) i;
SELECT wormhole_check('asc_text_k', true) >= 30000 AS text,
	wormhole_check('asc_int_k', true) >= 100000 AS int;
SELECT n FROM asc_text ORDER BY k DESC LIMIT 2;

-- The pages are nearly as full as those of a build.
REINDEX INDEX asc_text_k;
REINDEX INDEX asc_int_k;
REINDEX INDEX asc_bytes_k;
REINDEX INDEX asc_equal_k;
SELECT name, grown > 1.5 * pg_relation_size(name) AS thin FROM sizes
WHERE name <> 'asc_two_ab';
DROP TABLE asc_text, asc_int, asc_bytes, asc_equal, asc_two, sizes;

-- How pages are filled, and how long anchors are, by the order in which keys come.
CREATE FUNCTION filled(type text, value text, n int, options text, again text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	shape text;
BEGIN
	EXECUTE format('CREATE TABLE filled (k %s) WITH (autovacuum_enabled = off)', type);
	EXECUTE format('CREATE INDEX filled_k ON filled USING wormhole (k) WITH (%s)', options);
	EXECUTE format('INSERT INTO filled SELECT %s FROM generate_series(1, %s) i', value, n);
	IF again IS NOT NULL THEN
		EXECUTE format('INSERT INTO filled SELECT %s FROM generate_series(1, %s) i', again, n);
	END IF;
	PERFORM wormhole_check('filled_k', true);
	SELECT format('%s leaves, %s above; %s anchors of %s bytes; %s keys', leaf_pages, directory_pages, anchors,
		round(anchor_length::numeric, 2), keys) INTO shape FROM wormhole_status('filled_k');
	DROP TABLE filled;
	RETURN shape;
END $$;
SELECT value, again, filled(type, value, 6000, options, again) FROM (VALUES
	('int8', 'i', 'fillfactor = 90', NULL),
	('int8', 'i', 'fillfactor = 50', 'hashint8extended(i, 1)'),
	('int8', '-i', 'fillfactor = 90', 'i / 3'),
	('int8', 'hashint8extended(i, 1)', 'fillfactor = 90', NULL),
	('int4', 'i % 100', 'fillfactor = 90', NULL),
	('int4', 'i % 100', 'deduplicate = off', NULL),
	('text COLLATE "C"', 'md5(i::text)', 'fillfactor = 90', NULL),
	-- what the last leaf shares with its end is one byte, or digits
	('text COLLATE "C"', '''k'' || chr(40 + i / 250) || lpad(i::text, 5, ''0'')', 'fillfactor = 90', NULL),
	('text COLLATE "C"', 'lpad(i::text, 60, ''0'')', 'fillfactor = 90', 'lpad((7 * i)::text, 60, ''0'')'),
	-- ... or bytes that have no successor
	('bytea', 'decode(repeat(''ff'', 50) || lpad(to_hex(i * 40), 6, ''0''), ''hex'')', 'fillfactor = 90', NULL),
	-- the end of the page is empty while other keys come before it
	('text COLLATE "C"', '''https://www.example.org/'' || lpad((i / 2 + i % 2 * 100000)::text, 9, ''0'')', 'fillfactor = 90', NULL),
	-- anchors of many bytes and with TIDs
	('text COLLATE "C"', 'repeat(''w'', i % 7 * 150) || i / 30', 'deduplicate = off', NULL),
	('text COLLATE "C"', 'repeat(chr(97 + i % 3), 700)', 'deduplicate = off', NULL),
	('text COLLATE "C"', 'lpad((i / 4)::text, 900, ''x'') || md5(i::text)', 'deduplicate = off', NULL)) v (type, value, options, again);
DROP FUNCTION filled;
