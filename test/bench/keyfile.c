/*-------------------------------------------------------------------------
 *
 * keyfile.c
 *	  Reading files of keys, and searching them for the truth.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/base/bits.h"
#include "keyfile.h"

/* Prints a message behind the program's name, and ends the program. */
void
fail(const char *format,...)
{
	va_list		args;

	fflush(stdout);
	fputs("filterbench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* Allocates memory that nobody need free: the program ends soon. */
void *
allocate(size_t size)
{
	void	   *result = malloc(size > 0 ? size : 1);

	if (result == NULL)
		fail("out of memory");
	return result;
}

/*
 * Reads a whole file, which need not be one whose size is known beforehand.
 * What is returned has room for eight bytes more.
 */
static uint8_t *
read_all(const char *name, size_t *len)
{
	bool		is_stdin = strcmp(name, "-") == 0;
	FILE	   *file = is_stdin ? stdin : fopen(name, "rb");
	size_t		size = 1 << 16;
	uint8_t    *data = allocate(size);
	size_t		got;

	if (file == NULL)
		fail("could not open \"%s\": %s", name, strerror(errno));
	*len = 0;
	while ((got = fread(data + *len, 1, size - 8 - *len, file)) > 0)
	{
		*len += got;
		if (*len == size - 8)
		{
			size *= 2;
			data = realloc(data, size);
			if (data == NULL)
				fail("out of memory");
		}
	}
	if (ferror(file))
		fail("could not read \"%s\": %s", name, strerror(errno));
	if (!is_stdin)
		fclose(file);
	return data;
}

static void
parse_numbers(KeyFile *file, const char *name, size_t len)
{
	size_t		i;

	if (len % sizeof(uint64_t) != 0)
		fail("\"%s\" has %zu bytes, which are no whole number of 64-bit keys",
			 name, len);
	file->n = len / sizeof(uint64_t);
	file->numbers = allocate(len);
	for (i = 0; i < file->n; i++)
		file->numbers[i] = bits_load64(file->data + i * sizeof(uint64_t));
}

/* The last line may do without its end. */
static void
parse_lines(KeyFile *file, size_t len)
{
	const uint8_t *at = file->data;
	const uint8_t *end = at + len;
	size_t		i;

	for (i = 0; i < len; i++)
		file->n += at[i] == '\n';
	file->n += len > 0 && at[len - 1] != '\n';
	file->strings = allocate(file->n * sizeof(FilterBytes));
	for (i = 0; i < file->n; i++)
	{
		const uint8_t *newline = memchr(at, '\n', end - at);

		if (newline == NULL)
			newline = end;
		file->strings[i].data = at;
		file->strings[i].len = (uint32_t) (newline - at);
		at = newline + 1;
	}
}

/* See keyfile.h. */
KeyFile
keyfile_read(const char *name, KeyFormat format)
{
	KeyFile		file = {format, 0, NULL, NULL, NULL};
	size_t		len;

	file.data = read_all(name, &len);
	if (format == FORMAT_LINES)
		parse_lines(&file, len);
	else
	{
		parse_numbers(&file, name, len);
		free(file.data);
		file.data = NULL;
	}
	return file;
}

static int
compare_strings(const void *a, const void *b)
{
	return filter_bytes_compare(*(const FilterBytes *) a,
								*(const FilterBytes *) b);
}

/* See keyfile.h. */
void
keyfile_order(KeyFile *file, const char *name)
{
	size_t		i;

	if (file->format == FORMAT_LINES)
	{
		qsort(file->strings, file->n, sizeof(FilterBytes), compare_strings);
		return;
	}
	for (i = 1; i < file->n; i++)
	{
		if (file->numbers[i] < file->numbers[i - 1])
			fail("\"%s\" is not sorted: key %zu, %" PRIu64
				 ", is less than the one before it, %" PRIu64,
				 name, i + 1, file->numbers[i], file->numbers[i - 1]);
	}
}

/* See keyfile.h. */
bool
keyfile_holds_number(const KeyFile *file, uint64_t lo, uint64_t hi)
{
	size_t		from = 0;
	size_t		to = file->n;

	while (from < to)
	{
		size_t		middle = from + (to - from) / 2;

		if (file->numbers[middle] < lo)
			from = middle + 1;
		else
			to = middle;
	}
	return from < file->n && file->numbers[from] <= hi;
}

/* See keyfile.h. */
bool
keyfile_holds_string(const KeyFile *file, const FilterByteRange *range)
{
	size_t		from = 0;
	size_t		to = file->n;

	while (from < to)
	{
		size_t		middle = from + (to - from) / 2;

		if (filter_bytes_compare(file->strings[middle], range->lo) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from < file->n &&
		(range->hi_unbounded ||
		 filter_bytes_compare(file->strings[from], range->hi) < (range->hi_exclusive ? 0 : 1));
}
