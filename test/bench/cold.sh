#!/bin/bash
#
# cold.sh: the first queries of a server whose files are in no cache.
#
# A table of random 64-bit ids in partitions by day, so that every partition spans all ids;
# without an index on the id, with BRIN, btrees and rangefilter.  Before each question the
# server is started anew and the kernel drops its caches, which needs root; others are
# told so, and nothing is measured.  Asks for an id and for ranges that are empty, and for ranges of
# which half are.  What is read comes from the kernel's count of what the backend caused.
# Writes its section of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	COLD_PARTITIONS=200		of the table
#	COLD_ROWS=100000		rows per partition
#	COLD_ROUNDS=5			questions of each kind (median); where nothing is skipped one
#	COLD_VARIANTS="none brin btree rangefilter"
#	COLD_RESULTS=file		where to write, also when not at full size

RESULTS=${COLD_RESULTS:+$(realpath -m "$COLD_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${COLD_PARTITIONS:-200}
ROWS=${COLD_ROWS:-100000}
ROUNDS=${COLD_ROUNDS:-5}
VARIANTS=${COLD_VARIANTS:-none brin btree rangefilter}

# Ids are even and below this.
SPAN=1000000000000000

make_table()
{
	rf_psql -v partitions="$PARTITIONS" -v rows="$ROWS" -v span="$SPAN" <<'SQL'
CREATE TABLE cold (day int NOT NULL, id bigint NOT NULL) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE cold_%1$s PARTITION OF cold FOR VALUES FROM (%1$s) TO (%2$s)', day, day + 1)
FROM generate_series(0, :partitions - 1) day
\gexec
INSERT INTO cold SELECT day, 2 * (abs(hashint8extended(day::bigint * :rows + n, 9)) % (:span / 2))
FROM generate_series(0, :partitions - 1) day, generate_series(1, :rows) n;
SQL
}

# Puts the index of variant $1 onto the table, instead of the one before.
make_index()
{
	rf_psql -c 'DROP INDEX IF EXISTS cold_id' 2>/dev/null
	case $1 in
		none) ;;
		brin) rf_psql -c 'CREATE INDEX cold_id ON cold USING brin (id int8_bloom_ops)' ;;
		btree) rf_psql -c 'CREATE INDEX cold_id ON cold USING btree (id)' ;;
		*) rf_psql -c 'CREATE INDEX cold_id ON cold USING rangefilter (id)' ;;
	esac
	rf_psql -c 'VACUUM (FREEZE, ANALYZE) cold' -c CHECKPOINT
}

# The widths of ranges: empty ones, and one of which about half hold an id.
widths()
{
	rf_say "1000 100000 $(awk -v n="$((PARTITIONS * ROWS))" -v span="$SPAN" 'BEGIN { printf("%.0f", span / n * log(2)) }')"
}

# The condition of kind $1 for question $2: "key", "pruned" (the ids of one day), or a width.
condition()
{
	local id=$((($2 * 7919 + 13) * 1000000007 % (SPAN / 2) * 2 + 1))

	case $1 in
		key) rf_say "id = $id" ;;
		pruned) rf_say "id = $id AND day = $(($2 % PARTITIONS))" ;;
		*) rf_say "id BETWEEN $id AND $((id + $1 - 1))" ;;
	esac
}

# Starts the server anew, without what the kernel has cached.
start_cold()
{
	rf_stop_server cold
	sync
	printf '3\n' >/proc/sys/vm/drop_caches
	rf_run "$RF_BIN/pg_ctl" -D "$RF_TMP/cold/data" -l "$RF_TMP/cold/log" -w -t 60 start >/dev/null
}

# Question $2 of kind $1 to a cold server, and then another one: a line of ms and kB read for each.
ask()
{
	local question

	start_cold
	{
		printf 'SELECT pg_backend_pid() \\g %s\n\\timing on\n' "$RF_TMP/cold.pid"
		for question in "$2" "$(($2 + 100))"; do
			# shellcheck disable=SC2016
			printf '\\! grep "^read_bytes" /proc/$(cat %s)/io\n' "$RF_TMP/cold.pid"
			printf 'SELECT count(*) FROM cold WHERE %s;\n' "$(condition "$1" "$question")"
		done
		# shellcheck disable=SC2016
		printf '\\! grep "^read_bytes" /proc/$(cat %s)/io\n' "$RF_TMP/cold.pid"
	} | rf_psql >"$RF_TMP/cold.out"
	awk '/^read_bytes/ { bytes[++n] = $2 } /^Time/ { ms[n] = $2 }
		END { printf("%s %.0f %s %.0f\n", ms[1], (bytes[2] - bytes[1]) / 1024, ms[2], (bytes[3] - bytes[2]) / 1024) }' "$RF_TMP/cold.out"
}

# Cold: the median of questions of kind $2 to variant $1: ms, MB, ms and MB of a second one.
measure()
{
	local i rounds=$ROUNDS column

	case $1:$2 in
		*:pruned) ;;
		none:* | brin:*) rounds=1 ;;
	esac
	for ((i = 0; i < rounds; i++)); do
		ask "$2" "$i"
	done >"$RF_TMP/answers"
	for column in 1 2 3 4; do
		cut -d ' ' -f "$column" "$RF_TMP/answers" | rf_median | awk -v kb="$((column % 2 == 0))" '{ print kb ? $1 / 1024 : $1 }'
	done | while read -r figure; do
		printf ' %s |' "$(rf_round "$figure")"
	done
}

report()
{
	cat <<TEXT
# Cold starts

Written by \`make bench B=cold\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version), the library in shared_preload_libraries
- $PARTITIONS partitions of $ROWS rows by day, random 64-bit ids: each partition spans all ids. Before each question the server starts
  anew and the kernel's caches are dropped. The first statement of the first session, and a second one of its kind; the
  medians of $ROUNDS (without index and with BRIN one). MB are what the device was read for by the session.
- \`pruned\`: an id of one day, what any question to this table costs.

| | index | first, ms | MB | second, ms | MB |
|---|---|--:|--:|--:|--:|
TEXT
	cat "$RF_TMP/lines"
}

main()
{
	local variant kind name

	if [ "$(id -u)" != 0 ] || [ ! -w /proc/sys/vm/drop_caches ]; then
		rf_say 'bench B=cold: only root can drop the caches of the kernel; nothing is measured.'
		exit 0
	fi
	rf_prepare_bench
	rf_start_server cold shared_preload_libraries=rangefilter shared_buffers=2GB max_wal_size=16GB max_locks_per_transaction=1024 \
		autovacuum=off rangefilter.autosummarize=off
	rf_psql -c 'CREATE EXTENSION rangefilter'
	make_table
	: >"$RF_TMP/lines"
	for variant in $VARIANTS; do
		make_index "$variant"
		for kind in pruned key $(widths); do
			# All of the table is read, whatever the width.
			case $variant:$kind in none:1*0 | brin:1*0 | none:pruned | brin:pruned) continue ;; esac
			case $kind in
				[0-9]*) name="range of $kind" ;;
				*) name=$kind ;;
			esac
			printf '| %s | %s |%s\n' "$name" "$variant" "$(measure "$variant" "$kind")" >>"$RF_TMP/lines"
		done
	done
	sort -s -t '|' -k 2,2 "$RF_TMP/lines" >"$RF_TMP/sorted"
	mv "$RF_TMP/sorted" "$RF_TMP/lines"
	report >"$RF_TMP/section"
	rf_finish_bench cold "$PARTITIONS $ROWS $ROUNDS $VARIANTS" '200 100000 5 none brin btree rangefilter'
}

main
