#!/bin/bash
#
# lists.sh: planning questions for many values, and joins of two partitioned tables.
#
# Two tables of random 64-bit ids in partitions by day, so that every partition spans all
# ids.  IN lists, and ranges joined by OR, for ids of which none is there; joins that
# give the tables one id.  With btrees, and with rangefilter alone: skipping, and not.
# Writes its section of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	LISTS_PARTITIONS=1000		of each table
#	LISTS_ROWS=2000				rows per partition
#	LISTS_IN="1000 20000"		ids in a list
#	LISTS_OR="10 50"			ranges joined by OR; core takes some 16 kB for each in each
#								partition
#	LISTS_MORE=1000				as many for rangefilter alone
#	LISTS_REPEAT=5				plannings in a session (median)
#	LISTS_RESULTS=file			where to write, also when not at full size

RESULTS=${LISTS_RESULTS:+$(realpath -m "$LISTS_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${LISTS_PARTITIONS:-1000}
ROWS=${LISTS_ROWS:-2000}
IN=${LISTS_IN:-1000 20000}
OR=${LISTS_OR:-10 50}
MORE=${LISTS_MORE:-1000}
REPEAT=${LISTS_REPEAT:-5}

# What is compared: index method, rangefilter.enable.
VARIANTS=("btree off" "rangefilter off" "rangefilter on")

# An id that is in no partition, for row g.
ABSENT='2 * abs(hashint8extended(g, 8) % 1000000000000000) + 1'

make_tables()
{
	local table

	for table in events payments; do
		rf_psql -v partitions="$PARTITIONS" -v rows="$ROWS" -v table="$table" <<'SQL'
CREATE TABLE :table (day int NOT NULL, id bigint NOT NULL) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE %1$s_%2$s PARTITION OF %1$s FOR VALUES FROM (%2$s) TO (%3$s)', :'table', day, day + 1)
FROM generate_series(0, :partitions - 1) day
\gexec
INSERT INTO :table SELECT day, 2 * abs(hashint8extended(day * :rows + n, 9) % 1000000000000000)
FROM generate_series(0, :partitions - 1) day, generate_series(1, :rows) n;
SQL
	done
}

# Puts indexes of method $1 onto both tables.
make_indexes()
{
	rf_psql -c 'DROP INDEX IF EXISTS events_id' -c 'DROP INDEX IF EXISTS payments_id' \
		-c "CREATE INDEX events_id ON events USING $1 (id)" -c "CREATE INDEX payments_id ON payments USING $1 (id)" \
		-c 'VACUUM (FREEZE, ANALYZE) events, payments' 2>/dev/null
}

# The condition of kind $1, in or or, for $2 values.
condition()
{
	case $1 in
		in) rf_psql -c "SELECT 'id IN (' || string_agg(($ABSENT)::text, ', ') || ')' FROM generate_series(1, $2) g" ;;
		or) rf_psql -c "SELECT string_agg(format('id BETWEEN %s AND %s', i, i + 1), ' OR ')
			FROM (SELECT $ABSENT AS i FROM generate_series(1, $2) g) i" ;;
	esac
}

# What planning statement $2 takes in a session with rangefilter.enable = $1: the
# median in ms, the most memory of the process in MB.
plan()
{
	local i

	{
		printf 'SET rangefilter.enable = %s;\nSELECT pg_backend_pid() \\g %s\n' "$1" "$RF_TMP/lists.pid"
		for ((i = 0; i < REPEAT; i++)); do
			printf 'EXPLAIN (SUMMARY) %s;\n' "$2"
		done
		# shellcheck disable=SC2016
		printf '\\! grep VmHWM /proc/$(cat %s)/status\n' "$RF_TMP/lists.pid"
	} | rf_psql >"$RF_TMP/lists.out"
	printf '%s, %s' \
		"$(rf_round "$(sed -n 's/^Planning Time: \([0-9.]*\) ms/\1/p' "$RF_TMP/lists.out" | rf_median)")" \
		"$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "$RF_TMP/lists.out" | awk '{ printf("%.0f", $1 / 1024) }')"
}

# What executing statement $2 takes, its planning included, in ms.  Digests are made in the
# first ten.
execute()
{
	rf_round "$(for ((i = 0; i < REPEAT + 10; i++)); do printf '%s;\n' "$2"; done |
		{ printf 'SET rangefilter.enable = %s;\n' "$1"; cat; } | rf_time_script | tail -n "$REPEAT" | rf_median)"
}

# Appends a figure of the row named $1.
note()
{
	printf '%s|%s\n' "$1" "$2" >>"$RF_TMP/lists.figures"
}

measure()
{
	local enable=$1 n one

	one=$(rf_psql -c "SELECT min(id) FROM events_0 WHERE id > 1000000000000000")
	for n in $IN; do
		note "\`id IN\` ($n ids), planning" "$(plan "$enable" "SELECT * FROM events WHERE $(condition in "$n")")"
	done
	for n in $OR; do
		note "$n ranges by \`OR\`, planning" "$(plan "$enable" "SELECT * FROM events WHERE $(condition or "$n")")"
	done
	if [ "$enable" = on ]; then
		note "$MORE ranges by \`OR\`, planning" "$(plan "$enable" "SELECT * FROM events WHERE $(condition or "$MORE")")"
	else
		note "$MORE ranges by \`OR\`, planning" ''
	fi
	note 'join on the id, one id given' \
		"$(execute "$enable" "SELECT count(*) FROM events e JOIN payments p ON e.id = p.id WHERE e.id = $one")"
	note 'join on the id, a range of ids given for both' \
		"$(execute "$enable" "SELECT count(*) FROM events e JOIN payments p ON e.id = p.id
			WHERE e.id BETWEEN $one AND $one + 1000 AND p.id BETWEEN $one AND $one + 1000")"
	note 'join on the id, `LIMIT 10` rows of a partition given' \
		"$(execute "$enable" "SELECT count(*) FROM (SELECT * FROM events WHERE day = 7 ORDER BY id LIMIT 10) e JOIN payments p ON e.id = p.id")"
}

report()
{
	cat <<TEXT
# Lists, and joins of two partitioned tables

Written by \`make bench B=lists\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version); everything in memory, the library in
  session_preload_libraries
- $PARTITIONS partitions x $ROWS random 64-bit ids in each table. Lists and ranges ask for ids that are not there.
- Planning: ms (median of $REPEAT in a session), and the most memory of its process in MB. Joins: ms with planning.

| | btree | rangefilter, not skipping | rangefilter |
|---|--:|--:|--:|
TEXT
	awk -F'|' '{ if (!($1 in row)) names[++n] = $1; row[$1] = row[$1] " " $2 " |" }
		END { for (i = 1; i <= n; i++) print "| " names[i] " |" row[names[i]] }' "$RF_TMP/lists.figures"
}

main()
{
	local variant

	rf_prepare_bench
	rf_start_server lists session_preload_libraries=rangefilter shared_buffers=2GB max_wal_size=4GB \
		max_locks_per_transaction=8192 autovacuum=off jit=off max_parallel_workers_per_gather=0
	rf_psql -c 'CREATE EXTENSION rangefilter'
	make_tables
	: >"$RF_TMP/lists.figures"
	for variant in "${VARIANTS[@]}"; do
		[ "$variant" = 'rangefilter on' ] || make_indexes "${variant% *}"
		measure "${variant#* }"
	done
	report >"$RF_TMP/section"
	rf_finish_bench lists "$PARTITIONS $ROWS $IN $OR $MORE" "1000 2000 1000 20000 10 50 1000"
}

main
