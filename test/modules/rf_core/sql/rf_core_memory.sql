-- What a session remembers is whole after an error that there is no memory for more.
SET client_min_messages = warning;
LOAD 'rangefilter';
CREATE EXTENSION IF NOT EXISTS rangefilter;
RESET client_min_messages;
CREATE EXTENSION rf_core;
CREATE SCHEMA rf_core_memory;
SET search_path = rf_core_memory, public;
\set VERBOSITY terse
CREATE PROCEDURE make_table(name name, partitions int) LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format('CREATE TABLE %s (part int, k int) PARTITION BY LIST (part)', name);
	FOR p IN 0 .. partitions - 1 LOOP
		EXECUTE format('CREATE TABLE %1$s%2$s PARTITION OF %1$s FOR VALUES IN (%2$s)', name, p);
	END LOOP;
END
$$;
CALL make_table('few', 10);
CALL make_table('many', 200);
INSERT INTO few SELECT p, 10 * p FROM generate_series(0, 9) p;
INSERT INTO many SELECT p, 10 * p FROM generate_series(0, 199) p;
CREATE INDEX ON few USING rangefilter (k);
CREATE INDEX ON many USING rangefilter (k);

-- Invalidation records: the map cannot grow from those of few partitions to those of many.
SELECT part FROM few WHERE k = 50;
SELECT rf_core_refuse_memory('rangefilter tracks', 2000) > 0 AS refused;
SELECT part FROM many WHERE k = 50;
-- Invalidations are looked up.
CREATE INDEX ON few USING rangefilter (part);
SELECT part FROM few WHERE k = 50;
TRUNCATE few7;
INSERT INTO few7 VALUES (7, 50);
SELECT part FROM few WHERE k = 50 ORDER BY part;
SELECT part FROM many WHERE k = 50;
SELECT rf_core_refuse_memory('rangefilter tracks', 0) > 0 AS allowed;
SELECT part FROM many WHERE k = 50;
SELECT part FROM few WHERE k = 50 ORDER BY part;

-- Places of partitions that are looked up by themselves.
CALL make_table('other', 200);
INSERT INTO other SELECT * FROM many;
CREATE INDEX ON other USING rangefilter (k);
SELECT part FROM other WHERE part IN (1, 2) AND k = 20;
SELECT rf_core_refuse_memory('rangefilter table', 1) > 0 AS refused;
SELECT part FROM other WHERE part IN (3, 4) AND k = 30;
SELECT part FROM other WHERE part IN (5, 6) AND k = 50;
SELECT rf_core_refuse_memory('rangefilter table', 0) > 0 AS allowed;
SELECT part FROM other WHERE part IN (1, 2) AND k = 20;
SELECT part FROM other WHERE part IN (3, 4) AND k = 30;
SELECT part FROM other WHERE part IN (5, 6, 7, 8, 9) AND k BETWEEN 50 AND 90;

DROP SCHEMA rf_core_memory CASCADE;
DROP EXTENSION rf_core;
