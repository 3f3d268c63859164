-- A connection's first question to many indexes: their files are found in the
-- catalogs by a scan that passes by what lies between them.
CREATE FUNCTION skips(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN coalesce(
		jsonb_path_query_first(plan, '$.**."Partitions Skipped"')::text || ' of ' ||
		jsonb_path_query_first(plan, '$.**."Partitions Considered"')::text,
		'none');
END
$$;
-- Of the indexes called so: how many have a relation cache entry?
CREATE FUNCTION opened(pattern text) RETURNS bigint LANGUAGE sql AS
$$
	SELECT count(*) FROM pg_backend_memory_contexts
	WHERE name = 'index info' AND ident LIKE pattern
$$;

-- Other tables between the partitions, many here, few there, and partitions
-- made in another order than that of their bounds.
CREATE TABLE sparse (part int, k int, note text) PARTITION BY LIST (part);
CREATE INDEX sparse_k ON sparse USING rangefilter (k);
DO $$
BEGIN
	FOR i IN 1..12 LOOP
		EXECUTE format('CREATE TABLE sparse_%s PARTITION OF sparse FOR VALUES IN (%s)', i, i * 7 % 13);
		FOR j IN 1..i * 3 LOOP
			EXECUTE format('CREATE TABLE between_%s_%s (a int PRIMARY KEY)', i, j);
		END LOOP;
	END LOOP;
END
$$;
INSERT INTO sparse SELECT p, p * 1000 + i FROM generate_series(1, 12) p, generate_series(1, 50) i;
SELECT rangefilter_summarize('sparse_k') > 0 AS done;
\c -
LOAD 'rangefilter';
SELECT skips('SELECT * FROM sparse WHERE k = 5001');
SELECT skips('SELECT * FROM sparse WHERE k BETWEEN 3050 AND 4001');
SELECT part, k FROM sparse WHERE k IN (1001, 12050) ORDER BY k;
-- The planner itself opens the first partition and those that are scanned.
SELECT opened('sparse\_%\_k\_idx') <= 6 AS few;
-- The same for an expression and a condition.
CREATE INDEX sparse_e ON sparse USING rangefilter ((k + 1)) WHERE note IS NULL;
\c -
LOAD 'rangefilter';
SELECT skips('SELECT * FROM sparse WHERE k + 1 = 5002 AND note IS NULL');
SELECT opened('sparse\_%\_expr\_idx') <= 6 AS few;
DROP INDEX sparse_e;

-- What was found so is remembered: the second time only filters are read, one
-- page each, no metapages; where sessions share digests, not these either.
CREATE FUNCTION planning_reads(query text) RETURNS int LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json) ' || query INTO plan;
	RETURN (plan #>> '{0,Planning,Shared Hit Blocks}')::int +
		(plan #>> '{0,Planning,Shared Read Blocks}')::int;
END
$$;
CREATE TABLE mixed (part int, k int) PARTITION BY LIST (part);
DO $$
BEGIN
	FOR p IN 0..39 LOOP
		EXECUTE format('CREATE TABLE mixed_%1$s PARTITION OF mixed FOR VALUES IN (%1$s)', p);
	END LOOP;
END
$$;
INSERT INTO mixed SELECT i % 40, i * 1000 FROM generate_series(0, 4000 - 1) i;
CREATE INDEX mixed_k ON mixed USING rangefilter (k);
\c -
LOAD 'rangefilter';
SELECT skips('SELECT * FROM mixed WHERE k = 2013000');
SELECT CASE WHEN indexes = 0 THEN reads BETWEEN 30 AND 60 ELSE reads < 20 END AS one_each
FROM planning_reads('SELECT * FROM mixed WHERE k = 2013000') reads, rangefilter_shared_cache();
DROP TABLE mixed;
DROP FUNCTION planning_reads;

-- Other catalogs, other ways.
\getenv options PGOPTIONS
\c -reuse-previous=on "options='-c ignore_system_indexes=on'"
SHOW ignore_system_indexes;
LOAD 'rangefilter';
SELECT skips('SELECT * FROM sparse WHERE k = 5001');
SELECT part, k FROM sparse WHERE k = 5001;
\set options 'options=''' :options ''''
\c -reuse-previous=on :options
LOAD 'rangefilter';

-- Of unlogged and temporary partitions the relation cache knows more.
ALTER TABLE sparse_3 SET UNLOGGED;
ALTER TABLE sparse_4 SET TABLESPACE pg_default;
SELECT skips('SELECT * FROM sparse WHERE k = 5001');
SELECT part, k FROM sparse WHERE k = 9001;
CREATE TEMP TABLE passing (part int, k int) PARTITION BY LIST (part);
CREATE TEMP TABLE passing_1 PARTITION OF passing FOR VALUES IN (1);
CREATE TEMP TABLE passing_2 PARTITION OF passing FOR VALUES IN (2);
INSERT INTO passing VALUES (1, 1), (2, 2);
CREATE INDEX ON passing USING rangefilter (k);
SELECT skips('SELECT * FROM passing WHERE k = 2');
SELECT * FROM passing WHERE k = 2;

-- Files in another tablespace.
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_rf_located LOCATION '';
CREATE TABLE elsewhere (part int, k int) PARTITION BY LIST (part);
CREATE TABLE elsewhere_1 PARTITION OF elsewhere FOR VALUES IN (1);
CREATE TABLE elsewhere_2 PARTITION OF elsewhere FOR VALUES IN (2);
CREATE TABLE elsewhere_3 PARTITION OF elsewhere FOR VALUES IN (3);
INSERT INTO elsewhere SELECT p, p * 1000 + i FROM generate_series(1, 3) p, generate_series(1, 50) i;
CREATE INDEX elsewhere_k ON elsewhere USING rangefilter (k);
ALTER INDEX elsewhere_2_k_idx SET TABLESPACE regress_rf_located;
\c -
LOAD 'rangefilter';
SELECT skips('SELECT * FROM elsewhere WHERE k = 2001');
SELECT skips('SELECT * FROM elsewhere WHERE k = 3001');
SELECT part, k FROM elsewhere WHERE k IN (1001, 2001) ORDER BY k;
ALTER INDEX elsewhere_3_k_idx SET TABLESPACE regress_rf_located;
ALTER INDEX elsewhere_2_k_idx SET TABLESPACE pg_default;
SELECT skips('SELECT * FROM elsewhere WHERE k = 2001');
SELECT skips('SELECT * FROM elsewhere WHERE k = 3001');
SELECT part, k FROM elsewhere WHERE k IN (2001, 3001) ORDER BY k;
DROP TABLE elsewhere;
DROP TABLESPACE regress_rf_located;

-- An index that is not valid yet is not asked, and is once it is.
CREATE TABLE parts (part int, k int) PARTITION BY LIST (part);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts VALUES (1, 1), (2, 2);
CREATE INDEX parts_k ON ONLY parts USING rangefilter (k);
CREATE INDEX parts_1_k ON parts_1 USING rangefilter (k);
CREATE INDEX parts_2_k ON parts_2 USING rangefilter (k);
ALTER INDEX parts_k ATTACH PARTITION parts_2_k;
SELECT skips('SELECT * FROM parts WHERE k = 3');
ALTER INDEX parts_k ATTACH PARTITION parts_1_k;
SELECT skips('SELECT * FROM parts WHERE k = 3');
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'parts_2_k'::regclass;
SELECT skips('SELECT * FROM parts WHERE k = 3');
\c -
LOAD 'rangefilter';
SELECT skips('SELECT * FROM parts WHERE k = 3');
UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'parts_2_k'::regclass;
SELECT skips('SELECT * FROM parts WHERE k = 3');
-- A partition's index that is not as the table's, as if its OID had been used again: one of fewer columns, and two of another type.
CREATE TABLE strange (part int, a int, b int, c int, d date, t timestamp, n bigint) PARTITION BY LIST (part);
CREATE TABLE strange1 PARTITION OF strange FOR VALUES IN (1);
CREATE TABLE strange2 PARTITION OF strange FOR VALUES IN (2);
INSERT INTO strange SELECT p, k, k, k, date '2026-01-01' + k, date '2026-01-01' + k, -k
FROM generate_series(1, 2) p, generate_series(1, 500) k;
INSERT INTO strange VALUES (1, 1777, 1778, 1779, '2026-01-02', '2040-01-02', -1777);
CREATE INDEX ON strange USING rangefilter (a, b, c);
CREATE INDEX ON strange USING rangefilter (t);
CREATE INDEX ON strange USING rangefilter (n);
UPDATE pg_index SET indnkeyatts = 2, indkey = '3 4 4' WHERE indexrelid = 'strange1_a_b_c_idx'::regclass;
UPDATE pg_index SET indkey = '5', indclass = (SELECT o.oid::text::oidvector FROM pg_opclass o JOIN pg_am m ON m.oid = opcmethod
	WHERE amname = 'rangefilter' AND opcname = 'date_ops') WHERE indexrelid = 'strange1_t_idx'::regclass;
UPDATE pg_index SET indclass = (SELECT o.oid::text::oidvector FROM pg_opclass o JOIN pg_am m ON m.oid = opcmethod
	WHERE amname = 'rangefilter' AND opcname = 'float8_ops') WHERE indexrelid = 'strange1_n_idx'::regclass;
REINDEX TABLE strange1;
\c -
LOAD 'rangefilter';
SELECT skips('SELECT * FROM strange WHERE a = 1777 AND b = 1778 AND c = 1779');
SELECT b FROM strange WHERE a = 1777 AND b = 1778 AND c = 1779;
SELECT b FROM strange WHERE t = '2040-01-02';
SELECT b FROM strange WHERE n = -1777;
-- A partition's own index of more columns than an index may have is not asked.
CREATE TABLE broad (part int, a int, b int) PARTITION BY LIST (part);
CREATE TABLE broad1 PARTITION OF broad FOR VALUES IN (1);
CREATE TABLE broad2 PARTITION OF broad FOR VALUES IN (2);
INSERT INTO broad SELECT p, k, k FROM generate_series(1, 2) p, generate_series(1, 100) k;
CREATE INDEX broad1_a ON broad1 (a, b, part, a, b, part, a, b, part);
CREATE INDEX broad2_a ON broad2 USING rangefilter (a);
UPDATE pg_index SET indclass = (SELECT string_agg(o.oid::text, ' ')::oidvector FROM pg_opclass o JOIN pg_am m ON m.oid = opcmethod, generate_series(1, 9)
	WHERE amname = 'rangefilter' AND opcname = 'int4_ops') WHERE indexrelid = 'broad1_a'::regclass;
\c -
LOAD 'rangefilter';
SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
SELECT skips('SELECT * FROM broad WHERE a = 300');
SELECT count(*) FROM broad WHERE a = 77;
DROP TABLE sparse, parts, strange, broad;
DO $$
BEGIN
	FOR i IN 1..12 LOOP
		FOR j IN 1..i * 3 LOOP
			EXECUTE format('DROP TABLE between_%s_%s', i, j);
		END LOOP;
	END LOOP;
END
$$;
DROP FUNCTION skips, opened;
