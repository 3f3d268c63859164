--
-- What a user sees of the indexes and functions, and of skipping
--
BEGIN;
SELECT plan(53);
SET search_path = public;

CREATE TABLE events (day date, device int, url text COLLATE "C", load numeric)
	PARTITION BY RANGE (day);
SELECT lives_ok(format('CREATE TABLE events_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
	i, date '2024-01-01' + i, date '2024-01-02' + i), 'day ' || i)
FROM generate_series(0, 9) i;
INSERT INTO events
SELECT date '2024-01-01' + i, 1000 * i + j, 'https://site' || i || '/' || j, i + j / 100.0
FROM generate_series(0, 9) i, generate_series(1, 50) j;

SELECT lives_ok('CREATE INDEX events_device ON events USING rangefilter (device)');
SELECT lives_ok('CREATE INDEX events_url ON events USING rangefilter (url)');
SELECT lives_ok('CREATE INDEX events_load ON events USING rangefilter (load) WITH (bits_per_key = 30)');
SELECT is(count(*)::int, 30, 'an index on every partition')
FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'rangefilter' AND c.relkind = 'i' AND x.indisvalid;

--
-- Functions
--
SELECT results_eq($$ SELECT "table" FROM rangefilter_status('events_device') WHERE rangefilter_may_contain(index, 3001, 3050) $$,
	$$ VALUES ('events_3'::regclass) $$, 'a range in one partition');
SELECT results_eq($$ SELECT "table" FROM rangefilter_status('events_device') WHERE rangefilter_may_contain(index, 3050, 4001) $$,
	$$ VALUES ('events_3'::regclass), ('events_4') $$, 'in two');
SELECT is_empty($$ SELECT "table" FROM rangefilter_status('events_device') WHERE rangefilter_may_contain(index, 3051, 4000) $$, 'in none');
SELECT results_eq($$ SELECT "table" FROM rangefilter_status('events_url') WHERE rangefilter_may_contain(index, 'https://site5/', 'https://site50') $$,
	$$ VALUES ('events_5'::regclass) $$, 'strings');
SELECT results_eq($$ SELECT "table" FROM rangefilter_status('events_load') WHERE rangefilter_may_contain(index, NULL, 0.5) $$,
	$$ VALUES ('events_0'::regclass) $$, 'numbers without a lower bound');
SELECT is(rangefilter_may_contain('events_device', 3001, 3001), true, 'a key');
SELECT is(rangefilter_may_contain('events_device', 999, 999), false, 'no key');
SELECT is(rangefilter_may_contain('events_device', 2, 1), false, 'a range without keys');
SELECT is(rangefilter_may_contain('events_device', NULL::int, NULL), true, 'everything');
SELECT is(rangefilter_summarize('events_device'), 0::bigint, 'nothing new to summarize');
SELECT results_eq($$ SELECT "table", rows, keys, min, max FROM rangefilter_status('events_device') LIMIT 2 $$,
	$$ VALUES ('events_0'::regclass, 50::bigint, 50::bigint, '1', '50'),
		('events_1', 50::bigint, 50::bigint, '1001', '1050') $$, 'status');
SELECT throws_ok($$ SELECT rangefilter_status('events') $$, '42809');
SELECT throws_ok($$ SELECT rangefilter_may_contain('events_device', 'x', 'y') $$, '22P02');

