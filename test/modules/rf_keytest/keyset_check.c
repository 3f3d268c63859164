/*-------------------------------------------------------------------------
 *
 * keyset_check.c
 *	  Random sets of keys against a model; random bytes shown as keys.
 *
 * The model of a set is a bitmap over a small universe of keys in ascending
 * order: numbers in three clusters (the least, some in the middle, the
 * greatest), or all byte strings of up to three bytes out of {0x00, 'a',
 * 0xFF}.  The ends of random ranges are taken from the universe by index, so
 * what a range holds is index arithmetic and owes nothing to the code tested.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "access/transam.h"
#include "common/pg_prng.h"
#include "filter/filter.h"
#include "fmgr.h"
#include "key/codec.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#define UNIVERSE	40			/* keys; 1 + 3 + 9 + 27 byte strings */
#define MAX_RANGES	8
#define ALL_KEYS	((UINT64CONST(1) << UNIVERSE) - 1)

typedef struct Model
{
	uint64		keys;			/* bit i: key i of the universe */
	bool		nulls;
} Model;

typedef struct Check
{
	pg_prng_state random;
	double		seed;
	int			round;
	RfKeyKind	kind;
	RfKey		universe[UNIVERSE];
	char	   *guard;			/* the end of writable memory */
} Check;

PG_FUNCTION_INFO_V1(rf_keyset_check);
PG_FUNCTION_INFO_V1(rf_show_check);

/*
 * Raises the error of a failed check.
 */
static void
fail(Check *check, const char *what)
{
	elog(ERROR, "%s (seed %.17g, kind %d, round %d)",
		 what, check->seed, check->kind, check->round);
}

/*
 * A random number below a limit.
 */
static uint64
below(Check *check, uint64 limit)
{
	return pg_prng_uint64_range(&check->random, 0, limit - 1);
}

/*
 * Fills the universe with numbers.
 */
static void
number_universe(Check *check)
{
	int			i;

	for (i = 0; i < UNIVERSE; i++)
	{
		if (i < 10)
			check->universe[i].num = i;
		else if (i < 30)
			check->universe[i].num = (UINT64CONST(1) << 63) - 20 + i;
		else
			check->universe[i].num = PG_UINT64_MAX - (UNIVERSE - 1) + i;
	}
}

/*
 * Adds a string and all its extensions to the universe, in order.
 */
static void
add_strings(Check *check, int *n, const uint8 *string, uint32 len)
{
	static const uint8 alphabet[] = {0x00, 'a', 0xFF};
	uint8	   *longer;
	int			i;

	check->universe[*n].data = string;
	check->universe[*n].len = len;
	(*n)++;
	for (i = 0; len < 3 && i < 3; i++)
	{
		longer = palloc(len + 1);
		memcpy(longer, string, len);
		longer[len] = alphabet[i];
		add_strings(check, n, longer, len + 1);
	}
}

/*
 * Is a key of the universe in the set?
 */
static bool
contains(const RfKeySet *set, const RfKey *key)
{
	int			i;

	for (i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];
		int			order;

		if (!range->lo_inf && rf_key_compare(set->kind, key, &range->lo) < 0)
			continue;
		order = range->hi_inf ? -1 :
			rf_key_compare(set->kind, key, &range->hi);
		if (order < 0 || (order == 0 && !range->hi_excl))
			return true;
	}
	return false;
}

/*
 * Are two neighbouring ranges in order, with a key between them?
 */
static bool
apart(RfKeyKind kind, const RfRange *left, const RfRange *right)
{
	const RfKey *hi = &left->hi;
	const RfKey *lo = &right->lo;

	if (left->hi_inf || right->lo_inf)
		return false;
	if (kind == RF_KEY_U64)
		return lo->num > hi->num && lo->num - hi->num > 1;
	if (rf_key_compare(kind, lo, hi) <= 0)
		return false;
	return left->hi_excl || lo->len != hi->len + 1 ||
		lo->data[hi->len] != 0 || memcmp(lo->data, hi->data, hi->len) != 0;
}

/*
 * Checks that a set is in normal form.
 */
