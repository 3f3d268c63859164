-- filter = auto: which filter the keys themselves choose, and that what it says
-- is true.

CREATE SCHEMA rf_choice;
SET search_path = rf_choice, public;

-- Builds an index on column k of a table and says what it chose.  Of 2000
-- values that are not there it may admit a hundred.  All rows are checked, then
-- once more with those values inserted, then once more after VACUUM's work.
CREATE PROCEDURE try(name text, missing text)
LANGUAGE plpgsql AS $$
DECLARE
	index text := name || '_k_idx';
	chosen text;
	admitted int;
	checked bool;
BEGIN
	EXECUTE format('CREATE INDEX ON %I USING rangefilter (k)', name);
	SELECT concat_ws(' ', filter, suffix) INTO chosen FROM rangefilter_status(index::regclass);
	EXECUTE format('SELECT count(*) FROM generate_series(1, 2000) i
		WHERE rangefilter_may_contain(%L, %s, %s)', index, missing, missing)
		INTO admitted;
	checked := rangefilter_verify(index::regclass) > 0;
	EXECUTE format('INSERT INTO %I SELECT %s FROM generate_series(1, 2000) i',
				   name, missing);
	checked := checked AND rangefilter_verify(index::regclass) > 0;
	PERFORM rangefilter_summarize(index::regclass);
	checked := checked AND rangefilter_verify(index::regclass) > 0;
	RAISE NOTICE '%: %, few admitted: %, checked: %', name, chosen,
		admitted <= 100, checked;
END
$$;

-- Numbers: SNARF, lossless where that fits the space of a row.
CREATE TABLE scattered AS
	SELECT hashint8extended(i, 1) AS k FROM generate_series(1, 20000) i;
CALL try('scattered', 'hashint8extended(i, 2)');
CREATE TABLE serial AS SELECT 3 * i AS k FROM generate_series(1, 20000) i;
CALL try('serial', '3 * i + 1');
CREATE TABLE repeated AS
	SELECT hashint8extended(i % 500, 1) AS k FROM generate_series(1, 20000) i;
CALL try('repeated', 'hashint8extended(i, 2)');
CREATE TABLE moments AS
	SELECT timestamptz '2024-01-01' + i * interval '1 minute' +
		hashint8(i) * interval '1 microsecond' / 100 AS k
	FROM generate_series(1, 20000) i;
CALL try('moments', $$timestamptz '2024-01-01 00:00:00.1234567' + i * interval '37 seconds'$$);

-- Byte strings: hashes beside a trie.
CREATE TABLE uuids AS
	SELECT md5(i::text)::uuid AS k FROM generate_series(1, 20000) i;
CALL try('uuids', 'md5((-i)::text)::uuid');
CREATE TABLE uuids_by_time AS
	SELECT (lpad(to_hex(1700000000000 + i * 1000), 12, '0') || '7' ||
			substr(md5(i::text), 1, 19))::uuid AS k
	FROM generate_series(1, 20000) i;
CALL try('uuids_by_time', $$(lpad(to_hex(1700000000000 + i * 7777), 12, '0') || '7' ||
	substr(md5(i::text), 3, 19))::uuid$$);
CREATE TABLE hashes AS
	SELECT sha256(i::text::bytea) AS k FROM generate_series(1, 20000) i;
CALL try('hashes', 'sha256((-i)::text::bytea)');
CREATE TABLE addresses AS
	SELECT ('08:00:2b:' || regexp_replace(substr(md5((i % 7919)::text), 1, 6), '(..)(..)(..)', '\1:\2:\3'))::macaddr AS k
	FROM generate_series(1, 20000) i;
CALL try('addresses', $$('08:00:2b:' || regexp_replace(substr(md5((-i)::text), 1, 6), '(..)(..)(..)', '\1:\2:\3'))::macaddr$$);

-- Rows: hashes of first values and of whole rows.  Each first value that is asked for is there, so only
-- the hash of the row can tell that the row is not.
CREATE TABLE parent (a int, b int);
CREATE TABLE pairs () INHERITS (parent);
INSERT INTO pairs SELECT abs(hashint4(i)) % 100000 AS a, abs(hashint4(-i)) % 100000 AS b FROM generate_series(1, 20000) i;
CREATE INDEX ON pairs USING rangefilter (a, b);
SELECT filter FROM rangefilter_status('pairs_a_b_idx');
DO $$
DECLARE
	admitted int = 0;
	plan text;
BEGIN
	FOR i IN 1 .. 1000 LOOP
		EXECUTE format('EXPLAIN (FORMAT JSON) SELECT FROM parent WHERE a = %s AND b = %s', abs(hashint4(i)) % 100000, abs(hashint4(-i - 1)) % 100000) INTO plan;
		admitted := admitted + (plan NOT LIKE '%"Partitions Skipped": 1,%')::int;
	END LOOP;
	RAISE NOTICE 'few admitted: %', admitted < 100;
END
$$;
INSERT INTO pairs VALUES (NULL, 1), (1, NULL), (-1, 2000000000), (2000000000, -1);
SELECT rangefilter_verify('pairs_a_b_idx');
SELECT count(*) FROM rangefilter_summarize('pairs_a_b_idx');
SELECT rangefilter_verify('pairs_a_b_idx');

-- Strings.
CREATE TABLE texts (k text COLLATE "C");
INSERT INTO texts SELECT md5(i::text) FROM generate_series(1, 20000) i;
CALL try('texts', 'md5((-i)::text)');
CREATE TABLE urls (k text COLLATE "C");
INSERT INTO urls
	SELECT 'https://example.org/' || (ARRAY['orders', 'users', 'items'])[1 + i % 3] ||
		'/' || abs(hashint8(i)) FROM generate_series(1, 20000) i;
CALL try('urls', $$'https://example.org/orders/' || abs(hashint8(-i))$$);

-- Where the next letters of a string follow from those before, the real bits of a suffix tell
-- little, and hashes more.
CREATE TABLE names (k text COLLATE "C");
CREATE FUNCTION word(i int) RETURNS text IMMUTABLE LANGUAGE sql
	RETURN translate(left(md5((abs(hashint4(i)) % 300)::text), 4 + abs(hashint4(i)) % 4), '0123456789', 'ghijklmnop');
CREATE FUNCTION name(i int) RETURNS text IMMUTABLE LANGUAGE sql
	RETURN word(2 * i) || '.' || word(2 * i + 1) || abs(hashint4(i)) % 1000;
INSERT INTO names SELECT name(i) FROM generate_series(1, 20000) i;
CREATE INDEX names_auto ON names USING rangefilter (k);
CREATE INDEX names_real ON names USING rangefilter (k) WITH (suffix = real);
CREATE INDEX names_surf ON names USING rangefilter (k) WITH (filter = surf, suffix = auto);
SELECT index, filter, suffix FROM pg_indexes, rangefilter_status(indexname::regclass)
WHERE tablename = 'names' ORDER BY 1;
SELECT sum(rangefilter_may_contain('names_auto', name(-i), name(-i))::int) * 2 <
	sum(rangefilter_may_contain('names_real', name(-i), name(-i))::int) AS half
FROM generate_series(1, 2000) i;
SELECT rangefilter_verify('names_auto');

-- Few keys: no other choice.
CREATE TABLE few AS SELECT md5(i::text)::uuid AS k FROM generate_series(1, 1000) i;
CALL try('few', 'md5((-i)::text)::uuid');
CREATE TABLE fewest AS SELECT md5(i::text)::uuid AS k FROM generate_series(1, 200) i;
CREATE INDEX ON fewest USING rangefilter (k);
SELECT filter FROM rangefilter_status('fewest_k_idx');

-- Ranges and their ends, over a trie that is cut off.
CREATE TABLE truth AS SELECT k, row_number() OVER (ORDER BY k) AS n FROM uuids;
SELECT count(*) FROM truth a JOIN truth b ON b.n = a.n + 1
WHERE NOT rangefilter_may_contain('uuids_k_idx', a.k, b.k)
	OR NOT rangefilter_may_contain('uuids_k_idx', a.k, NULL)
	OR NOT rangefilter_may_contain('uuids_k_idx', NULL, a.k);
SELECT rangefilter_may_contain('uuids_k_idx', NULL, '00000000-0000-0000-0000-000000000000'),
	rangefilter_may_contain('uuids_k_idx', 'ffffffff-ffff-ffff-ffff-ffffffffffff', NULL);

-- Whoever asks for a filter by name gets it.
CREATE INDEX surf_idx ON uuids USING rangefilter (k) WITH (filter = surf);
SELECT filter FROM rangefilter_status('surf_idx');

SET client_min_messages = warning;
DROP SCHEMA rf_choice CASCADE;
