# One damaged field at a time, on every kind of page of both access methods: queries give
# the right rows, or of wormhole the error of a damaged index, never another error, and
# nothing happens to the server.  Where a field stays possible and rows are lost, the check
# that reads the table says so.
#
# A field becomes zero, all ones, one more, one less, or random.  Bytes are changed in shared buffers
# (modules/rf_damage), then put back, so that a case takes milliseconds.  A run takes the
# fixed fields of each kind of page, and a random share of all other places, as fields of one, two,
# four or eight bytes: DAMAGE_CASES=n takes n of each index, DAMAGE_CASES=all takes all.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $cases = $ENV{DAMAGE_CASES} // 50;

# What the server shares would answer in place of damaged pages.
my $node = new_server('damaged_fields', without_checksums => 1,
	conf => "shared_preload_libraries = ''\nsession_preload_libraries = 'rangefilter'\n");

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION rf_damage;

-- An index, what its table is asked, what tells of damage, and what is written.
CREATE TABLE subject (name text PRIMARY KEY, index regclass, method text,
	queries text[], functions text[], writes text[], whole text);
CREATE TABLE page (name text, block int, bytes bytea, PRIMARY KEY (name, block));
ALTER TABLE page ALTER bytes SET STORAGE external;
CREATE TABLE expected (name text, query text, answer text);

