--
-- The SQL functions: answers, arguments, wrong arguments, privileges
--
CREATE SCHEMA rf_functions;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_functions, public;

\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir /sql/lib/versions.sql
\set ECHO none
\i :helpers
\set ECHO all

CREATE TABLE t (k int, other int, b text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g * 10, g, 'b' || g FROM generate_series(1, 100) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE INDEX t_btree ON t (k);
CREATE INDEX t_expr ON t USING rangefilter ((k + other));
CREATE INDEX t_part ON t USING rangefilter (k) WHERE other > 50;
CREATE TABLE p (k int) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (1000) TO (2000);
CREATE INDEX p_k ON p USING rangefilter (k);
CREATE INDEX p_btree ON p (k);
INSERT INTO p VALUES (1), (500), (1500);

--
-- may_contain and partitions
--
SELECT lo, hi, rangefilter_may_contain('t_k', lo, hi)
FROM (VALUES (10, 10), (11, 19), (11, 20), (1, 9), (1, 10), (1000, 1001), (1001, 2000),
	(NULL, 9), (NULL, 10), (1000, NULL), (1001, NULL), (NULL, NULL), (20, 10), (11, 9)) v (lo, hi);
SELECT rangefilter_may_contain('t_b', 'b5', 'b5'), rangefilter_may_contain('t_b', 'b5 ', 'b50'),
	rangefilter_may_contain('t_b', 'c', NULL), rangefilter_may_contain('t_b', '', 'b');
-- The index may be given as its name, as an OID, in a schema, or as nothing.
SELECT rangefilter_may_contain('rf_functions.t_k', 10, 10),
	rangefilter_may_contain('t_k'::regclass::oid, 10, 10),
	rangefilter_may_contain(NULL, 10, 10);
-- Constants find a common type, and it need not be the column's.
SELECT rangefilter_may_contain('t_k', 10, 10::bigint), rangefilter_may_contain('t_k', '10', '15'),
	rangefilter_may_contain('t_k', 10.0::float8, 10), rangefilter_may_contain('t_k', NULL, 9::smallint);
SELECT rangefilter_may_contain('t_k', 'ten', 'ten');
SELECT rangefilter_may_contain('t_k', 1.5, 2.5);
SELECT refused($$SELECT rangefilter_may_contain('t_k', 10, now())$$);
-- Functions of an index run as its owner, but not with the search path of a user who may only check it.
CREATE ROLE regress_rf_check;
CREATE FUNCTION seen_path(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '% in %', current_user <> 'regress_rf_check', current_setting('search_path');
	RETURN lower($1);
END $$;
CREATE TABLE checked (t text COLLATE "C");
INSERT INTO checked VALUES ('A');
SET client_min_messages = warning;
CREATE INDEX checked_r ON checked USING rangefilter (seen_path(t));
CREATE INDEX checked_w ON checked USING wormhole (seen_path(t));
GRANT USAGE ON SCHEMA rf_functions TO regress_rf_check;
GRANT EXECUTE ON FUNCTION rangefilter_verify(regclass, boolean), wormhole_check(regclass, boolean) TO regress_rf_check;
SET ROLE regress_rf_check;
RESET client_min_messages;
SELECT rangefilter_verify('checked_r');
SELECT wormhole_check('checked_w', true);
RESET ROLE;
SET client_min_messages = warning;
DROP TABLE checked;
REVOKE EXECUTE ON FUNCTION rangefilter_verify(regclass, boolean), wormhole_check(regclass, boolean) FROM regress_rf_check;
DROP OWNED BY regress_rf_check;
DROP ROLE regress_rf_check;
DROP FUNCTION seen_path;
RESET client_min_messages;
-- bounds of other types that are rounded leave no row out
CREATE TABLE rounded (d date, n int, f float4, c text COLLATE "C", x numeric);
INSERT INTO rounded VALUES ('2020-01-01', 9, 0.1, 'a', 0.123456789);
CREATE INDEX rounded_d ON rounded USING rangefilter (d, n);
CREATE INDEX rounded_f ON rounded USING rangefilter (f, n);
CREATE INDEX rounded_c ON rounded USING rangefilter (c);
CREATE INDEX rounded_x ON rounded USING rangefilter (x);
SET extra_float_digits = -12;
SELECT rangefilter_may_contain('rounded_d', '2019-01-01'::timestamp, '2020-01-01 12:00'::timestamp),
	rangefilter_may_contain('rounded_f', 0.1::float8, 1::float8),
	rangefilter_may_contain('rounded_c', 'a'::char(4), 'a'::char(4)),
	rangefilter_may_contain('rounded_x', 0.123456::float8, 0.1234568::float8);
-- ... and those that are not, still do
SELECT rangefilter_may_contain('rounded_d', '2020-01-02'::text, '2020-01-05'::text),
	rangefilter_may_contain('rounded_c', 'b'::char(4), 'c'::varchar),
	rangefilter_may_contain('rounded_x', 0, 0.1), rangefilter_may_contain('rounded_x', 0.2::text, NULL);
RESET extra_float_digits;
-- many numerics equal a floating-point number
INSERT INTO rounded (x) VALUES (0.09999999999999999999);
SELECT rangefilter_may_contain('rounded_x', 0.1::float8, 0.12::float8);
DROP TABLE rounded;
SELECT rangefilter_may_contain('t_k', point(1, 1), NULL);
SELECT rangefilter_may_contain('t_k', ARRAY[1], NULL);
SELECT rangefilter_may_contain('t_b', E'\\xdead'::bytea, NULL);

SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, 500, 500);
SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, 500, 1500);
SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, 501, 1499);
SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, NULL, 1);
SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, 1501, NULL::int);
SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, NULL, NULL);
SELECT "table" FROM rangefilter_status('p_k') WHERE rangefilter_may_contain(index, 1500, 1);
SELECT "table" FROM rangefilter_status('p1_k_idx') WHERE rangefilter_may_contain(index, 500, 500);
SELECT "table" FROM rangefilter_status('t_k') WHERE rangefilter_may_contain(index, 10, 10);
SELECT rangefilter_may_contain('p_k', 500, 500), rangefilter_may_contain('p_k', 501, 1499);

