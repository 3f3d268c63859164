#!/bin/bash
#
# types.sh: questions to columns of several types.
#
# Tables in partitions by day, each with one column or two whose values are random, so that every partition
# spans them all; with a btree, and with rangefilter and a btree.  Asks for values that are in one
# partition.  Writes its section of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	TYPES_PARTITIONS=1000
#	TYPES_ROWS=5000			rows per partition
#	TYPES_VALUES=40			different values asked for
#	TYPES_ROUNDS=10			times that all are asked for (median); once with btrees alone
#	TYPES_WARM=30			rounds before, which fill the caches; one with btrees alone
#	TYPES_RESULTS=file		where to write, also when not at full size

RESULTS=${TYPES_RESULTS:+$(realpath -m "$TYPES_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${TYPES_PARTITIONS:-1000}
ROWS=${TYPES_ROWS:-5000}
VALUES=${TYPES_VALUES:-40}
ROUNDS=${TYPES_ROUNDS:-10}
WARM=${TYPES_WARM:-30}

# A kind of condition: the columns of its index, their definitions, and their values for number n.
KINDS=(bigints uuids hexadecimal two tenants words more)
declare -A COLUMNS=([bigints]=i [uuids]=u [hexadecimal]=h [words]=w [more]=w [two]='a, b' [tenants]='t, n')
declare -A DEFINITIONS=([bigints]='i bigint' [uuids]='u uuid' [hexadecimal]='h text' [words]='w text' [more]='w text'
	[two]='a int, b int' [tenants]='t int, n bigint')
declare -A VALUES_OF=([bigints]='hashint8extended(n, 1)' [uuids]="md5('u' || n)::uuid" [hexadecimal]='md5(n::text)'
	[words]='three_words(n)' [more]='three_words(n)' [two]='abs(hashint8extended(n, 5)) % 100000, abs(hashint8extended(n, 6)) % 100000'
	[tenants]='abs(hashint8extended(n, 7)) % 1000, n')
# Options of its rangefilter index.
declare -A OPTIONS=([more]='WITH (bits_per_key = 18)')
declare -A NAMES=([bigints]='bigint' [uuids]='uuid' [hexadecimal]='text, 32 hexadecimal digits'
	[words]='text, three of 1,000 words and a number'
	[more]='the same with bits_per_key = 18' [two]='two int columns'
	[tenants]='one of 1,000 tenants, and an ascending bigint')

# Makes the tables, each named as its kind.
make_tables()
{
	local kind

	rf_psql <<'SQL'
CREATE FUNCTION word(bigint, bigint) RETURNS text IMMUTABLE RETURN
	translate(left(md5((abs(hashint8extended($1, $2)) % 1000)::text), 7), '0123456789', 'aeioulnrst');
CREATE FUNCTION three_words(bigint) RETURNS text IMMUTABLE RETURN
	word($1, 2) || ' ' || word($1, 3) || ' ' || word($1, 4) || ' ' || $1 % 100;
SQL
	for kind in "${KINDS[@]}"; do
		rf_psql -v kind="$kind" -v partitions="$PARTITIONS" -v rows="$ROWS" -v definition="${DEFINITIONS[$kind]}" -v values="${VALUES_OF[$kind]}" <<'SQL'
CREATE TABLE :kind (day int, :definition) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%2$s) TO (%3$s)', :'kind', day, day + 1)
FROM generate_series(0, :partitions - 1) day
\gexec
INSERT INTO :kind SELECT n / :rows, :values FROM generate_series(0, :partitions::bigint * :rows - 1) n;
SQL
	done
}

# Puts indexes of method $1 onto the tables.
make_indexes()
{
	local kind options

	for kind in "${KINDS[@]}"; do
		options=
		[ "$1" = btree ] || options=${OPTIONS[$kind]:-}
		rf_psql -c "CREATE INDEX ${kind}_$1 ON $kind USING $1 (${COLUMNS[$kind]}) $options" -c "VACUUM (FREEZE, ANALYZE) $kind"
	done
	rf_psql -c CHECKPOINT
}

# Writes what asks for the values of kind $1.
write_questions()
{
	local columns=${COLUMNS[$1]}

	rf_psql -c "SELECT format('SELECT count(*) FROM $1 WHERE ($columns) = ROW(%s);', v)
		FROM (SELECT concat_ws(', ', $(sed 's/\(\w\)/quote_nullable(\1)/g' <<<"$columns")) v
			FROM $1 WHERE day % ($PARTITIONS / $VALUES) = 0 AND random() < 20.0 / $ROWS LIMIT $VALUES) v" |
		sed -e 's/WHERE (\(\w\)) = ROW(\(.*\));/WHERE \1 = \2;/' >"$RF_TMP/questions_$1"
}

# A session that asks of all kinds in turns, $1 rounds after $2 others; statements begin with $3.  Each
# kind is announced, with 1 if the round counts.
in_turns()
{
	local i kind

	for ((i = 0; i < $1 + $2; i++)); do
		for kind in "${KINDS[@]}"; do
			printf '\\echo kind %s %d\n' "$kind" $((i >= $2))
			sed "s/^/$3/" "$RF_TMP/questions_$kind"
		done
	done
}

# The same machine does all kinds, so that its moods are in all figures: of plannings "kind ms left", of
# queries "kind ms".
ask()
{
	in_turns "$1" "$2" 'EXPLAIN (SUMMARY) ' | rf_psql |
		awk '/^kind/ { kind = $2; counts = $3 } /Partitions Skipped:/ { left = $5 - $3 }
			/^Planning Time:/ { if (counts) print kind, $3, left; left = "" }' >"$RF_TMP/plannings"
	{ printf '\\timing on\n'; in_turns "$1" 1 ''; } | rf_psql |
		awk '/^kind/ { kind = $2; counts = $3 } /^Time:/ && counts { print kind, $2 }' >"$RF_TMP/queries"
}

# Of kind $1: planning in ms, the same for the questions that leave one partition, and the whole
# query, medians; and how many partitions are left.
figures()
{
	printf '%s|%s|%s|%s\n' "$(awk -v kind="$1" '$1 == kind { print $2 }' "$RF_TMP/plannings" | rf_median)" \
		"$(awk -v kind="$1" '$1 == kind && $3 == 1 { print $2 }' "$RF_TMP/plannings" | rf_median)" \
		"$(awk -v kind="$1" '$1 == kind { print $2 }' "$RF_TMP/queries" | rf_median)" \
		"$(awk -v kind="$1" '$1 == kind && $3 != "" { left += $3; n++ } END { if (n) printf("%.1f", left / n) }' "$RF_TMP/plannings")"
}

report()
{
	local kind btree both bigint

	cat <<TEXT
# Columns of several types

Written by \`make bench B=types\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version); everything in memory, the library in
  shared_preload_libraries, rangefilter.shared_cache_size = 512MB: room for the digests of all seven tables' indexes at once
- Seven tables of $PARTITIONS partitions x $ROWS rows; \`=\` for $VALUES values of which each is in one partition or few; ms, one session asks of all
  kinds in turns (rangefilter.cache_size = 64MB), medians of $ROUNDS rounds after
  $WARM that fill the caches, for btrees of one after one, literals in the query. Left: partitions that are not skipped, mean.
  One left: of the questions that leave one partition. For each further one the planner opens a table with its two indexes and compares scans.

| | planning: btree | rangefilter and btree | to bigint's | one left | to bigint's | query: btree | rangefilter and btree | ratio | left |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
TEXT
	IFS='|' read -r -a bigint <"$RF_TMP/both_bigints"
	for kind in "${KINDS[@]}"; do
		IFS='|' read -r -a btree <"$RF_TMP/btree_$kind"
		IFS='|' read -r -a both <"$RF_TMP/both_$kind"
		printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "${NAMES[$kind]}" "$(rf_round "${btree[0]}")" \
			"$(rf_round "${both[0]}")" "$(rf_ratio "${both[0]}" "${bigint[0]}")" \
			"$(rf_round "${both[1]}")" "$(rf_ratio "${both[1]}" "${bigint[1]}")" \
			"$(rf_round "${btree[2]}")" "$(rf_round "${both[2]}")" "$(rf_ratio "${btree[2]}" "${both[2]}")" "${both[3]}"
	done
}

main()
{
	local kind

	rf_prepare_bench
	rf_start_server types shared_preload_libraries=rangefilter rangefilter.shared_cache_size=512MB rangefilter.cache_size=64MB shared_buffers=2GB max_wal_size=4GB \
		max_locks_per_transaction=1024 autovacuum=off jit=off
	rf_psql -c 'CREATE EXTENSION rangefilter'
	make_tables
	make_indexes btree
	for kind in "${KINDS[@]}"; do
		write_questions "$kind"
	done
	ask 1 1
	for kind in "${KINDS[@]}"; do
		figures "$kind" >"$RF_TMP/btree_$kind"
	done
	make_indexes rangefilter
	ask "$ROUNDS" "$WARM"
	for kind in "${KINDS[@]}"; do
		figures "$kind" >"$RF_TMP/both_$kind"
	done
	report >"$RF_TMP/section"
	rf_finish_bench types "$PARTITIONS $ROWS $VALUES $ROUNDS $WARM" "1000 5000 40 10 30"
}

main
