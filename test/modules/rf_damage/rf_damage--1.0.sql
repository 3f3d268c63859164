/* test/modules/rf_damage/rf_damage--1.0.sql */

\echo Use "CREATE EXTENSION rf_damage" to load this file. \quit

-- A page as it is in shared buffers.
CREATE FUNCTION rf_page(index regclass, block int) RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Overwrites bytes of a page in shared buffers, behind WAL's back.  What sessions
-- remember of the index is invalidated.
CREATE FUNCTION rf_damage(index regclass, block int, at int, bytes bytea) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Keeps the delta's pages of a rangefilter index from being merged until the transaction
-- ends.
CREATE FUNCTION rf_hold_runs(index regclass) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Locks a page exclusively until another one has changed.
CREATE FUNCTION rf_hold_page(index regclass, block int, until int) RETURNS bool
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Keeps all sessions from taking predicate locks while another one has this advisory lock.
CREATE FUNCTION rf_hold_predicate_locks(until int) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Inserts an entry for a row that need not exist, into an index on one int8 column.  The check is
-- a number of core's IndexUniqueCheck; what is returned is what the access method says.
CREATE FUNCTION rf_insert(index regclass, key int8, tid tid, unique_check int DEFAULT 0) RETURNS bool
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
