/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  Which operator classes and columns an index may have: amvalidate, and what
 *	  both access methods check and report when an index is built.
 *
 * A class is what the default btree class of the type is: operators <, <=, =, >=
 * and > as strategies 1 to 5, and no support functions.  The encoding of the
 * keys belongs to the input type, and has the order of that class.  Core does
 * not call amvalidate when a class is made, so builds of indexes check it, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "key/codec.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/*
 * Return true if keys sort, and equate, as this operator of a family says: if it is
 * the same one in btree's default family of its left type.
 */
static bool
sorts_keys(Form_pg_amop op)
{
	TypeCacheEntry *type = lookup_type_cache(op->amoplefttype,
											 TYPECACHE_BTREE_OPFAMILY);

	return OidIsValid(type->btree_opf) &&
		get_op_opfamily_strategy(op->amopopr, type->btree_opf) == op->amopstrategy;
}

/*
 * Raises an error if a key column's operator class has operators by which keys do not sort: called
 * when an index is built.
 */
void
rf_check_operators(Relation index, int column)
{
	CatCList   *list = SearchSysCacheList1(AMOPSTRATEGY,
										   ObjectIdGetDatum(index->rd_opfamily[column]));

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);

		if (!sorts_keys(op))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
					 errmsg("%s indexes cannot use operator %s as strategy %d",
							get_am_name(index->rd_rel->relam),
							format_operator(op->amopopr), op->amopstrategy),
					 errdetail("Keys are in the order of the default btree operator class of type %s, where this operator is not that strategy.",
							   format_type_be(op->amoplefttype)),
					 errhint("Use one of the operator classes that come with rangefilter.")));
	}
	ReleaseCatCacheList(list);
}

/*
 * Return true if a key column's type has operators of its own, as citext has, while its operator
 * class has those of another type.
 */
bool
rf_has_other_operators(Relation index, int column)
{
	Oid			type = TupleDescAttr(RelationGetDescr(index), column)->atttypid;
	Oid			own = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opintype;

	return OidIsValid(own) && own != index->rd_opcintype[column];
}

/*
 * Return true if a partitioned index has no partition but one.  That may be of this command's making.
 */
static bool
has_one_partition(Oid partitioned)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	bool		one;

	ScanKeyInit(&key, Anum_pg_inherits_inhparent, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(partitioned));
	scan = systable_beginscan(inherits, InheritsParentIndexId, true, NULL, 1, &key);
	one = systable_getnext(scan) != NULL && systable_getnext(scan) == NULL;
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return one;
}

/*
 * The name by which a NOTICE of a build calls the index, palloc'd, or NULL if there shall be none:
 * only a new index is reported.  Of the partitions of a partitioned index the first one stands for
 * all, and for those to come, under the name of the partitioned one.
 */
const char *
rf_notice_name(Relation index, const IndexInfo *index_info)
{
	Oid			named = RelationGetRelid(index);

	/* Not at every TRUNCATE and REINDEX of an index that is there already. */
	if (index->rd_createSubid == InvalidSubTransactionId && !index_info->ii_Concurrent)
		return NULL;
	while (get_rel_relispartition(named))
	{
		named = get_partition_parent(named, true);
		if (!has_one_partition(named))
			return NULL;
	}
	return get_rel_name(named);
}

/*
 * Return true if there has been no NOTICE about a new index in this statement, but now there will
 * be one.
 */
bool
rf_first_notice(void)
{
	static TimestampTz noticed = 0;
	TimestampTz statement = GetCurrentStatementStartTimestamp();

	if (noticed == statement)
		return false;
	noticed = statement;
	return true;
}

/*
 * Reports that conditions on a key column's type are not served, and returns true, if
 * rf_has_other_operators().
 */
bool
rf_notice_type(Relation index, int column, const char *name)
{
	Oid			type = TupleDescAttr(RelationGetDescr(index), column)->atttypid;

	if (!rf_has_other_operators(index, column))
		return false;
	if (!rf_first_notice())
		return true;
	ereport(NOTICE,
			(errmsg("index \"%s\" will not serve conditions on type %s",
					name, format_type_be(type)),
			 errdetail("Its keys are compared by the operators of type %s; type %s has others.",
					   format_type_be(index->rd_opcintype[column]), format_type_be(type)),
			 errhint("Index an expression, such as lower(column::text), and use it in conditions.")));
	return true;
}

/*
 * Checks the operators of a family; false, with a message, for a bad one.
 */
static bool
validate_operators(const char *method, const char *opclass, Oid family)
{
	CatCList   *list = SearchSysCacheList1(AMOPSTRATEGY,
										   ObjectIdGetDatum(family));
	bool		result = true;

	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);

		if (op->amopstrategy >= BTLessStrategyNumber &&
			op->amopstrategy <= BTMaxStrategyNumber &&
			op->amoppurpose == AMOP_SEARCH &&
			check_amop_signature(op->amopopr, BOOLOID, op->amoplefttype,
								 op->amoprighttype) &&
			sorts_keys(op))
			continue;
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s contains operator %s which does not fit",
						opclass, method, format_operator(op->amopopr))));
		result = false;
	}
	ReleaseCatCacheList(list);
	return result;
}

/*
 * amvalidate of both access methods.  False, with messages, for an operator
 * class that cannot work.
 */
bool
rf_validate_opclass(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	const char *method;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	method = get_am_name(form->opcmethod);
	result = validate_operators(method, NameStr(form->opcname),
								form->opcfamily);
	if (rf_codec_find(form->opcintype) == NULL)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method %s is for type %s, which has no key encoding",
						NameStr(form->opcname), method,
						format_type_be(form->opcintype))));
		result = false;
	}
	ReleaseSysCache(tuple);
	return result;
}
