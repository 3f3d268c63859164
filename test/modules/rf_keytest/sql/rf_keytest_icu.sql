-- Keys of strings under collations of ICU: they sort and equate as PostgreSQL
-- does, to the last byte.
--
-- rf_keytest_icu_1.out is for servers built without ICU.
SELECT count(*) = 0 AS skip_test FROM pg_collation
WHERE collprovider = 'i' AND collname LIKE '%-x-icu' \gset
\if :skip_test
\quit
\endif
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS rf_keytest;
CREATE SCHEMA icu_keys;
SET search_path = icu_keys, public;
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/seed.sql
\set ECHO none
\i :helpers
\set ECHO all

-- Locales with orders of their own, and attributes of all kinds but shifted punctuation, accents
-- compared backwards and comparison by code points in the end, for which ICU's keys are not used
CREATE TABLE orders (c name, locale text, deterministic boolean);
INSERT INTO orders VALUES
	('und', 'und', true), ('de', 'de', true), ('phonebook', 'de-u-co-phonebk', true),
	('sv', 'sv', true), ('cs', 'cs', true), ('es', 'es-u-co-trad', true), ('ja', 'ja', true),
	('numeric', 'en-u-kn-true', true),
	('upper', 'und-u-kf-upper', true), ('letters', 'und-u-ks-level1', true),
	('case', 'und-u-ks-level1-kc-true', true),
	('level1', 'und-u-ks-level1', false), ('level2', 'und-u-ks-level2', false),
	('numbers', 'en-u-kn-true', false);
DO $$
DECLARE
	o record;
BEGIN
	FOR o IN SELECT * FROM orders LOOP
		EXECUTE format('CREATE COLLATION %I (provider = icu, locale = %L, deterministic = %s)',
					   o.c, o.locale, o.deterministic::text);
	END LOOP;
END $$;

