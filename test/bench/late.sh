#!/bin/bash
#
# late.sh: queries whose values are known only when they run.
#
# Events in partitions by day, devices in a small table; a device reports on one day.
# Each query is asked with rangefilter.enable off, with it, and in two forms that the planner
# knows all about: with the device's id as a constant, and with the day as well.  These take
# turns, each in a session of its own, whose second to last runs are counted.
# Writes test/bench/RESULTS-late.md when run at full size (RESULTS.md is long enough).
#
# Environment, with defaults:
#	LATE_PARTITIONS="100 1000"	one table each
#	LATE_ROWS=2000				rows per partition
#	LATE_ROUNDS=5				sessions of each kind (median)
#	LATE_REPEAT=4				executions in a session
#	LATE_BTREE=1				0: no btree on the column
#	LATE_RESULTS=file			where to write, also when not at full size

RESULTS=${LATE_RESULTS:+$(realpath -m "$LATE_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${LATE_PARTITIONS:-100 1000}
ROWS=${LATE_ROWS:-2000}
ROUNDS=${LATE_ROUNDS:-5}
REPEAT=${LATE_REPEAT:-4}
BTREE=${LATE_BTREE:-1}

# Names of the queries, in the order of the table, and the queries.  ID7 is the id of the device
# n7, which is asked for as a constant in its place.
NAMES=(join join5 join100 join1000 select in lateral exists anti left aggregate or stable generic
	function two group cte)
declare -A QUERIES=(
	[join]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.name = 'n7'"
	[join5]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.id BETWEEN 7 AND 11"
	[join100]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.id BETWEEN 101 AND 200"
	[join1000]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.id BETWEEN 101 AND 1100"
	[select]="SELECT count(ts) FROM ev WHERE device = (SELECT id FROM dim WHERE name = 'n7')"
	[in]="SELECT count(ts) FROM ev WHERE device IN (SELECT id FROM dim WHERE name IN ('n7', 'n8', 'n9'))"
	[lateral]="SELECT count(*) FROM dim, LATERAL (SELECT * FROM ev WHERE device = dim.id ORDER BY ts DESC LIMIT 1) l WHERE name = 'n7'"
	[exists]="SELECT count(*) FROM dim WHERE name IN ('n7', 'none') AND EXISTS (SELECT FROM ev WHERE ev.device = dim.id)"
	[anti]="SELECT count(*) FROM dim WHERE name IN ('n7', 'n8') AND NOT EXISTS (SELECT FROM ev WHERE ev.device = dim.id)"
	[left]="SELECT count(ts) FROM dim LEFT JOIN ev ON ev.device = dim.id WHERE dim.name = 'n7'"
	[aggregate]="SELECT sum((SELECT count(ts) FROM ev WHERE ev.device = dim.id)) FROM dim WHERE name IN ('n7', 'n8')"
	[or]="SELECT count(ts) FROM ev WHERE device = 8 OR device = (SELECT id FROM dim WHERE name = 'n7')"
	[stable]="SELECT count(ts) FROM ev WHERE device = current_setting('bench.device')::int"
	[generic]="EXECUTE generic (7)"
	[function]="SELECT events_of(7)"
	[two]="SELECT count(e.ts) FROM dim JOIN ev ON ev.device = dim.id JOIN ev e ON e.device = ev.device WHERE dim.name = 'n7'"
	[group]="SELECT ts, count(*) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.name = 'n7' GROUP BY ts ORDER BY ts"
	[cte]="WITH d AS MATERIALIZED (SELECT id FROM dim WHERE name = 'n7') SELECT count(ts) FROM ev WHERE device = (SELECT id FROM d)"
)

# What a session begins with.
SETUP="SET bench.device = 7; SET plan_cache_mode = force_generic_plan;
	PREPARE generic (int) AS SELECT count(ts) FROM ev WHERE device = \$1"

make_tables()
{
	rf_psql -v partitions="$1" -v rows="$ROWS" -v btree="$BTREE" <<'SQL'
DROP TABLE IF EXISTS ev, dim;
CREATE TABLE dim (id int PRIMARY KEY, name text);
INSERT INTO dim SELECT n, 'n' || n FROM generate_series(0, 20 * :partitions - 1) n;
CREATE INDEX ON dim (name);
CREATE TABLE ev (device int, ts timestamp, payload text) PARTITION BY RANGE (ts);
SELECT format('CREATE TABLE ev_%s PARTITION OF ev FOR VALUES FROM (%L) TO (%L)', day,
	timestamp '2020-01-01' + day * interval '1 day', timestamp '2020-01-02' + day * interval '1 day')
FROM generate_series(0, :partitions - 1) day
\gexec
-- Each day has twenty devices, in no order.
INSERT INTO ev
SELECT abs(hashint8extended(day, 1) % :partitions) * 20 + n % 20, timestamp '2020-01-01' + day * interval '1 day' + n * interval '40 s', 'event ' || n
FROM generate_series(0, :partitions - 1) day, generate_series(1, :rows) n;
CREATE INDEX ON ev USING rangefilter (device);
SELECT 'CREATE INDEX ON ev (device)' WHERE :btree = 1 \gexec
CREATE OR REPLACE FUNCTION events_of(int) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(ts) FROM ev WHERE device = $1); END';
VACUUM (FREEZE, ANALYZE) ev, dim;
CHECKPOINT;
SQL
}

# The milliseconds of the second to last executions of statement $2 in a session that begins
# with $1.
session()
{
	local i

	{
		printf '%s;\n%s;\n' "$1" "$SETUP"
		for ((i = 0; i < REPEAT; i++)); do
			printf '%s;\n' "$2"
		done
	} | rf_time_script | tail -n $((REPEAT - 1))
}

# How many locks a transaction holds that has run statement $2 after $1.
locks()
{
	printf '%s;\n%s;\nBEGIN;\n\\o /dev/null\n%s;\n\\o\n%s;\n' "$1" "$SETUP" "$2" \
		"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'" |
		rf_psql | tail -n 1
}

# A line: query $2 on a table of $1 partitions.
measure()
{
	local partitions=$1 query=${QUERIES[$2]} off on round
	local settings=("SET rangefilter.enable = off" "SET rangefilter.enable = on")

	: >"$RF_TMP/off"
	: >"$RF_TMP/on"
	[ "$(rf_psql -c "${settings[0]}; $SETUP; $query" | tail -n 1)" = "$(rf_psql -c "${settings[1]}; $SETUP; $query" | tail -n 1)" ] ||
		rf_die "other answers with skipping: $query"
	for ((round = 0; round < ROUNDS; round++)); do
		session "${settings[0]}" "$query" >>"$RF_TMP/off"
		session "${settings[1]}" "$query" >>"$RF_TMP/on"
	done
	off=$(rf_median <"$RF_TMP/off")
	on=$(rf_median <"$RF_TMP/on")
	printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$partitions" "$2" "$(rf_round "$off")" \
		"$(rf_round "$on")" "$(rf_ratio "$off" "$on")" "$(locks "${settings[0]}" "$query")" "$(locks "${settings[1]}" "$query")"
}

# A line: what the planner knows all about.
measure_known()
{
	local partitions=$1 name=$2 query=$3 on

	on=$(for ((round = 0; round < ROUNDS; round++)); do
		session "SET rangefilter.enable = on" "$query"
	done | rf_median)
	printf '| %s | %s | | %s | | | %s |\n' "$partitions" "$name" "$(rf_round "$on")" \
		"$(locks "SET rangefilter.enable = on" "$query")"
}

report()
{
	local name

	cat <<TEXT
# Values known only when the query runs

Written by \`make bench B=late\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version)
- Events in partitions by day, $ROWS rows each; each day has twenty devices. Indexes on \`ev.device\` by rangefilter$([ "$BTREE" = 0 ] || printf ' and btree').
  Planning and execution in ms, as psql measures, rangefilter in \`shared_preload_libraries\`; median of $ROUNDS sessions in turns, the second to
  the ${REPEAT}th execution in each. Locks: of relations, at the end of a transaction.
TEXT
	for name in "${NAMES[@]}"; do
		printf -- '- %s: `%s`\n' "$name" "${QUERIES[$name]}"
	done
	cat <<TEXT
- constant: \`SELECT count(ts) FROM ev WHERE device = 7\`; key: the same with the day

| partitions | query | off | on | off / on | locks off | on |
|--:|---|--:|--:|--:|--:|--:|
TEXT
	cat "$RF_TMP/lines"
}

main()
{
	local partitions name day

	rf_prepare_bench
	rf_start_server late shared_preload_libraries=rangefilter shared_buffers=1GB max_wal_size=4GB \
		max_locks_per_transaction=1024 autovacuum=off jit=off
	rf_psql -c 'CREATE EXTENSION rangefilter'
	for partitions in $PARTITIONS; do
		make_tables "$partitions" 2>/dev/null
		day=$(rf_psql -c 'SELECT coalesce(min(ts)::date, current_date) FROM ev WHERE device = 7')
		measure_known "$partitions" constant "SELECT count(ts) FROM ev WHERE device = 7" >>"$RF_TMP/lines"
		measure_known "$partitions" key "SELECT count(ts) FROM ev WHERE device = 7 AND ts >= '$day' AND ts < date '$day' + 1" >>"$RF_TMP/lines"
		for name in "${NAMES[@]}"; do
			measure "$partitions" "$name" >>"$RF_TMP/lines"
		done
	done
	report >"$RF_TMP/section"
	cat "$RF_TMP/section"
	[ -n "$RESULTS" ] || [ "$PARTITIONS $ROWS $ROUNDS $BTREE" != "100 1000 2000 5 1" ] ||
		RESULTS=$RF_ROOT/test/bench/RESULTS-late.md
	[ -z "$RESULTS" ] || cat "$RF_TMP/section" >"$RESULTS"
}

main
