/*-------------------------------------------------------------------------
 *
 * rf_core.c
 *	  Does core do what src/core expects of it?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "catalog/pg_type_d.h"
#include "common/pg_prng.h"
#include "core/core.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"
#if PG_VERSION_NUM >= 170000
#include "utils/memutils_internal.h"
#endif

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(rf_core_members);
PG_FUNCTION_INFO_V1(rf_core_words);
PG_FUNCTION_INFO_V1(rf_core_query);
PG_FUNCTION_INFO_V1(rf_core_knows_records);
PG_FUNCTION_INFO_V1(rf_core_count);
PG_FUNCTION_INFO_V1(rf_core_xmax);
PG_FUNCTION_INFO_V1(rf_core_doubt);
PG_FUNCTION_INFO_V1(rf_core_refuse_memory);
PG_FUNCTION_INFO_V1(rf_core_start);
PG_FUNCTION_INFO_V1(rf_core_in_vacuum_now);

extern void _PG_init(void);
extern void rf_core_watch_joins(void);

/* Since 17 a memory context reports itself that there is no memory. */
#if PG_VERSION_NUM >= 170000
#define ALLOC_PARAMS MemoryContext context, Size size, int flags
#define ALLOC_ARGS context, size, flags
#define NO_MEMORY MemoryContextAllocationFailure(context, size, flags)
#else
#define ALLOC_PARAMS MemoryContext context, Size size
#define ALLOC_ARGS context, size
#define NO_MEMORY NULL
#endif

/* Of rf_core_refuse_memory(). */
static const MemoryContextMethods *usual = NULL;
static MemoryContextMethods refusing;
static Size refused_from = 0;

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			elog(ERROR, "%s", #condition); \
	} while (0)

/*
 * A set of n numbers below a limit, at random.
 */
static Bitmapset *
random_set(int n, int limit)
{
	Bitmapset  *set = NULL;

	for (int i = 0; i < n; i++)
		set = bms_add_member(set, pg_prng_uint64_range(&pg_global_prng_state, 0,
													   limit - 1));
	return set;
}

/*
 * Members leave live_parts, and the set stays where it is; others are refused.
 */
Datum
rf_core_members(PG_FUNCTION_ARGS)
{
	RelOptInfo *parent = makeNode(RelOptInfo);
	RelOptInfo *member = makeNode(RelOptInfo);
	Bitmapset  *all = bms_add_range(NULL, 3, 200);
	Bitmapset  *some = bms_add_range(NULL, 100, 200);
	Bitmapset  *set;

	set = parent->live_parts = bms_copy(all);
	CHECK(!rf_core_drop_members(parent, member, 2, some));
	CHECK(!rf_core_drop_members(parent, member, 3,
								bms_add_member(bms_copy(some), 201)));
	CHECK(bms_equal(parent->live_parts, all));
	CHECK(rf_core_drop_members(parent, member, 3, some));
	CHECK(bms_equal(parent->live_parts, bms_add_range(NULL, 3, 99)));
	CHECK(parent->live_parts == set);
	PG_RETURN_VOID();
}

/*
 * What is taken out of sets word by word is what core takes out by members.
 */
Datum
rf_core_words(PG_FUNCTION_ARGS)
{
	for (int round = 0; round < PG_GETARG_INT32(0); round++)
	{
		int			limit = pg_prng_uint64_range(&pg_global_prng_state, 1, 400);
		Bitmapset  *set = random_set(limit, limit);
		Bitmapset  *gone = random_set(limit * (round % 4), limit);
		Bitmapset  *expected = bms_difference(set, gone);
		int			nwords = rf_core_count_words(set);

		CHECK(nwords == bms_prev_member(set, -1) / RF_CORE_WORD + 1);
		for (int i = 0; i < nwords; i++)
		{
			uint64		bits = 0;

			for (int bit = 0; bit < RF_CORE_WORD; bit++)
			{
				int			n = i * RF_CORE_WORD + bit;

				CHECK(((rf_core_bits(set, i) >> bit & 1) != 0) ==
					  bms_is_member(n, set));
				if (bms_is_member(n, gone))
					bits |= UINT64CONST(1) << bit;
			}
			rf_core_clear_bits(set, i, bits);
		}
		set = rf_core_trim(set);
		CHECK(bms_equal(set, expected) && bms_is_empty(set) == (set == NULL));
		CHECK(bms_num_members(set) == bms_num_members(expected));
		CHECK(bms_next_member(set, -1) == bms_next_member(expected, -1));
		CHECK(bms_prev_member(set, -1) == bms_prev_member(expected, -1));
	}
	CHECK(rf_core_count_words(NULL) == 0 && rf_core_trim(NULL) == NULL);
	PG_RETURN_VOID();
}

/*
 * Is a run of the planner that was given one Query, and now has another one at the
 * top, recognized as the planning of a third one, on the level below the top?
 */
static bool
plans_query(Query *given, Query *top, const Query *marked)
{
	PlannerInfo *root = makeNode(PlannerInfo);

	root->glob = makeNode(PlannerGlobal);
	root->parent_root = makeNode(PlannerInfo);
	root->parent_root->glob = root->glob;
	root->parent_root->parse = top;
#if RF_PLANNER_KEEPS_STATE
	rf_core_note_query(root->glob, given);
#endif
	return rf_core_plans_query(root, marked);
}

