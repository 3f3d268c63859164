--
-- What CREATE EXTENSION rangefilter brings: functions, operator classes,
-- options, privileges
--
BEGIN;
SELECT plan(144);
SET search_path = public;

SELECT has_extension('rangefilter');
SELECT is(amtype::text || ' ' || amhandler::text, 'i rangefilter_handler', 'the access method')
FROM pg_am WHERE amname = 'rangefilter';
SELECT is((SELECT count(*)::int FROM pg_depend d
		JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
		WHERE e.extname = 'rangefilter' AND d.deptype = 'e' AND d.classid = 'pg_opclass'::regclass),
	(SELECT count(*)::int FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
		WHERE a.amname IN ('rangefilter', 'wormhole')),
	'all operator classes belong to the extension');

--
-- Functions
--
SELECT has_function('rangefilter_status', ARRAY['regclass']);
SELECT has_function('rangefilter_may_contain', ARRAY['regclass', 'anycompatible', 'anycompatible']);
SELECT has_function('rangefilter_summarize', ARRAY['regclass']);
SELECT has_function('rangefilter_verify', ARRAY['regclass', 'boolean']);
SELECT has_function('rangefilter_check_database', ARRAY['boolean', 'integer', 'integer']);
SELECT has_function('rangefilter_index_activity', ARRAY['regclass']);
SELECT has_function('rangefilter_activity_reset', ARRAY['regclass']);
SELECT has_function('rangefilter_advise', ARRAY['regclass', 'name']);
SELECT has_function('rangefilter_shared_cache', ARRAY[]::name[]);
SELECT results_eq('SELECT indexes, bytes FROM rangefilter_shared_cache()', 'VALUES (0::bigint, 0::bigint)',
	'nothing is shared where the server has not loaded the library');
SELECT has_function('rangefilter_session_cache', ARRAY[]::name[]);
SELECT function_returns('rangefilter_session_cache', 'setof record');
SELECT bag_eq('SELECT what FROM rangefilter_session_cache()',
	$$ VALUES ('tables'), ('copies'), ('digests'), ('tracks'), ('counters'), ('wormhole hints') $$,
	'what a session keeps');
SELECT function_returns('rangefilter_status', 'setof rangefilter_status_row');
SELECT function_returns('rangefilter_may_contain', 'boolean');
SELECT function_returns('rangefilter_summarize', 'bigint');
SELECT function_returns('rangefilter_verify', 'bigint');
SELECT function_returns('rangefilter_check_database', 'setof record');
SELECT function_returns('rangefilter_activity_reset', 'void');
SELECT bag_eq(
	$$ SELECT proname::text || CASE WHEN proisstrict THEN ' strict' ELSE '' END FROM pg_proc
		WHERE proname LIKE 'rangefilter\_%' AND proname <> 'rangefilter_handler' $$,
	$$ VALUES ('rangefilter_status strict'), ('rangefilter_may_contain'), ('rangefilter_summarize strict'), ('rangefilter_verify strict'),
		('rangefilter_advise strict'), ('rangefilter_index_activity strict'), ('rangefilter_activity_reset'),
		('rangefilter_shared_cache strict'), ('rangefilter_session_cache strict'), ('rangefilter_check_database strict') $$,
	'no other functions; NULL bounds and no index have a meaning');
-- What they say changes with the data.
SELECT volatility_is(f, 'volatile') FROM unnest('{rangefilter_status,rangefilter_may_contain,
	rangefilter_summarize,rangefilter_verify,
	rangefilter_index_activity,rangefilter_activity_reset,rangefilter_advise,rangefilter_shared_cache,
	rangefilter_session_cache,rangefilter_check_database}'::name[]) f;
SELECT is_empty($$ SELECT proname FROM pg_proc
	WHERE proname LIKE 'rangefilter\_%' AND proparallel = 's' AND prorettype <> 'index_am_handler'::regtype $$,
	'none runs in a parallel worker');
