/*-------------------------------------------------------------------------
 *
 * baseline.c
 *	  A standard Bloom filter (Bloom, CACM 1970), to compare filters with.
 *
 * Its k positions for a key are h1 + i * h2 (Kirsch and Mitzenmacher, ESA
 * 2006), with k = bits per key * ln 2.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "baseline.h"
#include "filter/base/bits.h"
#include "keyfile.h"

/* See baseline.h. */
void
bloom_begin(Bloom *bloom, uint64_t nkeys, unsigned bits_per_key)
{
	uint64_t	nwords = (nkeys * bits_per_key + 63) / 64 + 1;

	bloom->words = allocate(nwords * sizeof(uint64_t));
	memset(bloom->words, 0, nwords * sizeof(uint64_t));
	bloom->nbits = nwords * 64;
	bloom->nhashes = (unsigned) rint(bits_per_key * log(2));
	if (bloom->nhashes < 1)
		bloom->nhashes = 1;
}

/* The i-th position of a key: the hash's upper bits choose it, not its rest. */
static inline uint64_t
position(const Bloom *bloom, uint64_t hash, unsigned i)
{
	uint64_t	step = (hash << 32 | hash >> 32) | 1;

	return bits_mulhi(hash + i * step, bloom->nbits);
}

/* Adds a key. */
void
bloom_add(Bloom *bloom, uint64_t hash)
{
	unsigned	i;

	for (i = 0; i < bloom->nhashes; i++)
	{
		uint64_t	at = position(bloom, hash, i);

		bloom->words[at / 64] |= UINT64_C(1) << at % 64;
	}
}

/* Is a key there, or seems to be? */
bool
bloom_has(const Bloom *bloom, uint64_t hash)
{
	unsigned	i;

	for (i = 0; i < bloom->nhashes; i++)
	{
		uint64_t	at = position(bloom, hash, i);

		if ((bloom->words[at / 64] >> at % 64 & 1) == 0)
			return false;
	}
	return true;
}

/* Mixes a number (Steele et al., SplitMix). */
uint64_t
hash_number(uint64_t number)
{
	number += UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ (number >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ (number >> 27)) * UINT64_C(0x94d049bb133111eb);
	return number ^ (number >> 31);
}

/* A hash of a string, eight bytes at a time. */
uint64_t
hash_bytes(const uint8_t *data, size_t len)
{
	uint64_t	hash = hash_number(len);
	uint64_t	word;

	for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word))
	{
		memcpy(&word, data, sizeof(word));
		hash = hash_number(hash ^ word);
	}
	if (len > 0)
	{
		word = 0;
		memcpy(&word, data, len);
		hash = hash_number(hash ^ word);
	}
	return hash;
}
