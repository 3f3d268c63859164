/*-------------------------------------------------------------------------
 *
 * baseline.h
 *	  What filters are compared with: a Bloom filter, and least and greatest key.
 *
 * Keys come as 64-bit hashes for the one, in order for the other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_BASELINE_H
#define RANGEFILTER_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Bloom
{
	uint64_t   *words;
	uint64_t	nbits;
	unsigned	nhashes;
} Bloom;

/* An empty filter for so many keys. */
extern void bloom_begin(Bloom *bloom, uint64_t nkeys, unsigned bits_per_key);
extern void bloom_add(Bloom *bloom, uint64_t hash);
extern bool bloom_has(const Bloom *bloom, uint64_t hash);

extern uint64_t hash_number(uint64_t number);
extern uint64_t hash_bytes(const uint8_t *data, size_t len);

#endif							/* RANGEFILTER_BASELINE_H */
