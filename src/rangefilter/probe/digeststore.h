/*-------------------------------------------------------------------------
 *
 * digeststore.h
 *	  Memory of digest matrices: what rfdigeststore.c offers to rfdigests.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_DIGESTSTORE_H
#define RANGEFILTER_DIGESTSTORE_H

#include "miscadmin.h"
#include "rangefilter/probe/internal.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"

/* The most matrices at a time. */
#define RF_DIGEST_MATRICES	1024

/*
 * A matrix belongs to 64 leaves of a partitioned index: those from 64 * number
 * on.
 */
typedef struct RfMatrixKey
{
	Oid			database;
	Oid			index;			/* partitioned; InvalidOid: the matrix is free */
	int			number;
} RfMatrixKey;

struct RfDigestMatrix
{
	pg_atomic_uint64 writes;
	pg_atomic_uint64 additions; /* twice the keys added by inserts; odd: one
								 * is being added */
	pg_atomic_uint64 used_at;	/* second */
	dsa_pointer memory;			/* of rows, if shared */
	uint64	   *rows;
	FilterDigest buckets;
	uint64		used;			/* columns that may have bits in rows */
	RfDigestColumn columns[FILTER_DIGESTS];
};

/* The keys are apart from the matrices, so that a search is fast. */
typedef struct RfDigestStore
{
	LWLock	   *lock;			/* NULL: this is the session's own */
	int			nmatrices;
	RfMatrixKey keys[RF_DIGEST_MATRICES];
	RfDigestMatrix matrices[FLEXIBLE_ARRAY_MEMBER];
} RfDigestStore;

/* The store, or NULL if there is none, or none yet. */
extern RfDigestStore *rf_digest_store;

/*
 * Of shared stores: the numbers of columns, see column_number() in rfdigests.c; 0: free.
 * The lock guards them.
 */
#define RF_DIGEST_PLACES	65536
extern uint32 *rf_digest_places;
extern bool rf_need_digest_store(void);

/* Return true if a matrix with this key exists and belongs to this database. */
static inline bool
rf_matrix_is_ours(const RfMatrixKey *key)
{
	return key->database == MyDatabaseId && OidIsValid(key->index);
}

extern void rf_lock_digests(LWLockMode mode);
extern void rf_unlock_digests(void);
extern RfDigestMatrix *rf_find_matrix(Oid index, int number);

/*
 * Begins and ends a change of a matrix.  The lock is held exclusively meanwhile, and nothing
 * in between may raise an error.
 */
extern void rf_begin_change(RfDigestMatrix *matrix);
extern void rf_end_change(RfDigestMatrix *matrix);

/*
 * Returns the number of a free matrix, and allocates "words" words for it, set to 0; -1 where
 * there is no room.  The lock is held exclusively, and rf_need_digest_store() was called.
 */
extern int	rf_allocate_matrix(Size words);
extern void rf_free_matrix(int i);

/* Bytes of a matrix's bits. */
extern Size rf_matrix_size(const RfDigestMatrix *matrix);
extern uint64 rf_this_second(void);

#endif							/* RANGEFILTER_DIGESTSTORE_H */
