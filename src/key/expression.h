/*-------------------------------------------------------------------------
 *
 * expression.h
 *	  What the expressions of an index, and its predicate, call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KEY_EXPRESSION_H
#define KEY_EXPRESSION_H

#include "postgres.h"

#include "utils/relcache.h"

extern bool rf_calls_users_functions(Relation index);

#endif							/* KEY_EXPRESSION_H */
