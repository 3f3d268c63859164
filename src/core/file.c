/*-------------------------------------------------------------------------
 *
 * file.c
 *	  Tables that have got another file in this transaction, and their indexes not.
 *
 * ALTER TABLE ... SET TABLESPACE gives a table another file, and its indexes keep
 * theirs, which change in place.  If the transaction is rolled back, the table gets its
 * old file back, but the indexes do not become what they were.  TRUNCATE in the same
 * subtransaction empties the table's new file and the indexes' files in place.
 *
 * What is expected of core (relcache.c): as long as a transaction is under way, entries
 * tell in which of its subtransactions a relation was made, and got its file.  Core
 * forgets in which one a file was new once a later change of it has been rolled back, but
 * not that it was new.  Then the files' numbers tell which is newer: they are taken from
 * the counter of OIDs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/core.h"
#include "utils/rel.h"

/*
 * Return true if the table has got another file in this transaction, and the index none with it or
 * later.
 */
bool
rf_core_is_moved(Relation heap, Relation index)
{
	SubTransactionId moved = RF_NEW_FILE_SUBID(heap);
	SubTransactionId made = Max(RF_NEW_FILE_SUBID(index), index->rd_createSubid);

	if (likely(RF_FIRST_FILE_SUBID(heap) == InvalidSubTransactionId))
		return false;
	if (moved != InvalidSubTransactionId && made != InvalidSubTransactionId)
		return made < moved;
	if (made == InvalidSubTransactionId &&
		RF_FIRST_FILE_SUBID(index) == InvalidSubTransactionId)
		return true;

	/* Both are of this transaction.  The counter may have begun anew. */
	return (int32) (RF_RELFILE_NUMBER(&RF_RELFILE(index)) -
					RF_RELFILE_NUMBER(&RF_RELFILE(heap))) < 0;
}
