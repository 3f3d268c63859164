#!/bin/bash
#
# test_choice.sh: on real and generated keys, filter = auto has the fewest
# false positives within the budget, or nearly so.
#
#	test_choice.sh FILTERBENCH FILTERDATA		the last line is "N passed, M failed"
#
# Half of a set, drawn at random, is in the filter, the other half asks.  The
# choice must not be wrong more often than the best of SNARF and SuRF with real
# and with mixed suffixes, a tenth and what is left to chance aside: the choice
# itself asks for 512 keys.  FILTERS_DATA may name a directory with
# english_words.csv.gz, change_keys.csv.gz and cities.csv.gz, which are asked
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

# The figures of a filter: what was built, empty questions, rate of mistakes,
# and the size in bits.  Points count twice; numbers are asked for by points only.
figures()
{
	local ask asks=points

	[[ "$*" != *lines* ]] || asks='points ranges'
	for ask in $asks; do
		"$filterbench" --keys keys --queries others --filter "$1" --ask "$ask" "${@:2}" | sed -n "2s/^/$ask,/p"
	done | awk -F, -v asks="$asks" '{ weight = $1 == "points" ? 2 : 1; n += weight * $6; wrong += weight * $6 * $7; built = $2; bits = $4 }
		END { if (n > 0) print built, n, wrong / n, bits; exit NR != split(asks, a, " ") }'
}

# A set is in the files keys and others.  $1 is its name, the rest goes to
# filterbench.
compare()
{
	local name=$1 snarf real mixed auto
	shift

	if snarf=$(figures snarf "$@") && real=$(figures surf --suffix real "$@") &&
		mixed=$(figures surf --suffix mixed "$@") && auto=$(figures auto "$@") &&
		awk -v snarf="$snarf" -v real="$real" -v mixed="$mixed" -v auto="$auto" 'BEGIN {
			split(snarf, a, " "); split(real, b, " "); split(mixed, d, " "); split(auto, c, " ")
			least = a[3] < b[3] ? a[3] : b[3]
			least = d[3] < least ? d[3] : least
			n = c[2]
			exit !(n > 0 && c[3] <= 1.1 * least + 2 * sqrt(least / n) + 4 / n + 3 * sqrt(least / 512)) }'; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'choice: %s: failed\n' "$name $*"
		printf '%s\n' "snarf: $snarf" "real: $real" "mixed: $mixed" "auto: $auto"
	fi
	[ -z "${VERBOSE:-}" ] || printf '# %s: snarf %s, real %s, mixed %s, auto %s\n' "$name $*" "$snarf" "$real" "$mixed" "$auto"
}

# Takes strings from standard input.
strings()
{
	local bits

	sort -u | awk 'BEGIN { srand(1) } { print > (rand() < .5 ? "keys" : "others") }'
	for bits in 10 14 20; do
		compare "$1" --format lines --bits "$bits"
	done
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
		compare "$kind" --bits "$bits" --width 1
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
