--
-- A type with operators of its own, for which the operator class of another one is taken.
--
SELECT count(*) = 0 AS missing FROM pg_available_extensions WHERE name = 'citext' \gset
\if :missing
\quit
\endif
CREATE SCHEMA rf_citext;
SET search_path = rf_citext, public;
CREATE EXTENSION citext SCHEMA pg_catalog;
CREATE TABLE folded (p int, c citext, d citext) PARTITION BY LIST (p);
CREATE TABLE folded_1 PARTITION OF folded FOR VALUES IN (1);
CREATE TABLE folded_2 PARTITION OF folded FOR VALUES IN (2);
INSERT INTO folded VALUES (1, 'One'), (2, 'Two');
CREATE INDEX ON folded USING rangefilter (c COLLATE "C");
-- Under a collation in which bytes have no order, too, that is all that is said.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/libc_collation.sql
\set ECHO none
\i :helpers
\set ECHO all
CREATE INDEX ON folded USING rangefilter (d COLLATE rf_libc, c COLLATE rf_libc);
EXPLAIN (COSTS OFF) SELECT * FROM folded WHERE c = 'one';
SELECT p FROM folded WHERE c = 'one';
SELECT rangefilter_may_contain('folded_1_c_idx', 'one'::citext, 'one'::citext), rangefilter_may_contain('folded_1_c_idx', 'one'::text, 'one'::text);
CREATE INDEX ON folded USING rangefilter (lower(c::text) COLLATE "C");
SELECT "table" FROM rangefilter_status('folded_lower_idx') WHERE rangefilter_may_contain(index, 'one'::text, 'one'::text);
CREATE INDEX ON folded_1 USING wormhole (d COLLATE "C");
REINDEX TABLE folded_1;
SET client_min_messages = warning;
DROP SCHEMA rf_citext CASCADE;
DROP EXTENSION citext;
