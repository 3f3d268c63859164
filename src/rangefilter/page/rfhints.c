/*-------------------------------------------------------------------------
 *
 * rfhints.c
 *	  In which buffers pages of indexes were last seen, in shared memory.
 *
 * A backend that asks a thousand indexes for the first time finds their pages in
 * shared buffers, by a table of all buffers: a quarter of a microsecond a page,
 * and the storage manager's entry for each file before that.  Where the server
 * loaded the library, whoever has found a page notes in which buffer, for all.
 *
 * These are hints.  Pages of different files may share one, and nobody is told
 * when a page leaves its buffer: who follows a hint must look what is in the
 * buffer, which is what ReadRecentBuffer() does.  So there is no lock either.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "rangefilter/page/shared.h"

/*
 * The hint for a page.  Those for pages of one file are next to each other.
 */
static inline pg_atomic_uint32 *
rf_hint(const RfRelFile *locator, BlockNumber block)
{
	return &rf_shared->hints[(murmurhash32(RF_RELFILE_NUMBER(locator)) + block) %
							 RF_HINTS];
}

/*
 * The buffer in which a page may be, or InvalidBuffer.
 */
Buffer
rf_recall_buffer(const RfRelFile *locator, BlockNumber block)
{
	if (rf_shared == NULL)
		return InvalidBuffer;
	return (Buffer) pg_atomic_read_u32(rf_hint(locator, block));
}

/*
 * A page was found in a shared buffer.
 */
void
rf_note_buffer(const RfRelFile *locator, BlockNumber block, Buffer buffer)
{
	if (rf_shared != NULL)
		pg_atomic_write_u32(rf_hint(locator, block), (uint32) buffer);
}
