/*-------------------------------------------------------------------------
 *
 * whhint.c
 *	  Where pages were last seen in the buffer pool.
 *
 * Finding a block in the shared buffer table costs a hash, a partition lock
 * and two or three lines of memory that are in no cache, for each page of a
 * descent.  So each backend remembers the buffers of blocks it has read, in a
 * table of fixed size without chains, for all its indexes.  Core verifies the
 * guess while pinning: a wrong one costs a little and does no harm.  Nothing
 * needs to be invalidated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "compat.h"
#include "port/pg_bitutils.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "wormhole/wormhole.h"

/* Settings. */
bool		wh_enable_hint = true;
int			wh_hint_memory = 1024;	/* kB */

/*
 * A pin by a remembered buffer does not count as use for the buffer pool's
 * clock.  So that hot pages stay, every so many pins go the long way.
 */
#define LONG_WAY	64

/* The table: a power of two of buffers. */
static Buffer *recent = NULL;
static uint32 recent_mask = 0;
static int	recent_memory = 0;	/* the setting it was made for */

/*
 * Registers the settings.  Called once, when the library is loaded.
 */
void
wh_init_hint(void)
{
	DefineCustomBoolVariable("wormhole.enable_hint",
							 "Remembers where pages of wormhole indexes are in the buffer pool.",
							 NULL, &wh_enable_hint, true, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("wormhole.hint_memory",
							"Memory of a session for remembering where pages of wormhole indexes are.",
							NULL, &wh_hint_memory, 1024, 64, 1024 * 1024,
							PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
}

/*
 * Makes the table, or makes it anew after the setting has changed.
 */
static void
make_table(void)
{
	Size		n = pg_prevpower2_32(wh_hint_memory * (Size) 1024 /
									 sizeof(Buffer));

	if (recent != NULL)
		pfree(recent);
	recent = NULL;
	recent = MemoryContextAllocZero(TopMemoryContext, n * sizeof(Buffer));
	recent_mask = n - 1;
	recent_memory = wh_hint_memory;
}

/*
 * Pins a block.
 */
Buffer
wh_pin(Relation index, BlockNumber block)
{
	static uint32 pins = 0;
	Buffer	   *place;

	if (!wh_enable_hint)
		return ReadBuffer(index, block);
	if (unlikely(recent == NULL || recent_memory != wh_hint_memory))
		make_table();

	/* Neighbouring blocks are neighbours in the table. */
	place = &recent[(murmurhash32(RelationGetRelid(index)) + block) &
					recent_mask];
	if (likely(++pins % LONG_WAY != 0 && *place != InvalidBuffer &&
			   ReadRecentBuffer(RF_RELFILE(index), MAIN_FORKNUM, block,
								*place)))
		return *place;
	*place = ReadBuffer(index, block);
	return *place;
}
