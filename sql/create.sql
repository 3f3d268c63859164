--
-- CREATE INDEX: forms, options, what is refused
--
CREATE SCHEMA rf_create;
SET search_path = rf_create, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/versions.sql
\set ECHO none
\i :helpers
\set ECHO all

-- What a summary says of itself, without what depends on page sizes.
CREATE FUNCTION status(index regclass, OUT filter text, OUT rows bigint,
	OUT keys bigint, OUT min text, OUT max text, OUT nulls boolean,
	OUT summarized boolean)
RETURNS SETOF record LANGUAGE sql AS
$$
	SELECT filter, rows, keys, min, max, has_nulls,
		summarized_blocks = heap_blocks AND NOT tail_open
	FROM rangefilter_status(index)
$$;

--
-- Plain tables
--
CREATE TABLE t (a int, b text COLLATE "C", c numeric, d date)
	WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g, 'row ' || g, g / 10.0, date '2024-01-01' + g
	FROM generate_series(1, 500) g;
INSERT INTO t VALUES (NULL, NULL, NULL, NULL);
CREATE INDEX t_a ON t USING rangefilter (a);
CREATE INDEX ON t USING rangefilter (b);
CREATE INDEX t_c ON t USING rangefilter (c numeric_ops);
CREATE INDEX IF NOT EXISTS t_c ON t USING rangefilter (c);
CREATE INDEX CONCURRENTLY t_d ON t USING rangefilter (d);
\d t
SELECT i, s.* FROM (VALUES ('t_a'), ('t_b_idx'), ('t_c'), ('t_d')) v (i),
	status(i::regclass) s;
SELECT rangefilter_verify('t_a'), rangefilter_verify('t_b_idx'),
	rangefilter_verify('t_c'), rangefilter_verify('t_d');
-- Exact bounds, on both sides.
SELECT k, rangefilter_may_contain('t_a', k, k) FROM (VALUES (0), (1), (500), (501)) v (k);

-- Empty, and NULL alone.
CREATE TABLE empty (a int);
CREATE INDEX ON empty USING rangefilter (a);
CREATE TABLE nulls (a int);
INSERT INTO nulls SELECT NULL FROM generate_series(1, 100);
CREATE INDEX ON nulls USING rangefilter (a);
SELECT i, s.* FROM (VALUES ('empty_a_idx'), ('nulls_a_idx')) v (i),
	status(i::regclass) s;
SELECT rangefilter_may_contain('empty_a_idx', NULL::int, NULL),
	rangefilter_may_contain('nulls_a_idx', NULL::int, NULL);

-- Expressions and predicates.
CREATE INDEX t_lower ON t USING rangefilter (lower(b));
CREATE INDEX t_part ON t USING rangefilter (a) WHERE a > 400;
CREATE INDEX t_both ON t USING rangefilter ((a * 2)) WHERE b LIKE 'row 1%';
SELECT i, s.* FROM (VALUES ('t_lower'), ('t_part'), ('t_both')) v (i),
	status(i::regclass) s;
SELECT rangefilter_verify('t_lower'), rangefilter_verify('t_part'),
	rangefilter_verify('t_both');
SELECT k, rangefilter_may_contain('t_part', k, k) FROM (VALUES (400), (401)) v (k);
-- An expression that fails for a row fails the build, and nothing is left.
CREATE INDEX t_fails ON t USING rangefilter ((1 / (a - 77)));
SELECT to_regclass('t_fails');

