#!/bin/bash
#
# test_choice.sh: on real and generated keys, filter = auto is wrong as seldom
# as it promises to be.
#
#	test_choice.sh FILTERBENCH FILTERDATA		the last line is "N passed, M failed"
#
# Half of a set, drawn at random, is in the filter, the other half asks.  For numbers
# the filter must not be wrong more often than SuRF with real suffixes.  For strings it must be wrong
# about at most one point of 50 with 10 bits, and of 500 with 14 bits.  FILTERS_DATA may
# name a directory with english_words.csv.gz, change_keys.csv.gz and cities.csv.gz, which are asked
# about, too.

set -u -o pipefail
export LC_ALL=C
filterbench=$(realpath "$1")
filterdata=$(realpath "$2")
flights=$(realpath "$(dirname "$0")/../data/flights.csv.xz")
data=${FILTERS_DATA:+$(realpath "$FILTERS_DATA")}
directory=$(mktemp -d "${TMPDIR:-/tmp}/choice.XXXXXX")
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
passed=0
failed=0

# The figures of a filter: what was built, empty questions, rate of mistakes.
figures()
{
	"$filterbench" --keys keys --queries others --ask points "$@" | awk -F, 'NR == 2 { print $1, $5, $6 }'
}

# A set's filter must be wrong at most so often, and by chance.  $1 is the set, $2 how often, $3 the figures.
check()
{
	if [ -n "$3" ] && awk -v most="$2" -v auto="$3" 'BEGIN {
			split(auto, a, " ")
			exit !(a[2] > 0 && a[3] <= most + 3 * sqrt(most / a[2]) + 4 / a[2]) }'; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'choice: %s: failed: %s, not %s\n' "$1" "$3" "$2"
	fi
	[ -z "${VERBOSE:-}" ] || printf '# %s: %s, at most %s\n' "$1" "$3" "$2"
}

# Takes strings from standard input.
strings()
{
	sort -u | awk 'BEGIN { srand(1) } { print > (rand() < .5 ? "keys" : "others") }'
	check "$1, 10 bits" .02 "$(figures --filter auto --format lines --bits 10)"
	check "$1, 14 bits" .002 "$(figures --filter auto --format lines --bits 14)"
	check "$1, 20 bits" .002 "$(figures --filter auto --format lines --bits 20)"
}

# A column of a CSV file; no field holds a comma in the files meant here.
column()
{
	awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
		$at != "" { print $at }'
}

for kind in uniform normal clustered timestamps; do
	"$filterdata" "$kind" 100000 100000 1 . && mv like others
	for bits in 10 14 20; do
		most=$(figures --filter surf --bits "$bits" | cut -d ' ' -f 3)
		check "$kind, $bits bits" "${most:-0}" "$(figures --filter auto --bits "$bits")"
	done
done

if command -v xz >/dev/null; then
	xz -dc "$flights" >flights.csv
	strings tailnums < <(column tailnum <flights.csv)
	strings 'flight numbers' < <(column flight <flights.csv)
	strings 'flights of a day' < <(awk -F, 'NR > 1 { print $2 "/" $3 "/" $1 }' flights.csv)
else
	printf '# no xz: the flights are left out\n'
fi
if [ -n "$data" ]; then
	strings words < <(gzip -dc "$data/english_words.csv.gz" | column word)
	strings 'change keys' < <(gzip -dc "$data/change_keys.csv.gz" | tail -n +2)
	strings cities < <(gzip -dc "$data/cities.csv.gz" | column name)
	strings latitudes < <(gzip -dc "$data/cities.csv.gz" | column lat)
fi

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
