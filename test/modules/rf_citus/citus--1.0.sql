-- Nobody may create a table in pg_catalog, but a superuser may move one there.
CREATE SCHEMA citus;
CREATE TABLE citus.pg_dist_partition (partmethod "char", logicalrelid regclass NOT NULL);
ALTER TABLE citus.pg_dist_partition SET SCHEMA pg_catalog;
GRANT SELECT ON pg_catalog.pg_dist_partition TO PUBLIC;