--
-- status
--
SELECT index, "table", filter, rows, keys, bits_per_key > 0 AS bits,
	size_bytes = pg_relation_size(index) AS size, heap_blocks = summarized_blocks AS blocks,
	tail_open, delta_keys, min, max, has_nulls, generation
FROM rangefilter_status('t_k');
SELECT index, "table", rows, keys, summarized_blocks, delta_keys, min, max, generation
FROM rangefilter_status('p_k');
SELECT index FROM rangefilter_status('p2_k_idx');
SELECT * FROM rangefilter_status(NULL);
-- The figures are the real ones: all pages but the metapage, over all keys.
CREATE TABLE many AS SELECT hashint8extended(g, 1) AS k FROM generate_series(1, 20000) g;
CREATE INDEX many_k ON many USING rangefilter (k);
SELECT bits_per_key = round((size_bytes / 8192 - 1) * 8192 * 8 / keys::numeric, 1)::float8 AS real
FROM rangefilter_status('many_k');
DROP TABLE many;

--
-- summarize
--
SELECT rangefilter_summarize('p_k');
SELECT rangefilter_summarize('p_k');
SELECT rangefilter_summarize('p1_k_idx');
SELECT rangefilter_summarize(NULL);
INSERT INTO p SELECT generate_series(2, 400);
SELECT index, tail_open, delta_keys FROM rangefilter_status('p_k');
SELECT rangefilter_summarize('p_k') > 0;
SELECT index, tail_open, delta_keys, keys, generation FROM rangefilter_status('p_k');
-- In a transaction that is rolled back, too: it only says what is true anyway.
BEGIN;
INSERT INTO p VALUES (1999);
SELECT rangefilter_summarize('p2_k_idx');
ROLLBACK;
SELECT index, keys, delta_keys, max FROM rangefilter_status('p2_k_idx');

--
-- verify
--
SELECT rangefilter_verify('t_k'), rangefilter_verify('t_b'), rangefilter_verify('t_expr'),
	rangefilter_verify('t_part'), rangefilter_verify('p1_k_idx'), rangefilter_verify(NULL);
SELECT rangefilter_verify('p_k') >= 402 AS verified;

--
-- Relations of another kind
--
CREATE VIEW v AS SELECT * FROM t;
CREATE SEQUENCE s;
DO $$
DECLARE
	call text;
	rel text;
BEGIN
	FOREACH rel IN ARRAY ARRAY['t', 't_btree', 'p', 'p_btree', 'v', 's'] LOOP
		FOREACH call IN ARRAY ARRAY['rangefilter_status(%L)', 'rangefilter_summarize(%L)',
			'rangefilter_verify(%L)', 'rangefilter_may_contain(%L, 1, 1)']
		LOOP
			BEGIN
				EXECUTE 'SELECT ' || format(call, rel);
				RAISE NOTICE '% works', format(call, rel);
			EXCEPTION WHEN wrong_object_type THEN
				RAISE NOTICE '%: %', format(call, rel), sqlerrm;
			END;
		END LOOP;
	END LOOP;
