/*-------------------------------------------------------------------------
 *
 * trial.c
 *	  Trying filters on a sample of the keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef RANGEFILTER_STANDALONE
#include "postgres.h"
#endif

#include <string.h>

#include "filter/base/port.h"
#include "filter/snarf/leading_numbers.h"
#include "filter/trial.h"

#define MAX_SAMPLE (TRIAL_GROUPS * TRIAL_GROUP_KEYS)

/*
 * With fewer distinct keys SuRF is nearly exact, and is taken without a trial.
 */
#define MIN_SAMPLE 256

/*
 * Fewer mistakes than this tell little about which filter is better.  The
 * trial is repeated with filters of three quarters of the size, down to
 * LEAST_BITS.
 */
#define ENOUGH_MISTAKES 32
#define FEW_MISTAKES 16			/* where all have been asked with the budget */
#define LEAST_BITS 6

/*
 * A round asks for every TRIAL_ROUNDSth key of the sample, so that it has keys
 * from all of it.  FEWER_ROUNDS make mistakes enough, or filters of less than the budget are tried;
 * with the budget all rounds are asked until it is decided.
 */
#define TRIAL_ROUNDS 8
#define FEWER_ROUNDS 2

/*
 * If all keys are on one page and each has PLENTY_OF_BITS bits, filters make few mistakes.
 * The trial is made with the budget then.
 */
#define PLENTY_OF_BITS 20

/* The trial is made again where a SuRF will have more bits than in it by more than this part. */
#define MANY_MORE 4

/* SuRF with real and with mixed suffixes, and SNARF over leading bytes. */
#define MAX_CANDIDATES 3

typedef struct Candidate
{
	TrialChoice choice;
	uint32_t	page_size;
	FilterRun	run;
	uint32_t	mistakes;
	bool		lost;			/* another one is better */
} Candidate;

struct Trial
{
	FilterOptions options;
	uint64_t	nrows;
	uint64_t	next_row;
	uint64_t	group_end;		/* rows of the group so far */
	uint32_t	group;
	uint32_t	group_keys;
	uint64_t	nsampled;		/* rows */
	uint8_t    *data;
	size_t		data_len;
	size_t		data_max;
	size_t		offsets[MAX_SAMPLE + 1];	/* where the keys begin in data */
	uint32_t	nkeys;
};

/* The first row of a group, unless an earlier group reaches beyond that. */
static uint64_t
group_start(const Trial *trial, uint32_t group)
{
	uint64_t	room = trial->nrows - TRIAL_GROUP_KEYS;

	return room / (TRIAL_GROUPS - 1) * group +
		room % (TRIAL_GROUPS - 1) * group / (TRIAL_GROUPS - 1);
}

/* Begins a trial, see trial.h. */
Trial *
trial_begin(const FilterOptions *options, uint64_t nrows)
{
	Trial	   *trial = filter_alloc(sizeof(Trial));

	trial->options = *options;
	trial->nrows = nrows;
	return trial;
}

/* See trial.h. */
uint64_t
trial_next_row(const Trial *trial)
{
	return trial->next_row;
}

static FilterBytes
sample_key(const Trial *trial, uint32_t i)
{
	FilterBytes key;

	key.data = trial->data + trial->offsets[i];
	key.len = (uint32_t) (trial->offsets[i + 1] - trial->offsets[i]);
	return key;
}

/* Ends a group: moves on to the next one, if there is any. */
static void
end_group(Trial *trial)
{
	uint64_t	start;

	trial->group_keys = 0;
	trial->group_end = 0;
	if (++trial->group == TRIAL_GROUPS)
	{
		trial->next_row = trial->nrows;
		return;
	}
	start = group_start(trial, trial->group);
	if (start > trial->next_row)
		trial->next_row = start;
}