SELECT columns_are('rangefilter_status_row', ARRAY['index', 'table', 'filter', 'rows', 'keys',
	'bits_per_key', 'size_bytes', 'heap_blocks', 'summarized_blocks', 'tail_open', 'delta_keys',
	'min', 'max', 'has_nulls', 'generation', 'levels', 'level_keys', 'level_pages', 'suffix',
	'equality_bits']);
SELECT col_type_is('rangefilter_status_row', c, t, c || ' ' || t)
FROM (VALUES ('index', 'regclass'), ('table', 'regclass'), ('filter', 'text'), ('rows', 'bigint'),
	('keys', 'bigint'), ('bits_per_key', 'double precision'), ('size_bytes', 'bigint'),
	('heap_blocks', 'bigint'), ('summarized_blocks', 'bigint'), ('tail_open', 'boolean'),
	('delta_keys', 'bigint'), ('min', 'text'), ('max', 'text'), ('has_nulls', 'boolean'),
	('generation', 'bigint'), ('levels', 'integer'), ('level_keys', 'bigint'), ('level_pages', 'bigint'),
	('suffix', 'text'), ('equality_bits', 'double precision')) v (c, t);
SELECT function_returns('rangefilter_advise', 'record');
SELECT is(proargnames::text, '{table,column,worthwhile,advice,partitions,filter_bytes,btree_bytes,'
	'skipped_by_points,skipped_by_ranges_1ppm,skipped_by_ranges_100ppm,skipped_by_ranges_1percent}',
	'what rangefilter_advise tells')
FROM pg_proc WHERE proname = 'rangefilter_advise';
SELECT has_view('rangefilter_activity');
SELECT columns_are('rangefilter_activity', ARRAY['index', 'table', 'probes', 'skips',
	'watched_scans', 'empty_scans', 'false_positive_rate', 'last_summarize', 'stale_blocks',
	'bitmap_scans', 'blocks_left_out']);
SELECT col_type_is('rangefilter_activity', c, t, c || ' ' || t)
FROM (VALUES ('index', 'regclass'), ('table', 'regclass'), ('probes', 'bigint'), ('skips', 'bigint'),
	('watched_scans', 'bigint'), ('empty_scans', 'bigint'),
	('false_positive_rate', 'double precision'),
	('last_summarize', 'timestamp with time zone'), ('stale_blocks', 'bigint'),
	('bitmap_scans', 'bigint'), ('blocks_left_out', 'double precision')) v (c, t);
SELECT is(obj_description(oid, 'pg_proc') IS NOT NULL, true, proname || ' has a comment')
FROM pg_proc WHERE proname LIKE 'rangefilter\_%' AND proname <> 'rangefilter_handler'
ORDER BY proname;

--
-- Operator classes
--
SELECT is((SELECT count(*)::int FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
		WHERE a.amname = 'rangefilter' AND c.opcintype = t::regtype AND c.opcdefault),
	1, t || ' has a default operator class')
FROM unnest('{int2,int4,int8,oid,float4,float8,numeric,timestamp,timestamptz,date,time,timetz,
	interval,money,bool,uuid,text,bpchar,name,bytea,inet,macaddr,macaddr8,anyenum}'::text[]) t;
-- These use the class of text or inet; so an index shows it.
CREATE TABLE types (v varchar, c cidr);
SELECT lives_ok('CREATE INDEX ON types USING rangefilter (v COLLATE "C")', 'varchar');
SELECT lives_ok('CREATE INDEX ON types USING rangefilter (c)', 'cidr');
SELECT bag_eq($$ SELECT opcname::text FROM pg_index x JOIN pg_opclass c ON c.oid = x.indclass[0]
		WHERE indrelid = 'types'::regclass $$,
	$$ VALUES ('text_ops'), ('inet_ops') $$, 'what they use');

