/*-------------------------------------------------------------------------
 *
 * keyfile.h
 *	  Files of keys for filterbench, and the truth about them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_KEYFILE_H
#define RANGEFILTER_KEYFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/filter.h"

typedef enum KeyFormat
{
	FORMAT_U64,					/* little-endian 64-bit numbers */
	FORMAT_LINES				/* byte strings, one on each line */
} KeyFormat;

/* A file's keys: one of the two arrays is set, unless there are none. */
typedef struct KeyFile
{
	KeyFormat	format;
	size_t		n;
	uint64_t   *numbers;
	FilterBytes *strings;		/* they point into data */
	uint8_t    *data;
} KeyFile;

/* Both end the program with a message where something is wrong. */
extern void fail(const char *format,...)
			__attribute__((noreturn, format(printf, 1, 2)));
extern void *allocate(size_t size);

/* Reads a file; it, or standard input for "-", may be empty. */
extern KeyFile keyfile_read(const char *name, KeyFormat format);

/*
 * Makes a file's keys ascending: strings are sorted, numbers must be sorted
 * already, or the program ends.
 */
extern void keyfile_order(KeyFile *file, const char *name);

/* Is a key of an ordered file in the range? */
extern bool keyfile_holds_number(const KeyFile *file, uint64_t lo, uint64_t hi);
extern bool keyfile_holds_string(const KeyFile *file,
								 const FilterByteRange *range);

#endif							/* RANGEFILTER_KEYFILE_H */
