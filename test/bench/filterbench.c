/*-------------------------------------------------------------------------
 *
 * filterbench.c
 *	  Measures a filter over a file of keys, without a server.
 *
 * Builds the filter as CREATE INDEX does (the same library, pages and root of
 * the same size), asks it the questions of a second file, and compares each
 * answer with the keys themselves.  The usage below says what goes in, and
 * what comes out.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "baseline.h"
#include "filter/filter.h"
#include "keyfile.h"

/* What a page of the server holds. */
#define PAGE_CONTENT 8152

/* As the server's default for WITH (bits_per_key). */
#define DEFAULT_BITS 14
#define MAX_BITS 64

/* Coding numbers of 64 bits without loss never takes so many bits a key. */
#define LOSSLESS_BITS 128

/* Questions are asked over and over for about so long. */
#define MIN_SECONDS 0.2
#define MAX_PASSES 1000

static const char usage[] =
"filterbench builds a range filter and measures its size, errors and speed.\n"
"\n"
"Usage:\n"
"  filterbench --keys FILE --queries FILE --width R --filter FILTER --bits B\n"
"              [--suffix S] [--format u64|lines] [--ask both|points|ranges]\n"
"\n"
"  --keys FILE      keys to build from; \"-\" is standard input\n"
"  --queries FILE   what to ask for\n"
"  --width R        numbers: ask for [q, q + R - 1], 1 is a point (default 1)\n"
"  --filter FILTER  snarf (no lines), surf, exact (lossless, whatever that takes;\n"
"                   no lines) or auto (as the server chooses); to compare with:\n"
"                   bloom, minmax\n"
"  --bits B         budget in bits per distinct key, 1 to 64 (default 14);\n"
"                   exact and minmax take what they need\n"
"  --suffix S       what surf keeps beyond distinguishing prefixes: none, hash,\n"
"                   real (default) or mixed\n"
"  --format u64     files are 64-bit little-endian numbers, keys in ascending\n"
"                   order (default); surf takes them as 8 big-endian bytes\n"
"  --format lines   files are byte strings k, one a line, in any order\n"
"  --ask both       lines: ask for the point k and for the range from k to k\n"
"                   with its last byte + 1 (default); points, ranges: only that\n"
"  --help           this text\n"
"\n"
"Prints two lines of CSV, a header and the figures:\n"
"  filter           as asked for; for auto, what was chosen\n"
"  keys             distinct keys\n"
"  bits_per_key     real size, all pages and the root, in bits per distinct key\n"
"  queries          questions asked; a line asks two, see --ask\n"
"  empty_queries    those that no key answers\n"
"  fpr              share of these that the filter does not answer with no\n"
"  false_negatives  others that it answers with no: must be 0\n"
"  ns_per_query     of the fastest of several passes over all questions\n"
"  build_ns_per_key from sorted keys in memory, per key with duplicates\n"
"Times are those of the processor.\n"
"\n"
"Exit status: 0; 1 if something is wrong with the files or the answers; 2 if it\n"
"is with the arguments.\n";

typedef enum Subject
{
	SNARF,
	SURF,
	EXACT,
	AUTO,
	BLOOM,
	MINMAX,
	SUBJECTS
} Subject;

static const char *const subject_names[] = {
	"snarf", "surf", "exact", "auto", "bloom", "minmax"
};

static const char *const suffix_names[] = {"none", "hash", "real", "mixed"};
static const char *const format_names[] = {"u64", "lines"};

enum
{
	ASK_POINTS = 1,
	ASK_RANGES = 2,
	ASK_BOTH = 3
};
static const char *const ask_names[] = {"", "points", "ranges", "both"};

typedef struct Options
{
	const char *keys;
	const char *queries;
	uint64_t	width;
	int			subject;		/* Subject; -1: not given */
	int			bits;
	int			suffix;			/* FilterSuffix */
	int			format;			/* KeyFormat */
	int			ask;
} Options;

/* One question; numbers use the first two fields. */
typedef struct Question
{
	uint64_t	lo;
	uint64_t	hi;
	FilterByteRange range;
} Question;