/* Adds the key of the row that trial_next_row() returned. */
void
trial_add(Trial *trial, FilterBytes key)
{
	bool		sample_all = trial->nrows <= MAX_SAMPLE;

	trial->nsampled++;
	trial->next_row++;
	trial->group_end++;
	if (trial->nkeys == 0 ||
		filter_bytes_compare(sample_key(trial, trial->nkeys - 1), key) != 0)
	{
		if (trial->data_len + key.len > trial->data_max)
		{
			trial->data_max = 2 * trial->data_max + key.len + 4096;
			trial->data = filter_realloc(trial->data, trial->data_max);
		}
		if (key.len > 0)
			memcpy(trial->data + trial->data_len, key.data, key.len);
		trial->data_len += key.len;
		trial->offsets[++trial->nkeys] = trial->data_len;
		trial->group_keys++;
	}
	if (!sample_all && (trial->group_keys == TRIAL_GROUP_KEYS ||
						trial->group_end == TRIAL_GROUP_ROWS))
		end_group(trial);
}

/*
 * Does a key go into the filters?  The choice is random (Steele et al.,
 * SplitMix), but always the same.  If every other key did, the keys in the
 * filters would be spread too evenly, and the others would be too near them.
 */
static bool
is_added(uint32_t i)
{
	uint64_t	z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % 2 == 0;
}

/* Gives a build half of the keys, in one of the passes. */
static void
give_keys(const Trial *trial, FilterBuild *build,
		  void (*give) (FilterBuild *build, FilterBytes key))
{
	uint32_t	i;

	for (i = 0; i < trial->nkeys; i++)
		if (is_added(i))
			give(build, sample_key(trial, i));
}

/*
 * Makes the range from sample key i to the key with its last byte + 1.  False
 * if there is none, or a key of the filters is in it.
 */
static bool
make_range(const Trial *trial, uint32_t i, uint8_t *room,
		   FilterByteRange *range)
{
	FilterBytes key = sample_key(trial, i);
	uint32_t	len = key.len;

	if (len == 0 || len > FILTER_MAX_KEY || key.data[len - 1] == 255)
		return false;
	memset(range, 0, sizeof(FilterByteRange));
	memcpy(room, key.data, len);
	room[len - 1]++;
	range->lo = key;
	range->hi.data = room;
	range->hi.len = len;
	while (++i < trial->nkeys && !is_added(i))
		;
	return i == trial->nkeys ||
		filter_bytes_compare(range->hi, sample_key(trial, i)) < 0;
}

/*
 * Asks a filter for a key that was left out.  Returns how often it does not
 * say NO; the point counts twice.
 */
static uint32_t
ask_key(const Trial *trial, const FilterRun *run, FilterReader *reader,
		uint32_t i)
{
	uint8_t		room[FILTER_MAX_KEY];
	FilterByteRange range;
	uint32_t	mistakes;

	memset(&range, 0, sizeof(range));
	range.lo = range.hi = sample_key(trial, i);
	mistakes = filter_query_bytes(run->root, run->root_len, reader,
								  &range) != FILTER_NO ? 2 : 0;
	if (make_range(trial, i, room, &range))
		mistakes += filter_query_bytes(run->root, run->root_len, reader,
									   &range) != FILTER_NO;
	return mistakes;
}

/* Asks a candidate's filter for the keys of one round. */
static void
ask_round(const Trial *trial, Candidate *candidate, uint32_t round)
{
	const FilterRun *run = &candidate->run;
	FilterMemoryReader reader;
	uint32_t	i;

	filter_memory_reader_init(&reader, run->pages, run->npages, candidate->page_size);
	for (i = round; i < trial->nkeys; i += TRIAL_ROUNDS)
	{
		if (!is_added(i))
			candidate->mistakes += ask_key(trial, run, &reader.reader, i);
	}
}

/*
 * Builds the candidate's filter of half of the keys, nadded ones.  It gets one page of exactly
 * the size that the bits for each key allow, so that nothing is lost by rounding.
 */
static void
build_candidate(const Trial *trial, uint32_t nadded, uint32_t bits, Candidate *candidate)
{
	FilterOptions options = trial->options;
	FilterBuild *build;

	options.surf = !candidate->choice.leading;
	options.leading = candidate->choice.leading;
	options.bits_per_key = bits;
	options.page_size = candidate->page_size = (nadded * bits + 63) / 64 * 8;
	options.root_max = FILTER_MAX_ROOT;
	options.nrows = nadded;
	options.suffix = candidate->choice.suffix;
	build = filter_build_begin(&options);
	give_keys(trial, build, filter_measure_bytes);
	filter_measure_end(build);
	give_keys(trial, build, filter_add_bytes);
	filter_build_end(build, &candidate->run);
	candidate->mistakes = 0;
}

