--
-- Collations: bytes sort as the C collation does, and equate as all
-- deterministic ones do
--
CREATE SCHEMA rf_collation;
SET search_path = rf_collation, public;

-- Those that are C: ranges work.
CREATE TABLE c (a text COLLATE "C", b text COLLATE "POSIX", u text COLLATE ucs_basic, n name);
INSERT INTO c VALUES ('a', 'a', 'a', 'a'), ('Z', 'Z', 'Z', 'Z'), ('é', 'é', 'é', 'é');
CREATE INDEX ON c USING rangefilter (a);
CREATE INDEX ON c USING rangefilter (b);
CREATE INDEX ON c USING rangefilter (u);
CREATE INDEX ON c USING rangefilter (n);
CREATE INDEX ON c USING rangefilter (upper(a));
SELECT i, rangefilter_may_contain(i::regclass, 'Z'::text, 'Z'::text) AS equal,
	rangefilter_may_contain(i::regclass, 'X'::text, 'Y'::text) AS above_upper,
	rangefilter_may_contain(i::regclass, 'Za'::text, '`'::text) AS between,
	rangefilter_may_contain(i::regclass, 'ê'::text, NULL) AS above
FROM unnest('{c_a_idx,c_b_idx,c_u_idx,c_n_idx}'::text[]) i;

-- One of libc that is not C, whatever it is called here.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/libc_collation.sql
\set ECHO none
\i :helpers
\set ECHO all
CREATE TABLE l (t text COLLATE rf_libc, v varchar(20) COLLATE rf_libc, b char(10) COLLATE rf_libc);
INSERT INTO l VALUES ('a', 'a', 'a'), ('Z', 'Z', 'Z'), ('é', 'é', 'é'), ('', '', '');
CREATE INDEX l_t ON l USING rangefilter (t);
CREATE INDEX l_v ON l USING rangefilter (v);
CREATE INDEX l_b ON l USING rangefilter (b);
-- Equality is served; a range may hold anything.
SELECT rangefilter_may_contain('l_t', 'a', 'a') AS a, rangefilter_may_contain('l_t', 'b', 'b') AS b,
	rangefilter_may_contain('l_t', 'b', 'c') AS range, rangefilter_may_contain('l_t', 'b', NULL) AS up,
	rangefilter_may_contain('l_t', NULL, 'zzz') AS down, rangefilter_may_contain('l_v', 'x', 'x') AS v,
	rangefilter_may_contain('l_b', 'a ', 'a ') AS blank, rangefilter_may_contain('l_b', 'x', 'x') AS b_x;
INSERT INTO l VALUES ('x', 'x', 'x');
SELECT rangefilter_may_contain('l_t', 'x', 'x') AS t, rangefilter_may_contain('l_v', 'x', 'x') AS v,
	rangefilter_may_contain('l_b', 'x', 'x') AS b;
SELECT rangefilter_verify('l_t'), rangefilter_verify('l_v'), rangefilter_verify('l_b');
-- With the collation named on the index all is well.
CREATE INDEX l_tc ON l USING rangefilter (t COLLATE "C");
SELECT rangefilter_may_contain('l_tc', 'b', 'c') AS range, rangefilter_may_contain('l_tc', 'w', 'y') AS x;
-- Said once for all partitions, and only when an index is defined: not when a partition comes.
CREATE TABLE p (k int, t text COLLATE rf_libc) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
CREATE INDEX p_t ON p USING rangefilter (t);
CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3);
CREATE TABLE p4 PARTITION OF p FOR VALUES IN (4) PARTITION BY LIST (k);
CREATE TABLE p4_1 PARTITION OF p4 DEFAULT;
CREATE TABLE p5 (k int, t text COLLATE rf_libc);
ALTER TABLE p ATTACH PARTITION p5 FOR VALUES IN (5);
-- Without partitions it is the first one that tells.
CREATE TABLE q (k int, t text COLLATE rf_libc) PARTITION BY LIST (k);
CREATE INDEX q_t ON q USING rangefilter (t);
CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1) PARTITION BY LIST (k);
CREATE TABLE q1_1 PARTITION OF q1 FOR VALUES IN (1);
CREATE TABLE q2 PARTITION OF q FOR VALUES IN (2);
-- One statement, one notice.
DO $$ BEGIN CREATE INDEX ON l USING rangefilter (t); CREATE INDEX ON l USING rangefilter (v); END $$;
REINDEX INDEX l_t;
TRUNCATE l;
VACUUM FULL l;

SET client_min_messages = warning;
DROP SCHEMA rf_collation CASCADE;