-- What a statement answers, or the SQLSTATE and message of its error.
CREATE FUNCTION answer(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text; state text; message text;
BEGIN
	EXECUTE statement INTO result;
	RETURN coalesce(result, 'NULL');
EXCEPTION WHEN query_canceled OR OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
	RETURN format('error %s: %s', state, message);
END $$;

-- With the indexes, or without.
CREATE FUNCTION use_indexes(yes boolean) RETURNS void LANGUAGE sql AS $$
	SELECT set_config('rangefilter.enable', yes::text, false),
		set_config('enable_indexscan', yes::text, false),
		set_config('enable_indexonlyscan', yes::text, false),
		set_config('enable_bitmapscan', yes::text, false),
		set_config('enable_seqscan', (NOT yes)::text, false);
$$;

-- Writes, asks with the indexes and without, and rolls all of it back, but for the index's
-- pages.  Returns what is wrong.
CREATE FUNCTION answer_after(change text, queries text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	query text; found text; true_one text; state text; message text; wrong text := '';
BEGIN
	EXECUTE change;
	FOREACH query IN ARRAY queries LOOP
		found := answer(query);
		PERFORM use_indexes(false);
		true_one := answer(query);
		PERFORM use_indexes(true);
		IF found <> true_one AND found NOT LIKE 'error XX002%' THEN
			wrong := wrong || format(' %s after %s: %s, not %s;', query, change, found, true_one);
		END IF;
	END LOOP;
	RAISE EXCEPTION USING MESSAGE = wrong, ERRCODE = 'ZZ000';
EXCEPTION WHEN query_canceled OR OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
	PERFORM use_indexes(true);
	RETURN CASE state WHEN 'ZZ000' THEN message WHEN 'XX002' THEN ''
		ELSE format(' %s: error %s: %s;', change, state, message) END;
END $$;

-- Notes pages and answers of an index before it is damaged.
CREATE FUNCTION note(text, regclass, text, text[], text[], text[], text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO subject VALUES ($1, $2, $3, $4, $5, $6, $7);
	INSERT INTO page SELECT $1, block, rf_page($2, block)
		FROM generate_series(0, pg_relation_size($2)::int / 8192 - 1) block;
	PERFORM use_indexes(false);
	INSERT INTO expected SELECT $1, query, answer(query) FROM unnest($4) query;
	PERFORM use_indexes(true);
END $$;

-- Puts all pages back; new ones become empty.
CREATE FUNCTION heal(subject) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM rf_damage($1.index, block, 0, bytes) FROM page
		WHERE name = $1.name AND rf_page($1.index, block) <> bytes;
	PERFORM rf_damage($1.index, block, 0, decode(repeat('00', 8192), 'hex'))
		FROM generate_series((SELECT max(p.block) + 1 FROM page p WHERE name = $1.name),
			pg_relation_size($1.index)::int / 8192 - 1) block;
END $$;

-- The version of a summary moves, as with any change, so that nothing that was remembered
-- answers in its place.
CREATE FUNCTION damage(subject, block int, at int, bytes bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF $1.method = 'rangefilter' THEN
		PERFORM rf_damage($1.index, 0, 56, substr(decode(md5(random()::text), 'hex'), 1, 8));
	END IF;
	PERFORM rf_damage($1.index, block, at, bytes);
END $$;

-- Damages a field, and asks.  wrong: rows that were lost or too many; bad: errors that there
-- should not be; noticed: by a query or a function; reported: by the check that reads the table.
CREATE FUNCTION try(name text, block int, at int, bytes bytea, writes boolean,
	OUT wrong text, OUT bad text, OUT noticed boolean, OUT reported boolean) LANGUAGE plpgsql AS $$
DECLARE
	it subject; row expected; statement text; result text;
BEGIN
	SELECT * INTO it FROM subject s WHERE s.name = try.name;
	PERFORM damage(it, block, at, bytes);
	wrong := ''; bad := ''; noticed := false; reported := false;
	FOR row IN SELECT * FROM expected e WHERE e.name = try.name LOOP
		result := answer(row.query);
		IF result LIKE 'error XX002%' AND it.method = 'wormhole' THEN
			noticed := true;
		ELSIF result LIKE 'error%' THEN
			bad := bad || format(' %s: %s;', row.query, result);
		ELSIF result <> row.answer THEN
			wrong := wrong || format(' %s: %s, not %s;', row.query, result, row.answer);
		END IF;
	END LOOP;
	FOREACH statement IN ARRAY it.functions LOOP
		result := answer(statement);
		noticed := noticed OR result LIKE 'error XX002%';
		IF result LIKE 'error%' AND result NOT LIKE 'error XX002%' THEN
			bad := bad || format(' %s: %s;', statement, result);
		END IF;
	END LOOP;
	IF wrong <> '' THEN
		reported := answer(it.whole) LIKE 'error XX002%';
	END IF;
	FOREACH statement IN ARRAY it.writes LOOP
		EXIT WHEN NOT writes;
		result := answer_after(statement, it.queries);
		PERFORM heal(it);
		PERFORM damage(it, block, at, bytes);
		IF result LIKE '%: error %' THEN
			bad := bad || result;
		-- Where rows are lost already, or would be, writes do not bring them back.
		ELSIF result <> '' AND NOT noticed AND NOT reported AND answer(it.whole) NOT LIKE 'error XX002%' THEN
			wrong := wrong || result;
		END IF;
	END LOOP;
	PERFORM heal(it);
END $$;

-- What a field becomes: zero, all ones, one more, one less, random.
CREATE FUNCTION bad_values(field bytea) RETURNS SETOF bytea LANGUAGE plpgsql AS $$
DECLARE
	n int := length(field); size numeric := 256::numeric ^ n; old numeric := 0; new numeric;
BEGIN
	FOR i IN 0 .. n - 1 LOOP
		old := old + get_byte(field, i) * 256::numeric ^ i;
	END LOOP;
	FOREACH new IN ARRAY ARRAY[0, size - 1, mod(old + 1, size), mod(old - 1 + size, size), floor(random()::numeric * size)] LOOP
		CONTINUE WHEN new = old;
		FOR i IN 0 .. n - 1 LOOP
			field := set_byte(field, i, mod(floor(new / 256::numeric ^ i), 256)::int);
		END LOOP;
		RETURN NEXT field;
	END LOOP;
END $$;

-- Numbers: SNARF, places in the entry.
CREATE TABLE num (p int, k int8) PARTITION BY LIST (p);
CREATE TABLE num1 PARTITION OF num FOR VALUES IN (1);
CREATE TABLE num2 PARTITION OF num FOR VALUES IN (2);
INSERT INTO num SELECT 1, (k::int8 * 7919 * 7919) % 1000003 * 1000 FROM generate_series(1, 6000) k;
INSERT INTO num SELECT 2, k FROM generate_series(5, 10) k;
CREATE INDEX num_k ON num USING rangefilter (k);
INSERT INTO num VALUES (1, NULL);
});

# Two pages of the delta: nobody may merge them.
my $holder = open_session($node);

ask($holder, "BEGIN; SELECT rf_hold_runs('num1_k_idx')");
$node->safe_psql('postgres', "INSERT INTO num SELECT 1, 5000000000 + k FROM generate_series($_ * 150 + 1, $_ * 150 + 150) k")
  for (0 .. 7);
ask($holder, 'COMMIT');
close_session($holder);

$node->safe_psql(
	'postgres', q{
-- Strings: SuRF, a level, and a page of the delta.
CREATE TABLE str (p int, k text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE str1 PARTITION OF str FOR VALUES IN (1);
CREATE TABLE str2 PARTITION OF str FOR VALUES IN (2);
INSERT INTO str SELECT 1, 'k' || repeat(chr(97 + k % 26), 30) || md5(k::text) FROM generate_series(1, 3000) k;
INSERT INTO str SELECT 2, 'k' || k FROM generate_series(5, 10) k;
CREATE INDEX str_k ON str USING rangefilter (k);
INSERT INTO str SELECT 1, 'x' || repeat(chr(97 + k % 26), 60) || md5(k::text) FROM generate_series(1, 150) k;

-- Places on pages, and a level of numbers.
CREATE TABLE pla (p int, k int, v text) PARTITION BY LIST (p);
CREATE TABLE pla1 PARTITION OF pla FOR VALUES IN (1);
CREATE TABLE pla2 PARTITION OF pla FOR VALUES IN (2);
INSERT INTO pla SELECT 1, CASE k % 20 WHEN 0 THEN CASE k % 400 WHEN 0 THEN 0 ELSE k / 20 % 31 END
	ELSE k * 7919 % 12000 + 100 END, 'of the filter' FROM generate_series(1, 12000) k;
INSERT INTO pla SELECT 2, k FROM generate_series(5, 10) k;
CREATE INDEX pla_k ON pla USING rangefilter (k) WITH (pages_per_range = 1);
SELECT format('INSERT INTO pla SELECT 1, 1000000 + 3 * k FROM generate_series(%s, %s) k', i * 150 + 1, i * 150 + 150)
	FROM generate_series(0, 19) i \gexec

-- Runs in their entries: numbers with places, a page of the delta; strings with a level.
CREATE TABLE ent (p int, k int8, v text) PARTITION BY LIST (p);
CREATE TABLE ent1 PARTITION OF ent FOR VALUES IN (1);
CREATE TABLE ent2 PARTITION OF ent FOR VALUES IN (2);
ALTER TABLE ent1 ALTER v SET STORAGE plain;
INSERT INTO ent SELECT 1, (k::int8 * 7919 * 7919) % 1000003 * 1000, repeat('x', 200) FROM generate_series(1, 900) k;
INSERT INTO ent SELECT 2, k, NULL FROM generate_series(5, 10) k;
CREATE INDEX ent_k ON ent USING rangefilter (k);
INSERT INTO ent SELECT 1, 5000000000 + k, NULL FROM generate_series(1, 150) k;
CREATE TABLE ens (p int, k text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE ens1 PARTITION OF ens FOR VALUES IN (1);
CREATE TABLE ens2 PARTITION OF ens FOR VALUES IN (2);
INSERT INTO ens SELECT 1, 'k' || repeat(chr(97 + k % 26), 30) || md5(k::text) FROM generate_series(1, 900) k;
INSERT INTO ens SELECT 2, 'k' || k FROM generate_series(5, 10) k;
CREATE INDEX ens_k ON ens USING rangefilter (k);
INSERT INTO ens SELECT 1, 'x' || repeat(chr(97 + k % 26), 60) || md5(k::text) FROM generate_series(1, 150) k;

CREATE TABLE num_keys AS SELECT k FROM num1 WHERE k IS NOT NULL ORDER BY k % 997, k LIMIT 100;
INSERT INTO num_keys SELECT 5000000000 + k FROM generate_series(1, 1200, 50) k;
CREATE TABLE str_keys AS SELECT k FROM str1 ORDER BY md5(k) LIMIT 60;
INSERT INTO str_keys SELECT k FROM str1 WHERE k LIKE 'x%' ORDER BY md5(k) LIMIT 40;
CREATE TABLE ent_keys AS SELECT k FROM ent1 ORDER BY k % 997, k LIMIT 100;
INSERT INTO ent_keys SELECT 5000000000 + k FROM generate_series(1, 150, 10) k;
CREATE TABLE ens_keys AS SELECT k FROM ens1 ORDER BY md5(k) LIMIT 100;
CREATE TABLE pla_keys AS SELECT DISTINCT k FROM pla1 WHERE k < 40 OR k % 401 = 0;

-- wormhole: dense leaves, leaves of one key, lists of rows, payloads, and a directory of two levels.
CREATE TABLE uni AS SELECT (g * 7)::int8 AS k, g AS v FROM generate_series(1, 2000) g;
CREATE UNIQUE INDEX uni_k ON uni USING wormhole (k);
INSERT INTO uni SELECT g * 7 + 3, g FROM generate_series(100, 130) g;
DELETE FROM uni WHERE k BETWEEN 2100 AND 11200;
CREATE TABLE equ AS SELECT (g % 40)::int8 AS k, g AS v FROM generate_series(1, 3000) g;
CREATE INDEX equ_k ON equ USING wormhole (k);
CREATE TABLE two AS SELECT (g % 2 * 1000)::int8 AS k, g AS v FROM generate_series(1, 6000) g;
CREATE INDEX two_k ON two USING wormhole (k);
CREATE TABLE pay AS SELECT 'https://example.org/' || (g % 7) || '/' || md5(g::text) AS k, g::numeric / 10 AS n, 'v' || g AS v
	FROM generate_series(1, 700) g;
CREATE INDEX pay_k ON pay USING wormhole (k COLLATE "C", n) INCLUDE (v);
CREATE TABLE lon AS SELECT repeat(chr(97 + g % 26), 1000 + g % 5) || g AS k, g AS v FROM generate_series(1, 250) g;
CREATE INDEX lon_k ON lon USING wormhole (k COLLATE "C");
CREATE TABLE ran AS SELECT hashint8extended(g, 3) AS k, g AS v FROM generate_series(1, 3000) g;
CREATE INDEX ran_k ON ran USING wormhole (k);
CREATE TABLE ran_keys AS SELECT k FROM ran ORDER BY v LIMIT 100;
VACUUM uni;
ANALYZE;

SELECT note('num', 'num1_k_idx', 'rangefilter', ARRAY[
	'SELECT count(*) FROM num WHERE k = ' || (SELECT min(k) FROM num1),
	'SELECT count(*) FROM num WHERE k = ' || (SELECT max(k) FROM num1 WHERE k < 5000000000),
	'SELECT count(*) FROM num WHERE k IN (5000000001, 5000000700, 5000001200)',
	'SELECT count(*) FROM num WHERE k = 5000001020',
	'SELECT count(*) FROM num1 WHERE k BETWEEN 500000000 AND 501000000',
	'SELECT count(*) FROM num WHERE k > 600000', 'SELECT count(*) FROM num WHERE k IS NULL',
	'SELECT count(*), sum(t.k) FROM num_keys x JOIN num t USING (k)'],
	ARRAY['SELECT rangefilter_verify(''num1_k_idx'', false)', 'SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain(''num1_k_idx'', k, k)) FROM num_keys',
	'SELECT row(s.*) FROM rangefilter_status(''num1_k_idx'') s'],
	ARRAY['INSERT INTO num VALUES (1, 123), (1, 5000000050), (1, 500000001), (1, 38000)',
	'INSERT INTO num SELECT 1, k * 3 FROM generate_series(7000000000, 7000000700) k',
	'SELECT rangefilter_summarize(''num_k''); INSERT INTO num VALUES (1, 123), (1, 5000000050), (1, 500000001)'],
	'SELECT rangefilter_verify(''num1_k_idx'')');
SELECT note('str', 'str1_k_idx', 'rangefilter', ARRAY[
	'SELECT count(*) FROM str WHERE k = ' || (SELECT quote_literal(min(k)) FROM str1),
	'SELECT count(*) FROM str WHERE k = ' || (SELECT quote_literal(max(k)) FROM str1),
	'SELECT count(*) FROM str WHERE k = ' || (SELECT quote_literal(max(k)) FROM str1 WHERE k < 'l'),
	'SELECT count(*) FROM str WHERE k LIKE ''kaaa%''', 'SELECT count(*) FROM str WHERE k > ''xz''',
	'SELECT count(*) FROM str WHERE k IS NULL', 'SELECT count(*), min(t.k) FROM str_keys x JOIN str t USING (k)'],
	ARRAY['SELECT rangefilter_verify(''str1_k_idx'', false)', 'SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain(''str1_k_idx'', k, k)) FROM str_keys',
	'SELECT row(s.*) FROM rangefilter_status(''str1_k_idx'') s'],
	ARRAY['INSERT INTO str VALUES (1, ''abc''), (1, ''kaaaaaaaaaaa''), (1, ''xzzz'')',
	'INSERT INTO str SELECT 1, ''z'' || repeat(''q'', 50) || k FROM generate_series(1000, 1200) k',
	'SELECT rangefilter_summarize(''str_k''); INSERT INTO str VALUES (1, ''abc''), (1, ''kaaaaaaaaaaa''), (1, ''xzzz'')'],
	'SELECT rangefilter_verify(''str1_k_idx'')');
SELECT note('pla', 'pla1_k_idx', 'rangefilter', ARRAY[
	'SELECT count(*) FROM pla WHERE k = 0', 'SELECT count(*), sum(k) FROM pla WHERE k IN (17, 101, 1000030)',
	'SELECT count(*), sum(k) FROM pla1 WHERE k BETWEEN 500 AND 520', 'SELECT count(*), sum(k) FROM pla1 WHERE k BETWEEN 9000 AND 11000',
	'SELECT count(*), sum(k) FROM pla WHERE k > 1008996', 'SELECT count(*), sum(k) FROM pla1 WHERE k < 40',
	'SELECT count(*), sum(k) FROM pla1 WHERE k BETWEEN 1000003 AND 1000030', 'SELECT count(*) FROM pla1 WHERE k IN (1004500, 1009000)',
	'SELECT count(*), sum(t.k) FROM pla_keys x JOIN pla t USING (k)'],
	ARRAY['SELECT rangefilter_verify(''pla1_k_idx'', false)', 'SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain(''pla1_k_idx'', k, k)) FROM pla_keys',
	'SELECT row(s.*) FROM rangefilter_status(''pla1_k_idx'') s'],
	ARRAY['INSERT INTO pla VALUES (1, 17), (1, 3000017), (1, 2)',
	'SELECT rangefilter_summarize(''pla_k''); INSERT INTO pla VALUES (1, 17), (1, 3000017), (1, 2)'],
	'SELECT rangefilter_verify(''pla1_k_idx'')');
SELECT note('ent', 'ent1_k_idx', 'rangefilter', ARRAY[
	'SELECT count(*) FROM ent WHERE k = ' || (SELECT min(k) FROM ent1),
	'SELECT count(*) FROM ent WHERE k = ' || (SELECT max(k) FROM ent1 WHERE k < 5000000000),
	'SELECT count(*) FROM ent WHERE k IN (5000000001, 5000000150)',
	'SELECT count(*), sum(k) FROM ent1 WHERE k BETWEEN 500000000 AND 501000000',
	'SELECT count(*), sum(k) FROM ent1 WHERE k > 5000000100', 'SELECT count(*) FROM ent WHERE k IS NULL',
	'SELECT count(*), sum(t.k) FROM ent_keys x JOIN ent t USING (k)'],
	ARRAY['SELECT rangefilter_verify(''ent1_k_idx'', false)', 'SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain(''ent1_k_idx'', k, k)) FROM ent_keys',
	'SELECT row(s.*) FROM rangefilter_status(''ent1_k_idx'') s'],
	ARRAY['INSERT INTO ent VALUES (1, 123), (1, 5000000050), (1, 500000001), (1, 38000)',
	'INSERT INTO ent SELECT 1, k * 3 FROM generate_series(7000000000, 7000000700) k',
	'SELECT rangefilter_summarize(''ent_k''); INSERT INTO ent VALUES (1, 123), (1, 5000000050), (1, 500000001)'],
	'SELECT rangefilter_verify(''ent1_k_idx'')');
SELECT note('ens', 'ens1_k_idx', 'rangefilter', ARRAY[
	'SELECT count(*) FROM ens WHERE k = ' || (SELECT quote_literal(min(k)) FROM ens1),
	'SELECT count(*) FROM ens WHERE k = ' || (SELECT quote_literal(max(k)) FROM ens1),
	'SELECT count(*) FROM ens WHERE k = ' || (SELECT quote_literal(max(k)) FROM ens1 WHERE k < 'l'),
	'SELECT count(*) FROM ens WHERE k LIKE ''kaaa%''', 'SELECT count(*) FROM ens WHERE k > ''xz''',
	'SELECT count(*), min(t.k) FROM ens_keys x JOIN ens t USING (k)'],
	ARRAY['SELECT rangefilter_verify(''ens1_k_idx'', false)', 'SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain(''ens1_k_idx'', k, k)) FROM ens_keys',
	'SELECT row(s.*) FROM rangefilter_status(''ens1_k_idx'') s'],
	ARRAY['INSERT INTO ens VALUES (1, ''abc''), (1, ''kaaaaaaaaaaa''), (1, ''xzzz'')',
	'INSERT INTO ens SELECT 1, ''z'' || repeat(''q'', 50) || k FROM generate_series(1000, 1200) k',
	'SELECT rangefilter_summarize(''ens_k''); INSERT INTO ens VALUES (1, ''abc''), (1, ''kaaaaaaaaaaa''), (1, ''xzzz'')'],
	'SELECT rangefilter_verify(''ens1_k_idx'')');
SELECT note('uni', 'uni_k', 'wormhole', ARRAY[
	'SELECT count(*), sum(k), sum(v) FROM (SELECT k, v FROM uni ORDER BY k) x',
	'SELECT count(*), sum(k) FROM (SELECT k FROM uni WHERE k > 1000 ORDER BY k DESC) x',
	'SELECT count(*), sum(k) FROM uni WHERE k IN (7, 14, 703, 704, 2093, 11207, 13993, 14000)', 'SELECT count(k) FROM uni WHERE k BETWEEN 1500 AND 12000',
	'SELECT count(*) FROM (SELECT g FROM generate_series(7, 14000, 70) g, LATERAL (SELECT v FROM uni WHERE k = g OFFSET 0) x) y'],
	ARRAY['SELECT wormhole_check(''uni_k'')', 'SELECT row(s.*) FROM wormhole_status(''uni_k'') s'],
	ARRAY['INSERT INTO uni VALUES (1, 1), (21001, 2), (4001, 3), (712, 4)', 'INSERT INTO uni SELECT g, g FROM generate_series(4000, 7000, 2) g',
	'INSERT INTO uni VALUES (-1, 1); DELETE FROM uni WHERE k % 3 = 0'],
	'SELECT wormhole_check(''uni_k'', true)');
SELECT note('ran', 'ran_k', 'wormhole', ARRAY[
	'SELECT count(*), sum(k), sum(v) FROM (SELECT k, v FROM ran ORDER BY k) x',
	'SELECT count(*), sum(k) FROM (SELECT k FROM ran WHERE k > 1000 ORDER BY k DESC) x',
	'SELECT count(*), sum(x.k) FROM ran_keys x, LATERAL (SELECT v FROM ran WHERE k = x.k OFFSET 0) y'],
	ARRAY['SELECT wormhole_check(''ran_k'')', 'SELECT row(s.*) FROM wormhole_status(''ran_k'') s'],
	ARRAY['INSERT INTO ran SELECT k, 1 FROM ran_keys', 'INSERT INTO ran SELECT hashint8extended(g, 4), g FROM generate_series(1, 700) g'],
	'SELECT wormhole_check(''ran_k'', true)');
SELECT note('equ', 'equ_k', 'wormhole', ARRAY[
	'SELECT count(*), sum(k), sum(v) FROM (SELECT k, v FROM equ ORDER BY k) x',
	'SELECT count(*), sum(k) FROM (SELECT k FROM equ WHERE k > 10 ORDER BY k DESC) x',
	'SELECT count(*), sum(k) FROM equ WHERE k IN (0, 7, 39)', 'SELECT sum(v) FROM equ WHERE k = 15'],
	ARRAY['SELECT wormhole_check(''equ_k'')', 'SELECT row(s.*) FROM wormhole_status(''equ_k'') s'],
	ARRAY['INSERT INTO equ VALUES (1, 1), (39, 2), (0, 3), (20, 4)', 'INSERT INTO equ SELECT 5, g FROM generate_series(1, 1500) g'],
	'SELECT wormhole_check(''equ_k'', true)');
SELECT note('two', 'two_k', 'wormhole', ARRAY[
	'SELECT count(*), sum(k), sum(v) FROM (SELECT k, v FROM two ORDER BY k) x',
	'SELECT count(*), sum(k) FROM (SELECT k FROM two WHERE k > -10 ORDER BY k DESC) x',
	'SELECT count(*), sum(k) FROM two WHERE k IN (0, 7, 1000)', 'SELECT sum(v) FROM two WHERE k = 0'],
	ARRAY['SELECT wormhole_check(''two_k'')', 'SELECT row(s.*) FROM wormhole_status(''two_k'') s'],
	ARRAY['INSERT INTO two VALUES (1, 1), (0, 2), (1000, 3), (2000, 4)', 'INSERT INTO two SELECT g % 3 * 500, g FROM generate_series(1, 1500) g'],
	'SELECT wormhole_check(''two_k'', true)');
SELECT note('pay', 'pay_k', 'wormhole', ARRAY[
	'SELECT count(*), min(k), sum(n), min(v) FROM (SELECT k, n, v FROM pay ORDER BY k COLLATE "C") x',
	'SELECT count(*), max(k) FROM (SELECT k FROM pay WHERE k COLLATE "C" > ''https://example.org/3'' ORDER BY k COLLATE "C" DESC) x',
	'SELECT count(v) FROM pay WHERE k COLLATE "C" BETWEEN ''https://example.org/3/a'' AND ''https://example.org/3/d'''],
	ARRAY['SELECT wormhole_check(''pay_k'')', 'SELECT row(s.*) FROM wormhole_status(''pay_k'') s'],
	ARRAY['INSERT INTO pay VALUES (''https://example.org/3/b'', 1, 2), (''a'', 1, 2), (''z'', 4, 5)',
	'INSERT INTO pay SELECT ''https://example.org/3/b'' || g, g, g FROM generate_series(1, 200) g'],
	'SELECT wormhole_check(''pay_k'', true)');
SELECT note('lon', 'lon_k', 'wormhole', ARRAY[
	'SELECT count(*), min(k), sum(v) FROM (SELECT k, v FROM lon ORDER BY k COLLATE "C") x',
	'SELECT count(*), max(k) FROM (SELECT k FROM lon WHERE k COLLATE "C" > ''c'' ORDER BY k COLLATE "C" DESC) x',
	'SELECT sum(v) FROM lon WHERE k COLLATE "C" BETWEEN ''c'' AND ''eee'''],
	ARRAY['SELECT wormhole_check(''lon_k'')', 'SELECT row(s.*) FROM wormhole_status(''lon_k'') s'],
	ARRAY['INSERT INTO lon VALUES (''ccccc'', 1), (''a'', 2), (''z'', 4)', 'INSERT INTO lon SELECT repeat(''d'', 1000) || g, g FROM generate_series(1, 40) g'],
	'SELECT wormhole_check(''lon_k'', true)');
});

# Every kind of page is there, and runs without a page.
is($node->safe_psql('postgres', q{SELECT string_agg(get_byte(bytes, 346) + 256 * get_byte(bytes, 347) || '', ' ' ORDER BY name) FROM page WHERE block = 0 AND name IN ('ent', 'ens', 'num', 'pla')}),
	'4968 5000 0 0', 'runs in their entries');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT get_byte(bytes, 36)::text, ' ') FROM page JOIN subject USING (name) WHERE method = 'rangefilter'}),
	'1 2 3', 'metapages, runs, pages of the delta');