typedef struct Bench
{
	Options		options;
	KeyFile		keys;
	Question   *questions;
	size_t		nquestions;
	FilterRun	run;
	FilterMemoryReader reader;
	Bloom		bloom;
	uint64_t	nkeys;			/* distinct */
	uint64_t	size;			/* bytes */
	double		build_seconds;
	double		query_seconds;	/* of one pass */
	FilterAnswer *answers;
	uint64_t	empty;
	uint64_t	false_positives;
	uint64_t	false_negatives;
} Bench;

static void bad_usage(const char *format,...)
			__attribute__((noreturn, format(printf, 1, 2)));

/* Processor time: what others do on the machine counts less than by the clock. */
static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double) now.tv_sec + now.tv_nsec * 1e-9;
}

/* Complains about the arguments, and ends the program. */
static void
bad_usage(const char *format,...)
{
	va_list		args;

	fputs("filterbench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("\nTry \"filterbench --help\".\n", stderr);
	exit(2);
}

/* The number of a name in a list, for an option of that name. */
static int
parse_name(const char *option, const char *value, const char *const *names,
		   int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (*names[i] != '\0' && strcmp(value, names[i]) == 0)
			return i;
	}
	bad_usage("--%s cannot be \"%s\"", option, value);
}

static uint64_t
parse_number(const char *option, const char *value, uint64_t min, uint64_t max)
{
	char	   *end;
	uint64_t	number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end != '\0' || errno != 0 ||
		number < min || number > max)
		bad_usage("--%s must be a number from %" PRIu64 " to %" PRIu64
				  ", not \"%s\"", option, min, max, value);
	return number;
}

/* Refuses what does not go together. */
static void
check_options(const Options *options)
{
	bool		lines = options->format == FORMAT_LINES;

	if (options->keys == NULL || options->queries == NULL)
		bad_usage("--keys and --queries are needed");
	if (options->subject < 0)
		bad_usage("--filter is needed");
	if (strcmp(options->keys, "-") == 0 && strcmp(options->queries, "-") == 0)
		bad_usage("--keys and --queries cannot both be standard input");
	if (lines && (options->subject == EXACT || options->subject == SNARF))
		bad_usage("--filter %s takes numbers (--format u64)", subject_names[options->subject]);
}

