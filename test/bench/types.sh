#!/bin/bash
#
# types.sh: questions to columns of several types.
#
# Tables in partitions by day, each with one column or two whose values are random, so that every partition
# spans them all; with a btree, and with rangefilter and a btree.  Asks for values that are in one
# partition, and for others like them that are in none.  Writes its section of test/bench/RESULTS.md when run at full size.
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
KINDS=(bigints uuids hexadecimal two tenants words emails paths single)
declare -A COLUMNS=([bigints]=i [uuids]=u [hexadecimal]=h [two]='a, b' [tenants]='t, n' [words]=w [emails]=w [paths]=w [single]=w)
declare -A DEFINITIONS=([bigints]='i bigint' [uuids]='u uuid' [hexadecimal]='h text' [words]='w text' [emails]='w text' [paths]='w text'
	[single]='w text' [two]='a int, b int' [tenants]='t int, n bigint')
declare -A VALUES_OF=([bigints]='hashint8extended(n, 1)' [uuids]="md5('u' || n)::uuid" [hexadecimal]='md5(n::text)'
	[words]='three_words(n)' [emails]='email(n)' [paths]='path(n)' [single]='word(n)'
	[two]='abs(hashint8extended(n, 5)) % 100000, abs(hashint8extended(n, 6)) % 100000'
	[tenants]='abs(hashint8extended(n, 7)) % 1000, n')
declare -A NAMES=([bigints]='bigint' [uuids]='uuid' [hexadecimal]='text, 32 hexadecimal digits'
	[words]='text, three of 1,000 words and a number' [emails]='text, e-mail addresses' [paths]='text, paths of files'
	[single]='text, one word' [two]='two int columns'
	[tenants]='one of 1,000 tenants, and an ascending bigint')

# Makes the tables, each named as its kind.
make_tables()
{
	local kind

	rf_psql <<'SQL'
-- A made-up word of three syllables for each number below 64 million; numbers are scrambled.
CREATE FUNCTION syllable(bigint) RETURNS text IMMUTABLE RETURN
	substr('bdfgklmnprstvwzh', ($1 % 16 + 1)::int, 1) || substr('aeiou', ($1 / 16 % 5 + 1)::int, 1) ||
	(ARRAY['', 'n', 'r', 's', 'l'])[$1 / 80 % 5 + 1];
CREATE FUNCTION word(bigint) RETURNS text IMMUTABLE RETURN
	syllable($1 * 48271 % 63999979) || syllable($1 * 48271 % 63999979 / 400) || syllable($1 * 48271 % 63999979 / 160000);
-- One of so many words, by a number's hash.
CREATE FUNCTION one_word(n bigint, seed bigint, words bigint) RETURNS text IMMUTABLE RETURN
	word(abs(hashint8extended(n, seed)) % words);
CREATE FUNCTION three_words(n bigint) RETURNS text IMMUTABLE RETURN
	one_word(n, 2, 1000) || ' ' || one_word(n, 3, 1000) || ' ' || one_word(n, 4, 1000) || ' ' || n % 100;
CREATE FUNCTION email(n bigint) RETURNS text IMMUTABLE RETURN
	one_word(n, 2, 2000) || '.' || one_word(n, 3, 100000) || CASE WHEN n % 3 = 0 THEN (n % 97)::text ELSE '' END || '@' ||
	one_word(n, 4, 40) || (ARRAY['.com', '.org', '.net', '.de'])[abs(hashint8extended(n, 4)) % 40 % 4 + 1];
CREATE FUNCTION path(n bigint) RETURNS text IMMUTABLE RETURN
	'/home/' || one_word(n, 2, 300) || '/' || (ARRAY['src', 'documents', 'projects', '.cache'])[n % 4 + 1] || '/' ||
	one_word(n, 3, 2000) || '/' || one_word(n, 4, 50000) || '_' || n % 1000 || (ARRAY['.c', '.txt', '.html', '.json', '.png'])[n % 5 + 1];
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
	local kind

	for kind in "${KINDS[@]}"; do
		rf_psql -c "CREATE INDEX ${kind}_$1 ON $kind USING $1 (${COLUMNS[$kind]})" -c "VACUUM (FREEZE, ANALYZE) $kind"
	done
	rf_psql -c CHECKPOINT
}

