--
-- check_database: rangefilter_check_database()
--
CREATE SCHEMA rf_check;
SET search_path = rf_check, public;
CREATE TABLE t (p int, k int, v text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
INSERT INTO t SELECT 1 + g % 2, g, 'v' || g FROM generate_series(1, 1000) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_v ON t USING wormhole (v);
CREATE TABLE invalid (k int);
INSERT INTO invalid VALUES (1);
CREATE INDEX invalid_r ON invalid USING rangefilter (k);
CREATE INDEX invalid_w ON invalid USING wormhole (k);
UPDATE pg_index SET indisvalid = false WHERE indrelid = 'invalid'::regclass;
-- Other tests have indexes, too.
CREATE VIEW ours AS SELECT oid FROM pg_class WHERE relnamespace = 'rf_check'::regnamespace;

-- Keys of rangefilter, entries of wormhole; then rows and entries.
SELECT c.* FROM rangefilter_check_database() c JOIN ours ON index = oid ORDER BY index::text;
SELECT c.* FROM rangefilter_check_database(heapallindexed => true) c JOIN ours ON index = oid ORDER BY index::text;
SELECT rangefilter_verify('t_k', false), rangefilter_verify('t_k', heapallindexed => true), rangefilter_verify('t_k', NULL);

-- Pages can be checked although the expression of an index fails; rows cannot.
CREATE FUNCTION fails_for(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN 1 / k; END $$;
CREATE TABLE e (k int);
INSERT INTO e VALUES (1), (2);
CREATE INDEX e_k ON e USING rangefilter (fails_for(k));
CREATE OR REPLACE FUNCTION fails_for(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN k / 0; END $$;
SELECT c.* FROM rangefilter_check_database() c JOIN ours ON index = oid WHERE index::text LIKE 'e%';
SELECT c.* FROM rangefilter_check_database(true) c JOIN ours ON index = oid WHERE index::text LIKE 'e%';
DROP TABLE e;

-- Shares: each index is in one of them.
SELECT count(*) = count(DISTINCT index) AND bool_and(index IS NOT NULL) AS once,
	count(*) = (SELECT count(*) FROM rangefilter_check_database()) AS all_of_them
FROM generate_series(1, 3) part, rangefilter_check_database(false, part, 3);
SELECT * FROM rangefilter_check_database(part => 0);
SELECT * FROM rangefilter_check_database(part => 3, parts => 2);
SELECT * FROM rangefilter_check_database(parts => 0);

-- Who may check what: owners their own, others what they may check one by one.
CREATE ROLE regress_rf_checker;
GRANT USAGE ON SCHEMA rf_check TO regress_rf_checker;
GRANT SELECT ON ours TO regress_rf_checker;
ALTER TABLE t1 OWNER TO regress_rf_checker;
SET ROLE regress_rf_checker;
SELECT c.* FROM rangefilter_check_database(true) c JOIN ours ON index = oid ORDER BY index::text;
RESET ROLE;
GRANT EXECUTE ON FUNCTION wormhole_check(regclass, boolean) TO regress_rf_checker;
SET ROLE regress_rf_checker;
SELECT c.* FROM rangefilter_check_database(true) c JOIN ours ON index = oid ORDER BY index::text;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION wormhole_check(regclass, boolean) FROM regress_rf_checker;


-- Nothing stays locked.
BEGIN;
SELECT count(*) > 4 AS checked FROM rangefilter_check_database(true);
SELECT count(*) FROM pg_locks JOIN pg_class c ON relation = c.oid WHERE pid = pg_backend_pid() AND c.relnamespace = 'rf_check'::regnamespace;
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA rf_check CASCADE;
DROP ROLE regress_rf_checker;

-- With few bits a key, keys of a filter may share a position.  That is no damage.
CREATE TABLE few_bits AS SELECT hashint8extended(i, 7) AS k FROM generate_series(1, 30000) i;
CREATE INDEX few_bits_k ON few_bits USING rangefilter (k) WITH (bits_per_key = 4);
SELECT rangefilter_verify('few_bits_k');
DROP TABLE few_bits;