is($node->safe_psql('postgres', q{SELECT sum(levels) > 1 FROM unnest('{num1_k_idx,str1_k_idx,pla1_k_idx}'::regclass[]) i, rangefilter_status(i)}), 't', 'levels');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT get_byte(bytes, 60) || '.' || (get_byte(bytes, 58) & 3), ' ') FROM page JOIN subject USING (name) WHERE method = 'wormhole'}),
	'0.0 0.1 0.2 1.0 2.0', 'leaves, metapages, deleted pages, directories');

# The fields of each page: headers, the metapage, the first slots.  Of the rest the last bytes
# are taken, and some in between.
my %fields = (
	rangefilter => 'at < CASE block WHEN 0 THEN get_byte(bytes, 12) + 256 * get_byte(bytes, 13) ELSE 72 END',
	wormhole => 'at < 160 OR at BETWEEN get_byte(bytes, 54) + 256 * get_byte(bytes, 55) AND get_byte(bytes, 54) + 256 * get_byte(bytes, 55) + 40');

# The fixed fields, offset and length: of page headers and frames; of metapages, the first
# delta slot and the first segment; of wormhole's page headers and metapage.
my @frame = ('12:2', '14:2', '16:2', '24:8', '32:4', '36:1', '37:1', '38:2');
my @meta = ((map { my ($at, $n) = split /:/; ($at + 40) . ":$n" } '0:4', '4:2', '6:2', '8:8', '24:4', '28:4', '32:4', '36:4',
		'40:4', '44:4', '48:4', '52:2', '56:2', '58:2', '60:2', '62:2', '64:4', '68:4', '72:4', '76:4', '80:4', '168:4', '200:8', '208:8', '216:4', '220:4'),
	(map { my ($at, $n) = split /:/; ($at + 264) . ":$n" } '0:4', '4:1', '5:1', '6:2', '8:4', '12:4', '16:4', '20:4', '24:4', '28:2',
		'30:2', '32:8', '40:8', '48:8', '56:8', '64:4', '68:4', '72:8', '80:2', '82:2', '84:4'));