END
$$;
SELECT rangefilter_status('t_btree');
SELECT rangefilter_status('no_such_index');
SELECT rangefilter_status(0::regclass);
SELECT rangefilter_status(4294967295::oid::regclass);
DROP VIEW v;
-- An index that is no use: everything may be there; nothing to verify.
CREATE TABLE broken (k int);
INSERT INTO broken VALUES (1), (1);
CREATE INDEX broken_k ON broken USING rangefilter (k);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'broken_k'::regclass;
SELECT rangefilter_may_contain('broken_k', 5, 5), rangefilter_summarize('broken_k');
SELECT rangefilter_verify('broken_k');
INSERT INTO broken VALUES (5);
REINDEX INDEX broken_k;
SELECT rangefilter_may_contain('broken_k', 5, 5), rangefilter_may_contain('broken_k', 6, 6);
SELECT rangefilter_verify('broken_k');

--
-- Privileges
--
CREATE ROLE regress_rf_owner;
CREATE ROLE regress_rf_reader;
CREATE ROLE regress_rf_other;
GRANT USAGE ON SCHEMA rf_functions TO regress_rf_owner, regress_rf_reader, regress_rf_other;
ALTER TABLE t OWNER TO regress_rf_owner;
ALTER TABLE p OWNER TO regress_rf_owner;
GRANT SELECT (k) ON t TO regress_rf_reader;
GRANT SELECT ON p TO regress_rf_reader;

SET ROLE regress_rf_owner;
SELECT rangefilter_may_contain('t_k', 10, 10), rangefilter_summarize('t_k');
SELECT min, max FROM rangefilter_status('t_k');
SELECT rangefilter_verify('t_k');
-- The partitions have an owner of their own.
SELECT rangefilter_summarize('p_k');

SET ROLE regress_rf_reader;
SELECT rangefilter_may_contain('t_k', 10, 10), min, max, has_nulls, keys
FROM rangefilter_status('t_k');
-- Not the column it may read, or more than that column.
SELECT rangefilter_may_contain('t_b', 'b1', 'b1');
SELECT rangefilter_may_contain('t_expr', 11, 11);
SELECT rangefilter_may_contain('t_part', 510, 510);
SELECT index, min, max, has_nulls, keys, bits_per_key, delta_keys, rows
FROM rangefilter_status('t_b')
UNION ALL SELECT index, min, max, has_nulls, keys, bits_per_key, delta_keys, rows
FROM rangefilter_status('t_part');
SELECT rangefilter_summarize('t_k');
SELECT rangefilter_verify('t_k');
-- Through the parent, the parent's privileges count; directly, the partition's.
SELECT rangefilter_may_contain('p_k', 500, 1500);
SELECT rangefilter_may_contain('p1_k_idx', 500, 500);

SET ROLE regress_rf_other;
SELECT rangefilter_may_contain('t_k', 10, 10);
SELECT rangefilter_may_contain('p_k', 10, 10);
SELECT index, rows, min, max, keys, delta_keys FROM rangefilter_status('t_k');
SELECT rangefilter_summarize('t_k');
SELECT rangefilter_verify('t_k');
RESET ROLE;
GRANT EXECUTE ON FUNCTION rangefilter_verify(regclass, boolean) TO regress_rf_other;
SET ROLE regress_rf_other;
SELECT rangefilter_verify('t_k');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION rangefilter_verify(regclass, boolean) FROM regress_rf_other;

-- Row-level security: for whom it applies, the functions tell nothing.
GRANT SELECT, INSERT ON t TO regress_rf_reader;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY small ON t FOR SELECT USING (k < 100);
CREATE POLICY put ON t FOR INSERT WITH CHECK (true);
SET ROLE regress_rf_reader;
SELECT count(*) FROM t;
SELECT rangefilter_may_contain('t_k', 500, 500);
SELECT min, max, has_nulls, keys, delta_keys FROM rangefilter_status('t_k');
SET row_security = off;
SELECT rangefilter_may_contain('t_k', 500, 500);
RESET row_security;
-- The owner is not bound by it, unless forced.
SET ROLE regress_rf_owner;
SELECT rangefilter_may_contain('t_k', 500, 500);
ALTER TABLE t FORCE ROW LEVEL SECURITY;
SELECT rangefilter_may_contain('t_k', 500, 500);
SELECT rangefilter_summarize('t_k');
RESET ROLE;
SELECT rangefilter_may_contain('t_k', 500, 500);

-- Index expressions run as the table's owner, locked in, and what they set
-- does not stay.
CREATE FUNCTION spy() RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	RAISE NOTICE 'running as %, work_mem %', current_user, current_setting('work_mem');
	BEGIN
		CREATE TEMP TABLE trap (a int);
	EXCEPTION WHEN insufficient_privilege THEN
		RAISE NOTICE '%', sqlerrm;
	END;
	PERFORM set_config('work_mem', '123kB', false);
