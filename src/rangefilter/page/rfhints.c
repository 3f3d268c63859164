/*-------------------------------------------------------------------------
 *
 * rfhints.c
 *	  In which buffers pages of indexes were last seen, in shared memory.
 *
 * A backend that asks a thousand indexes for the first time would look up each page in
 * core's table of buffers, and before that the storage manager's entry for each file.
 * If the server loaded the library, a backend that has found a page notes in which
 * buffer it is, for all others.
 *
 * These are hints.  Pages of different files may share one, and a hint stays when
 * the page leaves its buffer.  So a backend that follows a hint must check what is in
 * the buffer, as ReadRecentBuffer() does.  Hence there is no lock either.
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
 * Notes that a page was found in a shared buffer.
 */
void
rf_note_buffer(const RfRelFile *locator, BlockNumber block, Buffer buffer)
{
	if (rf_shared != NULL)
		pg_atomic_write_u32(rf_hint(locator, block), (uint32) buffer);
}
