#!/bin/bash
#
# test_filterbench.sh: test/bench/filterbench as its users see it.
#
#	test_filterbench.sh PROGRAM		the last line is "N passed, M failed"

set -u
export LC_ALL=C
program=$(realpath "$1")
directory=$(mktemp -d "${TMPDIR:-/tmp}/filterbench.XXXXXX")
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
passed=0
failed=0
header=filter,keys,bits_per_key,queries,empty_queries,fpr,false_negatives,ns_per_query,build_ns_per_key

check()
{
	local name=$1
	shift

	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'filterbench: %s: failed\n' "$name"
		[ ! -s out ] || cat out
		[ ! -s err ] || cat err
	fi
}

# Little-endian 64-bit numbers, from decimal ones.
numbers()
{
	printf '%b' "$(awk '{ n = $1
		for (i = 0; i < 8; i++) { printf("\\x%02x", n % 256); n = int(n / 256) } }')"
}

run()
{
	"$program" "$@" >out 2>err
	status=$?
}

# The figure in a column of the only row.
figure()
{
	awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		NR == 2 { print $at[name] }' out
}

# Two lines, all columns filled, no false negatives, and the figures named.
good()
{
	local pair

	[ "$status" = 0 ] && [ ! -s err ] && [ "$(wc -l <out)" = 2 ] &&
		[ "$(head -n 1 out)" = "$header" ] &&
		tail -n 1 out | grep -qxE '[a-z]+(,[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?){8}' &&
		[ "$(figure false_negatives)" = 0 ] || return 1
	for pair in "$@"; do
		[ "$(figure "${pair%%=*}")" = "${pair#*=}" ] || return 1
	done
}

# Exit status $1 and a message that says $2; nothing on standard output.
refused()
{
	[ "$status" = "$1" ] && [ ! -s out ] && grep -q -e "$2" err
}

awk 'BEGIN { x = 7; for (i = 0; i < 3000; i++) { x = x * 16807 % 2147483647; print x } }' >values
sort -n values | head -n 2900 | numbers >keys
numbers <values >queries
awk '{ printf("%s/%x\n", NR % 7 ? "https://example.org" : "a", $1) }' values >lines
head -n 1500 lines >in

for filter in snarf surf exact auto bloom minmax; do
	for width in 1 100 18446744073709551615; do
		run --keys keys --queries queries --width "$width" --filter "$filter" --bits 12
		check "$filter, width $width" good keys=2900 queries=3000
	done
done
run --keys keys --queries keys --width 1 --filter exact --bits 1
check "exact whatever it costs" good filter=exact empty_queries=0 fpr=0
run --keys keys --queries queries --width 1 --filter snarf --bits 24
check "points between the keys" good filter=snarf empty_queries=100
for bits in 4 14 40; do
	for suffix in none hash real mixed; do
		run --keys in --queries lines --width 1 --filter surf --bits "$bits" --suffix "$suffix" --format lines
		check "lines, $suffix of $bits" good filter=surf keys=1500 queries=6000
	done
done
run --keys in --queries lines --filter auto --bits 20 --format lines
check "lines, auto" good keys=1500 queries=6000
run --keys in --queries lines --filter snarf --format lines
check "lines as numbers" refused 2 '--filter snarf takes numbers (--format u64)'
run --keys in --queries lines --filter surf --format lines --ask points
check "only points" good queries=3000 empty_queries=1500
run --keys in --queries lines --filter auto --format lines --ask ranges
check "only ranges" good queries=3000
run --keys in --queries in --filter bloom --format lines
check "Bloom filter over lines" good queries=3000 empty_queries=0
run --keys - --queries in --filter surf --format lines <lines
check "standard input" good keys=3000 queries=3000

printf 'b\n\377\377\n\na\0c\n\nlast' >odd
run --keys odd --queries odd --filter surf --format lines
check "odd lines" good keys=5 queries=12 empty_queries=0
: >empty
run --keys empty --queries queries --width 10 --filter snarf --bits 8
check "no keys" good keys=0 bits_per_key=0.000 empty_queries=3000 fpr=0
run --keys empty --queries lines --filter surf --format lines
check "no lines" good keys=0 empty_queries=6000 fpr=0
run --keys keys --queries empty --width 10 --filter auto --bits 8
check "no queries" good queries=0
printf '5 5 5 9' | tr ' ' '\n' | numbers >twice
run --keys twice --queries twice --width 1 --filter snarf --bits 8
check "duplicates" good keys=2 queries=4 empty_queries=0

run --help
check "--help" grep -q '^ *filterbench --keys FILE --queries FILE' out
check "--help, exit status" [ "$status" = 0 ]
printf '5 4' | tr ' ' '\n' | numbers >unsorted
run --keys unsorted --queries queries --width 1 --filter snarf --bits 8
check "unsorted keys" refused 1 'not sorted: key 2, 4, is less than the one before it, 5'
run --keys nowhere --queries queries --width 1 --filter snarf --bits 8
check "missing keys" refused 1 'could not open "nowhere": No such file'
run --keys keys --queries nowhere --width 1 --filter snarf --bits 8
check "missing queries" refused 1 'could not open "nowhere"'
run --keys . --queries queries --width 1 --filter snarf --bits 8
check "a directory" refused 1 'could not read "."'
head -c 13 keys >odd_size
run --keys odd_size --queries queries --width 1 --filter snarf --bits 8
check "half a key" refused 1 'odd_size" has 13 bytes'
run --keys keys --queries queries --width 0 --filter snarf --bits 8
check "width 0" refused 2 '--width must be a number from 1'
run --keys keys --queries queries --width 1 --filter snarf --bits 65
check "bits 65" refused 2 '--bits must be a number from 1 to 64'
run --keys keys --queries queries --width 1 --filter cuckoo --bits 8
check "unknown filter" refused 2 '--filter cannot be "cuckoo"'
run --keys keys --queries queries --width 1 --filter surf --bits 8 --suffix long
check "unknown suffix" refused 2 '--suffix cannot be "long"'
run --keys in --queries lines --filter exact --bits 8 --format lines
check "numbers only" refused 2 'takes numbers'
run --keys keys --width 1 --filter snarf --bits 8
check "no queries named" refused 2 '--keys and --queries are needed'
run --keys keys --queries queries --width 1 --bits 8
check "no filter named" refused 2 '--filter is needed'
run --keys keys --queries queries --filter snarf --colour
check "unknown option" refused 2 '"--colour" is no option'
run --keys keys --queries queries --filter snarf more
check "too many arguments" refused 2 'unexpected argument "more"'

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
