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

SELECT c AS column, worthwhile, partitions, filter,
	round(skipped_by_points::numeric, 1) AS points, round(skipped_by_ranges_1ppm::numeric, 1) AS ppm,
	round(skipped_by_ranges_100ppm::numeric, 1) AS ppm100, round(skipped_by_ranges_1percent::numeric, 1) AS percent
FROM unnest('{day,serial,device,few,scattered,url,name,u,nothing,j,n,"Odd name"}'::name[]) c, rangefilter_advise('t', c);
SELECT c AS column, advice
FROM unnest('{day,serial,few,url,nothing,j}'::name[]) c, rangefilter_advise('t', c);
-- What it says of sizes and shares is near what comes out.
CREATE INDEX t_device ON t USING rangefilter (device);
SELECT abs(skipped_by_points - (SELECT 1 - avg(n) / 20 FROM
		(SELECT (SELECT count(*) FROM rangefilter_partitions('t_device', device, device)) n FROM t WHERE serial % 50 = 0) q)) < 0.03 AS near,
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
SELECT worthwhile, partitions, filter, skipped_by_points, advice FROM rangefilter_advise('parent', 'k');
DROP TABLE child4;
SELECT worthwhile, partitions, advice FROM rangefilter_advise('parent', 'k');
CREATE TABLE nothing (k int) PARTITION BY RANGE (k);
SELECT worthwhile, partitions, advice FROM rangefilter_advise('nothing', 'k');
-- Errors and privileges
SELECT * FROM rangefilter_advise('t', 'missing');
SELECT * FROM rangefilter_advise('t', 'ctid');
SELECT * FROM rangefilter_advise('t_device', 'device');
SELECT * FROM rangefilter_advise('pg_stats', 'tablename');
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
