#!/bin/bash
#
# filters.sh: sizes, errors and times of the filters, side by side.
#
# Generated 64-bit keys (uniform, normal, clustered, timestamps) and real
# strings, each asked by filterbench at budgets from 8 to 24 bits a key, beside
# a Bloom filter; questions next to keys beside the bound of Grafite.  Writes
# the filters' section of test/bench/RESULTS.md and filters.svg beside it when
# run at full size.
#
# Environment, with defaults:
#	FILTERS_KEYS=10000000		keys of each generated set
#	FILTERS_QUERIES=1000000		questions
#	FILTERS_BITS="8 10 12 14 16 20 24"
#	FILTERS_NEAR_BITS="8 12 16 20"	of questions next to keys
#	FILTERS_SETS="uniform normal clustered timestamps words changes"
#	FILTERS_DATA=directory		english_words.csv.gz and change_keys.csv.gz (a
#								header, then a string a line); without it, or
#								where one is not there, that set is left out
#	FILTERS_CSV=file			keeps the figures, and takes those of sets that
#								are in it already: sets may be measured one by one
#	FILTERS_RESULTS=file		where to write, also when not at full size; the
#								plot goes beside it

CSV=${FILTERS_CSV:+$(realpath -m "$FILTERS_CSV")}
RESULTS=${FILTERS_RESULTS:+$(realpath -m "$FILTERS_RESULTS")}
DATA=${FILTERS_DATA:+$(realpath -m "$FILTERS_DATA")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"
BENCH=$RF_ROOT/test/bench

KEYS=${FILTERS_KEYS:-10000000}
QUERIES=${FILTERS_QUERIES:-1000000}
BITS=${FILTERS_BITS:-8 10 12 14 16 20 24}
NEAR_BITS=${FILTERS_NEAR_BITS:-8 12 16 20}
SETS=${FILTERS_SETS:-uniform normal clustered timestamps words changes}

# Runs filterbench and notes its figures: set, questions, width, bits asked
# for, suffix, and what it printed.  $1 set, $2 file of questions, $3 what to
# call them, $4 filter, $5 bits, then more arguments.
measure()
{
	local set=$1 queries=$2 questions=$3 filter=$4 bits=$5 figures
	shift 5

	figures=$("$BENCH/filterbench" --keys "$RF_TMP/$set/keys" \
		--queries "$RF_TMP/$set/$queries" --filter "$filter" --bits "$bits" "$@" |
		tail -n 1)
	printf '%s,%s,%s,%s,%s\n' "$set" "$questions" "$filter" "$bits" "$figures" >>"$RF_TMP/csv"
}

# Generated numbers.  Near-dense ids leave room for points only.
measure_numbers()
{
	local set=$1 width=256 bits

	[ "$set" != clustered ] || width=1
	"$BENCH/filterdata" "$set" "$KEYS" "$QUERIES" 1 "$RF_TMP/$set"
	for bits in $BITS; do
		measure "$set" like range snarf "$bits" --width "$width"
		measure "$set" like range surf "$bits" --width "$width"
		measure "$set" like point bloom "$bits" --width 1
	done
	measure "$set" like range exact 64 --width "$width"
	measure "$set" like range auto 16 --width "$width"
	measure "$set" like 'range of 2^20' auto 16 --width 1048576
	measure "$set" anywhere 'range anywhere' auto 16 --width 256
	measure "$set" anywhere 'range anywhere of 2^30' auto 16 --width 1073741824
	measure_near "$set"
}

# Questions next to keys, at distances up to 2^0, 2^6, 2^15 and 2^30.
measure_near()
{
	local set=$1 bits distance width

	case $set in uniform | clustered | timestamps) ;; *) return ;; esac
	for bits in $NEAR_BITS; do
		for distance in 0 6 15 30; do
			for width in 1 32 1024; do
				measure "$set" "near$distance" "near $distance $width" auto "$bits" --width "$width"
			done
		done
		measure "$set" near0 'near hash 1' surf "$bits" --width 1 --suffix hash
	done
}

# Half of the strings, drawn at random, are keys; the others ask.
measure_strings()
{
	local set=$1 file=$2 bits ask suffix

	gzip -dc "$file" | tail -n +2 |
		awk -v keys="$RF_TMP/$set/keys" -v others="$RF_TMP/$set/others" \
			'BEGIN { srand(1) } { print > (rand() < .5 ? keys : others) }'
	for ask in point range; do
		for bits in $BITS; do
			measure "$set" others "$ask" surf "$bits" --format lines --ask "${ask}s" --suffix real
		done
		for suffix in none hash mixed; do
			measure "$set" others "$ask; suffix = $suffix" surf 24 --format lines \
				--ask "${ask}s" --suffix "$suffix"
		done
		measure "$set" others "$ask" auto 16 --format lines --ask "${ask}s"
	done
	for bits in $BITS; do
		measure "$set" others point bloom "$bits" --format lines --ask points
	done
}

measure_set()
{
	local set=$1 file=

	if [ -n "$CSV" ] && grep -qs "^$set," "$CSV"; then
		rf_say "$set: there already" >&2
		return
	fi
	case $set in
		words) file=english_words.csv.gz ;;
		changes) file=change_keys.csv.gz ;;
	esac
	rf_say "$set ..." >&2
	mkdir "$RF_TMP/$set"
	: >"$RF_TMP/csv"
	if [ -z "$file" ]; then
		measure_numbers "$set"
	elif [ -n "$DATA" ] && [ -r "$DATA/$file" ]; then
		measure_strings "$set" "$DATA/$file"
	else
		rf_say "$set: left out, set FILTERS_DATA to a directory with $file" >&2
	fi
	cat "$RF_TMP/csv" >>"$CSV"
	rm -r "${RF_TMP:?}/$set"
}

# The section's head: where and when.
machine()
{
	printf 'Written by `make bench B=filters` on %s, revision %s.\n\n' "$(date -u +%Y-%m-%d)" "$(rf_revision)"
	printf -- '- Machine: %s; one thread, everything in memory\n' "$(rf_machine)"
}

main()
{
	local set

	rf_init
	CSV=${CSV:-$RF_TMP/figures.csv}
	: >>"$CSV"
	make -s -C "$BENCH" filterbench filterdata
	for set in $SETS; do
		measure_set "$set"
	done
	machine >"$RF_TMP/machine"
	awk -f "$BENCH/filters_report.awk" -v machine="$RF_TMP/machine" \
		-v queries="$QUERIES" "$BENCH/reference.csv" "$CSV" >"$RF_TMP/section"
	awk -f "$BENCH/filters_plot.awk" "$BENCH/published.csv" "$BENCH/reference.csv" "$CSV" >"$RF_TMP/plot"
	cat "$RF_TMP/section"
	rf_choose_results "$KEYS $QUERIES" "10000000 1000000"
	if [ -n "$RESULTS" ]; then
		mkdir -p "$(dirname "$RESULTS")"
		rf_replace_section filters "$RESULTS" "$RF_TMP/section"
		cat "$RF_TMP/plot" >"$(dirname "$RESULTS")/filters.svg"
	fi
}

main