static void
check_form(Check *check, const RfKeySet *set)
{
	int			i;

	if (set->kind != check->kind)
		fail(check, "set of another kind");
	for (i = 0; i < set->nranges; i++)
	{
		const RfRange *range = &set->ranges[i];

		if (!range->lo_inf && !range->hi_inf &&
			rf_key_compare(set->kind, &range->lo, &range->hi) >=
			(range->hi_excl ? 0 : 1))
			fail(check, "empty range in a set");
		if (set->kind == RF_KEY_U64 &&
			(range->lo_inf != (range->lo.num == 0) ||
			 range->hi_inf != (range->hi.num == PG_UINT64_MAX)))
			fail(check, "end at the extreme number");
		if (i > 0 && !apart(set->kind, &set->ranges[i - 1], range))
			fail(check, "ranges overlap or touch");
	}
}

/*
 * Checks that a set is what the model says.
 */
static void
check_set(Check *check, const RfKeySet *set, const Model *model)
{
	int			i;

	check_form(check, set);
	if (set->nulls != model->nulls)
		fail(check, "wrong about NULL");
	for (i = 0; i < UNIVERSE; i++)
	{
		if (contains(set, &check->universe[i]) != ((model->keys >> i) & 1))
			fail(check, "wrong about a key");
	}
	if (rf_keyset_is_empty(set) && (model->keys != 0 || model->nulls))
		fail(check, "set taken for empty");
	if (set->nranges == 0 && !set->nulls && !rf_keyset_is_empty(set))
		fail(check, "empty set not seen to be");
}

/*
 * A random range, possibly empty, and the bits of the keys in it.
 */
static uint64
random_range(Check *check, RfRange *range)
{
	int			lo = below(check, UNIVERSE);
	int			hi = below(check, 3) == 0 ? (int) below(check, UNIVERSE) :
	lo + (int) below(check, 4);
	uint64		from;
	uint64		upto;

	hi = Min(hi, UNIVERSE - 1);
	memset(range, 0x5A, sizeof(*range));
	range->lo_inf = below(check, 10) == 0;
	range->hi_inf = below(check, 10) == 0;
	range->hi_excl = check->kind == RF_KEY_BYTES && below(check, 2) == 0;
	if (!range->lo_inf)
		range->lo = check->universe[lo];
	if (!range->hi_inf)
		range->hi = check->universe[hi];

	from = range->lo_inf ? ALL_KEYS : ALL_KEYS & ~((UINT64CONST(1) << lo) - 1);
	if (range->hi_excl)
		hi--;
	upto = range->hi_inf ? ALL_KEYS : (UINT64CONST(1) << (hi + 1)) - 1;
	return from & upto;
}

/*
 * A random set and its model.
 */
static RfKeySet *
random_set(Check *check, Model *model)
{
	RfRange		ranges[MAX_RANGES];
	int			n = below(check, MAX_RANGES + 1);
	RfKeySet   *set;
	int			i;

	model->keys = 0;
	for (i = 0; i < n; i++)
		model->keys |= random_range(check, &ranges[i]);
	if (n == 1 && below(check, 2) == 0)
		set = rf_keyset_range(check->kind, &ranges[0]);
	else
		set = rf_keyset_ranges(check->kind, ranges, n);

	model->nulls = below(check, 3) == 0;
	if (model->nulls)
		set = rf_keyset_union(set, rf_keyset_nulls(check->kind));
	check_set(check, set, model);
	return set;
}

/*
 * Reads a flat set; NULL where that raises an error.
 */
