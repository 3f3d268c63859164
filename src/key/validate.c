/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  amvalidate: is an operator class one whose values we can encode?
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
#include "commands/defrem.h"
#include "key/codec.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

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
								 op->amoprighttype))
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
