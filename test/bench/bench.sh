#!/bin/bash
#
# bench.sh: no index, BRIN, btree, rangefilter, and the last two together, side
# by side in one run.
#
# A table of random 64-bit ids in partitions by day, so that every partition
# spans the whole range of ids and only one holds the id asked for.  Writes the
# table of test/bench/RESULTS.md when run at full size, and plots what is there then
# (bench.svg; bench_plot.sh does it after a change by hand).
#
# Environment, with defaults:
#	BENCH_PARTITIONS="100 1000"	one table each
#	BENCH_ROWS=20000			rows per partition
#	BENCH_SECONDS=5				length of one pgbench run
#	BENCH_REPEAT=3				pgbench runs (median)
#	BENCH_SAMPLES=40			different ids asked for
#	BENCH_CONNECTIONS=15		fresh connections (median)
#	BENCH_LOADS=5				bulk loads per variant (median), at 100 partitions
#								worth of rows; fewer for larger tables; 0: none
#	BENCH_VARIANTS="none brin btree rangefilter both"	what to compare; btree and
#								rangefilter or both must be among them
#	BENCH_RESULTS=file			where to write, also when not at full size
#
# Ten thousand partitions:
#	make bench BENCH_PARTITIONS=10000 BENCH_ROWS=1000 BENCH_SAMPLES=10 \
#		BENCH_CONNECTIONS=5 BENCH_LOADS=0 BENCH_VARIANTS="btree rangefilter both"

RESULTS=${BENCH_RESULTS:+$(realpath -m "$BENCH_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${BENCH_PARTITIONS:-100 1000}
ROWS=${BENCH_ROWS:-20000}
RUN_SECONDS=${BENCH_SECONDS:-5}
REPEAT=${BENCH_REPEAT:-3}
CONNECTIONS=${BENCH_CONNECTIONS:-15}
LOADS=${BENCH_LOADS:-5}
read -r -a VARIANTS <<<"${BENCH_VARIANTS:-none brin btree rangefilter both}"
declare -A METHODS=([none]='' [brin]=brin [btree]=btree [rangefilter]=rangefilter
	[both]='rangefilter btree')
SAMPLES=${BENCH_SAMPLES:-40}
OUTER=1000
WIDTH=1000000000
COMMITS=300

# The figures, by "measure:variant".
declare -A FIGURE

create_table()
{
	rf_psql -v partitions="$2" -v table="$1" <<'SQL' >/dev/null
CREATE TABLE :table (day int NOT NULL, id bigint NOT NULL) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%2$s) TO (%3$s)',
			  :'table', day, day + 1)
FROM generate_series(0, :partitions - 1) day
\gexec
SQL
}

# Rows arrive day after day, as they would.  A hash of the row's number is a
# random id, and the same one in every run.
fill_table()
{
	rf_psql -c "INSERT INTO bench SELECT n / $ROWS, hashint8extended(n, 1)
				FROM generate_series(0, $1::bigint * $ROWS - 1) n" \
		-c 'VACUUM (FREEZE, ANALYZE) bench' -c CHECKPOINT
}