my @header = ('12:2', '14:2', '16:2', '24:8', '32:4', '36:4', '40:4', '44:4', '48:2', '50:2', '52:2', '54:2', '56:2', '58:2', '60:1',
	'61:1', '62:2');
my @wormhole_meta = ('64:4', '68:2', '70:2', '72:4', '76:4', '80:2');
my %fixed = (
	rangefilter => "place = ANY ('{@{[ join ',', @frame ]}}') OR block = 0 AND place = ANY ('{@{[ join ',', @meta ]}}')",
	wormhole => "(block IN (0, 1, 2) OR get_byte(bytes, 60) > 0) AND place = ANY ('{@{[ join ',', @header ]}}') "
	  . "OR block = 0 AND place = ANY ('{@{[ join ',', @wormhole_meta ]}}') "
	  . 'OR get_byte(bytes, 58) >= 128 AND n = 1 AND at - get_byte(bytes, 54) - 256 * get_byte(bytes, 55) IN (-2, -1)');

# Lengths in dense leaves that cannot be others.
my %lengths = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', q{SELECT name || '|' || block || '|' || get_byte(bytes, 54) + 256 * get_byte(bytes, 55) - n || '|1'
	FROM page, generate_series(1, 2) n WHERE name IN ('ran', 'two') AND get_byte(bytes, 58) >= 128 AND get_byte(bytes, 60) = 0});

