/*-------------------------------------------------------------------------
 *
 * query.c
 *	  Recognizing a Query after the planner has copied it.
 *
 * What is expected of core: querySource matters to the parser and the rewriter
 * only, and copyObject() keeps it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "core/core.h"

/* A mark is this bit, which no QuerySource has, and a number. */
#define RF_QUERY_MARK	0x40000000
#define RF_QUERY_SERIAL	0x3fffffff

/*
 * Marks a Query as the one that is planned now.  Returns the field's old
 * value, to be put back.
 */
QuerySource
rf_core_mark_query(Query *parse)
{
	static uint32 serial = 0;
	QuerySource source = parse->querySource;

	if (RF_PLANNER_COPIES_QUERY)
		parse->querySource = (QuerySource) (RF_QUERY_MARK |
											(++serial & RF_QUERY_SERIAL));
	return source;
}

/*
 * Is a Query the marked one, or a copy of it?
 */
bool
rf_core_is_marked(const Query *query, const Query *marked)
{
	return !RF_CORE_DOUBTS(RF_CORE_QUERY) &&
		(query == marked ||
		 (RF_PLANNER_COPIES_QUERY && query->querySource == marked->querySource));
}
