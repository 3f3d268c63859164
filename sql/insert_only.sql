-- A role that may insert, but not read, does not learn from the index whether a
-- value was there: neither from its size nor from what the functions show.
CREATE SCHEMA rf_insert_only;
-- Loads leave their tail open.
SET rangefilter.autosummarize = off;
SET search_path = rf_insert_only, public;
CREATE ROLE regress_rf_writer;
CREATE ROLE regress_rf_stats;
GRANT pg_read_all_stats TO regress_rf_stats;
GRANT USAGE ON SCHEMA rf_insert_only TO regress_rf_writer, regress_rf_stats;

CREATE TABLE t (k int, s text COLLATE "C", n int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT g * 10, 's' || g * 10, NULL FROM generate_series(1, 1000) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s);
CREATE INDEX t_ks ON t USING rangefilter (k, s);
CREATE INDEX t_n ON t USING rangefilter (n);
CREATE INDEX t_w ON t USING wormhole (k);
GRANT INSERT ON t TO regress_rf_writer;

-- All there is to be seen of the rangefilter indexes.  (How large the table is, is public.)
CREATE FUNCTION seen() RETURNS text[] LANGUAGE sql AS
$$
	SELECT ARRAY(SELECT ROW(pg_relation_size(i.indexrelid), to_jsonb(s) - 'heap_blocks', a)::text
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam,
			rangefilter_status(i.indexrelid) s, rangefilter_index_activity(i.indexrelid) a
		WHERE i.indrelid = 't'::regclass AND m.amname = 'rangefilter' ORDER BY c.relname)
		|| ARRAY(SELECT rangefilter_shared_cache()::text)
$$;
-- Does it look the same after an insert?
CREATE FUNCTION unseen(k int, s text, n int) RETURNS bool LANGUAGE plpgsql AS
$$
DECLARE
	before text[] := seen();
BEGIN
	INSERT INTO t VALUES (k, s, n);
	RETURN seen() = before;
END
$$;
CREATE FUNCTION written() RETURNS TABLE (index regclass, delta_keys bigint, nulls bool) LANGUAGE sql SECURITY DEFINER AS
$$
	SELECT s.index, s.delta_keys, has_nulls FROM unnest('{t_k,t_s,t_ks,t_n}'::regclass[]) i, rangefilter_status(i) s
$$;

-- The first key after CREATE INDEX adds a page, whether it is there, is new, or NULL.
CREATE TABLE first (key int, k int) PARTITION BY LIST (key);
CREATE TABLE first_there PARTITION OF first FOR VALUES IN (1);
CREATE TABLE first_new PARTITION OF first FOR VALUES IN (2);
CREATE TABLE first_null PARTITION OF first FOR VALUES IN (3);
INSERT INTO first SELECT p, g * 10 FROM generate_series(1, 3) p, generate_series(1, 1000) g;
CREATE INDEX first_k ON first USING rangefilter (k);
SELECT relid, pg_relation_size(relid) FROM pg_partition_tree('first_k') WHERE isleaf;
INSERT INTO first VALUES (1, 10), (2, 11), (3, NULL);
SELECT relid, pg_relation_size(relid) FROM pg_partition_tree('first_k') WHERE isleaf;
-- A summarize leaves as many pages.
SELECT rangefilter_summarize('first_k') AS blocks;
SELECT relid, pg_relation_size(relid) FROM pg_partition_tree('first_k') WHERE isleaf;
DROP TABLE first;
-- From then on nothing changes.
INSERT INTO t VALUES (10, 's10', NULL);
SET ROLE regress_rf_writer;
SELECT * FROM rangefilter_status('t_k') \gx
SELECT * FROM rangefilter_index_activity('t_k') \gx
SELECT * FROM rangefilter_shared_cache();
SELECT count(*) > 0 AS some, count(entries) AS entries, count(bytes) AS bytes FROM rangefilter_session_cache();
-- A key that is there, one that is not, another, NULLs that are new and old.
SELECT unseen(10, 's10', NULL), unseen(11, 's11', 1), unseen(12, 's12', 2), unseen(NULL, NULL, NULL);
SELECT * FROM written();
-- The same behind a rollback, and once the summaries are new.
RESET ROLE;
SELECT rangefilter_summarize(i::regclass) IS NOT NULL FROM unnest('{t_k,t_s,t_ks,t_n}'::text[]) i;
SET ROLE regress_rf_writer;
BEGIN;
SELECT unseen(20, 's20', NULL), unseen(21, 's21', 3);
ROLLBACK;
SELECT unseen(30, 's30', 1), unseen(31, 's31', 4);
SELECT * FROM written();
RESET ROLE;
VACUUM t;
SET ROLE regress_rf_writer;
SELECT unseen(40, 's40', NULL), unseen(41, 's41', 5);
-- Many keys of the tail, of which one fills a page: another one comes.
SELECT count(*) FROM generate_series(1, 1000) i WHERE NOT unseen(100000 + i, NULL, NULL);
-- A bulk load opens the tail; then nothing more is to be seen.
INSERT INTO t SELECT 200000 + i, NULL, NULL FROM generate_series(1, 1100) i;
SELECT unseen(300000, NULL, NULL);
RESET ROLE;
SELECT tail_open FROM rangefilter_status('t_k');