# The ids to ask for, spread over the table; and scripts that ask for them.
write_scripts()
{
	local condition

	rf_psql -c "SELECT hashint8extended(((2 * i + 1) * ($1::bigint * $ROWS) / (2 * $SAMPLES)), 1)
				FROM generate_series(0, $SAMPLES - 1) i" >"$RF_TMP/ids"
	{
		printf '\\set i random(1, %d)\n' "$SAMPLES"
		awk 'BEGIN { printf("\\set id case") } { printf(" when :i = %d then %s", NR, $1) }
			 END { print " end" }' "$RF_TMP/ids"
	} >"$RF_TMP/choose"
	for condition in 'point:id = :id' "range:id BETWEEN :id AND :hi" 'pruned:id = :id AND day = :day'; do
		{
			cat "$RF_TMP/choose"
			case $condition in
				range:*) printf '\\set hi :id + %d\n' "$WIDTH" ;;
				pruned:*) printf '\\set day (2 * :i - 1) * %d / %d / %d\n' \
					$(($1 * ROWS)) $((2 * SAMPLES)) "$ROWS" ;;
			esac
			printf 'SELECT * FROM bench WHERE %s;\n' "${condition#*:}"
		} >"$RF_TMP/${condition%%:*}.sql"
	done
	FIRST_ID=$(head -n 1 "$RF_TMP/ids")
	FIRST_DAY=$(($1 / (2 * SAMPLES)))
	echo 'UPDATE other SET n = n + 1;' >"$RF_TMP/other.sql"
	{
		printf '\\set day random(0, %d)\n' $(($1 - 1))
		echo 'INSERT INTO bench VALUES (:day, hashint8extended((1e15 * random())::bigint, 2));'
	} >"$RF_TMP/insert.sql"

	# The outer side of a join: as many ids from all over the table.
	rf_psql -c 'DROP TABLE IF EXISTS outer_ids' \
		-c "CREATE TABLE outer_ids AS
			SELECT hashint8extended(((2 * i + 1) * ($1::bigint * $ROWS) / (2 * $OUTER)), 1) id
			FROM generate_series(0, $OUTER - 1) i" \
		-c 'ANALYZE outer_ids' 2>/dev/null
}

# Every variant has to return what the first one returned.
check_answers()
{
	local answer

	answer=$(awk -v w="$WIDTH" '{ printf("SELECT sum(id), count(*) FROM bench WHERE id = %s;\n", $1)
		printf("SELECT sum(id), count(*) FROM bench WHERE id BETWEEN %s AND %s::bigint + %s;\n", $1, $1, w) }' \
		"$RF_TMP/ids" | rf_psql | cksum)
	: "${ANSWER:=$answer}"
	[ "$answer" = "$ANSWER" ] || rf_die "$1 gave other answers than ${VARIANTS[0]}"
}

# The latency in ms of script $1 by protocol $2: the median of all seconds, or of
# the runs where one is too short for that.
pgbench_ms()
{
	local i

	for ((i = 0; i < REPEAT; i++)); do
		rf_run "$RF_BIN/pgbench" -n -M "$2" -T "$RUN_SECONDS" -P 1 -f "$RF_TMP/$1.sql" postgres 2>&1 |
			awk '/^progress: / && $7 > 0 { second[n++] = $7 }
				/^latency average = / { average = $4 }
				END { if (n < 2 || average > 300) print average
					else for (i = 0; i < n; i++) print second[i] }'
	done | rf_median
}

# A nested loop of OUTER rows as a prepared statement, in one session: what planning it takes,
# and the median of REPEAT executions after one that fills the caches, both in ms.  (Core plans joins
# of 10,000 partitions longer than it executes them.)
measure_loop()
{
	local i times

	times=$({
		echo 'PREPARE l AS SELECT count(*) FROM outer_ids JOIN bench USING (id);'
		echo 'EXPLAIN EXECUTE l;'
		for ((i = 0; i <= REPEAT; i++)); do
			echo 'EXECUTE l;'
		done
	} | PGOPTIONS='-c enable_hashjoin=off -c enable_mergejoin=off -c work_mem=64MB' rf_time_script)
	FIGURE[planloop:$1]=$(sed -n 2p <<<"$times")
	FIGURE[loop:$1]=$(tail -n +4 <<<"$times" | rf_median)
}

# The latency of the point query by the simple protocol while another session runs
# script $1 $COMMITS times a second: "other" changes another table, "insert" adds rows to
# partitions of this one at random.
busy_ms()
{
	local writer

	rf_psql -c 'DROP TABLE IF EXISTS other' -c 'CREATE TABLE other AS SELECT 0 n' 2>/dev/null
	rf_run "$RF_BIN/pgbench" -n -T $((RUN_SECONDS * REPEAT + 10)) -R "$COMMITS" \
		-f "$RF_TMP/$1.sql" postgres >/dev/null 2>&1 &
	writer=$!
	pgbench_ms point simple
	rf_psql -c "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE query LIKE 'UPDATE other%' OR query LIKE 'INSERT INTO bench%'" >/dev/null
	wait "$writer" || true
}

