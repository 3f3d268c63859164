--
-- rangefilter_count(): about how many distinct keys are in a range
--
CREATE SCHEMA rf_count;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_count, public;
SET client_min_messages = warning;

CREATE TABLE t (k int, l bigint, b text COLLATE "C", f int) WITH (autovacuum_enabled = off);
-- every key ten times, but l, which is so wide that a SNARF is not exact
INSERT INTO t SELECT g % 1000, hashint8extended(g, 0), 'key ' || to_char(g % 1000, 'FM0000'), g % 1000 FROM generate_series(0, 9999) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_l ON t USING rangefilter (l) WITH (filter = snarf, bits_per_key = 8);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE INDEX t_f ON t USING rangefilter (f) WITH (filter = surf);
SELECT filter, keys FROM rangefilter_status('t_k')
UNION ALL SELECT filter, keys FROM rangefilter_status('t_l')
UNION ALL SELECT filter, keys FROM rangefilter_status('t_b')
UNION ALL SELECT filter, keys FROM rangefilter_status('t_f');

-- an exact filter
SELECT lo, hi, rangefilter_count('t_k', lo, hi)
FROM (VALUES (0, 999), (1, 998), (5, 5), (100, 199), (-5, -1), (-5, 0), (999, 2000), (1000, NULL),
	(NULL, -1), (NULL, 0), (NULL, 499), (500, NULL), (NULL, NULL), (20, 10)) v (lo, hi);
-- A SuRF counts at most one key too many at either end.
SELECT count(*) AS wrong FROM generate_series(-10, 1010, 7) lo, generate_series(-10, 1010, 13) hi,
	LATERAL (SELECT greatest(least(hi, 999) - greatest(lo, 0) + 1, 0) AS keys) k
WHERE rangefilter_count('t_f', lo, hi) NOT BETWEEN keys AND keys + 2;
SELECT rangefilter_count('t_b', 'key 0100'::text, 'key 0199') BETWEEN 100 AND 102 AS inside,
	rangefilter_count('t_b', 'key 0500'::text, NULL) BETWEEN 500 AND 502 AS above,
	rangefilter_count('t_b', 'l'::text, NULL) AS outside, rangefilter_count('t_b', NULL::text, NULL) AS everything;
-- A SNARF knows all of its keys, and places them nearly right.
SELECT rangefilter_count('t_l', NULL::bigint, NULL) AS everything, rangefilter_count('t_l', 9223372036854775807, NULL) AS outside,
	abs(rangefilter_count('t_l', -4000000000000000000, 4000000000000000000) -
		(SELECT count(DISTINCT l) FROM t WHERE l BETWEEN -4000000000000000000 AND 4000000000000000000)) <= 20 AS inside;

-- Keys of the delta count once, and those the filter has already not again.
INSERT INTO t (k, l, b, f) VALUES (5, 5, 'key 0005', 5), (2000, 5, 'x', 5), (2000, 5, 'y', 5), (2001, 6, 'z', NULL);
SELECT delta_keys FROM rangefilter_status('t_k');
SELECT rangefilter_count('t_k', 0, 999), rangefilter_count('t_k', 1000, 3000), rangefilter_count('t_k', 2000, 2000),
	rangefilter_count('t_b', 'x'::text, 'y');
-- With too much that is new, what is known is counted.
INSERT INTO t (k) SELECT generate_series(3000, 13000);
SELECT tail_open, rangefilter_count('t_k', 0, 999), rangefilter_count('t_k', 3000, NULL) < 10001 AS less FROM rangefilter_status('t_k');
SELECT rangefilter_summarize('t_k') > 0;
SELECT rangefilter_count('t_k', 0, 999), rangefilter_count('t_k', 3000, NULL);

-- Partitions are added up.
CREATE TABLE p (k int, b text COLLATE "C") PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000) PARTITION BY LIST (b);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN ('a');
CREATE TABLE p2b PARTITION OF p2 FOR VALUES IN ('b');
INSERT INTO p SELECT g, chr(97 + g % 2) FROM generate_series(0, 1999) g;
CREATE INDEX p_k ON p USING rangefilter (k);
CREATE INDEX p_bk ON p USING rangefilter (b, k);
SELECT rangefilter_count('p_k', 900, 1099), rangefilter_count('p1_k_idx', 900, 1099), rangefilter_count('p2_k_idx', 900, 1099),
	rangefilter_count('p_k', NULL::int, NULL);
SELECT rangefilter_count('p_bk', 'a'::text, 'a'), rangefilter_count('p_bk', NULL, 'a'::text);

-- Empty and unlogged tables, NULLs alone
CREATE UNLOGGED TABLE e (k int);
CREATE INDEX e_k ON e USING rangefilter (k);
SELECT rangefilter_count('e_k', 1, 5), rangefilter_count('e_k', NULL::int, NULL);
INSERT INTO e VALUES (NULL), (3);
SELECT rangefilter_count('e_k', 1, 5), rangefilter_count('e_k', NULL::int, NULL);
-- Where nothing can be said: NULL
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'e_k'::regclass;
SELECT rangefilter_count('e_k', 1, 5), rangefilter_count(NULL, 1, 5);
DROP TABLE e;

-- Arguments and privileges are those of rangefilter_may_contain().
SELECT rangefilter_count('t_k', 'ten', 'ten');
SELECT rangefilter_count('t_k', '10', '15'), rangefilter_count('t_k', 10::bigint, 15);
SELECT rangefilter_count('t', 1, 1);
SELECT rangefilter_count('no_such_index', 1, 1);
CREATE ROLE rf_count_reader;
GRANT USAGE ON SCHEMA rf_count TO rf_count_reader;
GRANT SELECT (b) ON t TO rf_count_reader;
SET ROLE rf_count_reader;
SELECT rangefilter_count('t_k', 1, 1);
SELECT rangefilter_count('t_b', NULL, 'a'::text);
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE rf_count_reader;
SELECT rangefilter_count('t_b', NULL, 'a'::text);
RESET ROLE;
DROP SCHEMA rf_count CASCADE;
DROP ROLE rf_count_reader;
