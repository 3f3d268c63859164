-- Unique wormhole indexes say what unique btrees say.
SET client_min_messages = warning;

-- Keys before a leaf that look like those in it behind what all of these begin
-- with: rows (a, 1) where (a - 1, 1) and (a + 1, 1) are there.
CREATE TABLE wu_like (a int, b int);
CREATE UNIQUE INDEX wu_like_ab ON wu_like USING wormhole (a, b);
INSERT INTO wu_like SELECT a, b FROM generate_series(0, 200, 2) a, generate_series(1, 400) b ORDER BY md5(a || '.' || b);
INSERT INTO wu_like SELECT a, 1 FROM generate_series(1, 199, 2) a;
SELECT wormhole_check('wu_like_ab', true) = count(*) AS checked, count(*) FROM wu_like;
DO $$
DECLARE
	refused int := 0;
BEGIN
	FOR i IN 1 .. 199 LOOP
		BEGIN
			INSERT INTO wu_like VALUES (i, 1);
		EXCEPTION WHEN unique_violation THEN
			refused := refused + 1;
		END;
	END LOOP;
	IF refused <> 199 THEN
		RAISE '% of 199 refused', refused;
	END IF;
END $$;
DROP TABLE wu_like;

-- The same statements on a table with a unique btree and on one with a unique
-- wormhole index: the same errors but for the tables' names, the same rows.
CREATE FUNCTION same_unique(definition text, statements text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	said text[];
	method text;
	statement text;
	state text;
	detail text;
	known text[];
BEGIN
	FOREACH method IN ARRAY ARRAY['btree', 'wormhole'] LOOP
		CREATE TEMP TABLE wu (id serial, a int, b text COLLATE "C", c numeric);
		EXECUTE 'CREATE UNIQUE INDEX wu_index ON wu USING ' || method || definition;
		said := '{}';
		FOREACH statement IN ARRAY statements LOOP
			state := 'done';
			detail := '';
			BEGIN
				EXECUTE statement;
			EXCEPTION WHEN OTHERS THEN
				GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL;
			END;
			said := said || (state || ' ' || detail);
		END LOOP;
		said := said || (SELECT string_agg(wu::text, ';' ORDER BY id) FROM wu);
		DROP TABLE wu;
		IF method = 'wormhole' AND said IS DISTINCT FROM known THEN
			RETURN format('btree %s, wormhole %s', known, said);
		END IF;
		known := said;
	END LOOP;
	RETURN (SELECT count(*) FILTER (WHERE x LIKE '23505%') || ' refused' FROM unnest(said) x);
END $$;
SELECT definition, same_unique(definition, ARRAY[
	$s$ INSERT INTO wu (a, b, c) VALUES (1, 'x', 1), (2, 'x', 1), (2, 'y', 1.5) $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (1, 'x', 1.00) $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (1, 'x', 2) $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (NULL, 'x', 2) $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (NULL, 'x', 2) $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (3, NULL, NULL) $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (3, NULL, NULL) $s$,
	$s$ INSERT INTO wu VALUES (DEFAULT) $s$,
	$s$ INSERT INTO wu VALUES (DEFAULT) $s$,
	$s$ INSERT INTO wu (a, b, c) SELECT g, 's' || g, g FROM generate_series(10, 3000) g $s$,
	$s$ INSERT INTO wu (a, b, c) SELECT g, 's' || g, g FROM generate_series(3500, 3000, -1) g $s$,
	$s$ UPDATE wu SET a = a + 1 WHERE a >= 10 $s$,
	$s$ UPDATE wu SET a = a - 1 WHERE a >= 11 $s$,
	$s$ UPDATE wu SET a = 11 WHERE a = 700 $s$,
	$s$ UPDATE wu SET b = 's11', a = 11 WHERE a = 700 $s$,
	$s$ UPDATE wu SET b = 's11', a = 11, c = 11.0 WHERE a = 700 $s$,
	$s$ UPDATE wu SET id = id + 10000 WHERE a < 100 $s$,
	$s$ DO 'BEGIN DELETE FROM wu WHERE a = 20; INSERT INTO wu (a, b, c) VALUES (20, ''s20'', 20); END' $s$,
	$s$ DO 'BEGIN INSERT INTO wu (a, b, c) VALUES (5000, ''s'', 1); INSERT INTO wu (a, b, c) VALUES (5000, ''s'', 1); END' $s$,
	$s$ INSERT INTO wu (a, b, c) VALUES (5000, 's', 1) $s$,
	$s$ DELETE FROM wu WHERE a % 3 = 0 $s$,
	$s$ INSERT INTO wu (a, b, c) SELECT g, 's' || g, g FROM generate_series(300, 2000, 3) g $s$,
	$s$ INSERT INTO wu (a, b, c) SELECT g, 's' || g, g FROM generate_series(2001, 2004) g $s$])
FROM unnest(ARRAY['(a)', '(a) NULLS NOT DISTINCT', '(a DESC NULLS LAST, b)', '(b NULLS FIRST, c DESC, a) NULLS NOT DISTINCT',
	'(c)', '(c) INCLUDE (a, b)', '(a, b) WITH (fillfactor = 40)', '((a % 1000))', '(lower(b), (c * 2)) INCLUDE (id)',
	'(a) WHERE b > ''s''', '(a, b) NULLS NOT DISTINCT WHERE id % 2 = 0']) definition;
DROP FUNCTION same_unique;

-- Core builds UNIQUE and PRIMARY KEY constraints, the targets of foreign keys and of ON
-- CONFLICT, with btrees only, the last two until 17; see also wormhole.sql.
CREATE TABLE wu_limits (a int NOT NULL, b int);
CREATE UNIQUE INDEX wu_limits_a ON wu_limits USING wormhole (a);
RESET client_min_messages;
INSERT INTO wu_limits VALUES (1, 1);
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/versions.sql
\set ECHO none
\i :helpers
\set ECHO all
SELECT conflict, wh_kept_until_17(format('DO $$BEGIN
		INSERT INTO wu_limits VALUES (1, 2), (5, 5) ON CONFLICT %s;
		ASSERT (SELECT string_agg(l::text, '' '' ORDER BY a) FROM wu_limits l) = %L;
	END$$', conflict, result), 'unexpected non-btree speculative unique index')
FROM (VALUES ('(a) DO UPDATE SET b = 2', '(1,2) (5,5)'), ('(a) DO NOTHING', '(1,1) (5,5)'), ('DO NOTHING', '(1,1) (5,5)')) x (conflict, result);
ALTER TABLE wu_limits ADD CONSTRAINT wu_key UNIQUE USING INDEX wu_limits_a;
ALTER TABLE wu_limits ADD CONSTRAINT wu_key UNIQUE USING INDEX wu_limits_a DEFERRABLE;
SELECT wh_kept_until_17('CREATE TABLE wu_refers (a int REFERENCES wu_limits (a))',
	'only b-tree indexes are supported for foreign keys');
-- MERGE is no ON CONFLICT, and the identity of replicated rows may be such an index.
MERGE INTO wu_limits t USING (VALUES (1), (2)) s (a) ON t.a = s.a
	WHEN MATCHED THEN UPDATE SET b = 3 WHEN NOT MATCHED THEN INSERT VALUES (s.a, 4);
SELECT * FROM wu_limits ORDER BY a;
ALTER TABLE wu_limits REPLICA IDENTITY USING INDEX wu_limits_a;
CREATE MATERIALIZED VIEW wu_view AS TABLE wu_limits;
SET client_min_messages = warning;
CREATE UNIQUE INDEX wu_view_a ON wu_view USING wormhole (a);
RESET client_min_messages;
REFRESH MATERIALIZED VIEW wu_view;
SELECT wh_kept_until_17('REFRESH MATERIALIZED VIEW CONCURRENTLY wu_view',
	'cannot refresh materialized view "public.wu_view" concurrently');
DROP FUNCTION wh_kept_until_17, refused;
DROP TABLE wu_limits CASCADE;

-- An exclusion constraint of equality is a unique constraint that can be
-- deferred and that ON CONFLICT DO NOTHING knows.
CREATE TABLE wu_exclude (a int, b text COLLATE "C", CONSTRAINT wu_now EXCLUDE USING wormhole (a WITH =, b WITH =),
	CONSTRAINT wu_later EXCLUDE USING wormhole (b WITH =) DEFERRABLE);
INSERT INTO wu_exclude SELECT g, 'x' || g FROM generate_series(1, 1000) g;
INSERT INTO wu_exclude VALUES (1, 'x1');
INSERT INTO wu_exclude VALUES (1, 'x1') ON CONFLICT DO NOTHING;
INSERT INTO wu_exclude VALUES (1, 'x1') ON CONFLICT ON CONSTRAINT wu_now DO NOTHING;
INSERT INTO wu_exclude VALUES (NULL, NULL), (NULL, NULL);
UPDATE wu_exclude SET b = 'x' || a % 1000 + 1;
BEGIN;
SET CONSTRAINTS wu_later DEFERRED;
INSERT INTO wu_exclude VALUES (2000, 'x5');
UPDATE wu_exclude SET b = 'x2000' WHERE a = 2000;
COMMIT;
BEGIN;
SET CONSTRAINTS wu_later DEFERRED;
INSERT INTO wu_exclude VALUES (2001, 'x5');
UPDATE wu_exclude SET b = 'x5' WHERE a = 2000;
SET CONSTRAINTS wu_later IMMEDIATE;
ROLLBACK;
SELECT count(*), count(DISTINCT b) FROM wu_exclude;
SELECT wormhole_check('wu_later', true) >= 1003 AS later, wormhole_check('wu_now', true) >= 1003 AS now;
DROP TABLE wu_exclude;

-- A key that is deleted and inserted again and again, where no scan marks its dead rows: the unique check has them
-- removed when there are many, long before the leaf is full.
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SET client_min_messages = warning;
CREATE TABLE wu_again (k int) WITH (autovacuum_enabled = off);
INSERT INTO wu_again SELECT generate_series(1, 10);
CREATE UNIQUE INDEX wu_again_k ON wu_again USING wormhole (k);
CREATE PROCEDURE wu_until_fewer(INOUT n int) LANGUAGE plpgsql AS $$
DECLARE
	before int := 0;
	now int;
BEGIN
	FOR i IN 1 .. 400 LOOP
		DELETE FROM wu_again WHERE k = 5;
		INSERT INTO wu_again VALUES (5);
		COMMIT;
		now := (SELECT rows FROM wormhole_status('wu_again_k'));
		n := i;
		EXIT WHEN now < before;
		before := now;
	END LOOP;
END $$;
DO $$
DECLARE
	n int;
BEGIN
	CALL wu_until_fewer(n);
	ASSERT n BETWEEN 33 AND 200, n;
END $$;
DROP PROCEDURE wu_until_fewer;
DROP TABLE wu_again;
-- A row of the key is found behind leaves of dead ones.
CREATE TABLE wu_long (k text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX wu_long_k ON wu_long USING wormhole (k) WITH (deduplicate = off);
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		DELETE FROM wu_long;
		INSERT INTO wu_long VALUES (repeat('x', 700));
	END LOOP;
END $$;
SELECT leaf_pages > 1 AS leaves FROM wormhole_status('wu_long_k');
\set VERBOSITY terse
INSERT INTO wu_long VALUES (repeat('x', 700));
DROP TABLE wu_long;
-- Dead rows of a key are many in its first leaf, and few in the second: those in the first one are removed.
CREATE TABLE wu_two (k int) WITH (autovacuum_enabled = off);
CREATE FUNCTION wu_leaves(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	TRUNCATE wu_two;
	DROP INDEX IF EXISTS wu_two_k;
	INSERT INTO wu_two SELECT 5 FROM generate_series(1, n);
	DELETE FROM wu_two;
	CREATE UNIQUE INDEX wu_two_k ON wu_two USING wormhole (k) WITH (deduplicate = off);
	RETURN (SELECT leaf_pages FROM wormhole_status('wu_two_k'));
END $$;
DO $$
DECLARE
	low int = 100;
	high int = 2000;
BEGIN
	WHILE low < high LOOP
		IF wu_leaves((low + high) / 2) > 1 THEN
			high := (low + high) / 2;
		ELSE
			low := (low + high) / 2 + 1;
		END IF;
	END LOOP;
	ASSERT wu_leaves(low) = 2;
END $$;
SELECT rows AS dead FROM wormhole_status('wu_two_k') \gset
INSERT INTO wu_two VALUES (5);
SELECT leaf_pages AS leaves, :dead + 1 - rows AS removed FROM wormhole_status('wu_two_k');
DROP FUNCTION wu_leaves;
DROP TABLE wu_two;

-- The check reads no leaves behind the key.
CREATE TABLE wu_pages (k int) WITH (autovacuum_enabled = off);
INSERT INTO wu_pages SELECT 2 * g FROM generate_series(1, 30000) g;
CREATE UNIQUE INDEX wu_pages_k ON wu_pages USING wormhole (k);
CREATE FUNCTION wu_pages_read(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) INSERT INTO wu_pages VALUES (%s)', k) INTO plan;
	RETURN (plan #>> '{0,Plan,Shared Hit Blocks}')::int + (plan #>> '{0,Plan,Shared Read Blocks}')::int;
END $$;
SELECT leaf_pages > 30 AS leaves, wu_pages_read(1001) < 20 AS first, wu_pages_read(1003) < 20 AS again FROM wormhole_status('wu_pages_k');
DROP FUNCTION wu_pages_read;
DROP TABLE wu_pages;
