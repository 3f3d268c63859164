/*-------------------------------------------------------------------------
 *
 * rowkey.h
 *	  Order-preserving encodings of rows of several columns.
 *
 * A row is encoded column by column into one byte string, and
 *		memcmp order of the strings, a prefix first  =  order of the rows,
 * each column compared by its codec's keys, ascending or descending, NULLs
 * first or last.  No column's encoding is a prefix of another value's, so the
 * rows whose first columns have given values are those whose keys start with
 * these columns' encodings.
 *
 * Keys are whole, whatever their length, or cut at FILTER_MAX_KEY like those
 * of single columns.  Cutting is monotone; a cut key stands for all rows whose
 * keys start with it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_ROWKEY_H
#define RANGEFILTER_ROWKEY_H

#include "key/codec.h"
#include "lib/stringinfo.h"

/* As many columns can an index on rows that are cut have. */
#define RF_MAX_COLUMNS	8

typedef struct RfRowColumn
{
	const RfCodec *codec;
	bool		desc;
	bool		nulls_first;
} RfRowColumn;

typedef struct RfRowFormat
{
	bool		whole;			/* keys are never cut */
	int			ncolumns;
	RfRowColumn columns[INDEX_MAX_KEYS];
} RfRowFormat;

/* What rf_row_get() found. */
typedef enum RfRowPart
{
	RF_ROW_VALUE,
	RF_ROW_NULL,
	RF_ROW_CUT,					/* the key ends within the column, or before */
	RF_ROW_BAD					/* not what the encoding makes */
} RfRowPart;

/*
 * Appends a column's encoding to a row's: of NULL, or of a key by the
 * column's codec (rf_encode_whole() for whole rows, rf_encode() for others).
 * The columns of a row are appended in order, from 0.
 */
extern void rf_row_put_null(const RfRowFormat *format, int column,
							StringInfo row);
extern void rf_row_put_key(const RfRowFormat *format, int column,
						   const RfKey *key, StringInfo row);

/* What tells the collators of a row's columns from others; zero: none. */
extern uint64 rf_row_collators(const RfRowFormat *format);

/*
 * Appends the key of a row to an empty buffer.  May have to detoast, hence
 * raise errors; what that allocates in the current context is freed.  False if one of the
 * row's strings has no order: see RfKey.unordered.
 */
extern bool rf_row_encode(const RfRowFormat *format, const Datum *values,
						  const bool *isnull, StringInfo row);

/*
 * The keys of the rows whose first columns have the given encodings (len bytes,
 * not cut) and whose next column has a key in a range (NULL is in none); the
 * result's keys are palloc'd.  The second function leaves the next column out.
 */
extern void rf_row_range(const RfRowFormat *format, const char *prefix,
						 int len, int column, const RfRange *range,
						 RfRange *result);
extern void rf_row_prefix_range(const RfRowFormat *format, const char *prefix,
								int len, RfRange *result);

/*
 * Takes the next column, which is number column, off a row's key: *at moves
 * to what follows.  The bytes of a value's key are palloc'd.
 */
extern RfRowPart rf_row_get(const RfRowFormat *format, int column,
							const uint8 **at, const uint8 *end, RfKey *key);

/*
 * The hashes of a byte key, by which filters and digests know it; returns how many: one of each of
 * its leading columns' encodings, and last that of the whole key.  Of a key that is no row, only that.
 */
extern int	rf_key_hashes(const RfCodec *codec, const RfKey *key,
						  uint64 *hashes);

/*
 * The hashes that all keys of a range have: those of its lower end, if the range is that key, or all
 * keys whose leading columns it is.  Otherwise 0 is returned.
 */
extern int	rf_range_hashes(const RfCodec *codec, const RfRange *range,
							uint64 *hashes);

/*
 * The codec of rows of up to RF_MAX_COLUMNS columns, ascending and NULLs last,
 * whose keys are cut; of one column, its own.  It lives as long as the process.
 */
extern const RfCodec *rf_row_codec(const RfCodec *const *columns,
								   int ncolumns);

/*
 * The key of a row, or of the one value there is, by any codec.  False for a
 * NULL, which only as part of a row is in a key.
 */
extern bool rf_encode_row(const RfCodec *codec, const Datum *values,
						  const bool *isnull, RfKey *key);

/* A key by any codec as text. */
extern char *rf_show_key(const RfCodec *codec, const RfKey *key);

extern RfKeySet *rf_row_set(const RfCodec *codec, RfKeySet **columns, int n, int *used);

#endif							/* RANGEFILTER_ROWKEY_H */
