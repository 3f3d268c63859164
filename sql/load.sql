--
-- A bulk load ends with its index summarized
--
CREATE SCHEMA rf_load;
SET search_path = rf_load, public;
\pset format unaligned
CREATE ROLE regress_load_owner;
CREATE ROLE regress_load_user;
GRANT USAGE ON SCHEMA rf_load TO regress_load_owner, regress_load_user;
-- the functions of indexes run once more when one is summarized
CREATE SEQUENCE calls;
GRANT ALL ON calls TO regress_load_owner;
CREATE FUNCTION key(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
BEGIN
	IF k = -1 AND nextval('rf_load.calls') > 1 THEN
		RAISE 'the load''s end fails';
	END IF;
	RETURN k;
END
$$;
CREATE FUNCTION state(index regclass) RETURNS TABLE (tail_open bool, rows bigint, delta bigint, generation bigint)
LANGUAGE sql AS 'SELECT tail_open, rows, delta_keys, generation FROM rangefilter_status(index)';
CREATE TABLE t (part int, k int) PARTITION BY LIST (part);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1) WITH (autovacuum_enabled = off);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING rangefilter (k);

-- Into an empty partition, into both, and more into one.
INSERT INTO t SELECT 1, g FROM generate_series(1, 5000) g;
SELECT * FROM state('t1_k_idx');
INSERT INTO t SELECT 1 + g % 2, g FROM generate_series(10001, 14000) g;
SELECT * FROM state('t1_k_idx') UNION ALL SELECT * FROM state('t2_k_idx');
COPY t2 FROM PROGRAM 'seq 1 300 | sed ''s/\(.*\)/2\t2\1/''';
SELECT * FROM state('t2_k_idx');
SELECT count(*) FROM rangefilter_status('t_k') WHERE rangefilter_may_contain(index, 20000, 99999);
SELECT count(*) FROM t WHERE k BETWEEN 2295 AND 2999;

-- Fewer rows go to the delta; how many those are grows with the table.
INSERT INTO t1 SELECT 1, g FROM generate_series(20001, 20190) g;
SELECT * FROM state('t1_k_idx');
CREATE TABLE large (k int) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT g FROM generate_series(1, 100000) g;
CREATE INDEX large_k ON large USING rangefilter (k);
INSERT INTO large SELECT g FROM generate_series(100001, 100350) g;
SELECT * FROM state('large_k');
INSERT INTO large SELECT g FROM generate_series(100351, 100800) g;
SELECT * FROM state('large_k');

-- Updates load, too.
UPDATE t2 SET k = k + 50000;
SELECT tail_open, rows >= 2300 AS rows FROM state('t2_k_idx');

-- Left to a worker, which this server does not have; the next load closes it.
SET rangefilter.autosummarize = worker;
INSERT INTO t SELECT 1, g FROM generate_series(25001, 25900) g;
SELECT tail_open FROM state('t1_k_idx');
SET rangefilter.autosummarize = true;
SHOW rangefilter.autosummarize;
INSERT INTO t SELECT 1, g FROM generate_series(25901, 26800) g;
SELECT tail_open FROM state('t1_k_idx');
SET rangefilter.autosummarize = sometimes;
RESET rangefilter.autosummarize;

-- Transactions of several statements, some of them undone: before 17 they leave the
-- tail open.
SELECT current_setting('server_version_num')::int < 170000 AS left_open \gset
BEGIN;
INSERT INTO t1 SELECT 1, g FROM generate_series(30001, 30900) g;
SAVEPOINT a;
INSERT INTO t1 SELECT 1, g FROM generate_series(30301, 30900) g;
ROLLBACK TO a;
INSERT INTO t2 SELECT 2, g FROM generate_series(30601, 31500) g;
COMMIT;
SELECT tail_open = :'left_open'::bool AS as_expected FROM state('t1_k_idx') UNION ALL SELECT tail_open = :'left_open'::bool FROM state('t2_k_idx');
VACUUM t;

-- A statement of few keys is no load: its end summarizes nothing.
INSERT INTO t1 VALUES (1, 31901);
SELECT delta_keys, tail_open FROM rangefilter_status('t1_k_idx');
-- Nor does that of many of these, even if it is time to: that is a worker's business.
CREATE TABLE trickle (k int) WITH (autovacuum_enabled = off);
CREATE INDEX trickle_k ON trickle USING rangefilter (k);
DO 'BEGIN FOR i IN 1 .. 300 LOOP INSERT INTO trickle VALUES (i); END LOOP; END';
SELECT tail_open, rows, delta FROM state('trickle_k');
VACUUM t;

-- One that fails leaves the tail open, for the next load.
INSERT INTO t1 SELECT 1, g / (g - 33000) FROM generate_series(32001, 33000) g;
SELECT tail_open FROM state('t1_k_idx');
INSERT INTO t1 SELECT 1, g FROM generate_series(32001, 32300) g;
SELECT tail_open FROM state('t1_k_idx');

-- An error at its end is none of the load's.
CREATE TABLE failing (k int) WITH (autovacuum_enabled = off);
CREATE INDEX failing_k ON failing USING rangefilter (rf_load.key(k));
ALTER TABLE failing OWNER TO regress_load_owner;
SET ROLE regress_load_owner;
INSERT INTO failing SELECT g FROM generate_series(-1, 500) g;
SELECT tail_open FROM state('failing_k');
SELECT count(*), min(k), (SELECT last_value FROM pg_sequences WHERE sequencename = 'calls') AS calls FROM failing;
DELETE FROM failing WHERE k = -1;
VACUUM failing;
INSERT INTO failing SELECT g FROM generate_series(501, 1000) g;
SELECT tail_open FROM state('failing_k');
RESET ROLE;