# Creates the indexes of a variant on table $2; prints the seconds it took.
create_indexes()
{
	local method

	for method in ${METHODS[$1]}; do
		printf 'CREATE INDEX %s_%s ON %s USING %s (id);\n' "$2" "$method" "$2" "$method"
	done | rf_time_script | awk '{ ms += $1 } END { print ms / 1000 }'
}

# The size of all indexes on the table's partitions, in bytes.
index_bytes()
{
	rf_psql -c "SELECT coalesce(sum(pg_indexes_size(relid)), 0) FROM pg_partition_tree('$1')"
}

# A connection's first query $2; the same with the partition key; and what core alone needs for
# that, where it has an index for it.
measure_connections()
{
	local variant=$1 pruned="$2 AND day = $FIRST_DAY" ms

	mapfile -t ms < <(rf_time_connections "$CONNECTIONS" "$2" "$pruned" \
		"SET rangefilter.enable = off; $pruned")
	[ "${#ms[@]}" = 3 ] || rf_die 'a first query could not be measured'
	FIGURE[connect:$variant]=${ms[0]}
	FIGURE[floor:$variant]=${ms[1]}
	FIGURE[without:$variant]=$(rf_ratio "${ms[0]}" "${ms[1]}")
	FIGURE[core:$variant]=0 FIGURE[above:$variant]=0
	[ "$variant" = rangefilter ] || {
		FIGURE[core:$variant]=${ms[2]}
		FIGURE[above:$variant]=$(rf_ratio "${ms[1]}" "${ms[2]}")
	}
}

measure_variant()
{
	local variant=$1 method query="SELECT * FROM bench WHERE id = $FIRST_ID"

	FIGURE[build:$variant]=$(create_indexes "$variant" bench)
	FIGURE[size:$variant]=$(index_bytes bench)
	rf_psql -c 'VACUUM bench' -c CHECKPOINT
	check_answers "$variant"
	FIGURE[simple:$variant]=$(pgbench_ms point simple)
	FIGURE[busy:$variant]=$(busy_ms other)
	FIGURE[prepared:$variant]=$(pgbench_ms point prepared)
	FIGURE[range:$variant]=$(pgbench_ms range simple)
	FIGURE[pruned:$variant]=$(pgbench_ms pruned simple)
	# A nested loop is compared with a nested loop, where there is an index for it.
	FIGURE[loop:$variant]=0 FIGURE[planloop:$variant]=0
	case $variant in
		btree | rangefilter | both) measure_loop "$variant" ;;
	esac
	measure_connections "$variant" "$query"
	FIGURE[locks:$variant]=$(rf_psql -c BEGIN -c "EXPLAIN $query" \
		-c 'SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()' -c COMMIT | tail -n 1)
	FIGURE[memory:$variant]=$(rf_psql -c "EXPLAIN $query" \
		-c 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts' | tail -n 1)
	# The rows that it adds stay: they are few.
	FIGURE[writes:$variant]=$(busy_ms insert)
	if [ "$variant" = rangefilter ] || [ "$variant" = both ]; then
		rf_psql -c "EXPLAIN $query" >"$RF_TMP/explain"
		SKIPPED=$(sed -n 's/^ *\(Partitions Skipped: .*\)/\1/p' "$RF_TMP/explain" | head -n 1)
	fi
	for method in ${METHODS[$variant]}; do
		rf_psql -c "DROP INDEX bench_$method"
	done
}