# Writes what asks kind $1 for values, which the query $2 returns, to file $3.
write_questions()
{
	local columns=${COLUMNS[$1]}

	rf_psql -c "SELECT format('SELECT count(*) FROM $1 WHERE ($columns) = ROW(%s);', v)
		FROM (SELECT concat_ws(', ', $(sed 's/\(\w\)/quote_nullable(\1)/g' <<<"$columns")) v FROM ($2) x ($columns) LIMIT $VALUES) v" |
		sed -e 's/WHERE (\(\w\)) = ROW(\(.*\));/WHERE \1 = \2;/' >"$RF_TMP/questions_$3"
}

# Values of kind $1 that are in some partition, and others that are in none.
write_all_questions()
{
	local columns=${COLUMNS[$1]} n=$((PARTITIONS * ROWS))

	write_questions "$1" "SELECT $columns FROM $1 WHERE day % ($PARTITIONS / $VALUES) = 0 AND random() < 20.0 / $ROWS" "$1"
	write_questions "$1" "SELECT ${VALUES_OF[$1]} FROM generate_series($n::bigint, $n + 2 * $VALUES) n
		EXCEPT SELECT $columns FROM $1" "absent_$1"
}

# A session that asks of all kinds in turns, $1 rounds after $2 others; statements begin with $3.  Each
# kind is announced, with 1 if the round counts.
in_turns()
{
	local i kind

	for ((i = 0; i < $1 + $2; i++)); do
		for kind in "${KINDS[@]}" "${KINDS[@]/#/absent_}"; do
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

# Of kind $1: planning in ms, and the whole query, medians; planning for absent values; and how many partitions are left for
# these, mean.
figures()
{
	printf '%s|%s|%s|%s\n' "$(awk -v kind="$1" '$1 == kind { print $2 }' "$RF_TMP/plannings" | rf_median)" \
		"$(awk -v kind="$1" '$1 == kind { print $2 }' "$RF_TMP/queries" | rf_median)" \
		"$(awk -v kind="absent_$1" '$1 == kind { print $2 }' "$RF_TMP/plannings" | rf_median)" \
		"$(awk -v kind="absent_$1" -v all="$PARTITIONS" '$1 == kind { left += $3 == "" ? all : $3; n++ } END { if (n) printf("%.2f", left / n) }' "$RF_TMP/plannings")"
}

report()
{
	local kind btree both bigint

	cat <<TEXT
# Columns of several types

Written by \`make bench B=types\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version); everything in memory, the library in
  shared_preload_libraries, rangefilter.shared_cache_size = 512MB: room for the digests of all tables' indexes at once
- ${#KINDS[@]} tables of $PARTITIONS partitions x $ROWS rows; \`=\` for $VALUES values of which each is in one partition or few, and for $VALUES like them that
  are in none; ms, one session asks of all kinds in turns (rangefilter.cache_size = 64MB), medians of $ROUNDS rounds after
  $WARM that fill the caches, for btrees of one after one, literals in the query. Read in vain: partitions that are not skipped though
  the value is in none, mean. For each of these the planner opens a table with its two indexes and compares scans.

| | planning: btree | rangefilter and btree | to bigint's | query: btree | rangefilter and btree | ratio | absent: planning | to bigint's | read in vain |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
TEXT
	IFS='|' read -r -a bigint <"$RF_TMP/both_bigints"
	for kind in "${KINDS[@]}"; do
		IFS='|' read -r -a btree <"$RF_TMP/btree_$kind"
		IFS='|' read -r -a both <"$RF_TMP/both_$kind"
		printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "${NAMES[$kind]}" "$(rf_round "${btree[0]}")" \
			"$(rf_round "${both[0]}")" "$(rf_ratio "${both[0]}" "${bigint[0]}")" \
			"$(rf_round "${btree[1]}")" "$(rf_round "${both[1]}")" "$(rf_ratio "${btree[1]}" "${both[1]}")" \
			"$(rf_round "${both[2]}")" "$(rf_ratio "${both[2]}" "${bigint[2]}")" "${both[3]}"
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
		write_all_questions "$kind"
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
