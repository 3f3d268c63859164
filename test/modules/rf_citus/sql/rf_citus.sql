-- Functions say so if the rows of a table are in shards of Citus.
LOAD 'rangefilter';
CREATE EXTENSION IF NOT EXISTS rangefilter;
CREATE TABLE events (day int, device int) PARTITION BY RANGE (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (1) TO (2);
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM (2) TO (3);
CREATE INDEX events_device ON events USING rangefilter (device);
CREATE TABLE other (day int, device int);
CREATE INDEX other_device ON other USING rangefilter (device);

-- No Citus: a table of that name is nobody's.
CREATE TABLE pg_dist_partition (partmethod "char", logicalrelid regclass NOT NULL);
INSERT INTO pg_dist_partition VALUES ('h', 'events'), ('h', 'other');
SELECT rangefilter_count('events_device', 1, 2);

-- Citus, which does not know the table.
CREATE EXTENSION citus;
SELECT rangefilter_count('events_device', 1, 2);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('h', 'events'), ('h', 'events_1');

-- Each function, once a call.
SELECT count(*) FROM rangefilter_status('events_device');
SELECT count(*) FROM rangefilter_status('events_1_device_idx');
SELECT rangefilter_may_contain('events_device', 1, 2);
SELECT count(*) FROM rangefilter_partitions('events_device', 1, 2);
SELECT rangefilter_count('events_device', 1, 2);
SELECT rangefilter_summarize('events_device');
SELECT rangefilter_verify('events_device');
SELECT advice FROM rangefilter_advise('events', 'device');

-- Not for what is not listed, nor in the view.
SELECT count(*) FROM rangefilter_status('other_device');
SELECT count(*) FROM rangefilter_status('events_2_device_idx');
SELECT count(*) FROM rangefilter_activity WHERE "table" = 'events_1'::regclass;

-- A list that is made otherwise says nothing.
ALTER TABLE pg_catalog.pg_dist_partition RENAME logicalrelid TO relid;
SELECT rangefilter_count('events_device', 1, 2);

DROP EXTENSION citus;
SELECT rangefilter_count('events_device', 1, 2);

DROP TABLE events, other, pg_dist_partition;
