--
-- Prepared transactions
--
-- twophase_1.out is for servers that allow none.
SELECT current_setting('max_prepared_transactions') = '0' AS skip_test \gset
\if :skip_test
\quit
\endif
CREATE SCHEMA rf_twophase;
SET search_path = rf_twophase, public;
CREATE TABLE t (k int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT generate_series(1, 100);
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE FUNCTION has(k int) RETURNS boolean LANGUAGE sql AS
$$ SELECT rangefilter_may_contain('t_k', k, k) $$;

-- The index knows the rows from the moment they are inserted ...
BEGIN;
INSERT INTO t VALUES (1000);
UPDATE t SET k = 2000 WHERE k = 1;
PREPARE TRANSACTION 'rf_commit';
BEGIN;
INSERT INTO t VALUES (3000);
DELETE FROM t WHERE k = 2;
PREPARE TRANSACTION 'rf_rollback';
SELECT has(1000), has(2000), has(3000), has(1), has(2);
-- ... and a summarize sees them while nobody knows how they will end.
INSERT INTO t SELECT generate_series(10001, 12000);
VACUUM t;
SELECT has(1000), has(2000), has(3000), has(4000), tail_open, delta_keys
FROM rangefilter_status('t_k');
COMMIT PREPARED 'rf_commit';
ROLLBACK PREPARED 'rf_rollback';
SELECT count(*), count(*) FILTER (WHERE NOT has(k)) AS denied FROM t;
SELECT rangefilter_verify('t_k') >= 2101 AS verified;

-- An index made in one, with a row of its own.
BEGIN;
CREATE INDEX t_k2 ON t USING rangefilter (k);
INSERT INTO t VALUES (5000);
PREPARE TRANSACTION 'rf_index';
COMMIT PREPARED 'rf_index';
SELECT rangefilter_may_contain('t_k2', 5000, 5000), rangefilter_may_contain('t_k2', 5001, 6000),
	rangefilter_verify('t_k2') >= 2102 AS verified;
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (6000);
PREPARE TRANSACTION 'rf_truncate';
ROLLBACK PREPARED 'rf_truncate';
SELECT has(5000), has(6000), rangefilter_verify('t_k') >= 2102 AS verified;
BEGIN;
SELECT rangefilter_summarize('t_k') >= 0;
PREPARE TRANSACTION 'rf_summarize';
ROLLBACK PREPARED 'rf_summarize';
SELECT has(5000), rangefilter_verify('t_k') >= 2102 AS verified;

-- Who may not summarize does not wait for a lock on the table, nor keeps others from one.
CREATE ROLE regress_rf_twophase;
GRANT USAGE ON SCHEMA rf_twophase TO regress_rf_twophase;
BEGIN;
LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE;
PREPARE TRANSACTION 'rf_locked';
SET lock_timeout = '1s';
SET ROLE regress_rf_twophase;
SELECT rangefilter_summarize('t_k');
RESET ROLE;
RESET lock_timeout;
ROLLBACK PREPARED 'rf_locked';
REVOKE USAGE ON SCHEMA rf_twophase FROM regress_rf_twophase;
DROP ROLE regress_rf_twophase;

-- A bulk load that is prepared.
BEGIN;
INSERT INTO t SELECT generate_series(20001, 21000);
PREPARE TRANSACTION 'rf_load';
SELECT has(20500), has(30000) = tail_open AS open_until_17 FROM rangefilter_status('t_k');
COMMIT PREPARED 'rf_load';
SELECT count(*) FROM t WHERE k BETWEEN 20500 AND 30000;

-- Of rows in progress a summarize keeps one row's large values in memory, not those of a page.
CREATE TABLE documents (doc text);
ALTER TABLE documents ALTER doc SET STORAGE EXTERNAL;
CREATE INDEX documents_doc ON documents USING rangefilter (left(doc, 20));
BEGIN;
INSERT INTO documents SELECT g || repeat('x', 8000000) FROM generate_series(1, 32) g;
PREPARE TRANSACTION 'rf_documents';
\c -
SET search_path = rf_twophase, public;
SELECT rangefilter_summarize('documents_doc') >= 0;
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+) kB')::int < 450000 AS small;
ROLLBACK PREPARED 'rf_documents';

SET client_min_messages = warning;
DROP SCHEMA rf_twophase CASCADE;
