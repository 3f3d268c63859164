#!/bin/bash
#
# joins.sh: joins into a partitioned table that only some partitions can match.
#
# A star: readings in partitions by day, devices in a small table; each day four
# of the 400 devices report.  Asked for the readings of some devices by a join:
# with the plan the planner takes, with plans it is told to take, and without
# rangefilter.  Writes its section of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	JOINS_PARTITIONS="100 1000"	one table each
#	JOINS_ROWS=5000				rows per partition
#	JOINS_DEVICES="1 4 20 100"	so many devices are asked for
#	JOINS_REPEAT=7				executions (median)
#	JOINS_RESULTS=file			where to write, also when not at full size

RESULTS=${JOINS_RESULTS:+$(realpath -m "$JOINS_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${JOINS_PARTITIONS:-100 1000}
ROWS=${JOINS_ROWS:-5000}
DEVICES=${JOINS_DEVICES:-1 4 20 100}
REPEAT=${JOINS_REPEAT:-7}

# What the planner is told, by column of the table.
SETTINGS=(""
	"SET enable_hashjoin = off; SET enable_mergejoin = off; SET max_parallel_workers_per_gather = 0;"
	"SET enable_nestloop = off; SET enable_mergejoin = off; SET max_parallel_workers_per_gather = 0;"
	"SET rangefilter.enable = off;")

make_tables()
{
	rf_psql -v partitions="$1" -v rows="$ROWS" <<'SQL'
DROP TABLE IF EXISTS readings, devices;
CREATE TABLE devices (id int PRIMARY KEY, name text);
INSERT INTO devices SELECT n, 'device ' || n FROM generate_series(1, 400) n;
CREATE TABLE readings (day int NOT NULL, device_id int, value int) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE readings_%1$s PARTITION OF readings FOR VALUES FROM (%1$s) TO (%2$s)', day, day + 1)
FROM generate_series(0, :partitions - 1) day
\gexec
INSERT INTO readings
SELECT day, 1 + abs(hashint8extended(day * 4 + n % 4, 1) % 400), n
FROM generate_series(0, :partitions - 1) day, generate_series(1, :rows) n;
CREATE INDEX ON readings USING rangefilter (device_id);
VACUUM (FREEZE, ANALYZE) readings, devices;
CHECKPOINT;
SQL
}

# The query for $1 devices.
query()
{
	printf "SELECT count(*), sum(value) FROM readings JOIN devices ON device_id = id WHERE name IN ('%s')" \
		"$(seq -f 'device %g' -s "', '" 7 $((6 + $1)))"
}

# Which joins a plan has, in short.
kind()
{
	awk '/Gather/ { p = "parallel " } /Nested Loop/ { j = "nested loop" }
		/Hash Join/ { j = "hash join" } /Merge Join/ { j = "merge join" } END { print p j }'
}

# A line: the milliseconds to execute the query for $2 devices of $1 partitions,
# with each of the settings that follow; every one has to return the same.
measure()
{
	local partitions=$1 devices=$2 query settings answer first='' ms picked i

	shift 2
	query=$(query "$devices")
	printf '| %s | %s |' "$partitions" "$devices"
	for settings in "$@"; do
		answer=$(rf_psql -c "$settings" -c "$query")
		: "${first:=$answer}"
		[ "$answer" = "$first" ] || rf_die "other answers with: $settings"
		ms=$({
			printf '%s\nPREPARE q AS %s;\n' "$settings" "$query"
			for ((i = 0; i < REPEAT + 2; i++)); do
				printf 'EXECUTE q;\n'
			done
		} | rf_time_script | tail -n "$REPEAT" | rf_median)
		picked=$(rf_psql -c "$settings" -c "EXPLAIN $query" | kind)
		case $settings in
			*enable_*join*) printf ' %s |' "$(rf_round "$ms")" ;;
			*) printf ' %s: %s |' "$picked" "$(rf_round "$ms")" ;;
		esac
	done
	printf '\n'
}

report()
{
	local cpu

	cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	cat <<TEXT
# Joins

Written by \`make bench B=joins\` on $(date -u +%Y-%m-%d), revision $(git -C "$RF_ROOT" describe --always --dirty 2>/dev/null || printf 'unknown').

- Machine: ${cpu:-$(uname -m)}, $(nproc) cores; $("$RF_BIN/postgres" --version)
- Readings in partitions by day, $ROWS rows each; 400 devices, of which four report each day.
  An index on \`readings.device_id\` by rangefilter, no other. \`SELECT count(*), sum(value) FROM
  readings JOIN devices ON device_id = id WHERE name IN (...)\`, prepared; median of $REPEAT executions in
  ms, the planning left out. \`enable_*\` settings only where it says "told to".

| partitions | devices | the planner's choice | told to: nested loop, gates | told to: hash join, gates | without rangefilter |
|--:|--:|--:|--:|--:|--:|
TEXT
	cat "$RF_TMP/lines"
}

main()
{
	local partitions devices

	rf_prepare_bench
	rf_start_server joins session_preload_libraries=rangefilter shared_buffers=1GB max_wal_size=4GB \
		max_locks_per_transaction=1024 autovacuum=off
	rf_psql -c 'CREATE EXTENSION rangefilter'
	for partitions in $PARTITIONS; do
		make_tables "$partitions" 2>/dev/null
		for devices in $DEVICES; do
			measure "$partitions" "$devices" "${SETTINGS[@]}" >>"$RF_TMP/lines"
		done
	done
	report >"$RF_TMP/section"
	rf_finish_bench joins "$PARTITIONS $ROWS $DEVICES" "100 1000 5000 1 4 20 100"
}

main
