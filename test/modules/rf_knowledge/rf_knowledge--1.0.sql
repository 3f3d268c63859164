\echo Use "CREATE EXTENSION rf_knowledge" to load this file. \quit

-- The session's entry of a partitioned table: a line for the entry, one for each of its
-- indexes, and one for each digest matrix.
CREATE FUNCTION rf_entry(relation regclass) RETURNS SETOF text LANGUAGE c AS 'MODULE_PATHNAME';

-- Pages that this session has asked shared buffers for, and calls of the planner, until now.
CREATE FUNCTION rf_pages() RETURNS bigint LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION rf_plannings() RETURNS bigint LANGUAGE c AS 'MODULE_PATHNAME';

-- Makes room for a cached metapage as if none fitted, with the session's entries in use or not.
-- It is done while a query with a constant argument is planned.
CREATE FUNCTION rf_room(in_use boolean) RETURNS void IMMUTABLE STRICT LANGUAGE c AS 'MODULE_PATHNAME';
