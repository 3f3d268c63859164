--
-- A summary forgets the values of rows that were removed
--
-- Temporary tables, because there no other session's snapshot keeps VACUUM from
-- removing what is dead.
CREATE SCHEMA rf_removed;
SET search_path = rf_removed, public;
SET rangefilter.autosummarize = off;
LOAD 'rangefilter';

CREATE FUNCTION skipped(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Partitions Skipped' THEN
			RETURN NEXT trim(line);
		END IF;
	END LOOP;
END
$$;
CREATE FUNCTION generations(regclass) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(generation::text, ' ' ORDER BY index) FROM rangefilter_status($1) $$;

--
-- A queue: jobs of twenty days, most of them done
--
CREATE TEMP TABLE jobs (day int, id int, status text COLLATE "C", pad text) PARTITION BY LIST (day);
DO $$
BEGIN
	FOR day IN 1..20 LOOP
		EXECUTE format('CREATE TEMP TABLE jobs%s PARTITION OF jobs FOR VALUES IN (%s)', to_char(day, 'FM00'), day);
	END LOOP;
END
$$;
INSERT INTO jobs
SELECT day, g, CASE WHEN g % 500 = 0 THEN 'pending' ELSE 'done' END, repeat('x', 500)
FROM generate_series(1, 20) day, generate_series(1, 1000) g;
CREATE INDEX jobs_status ON jobs USING rangefilter (status);
VACUUM jobs;
-- All are done but those of the last day.
UPDATE jobs SET status = 'done' WHERE status = 'pending' AND day < 20;
SELECT skipped('SELECT FROM jobs WHERE status = ''pending''');
VACUUM jobs;
SELECT skipped('SELECT FROM jobs WHERE status = ''pending'''), generations('jobs_status');
SELECT count(*) FROM jobs WHERE status = 'pending';
-- Nothing more was removed: nothing is done.
VACUUM jobs;
SELECT rangefilter_summarize('jobs_status'), generations('jobs_status');
-- The first day gets new jobs, and they are done.
INSERT INTO jobs SELECT 1, g, 'pending', repeat('x', 500) FROM generate_series(1, 3) g;
SELECT skipped('SELECT FROM jobs WHERE status = ''pending''');
UPDATE jobs SET status = 'done' WHERE day = 1 AND status = 'pending';
VACUUM jobs01;
SELECT skipped('SELECT FROM jobs WHERE status = ''pending''');
SELECT sum(rangefilter_verify(index)) FROM rangefilter_status('jobs_status');

--
-- Dead pointers that VACUUM leaves, as there are few, and such that were there before
--
CREATE TEMP TABLE states (id int, state int, pad text) WITH (autovacuum_enabled = off, fillfactor = 90);
INSERT INTO states SELECT g, CASE WHEN g = 7 THEN 1 ELSE 2 END, repeat('x', 1000) FROM generate_series(1, 2000) g;
CREATE INDEX states_state ON states USING rangefilter (state);
CREATE FUNCTION state_one(OUT found bool, OUT generation bigint) LANGUAGE sql AS
$$
	SELECT rangefilter_may_contain('states_state', 1, 1), generation
	FROM rangefilter_status('states_state')
$$;
DELETE FROM states WHERE state = 1;
VACUUM states;
SELECT * FROM state_one();
VACUUM states;
SELECT rangefilter_summarize('states_state'), * FROM state_one();
-- Then it removes them.
VACUUM (INDEX_CLEANUP on) states;
SELECT rangefilter_summarize('states_state'), * FROM state_one();
INSERT INTO states VALUES (7, 1);
DELETE FROM states WHERE id % 5 = 0 OR state = 1;
VACUUM (INDEX_CLEANUP off) states;
SELECT * FROM state_one();
CREATE INDEX states_later ON states USING rangefilter (state);
VACUUM (INDEX_CLEANUP on) states;
SELECT * FROM state_one();
SELECT rangefilter_summarize('states_later'), generations('states_later');
DROP TABLE states;

--
-- How many rows: as many as the rarest value has, where there are few values ...
--
CREATE TEMP TABLE few (id int, v int) WITH (autovacuum_enabled = off);
INSERT INTO few SELECT g, CASE WHEN g <= 500 THEN 1 WHEN g <= 900 THEN NULL ELSE g % 3 + 10 END FROM generate_series(1, 10000) g;
CREATE INDEX few_v ON few USING rangefilter (v);
DELETE FROM few WHERE id <= 399;
VACUUM (INDEX_CLEANUP on) few;
SELECT generations('few_v');
DELETE FROM few WHERE id = 400;
VACUUM (INDEX_CLEANUP on) few;
SELECT generations('few_v');
SELECT rangefilter_summarize('few_v'), generations('few_v');
DELETE FROM few WHERE id = 10000;
VACUUM (INDEX_CLEANUP on) few;
SELECT generations('few_v');
-- ... for the command one is enough.
SELECT rangefilter_summarize('few_v'), generations('few_v');
SELECT rangefilter_summarize('few_v'), generations('few_v');
DROP TABLE few;

--
-- ... and where there are many, a share of the rows
--
CREATE TEMP TABLE many (v int) WITH (autovacuum_enabled = off);
INSERT INTO many SELECT generate_series(1, 10000);
CREATE INDEX many_v ON many USING rangefilter (v);
CREATE FUNCTION go(rows int) RETURNS void LANGUAGE sql AS
$$ DELETE FROM many WHERE v IN (SELECT v FROM many ORDER BY v LIMIT rows) $$;
SELECT go(1000);
VACUUM (INDEX_CLEANUP on) many;
SELECT go(1000);
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
SELECT go(1);
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v'), min FROM rangefilter_status('many_v');
-- Updates count, too, though the number of rows stays.
UPDATE many SET v = v + 1 WHERE v % 2 = 0;
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
SET rangefilter.vacuum_scale_factor = 0.01;
SELECT go(80);
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
SELECT go(1);
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
SET rangefilter.vacuum_scale_factor = 0;
SELECT go(1);
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
SET rangefilter.vacuum_scale_factor = 100;
SELECT go(7000);
VACUUM (INDEX_CLEANUP on) many;
SELECT generations('many_v');
SET rangefilter.vacuum_scale_factor = -1;
RESET rangefilter.vacuum_scale_factor;
DROP TABLE many;

--
-- Rows that were updated before the index was made, without a trace for VACUUM
--
CREATE TEMP TABLE early (id int, status text COLLATE "C") WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO early SELECT g, CASE WHEN g % 100 = 0 THEN 'pending' ELSE 'done' END FROM generate_series(1, 1000) g;
BEGIN;
UPDATE early SET status = 'done' WHERE status = 'pending' AND id < 500;
SAVEPOINT s;
UPDATE early SET status = 'done' WHERE status = 'pending';
RELEASE s;
CREATE INDEX early_status ON early USING rangefilter (status);
COMMIT;
SELECT rangefilter_may_contain('early_status', 'pending', 'pending');
VACUUM early;
SELECT rangefilter_may_contain('early_status', 'pending', 'pending'), generations('early_status');
-- Later updates of other columns have the same key.
UPDATE early SET id = id + 1;
VACUUM early;
VACUUM early;
SELECT generations('early_status');
DROP TABLE early;

--
-- A partial index gets empty, and is not made anew then
--
CREATE TEMP TABLE part (id int, status text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO part SELECT g, CASE WHEN g % 100 = 0 THEN 'pending' ELSE 'done' END FROM generate_series(1, 1000) g;
CREATE INDEX part_id ON part USING rangefilter (id) WHERE status = 'pending';
UPDATE part SET status = 'done' WHERE status = 'pending';
VACUUM part;
SELECT rows, generation FROM rangefilter_status('part_id');
DELETE FROM part WHERE id < 100;
VACUUM part;
SELECT rows, generation FROM rangefilter_status('part_id');
INSERT INTO part VALUES (1, 'pending');
DELETE FROM part WHERE id = 1 OR id = 101;
VACUUM (INDEX_CLEANUP on) part;
SELECT rows, delta_keys, generation FROM rangefilter_status('part_id');
DROP TABLE part;

DROP TABLE jobs;
SET client_min_messages = warning;
DROP SCHEMA rf_removed CASCADE;