END
$$;
CREATE FUNCTION whoami(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN k; END $$;
CREATE TABLE who (k int) WITH (autovacuum_enabled = off);
ALTER TABLE who OWNER TO regress_rf_owner;
CREATE INDEX who_k ON who USING rangefilter (rf_functions.whoami(k));
INSERT INTO who VALUES (77);
CREATE OR REPLACE FUNCTION whoami(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN PERFORM rf_functions.spy(); RETURN k; END $$;
SET work_mem = '4MB';
SELECT rangefilter_summarize('who_k');
SELECT rangefilter_verify('who_k');
SELECT current_user = session_user AS same_user, current_setting('work_mem') AS work_mem,
	to_regclass('trap');
RESET work_mem;

-- An expression that, when the scan of a summarize has come to the last row,
-- adds another, and then summarizes the same index, or fails to.  What that
-- took off the delta is not in the outer one's summary.
CREATE FUNCTION nested(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$
DECLARE
	what text := current_setting('rf_functions.nest', true);
BEGIN
	IF k = 1000 AND what <> '' THEN
		PERFORM rf_functions.nest(what);
	END IF;
	RETURN k;
END
$$;
CREATE FUNCTION nest(what text) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	IF what = 'fail' THEN
		RAISE EXCEPTION 'as asked';
	END IF;
	PERFORM set_config('rf_functions.nest', CASE what WHEN 'try' THEN 'fail' ELSE '' END, true);
	INSERT INTO rf_functions.nest VALUES (5000);
	BEGIN
		PERFORM public.rangefilter_summarize('rf_functions.nest_k');
	EXCEPTION WHEN raise_exception THEN
		RAISE NOTICE 'failed %', sqlerrm;
	END;
	PERFORM set_config('rf_functions.nest', '', true);
END
$$;
CREATE TABLE nest (k int) WITH (autovacuum_enabled = off);
INSERT INTO nest SELECT generate_series(1, 10);
CREATE INDEX nest_k ON nest USING rangefilter (nested(k));
INSERT INTO nest SELECT generate_series(11, 1000);
SET rf_functions.nest = 'do';
SELECT rangefilter_summarize('nest_k');
RESET rf_functions.nest;
SELECT rangefilter_verify('nest_k');
INSERT INTO nest VALUES (2000);
SET rf_functions.nest = 'try';
SELECT rangefilter_summarize('nest_k');
RESET rf_functions.nest;
SELECT rangefilter_verify('nest_k');
SELECT rangefilter_summarize('nest_k') >= 0;
SELECT rangefilter_verify('nest_k'), keys FROM rangefilter_status('nest_k');

--
-- A function that is not immutable
--
CREATE FUNCTION drifts(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN k + coalesce(nullif(current_setting('rf_functions.drift', true), ''), '0')::int; END $$;
CREATE TABLE drift (k int);
INSERT INTO drift SELECT generate_series(1, 100);
CREATE INDEX drift_r ON drift USING rangefilter (drifts(k));
CREATE INDEX drift_w ON drift USING wormhole (drifts(k));
SELECT rangefilter_verify('drift_r'), wormhole_check('drift_w', true);
SET rf_functions.drift = 1000000;
SELECT rangefilter_verify('drift_r');
SELECT wormhole_check('drift_w', true);
RESET rf_functions.drift;

--
-- Where they may be called
--
BEGIN READ ONLY;
SELECT rangefilter_may_contain('t_k', 10, 10), rangefilter_verify('t_k') >= 100;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT rangefilter_may_contain('t_k', 11, 11);
SELECT mode, locktype, relation::regclass FROM pg_locks
WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND relation = 't_k'::regclass;
COMMIT;
-- Locks on table and index are kept by summarize alone.
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT rangefilter_may_contain('t_k', 10, 10), (SELECT count(*) FROM rangefilter_status('t_k')),
	rangefilter_verify('t_k') >= 100;
SELECT relation::regclass, mode FROM pg_locks
WHERE pid = pg_backend_pid() AND relation IN ('t'::regclass, 't_k'::regclass);
SELECT rangefilter_summarize('t_k');
SELECT relation::regclass, mode FROM pg_locks
WHERE pid = pg_backend_pid() AND relation IN ('t'::regclass, 't_k'::regclass) ORDER BY 1;
COMMIT;

SET client_min_messages = warning;
DROP SCHEMA rf_functions CASCADE;
DROP ROLE regress_rf_owner, regress_rf_reader, regress_rf_other;
