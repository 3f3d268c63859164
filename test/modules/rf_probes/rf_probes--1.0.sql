/* test/modules/rf_probes/rf_probes--1.0.sql */

\echo Use "CREATE EXTENSION rf_probes" to load this file. \quit

CREATE TYPE rf_probes_result AS (
	probes bigint,
	denied bigint,				-- answered with no
	pages float8,				-- read for a probe on average
	max_pages bigint,			-- and at most
	disk_pages bigint,			-- of all these, not in shared buffers
	ns float8					-- for a probe on average
);

-- Asks the indexes in turn for [key, key + width - 1], for each key so many
-- times.  open: the index is locked and opened for each probe, as the planner
-- part does it; else before all.
CREATE FUNCTION rf_probes(indexes regclass[], keys bigint[], width bigint,
						  rounds int, open boolean)
RETURNS rf_probes_result
AS 'MODULE_PATHNAME', 'rf_probes_numbers' LANGUAGE C STRICT;

-- The same for points among byte strings, as they are encoded.
CREATE FUNCTION rf_probes(indexes regclass[], keys bytea[], rounds int,
						  open boolean)
RETURNS rf_probes_result
AS 'MODULE_PATHNAME', 'rf_probes_bytes' LANGUAGE C STRICT;

-- Changes the digests of 64 partitions that sessions share, from partition 64 * number on, until there
-- is a file of this name.  The server must have loaded rangefilter.
CREATE FUNCTION rf_hold_digests(index regclass, number int, path text) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The processor time of this process, in ms.
CREATE FUNCTION rf_processor_time() RETURNS float8
AS 'MODULE_PATHNAME' LANGUAGE C;
