#!/bin/bash
#
# wormhole.sh: btree, hash and wormhole on the same tables, side by side in one
# run.  Writes test/bench/RESULTS-wormhole.md when run at full size.
#
# Every probe is one rescan in a nested loop; the times are of the statement,
# outer side included, divided by the probes.  wall is the time that passed, cpu
# the user time of the backend, which a busy machine disturbs less.
#
# The mixed load: sessions that look up keys and insert others, on tables of their own
# for each method, which take turns.
#
# Environment, with defaults:
#	WORMHOLE_ROWS=10000000		rows of each table
#	WORMHOLE_PROBES=500000
#	WORMHOLE_REPEAT=3			runs of each query (the least counts)
#	WORMHOLE_SETS="int8 uuid url word"
#	WORMHOLE_METHODS="btree hash wormhole"
#	WORMHOLE_ROUNDS=10			of the mixed load (median); 0: none
#	WORMHOLE_SETTINGS=			of the server, "name=value ..."
#	WORMHOLE_RESULTS=file		where to write, also when not at full size
#
# What is known of one method is printed, on standard error, when it is.
#
# The library is preloaded, so sessions share the hint; JIT is off, whose time
# would be in the figures of queries that are long enough.

RESULTS=${WORMHOLE_RESULTS:+$(realpath -m "$WORMHOLE_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

FULL="10000000 int8 uuid url word btree hash wormhole"
ROWS=${WORMHOLE_ROWS:-10000000}
PROBES=${WORMHOLE_PROBES:-500000}
REPEAT=${WORMHOLE_REPEAT:-3}
ROUNDS=${WORMHOLE_ROUNDS:-10}
# Of the mixed load: transactions of each of two clients, and keys in a transaction of many.
TRANSACTIONS=20000
MANY=100
read -ra SETS <<<"${WORMHOLE_SETS:-int8 uuid url word}"
read -ra METHODS <<<"${WORMHOLE_METHODS:-btree hash wormhole}"

# An expression for the key of row i; words are carrier, flight, plane and route
# of real flights, with the row's hash to make them many.
key_of()
{
	case $1 in
		int8) echo "hashint8extended($2, 1)" ;;
		uuid) echo "md5('u' || $2)::uuid" ;;
		url) echo "'https://www.example' || abs(hashint8($2)) % 200 || '.org/catalog/section-' || abs(hashint8($2)) % 17 || '/products/' || left(md5($2::text), 28)" ;;
		word) echo "(SELECT w FROM words WHERE n = abs(hashint8($2)) % $NWORDS) || to_hex($2 / 1000)" ;;
	esac
}

type_of()
{
	case $1 in
		int8) echo int8 ;;
		uuid) echo uuid ;;
		*) echo 'text COLLATE "C"' ;;
	esac
}

# The words, once: tail numbers and routes of the flights in test/data.
load_words()
{
	rf_psql -c 'CREATE TABLE raw (line text)' -c '\copy raw FROM PROGRAM '"'xz -dc $RF_SRC/test/data/flights.csv.xz'" \
		-c "CREATE TABLE words AS SELECT row_number() OVER (ORDER BY w) - 1 AS n, w FROM (SELECT DISTINCT (string_to_array(line, ','))[n] w FROM raw, generate_series(1, 8) n) x WHERE w ~ '[A-Z]{2}'" \
		-c 'ALTER TABLE words ADD PRIMARY KEY (n)' -c 'VACUUM ANALYZE words'
	NWORDS=$(rf_psql -c 'SELECT count(*) FROM words')
}

fill_table()
{
	local set=$1

	rf_psql -c "CREATE TABLE t (k $(type_of "$set") NOT NULL, pad int)" \
		-c "INSERT INTO t SELECT $(key_of "$set" i), i FROM generate_series(1, $ROWS::int8) i" \
		-c 'VACUUM ANALYZE t' \
		-c "CREATE TABLE p AS SELECT $(key_of "$set" "(1 + abs(hashint8extended(j, 7) % $ROWS))") AS k FROM generate_series(1, $PROBES::int8) j" \
		-c 'CREATE TABLE s AS SELECT k FROM p ORDER BY k' \
		-c 'VACUUM ANALYZE p' -c 'VACUUM ANALYZE s'
}

# "wall cpu" in seconds of a statement, the least of so many runs.
measure()
{
	local runs=$1 i

	for ((i = 0; i < runs; i++)); do
		rf_psql -c 'SET client_min_messages = log' -c 'SET max_parallel_workers_per_gather = 0' \
			-c 'SET enable_hashjoin = off' -c 'SET enable_mergejoin = off' -c 'SET enable_bitmapscan = off' \
			-c 'SET enable_material = off' -c 'SET enable_memoize = off' -c "SET enable_indexonlyscan = ${INDEX_ONLY:-on}" \
			-c 'SET log_statement_stats = on' -c "$2" 2>&1 |
			sed -nE 's/^.*[[:space:]]([0-9.]+) s user, .* ([0-9.]+) s elapsed.*/\2 \1/p' | tail -n 1
	done | sort -g | head -n 1
}