static Options
parse_options(int argc, char **argv)
{
	static const struct option known[] = {
		{"keys", required_argument, NULL, 'k'},
		{"queries", required_argument, NULL, 'q'},
		{"width", required_argument, NULL, 'w'},
		{"filter", required_argument, NULL, 'f'},
		{"bits", required_argument, NULL, 'b'},
		{"suffix", required_argument, NULL, 's'},
		{"format", required_argument, NULL, 'F'},
		{"ask", required_argument, NULL, 'a'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	Options		options = {NULL, NULL, 1, -1, DEFAULT_BITS, FILTER_SUFFIX_REAL,
	FORMAT_U64, ASK_BOTH};
	int			option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
	{
		switch (option)
		{
			case 'k':
				options.keys = optarg;
				break;
			case 'q':
				options.queries = optarg;
				break;
			case 'w':
				options.width = parse_number("width", optarg, 1, UINT64_MAX);
				break;
			case 'f':
				options.subject = parse_name("filter", optarg, subject_names,
											 SUBJECTS);
				break;
			case 'b':
				options.bits = (int) parse_number("bits", optarg, 1, MAX_BITS);
				break;
			case 's':
				options.suffix = parse_name("suffix", optarg, suffix_names, 4);
				break;
			case 'F':
				options.format = parse_name("format", optarg, format_names, 2);
				break;
			case 'a':
				options.ask = parse_name("ask", optarg, ask_names, 4);
				break;
			case 'h':
				fputs(usage, stdout);
				exit(fflush(stdout) == 0 ? 0 : 1);
			default:
				bad_usage("\"%s\" is no option, or lacks its value",
						  argv[optind - 1]);
		}
	}
	if (optind < argc)
		bad_usage("unexpected argument \"%s\"", argv[optind]);
	check_options(&options);
	return options;
}

/*
 * The range from a string to that with its last byte + 1.  Where the last byte
 * is 255 that is the first string behind all that begin with it, as if the
 * addition carried; there may be none.
 */
static FilterByteRange
string_range(FilterBytes key)
{
	FilterByteRange range;
	uint32_t	len = key.len;

	memset(&range, 0, sizeof(range));
	range.lo = key;
	while (len > 0 && key.data[len - 1] == 255)
		len--;
	range.hi_unbounded = len == 0;
	if (len > 0)
	{
		uint8_t    *hi = allocate(len);

		memcpy(hi, key.data, len);
		hi[len - 1]++;
		range.hi.data = hi;
		range.hi.len = len;
	}
	return range;
}

/* Turns the queries' file into questions. */
static void
make_questions(Bench *bench, const KeyFile *queries)
{
	const Options *options = &bench->options;
	Question   *question;
	size_t		i;

	question = bench->questions = allocate(2 * queries->n * sizeof(Question));
	for (i = 0; i < queries->n; i++)
	{
		if (options->format == FORMAT_U64)
		{
			uint64_t	lo = queries->numbers[i];
			uint64_t	room = UINT64_MAX - lo;

			question->lo = lo;
			question->hi = lo + (options->width - 1 < room ?
								 options->width - 1 : room);
			question++;
			continue;
		}
		if (options->ask & ASK_POINTS)
		{
			memset(&question->range, 0, sizeof(FilterByteRange));
			question->range.lo = question->range.hi = queries->strings[i];
			question++;
		}
		if (options->ask & ASK_RANGES)
			(question++)->range = string_range(queries->strings[i]);
	}
	bench->nquestions = question - bench->questions;
}

/* Big-endian, so that they sort as the numbers do. */
static inline FilterBytes
number_as_bytes(uint64_t number, uint64_t *room)
{
	FilterBytes result;

	*room = __builtin_bswap64(number);
	result.data = (const uint8_t *) room;
	result.len = sizeof(number);
	return result;
}

typedef void (*TakeNumber) (FilterBuild *build, uint64_t key);
typedef void (*TakeBytes) (FilterBuild *build, FilterBytes key);

/* One of the library's two passes over the keys. */
static void
pass_keys(const Bench *bench, FilterBuild *build, bool as_bytes,
		  TakeNumber take_number, TakeBytes take_bytes)
{
	const KeyFile *keys = &bench->keys;
	uint64_t	room;
	size_t		i;

	for (i = 0; i < keys->n; i++)
	{
		if (keys->format == FORMAT_LINES)
			take_bytes(build, keys->strings[i]);
		else if (as_bytes)
			take_bytes(build, number_as_bytes(keys->numbers[i], &room));
		else
			take_number(build, keys->numbers[i]);
	}
}

/* Sets the library's options, as the server does. */
static void
choose_filter(const Bench *bench, FilterOptions *filter)
{
	const Options *options = &bench->options;
	const KeyFile *keys = &bench->keys;

	filter->bits_per_key = options->subject == EXACT ? LOSSLESS_BITS :
		options->bits;
	filter->suffix = options->subject == AUTO ? FILTER_SUFFIX_AUTO :
		(FilterSuffix) options->suffix;
	filter->page_size = PAGE_CONTENT;
	filter->root_max = FILTER_MAX_ROOT;
	filter->nrows = keys->n;
	filter->bytes = options->subject == SURF || keys->format == FORMAT_LINES;
}

/* Sorts by bytes, the lowest one first, as the server does.  to has room for as many. */
static void
sort_hashes(uint64_t *hashes, uint64_t *to, size_t n)
{
	for (int shift = 0; shift < 64; shift += 8)
	{
		size_t		starts[257] = {0};
		uint64_t   *from = hashes;
		size_t		i;

		for (i = 0; i < n; i++)
			starts[(from[i] >> shift & 255) + 1]++;
		for (i = 1; i < 257; i++)
			starts[i] += starts[i - 1];
		for (i = 0; i < n; i++)
			to[starts[from[i] >> shift & 255]++] = from[i];
		hashes = to;
		to = from;
	}
}

/* The sorted hashes of all strings. */
static uint64_t *
make_hashes(const KeyFile *keys)
{
	uint64_t   *hashes = allocate(2 * keys->n * sizeof(uint64_t));
	size_t		i;

	for (i = 0; i < keys->n; i++)
		hashes[i] = filter_hash(keys->strings[i]);
	sort_hashes(hashes, hashes + keys->n, keys->n);
	return hashes;
}

/* Builds a filter of the library. */
static void
build_run(Bench *bench)
{
	const Options *options = &bench->options;
	const KeyFile *keys = &bench->keys;
	FilterOptions filter = {0};
	FilterBuild *build;
	uint64_t   *hashes = NULL;
	size_t		i;

	choose_filter(bench, &filter);
	build = filter_build_begin(&filter);
	pass_keys(bench, build, filter.bytes, filter_measure_u64,
			  filter_measure_bytes);
	if (filter_build_hashes(build))
	{
		hashes = make_hashes(keys);
		for (i = 0; i < keys->n; i++)
			filter_measure_u64(build, hashes[i]);
	}
	filter_measure_end(build);
	pass_keys(bench, build, filter.bytes, filter_add_u64, filter_add_bytes);
	for (i = 0; i < keys->n && hashes != NULL; i++)
		filter_add_u64(build, hashes[i]);
	free(hashes);
	filter_build_end(build, &bench->run);

	bench->size = (uint64_t) bench->run.npages * PAGE_CONTENT +
		bench->run.root_len;
	filter_memory_reader_init(&bench->reader, bench->run.pages,
							  bench->run.npages, PAGE_CONTENT);
	if (options->subject == EXACT && bench->run.kind != FILTER_KIND_EXACT)
		fail("the filter is not exact");
}

static void
build_bloom(Bench *bench)
{
	const KeyFile *keys = &bench->keys;
	size_t		i;

	bloom_begin(&bench->bloom, bench->nkeys, bench->options.bits);
	for (i = 0; i < keys->n; i++)
		bloom_add(&bench->bloom, keys->format == FORMAT_U64 ?
				  hash_number(keys->numbers[i]) :
				  hash_bytes(keys->strings[i].data, keys->strings[i].len));
	bench->size = bench->bloom.nbits / 8;
}

static uint64_t
count_distinct(const KeyFile *keys)
{
	uint64_t	count = keys->n > 0;
	size_t		i;

	for (i = 1; i < keys->n; i++)
	{
		if (keys->format == FORMAT_U64 ?
			keys->numbers[i] != keys->numbers[i - 1] :
			filter_bytes_compare(keys->strings[i], keys->strings[i - 1]) != 0)
			count++;
	}
	return count;
}

static void
build(Bench *bench)
{
	const KeyFile *keys = &bench->keys;
	double		started;

	bench->nkeys = count_distinct(keys);
	started = seconds();
	if (bench->options.subject == BLOOM)
		build_bloom(bench);
	else if (bench->options.subject != MINMAX)
		build_run(bench);
	else if (keys->n > 0)
		bench->size = keys->format == FORMAT_U64 ? 2 * sizeof(uint64_t) :
			keys->strings[0].len + keys->strings[keys->n - 1].len;
	bench->build_seconds = seconds() - started;
}

static FilterAnswer
ask_number_run(const Bench *bench, const Question *question)
{
	return filter_query_u64(bench->run.kind, bench->run.root,
							bench->run.root_len,
							(FilterReader *) &bench->reader.reader,
							question->lo, question->hi);
}

static FilterAnswer
ask_bytes_run(const Bench *bench, const Question *question)
{
	return filter_query_bytes(bench->run.root, bench->run.root_len,
							  (FilterReader *) &bench->reader.reader,
							  &question->range);
}

/* Numbers asked as bytes. */
static FilterAnswer
ask_number_as_bytes(const Bench *bench, const Question *question)
{
	FilterByteRange range = {{NULL, 0}, {NULL, 0}, false, false, false};
	uint64_t	lo;
	uint64_t	hi;

	range.lo = number_as_bytes(question->lo, &lo);
	range.hi = number_as_bytes(question->hi, &hi);
	return filter_query_bytes(bench->run.root, bench->run.root_len,
							  (FilterReader *) &bench->reader.reader, &range);
}

/* A Bloom filter can tell of points only. */
static FilterAnswer
ask_bloom(const Bench *bench, const Question *question)
{
	const FilterByteRange *range = &question->range;

	if (bench->nkeys == 0)
		return FILTER_NO;
	if (bench->options.format == FORMAT_U64)
		return question->lo != question->hi ||
			bloom_has(&bench->bloom, hash_number(question->lo));
	if (range->lo.data != range->hi.data)
		return FILTER_YES;
	return bloom_has(&bench->bloom, hash_bytes(range->lo.data, range->lo.len));
}

static FilterAnswer
ask_minmax(const Bench *bench, const Question *question)
{
	const KeyFile *keys = &bench->keys;
	const FilterByteRange *range = &question->range;

	if (keys->n == 0)
		return FILTER_NO;
	if (keys->format == FORMAT_U64)
		return question->lo <= keys->numbers[keys->n - 1] &&
			question->hi >= keys->numbers[0];
	return filter_bytes_compare(range->lo, keys->strings[keys->n - 1]) <= 0 &&
		(range->hi_unbounded ||
		 filter_bytes_compare(range->hi, keys->strings[0]) >= 0);
}

typedef FilterAnswer (*Ask) (const Bench *bench, const Question *question);

static Ask
choose_ask(const Bench *bench)
{
	if (bench->options.subject == BLOOM)
		return ask_bloom;
	if (bench->options.subject == MINMAX)
		return ask_minmax;
	if (bench->options.format == FORMAT_LINES)
		return ask_bytes_run;
	return bench->run.kind == FILTER_KIND_SURF ? ask_number_as_bytes :
		ask_number_run;
}

/* Asks all questions, more than once, and takes the time of the fastest pass. */
static void
ask(Bench *bench)
{
	Ask			ask_one = choose_ask(bench);
	double		spent = 0;
	int			pass;
	size_t		i;

	bench->answers = allocate(bench->nquestions * sizeof(FilterAnswer));
	for (pass = 0; pass < MAX_PASSES && (pass < 2 || spent < MIN_SECONDS); pass++)
	{
		double		started = seconds();
		double		took;

		for (i = 0; i < bench->nquestions; i++)
			bench->answers[i] = ask_one(bench, &bench->questions[i]);
		took = seconds() - started;
		spent += took;
		if (pass == 0 || took < bench->query_seconds)
			bench->query_seconds = took;
	}
}

/* Compares the answers with the keys. */
static void
check_answers(Bench *bench)
{
	const KeyFile *keys = &bench->keys;
	size_t		i;

	for (i = 0; i < bench->nquestions; i++)
	{
		const Question *question = &bench->questions[i];
		bool		holds = keys->format == FORMAT_U64 ?
		keyfile_holds_number(keys, question->lo, question->hi) :
		keyfile_holds_string(keys, &question->range);

		if (!holds)
		{
			bench->empty++;
			bench->false_positives += bench->answers[i] != FILTER_NO;
		}
		else
			bench->false_negatives += bench->answers[i] == FILTER_NO;
	}
}

/* What to call the filter: by its choice, if it was free to choose. */
static const char *
filter_name(const Bench *bench)
{
	if (bench->options.subject != AUTO)
		return subject_names[bench->options.subject];
	return bench->run.kind == FILTER_KIND_SURF ? "surf" :
		bench->run.kind == FILTER_KIND_PAIR ? "pair" :
		bench->run.kind == FILTER_KIND_EXACT ? "exact" : "snarf";
}

static double
ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void
report(const Bench *bench)
{
	printf("filter,keys,bits_per_key,queries,empty_queries,fpr,"
		   "false_negatives,ns_per_query,build_ns_per_key\n");
	printf("%s,%" PRIu64 ",%.3f,%zu,%" PRIu64 ",%.6g,%" PRIu64 ",%.1f,%.1f\n",
		   filter_name(bench), bench->nkeys,
		   ratio(8.0 * bench->size, bench->nkeys), bench->nquestions,
		   bench->empty, ratio(bench->false_positives, bench->empty),
		   bench->false_negatives,
		   ratio(1e9 * bench->query_seconds, bench->nquestions),
		   ratio(1e9 * bench->build_seconds, bench->keys.n));
	if (fflush(stdout) != 0)
		fail("could not write the figures: %s", strerror(errno));
	if (bench->false_negatives > 0)
		fail("%" PRIu64 " false negatives", bench->false_negatives);
}

int
main(int argc, char **argv)
{
	/* Static, so that leak checkers see that all is still referred to. */
	static Bench bench;
	static KeyFile queries;

	bench.options = parse_options(argc, argv);
	bench.keys = keyfile_read(bench.options.keys, bench.options.format);
	keyfile_order(&bench.keys, bench.options.keys);
	queries = keyfile_read(bench.options.queries, bench.options.format);
	make_questions(&bench, &queries);
	build(&bench);
	ask(&bench);
	check_answers(&bench);
	report(&bench);
	return 0;
}
