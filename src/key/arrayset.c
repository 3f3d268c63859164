/*-------------------------------------------------------------------------
 *
 * arrayset.c
 *	  Sets of keys of conditions with the elements of an array: IN, = ANY.
 *
 * While a query is planned, the same long list is compared with the indexes of
 * each partition, several times.  To encode and sort thousands of elements
 * takes far longer than to compare the arrays.  So the sets of the last long lists
 * are remembered until the planning ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/codec.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* The bytes of a long list. */
#define LONG_LIST	512

/* A list that is remembered. */
typedef struct RfList
{
	MemoryContext context;		/* holds array and set; NULL: there is none */
	const RfCodec *codec;
	Oid			collation;
	int			strategy;
	Oid			righttype;
	ArrayType  *array;
	RfKeySet   *set;
	uint64		asked;			/* when it was asked for last */
} RfList;

static RfList lists[RF_REMEMBERED_LISTS];
static uint64 asked = 0;

/* What to compare an element with. */
typedef struct RfComparison
{
	const RfCodec *codec;
	Oid			collation;
	int			strategy;
	Oid			righttype;
} RfComparison;

/*
 * The union of the sets of an array's elements.  NULL elements have no keys.  Returns NULL where
 * nothing can be said of one of the others.
 */
RfKeySet *
rf_array_set(RfKeyKind kind, ArrayType *array, RfElementSet element_set, void *arg)
{
	Oid			type = ARR_ELEMTYPE(array);
	int16		typlen;
	bool		typbyval;
	char		typalign;
	Datum	   *values;
	bool	   *nulls;
	int			n;
	RfRange    *ranges;
	Size		nranges = 0;
	Size		size;

	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, type, typlen, typbyval, typalign,
					  &values, &nulls, &n);
	size = n + 1;
	ranges = palloc_extended(size * sizeof(RfRange), MCXT_ALLOC_HUGE);
	for (int i = 0; i < n; i++)
	{
		RfKeySet   *set;

		if (nulls[i])
			continue;
		set = element_set(arg, type, values[i]);
		if (set == NULL)
			return NULL;
		if (nranges + set->nranges > size)
		{
			size = 2 * size + set->nranges;
			ranges = repalloc_huge(ranges, size * sizeof(RfRange));
		}
		if (set->nranges > 0)
			memcpy(ranges + nranges, set->ranges,
				   set->nranges * sizeof(RfRange));
		nranges += set->nranges;
	}
	return rf_keyset_ranges(kind, ranges, nranges);
}

/*
 * RfElementSet: compares with an element.
 */
static RfKeySet *
compare_element(void *arg, Oid type, Datum value)
{
	const RfComparison *comparison = arg;

	return rf_codec_compare(comparison->codec, comparison->collation,
							comparison->strategy, comparison->righttype, value);
}

/*
 * The keys of "column <op> ANY (array)".
 */
static RfKeySet *
compare_elements(const RfCodec *codec, Oid collation, int strategy,
				 Oid righttype, ArrayType *array)
{
	RfComparison comparison = {codec, collation, strategy, righttype};

	return rf_array_set(codec->kind, array, compare_element, &comparison);
}

/*
 * Return true if this is what is remembered of a comparison with an array.
 */
static bool
is_list(const RfList *list, const RfCodec *codec, Oid collation, int strategy,
		Oid righttype, const ArrayType *array)
{
	return list->context != NULL && list->codec == codec &&
		list->collation == collation && list->strategy == strategy &&
		list->righttype == righttype &&
		VARSIZE(list->array) == VARSIZE(array) &&
		memcmp(list->array, array, VARSIZE(array)) == 0;
}

/*
 * The place of a list, or of the one that was not asked for the longest time.
 */
static RfList *
oldest_list(void)
{
	RfList	   *list = &lists[0];

	for (int i = 1; i < RF_REMEMBERED_LISTS && list->context != NULL; i++)
	{
		if (lists[i].context == NULL || lists[i].asked < list->asked)
			list = &lists[i];
	}
	return list;
}

/*
 * Forgets a list.
 */
static void
forget_list(RfList *list)
{
	if (list->context != NULL)
		MemoryContextDelete(list->context);
	list->context = NULL;
}

/*
 * Remembers a list and its set, with copies of both.  Returns false if the set is too large
 * for that.
 */
static bool
remember_list(RfList *list, const ArrayType *array, const RfKeySet *set)
{
	MemoryContext old;
	bytea	   *flat;

	list->context = AllocSetContextCreate(CurrentMemoryContext, "rangefilter list",
										  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(list->context);
	flat = rf_keyset_serialize(set);
	if (flat != NULL)
	{
		list->set = rf_keyset_deserialize(flat);
		list->array = memcpy(palloc_extended(VARSIZE(array), MCXT_ALLOC_HUGE),
							 array, VARSIZE(array));
	}
	MemoryContextSwitchTo(old);
	if (flat == NULL)
	{
		MemoryContextDelete(list->context);
		return false;
	}

	/* Not before: memory may have run out. */
	MemoryContextSetParent(list->context, TopMemoryContext);
	return true;
}

/*
 * The same as rf_codec_compare() for "column <op> ANY (array)", for a planner that asks for the
 * same again and again.  If the array is long, the set is one that is remembered.  It must not be
 * changed, and can be used until RF_REMEMBERED_LISTS others were asked for, or rf_forget_lists()
 * is called.
 */
RfKeySet *
rf_codec_compare_list(const RfCodec *codec, Oid collation, int strategy,
					  Oid righttype, ArrayType *array)
{
	RfList		made = {NULL, codec, collation, strategy, righttype};
	RfKeySet   *set;
	RfList	   *list;

	if (VARSIZE(array) < LONG_LIST)
		return compare_elements(codec, collation, strategy, righttype, array);
	for (int i = 0; i < RF_REMEMBERED_LISTS; i++)
	{
		if (!is_list(&lists[i], codec, collation, strategy, righttype, array))
			continue;
		lists[i].asked = ++asked;
		return lists[i].set;
	}
	set = compare_elements(codec, collation, strategy, righttype, array);
	if (set == NULL || !remember_list(&made, array, set))
		return set;
	made.asked = ++asked;
	list = oldest_list();
	forget_list(list);
	*list = made;
	return list->set;
}

/*
 * Forgets the sets of rf_codec_compare_list().  Called when a planning ends that is not nested in
 * another one.
 */
void
rf_forget_lists(void)
{
	for (int i = 0; i < RF_REMEMBERED_LISTS; i++)
		forget_list(&lists[i]);
}