# A line's figure: microseconds per operation from "wall cpu".
per()
{
	awk -v n="$1" '{ printf "%.2f / %.2f", $1 * 1e6 / n, $2 * 1e6 / n }'
}

declare -A FIGURE

measure_index()
{
	local set=$1 method=$2 n=$((PROBES / 100)) few=$((PROBES / 2000)) add=$((ROWS * 3 / 10)) times

	times=$(measure 1 "CREATE INDEX x ON t USING $method (k)")
	FIGURE[build:$method]=$(awk '{ printf "%.1f / %.1f", $1, $2 }' <<<"$times")
	rf_psql -c 'VACUUM t' -c CHECKPOINT
	FIGURE[size:$method]=$(rf_psql -c "SELECT round(pg_relation_size('x') / 1e6)")
	FIGURE[heap:$method]=$(INDEX_ONLY=off measure "$REPEAT" 'SELECT count(pad) FROM p JOIN t ON t.k = p.k' | per "$PROBES")
	if [ "$method" != hash ]; then
		FIGURE[random:$method]=$(measure "$REPEAT" 'SELECT count(*) FROM p JOIN t ON t.k = p.k' | per "$PROBES")
		FIGURE[ordered:$method]=$(measure "$REPEAT" 'SELECT count(*) FROM s JOIN t ON t.k = s.k' | per "$PROBES")
		FIGURE[short:$method]=$(measure "$REPEAT" "SELECT sum(c) FROM (SELECT k FROM p LIMIT $n) p, LATERAL (SELECT count(*) c FROM (SELECT k FROM t WHERE t.k >= p.k ORDER BY k LIMIT 100) x) y" | per "$n")
		FIGURE[long:$method]=$(measure "$REPEAT" "SELECT sum(c) FROM (SELECT k FROM p LIMIT $few) p, LATERAL (SELECT count(*) c FROM (SELECT k FROM t WHERE t.k >= p.k ORDER BY k LIMIT 10000) x) y" | per "$few")
	fi
	FIGURE[insert:$method]=$(measure 1 "INSERT INTO t SELECT $(key_of "$set" "(-i)") FROM generate_series(1, $add::int8) i" | per "$add")
	FIGURE[grown:$method]=$(rf_psql -c "SELECT round(pg_relation_size('x') / 1e6)")
	rf_psql -c 'DROP INDEX x' -c "DELETE FROM t WHERE pad IS NULL" -c 'VACUUM (TRUNCATE on) t'
}

# Tables of a fifth of the rows for the mixed load, one for each method, and keys to
# look up and to insert.
fill_mixed_tables()
{
	local set=$1 rows=$((ROWS / 5)) method

	rf_psql -c "CREATE TABLE keys AS SELECT j, $(key_of "$set" "(1 + abs(hashint8extended(j, 7) % $rows))") AS old, $(key_of "$set" "(-j)") AS new
			FROM generate_series(1, $rows::int8) j" \
		-c 'ALTER TABLE keys ADD PRIMARY KEY (j)' -c 'VACUUM ANALYZE keys'
	for method in "${METHODS[@]}"; do
		rf_psql -c "CREATE TABLE m_$method (k $(type_of "$set") NOT NULL, pad int)" \
			-c "INSERT INTO m_$method SELECT $(key_of "$set" i), i FROM generate_series(1, $rows::int8) i" \
			-c "CREATE INDEX ON m_$method USING $method (k)" -c "VACUUM ANALYZE m_$method"
		cat >"$RF_TMP/one_$method.sql" <<SQL
\\set i random(1, $rows)
\\set j random(1, $rows)
SELECT count(*) FROM m_$method WHERE k = (SELECT old FROM keys WHERE j = :i);
INSERT INTO m_$method SELECT new FROM keys WHERE j = :j;
SQL
		cat >"$RF_TMP/many_$method.sql" <<SQL
\\set i random(1, $((rows - MANY)))
\\set j random(1, $((rows - MANY)))
SELECT count(*) FROM keys JOIN m_$method ON k = old WHERE j >= :i AND j < :i + $MANY;
INSERT INTO m_$method SELECT new FROM keys WHERE j >= :j AND j < :j + $MANY;
SQL
	done
	rf_psql -c CHECKPOINT
}

# Transactions a second of script $1 by two clients, $2 transactions each.
run_mixed()
{
	PGOPTIONS='-c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c enable_material=off -c enable_memoize=off -c enable_seqscan=off' \
		rf_run "$RF_BIN/pgbench" -n -c 2 -j 2 -t "$2" -M prepared -f "$RF_TMP/$1.sql" |
		sed -nE 's/^tps = ([0-9]+).*/\1/p'
}