# COPY of all rows into an empty table that has the index already.  The
# variants take turns, so that a slow minute of the machine hits all of them.
measure_loads()
{
	local partitions=$1 loads=$LOADS i variant

	for variant in "${VARIANTS[@]}"; do
		FIGURE[load:$variant]=0 FIGURE[relative:$variant]=0
	done
	[ "$loads" -gt 0 ] || {
		rf_psql -c 'DROP TABLE bench'
		return
	}
	[ "$partitions" -le 100 ] || loads=$(((LOADS + 1) / 2))
	rf_psql -c "COPY (SELECT * FROM bench) TO '$RF_TMP/rows'" -c 'DROP TABLE bench'
	for ((i = 0; i < loads; i++)); do
		for variant in "${VARIANTS[@]:i % ${#VARIANTS[@]}}" "${VARIANTS[@]:0:i % ${#VARIANTS[@]}}"; do
			create_table load "$partitions"
			create_indexes "$variant" load >/dev/null
			rf_psql -c CHECKPOINT
			printf "COPY load FROM '%s';\n" "$RF_TMP/rows" | rf_time_script |
				awk '{ print $1 / 1000 }' >>"$RF_TMP/load.$variant"
			if [ "$variant" = rangefilter ]; then
				printf "SELECT rangefilter_summarize('load_rangefilter');\n" | rf_time_script |
					awk '{ print $1 / 1000 }' >>"$RF_TMP/summarize"
			fi
			rf_psql -c 'DROP TABLE load'
		done
	done
	for variant in "${VARIANTS[@]}"; do
		FIGURE[load:$variant]=$(rf_median <"$RF_TMP/load.$variant")
		FIGURE[relative:$variant]=$(awk -v a="${FIGURE[load:$variant]}" -v b="${FIGURE[load:none]:-0}" \
			'BEGIN { print (b > 0) ? a / b : 0 }')
	done
	SUMMARIZE=0
	[ ! -e "$RF_TMP/summarize" ] || SUMMARIZE=$(rf_median <"$RF_TMP/summarize")
	rm -f "$RF_TMP"/load.* "$RF_TMP/summarize" "$RF_TMP/rows"
}

# One line of the table: $1 the measure, $2 how to call it.
line()
{
	local variant value

	printf '| %s |' "$2"
	for variant in "${VARIANTS[@]}"; do
		value=${FIGURE[$1:$variant]}
		if [ "$value" = 0 ]; then
			printf ' |'
		elif [ "$1" = locks ]; then
			printf ' %s |' "$value"
		elif [ "$1" = size ] || [ "$1" = memory ]; then
			printf ' %s |' "$(rf_round "$(awk -v b="$value" 'BEGIN { print b / 1048576 }')")"
		else
			printf ' %s |' "$(rf_round "$value")"
		fi
	done
	for variant in rangefilter both; do
		value=$(rf_ratio "${FIGURE[$1:btree]:-0}" "${FIGURE[$1:$variant]:-0}")
		[ "$value" != 0.000 ] || value=
		printf ' %s |' "$value"
	done
	printf '\n'
}

# How a variant is called.
heading()
{
	case $1 in
		none) printf 'no index' ;;
		brin) printf 'BRIN' ;;
		both) printf 'rangefilter and btree' ;;
		*) printf '%s' "$1" ;;
	esac
}