-- Letters, marks in any order, digits, what is ignored, contractions, code
-- points that are the first and last of their kind or no characters at all
CREATE TABLE pieces AS SELECT unnest(ARRAY['a', 'A', 'b', 'z', 'e', 'o', 'c', 'h', 'l', 'n', 'ä', U&'a\0308', 'å', 'ö', 'ß', 'ss', 'é', 'É', 'ñ', 'č',
		'ch', 'CH', 'll', 'ø', 'æ', 'ı', 'İ', 'i', U&'\0308', U&'\0301', U&'\0327', U&'\0300',
		'0', '1', '2', '9', '10', '007', '٣', '²', '½', ' ', '  ', '-', '_', '.', '''', '%', E'\x01', E'\x7f', E'\t',
		U&'\00ad', U&'\200b', U&'\200d', U&'\feff', U&'\0378', U&'\d7ff', U&'\e000', U&'\fffd', U&'\fffe', U&'\ffff',
		'中', '文', 'か', 'カ', 'が', 'ｶ', 'ー', '한', U&'\1112', U&'\1161', 'я', 'Я', 'ё', 'ﬁ', '😀', U&'\+01d538',
		U&'\+010000', U&'\+0e0001', U&'\+0f0000', U&'\+10fffd', U&'\+10ffff']) AS p;
CREATE FUNCTION piece() RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT p FROM pieces OFFSET floor(random() * (SELECT count(*) FROM pieces))::int LIMIT 1
$$;
CREATE FUNCTION word() RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.03 THEN repeat(piece(), (random() * 600)::int) ELSE '' END ||
		coalesce(string_agg(piece(), ''), '')
	FROM generate_series(1, (random() * random() * 9)::int)
$$;
CREATE TABLE words AS SELECT word() AS v FROM generate_series(1, 180);
INSERT INTO words SELECT v || piece() FROM words ORDER BY random() LIMIT 30;
INSERT INTO words SELECT upper(v) FROM words ORDER BY random() LIMIT 30;
INSERT INTO words SELECT normalize(v, NFD) FROM words ORDER BY random() LIMIT 30;
INSERT INTO words VALUES (''), (' '), ('a'), ('A');
INSERT INTO words SELECT repeat('x', 1500) || p FROM pieces LIMIT 3;
INSERT INTO words SELECT p FROM pieces;

-- Every pair: the order of rows' keys, which are whole, and of single ones, which
-- may be cut, against that of the values
CREATE TABLE result (c name, pairs int, wrong int, wrong_cut int, ties int, shared int);
DO $$
DECLARE
	o record;
BEGIN
	FOR o IN SELECT * FROM orders LOOP
		EXECUTE format($q$
			WITH keys AS MATERIALIZED (SELECT v, rf_row_key(true, 'a', v COLLATE %1$I) AS whole,
									   rf_row_key(true, 'd', v COLLATE %1$I) AS down, rf_key(v COLLATE %1$I) AS cut FROM words),
				 pairs AS (SELECT bttextcmp(l.v COLLATE %1$I, r.v COLLATE %1$I) AS wanted,
						   byteacmp(l.whole, r.whole) AS whole, byteacmp(l.down, r.down) AS down,
						   byteacmp(l.cut, r.cut) AS cut, length(l.cut) = 1000 AND length(r.cut) = 1000 AS shared,
						   l.v = r.v COLLATE "C" AS same
						   FROM keys l, keys r)
			INSERT INTO result SELECT %1$L, count(*),
				count(*) FILTER (WHERE sign(whole) <> sign(wanted) OR sign(down) <> -sign(wanted)),
				count(*) FILTER (WHERE sign(cut) <> sign(wanted) AND NOT (shared AND cut = 0)),
				count(*) FILTER (WHERE wanted = 0 AND NOT same), count(*) FILTER (WHERE shared AND cut = 0 AND wanted <> 0)
			FROM pairs$q$, o.c);
	END LOOP;
END $$;
SELECT c, wrong, wrong_cut, ties > 0 AS ties FROM result JOIN orders USING (c) ORDER BY c COLLATE "C";
SELECT sum(shared) > 0 AS shared FROM result;
SELECT count(*) AS wrong FROM words
WHERE NOT rf_row_reads_back('ad', v COLLATE de, v COLLATE de) OR NOT rf_row_reads_back('da', v COLLATE level1, v COLLATE level1);

-- Comparisons, also between the types: nothing is lost, and with whole keys
-- nothing is too much.  (A name is cut at 63 bytes, a bpchar has no blanks at
-- its end.)
CREATE TABLE compared (c name, l text, r text, strategy int, refused int, lost int, surplus int);
CREATE TABLE few AS SELECT v, v::varchar AS w, v::bpchar AS b, v::name AS n FROM words ORDER BY random() LIMIT 40;
DO $$
DECLARE
	o record;
	op record;
BEGIN
	FOR o IN SELECT * FROM orders LOOP
		FOR op IN SELECT * FROM unnest('{<,<=,=,>=,>}'::text[]) WITH ORDINALITY u(op, strategy),
				  (VALUES ('v', 'v'), ('v', 'w'), ('v', 'n'), ('n', 'v'), ('n', 'n'), ('b', 'b')) t (l, r) LOOP
			EXECUTE format($q$
				INSERT INTO compared SELECT %1$L, %2$L, %3$L, %5$L, count(*) FILTER (WHERE got IS NULL),
					count(*) FILTER (WHERE wanted AND NOT got), count(*) FILTER (WHERE NOT wanted AND got AND NOT shared)
				FROM (SELECT l.%2$I %4$s r.%3$I COLLATE %1$I AS wanted,
							 rf_key_matches(l.%2$I, %5$s, r.%3$I, '%1$I'::regcollation) AS got,
							 length(rf_key(l.%2$I COLLATE %1$I)) = 1000 AS shared
					  FROM few l, few r) s$q$, o.c, op.l, op.r, op.op, op.strategy);
		END LOOP;
	END LOOP;
END $$;
SELECT :seed AS seed, * FROM compared WHERE refused + lost + surplus > 0;

-- How keys are shown
SELECT rf_key_show('Äpfel'::text COLLATE de) AS text, rf_key_show(''::text COLLATE de) AS empty,
	   right(rf_key_show(repeat('x', 600) COLLATE de), 5) AS cut_string,
	   rf_key_show(repeat('x', 2000) COLLATE de) ~ '^\\x[0-9a-f]+\.\.\.$' AS cut_key,
	   left(rf_key_show('Äpfel'::text COLLATE level2), 2) = '\x' AS nondeterministic;

-- A string of a megabyte; one of which the collation ignores nearly all
SELECT length(rf_key(repeat('aé1', 300000) COLLATE de)) AS key;
SELECT length(rf_key(('a' || repeat(U&'\0301', 100000)) COLLATE level1)) < 10 AS short_key;
