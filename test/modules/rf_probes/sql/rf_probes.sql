-- How many pages a question reads: at most four, the metapage included.

LOAD 'rangefilter';
CREATE EXTENSION rangefilter;
CREATE EXTENSION rf_probes;

CREATE TABLE numbers AS
	SELECT hashint8extended(i, 1) AS k, uuid_send(md5(i::text)::uuid) AS b,
		md5(i::text) AS t
	FROM generate_series(1, 500000) i;

-- Alone on a page; many pages, found from the metapage; so many that the way
-- to them takes another page.
CREATE INDEX few ON numbers USING rangefilter ((k % 100));
CREATE INDEX many ON numbers USING rangefilter (k);
CREATE INDEX large ON numbers USING rangefilter (k) WITH (bits_per_key = 64);

SELECT i.relname, max_pages BETWEEN 1 AND 4 AS pages, denied > 0 AS denied, probes
FROM pg_class i, LATERAL (
	SELECT array_agg(hashint8extended(n, n % 2) % CASE relname WHEN 'few' THEN 1000 ELSE 9223372036854775807 END) keys
	FROM generate_series(1, 5000) n) k,
	rf_probes(ARRAY[i.oid::regclass], keys, 1, 2, true)
WHERE relname IN ('few', 'many', 'large') ORDER BY relpages;
SELECT i.relname, max_pages BETWEEN 1 AND 4 AS pages
FROM pg_class i, LATERAL (
	SELECT array_agg(hashint8extended(n, n % 2)) keys FROM generate_series(1, 5000) n) k,
	rf_probes(ARRAY[i.oid::regclass], keys, 1000000000000, 1, false)
WHERE relname IN ('many', 'large') ORDER BY relpages;

CREATE INDEX bytes ON numbers USING rangefilter (b);
CREATE INDEX texts ON numbers USING rangefilter (t COLLATE "C") WITH (filter = surf, bits_per_key = 40);
SELECT i.relname, filter, max_pages BETWEEN 1 AND 4 AS pages
FROM pg_class i, LATERAL (
	SELECT array_agg(CASE relname WHEN 'bytes' THEN uuid_send(md5((n * 37)::text)::uuid)
					 ELSE md5((n * 37)::text)::bytea END) keys
	FROM generate_series(1, 20000) n) k,
	rangefilter_status(i.oid) s, rf_probes(ARRAY[i.oid::regclass], k.keys, 1, false)
WHERE relname IN ('bytes', 'texts') ORDER BY relname;

-- Few rows: the metapage alone.
CREATE TABLE small AS SELECT k, t FROM numbers LIMIT 1000;
CREATE INDEX small_k ON small USING rangefilter (k);
CREATE INDEX small_t ON small USING rangefilter (t COLLATE "C");
SELECT max_pages, denied > 900 AS denied FROM rf_probes('{small_k}',
	(SELECT array_agg(hashint8extended(n, 2)) FROM generate_series(1, 1000) n), 1, 2, true);
SELECT max_pages, denied > 900 AS denied FROM rf_probes('{small_t}',
	(SELECT array_agg(md5(n || 'x')::bytea) FROM generate_series(1, 1000) n), 1, false);
DROP TABLE small;

-- Several indexes in turn; nothing to ask.
SELECT probes, denied FROM rf_probes('{many,large}', '{1}', 1, 3, true);
SELECT probes FROM rf_probes('{many}', '{}'::bigint[], 1, 1, true);
DROP TABLE numbers;

-- Processor time goes on with work, and not while the process sleeps.
SELECT rf_processor_time() AS before \gset
SELECT pg_sleep(0.5);
SELECT rf_processor_time() - :before BETWEEN 0 AND 400 AS asleep;
