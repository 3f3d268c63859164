-- Partial indexes: what they hold, and that they are asked for any row where a query's
-- clauses imply the predicate.
LOAD 'rangefilter';
SET client_min_messages = warning;
CREATE SCHEMA partial;
SET search_path = partial, public;

-- Runs a query with skipping and without; tells what was skipped.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/skips.sql
\set ECHO none
\i :helpers
\set ECHO all

--
-- Row versions that never met the predicate are not in the index, dead or not; those that did are
--
CREATE TABLE dead (id int, st text) WITH (autovacuum_enabled = off);
INSERT INTO dead SELECT i, CASE WHEN i > 10 THEN 'new' ELSE 'old' END FROM generate_series(1, 13) i;
BEGIN;
INSERT INTO dead VALUES (20, 'new');
ROLLBACK;
UPDATE dead SET id = id + 1000;
UPDATE dead SET st = 'old' WHERE st = 'new';
CREATE INDEX dead_new ON dead USING rangefilter (id) WHERE st = 'new';
CREATE INDEX dead_none ON dead USING rangefilter (id) WHERE st = 'none';
CREATE INDEX dead_length ON dead USING rangefilter (length(st)) WHERE id BETWEEN 1012 AND 1013;
SELECT s.index, s.rows, s.keys FROM unnest('{dead_new,dead_none,dead_length}'::regclass[]) i, rangefilter_status(i) s;
VACUUM dead;
REINDEX TABLE dead;
SELECT s.index, s.rows, s.keys FROM unnest('{dead_new,dead_none,dead_length}'::regclass[]) i, rangefilter_status(i) s;
DROP TABLE dead;

