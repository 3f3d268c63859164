\echo Use "CREATE EXTENSION rf_core" to load this file. \quit

-- Each of these raises an error where a reach does not find what it expects.
CREATE FUNCTION rf_core_members() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION rf_core_words(rounds int) RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION rf_core_query() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION rf_core_hash() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';

CREATE FUNCTION rf_core_knows_records() RETURNS bool LANGUAGE c AS 'MODULE_PATHNAME';
CREATE FUNCTION rf_core_completions() RETURNS bigint LANGUAGE c AS 'MODULE_PATHNAME', 'rf_core_count';
CREATE FUNCTION rf_core_next_xmax() RETURNS xid LANGUAGE c AS 'MODULE_PATHNAME', 'rf_core_xmax';

-- Has these reaches of the extension answer "unknown"; the only argument '' none.
CREATE FUNCTION rf_core_doubt(VARIADIC reaches text[]) RETURNS void LANGUAGE c AS 'MODULE_PATHNAME';

-- Has requests for as many bytes fail in memory contexts of a name.
CREATE FUNCTION rf_core_refuse_memory(context text, bytes int) RETURNS int LANGUAGE c AS 'MODULE_PATHNAME';

-- Starts a query without a snapshot.  Returns how many tables its plan has then.
CREATE FUNCTION rf_core_start(query text) RETURNS int LANGUAGE c AS 'MODULE_PATHNAME';

-- Is the current transaction that of a lazy VACUUM?
CREATE FUNCTION rf_core_in_vacuum_now() RETURNS bool LANGUAGE c AS 'MODULE_PATHNAME';