-- What the table's owner may is none of another user's business: functions that run as
-- the owner would find what this user has put in their way.
CREATE FUNCTION helper(k int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT k';
CREATE FUNCTION careless(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN helper(k); END';
CREATE TABLE owned (k int, l int) WITH (autovacuum_enabled = off);
CREATE INDEX owned_expression ON owned USING rangefilter (careless(k));
CREATE INDEX owned_partial ON owned USING rangefilter (l) WHERE careless(k) > 0;
CREATE INDEX owned_l ON owned USING rangefilter (l);
ALTER TABLE owned OWNER TO regress_load_owner;
GRANT INSERT ON owned TO regress_load_user;
CREATE SCHEMA regress_load_user AUTHORIZATION regress_load_user;
SET ROLE regress_load_user;
GRANT USAGE ON SCHEMA regress_load_user TO PUBLIC;
CREATE FUNCTION regress_load_user.helper(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
BEGIN
	IF current_user <> 'regress_load_user' AND k = 7 THEN
		RAISE WARNING 'runs as %', current_user;
	END IF;
	RETURN k;
END
$$;
SET search_path = regress_load_user;
INSERT INTO rf_load.owned SELECT g, g FROM generate_series(1, 3000) g;
RESET ROLE;
SET search_path = rf_load, public;
SELECT i, tail_open FROM unnest('{owned_expression,owned_partial,owned_l}'::regclass[]) i, state(i);

-- Indexes that come and go meanwhile, and temporary ones.
BEGIN;
CREATE TABLE gone (k int);
CREATE INDEX gone_k ON gone USING rangefilter (k);
INSERT INTO gone SELECT g FROM generate_series(1, 1000) g;
DROP INDEX gone_k;
CREATE INDEX gone_k ON gone USING rangefilter (k);
INSERT INTO gone SELECT g FROM generate_series(1, 1000) g;
TRUNCATE gone;
INSERT INTO gone SELECT g FROM generate_series(1, 1000) g;
COMMIT;
SELECT tail_open = :'left_open'::bool AS as_expected FROM state('gone_k');
CREATE TEMP TABLE temporary (k int) ON COMMIT DELETE ROWS;
CREATE INDEX temporary_k ON temporary USING rangefilter (k);
INSERT INTO temporary SELECT g FROM generate_series(1, 1000) g;
SELECT count(*) FROM temporary;

-- Functions of an index leave nothing behind, and a cancel no broken transaction.
CREATE FUNCTION cancel_itself() RETURNS bool SECURITY DEFINER LANGUAGE sql AS 'SELECT pg_cancel_backend(pg_backend_pid())';
CREATE FUNCTION evil(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
DECLARE
	c refcursor;
BEGIN
	IF k % 3000 <> 7 OR nextval('rf_load.calls') % 2 = 1 THEN
		RETURN k;
	ELSIF current_setting('test.evil', true) = 'portal' THEN
		OPEN c FOR SELECT relname FROM pg_class;
		MOVE NEXT FROM c;
	ELSIF current_setting('test.evil', true) = 'cancel' THEN
		PERFORM rf_load.cancel_itself();
		PERFORM pg_sleep(0.01);
	END IF;
	RETURN k;
END
$$;
CREATE TABLE evil (k int) WITH (autovacuum_enabled = off);
CREATE INDEX evil_k ON evil USING rangefilter (rf_load.evil(k));
ALTER TABLE evil OWNER TO regress_load_owner;
SET ROLE regress_load_owner;
SELECT setval('calls', 2) > 0 AS even;
SET test.evil = 'portal';
INSERT INTO evil SELECT g FROM generate_series(1, 3000) g;
SELECT count(*) FROM pg_cursors;
SELECT count(*), (SELECT tail_open FROM state('evil_k')) FROM evil;
SET test.evil = 'cancel';
INSERT INTO evil SELECT g FROM generate_series(3001, 6000) g;
SELECT 'the session works' AS is;
SELECT count(*), (SELECT tail_open FROM state('evil_k')) FROM evil;
RESET ROLE;

-- Triggers that COMMIT has waited for leave it to the worker.
CREATE TABLE late (n int);
CREATE FUNCTION load_late() RETURNS trigger LANGUAGE plpgsql AS
$$
BEGIN
	INSERT INTO rf_load.t1 SELECT 1, g FROM generate_series(NEW.n, NEW.n + 600) g;
	RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION load_late();
BEGIN;
INSERT INTO late VALUES (38000);
COMMIT;
SELECT tail_open FROM state('t1_k_idx');
INSERT INTO late VALUES (39000);
SELECT tail_open FROM state('t1_k_idx');

-- Not where nobody wants it.
ALTER INDEX t1_k_idx SET (autosummarize = off);
INSERT INTO t1 SELECT 1, g FROM generate_series(40001, 40600) g;
SELECT tail_open FROM state('t1_k_idx');
ALTER INDEX t1_k_idx RESET (autosummarize);
SET rangefilter.autosummarize = off;
INSERT INTO t1 SELECT 1, g FROM generate_series(40601, 41200) g;
SELECT tail_open FROM state('t1_k_idx');
RESET rangefilter.autosummarize;
INSERT INTO t1 SELECT 1, g FROM generate_series(41201, 41800) g;
SELECT tail_open FROM state('t1_k_idx');

SELECT rangefilter_verify('t_k') > 0 AS verified;
SET client_min_messages = warning;
DROP SCHEMA rf_load, regress_load_user CASCADE;
DROP ROLE regress_load_owner, regress_load_user;