# The same number of rows for each method in each round, so that all tables grow alike.  Every other
# round begins with the last method.
measure_mixed()
{
	local set=$1 round method kind i last=$((${#METHODS[@]} - 1))

	fill_mixed_tables "$set"
	for ((round = 0; round < ROUNDS; round++)); do
		for ((i = 0; i <= last; i++)); do
			method=${METHODS[round % 2 ? last - i : i]}
			run_mixed "one_$method" "$TRANSACTIONS" >>"$RF_TMP/mixed.one.$method"
			run_mixed "many_$method" $((TRANSACTIONS * 2 / MANY)) >>"$RF_TMP/mixed.many.$method"
		done
	done
	for method in "${METHODS[@]}"; do
		for kind in one many; do
			FIGURE[mixed_${kind}:$method]=$(rf_median <"$RF_TMP/mixed.$kind.$method")
			rm "$RF_TMP/mixed.$kind.$method"
		done
		rf_psql -c "DROP TABLE m_$method"
	done
	rf_psql -c 'DROP TABLE keys'
}

# A line of the table: its name, the figures' name, and which is better: less or more.
# The ratios say how many times as good wormhole is, by each of the two times.
line()
{
	local btree=${FIGURE[$2:btree]:-} hash=${FIGURE[$2:hash]:-} ours=${FIGURE[$2:wormhole]:-}

	printf '| %s | %s | %s | %s | %s |\n' "$1" "$btree" "$hash" "$ours" "$(awk -v btree="$btree" -v ours="$ours" -v better="$3" 'BEGIN {
		n = split(btree, b, " / "); split(ours, o, " / ")
		for (i = 1; i <= n && o[i] > 0 && b[i] > 0; i++)
			printf("%s%.2f", i > 1 ? " / " : "", better == "less" ? b[i] / o[i] : o[i] / b[i]) }')"
}

# What is known of one method, at once: the tables come when a set is complete.
print_figures()
{
	local key

	printf '%s %s, %s rows:' "$(date +%T)" "$1 $2" "$ROWS"
	for key in random heap ordered short long build insert size grown; do
		printf ' %s %s;' "$key" "${FIGURE[$key:$2]:--}"
	done
	printf '\n'
} >&2

print_table()
{
	printf '\n## %s, %d rows\n\n| wall / cpu | btree | hash | wormhole | times as good as btree |\n|---|--:|--:|--:|--:|\n' "$1" "$ROWS"
	line 'random index-only probe, us' random less
	line 'random probe with heap fetch, us' heap less
	line 'probe in key order, index-only, us' ordered less
	line 'range of 100, us' short less
	line 'range of 10,000, us' long less
	line 'CREATE INDEX, s' build less
	line 'random insert of 30 % more rows, us a row' insert less
	line "look up a key, insert a row, 2 clients, transactions/s" mixed_one more
	line "look up $MANY keys, insert $MANY rows, 2 clients, transactions/s" mixed_many more
	line 'size fresh, MB' size less
	line 'size after 30 % more rows, MB' grown less
}

print_head()
{
	cat <<TEXT
# The wormhole index

Written by \`make bench B=wormhole\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version); everything cached, the library in shared_preload_libraries
- Wall time / user time of the backend; the least of $REPEAT runs; $PROBES probes. A build's parallel workers are not in its user
  time.
- Lines with 2 clients: prepared statements of pgbench, on tables of $((ROWS / 5)) rows; the methods take turns in changing order, median of $ROUNDS
  rounds.
TEXT
}

main()
{
	local set method

	rf_prepare_bench
	# shellcheck disable=SC2086
	rf_start_server bench shared_buffers=4GB max_wal_size=16GB maintenance_work_mem=1GB \
		autovacuum=off synchronous_commit=off shared_preload_libraries=rangefilter jit=off ${WORMHOLE_SETTINGS:-}
	rf_psql -c 'CREATE EXTENSION rangefilter'
	load_words
	print_head >"$RF_TMP/section"
	for set in "${SETS[@]}"; do
		fill_table "$set"
		FIGURE=()
		for method in "${METHODS[@]}"; do
			measure_index "$set" "$method"
			print_figures "$set" "$method"
		done
		rf_psql -c 'DROP TABLE t, p, s'
		[ "$ROUNDS" = 0 ] || measure_mixed "$set"
		print_table "$set" >>"$RF_TMP/section"
	done
	[ -n "$RESULTS" ] || [ "$ROWS ${SETS[*]} ${METHODS[*]}" != "$FULL" ] || RESULTS=$RF_ROOT/test/bench/RESULTS-wormhole.md
	rf_finish_bench wormhole "$ROWS ${SETS[*]} ${METHODS[*]}" "$FULL"
}

main "$@"