/*
 * The candidate with the fewest mistakes, of those that have not lost, apart
 * from one; NULL if there is none.
 */
static Candidate *
best_candidate(Candidate *candidates, int n, const Candidate *apart)
{
	Candidate  *best = NULL;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (!candidates[i].lost && &candidates[i] != apart &&
			(best == NULL || candidates[i].mistakes < best->mistakes))
			best = &candidates[i];
	}
	return best;
}

/*
 * Do these mistakes already tell which filter is better?  If the filters were
 * equally good, and all mistakes counted once, the standard deviation of the
 * difference would be at most the square root of the sum.  The difference must
 * be three times that.
 */
static bool
is_decided(uint64_t less, uint64_t more, uint64_t enough)
{
	return less + more >= enough &&
		(more - less) * (more - less) > 9 * (less + more);
}

/*
 * Asks the candidates that have not lost, at most nrounds rounds, until all but one have, or
 * there were enough mistakes to take the best.  False if there were too few mistakes.
 */
static bool
ask_candidates(const Trial *trial, Candidate *candidates, int n, uint32_t nrounds)
{
	Candidate  *best = NULL;
	Candidate  *second = NULL;
	uint32_t	round;
	int			i;

	for (round = 0; round < nrounds; round++)
	{
		for (i = 0; i < n; i++)
		{
			if (!candidates[i].lost)
				ask_round(trial, &candidates[i], round);
		}
		best = best_candidate(candidates, n, NULL);
		for (i = 0; i < n; i++)
			candidates[i].lost |= is_decided(best->mistakes,
											 candidates[i].mistakes, ENOUGH_MISTAKES);
		second = best_candidate(candidates, n, best);
		if (second == NULL ||
			(round + 1 >= FEWER_ROUNDS &&
			 best->mistakes + second->mistakes >= ENOUGH_MISTAKES))
			return true;
	}
	for (i = 0; i < n && nrounds == TRIAL_ROUNDS; i++)
		candidates[i].lost |= is_decided(best->mistakes, candidates[i].mistakes,
										 FEW_MISTAKES);
	return best_candidate(candidates, n, best) == NULL;
}

/* How many bits a filter has for each key. */
typedef struct TrialBits
{
	uint32_t	snarf;
	uint32_t	surf;
} TrialBits;

/*
 * Builds the candidates' filters with these bits and asks them, at most nrounds rounds.  True if there
 * were enough mistakes to decide.
 */
static bool
try_candidates(const Trial *trial, TrialBits bits, Candidate *candidates, int n,
			   uint32_t nrounds)
{
	uint32_t	nadded = 0;
	uint32_t	i;
	bool		enough;
	int			c;

	for (i = 0; i < trial->nkeys; i++)
		nadded += is_added(i);
	for (c = 0; c < n; c++)
	{
		if (!candidates[c].lost)
			build_candidate(trial, nadded, candidates[c].choice.leading ? bits.snarf : bits.surf,
							&candidates[c]);
	}
	enough = ask_candidates(trial, candidates, n, nrounds);
	for (c = 0; c < n; c++)
		filter_run_free(&candidates[c].run);
	return enough;
}

/* The bits for each key that npages pages have. */
static uint32_t
bits_of_pages(const Trial *trial, uint64_t npages, uint64_t nkeys)
{
	uint64_t	bits = (npages * trial->options.page_size * 8 + nkeys / 2) / nkeys;

	return bits < 64 ? (uint32_t) bits : 64;
}

/*
 * The bits that each key will really have: pages are whole.  How many keys there are is
 * estimated, unless all are in the sample.  A single page may become smaller: the bits are the
 * budget's then.
 */