/*
 * The planning of a marked Query is recognized; where the planner copies Queries, also
 * when it has a copy.
 */
Datum
rf_core_query(PG_FUNCTION_ARGS)
{
	Query	   *query = makeNode(Query);
	Query	   *other = makeNode(Query);

	query->querySource = QSRC_NON_INSTEAD_RULE;
	CHECK(rf_core_mark_query(query) == QSRC_NON_INSTEAD_RULE);
	CHECK(plans_query(query, query, query));
	CHECK(!plans_query(other, other, query));
	(void) rf_core_mark_query(other);
	CHECK(!plans_query(other, other, query));
	CHECK(!plans_query(query, query, other));
	CHECK(plans_query(query, copyObject(query), query) == RF_PLANNER_COPIES_QUERY);
	PG_RETURN_VOID();
}

Datum
rf_core_knows_records(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(rf_core_knows_stretches());
}

Datum
rf_core_count(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) rf_core_completions());
}

/*
 * rf_core_next_xmax() is between the xmax of a snapshot that was taken before, and that of one
 * taken after.
 */
Datum
rf_core_xmax(PG_FUNCTION_ARGS)
{
	TransactionId before = GetLatestSnapshot()->xmax;
	TransactionId next = rf_core_next_xmax();

	CHECK(TransactionIdPrecedesOrEquals(before, next));
	CHECK(TransactionIdPrecedesOrEquals(next, GetLatestSnapshot()->xmax));
	PG_RETURN_TRANSACTIONID(next);
}

/*
 * The doubts are set where the extension looks for them.
 */
Datum
rf_core_doubt(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {
		"hash", "members", "words", "query", "snapshot", "record", "clock"
	};
	Datum	   *values;
	bool	   *nulls;
	int			n;
	uint32	   *doubts = (uint32 *)
	load_external_function("$libdir/rangefilter", "rf_core_doubts", true, NULL);

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false,
					  TYPALIGN_INT, &values, &nulls, &n);
	*doubts = 0;
	for (int i = 0; i < n; i++)
	{
		char	   *name = TextDatumGetCString(values[i]);
		int			reach = 0;

		if (*name == '\0')
			continue;
		while (reach < lengthof(names) && strcmp(names[reach], name) != 0)
			reach++;
		if (reach == lengthof(names))
			elog(ERROR, "no reach is called \"%s\"", name);
		*doubts |= 1 << reach;
	}
	PG_RETURN_VOID();
}

/*
 * A memory context's allocation, of which large ones fail.
 */
static void *
refusing_alloc(ALLOC_PARAMS)
{
	return size >= refused_from ? NO_MEMORY : usual->alloc(ALLOC_ARGS);
}

/*
 * Replaces what the contexts of a name that allocate by "from" allocate by.  Returns their number.
 */
static int
replace_methods(MemoryContext context, const char *name, const MemoryContextMethods *from,
				const MemoryContextMethods *to)
{
	int			n = 0;

	if (context->methods == from && strcmp(context->name, name) == 0)
	{
		context->methods = to;
		n++;
	}
	for (context = context->firstchild; context != NULL; context = context->nextchild)
		n += replace_methods(context, name, from, to);
	return n;
}

/*
 * Has requests of this size or more fail in memory contexts of a name; 0: none.  Returns the number
 * of contexts.
 */
Datum
rf_core_refuse_memory(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (usual == NULL)
	{
		usual = TopMemoryContext->methods;
		refusing = *usual;
		refusing.alloc = refusing_alloc;
	}
	refused_from = PG_GETARG_INT32(1);
	PG_RETURN_INT32(refused_from > 0 ?
					replace_methods(TopMemoryContext, name, usual, &refusing) :
					replace_methods(TopMemoryContext, name, &refusing, usual));
}

/*
 * Starts a query without a snapshot, as for EXPLAIN.  Returns how many tables its plan has then.
 */
Datum
rf_core_start(PG_FUNCTION_ARGS)
{
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	SPIPlanPtr	plan;
	CachedPlan *cached;
	QueryDesc  *desc;
	int			tables = 0;
	ListCell   *cell;

	SPI_connect();
	plan = SPI_prepare(query, 0, NULL);
	cached = SPI_plan_get_cached_plan(plan);
	desc = CreateQueryDesc(linitial_node(PlannedStmt, cached->stmt_list), query, InvalidSnapshot,
						   InvalidSnapshot, None_Receiver, NULL, NULL, 0);
	ExecutorStart(desc, EXEC_FLAG_EXPLAIN_ONLY);
	foreach(cell, desc->plannedstmt->rtable)
		tables += lfirst_node(RangeTblEntry, cell)->rtekind == RTE_RELATION;
	ExecutorEnd(desc);
	FreeQueryDesc(desc);
	ReleaseCachedPlan(cached, NULL);
	SPI_finish();
	PG_RETURN_INT32(tables);
}

void
_PG_init(void)
{
	rf_core_watch_joins();
}

/*
 * rf_core_in_vacuum_now(): Return true if the current transaction is that of a lazy VACUUM.
 */
Datum
rf_core_in_vacuum_now(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(rf_core_in_vacuum());
}
