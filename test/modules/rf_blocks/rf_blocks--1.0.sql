\echo Use "CREATE EXTENSION rf_blocks" to load this file. \quit

-- Where a summarize of a heap of so many blocks begins, if segments end at these blocks,
-- and one that failed began at announced.
CREATE FUNCTION rf_start(ends bigint[], blocks bigint, announced bigint DEFAULT NULL) RETURNS bigint
LANGUAGE c AS 'MODULE_PATHNAME';

-- Ranges of so many blocks in a segment of blocks: their number; the bit among the imprecise
-- ones that stands for a block; how many are imprecise then.
CREATE FUNCTION rf_ranges(start bigint, "end" bigint, range_blocks bigint, block bigint,
	OUT ranges bigint, OUT imprecise_bit int, OUT imprecise bigint)
LANGUAGE c AS 'MODULE_PATHNAME';