static TrialBits
real_bits(const Trial *trial)
{
	const FilterOptions *options = &trial->options;
	uint64_t	nkeys = trial->nrows * trial->nkeys / trial->nsampled;
	uint64_t	budget = nkeys * options->bits_per_key;
	uint64_t	surf_pages = filter_budget_pages_surf(budget, options->page_size);
	TrialBits	bits;

	bits.snarf = bits_of_pages(trial, filter_budget_pages(budget, options->page_size), nkeys);
	if (bits.snarf > options->bits_per_key && bits.snarf >= PLENTY_OF_BITS)
		bits.snarf = options->bits_per_key;
	bits.surf = surf_pages == 1 ? bits.snarf : bits_of_pages(trial, surf_pages, nkeys);
	return bits;
}

/* Adds a candidate; returns how many there are. */
static int
add_candidate(Candidate *candidates, int n, bool leading, FilterSuffix suffix)
{
	candidates[n].choice.leading = leading;
	candidates[n].choice.suffix = suffix;
	return n + 1;
}

/* Lists what the options leave open.  Of equally good ones the first is taken. */
static int
list_candidates(const FilterOptions *options, Candidate *candidates)
{
	bool		tried = options->suffix == FILTER_SUFFIX_AUTO;
	FilterSuffix suffix = tried ? FILTER_SUFFIX_REAL : options->suffix;
	int			n;

	n = add_candidate(candidates, 0, false, suffix);
	if (tried)
		n = add_candidate(candidates, n, false, FILTER_SUFFIX_MIXED);
	if (!options->surf)
		n = add_candidate(candidates, n, true, suffix);
	return n;
}

/* The digits that suit the sample, behind what all keys share. */
static FilterDigits
choose_digits(const Trial *trial)
{
	LeadingCounts counts = {.nkeys = 0};
	uint32_t	i;

	for (i = 0; i < trial->nkeys; i++)
		leading_count(&counts, sample_key(trial, i), trial->options.shared.len);
	return leading_digits(&counts);
}

/*
 * Tries the candidates with "first" bits, and with fewer until there are mistakes enough.
 * True if the first ones sufficed.
 */
static bool
try_all(const Trial *trial, uint32_t first, Candidate *candidates, int n)
{
	TrialBits	bits;

	for (bits.snarf = first; bits.snarf >= LEAST_BITS; bits.snarf -= (bits.snarf + 3) / 4)
	{
		bits.surf = bits.snarf;
		if (try_candidates(trial, bits, candidates, n,
						   bits.snarf == first ? TRIAL_ROUNDS : FEWER_ROUNDS))
			return bits.snarf == first;
	}
	return false;
}

/*
 * A SuRF will have more bits than in the trial so far.  Tries the suffixes once more, with these
 * bits, and SNARF if it has not lost.  If there are too few mistakes, what was chosen remains.
 */
static TrialChoice
try_again(const Trial *trial, TrialBits bits, Candidate *candidates, int n)
{
	TrialChoice chosen = best_candidate(candidates, n, NULL)->choice;
	int			i;

	for (i = 0; i < n; i++)
		candidates[i].lost &= candidates[i].choice.leading;
	return try_candidates(trial, bits, candidates, n, FEWER_ROUNDS) ?
		best_candidate(candidates, n, NULL)->choice : chosen;
}

/* Decides, see trial.h. */
TrialChoice
trial_end(Trial *trial)
{
	const FilterOptions *options = &trial->options;
	Candidate	candidates[MAX_CANDIDATES] = {{.lost = false}};
	int			n = list_candidates(options, candidates);
	TrialChoice choice = candidates[0].choice;

	trial->options.digits = choose_digits(trial);
	if (trial->nkeys >= MIN_SAMPLE && n > 1)
	{
		TrialBits	bits = real_bits(trial);
		bool		many_mistakes = try_all(trial, bits.snarf, candidates, n);

		choice = best_candidate(candidates, n, NULL)->choice;
		if (bits.surf > bits.snarf + bits.snarf / MANY_MORE &&
			(many_mistakes || !choice.leading))
			choice = try_again(trial, bits, candidates, n);
	}
	choice.digits = options->digits;
	filter_free(trial->data);
	filter_free(trial);
	return choice;
}