-- Each family is btree's, operator by operator, across types as well.
CREATE FUNCTION operators(am text) RETURNS TABLE (l regtype, r regtype, strategy int, op regoperator)
LANGUAGE sql AS
$$
	SELECT o.amoplefttype, o.amoprighttype, o.amopstrategy, o.amopopr
	FROM pg_amop o JOIN pg_am a ON a.oid = o.amopmethod JOIN pg_opfamily f ON f.oid = o.amopfamily
	WHERE a.amname = am AND f.opfname NOT LIKE '%pattern%'
$$;
SELECT is_empty($$ SELECT * FROM operators('rangefilter') EXCEPT SELECT * FROM operators('btree') $$,
	'all operators are those of btree');
SELECT is_empty($$ SELECT * FROM operators('btree') b
		WHERE (SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
			WHERE a.amname = 'rangefilter' AND c.opcintype IN (b.l, b.r)) = CASE WHEN l = r THEN 1 ELSE 2 END
		EXCEPT SELECT * FROM operators('rangefilter') $$,
	'no operator of btree between such types is missing');
SELECT ok(amvalidate(c.oid), c.opcname || ' is valid')
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'rangefilter' AND c.opcname IN ('int4_ops', 'text_ops', 'inet_ops', 'date_ops');

--
-- Access method properties, and what users see of an index
--
CREATE TABLE t (k int, b text COLLATE "C");
CREATE INDEX t_k ON t USING rangefilter (k);
SELECT index_is_type('t', 't_k', 'rangefilter');
SELECT has_index('t', 't_k', 'k');
SELECT is(pg_indexam_has_property(a.oid, p), expected, p)
FROM pg_am a, (VALUES ('can_order', false), ('can_unique', false), ('can_exclude', false),
	('can_include', false)) v (p, expected)
WHERE a.amname = 'rangefilter';
SELECT is(pg_index_has_property('t_k', p), expected, p)
FROM (VALUES ('clusterable', false), ('index_scan', false), ('bitmap_scan', true),
	('backward_scan', false)) v (p, expected);
SELECT is(pg_index_column_has_property('t_k', 1, 'search_nulls'), true, 'search_nulls');

--
-- Settings
--
SELECT is(current_setting('rangefilter.enable'), 'on', 'skipping is on');
SELECT is(context || ' ' || vartype, 'user bool', 'every user may switch it')
FROM pg_settings WHERE name = 'rangefilter.enable';
SELECT throws_ok('SET rangefilter.enable = 5', '22023');
SELECT is(setting || ' ' || context || ' ' || vartype, 'on user bool', 'rows are estimated by counting')
FROM pg_settings WHERE name = 'rangefilter.estimate_rows';
SELECT is(setting || ' ' || context || ' ' || vartype, '0.05 superuser real', 'the share of queries watched')
FROM pg_settings WHERE name = 'rangefilter.activity_sample_rate';
SELECT is(setting || ' ' || context || ' ' || vartype, '0.2 user real', 'the share of rows removed')
FROM pg_settings WHERE name = 'rangefilter.vacuum_scale_factor';
SELECT throws_ok('SET rangefilter.enabel = off', '42602');

--
-- Privileges
--
SELECT function_privs_are('rangefilter_verify', ARRAY['regclass', 'boolean'], 'public', '{}'::text[]);
SELECT function_privs_are('rangefilter_activity_reset', ARRAY['regclass'], 'public', '{}'::text[]);
SELECT table_privs_are('rangefilter_activity', 'public', ARRAY['SELECT']);
CREATE ROLE rf_tap_user;
SELECT ok(has_function_privilege('rf_tap_user', p.oid, 'EXECUTE') =
	(proname NOT IN ('rangefilter_verify', 'rangefilter_activity_reset')),
	proname || ': who may call it')
FROM pg_proc p WHERE proname LIKE 'rangefilter\_%' AND proname <> 'rangefilter_handler'
ORDER BY proname;

SELECT * FROM finish();
ROLLBACK;
