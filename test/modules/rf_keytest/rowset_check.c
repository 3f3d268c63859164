/*-------------------------------------------------------------------------
 *
 * rowset_check.c
 *	  Random conditions on columns, and the sets of rows made of them.
 *
 * A row is in the set if its columns are in theirs; and, unless its key was
 * cut, only if those are that the set is said to count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_type_d.h"
#include "common/pg_prng.h"
#include "filter/filter.h"
#include "fmgr.h"
#include "key/rowkey.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#define MAX_COLUMNS		4
#define ROWS			300

typedef struct Check
{
	pg_prng_state random;
	double		seed;
	int			round;
	int			ncolumns;
	const RfCodec *columns[MAX_COLUMNS];
	RfKeySet   *sets[MAX_COLUMNS];
	int			members;		/* rows found to be in a set */
	int			hashed;			/* rows found in a range that has hashes */
} Check;

PG_FUNCTION_INFO_V1(rf_row_set_check);

/*
 * A random number below a limit.
 */
static int
below(Check *check, int limit)
{
	return (int) pg_prng_uint64_range(&check->random, 0, limit - 1);
}

/*
 * A random value of a column's type, out of not too many.
 */
static Datum
random_value(Check *check, const RfCodec *codec)
{
	static const char *const strings[] = {"", "a", "a\x01", "aa", "b", "\x01", "\xff"};
	StringInfoData text;

	switch (codec->type)
	{
		case BOOLOID:
			return BoolGetDatum(below(check, 2) == 1);
		case INT2OID:
			return Int16GetDatum((int16) (below(check, 60) - 30));
		case INT8OID:
			return Int64GetDatum(below(check, 2) ? below(check, 60) :
								 PG_INT64_MIN + below(check, 3));
		default:
			initStringInfo(&text);
			if (below(check, 20) == 0)
			{
				for (int i = 990 + below(check, 12); i > 0; i--)
					appendStringInfoChar(&text, 'a');
			}
			appendStringInfoString(&text, strings[below(check, lengthof(strings))]);
			return CStringGetTextDatum(text.data);
	}
}

/*
 * A random condition on a column as a set of its keys: values, a range, or
 * some of both, sometimes with NULL.
 */
static RfKeySet *
random_set(Check *check, const RfCodec *codec)
{
	RfKeySet   *set = rf_keyset_empty(codec->kind);
	int			parts = below(check, 10) == 0 ? 70 : 1 + below(check, 4);
	bool		values = below(check, 3) > 0;

	for (int i = 0; i < parts; i++)
	{
		int			strategy = values ? BTEqualStrategyNumber :
		1 + below(check, BTMaxStrategyNumber);

		set = rf_keyset_union(set,
							  rf_codec_compare(codec, C_COLLATION_OID,
											   strategy, codec->type,
											   random_value(check, codec)));
	}
	if (below(check, 5) == 0)
		set = rf_keyset_union(set, rf_keyset_nulls(codec->kind));
	return set;
}

/*
 * A key has all hashes that the keys of a range have which holds it.
 */
static void
check_hashes(Check *check, const RfCodec *codec, const RfKeySet *set, const RfKey *key)
{
	uint64		hashes[RF_MAX_COLUMNS];
	int			n = rf_key_hashes(codec, key, hashes);

	for (int i = 0; i < set->nranges; i++)
	{
		RfKeySet	range = {.kind = set->kind,.nranges = 1,.ranges = &set->ranges[i]};
		uint64		wanted[RF_MAX_COLUMNS];
		int			nwanted;

		if (!rf_keyset_contains(&range, key))
			continue;
		nwanted = rf_range_hashes(codec, &set->ranges[i], wanted);
		check->hashed += nwanted > 0;
		for (int j = 0; j < nwanted; j++)
		{
			int			k = 0;

			while (k < n && hashes[k] != wanted[j])
				k++;
			if (k == n)
				elog(ERROR, "row %s lacks hash %d of range %d (seed %.17g, round %d)",
					 rf_show_key(codec, key), j, i, check->seed, check->round);
		}
	}
}

/*
 * Checks one random row against the set.
 */
static void
check_row(Check *check, const RfCodec *codec, const RfKeySet *set, int nsets,
		  int used)
{
	Datum		values[MAX_COLUMNS];
	bool		isnull[MAX_COLUMNS];
	bool		in_all = true;
	bool		in_used = true;
	bool		got;
	RfKey		key;

	for (int i = 0; i < check->ncolumns; i++)
	{
		bool		in = true;

		isnull[i] = below(check, 6) == 0;
		values[i] = isnull[i] ? (Datum) 0 :
			random_value(check, check->columns[i]);
		if (i < nsets)
		{
			RfKey		value = {0};

			if (!isnull[i])
				value = rf_encode(check->columns[i], values[i]);
			in = isnull[i] ? check->sets[i]->nulls :
				rf_keyset_contains(check->sets[i], &value);
		}
		in_all = in_all && in;
		in_used = in_used && (in || i >= used);
	}
	if (!rf_encode_row(codec, values, isnull, &key))
		elog(ERROR, "a row without a key");
	got = rf_keyset_contains(set, &key);
	if ((in_all && !got) ||
		(got && !in_used && key.len < FILTER_MAX_KEY))
		elog(ERROR, "row %s is %s the set (seed %.17g, round %d)",
			 rf_show_key(codec, &key), got ? "in" : "not in",
			 check->seed, check->round);
	check->members += in_all;
	check_hashes(check, codec, set, &key);
}

/*
 * One set, and some rows.
 */
static void
check_set(Check *check)
{
	static const Oid types[] = {BOOLOID, INT2OID, INT8OID, TEXTOID, BYTEAOID};
	const RfCodec *codec;
	RfKeySet   *set;
	int			nsets;
	int			used;

	check->ncolumns = 2 + below(check, MAX_COLUMNS - 1);
	for (int i = 0; i < check->ncolumns; i++)
	{
		check->columns[i] = rf_codec_find(types[below(check, lengthof(types))]);
		check->sets[i] = random_set(check, check->columns[i]);
	}
	codec = rf_row_codec(check->columns, check->ncolumns);
	if (codec != rf_row_codec(check->columns, check->ncolumns))
		elog(ERROR, "a codec was made twice");
	nsets = 1 + below(check, check->ncolumns);
	set = rf_row_set(codec, check->sets, nsets, &used);
	if (used < 1 || used > nsets || set->nulls)
		elog(ERROR, "impossible set of rows (seed %.17g, round %d)",
			 check->seed, check->round);
	for (int i = 0; i < ROWS; i++)
		check_row(check, codec, set, nsets, used);
}

/*
 * rf_row_set_check(seed, rounds) returns how many rows were in their sets.
 */
Datum
rf_row_set_check(PG_FUNCTION_ARGS)
{
	Check		check = {.seed = PG_GETARG_FLOAT8(0)};
	int			rounds = PG_GETARG_INT32(1);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "round",
												  ALLOCSET_DEFAULT_SIZES);

	pg_prng_fseed(&check.random, check.seed);
	for (check.round = 0; check.round < rounds; check.round++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		check_set(&check);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	if (check.hashed < check.members / 8)
		elog(ERROR, "%d of %d rows were in ranges with hashes", check.hashed, check.members);
	PG_RETURN_INT32(check.members);
}
