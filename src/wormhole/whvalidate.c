/*-------------------------------------------------------------------------
 *
 * whvalidate.c
 *	  amvalidate: is an operator class one whose order is that of our keys?
 *
 * A class is what a btree class of the type would be: operators <, <=, =, >=
 * and > as strategies 1 to 5, and no support functions.  The encoding of the
 * keys belongs to the input type.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type_d.h"
#include "wormhole/wormhole.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

/*
 * Checks the operators of a family; false, with a message, for a bad one.
 */
static bool
wh_validate_operators(const char *opclass, Oid family)
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
								 op->amoprighttype))
			continue;
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method wormhole contains operator %s which does not fit",
						opclass, format_operator(op->amopopr))));
		result = false;
	}
	ReleaseCatCacheList(list);
	return result;
}

/*
 * amvalidate.
 */
bool
wh_validate(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass form;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	result = wh_validate_operators(NameStr(form->opcname), form->opcfamily);
	if (rf_codec_find(form->opcintype) == NULL)
	{
		ereport(INFO,
				(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				 errmsg("operator class \"%s\" of access method wormhole is for type %s, which has no key encoding",
						NameStr(form->opcname),
						format_type_be(form->opcintype))));
		result = false;
	}
	ReleaseSysCache(tuple);
	return result;
}