report()
{
	local partitions=$1 variant

	printf '\n## %s partitions x %s rows, one of them matches\n\n| |' "$partitions" "$ROWS"
	for variant in "${VARIANTS[@]}"; do
		printf ' %s |' "$(heading "$variant")"
	done
	printf ' btree / rangefilter | btree / both |\n|---|'
	for variant in "${VARIANTS[@]}" ratio ratio; do
		printf -- '--:|'
	done
	printf '\n'
	line simple "\`id = x\`, simple protocol, ms"
	line busy "the same, another session committing $COMMITS times a second, ms"
	line writes "the same, another session inserting into its partitions $COMMITS times a second, ms"
	line prepared "\`id = \$1\`, prepared, ms"
	line range "\`id BETWEEN x AND y\`, simple protocol, ms"
	line pruned "\`id = x AND day = d\` (with the partition key), simple protocol, ms"
	line loop "nested loop, $OUTER outer rows, prepared, work_mem = 64MB, ms"
	line planloop 'planning this nested loop, ms'
	line connect 'first query of a connection, ms'
	line floor 'the same with the partition key, ms'
	line without 'first query, times that with the partition key'
	line core 'first query with the partition key, rangefilter.enable = off, ms'
	line above 'first query with the partition key, times that'
	line locks 'locks held after planning it'
	line memory "memory of a session that has planned it, MB"
	line size 'size of the index, MB'
	line build 'CREATE INDEX, s'
	if [ "$LOADS" -gt 0 ]; then
		line load 'COPY of all rows, index present, s'
		line relative 'COPY, relative to no index'
	fi
	printf '\nEXPLAIN of such a query says: %s.' "${SKIPPED:-nothing was skipped}"
	if [ "$LOADS" -gt 0 ]; then
		printf ' Summarizing what COPY had added (VACUUM does it, too) took %s s.' \
			"$(rf_round "$SUMMARIZE")"
	fi
	printf ' In the partition that is left, rangefilter alone reads a part of the blocks'
	printf ' (a bitmap scan); with a btree beside it, one.\n'
}

machine()
{
	cat <<TEXT
# Benchmark

Written by \`make bench\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine)
- $("$RF_BIN/postgres" --version); everything in memory; shared_buffers = $BUFFERS,
  max_wal_size = 4GB, max_locks_per_transaction = 1024, fsync = off,
  the library in shared_preload_libraries, other settings as they come
- Random 64-bit ids in partitions by day: every partition spans the whole range
- Times of queries: median of the seconds of $REPEAT pgbench runs of $RUN_SECONDS s with one client, $SAMPLES
  different ids. First query: medians of $CONNECTIONS connections that take turns; COPY: median of $LOADS loads
  in turns (larger tables: $(((LOADS + 1) / 2)))
TEXT
}

# The sections that other benchmarks wrote stay: they stand between marks.
write_results()
{
	[ -e "$RESULTS" ] || : >"$RESULTS"
	sed -n '/^<!-- .*: written by/,/^<!-- end of/p' "$RESULTS" >"$RF_TMP/kept"
	cat "$RF_TMP/report" "$RF_TMP/kept" >"$RESULTS"
	bash "$RF_ROOT/test/bench/bench_plot.sh" "$RESULTS" >"${RESULTS%/*}/bench.svg"
}

main()
{
	local partitions variant megabytes

	rf_prepare_bench
	megabytes=$(awk '/^MemTotal/ { m = $2 / 4096; print int(m > 2048 ? 2048 : m) }' /proc/meminfo)
	BUFFERS=${megabytes}MB
	rf_start_server bench shared_preload_libraries=rangefilter rangefilter.autosummarize=off max_wal_size=4GB \
		shared_buffers="$BUFFERS" max_locks_per_transaction=1024
	rf_psql -c 'CREATE EXTENSION rangefilter'
	machine >"$RF_TMP/report"

	for partitions in $PARTITIONS; do
		rf_say "$partitions partitions: loading $((partitions * ROWS)) rows ..." >&2
		ANSWER=
		create_table bench "$partitions"
		fill_table "$partitions"
		write_scripts "$partitions"
		for variant in "${VARIANTS[@]}"; do
			rf_say "$partitions partitions: $variant ..." >&2
			measure_variant "$variant"
		done
		rf_say "$partitions partitions: bulk loads ..." >&2
		measure_loads "$partitions"
		report "$partitions" >>"$RF_TMP/report"
	done
	cat "$RF_TMP/report"
	rf_choose_results "$PARTITIONS $ROWS" "100 1000 20000"
	[ -z "$RESULTS" ] || write_results
}

main
