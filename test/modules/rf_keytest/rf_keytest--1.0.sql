/* test/modules/rf_keytest/rf_keytest--1.0.sql */

\echo Use "CREATE EXTENSION rf_keytest" to load this file. \quit

-- The key of a value; numbers as their 8 bytes, so that keys sort as bytea.
CREATE FUNCTION rf_key(value "any") RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C STRICT IMMUTABLE;

-- The key of a value as text, and any bytes taken for a key of a type.
CREATE FUNCTION rf_key_show(value "any") RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;
CREATE FUNCTION rf_key_show_bytes(type regtype, key bytea) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;

-- Is the key of a value in the set for "column <op> constant"?  NULL: refused.
CREATE FUNCTION rf_key_matches(value "any", strategy int, constant "any",
							   collation oid)
RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;

-- The set itself, as text.
CREATE FUNCTION rf_key_set(type regtype, strategy int, constant "any",
						   collation oid DEFAULT '"C"'::regcollation)
RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;

-- Likewise for strings that start with a prefix.
CREATE FUNCTION rf_key_starts_with(value "any", prefix bytea) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;
CREATE FUNCTION rf_key_prefix_set(type regtype, prefix bytea) RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;

-- What a codec says of itself.
CREATE FUNCTION rf_key_codec_id(type regtype) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION rf_key_ordered(type regtype, collation oid) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STRICT STABLE;

-- Floats by their bits, NaNs of all kinds included.
CREATE FUNCTION rf_float4(bits int) RETURNS float4
AS 'MODULE_PATHNAME' LANGUAGE C STRICT IMMUTABLE;
CREATE FUNCTION rf_float8(bits bigint) RETURNS float8
AS 'MODULE_PATHNAME' LANGUAGE C STRICT IMMUTABLE;

-- A number with one of its digits to the base 10000 set to zero in place (0 is
-- the last), even where PostgreSQL would leave it out.
CREATE FUNCTION rf_numeric(number numeric, place int) RETURNS numeric
AS 'MODULE_PATHNAME' LANGUAGE C STRICT IMMUTABLE;

-- Random sets of keys against a bitmap; random bytes shown as keys.
CREATE FUNCTION rf_keyset_check(seed float8, rounds int) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
CREATE FUNCTION rf_show_check(seed float8, rounds int) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

-- The key of a row.  flags has a letter for each column: a, d (ascending or
-- descending, NULLs last), A, D (NULLs first).
CREATE FUNCTION rf_row_key(whole boolean, flags text, VARIADIC "any")
RETURNS bytea
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE;

-- Likewise, as text; and the text of any bytes taken for a row's key.
CREATE FUNCTION rf_row_show(whole boolean, flags text, VARIADIC "any")
RETURNS text
AS 'MODULE_PATHNAME', 'rf_row_show_sql' LANGUAGE C STABLE;
CREATE FUNCTION rf_row_show_bytes(flags text, key bytea, VARIADIC "any")
RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STABLE;

-- Are the columns got back from a row's key those that were put into it?
CREATE FUNCTION rf_row_reads_back(flags text, VARIADIC "any")
RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE;

-- Is the key of a row in the range for "the first columns are those of another
-- row, column <op> the other's"?  The rows' values come one after the other.
-- Strategy 0: no condition on the column.
CREATE FUNCTION rf_row_matches(whole boolean, flags text, columns int,
							   strategy int, VARIADIC "any")
RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C STABLE;

-- Random conditions on columns against the sets of rows made of them; returns
-- how many rows satisfied theirs.
CREATE FUNCTION rf_row_set_check(seed float8, rounds int) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