static RfKeySet *
try_deserialize(const bytea *flat)
{
	MemoryContext context = CurrentMemoryContext;
	RfKeySet   *volatile set = NULL;

	PG_TRY();
	{
		set = rf_keyset_deserialize(flat);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	return set;
}

/*
 * Reads a damaged flat set: that must fail, or give some set in normal form,
 * and never look past the end, where memory is out of bounds.
 */
static void
check_damaged(Check *check, const bytea *flat)
{
	Size		size = VARSIZE(flat);
	Size		keep = size;
	bytea	   *damaged;
	RfKeySet   *set;

	if (below(check, 2) == 0)
		keep = VARHDRSZ + below(check, size - VARHDRSZ + 8);
	damaged = (bytea *) (check->guard - INTALIGN(keep));
	memset(damaged, 0, INTALIGN(keep));
	memcpy(damaged, flat, Min(size, keep));
	SET_VARSIZE(damaged, keep);
	if (keep > VARHDRSZ && below(check, 2) == 0)
		VARDATA(damaged)[below(check, keep - VARHDRSZ)] ^=
			1 << below(check, 8);
	set = try_deserialize(damaged);
	if (set != NULL)
		check_form(check, set);
}

/*
 * One round: two random sets, all operations on them.
 */
static void
check_round(Check *check)
{
	Model		a_model;
	Model		b_model;
	Model		model;
	RfKeySet   *a = random_set(check, &a_model);
	RfKeySet   *b = random_set(check, &b_model);
	bytea	   *flat;

	model.keys = a_model.keys | b_model.keys;
	model.nulls = a_model.nulls || b_model.nulls;
	check_set(check, rf_keyset_union(a, b), &model);

	model.keys = a_model.keys & b_model.keys;
	model.nulls = a_model.nulls && b_model.nulls;
	check_set(check, rf_keyset_intersect(a, b), &model);

	flat = rf_keyset_serialize(a);
	check_set(check, rf_keyset_deserialize(flat), &a_model);
	check_damaged(check, flat);

	/* The operands are left as they were. */
	check_set(check, a, &a_model);
	check_set(check, b, &b_model);
}

/*
 * The sets that have functions of their own, and the next number and string.
 */
static void
check_constants(Check *check)
{
	Model		nothing = {0};
	Model		nulls = {.nulls = true};
	Model		all = {.keys = ALL_KEYS};
	RfRange		halves[2] = {{{0}}};
	RfKeySet   *set;

	check_set(check, rf_keyset_empty(check->kind), &nothing);
	check_set(check, rf_keyset_nulls(check->kind), &nulls);
	check_set(check, rf_keyset_not_null(check->kind), &all);

	/* Key 15 has key 16 for its next: 'a' with nothing or a zero after it. */
	halves[0].lo = check->universe[16];
	halves[0].hi_inf = true;
	halves[1].hi = check->universe[15];
	halves[1].lo_inf = true;
	if (check->kind == RF_KEY_BYTES)
	{
		halves[0].lo.data = (const uint8 *) "a";
		halves[0].lo.len = 2;
		halves[1].hi.data = (const uint8 *) "a";
		halves[1].hi.len = 1;
	}
	set = rf_keyset_ranges(check->kind, halves, 2);
	check_set(check, set, &all);
	if (set->nranges != 1)
		fail(check, "two halves do not make a whole");
}

/*
 * As many ranges as a long IN list gives, in random order.
 */
static void
check_many(Check *check)
{
	const int	n = 20000;
	RfRange    *ranges = palloc0(sizeof(RfRange) * n);
	RfKeySet   *set;
	int			i;

	for (i = 0; i < n; i++)
	{
		int			j = below(check, i + 1);

		ranges[i] = ranges[j];
		memset(&ranges[j], 0, sizeof(RfRange));
		ranges[j].lo.num = ranges[j].hi.num = 100 + 10 * (uint64) i;
		ranges[j].hi.num += i % 2 == 0 ? 9 : 0;
	}
	set = rf_keyset_ranges(RF_KEY_U64, ranges, n);
	check_form(check, set);
	if (set->nranges != n / 2)
		fail(check, "wrong number of ranges from a long list");
	for (i = 0; i < n / 2; i++)
	{
		if (set->ranges[i].lo.num != 100 + 20 * (uint64) i ||
			set->ranges[i].hi.num != 110 + 20 * (uint64) i)
			fail(check, "wrong range from a long list");
	}
	set = rf_keyset_deserialize(rf_keyset_serialize(set));
	check_form(check, set);
	if (set->nranges != n / 2)
		fail(check, "long list lost ranges on its way");
}

/*
 * A list whose flat copy would be larger than memory can be allocated at once.  All
 * keys share their bytes, and there are too many by one.
 */
static void
check_too_many(Check *check)
{
	const uint8 bytes[FILTER_MAX_KEY] = {0};
	const Size	flat_range = 1 + 2 * (sizeof(uint32) + FILTER_MAX_KEY);
	RfKeySet   *set = rf_keyset_empty(RF_KEY_BYTES);

	set->nranges = (int) (MaxAllocSize / flat_range) + 1;
	set->ranges = palloc0(set->nranges * sizeof(RfRange));
	for (int i = 0; i < set->nranges; i++)
	{
		set->ranges[i].lo.data = set->ranges[i].hi.data = bytes;
		set->ranges[i].lo.len = set->ranges[i].hi.len = FILTER_MAX_KEY;
	}
	if (rf_keyset_serialize(set) != NULL)
		fail(check, "a flat copy of more than a gigabyte");
	pfree(set->ranges);
}

/*
 * Some memory that ends where none can be read, in *check.
 */
static void
map_guard(Check *check)
{
	Size		page = sysconf(_SC_PAGESIZE);
	char	   *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0)
		elog(ERROR, "could not map memory: %m");
	check->guard = memory + page;
}

