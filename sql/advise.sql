--
-- rangefilter_advise(): is an index worth it?
--
CREATE SCHEMA rf_advise;
SET search_path = rf_advise, public;

CREATE TABLE t (day int, serial int, device int, few int, scattered bigint, url text COLLATE "C",
	name text COLLATE "POSIX", u uuid, nothing int, j json, n numeric, "Odd name" int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES FROM (%s) TO (%s) WITH (autovacuum_enabled = off)', i, i, i + 1)
FROM generate_series(0, 19) i \gexec
INSERT INTO t SELECT g / 500, g, hashint8(g) % 1000 + 500 * (g / 500), g % 7, hashint8extended(g, 1), 'https://x/' || g,
	'n' || hashint8(g) % 30, md5(g::text)::uuid, NULL, '{}', g / 10.0, g % 7
FROM generate_series(0, 9999) g;

SELECT c AS column, worthwhile, partitions,
	round(skipped_by_points::numeric, 1) AS points, round(skipped_by_ranges_1ppm::numeric, 1) AS ppm,
	round(skipped_by_ranges_100ppm::numeric, 1) AS ppm100, round(skipped_by_ranges_1percent::numeric, 1) AS percent
FROM unnest('{day,serial,device,few,scattered,url,name,u,nothing,j,n,"Odd name"}'::name[]) c, rangefilter_advise('t', c);
SELECT c AS column, advice
FROM unnest('{day,serial,few,url,nothing,j}'::name[]) c, rangefilter_advise('t', c);
-- What it says of sizes and shares is near what comes out.
CREATE INDEX t_device ON t USING rangefilter (device);
SELECT abs(skipped_by_points - (SELECT 1 - avg(n) / 20 FROM
		(SELECT (SELECT count(*) FROM rangefilter_status('t_device') WHERE rangefilter_may_contain(index, device, device)) n FROM t WHERE serial % 50 = 0) q)) < 0.03 AS near,
	filter_bytes / (SELECT sum(size_bytes) FROM rangefilter_status('t_device')) BETWEEN 0.8 AND 1.25 AS size
FROM rangefilter_advise('t', 'device');

-- A partition, a table without any, an inheritance tree, nothing at all.
SELECT worthwhile, partitions, advice FROM rangefilter_advise('t1', 'device');
CREATE TABLE parent (k int);
CREATE TABLE child1 () INHERITS (parent);
CREATE TABLE child2 () INHERITS (parent);
CREATE TABLE child3 () INHERITS (parent);
CREATE TABLE child4 () INHERITS (parent);
SELECT worthwhile, partitions, filter_bytes, advice FROM rangefilter_advise('parent', 'k');
INSERT INTO child1 SELECT generate_series(1, 100);
INSERT INTO child2 SELECT generate_series(101, 200);
INSERT INTO child3 SELECT generate_series(201, 300);
SELECT worthwhile, partitions, skipped_by_points, advice FROM rangefilter_advise('parent', 'k');
DROP TABLE child4;
SELECT worthwhile, partitions, advice FROM rangefilter_advise('parent', 'k');
CREATE TABLE nothing (k int) PARTITION BY RANGE (k);
SELECT worthwhile, partitions, advice FROM rangefilter_advise('nothing', 'k');

-- A table without partitions, and one with few
CREATE TABLE single AS SELECT hashint8extended(g, 1) AS scattered, g AS serial FROM generate_series(1, 1000) g;
SELECT worthwhile, partitions, advice FROM rangefilter_advise('single', 'scattered');
CREATE TABLE pair (p int, k bigint) PARTITION BY LIST (p);
CREATE TABLE pair1 PARTITION OF pair FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE pair2 PARTITION OF pair FOR VALUES IN (2) WITH (autovacuum_enabled = off);
INSERT INTO pair SELECT 1 + g % 2, hashint8extended(g, 1) FROM generate_series(1, 1000) g;
SELECT worthwhile, partitions, advice FROM rangefilter_advise('pair', 'k');
-- Rare values: of a queue that few partitions have work in.  Not: values that are in all partitions, or in most, though a sample finds
-- each in few of them only; values that are rare in rows, not in partitions; rows that were added last, in one block.
CREATE TABLE queue (p int, status text COLLATE "C", decayed int, everywhere int, most int, once int, last int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE queue%1$s PARTITION OF queue FOR VALUES IN (%1$s) WITH (autovacuum_enabled = off)', p) FROM generate_series(1, 20) p \gexec
INSERT INTO queue SELECT p, CASE WHEN p % 5 = 0 AND g % 100 = 0 THEN 'pending' WHEN g % 1000 = 1 THEN 'failed' ELSE 'done' END,
	CASE WHEN p > 18 THEN g % 20 ELSE 0 END, g % 2000, CASE WHEN p <= 14 THEN g % 1000 END,
	CASE WHEN g = p * 400 THEN 1 ELSE 0 END, CASE WHEN g > 9990 THEN 1 ELSE 0 END
FROM generate_series(1, 20) p, generate_series(1, 10000) g;
SELECT c AS column, worthwhile, round(skipped_by_points::numeric, 1) AS points, advice
FROM unnest('{status,decayed,everywhere,most,once,last}'::name[]) c, rangefilter_advise('queue', c);
-- A query for such a value skips so many.
CREATE INDEX ON queue USING rangefilter (status);
SELECT count(*) AS partitions_left FROM rangefilter_status('queue_status_idx') WHERE rangefilter_may_contain(index, 'pending'::text, 'pending'::text);

-- Columns by which PostgreSQL prunes: at a lower level, as the first or second one, of a hash; as one of several of a hash it does not.
-- What it leaves counts.
CREATE TABLE levels (day int, device int, k int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE levels%1$s PARTITION OF levels FOR VALUES FROM (%1$s) TO (%1$s + 1) PARTITION BY HASH (%2$s)', d, CASE WHEN d < 9 THEN 'device' ELSE 'k, device' END)
FROM generate_series(0, 9) d \gexec
SELECT format('CREATE TABLE levels%1$s_%2$s PARTITION OF levels%1$s FOR VALUES WITH (MODULUS 4, REMAINDER %2$s) WITH (autovacuum_enabled = off)', d, r)
FROM generate_series(0, 9) d, generate_series(0, 3) r \gexec
INSERT INTO levels SELECT d, g + CASE WHEN g % 3 = 0 THEN d * 1000 ELSE 0 END, g + d * 1000 FROM generate_series(0, 9) d, generate_series(1, 400) g;
SELECT c AS column, worthwhile, partitions, round(skipped_by_points::numeric, 1) AS points, advice
FROM unnest('{day,device,k}'::name[]) c, rangefilter_advise('levels', c);
CREATE TABLE pairs (a int, b int) PARTITION BY RANGE (a, b);
SELECT format('CREATE TABLE pairs%1$s PARTITION OF pairs FOR VALUES FROM (%1$s, 0) TO (%1$s + 1, 0) WITH (autovacuum_enabled = off)', d) FROM generate_series(0, 9) d \gexec
INSERT INTO pairs SELECT d, g + d * 1000 FROM generate_series(0, 9) d, generate_series(1, 400) g;
SELECT c AS column, worthwhile, advice FROM unnest('{a,b}'::name[]) c, rangefilter_advise('pairs', c);

-- A materialized view, system catalogs
CREATE MATERIALIZED VIEW seen AS SELECT scattered, serial FROM single;
SELECT worthwhile, partitions, left(advice, 41) AS advice FROM rangefilter_advise('seen', 'scattered');
SELECT worthwhile, partitions, filter_bytes, advice FROM rangefilter_advise('pg_class', 'relname');
-- Errors and privileges
SELECT * FROM rangefilter_advise('t', 'missing');
SELECT * FROM rangefilter_advise('t', 'ctid');
SELECT * FROM rangefilter_advise('t_device', 'device');
SELECT * FROM rangefilter_advise('pg_stats', 'tablename');
SELECT * FROM rangefilter_advise(0::regclass, 'k');
SELECT rangefilter_advise(NULL, 'k') IS NULL;
CREATE ROLE regress_rf_reader;
GRANT USAGE ON SCHEMA rf_advise TO regress_rf_reader;
GRANT SELECT (device) ON t TO regress_rf_reader;
SET ROLE regress_rf_reader;
SELECT worthwhile FROM rangefilter_advise('t', 'device');
SELECT worthwhile FROM rangefilter_advise('t', 'serial');
-- Through the parent, the parent's privileges count.
SELECT worthwhile FROM rangefilter_advise('t1', 'device');
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON t USING (device < 10);
SET ROLE regress_rf_reader;
SELECT worthwhile FROM rangefilter_advise('t', 'device');
RESET ROLE;
SELECT worthwhile FROM rangefilter_advise('t', 'device');

SET client_min_messages = warning;
DROP SCHEMA rf_advise CASCADE;
DROP ROLE regress_rf_reader;