-- A row version that is not alive fails nothing.  As long as somebody may see it the index says nothing.
CREATE FUNCTION inverse(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 10 / x; END';
CREATE FUNCTION inverse_sql(x int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT sum(10 / x)::int';
CREATE TABLE mended (x int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO mended VALUES (0), (2), (5), (0);
BEGIN;
UPDATE mended SET x = 1 WHERE x = 0;
SAVEPOINT s;
INSERT INTO mended VALUES (0);
ROLLBACK TO s;
INSERT INTO mended VALUES (0);
DELETE FROM mended WHERE x = 0;
CREATE INDEX mended_div ON mended USING rangefilter ((10 / x)) WITH (autosummarize = off);
CREATE INDEX mended_where ON mended USING rangefilter (x) WHERE 10 / x > 3;
CREATE INDEX mended_both ON mended USING rangefilter (inverse(x), x) WHERE 10 / x > 3;
CREATE INDEX mended_sql ON mended USING rangefilter (inverse_sql(x));
CREATE INDEX mended_x ON mended USING rangefilter (x);
SELECT s.index, s.rows, s.tail_open FROM unnest('{mended_div,mended_where,mended_both,mended_sql,mended_x}'::regclass[]) i, rangefilter_status(i) s;
INSERT INTO mended VALUES (3);
COMMIT;
SELECT rangefilter_may_contain('mended_div', 77, 77), rangefilter_verify('mended_div'), rangefilter_verify('mended_both'), rangefilter_verify('mended_sql');
SET enable_seqscan = off;
SELECT x FROM mended WHERE 10 / x = 3;
RESET enable_seqscan;
VACUUM mended;
SELECT s.index, s.rows, s.tail_open FROM unnest('{mended_div,mended_where,mended_both,mended_sql,mended_x}'::regclass[]) i, rangefilter_status(i) s;
SELECT rangefilter_may_contain('mended_div', 77, 77), rangefilter_may_contain('mended_div', 3, 3);
-- Nobody ever sees a row whose insert has failed.
INSERT INTO mended VALUES (0);
REINDEX INDEX mended_div;
SELECT rows, tail_open FROM rangefilter_status('mended_div');
-- One that is alive fails the build, even if it is of the same transaction.
DROP INDEX mended_div, mended_where, mended_both, mended_sql;
BEGIN;
INSERT INTO mended VALUES (0);
CREATE INDEX ON mended USING rangefilter ((10 / x));
ROLLBACK;
INSERT INTO mended VALUES (0);
CREATE INDEX ON mended USING rangefilter ((10 / x));
CREATE INDEX ON mended USING rangefilter (x) WHERE 10 / x > 3;
DROP TABLE mended;
DROP FUNCTION inverse, inverse_sql;

--
-- Options
--
CREATE INDEX t_opt ON t USING rangefilter (a)
	WITH (filter = surf, bits_per_key = 20, suffix = mixed);
SELECT pg_get_indexdef('t_opt'::regclass);
SELECT s.* FROM status('t_opt') s;
ALTER INDEX t_opt SET (filter = auto, bits_per_key = 4);
ALTER INDEX t_opt RESET (suffix);
SELECT reloptions FROM pg_class WHERE oid = 't_opt'::regclass;
-- They count from the next summary on.
SELECT filter FROM status('t_opt') s;
REINDEX INDEX t_opt;
SELECT filter IN ('snarf', 'exact') AS number_filter FROM status('t_opt') s;
DROP INDEX t_opt;

CREATE INDEX t_opt ON t USING rangefilter (b) WITH (filter = 'SURF', suffix = None);
DROP INDEX t_opt;
CREATE INDEX ON t USING rangefilter (a) WITH (filter = bloom);
CREATE INDEX ON t USING rangefilter (a) WITH (filter = '');
CREATE INDEX ON t USING rangefilter (a) WITH (suffix = fake);
CREATE INDEX ON t USING rangefilter (a) WITH (bits_per_key = 3);
CREATE INDEX ON t USING rangefilter (a) WITH (bits_per_key = 65);
CREATE INDEX ON t USING rangefilter (a) WITH (bits_per_key = many);
CREATE INDEX ON t USING rangefilter (a) WITH (pages_per_range = -2);
CREATE INDEX ON t USING rangefilter (a) WITH (fillfactor = 50);
ALTER INDEX t_a SET (bits_per_key = 99999999999);
-- Strings are no numbers.
CREATE INDEX ON t USING rangefilter (b) WITH (filter = snarf);
CREATE INDEX ON t USING rangefilter (c) WITH (filter = snarf);

--
-- Other things it is not made for
--
CREATE INDEX ON t USING rangefilter (a, d, a, d, a, d, a, d, a);
CREATE UNIQUE INDEX ON t USING rangefilter (a);
CREATE INDEX ON t USING rangefilter (a) INCLUDE (d);
SELECT refused($$CREATE INDEX ON t USING rangefilter (a DESC)$$);
SELECT refused($$CREATE INDEX ON t USING rangefilter (a NULLS FIRST)$$);
CREATE INDEX ON t USING rangefilter (a text_ops);
CREATE INDEX ON t USING rangefilter (a int8_ops);
SELECT refused($$CREATE INDEX ON t USING rangefilter (a COLLATE "C")$$);
CREATE INDEX ON t USING rangefilter (ctid);
ALTER TABLE t ADD EXCLUDE USING rangefilter (a WITH =);
CREATE VIEW v AS SELECT * FROM t;
CREATE INDEX ON v USING rangefilter (a);

-- Types without an operator class.
CREATE TYPE pair AS (x int, y int);
CREATE TABLE odd (j json, jb jsonb, pt point, r int4range, arr int[],
	p pair, bits bit(8), t tid, x xid, ts tsvector, "char" "char", l pg_lsn);
DO $$
DECLARE
	col name;
BEGIN
	FOR col IN SELECT attname FROM pg_attribute
		WHERE attrelid = 'odd'::regclass AND attnum > 0 ORDER BY attnum
	LOOP
		BEGIN
			EXECUTE format('CREATE INDEX ON odd USING rangefilter (%I)', col);
			RAISE NOTICE '%: made', col;
		EXCEPTION WHEN undefined_object THEN
			RAISE NOTICE '%', sqlerrm;
		END;
	END LOOP;
END
$$;

-- Domains are what they are made from.
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN word AS text COLLATE "C" CHECK (value !~ ' ');
CREATE TABLE domains (p positive, w word);
CREATE INDEX ON domains USING rangefilter (p);
CREATE INDEX ON domains USING rangefilter (w);
INSERT INTO domains VALUES (1, 'one'), (2, 'two');
SELECT rangefilter_summarize('domains_p_idx'), rangefilter_summarize('domains_w_idx');
SELECT i, s.* FROM (VALUES ('domains_p_idx'), ('domains_w_idx')) v (i),
	status(i::regclass) s;
SELECT rangefilter_may_contain('domains_p_idx', 2::positive, 2::positive),
	rangefilter_may_contain('domains_p_idx', 3::positive, NULL),
	rangefilter_may_contain('domains_w_idx', 'two'::word, 'two'::word),
	rangefilter_may_contain('domains_w_idx', 'twp'::word, NULL);

-- An operator class for a type that has no encoding.
CREATE OPERATOR CLASS pg_lsn_ops DEFAULT FOR TYPE pg_lsn USING rangefilter AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;
CREATE INDEX ON odd USING rangefilter (l);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'pg_lsn_ops'
	AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'rangefilter');
-- A partitioned index of it that no partition has skips nothing.
CREATE TABLE lsns (part int, l pg_lsn) PARTITION BY LIST (part);
CREATE TABLE lsns1 PARTITION OF lsns FOR VALUES IN (1);
CREATE INDEX lsns_l ON lsns USING rangefilter (l);
CREATE INDEX lsns_l ON ONLY lsns USING rangefilter (l);
EXPLAIN (COSTS OFF) SELECT * FROM lsns WHERE l = '0/1';
DROP TABLE lsns;
DROP OPERATOR FAMILY pg_lsn_ops USING rangefilter;
-- One with a strategy that there is not.
CREATE OPERATOR CLASS six_ops FOR TYPE int4 USING rangefilter AS OPERATOR 6 <>;
CREATE OPERATOR CLASS order_ops FOR TYPE int4 USING rangefilter AS
	OPERATOR 1 - FOR ORDER BY integer_ops;
-- Classes with operators by which keys do not sort.
CREATE OPERATOR CLASS int4_down_ops FOR TYPE int4 USING rangefilter AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <;
CREATE OPERATOR CLASS text_pattern_ops FOR TYPE text USING wormhole AS
	OPERATOR 1 ~<~, OPERATOR 2 ~<=~, OPERATOR 3 =, OPERATOR 4 ~>=~, OPERATOR 5 ~>~;
CREATE TABLE sorted (a int, b text);
CREATE INDEX ON sorted USING rangefilter (a int4_down_ops);
CREATE INDEX ON sorted USING wormhole (b text_pattern_ops);
SELECT opcname, amvalidate(oid) FROM pg_opclass
WHERE opcmethod IN (SELECT oid FROM pg_am WHERE amname IN ('rangefilter', 'wormhole'))
	AND opcname IN ('int4_down_ops', 'text_pattern_ops') ORDER BY 1;
DROP TABLE sorted;
DROP OPERATOR FAMILY int4_down_ops USING rangefilter;
DROP OPERATOR FAMILY text_pattern_ops USING wormhole;
-- All that come with the extension are right.
SELECT count(*) > 20 AS enough, bool_and(amvalidate(oid)) AS all_valid
FROM pg_opclass
WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'rangefilter');

--
-- Kinds of tables
--
CREATE TEMP TABLE temp_t (a int) ON COMMIT DELETE ROWS;
CREATE INDEX ON temp_t USING rangefilter (a);
BEGIN;
INSERT INTO temp_t SELECT generate_series(1, 10);
SELECT s.* FROM status('temp_t_a_idx') s;
SELECT rangefilter_summarize('temp_t_a_idx'), rangefilter_verify('temp_t_a_idx');
SELECT rangefilter_may_contain('temp_t_a_idx', 10, 11), rangefilter_may_contain('temp_t_a_idx', 11, 11);
COMMIT;
SELECT rangefilter_may_contain('temp_t_a_idx', 10, 11);
INSERT INTO temp_t VALUES (7);
SELECT rangefilter_verify('temp_t_a_idx');

CREATE UNLOGGED TABLE unlogged_t (a int);
INSERT INTO unlogged_t SELECT generate_series(1, 10);
CREATE INDEX ON unlogged_t USING rangefilter (a);
INSERT INTO unlogged_t VALUES (20);
SELECT rangefilter_verify('unlogged_t_a_idx');
ALTER TABLE unlogged_t SET LOGGED;
SELECT s.* FROM status('unlogged_t_a_idx') s;
ALTER TABLE unlogged_t SET UNLOGGED;
SELECT rangefilter_verify('unlogged_t_a_idx'),
	rangefilter_may_contain('unlogged_t_a_idx', 11, 19),
	rangefilter_may_contain('unlogged_t_a_idx', 20, 20);

CREATE MATERIALIZED VIEW mv AS SELECT a FROM t WHERE a <= 10;
CREATE INDEX ON mv USING rangefilter (a);
CREATE UNIQUE INDEX ON mv (a);
SELECT s.* FROM status('mv_a_idx') s;
DELETE FROM t WHERE a = 10;
REFRESH MATERIALIZED VIEW mv;
SELECT s.* FROM status('mv_a_idx') s;
INSERT INTO t (a) VALUES (-5);
REFRESH MATERIALIZED VIEW CONCURRENTLY mv;
SELECT rangefilter_verify('mv_a_idx'), rangefilter_may_contain('mv_a_idx', -5, -5),
	rangefilter_may_contain('mv_a_idx', -4, 0);
DROP MATERIALIZED VIEW mv;
DROP VIEW v;

--
-- What happens to the table's definition
--
ALTER TABLE t ALTER a TYPE bigint;
SELECT i, s.* FROM (VALUES ('t_a'), ('t_part'), ('t_both')) v (i), status(i::regclass) s;
SELECT rangefilter_verify('t_a'), rangefilter_verify('t_part'), rangefilter_verify('t_both');
-- The expression and the predicate have no meaning for text.
SELECT refused($$ALTER TABLE t ALTER a TYPE text COLLATE "C"$$);
DROP INDEX t_both, t_part;
ALTER TABLE t ALTER a TYPE text COLLATE "C";
SELECT s.* FROM status('t_a') s;
SELECT rangefilter_verify('t_a');
-- To a type it cannot have.
ALTER TABLE t ALTER a TYPE json USING to_json(a);
ALTER TABLE t RENAME a TO aa;
ALTER TABLE t ALTER aa TYPE int USING aa::int;
SELECT s.* FROM status('t_a') s;
ALTER INDEX t_a RENAME TO t_aa;
SELECT rangefilter_verify('t_aa');
-- A column that is not in the tuples.
ALTER TABLE t ADD later int DEFAULT 42;
CREATE INDEX t_later ON t USING rangefilter (later);
SELECT keys, min, max FROM status('t_later') s;
SELECT rangefilter_verify('t_later');
ALTER TABLE t DROP aa;
SELECT to_regclass('t_aa'), to_regclass('t_d');
SELECT rangefilter_verify('t_d');

-- A partial index does not tell how many rows the table has.
CREATE TABLE counted AS SELECT g AS k FROM generate_series(1, 1000) g;
VACUUM counted;
CREATE INDEX ON counted USING rangefilter (k) WHERE k > 900;
SELECT reltuples FROM pg_class WHERE oid = 'counted'::regclass;

DROP INDEX CONCURRENTLY t_d;
SET client_min_messages = warning;
DROP SCHEMA rf_create CASCADE;
