/* rangefilter--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION rangefilter" to load this file. \quit

CREATE FUNCTION rangefilter_handler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE ACCESS METHOD rangefilter TYPE INDEX HANDLER rangefilter_handler;
COMMENT ON ACCESS METHOD rangefilter IS
	'tiny range filters by which the planner skips partitions';

-- Operator families: those of btree, operators and strategies alike, so that
-- a condition a btree index would serve can skip partitions as well.
-- varchar columns use text_ops, cidr columns inet_ops.

CREATE OPERATOR FAMILY integer_ops USING rangefilter;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2
USING rangefilter FAMILY integer_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4
USING rangefilter FAMILY integer_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8
USING rangefilter FAMILY integer_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY integer_ops USING rangefilter ADD
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4);

CREATE OPERATOR FAMILY oid_ops USING rangefilter;
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid
USING rangefilter FAMILY oid_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY float_ops USING rangefilter;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4
USING rangefilter FAMILY float_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8
USING rangefilter FAMILY float_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY float_ops USING rangefilter ADD
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4);

CREATE OPERATOR FAMILY numeric_ops USING rangefilter;
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric
USING rangefilter FAMILY numeric_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY datetime_ops USING rangefilter;
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date
USING rangefilter FAMILY datetime_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp
USING rangefilter FAMILY datetime_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz
USING rangefilter FAMILY datetime_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY datetime_ops USING rangefilter ADD
	OPERATOR 1 < (date, timestamp),
	OPERATOR 2 <= (date, timestamp),
	OPERATOR 3 = (date, timestamp),
	OPERATOR 4 >= (date, timestamp),
	OPERATOR 5 > (date, timestamp),
	OPERATOR 1 < (date, timestamptz),
	OPERATOR 2 <= (date, timestamptz),
	OPERATOR 3 = (date, timestamptz),
	OPERATOR 4 >= (date, timestamptz),
	OPERATOR 5 > (date, timestamptz),
	OPERATOR 1 < (timestamp, date),
	OPERATOR 2 <= (timestamp, date),
	OPERATOR 3 = (timestamp, date),
	OPERATOR 4 >= (timestamp, date),
	OPERATOR 5 > (timestamp, date),
	OPERATOR 1 < (timestamp, timestamptz),
	OPERATOR 2 <= (timestamp, timestamptz),
	OPERATOR 3 = (timestamp, timestamptz),
	OPERATOR 4 >= (timestamp, timestamptz),
	OPERATOR 5 > (timestamp, timestamptz),
	OPERATOR 1 < (timestamptz, date),
	OPERATOR 2 <= (timestamptz, date),
	OPERATOR 3 = (timestamptz, date),
	OPERATOR 4 >= (timestamptz, date),
	OPERATOR 5 > (timestamptz, date),
	OPERATOR 1 < (timestamptz, timestamp),
	OPERATOR 2 <= (timestamptz, timestamp),
	OPERATOR 3 = (timestamptz, timestamp),
	OPERATOR 4 >= (timestamptz, timestamp),
	OPERATOR 5 > (timestamptz, timestamp);

CREATE OPERATOR FAMILY time_ops USING rangefilter;
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time
USING rangefilter FAMILY time_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY timetz_ops USING rangefilter;
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz
USING rangefilter FAMILY timetz_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY interval_ops USING rangefilter;
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval
USING rangefilter FAMILY interval_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY money_ops USING rangefilter;
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money
USING rangefilter FAMILY money_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY bool_ops USING rangefilter;
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE bool
USING rangefilter FAMILY bool_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY uuid_ops USING rangefilter;
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid
USING rangefilter FAMILY uuid_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

-- For conditions by = and IN: keys are not in the order of the enum type.
CREATE OPERATOR FAMILY enum_ops USING rangefilter;
CREATE OPERATOR CLASS enum_ops DEFAULT FOR TYPE anyenum
USING rangefilter FAMILY enum_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY text_ops USING rangefilter;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text
USING rangefilter FAMILY text_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name
USING rangefilter FAMILY text_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY text_ops USING rangefilter ADD
	OPERATOR 1 < (text, name),
	OPERATOR 2 <= (text, name),
	OPERATOR 3 = (text, name),
	OPERATOR 4 >= (text, name),
	OPERATOR 5 > (text, name),
	OPERATOR 1 < (name, text),
	OPERATOR 2 <= (name, text),
	OPERATOR 3 = (name, text),
	OPERATOR 4 >= (name, text),
	OPERATOR 5 > (name, text);

CREATE OPERATOR FAMILY bpchar_ops USING rangefilter;
CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar
USING rangefilter FAMILY bpchar_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY bytea_ops USING rangefilter;
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea
USING rangefilter FAMILY bytea_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY network_ops USING rangefilter;
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet
USING rangefilter FAMILY network_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY macaddr_ops USING rangefilter;
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr
USING rangefilter FAMILY macaddr_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY macaddr8_ops USING rangefilter;
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8
USING rangefilter FAMILY macaddr8_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

-- What a summary is made of; one row for each leaf of a partitioned index.
CREATE TYPE rangefilter_status_row AS (
	index regclass,
	"table" regclass,
	filter text,				-- snarf, exact or surf
	rows bigint,				-- row versions summarized
	keys bigint,				-- distinct keys among them
	bits_per_key float8,		-- of the filters, as they are
	size_bytes bigint,			-- of the index
	heap_blocks bigint,			-- of the table
	summarized_blocks bigint,	-- of these, covered by filters
	tail_open boolean,			-- too much is new: nothing is skipped
	delta_keys bigint,			-- keys newer than the filters
	min text,
	max text,
	has_nulls boolean,
	generation bigint,			-- summarizes so far
	levels int,					-- sorted runs of keys newer than the filters
	level_keys bigint,			-- of delta_keys, in these
	level_pages bigint,			-- of these
	suffix text					-- of surf: none, hash, real or mixed
);

CREATE FUNCTION rangefilter_status(index regclass)
RETURNS SETOF rangefilter_status_row
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_status(regclass) IS
	'what the summaries of a rangefilter index are made of';

CREATE FUNCTION rangefilter_may_contain(index regclass,
	lo anycompatible, hi anycompatible)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_may_contain(regclass, anycompatible, anycompatible) IS
	'false only if no row has a key from lo to hi (NULL: unbounded)';

CREATE FUNCTION rangefilter_summarize(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rangefilter_summarize(regclass) IS
	'bring the summaries up to date; returns heap blocks newly summarized';

CREATE FUNCTION rangefilter_verify(index regclass,
	heapallindexed boolean DEFAULT true)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_verify(regclass, boolean) IS
	'check all pages of the index and, unless heapallindexed is false, every row of the table against them; returns the number of rows, or of keys';

-- As amcheck's functions: they read everything, and tell.
REVOKE ALL ON FUNCTION rangefilter_verify(regclass, boolean) FROM PUBLIC;

-- What the indexes are asked.  It knows who may see what.
CREATE FUNCTION rangefilter_index_activity(index regclass,
	OUT probes bigint,
	OUT skips bigint,
	OUT watched_scans bigint,
	OUT empty_scans bigint,
	OUT false_positive_rate float8,
	OUT last_summarize timestamptz,
	OUT stale_blocks bigint,
	OUT bitmap_scans bigint,
	OUT blocks_left_out float8)				-- share of the table
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_index_activity(regclass) IS
	'one line of the view rangefilter_activity';

-- The argument has exactly the function's type: a function of the same name that somebody
-- has put into this schema before would be called with an oid.
CREATE VIEW rangefilter_activity AS
	SELECT c.oid::regclass AS index, x.indrelid::regclass AS "table", a.*
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid
		CROSS JOIN LATERAL rangefilter_index_activity(c.oid::regclass) a
	WHERE c.relkind = 'i' AND c.relam =
		(SELECT m.oid FROM pg_catalog.pg_am m WHERE m.amname = 'rangefilter');
COMMENT ON VIEW rangefilter_activity IS
	'per partition: how often its range filter was asked and what came of it';
GRANT SELECT ON rangefilter_activity TO PUBLIC;

CREATE FUNCTION rangefilter_activity_reset(index regclass DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_activity_reset(regclass) IS
	'set the counters of rangefilter_activity to zero (NULL: of all indexes)';

-- As pg_stat_reset().
REVOKE ALL ON FUNCTION rangefilter_activity_reset(regclass) FROM PUBLIC;

CREATE FUNCTION rangefilter_shared_cache(OUT indexes bigint, OUT bytes bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_shared_cache() IS
	'how many indexes of the database sessions remember in shared memory, and in how many bytes';

CREATE FUNCTION rangefilter_session_cache(OUT what text, OUT entries bigint, OUT bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_session_cache() IS
	'what this session remembers, and in how many bytes';

CREATE FUNCTION rangefilter_advise("table" regclass, "column" name,
	OUT worthwhile boolean,
	OUT advice text,
	OUT partitions integer,
	OUT filter_bytes bigint,				-- of all partitions
	OUT btree_bytes bigint,
	OUT skipped_by_points float8,			-- shares of the partitions
	OUT skipped_by_ranges_1ppm float8,		-- by ranges as wide as 1 ppm,
	OUT skipped_by_ranges_100ppm float8,	-- 100 ppm and 1 % of the distance
	OUT skipped_by_ranges_1percent float8)	-- from least to greatest value
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION rangefilter_advise(regclass, name) IS
	'whether a rangefilter index on a column is worth it, from a sample';

-- Ordered indexes.

CREATE FUNCTION wormhole_handler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE ACCESS METHOD wormhole TYPE INDEX HANDLER wormhole_handler;
COMMENT ON ACCESS METHOD wormhole IS
	'ordered indexes: fast lookups, small on long strings';

-- The same families once more, likewise complete.

CREATE OPERATOR FAMILY integer_ops USING wormhole;
CREATE OPERATOR CLASS int2_ops DEFAULT FOR TYPE int2
USING wormhole FAMILY integer_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS int4_ops DEFAULT FOR TYPE int4
USING wormhole FAMILY integer_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS int8_ops DEFAULT FOR TYPE int8
USING wormhole FAMILY integer_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY integer_ops USING wormhole ADD
	OPERATOR 1 < (int2, int4),
	OPERATOR 2 <= (int2, int4),
	OPERATOR 3 = (int2, int4),
	OPERATOR 4 >= (int2, int4),
	OPERATOR 5 > (int2, int4),
	OPERATOR 1 < (int2, int8),
	OPERATOR 2 <= (int2, int8),
	OPERATOR 3 = (int2, int8),
	OPERATOR 4 >= (int2, int8),
	OPERATOR 5 > (int2, int8),
	OPERATOR 1 < (int4, int2),
	OPERATOR 2 <= (int4, int2),
	OPERATOR 3 = (int4, int2),
	OPERATOR 4 >= (int4, int2),
	OPERATOR 5 > (int4, int2),
	OPERATOR 1 < (int4, int8),
	OPERATOR 2 <= (int4, int8),
	OPERATOR 3 = (int4, int8),
	OPERATOR 4 >= (int4, int8),
	OPERATOR 5 > (int4, int8),
	OPERATOR 1 < (int8, int2),
	OPERATOR 2 <= (int8, int2),
	OPERATOR 3 = (int8, int2),
	OPERATOR 4 >= (int8, int2),
	OPERATOR 5 > (int8, int2),
	OPERATOR 1 < (int8, int4),
	OPERATOR 2 <= (int8, int4),
	OPERATOR 3 = (int8, int4),
	OPERATOR 4 >= (int8, int4),
	OPERATOR 5 > (int8, int4);

CREATE OPERATOR FAMILY oid_ops USING wormhole;
CREATE OPERATOR CLASS oid_ops DEFAULT FOR TYPE oid
USING wormhole FAMILY oid_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY float_ops USING wormhole;
CREATE OPERATOR CLASS float4_ops DEFAULT FOR TYPE float4
USING wormhole FAMILY float_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS float8_ops DEFAULT FOR TYPE float8
USING wormhole FAMILY float_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY float_ops USING wormhole ADD
	OPERATOR 1 < (float4, float8),
	OPERATOR 2 <= (float4, float8),
	OPERATOR 3 = (float4, float8),
	OPERATOR 4 >= (float4, float8),
	OPERATOR 5 > (float4, float8),
	OPERATOR 1 < (float8, float4),
	OPERATOR 2 <= (float8, float4),
	OPERATOR 3 = (float8, float4),
	OPERATOR 4 >= (float8, float4),
	OPERATOR 5 > (float8, float4);

CREATE OPERATOR FAMILY numeric_ops USING wormhole;
CREATE OPERATOR CLASS numeric_ops DEFAULT FOR TYPE numeric
USING wormhole FAMILY numeric_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY datetime_ops USING wormhole;
CREATE OPERATOR CLASS date_ops DEFAULT FOR TYPE date
USING wormhole FAMILY datetime_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS timestamp_ops DEFAULT FOR TYPE timestamp
USING wormhole FAMILY datetime_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS timestamptz_ops DEFAULT FOR TYPE timestamptz
USING wormhole FAMILY datetime_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY datetime_ops USING wormhole ADD
	OPERATOR 1 < (date, timestamp),
	OPERATOR 2 <= (date, timestamp),
	OPERATOR 3 = (date, timestamp),
	OPERATOR 4 >= (date, timestamp),
	OPERATOR 5 > (date, timestamp),
	OPERATOR 1 < (date, timestamptz),
	OPERATOR 2 <= (date, timestamptz),
	OPERATOR 3 = (date, timestamptz),
	OPERATOR 4 >= (date, timestamptz),
	OPERATOR 5 > (date, timestamptz),
	OPERATOR 1 < (timestamp, date),
	OPERATOR 2 <= (timestamp, date),
	OPERATOR 3 = (timestamp, date),
	OPERATOR 4 >= (timestamp, date),
	OPERATOR 5 > (timestamp, date),
	OPERATOR 1 < (timestamp, timestamptz),
	OPERATOR 2 <= (timestamp, timestamptz),
	OPERATOR 3 = (timestamp, timestamptz),
	OPERATOR 4 >= (timestamp, timestamptz),
	OPERATOR 5 > (timestamp, timestamptz),
	OPERATOR 1 < (timestamptz, date),
	OPERATOR 2 <= (timestamptz, date),
	OPERATOR 3 = (timestamptz, date),
	OPERATOR 4 >= (timestamptz, date),
	OPERATOR 5 > (timestamptz, date),
	OPERATOR 1 < (timestamptz, timestamp),
	OPERATOR 2 <= (timestamptz, timestamp),
	OPERATOR 3 = (timestamptz, timestamp),
	OPERATOR 4 >= (timestamptz, timestamp),
	OPERATOR 5 > (timestamptz, timestamp);

CREATE OPERATOR FAMILY time_ops USING wormhole;
CREATE OPERATOR CLASS time_ops DEFAULT FOR TYPE time
USING wormhole FAMILY time_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY timetz_ops USING wormhole;
CREATE OPERATOR CLASS timetz_ops DEFAULT FOR TYPE timetz
USING wormhole FAMILY timetz_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY interval_ops USING wormhole;
CREATE OPERATOR CLASS interval_ops DEFAULT FOR TYPE interval
USING wormhole FAMILY interval_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY money_ops USING wormhole;
CREATE OPERATOR CLASS money_ops DEFAULT FOR TYPE money
USING wormhole FAMILY money_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY bool_ops USING wormhole;
CREATE OPERATOR CLASS bool_ops DEFAULT FOR TYPE bool
USING wormhole FAMILY bool_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY uuid_ops USING wormhole;
CREATE OPERATOR CLASS uuid_ops DEFAULT FOR TYPE uuid
USING wormhole FAMILY uuid_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY text_ops USING wormhole;
CREATE OPERATOR CLASS text_ops DEFAULT FOR TYPE text
USING wormhole FAMILY text_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
CREATE OPERATOR CLASS name_ops DEFAULT FOR TYPE name
USING wormhole FAMILY text_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;
ALTER OPERATOR FAMILY text_ops USING wormhole ADD
	OPERATOR 1 < (text, name),
	OPERATOR 2 <= (text, name),
	OPERATOR 3 = (text, name),
	OPERATOR 4 >= (text, name),
	OPERATOR 5 > (text, name),
	OPERATOR 1 < (name, text),
	OPERATOR 2 <= (name, text),
	OPERATOR 3 = (name, text),
	OPERATOR 4 >= (name, text),
	OPERATOR 5 > (name, text);

CREATE OPERATOR FAMILY bpchar_ops USING wormhole;
CREATE OPERATOR CLASS bpchar_ops DEFAULT FOR TYPE bpchar
USING wormhole FAMILY bpchar_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY bytea_ops USING wormhole;
CREATE OPERATOR CLASS bytea_ops DEFAULT FOR TYPE bytea
USING wormhole FAMILY bytea_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY network_ops USING wormhole;
CREATE OPERATOR CLASS inet_ops DEFAULT FOR TYPE inet
USING wormhole FAMILY network_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY macaddr_ops USING wormhole;
CREATE OPERATOR CLASS macaddr_ops DEFAULT FOR TYPE macaddr
USING wormhole FAMILY macaddr_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE OPERATOR FAMILY macaddr8_ops USING wormhole;
CREATE OPERATOR CLASS macaddr8_ops DEFAULT FOR TYPE macaddr8
USING wormhole FAMILY macaddr8_ops AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >;

CREATE FUNCTION wormhole_status(index regclass,
	OUT leaf_pages bigint,
	OUT directory_pages bigint,
	OUT free_pages bigint,
	OUT keys bigint,				-- entries; rows of one key may share one
	OUT rows bigint,
	OUT anchors bigint,
	OUT anchor_length float8,		-- bytes, on the average
	OUT hint_bytes bigint,			-- of this session, or shared
	OUT hint_hits bigint,			-- lookups that the hint led to their leaf
	OUT stale_walks bigint,			-- ... that it led elsewhere
	OUT directory_descents bigint)	-- lookups in the directory
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
COMMENT ON FUNCTION wormhole_status(regclass) IS
	'what a wormhole index is made of, and how its hint does';

CREATE FUNCTION wormhole_check(index regclass,
	heapallindexed boolean DEFAULT false)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION wormhole_check(regclass, boolean) IS
	'check order, bounds, links and directory and, with heapallindexed, that each row has an entry; returns the number of row pointers';

-- As amcheck's functions.
REVOKE ALL ON FUNCTION wormhole_check(regclass, boolean) FROM PUBLIC;

-- All indexes of both access methods.  It knows who may check what.
CREATE FUNCTION rangefilter_check_database(
	heapallindexed boolean DEFAULT false,
	part int DEFAULT 1,				-- only this share of the indexes ...
	parts int DEFAULT 1,			-- ... of so many
	OUT index regclass,
	OUT method name,
	OUT checked bigint,				-- keys or rows; NULL if there is a problem
	OUT problem text)				-- damage, or "not checked: " and why
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION rangefilter_check_database(boolean, int, int) IS
	'check all rangefilter and wormhole indexes of the database, or one of several shares of them; returns a row for each';