--
-- Queries: with skipping and without it, the same
--
CREATE FUNCTION same(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	with_it text;
	without text;
BEGIN
	SET LOCAL rangefilter.enable = on;
	EXECUTE format('SELECT string_agg(q::text, chr(10) ORDER BY q::text) FROM (%s) q', query) INTO with_it;
	SET LOCAL rangefilter.enable = off;
	EXECUTE format('SELECT string_agg(q::text, chr(10) ORDER BY q::text) FROM (%s) q', query) INTO without;
	SET LOCAL rangefilter.enable = on;
	RETURN NEXT is(with_it, without, query);
END
$$;
-- How many partitions a query does without.
CREATE FUNCTION skipped(query text, expected int) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
	line text;
	found int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		found := found + coalesce(substring(line FROM 'Partitions Skipped: (\d+) of')::int, 0);
	END LOOP;
	RETURN NEXT is(found, expected, 'skipped for ' || query);
END
$$;
SELECT same(q) FROM unnest(ARRAY[
	'SELECT * FROM events WHERE device = 3001',
	'SELECT * FROM events WHERE device BETWEEN 3050 AND 4001',
	'SELECT * FROM events WHERE device IN (1, 5050, 999999)',
	'SELECT * FROM events WHERE device IS NULL',
	$q$SELECT * FROM events WHERE url LIKE 'https://site7/4%'$q$,
	'SELECT * FROM events WHERE load >= 9.5 OR device < 3']) q;
SELECT skipped(q, n) FROM (VALUES
	('SELECT * FROM events WHERE device = 3001', 9),
	('SELECT * FROM events WHERE device BETWEEN 3050 AND 4001', 8),
	($q$SELECT * FROM events WHERE device = 3001 AND day >= '2024-01-04'$q$, 6),
	('SELECT * FROM events WHERE device = 999', 10),
	('SELECT * FROM events WHERE device > 0', 0)) v (q, n);
SET LOCAL rangefilter.enable = off;
SELECT skipped('SELECT * FROM events WHERE device = 3001', 0);
SET LOCAL rangefilter.enable = on;

--
-- Data changes, the answers with it
--
INSERT INTO events VALUES ('2024-01-03', 777777, 'late', -1), ('2024-01-04', NULL, NULL, 'NaN');
SELECT results_eq('SELECT day FROM events WHERE device = 777777', $$ VALUES (date '2024-01-03') $$, 'inserted');
SELECT results_eq('SELECT day FROM events WHERE device IS NULL', $$ VALUES (date '2024-01-04') $$, 'a NULL');
SELECT results_eq($$ SELECT day FROM events WHERE load = 'NaN' $$, $$ VALUES (date '2024-01-04') $$, 'a NaN');
UPDATE events SET device = 888888 WHERE device = 777777;
SELECT is_empty('SELECT * FROM events WHERE device = 777777', 'updated away');
SELECT is((SELECT url FROM events WHERE device = 888888), 'late', 'updated');
UPDATE events SET day = '2024-01-10' WHERE device = 888888;
SELECT results_eq('SELECT day FROM events WHERE device = 888888', $$ VALUES (date '2024-01-10') $$, 'moved');
SAVEPOINT s;
DELETE FROM events WHERE device = 888888;
SELECT is_empty('SELECT * FROM events WHERE device = 888888', 'deleted');
ROLLBACK TO s;
SELECT isnt_empty('SELECT * FROM events WHERE device = 888888', 'not deleted after all');
TRUNCATE events_9;
SELECT is_empty('SELECT * FROM events WHERE device = 888888', 'truncated');
SELECT is_empty('SELECT * FROM events WHERE device = 9001', 'truncated');
INSERT INTO events SELECT '2024-01-10', 555555 FROM generate_series(1, 1000);
SELECT is((SELECT count(*)::int FROM events WHERE device = 555555), 1000, 'loaded again');

--
-- An index on two columns
--
CREATE TABLE visits (day date, tenant int, at timestamp, note text) PARTITION BY RANGE (day);
CREATE TABLE visits_0 PARTITION OF visits FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
INSERT INTO visits SELECT date '2024-01-01' + i, t, timestamp '2024-01-01' + i * interval '1 day' + t * interval '1 hour'
FROM generate_series(0, 1) i, generate_series(0, 9) t;
CREATE INDEX visits_tenant ON visits USING rangefilter (tenant, at);
SELECT skipped($$SELECT * FROM visits WHERE tenant = 3 AND at >= '2024-01-02'$$, 1);
SELECT same($$SELECT * FROM visits WHERE tenant = 3 AND at >= '2024-01-02'$$);
SELECT skipped('SELECT * FROM visits WHERE tenant = 10', 2);

SELECT * FROM finish();
ROLLBACK;