/*
 * Frees that memory.
 */
static void
unmap_guard(Check *check)
{
	Size		page = sysconf(_SC_PAGESIZE);

	munmap(check->guard - page, 2 * page);
}

/*
 * Starts a check; the seed is as setseed() takes it.
 */
static void
check_begin(Check *check, double seed, RfKeyKind kind)
{
	int			n = 0;

	memset(check, 0, sizeof(*check));
	pg_prng_fseed(&check->random, seed);
	check->seed = seed;
	check->kind = kind;
	if (kind == RF_KEY_U64)
		number_universe(check);
	else
		add_strings(check, &n, (const uint8 *) "", 0);
}

/*
 * Property test of key sets; raises an error where one fails.
 */
Datum
rf_keyset_check(PG_FUNCTION_ARGS)
{
	double		seed = PG_GETARG_FLOAT8(0);
	int			rounds = PG_GETARG_INT32(1);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "rf_keyset_check",
												  ALLOCSET_DEFAULT_SIZES);
	RfKeyKind	kind;
	Check		check;

	for (kind = RF_KEY_U64; kind <= RF_KEY_BYTES; kind++)
	{
		check_begin(&check, seed, kind);
		map_guard(&check);
		check_constants(&check);
		if (kind == RF_KEY_U64)
			check_many(&check);
		else
			check_too_many(&check);
		for (check.round = 0; check.round < rounds; check.round++)
		{
			MemoryContext old = MemoryContextSwitchTo(context);

			check_round(&check);
			MemoryContextSwitchTo(old);
			MemoryContextReset(context);
			CHECK_FOR_INTERRUPTS();
		}
		unmap_guard(&check);
	}
	PG_RETURN_VOID();
}

/*
 * Random bytes that look somewhat like keys.
 */
static void
random_bytes_key(Check *check, uint8 *data, RfKey *key)
{
	static const uint8 first[] = {4, 6, 0x10, 0x20, 0x40, 0x50, 0x80};
	static const uint32 lengths[] = {0, 1, 3, 6, 10, 11, 16, 17, 34, 1000};
	bool		small = below(check, 2) == 0;
	uint32		i;

	key->len = below(check, 2) == 0 ? lengths[below(check, lengthof(lengths))] :
		below(check, FILTER_MAX_KEY + 1);
	for (i = 0; i < key->len; i++)
		data[i] = below(check, small ? 40 : 256);
	if (key->len > 0 && below(check, 2) == 0)
		data[0] = first[below(check, lengthof(first))];
	if (key->len > 0 && below(check, 4) == 0)
		data[key->len - 1] = 0xFF;
	key->data = data;
}

/*
 * Shows random bytes and numbers as keys of every type: whatever it is, there
 * is some text for it, valid in the database's encoding, and no error.
 */
Datum
rf_show_check(PG_FUNCTION_ARGS)
{
	double		seed = PG_GETARG_FLOAT8(0);
	int			rounds = PG_GETARG_INT32(1);
	uint8		data[FILTER_MAX_KEY];
	Check		check;
	Oid			type;

	check_begin(&check, seed, RF_KEY_BYTES);
	for (type = 1; type < FirstGenbkiObjectId; type++)
	{
		const RfCodec *codec = rf_codec_find(type);

		if (codec == NULL)
			continue;
		for (check.round = 0; check.round < rounds; check.round++)
		{
			RfKey		key = {0};
			char	   *shown;

			key.num = pg_prng_uint64(&check.random) >> below(&check, 64);
			if (below(&check, 2) == 0)
				key.num = ~key.num;
			if (below(&check, 2) == 0)
				key.num ^= UINT64CONST(1) << 63;
			if (codec->kind == RF_KEY_BYTES)
				random_bytes_key(&check, data, &key);
			shown = codec->show(&key);
			if (shown == NULL)
				fail(&check, "no text for a key");
			pg_verifymbstr(shown, strlen(shown), false);
			pfree(shown);
		}
	}
	PG_RETURN_VOID();
}