-- Row-level security hides the same things from readers.
GRANT SELECT ON t TO regress_rf_writer;
SET ROLE regress_rf_writer;
SELECT keys > 1000 AS keys, tail_open, generation FROM rangefilter_status('t_k');
SELECT rows > 1000 AS rows FROM wormhole_status('t_w');
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON t FOR SELECT USING (k < 100);
CREATE POLICY new ON t FOR INSERT WITH CHECK (true);
VACUUM t;
SET ROLE regress_rf_writer;
SELECT filter, rows, keys, bits_per_key, summarized_blocks, tail_open, delta_keys, min, max, has_nulls, generation
	FROM rangefilter_status('t_k');
SELECT unseen(50, 's50', NULL), unseen(51, 's51', 6);
SELECT wormhole_status('t_w');
-- Members of pg_read_all_stats see statistics, no values.
SET ROLE regress_rf_stats;
SELECT filter, rows > 1000 AS rows, keys, bits_per_key, summarized_blocks > 0 AS summarized, tail_open, delta_keys, min, max, has_nulls,
	generation > 1 AS generation FROM rangefilter_status('t_k');
SELECT last_summarize IS NOT NULL AS summarized, stale_blocks FROM rangefilter_index_activity('t_k');
SELECT indexes >= 0 AS indexes, bytes >= 0 AS bytes FROM rangefilter_shared_cache();
SELECT bool_and(entries >= 0) AS entries, bool_and(bytes >= 0) AS bytes FROM rangefilter_session_cache();
RESET ROLE;

-- How many pages rangefilter_status() reads does not tell that others have inserted new keys.
CREATE TABLE q WITH (autovacuum_enabled = off) AS SELECT 2 * g AS k FROM generate_series(1, 20000) g;
CREATE INDEX q_k ON q USING rangefilter (k);
INSERT INTO q VALUES (-1);
SELECT rangefilter_summarize('q_k') IS NOT NULL AS summarized;
CREATE FUNCTION pages_read(index regclass) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	FOR i IN 1 .. 3 LOOP
		EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM rangefilter_status(%s)', index::oid) INTO plan;
	END LOOP;
	RETURN jsonb_build_array(plan #> '{0,Plan,Shared Hit Blocks}', plan #> '{0,Plan,Shared Read Blocks}');
END $$;
SET ROLE regress_rf_stats;
SELECT pages_read('q_k') AS before \gset
RESET ROLE;
INSERT INTO q VALUES (4);
SET ROLE regress_rf_stats;
SELECT pages_read('q_k') = :'before' AS same;
RESET ROLE;
INSERT INTO q VALUES (10000001);
SELECT delta_keys FROM rangefilter_status('q_k');
SET ROLE regress_rf_stats;
SELECT pages_read('q_k') = :'before' AS same;
RESET ROLE;
DROP TABLE q;

-- Where the table is empty the index is one page until a row comes, a NULL or not.
CREATE TABLE e (k int) WITH (autovacuum_enabled = off);
CREATE INDEX e_k ON e USING rangefilter (k);
SELECT pg_relation_size('e_k') / 8192 AS pages;
INSERT INTO e VALUES (NULL);
SELECT pg_relation_size('e_k') / 8192 AS pages;
INSERT INTO e VALUES (1);
SELECT pg_relation_size('e_k') / 8192 AS pages, delta_keys FROM rangefilter_status('e_k');
TRUNCATE e;
SELECT pg_relation_size('e_k') / 8192 AS pages;
INSERT INTO e VALUES (1);
SELECT pg_relation_size('e_k') / 8192 AS pages, rangefilter_verify('e_k');
SELECT rangefilter_verify(i::regclass) - (SELECT count(*) FROM t) AS lost FROM unnest('{t_k,t_s,t_ks,t_n}'::text[]) i;

DROP TABLE t, e;
DROP FUNCTION seen, unseen, written, pages_read;
DROP SCHEMA rf_insert_only;
DROP ROLE regress_rf_writer, regress_rf_stats;
