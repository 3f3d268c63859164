/*-------------------------------------------------------------------------
 *
 * equivalence.c
 *	  Equivalence classes with few members, while join clauses are made for one
 *	  partition.
 *
 * Before PostgreSQL 18 a class has the members of all partitions in one list, and
 * the clauses made of them in another one.  Core goes through both for each
 * partition, so planning takes time that grows with the square of their number.
 * From 18 on core has a list for each partition.  Here the same is done from outside:
 * for the time of some calls the class's two lists are replaced by those that these calls
 * look for.  These are the members of the partition and those of tables that are not
 * partitions, and the clauses of these members.
 *
 * What is expected of core: both lists only grow, at their ends, once the
 * partitions' members are there; and for the clauses of a partition with other
 * tables core uses members whose relations (em_relids) are all among these.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"

#if RF_CLASSES_ARE_SEARCHED

/* A class with fewer members than these is left as it is. */
#define RF_FEW_CLASS_MEMBERS 8

/* Lists of one class: what concerns no partition, and by relation what does. */
typedef struct RfCoreClass
{
	EquivalenceClass *ec;
	int			nmembers;		/* of its list, how many are sorted */
	int			nclauses;		/* likewise */
	List	   *members;
	List	   *clauses;
	List	  **members_of;		/* by number of the relation */
	List	  **clauses_of;
	List	   *all_members;	/* the class's lists while they are replaced; */
	List	   *all_clauses;	/* NULL: they are not */
	int			given;			/* clauses in the list in its place */
} RfCoreClass;

struct RfCoreClasses
{
	PlannerInfo *root;
	List	   *classes;		/* RfCoreClass */
};

/*
 * Adds an object to the lists of the partitions among the relations, or to the
 * common list.
 */
static void
sort_in(PlannerInfo *root, void *object, Relids relids, List **common,
		List **of_relation)
{
	bool		is_common = true;
	int			rti = -1;

	while ((rti = bms_next_member(relids, rti)) >= 0)
	{
		RelOptInfo *rel = root->simple_rel_array[rti];

		if (rel != NULL && rel->reloptkind == RELOPT_OTHER_MEMBER_REL)
		{
			of_relation[rti] = lappend(of_relation[rti], object);
			is_common = false;
		}
	}
	if (is_common)
		*common = lappend(*common, object);
}

/*
 * Sorts in what came to a class's lists.
 */
static void
catch_up(PlannerInfo *root, RfCoreClass *class)
{
	EquivalenceClass *ec = class->ec;

	for (; class->nmembers < list_length(ec->ec_members); class->nmembers++)
	{
		EquivalenceMember *member = list_nth(ec->ec_members, class->nmembers);

		sort_in(root, member, member->em_relids, &class->members,
				class->members_of);
	}
	for (; class->nclauses < list_length(ec->ec_derives); class->nclauses++)
	{
		RestrictInfo *clause = list_nth(ec->ec_derives, class->nclauses);

		sort_in(root, clause, clause->clause_relids, &class->clauses,
				class->clauses_of);
	}
}

/*
 * The lists of a class, made when they are asked for first.
 */
static RfCoreClass *
find_class(RfCoreClasses *classes, EquivalenceClass *ec)
{
	RfCoreClass *class;
	ListCell   *cell;

	foreach(cell, classes->classes)
	{
		class = lfirst(cell);
		if (class->ec == ec)
			return class;
	}
	class = palloc0(sizeof(RfCoreClass));
	class->ec = ec;
	class->members_of = palloc0(classes->root->simple_rel_array_size *
								sizeof(List *));
	class->clauses_of = palloc0(classes->root->simple_rel_array_size *
								sizeof(List *));
	classes->classes = lappend(classes->classes, class);
	return class;
}

/*
 * Replaces the lists of a class by those for a partition.
 */
static void
narrow(PlannerInfo *root, RfCoreClass *class, Index rti)
{
	EquivalenceClass *ec = class->ec;

	catch_up(root, class);
	class->all_members = ec->ec_members;
	class->all_clauses = ec->ec_derives;
	ec->ec_members = list_concat_copy(class->members, class->members_of[rti]);
	ec->ec_derives = list_concat_copy(class->clauses, class->clauses_of[rti]);
	class->given = list_length(ec->ec_derives);
}

/*
 * Until rf_core_widen() core finds in the equivalence classes of a partition (or
 * another member of an append relation) only what concerns it.  *classes is kept
 * by the caller from one partition to the next of the same planner's run, NULL
 * in the beginning.  If an error is raised before rf_core_widen(), the run must
 * end.
 */
void
rf_core_narrow(PlannerInfo *root, RelOptInfo *rel, RfCoreClasses **classes)
{
	MemoryContext old = MemoryContextSwitchTo(root->planner_cxt);
	int			i = -1;

	if (*classes == NULL || (*classes)->root != root)
	{
		*classes = palloc0(sizeof(RfCoreClasses));
		(*classes)->root = root;
	}
	while (!RF_CORE_DOUBTS(RF_CORE_CLASSES) &&
		   (i = bms_next_member(rel->eclass_indexes, i)) >= 0)
	{
		EquivalenceClass *ec = list_nth(root->eq_classes, i);

		if (list_length(ec->ec_members) >= RF_FEW_CLASS_MEMBERS)
			narrow(root, find_class(*classes, ec), rel->relid);
	}
	MemoryContextSwitchTo(old);
}

/*
 * Gives the classes their lists back, and what core has added to those in their
 * place.
 */
void
rf_core_widen(RfCoreClasses *classes)
{
	MemoryContext old = MemoryContextSwitchTo(classes->root->planner_cxt);
	ListCell   *cell;

	foreach(cell, classes->classes)
	{
		RfCoreClass *class = lfirst(cell);
		EquivalenceClass *ec = class->ec;
		List	   *narrowed = ec->ec_derives;

		if (class->all_members == NULL)
			continue;
		list_free(ec->ec_members);
		ec->ec_members = class->all_members;
		ec->ec_derives = list_concat(class->all_clauses,
									 list_copy_tail(narrowed, class->given));
		list_free(narrowed);
		class->all_members = NULL;
	}
	MemoryContextSwitchTo(old);
}

#else

void
rf_core_narrow(PlannerInfo *root, RelOptInfo *rel, RfCoreClasses **classes)
{
}

void
rf_core_widen(RfCoreClasses *classes)
{
}

#endif