--
-- Any row
--
CREATE TABLE j (day int, id int, s text COLLATE "C", st text, n int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE j%s PARTITION OF j FOR VALUES FROM (%s) TO (%s) WITH (autovacuum_enabled = off)', d, d, d + 1)
FROM generate_series(1, 8) d \gexec
INSERT INTO j SELECT d, 100 * d + i, 's' || i, 'done', i FROM generate_series(1, 8) d, generate_series(1, 20) i;
UPDATE j SET n = n + 1;
UPDATE j SET st = 'new', id = NULL, s = NULL WHERE day = 3 AND n = 5;
UPDATE j SET st = 'new' WHERE day = 5 AND n = 5;
CREATE FUNCTION look() RETURNS TABLE (clause text, skips text) LANGUAGE sql AS
$$
	SELECT q, skips('SELECT * FROM j WHERE ' || q)
	FROM (VALUES ($q$st = 'new'$q$), ($q$'new' = st AND n > 3$q$), ($q$st = 'new' AND id = 505$q$), ($q$st = 'new' AND id = 504$q$),
		($q$st = 'new' AND id IS NULL$q$), ($q$st IN ('new')$q$), ($q$st IN ('new', 'done')$q$), ($q$st = 'new' AND day = 4$q$),
		($q$st = 'new' OR n = 5$q$), ($q$st = 'new' AND (n = 1 OR id = 101)$q$), ($q$st = 'done'$q$), ($q$st <> 'done'$q$),
		($q$st = lower('NEW')$q$), ($q$st = (SELECT 'new')$q$), ($q$upper(st) = 'NEW'$q$), ($q$NOT st <> 'new'$q$), ($q$st = 'new' AND random() < 2$q$)) v (q)
$$;
CREATE INDEX j_new ON j USING rangefilter (id) WHERE st = 'new';
SELECT * FROM look();
SELECT plan_of('SELECT * FROM j WHERE st = ''new'' AND n > 3');
SELECT skips('SELECT count(*) FROM j a, j b WHERE a.st = ''new'' AND b.id = a.id'),
	skips('SELECT * FROM j WHERE EXISTS (SELECT FROM j b WHERE b.st = ''new'' AND b.id = j.id)');
-- Each for itself: another index, another predicate
CREATE INDEX j_s ON j USING rangefilter (s);
CREATE INDEX j_n ON j USING rangefilter (id, n) WHERE n > 20 AND day > 2;
SELECT plan_of('SELECT * FROM j WHERE st = ''new'' AND s = ''s4'' AND n > 20 AND day > 4');
SELECT skips('SELECT * FROM j WHERE n > 20'), skips('SELECT * FROM j WHERE n > 20 AND day > 2'), skips('SELECT * FROM j WHERE n > 30 AND day > 2');
DROP INDEX j_s, j_n, j_new;
-- Several columns, of which NULL is a value like others; an expression
CREATE INDEX j_new ON j USING rangefilter (s, id) WHERE st = 'new';
SELECT * FROM look();
DROP INDEX j_new;
CREATE INDEX j_new ON j USING rangefilter ((id + 1)) WHERE st = 'new';
SELECT * FROM look() LIMIT 3;
DROP INDEX j_new;
-- Indexes of partitions alone, and partitions without one
SELECT format('CREATE INDEX ON j%s USING rangefilter (id) WHERE st = ''new''', d) FROM generate_series(1, 6) d \gexec
CREATE INDEX ON j7 USING rangefilter (id) WHERE st = 'done';
SELECT * FROM look();
DROP INDEX j1_id_idx, j2_id_idx, j3_id_idx, j4_id_idx, j5_id_idx, j6_id_idx, j7_id_idx;

-- Statements that change something, and plans that are kept
CREATE INDEX j_new ON j USING rangefilter (id) WHERE st = 'new';
PREPARE q AS SELECT day, id FROM j WHERE st = 'new' ORDER BY day;
SET plan_cache_mode = force_generic_plan;
EXECUTE q;
UPDATE j SET st = 'new', id = NULL WHERE day = 7 AND n = 7;
EXECUTE q;
UPDATE j SET st = 'new' WHERE day = 1 AND n = 7;
EXECUTE q;
UPDATE j SET st = 'done' WHERE st = 'new' RETURNING day, id;
EXECUTE q;
SELECT rangefilter_summarize('j_new') >= 0;
DEALLOCATE q;
RESET plan_cache_mode;

-- Where rows are hidden nothing tells whether there are any.
CREATE ROLE rf_partial;
GRANT USAGE ON SCHEMA partial TO rf_partial;
GRANT SELECT ON j TO rf_partial;
ALTER TABLE j ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON j USING (n < 3);
SET ROLE rf_partial;
EXPLAIN (COSTS OFF) SELECT * FROM j WHERE st = 'new' AND day > 6;
RESET ROLE;
DROP TABLE j;
DROP OWNED BY rf_partial;
DROP ROLE rf_partial;

-- Digests of many partitions
CREATE TABLE many (day int, id int, st text) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE many%s PARTITION OF many FOR VALUES FROM (%s) TO (%s) WITH (autovacuum_enabled = off)', d, d, d + 1)
FROM generate_series(1, 70) d \gexec
INSERT INTO many SELECT d, 100 * d + i, CASE WHEN d % 10 = 0 AND i = 7 THEN 'new' ELSE 'done' END FROM generate_series(1, 70) d, generate_series(1, 20) i;
CREATE INDEX ON many USING rangefilter (id) WHERE st = 'new';
CREATE INDEX ON many USING rangefilter (id) WHERE st = 'done';
DO $$
DECLARE
	found int;
BEGIN
	FOR i IN 1 .. 200 LOOP
		EXECUTE 'SELECT count(*) FROM many WHERE st = ''new''' INTO found;
		ASSERT found = 7;
		EXECUTE 'SELECT count(*) FROM many WHERE st = ''done'' AND id = ' || i INTO found;
		ASSERT found = (i BETWEEN 101 AND 120)::int;
	END LOOP;
END
$$;
SELECT skips('SELECT * FROM many WHERE st = ''new'''), skips('SELECT * FROM many WHERE st = ''done'''), skips('SELECT * FROM many WHERE st = ''done'' AND id = 517');
INSERT INTO many VALUES (44, NULL, 'new');
SELECT skips('SELECT * FROM many WHERE st = ''new''');
DROP SCHEMA partial CASCADE;