cmp_ok(scalar(grep { /^ran/ } keys %lengths), '>', 5, 'there are dense leaves');
cmp_ok($node->safe_psql('postgres', q{SELECT count(*) FROM page WHERE name = 'two' AND get_byte(bytes, 59) = 1}), '>', 2, 'there are leaves of one key');

# Fields that stay possible, so that queries may miss rows: of a metapage of rangefilter the
# flags, the lowest block of new keys and the numbers of delta pages; of its first segment
# flags and imprecise ranges; of a page of wormhole the lengths of its bounds, which a zero may
# follow; and all contents behind the fixed fields.
sub is_plausible
{
	my ($method, $block, $at, $n) = @_;
	my @places = $block > 0 ? [ 40, 8191 ] : ([ 68, 71 ], [ 84, 87 ], [ 96, 99 ], [ 269, 269 ], [ 336, 343 ], [ 352, 8191 ]);

	return $block > 0 && ($at + $n > 64 || ($at <= 53 && $at + $n > 50)) if $method eq 'wormhole';
	return scalar(grep { $at <= $_->[1] && $at + $n > $_->[0] } @places);
}

foreach my $name ('num', 'str', 'pla', 'ent', 'ens', 'uni', 'ran', 'two', 'equ', 'pay', 'lon')
{
	my $method = $node->safe_psql('postgres', "SELECT method FROM subject WHERE name = '$name'");
	my ($all, $step) = $cases eq 'all' ? (1, 64) : (0, 512);
	my ($fields, $values) = $all ? ('ALL', 'ALL') : (2 * $cases, $cases);
	my @list = split /\n/, $node->safe_psql(
		'postgres', qq{
SELECT FROM setseed(@{[ $seed % 1000 / 1000 ]}) \\g /dev/null
SELECT concat_ws(',', block, at, encode(bad, 'hex')) FROM (
	SELECT block, at, bad_values(substr(bytes, at + 1, n)) AS bad
	FROM (SELECT * FROM page, unnest('{1,2,4,8}'::int[]) n, generate_series(12, 8191) at
		WHERE name = '$name' AND at % n = 0 AND at + n <= 8192
		AND ($fields{$method} OR at >= 8128 OR at % $step < n)
		ORDER BY random() LIMIT $fields) f) c
ORDER BY random() LIMIT $values});
	push @list, split /\n/, $node->safe_psql(
		'postgres', qq{
SELECT concat_ws(',', block, at, encode(bad_values(substr(bytes, at + 1, n)), 'hex'))
FROM page, unnest('{1,2,4,8}'::int[]) n, generate_series(12, 400) at, LATERAL (SELECT at || ':' || n AS place) p
WHERE name = '$name' AND ($fixed{$method})}) if $name =~ /num|str|pla|ent|ens|uni|ran|two/;
	# The first record of a leaf is a gap, and marked dead: nothing to remove.  The first case writes.
	unshift @list, '5,8188,ef' if $name eq 'uni';
	# An entry is marked dead, and its row is behind the table's last block.
	unshift @list, '5,8160,abd6de0582735ca1' if $name eq 'ran';

	my $script = "SET statement_timeout = '20s'; SET enable_sort = off; SELECT FROM use_indexes(true);\n";
	my $n = 0;

	foreach my $case (@list)
	{
		my ($block, $at, $bytes) = split /,/, $case;

		# Every fourth case writes, too.
		$script .= "SELECT concat_ws('|', $block, $at, @{[ length($bytes) / 2 ]}, '$bytes', noticed, reported, wrong, bad) "
		  . "FROM try('$name', $block, $at, '\\x$bytes', @{[ $n++ % 4 ? 'false' : 'true' ]});\n";
	}
	my ($status, $out, $err) = $node->psql('postgres', $script, on_error_stop => 1, timeout => $all ? undef : 600);
	my @answers = grep { /\|/ } split /\n/, $out;
	my (@unnoticed, @guarded, @bad);

	foreach my $answer (@answers)
	{
		my ($block, $at, $size, $bytes, $noticed, $reported, $wrong, $bad) = split /\|/, $answer;

		push @bad, $answer if $bad;
		push @unnoticed, $answer if $wrong && $reported ne 't';
		push @guarded, $answer if $wrong && ($lengths{"$name|$block|$at|$size"} || !is_plausible($method, $block, $at, $size));
	}
	is("$status " . scalar(@answers), '0 ' . scalar(@list), "seed $seed, $name: an answer for each case") or diag($err);
	is(join("\n", @bad), '', "seed $seed, $name: right answers, or the error of a damaged index");
	is(join("\n", @guarded), '', "seed $seed, $name: no rows are lost to what is impossible");
	is(join("\n", @unnoticed), '', "seed $seed, $name: lost rows are noticed by the check that reads the table");
}

# All indexes at once: what is damaged is named, all others are checked.
is($node->safe_psql('postgres', q{
SELECT rf_damage('num1_k_idx', 1, 24, 'identity'), rf_damage('equ_k', 1, 24, 'identity') \g /dev/null
SELECT string_agg(index || ': ' || regexp_replace(problem, 'block \d+', 'block'), '; ' ORDER BY index::text) || count(checked)
FROM rangefilter_check_database();
SELECT heal(s) FROM subject s WHERE name IN ('num', 'equ') \g /dev/null
}), 'equ_k: index "equ_k" is damaged at block: The page is linked, but not one of its level.; '
	. 'num1_k_idx: index "num1_k_idx" is damaged at block: A page of the run that begins at the block is not what the metapage says.14',
	'rangefilter_check_database() names damaged indexes and checks the others');
is($node->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE problem IS NULL) FROM rangefilter_check_database(true)}), '16',
	'... and finds nothing where there is nothing');
is($node->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE answer(whole) LIKE 'error%') FROM subject}), '0', 'all is as before');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no crash');
$node->stop;
done_testing();
