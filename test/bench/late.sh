#!/bin/bash
#
# late.sh: queries whose values are known only when they run.
#
# Events in partitions by day, devices in a small table; a device reports on one day.
# Each query is asked with rangefilter.enable off, with it, and in two forms that have less
# to do: with the devices' ids as constants besides ("constant"), and with their days, which
# core prunes by ("key").  These take turns, each in a session of its own, whose second to
# last runs are counted, by the backend's processor time.  At 10,000 partitions nothing is
# asked without skipping, since core plans a join of them for minutes.  Then many clients ask one
# join, and the queries of the bar are asked without the btree.  UPDATE and MERGE, which are
# not deferred, are compared on small tables.  The full size takes about a quarter of an hour.
# Writes test/bench/RESULTS-late.md when run at full size (RESULTS.md is long enough).
#
# Environment, with defaults:
#	LATE_PARTITIONS="100 1000 10000"	one table each
#	LATE_ROWS=2000				rows per partition; 100 from 5,000 partitions on
#	LATE_ROUNDS=5				sessions of each kind (median); 2 from 5,000 partitions on
#	LATE_REPEAT=4				executions in a session
#	LATE_LIMIT=3				seconds after which a statement is given up
#	LATE_WRITES="36 200"		partitions for UPDATE and MERGE
#	LATE_CLIENTS=64				clients of pgbench, for LATE_SECONDS=10 each; 0: none
#	LATE_RESULTS=file			where to write, also when not at full size

RESULTS=${LATE_RESULTS:+$(realpath -m "$LATE_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${LATE_PARTITIONS:-100 1000 10000}
ROWS=${LATE_ROWS:-2000}
ROUNDS=${LATE_ROUNDS:-5}
REPEAT=${LATE_REPEAT:-4}
LIMIT=${LATE_LIMIT:-3}
WRITES=${LATE_WRITES:-36 200}
CLIENTS=${LATE_CLIENTS:-64}
SECONDS_EACH=${LATE_SECONDS:-10}

# From this many partitions on nothing is asked without skipping.
MANY=5000

# Names of the queries, in the order of the table, and those of the bar.
NAMES=(join join5 join100 join1000 select in lateral exists anti left aggregate or stable generic
	function two three group cte view)
BAR=(join select in lateral exists or)

# The queries.  @ is where the other forms have a condition on the table that is next to it.
declare -A QUERIES=(
	[join]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id@ WHERE dim.name = 'n7'"
	[join5]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id@ WHERE dim.id BETWEEN 7 AND 11"
	[join100]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.id BETWEEN 101 AND 200"
	[join1000]="SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.id BETWEEN 101 AND 1100"
	[select]="SELECT count(ts) FROM ev WHERE device = (SELECT id FROM dim WHERE name = 'n7')@"
	[in]="SELECT count(ts) FROM ev WHERE device IN (SELECT id FROM dim WHERE name IN ('n7', 'n8', 'n9'))@"
	[lateral]="SELECT count(*) FROM dim, LATERAL (SELECT * FROM ev WHERE device = dim.id@ ORDER BY ts DESC LIMIT 1) l WHERE name = 'n7'"
	[exists]="SELECT count(*) FROM dim WHERE name IN ('n7', 'none') AND EXISTS (SELECT FROM ev WHERE ev.device = dim.id@)"
	[anti]="SELECT count(*) FROM dim WHERE name IN ('n7', 'n8') AND NOT EXISTS (SELECT FROM ev WHERE ev.device = dim.id@)"
	[left]="SELECT count(ts) FROM dim LEFT JOIN ev ON ev.device = dim.id@ WHERE dim.name = 'n7'"
	[aggregate]="SELECT sum((SELECT count(ts) FROM ev WHERE ev.device = dim.id@)) FROM dim WHERE name IN ('n7', 'n8')"
	[or]="SELECT count(ts) FROM ev WHERE (device = 8 OR device = (SELECT id FROM dim WHERE name = 'n7'))@"
	[stable]="SELECT count(ts) FROM ev WHERE device = current_setting('bench.device')::int@"
	[generic]="EXECUTE generic (7)"
	[function]="SELECT events_of(7)"
	[two]="SELECT count(e.ts) FROM dim JOIN ev ON ev.device = dim.id@ JOIN ev e ON e.device = ev.device WHERE dim.name = 'n7'"
	[three]="SELECT count(e.ts) FROM dim JOIN ev ON ev.device = dim.id@ JOIN ev e ON e.device = ev.device AND e.ts = ev.ts JOIN ev f ON f.device = e.device AND f.ts = e.ts WHERE dim.name = 'n7'"
	[group]="SELECT ts, count(*) FROM dim JOIN ev ON ev.device = dim.id@ WHERE dim.name = 'n7' GROUP BY ts ORDER BY ts"
	[cte]="WITH d AS MATERIALIZED (SELECT id FROM dim WHERE name = 'n7') SELECT count(ts) FROM ev WHERE device = (SELECT id FROM d)@"
	[view]="SELECT count(ts) FROM dim JOIN events ev ON ev.device = dim.id@ WHERE dim.name = 'n7'"
	[update]="UPDATE ev SET payload = payload FROM dim WHERE ev.device = dim.id@ AND dim.name = 'n7'"
	[merge]="MERGE INTO ev USING (SELECT id FROM dim WHERE name = 'n7') d ON ev.device = d.id@ WHEN MATCHED THEN UPDATE SET payload = payload"
)

# What the constants of the other forms are, where it is not 7.
declare -A DEVICES=([join5]="7, 8, 9, 10, 11" [in]="7, 8, 9" [exists]="7" [anti]="7, 8" [aggregate]="7, 8" [or]="7, 8")

# What a session begins with.
SETUP="SET bench.device = 7; SET plan_cache_mode = force_generic_plan; SET statement_timeout = '${LIMIT}s';
	PREPARE generic (int) AS SELECT count(ts) FROM ev WHERE device = \$1"
OFF="SET rangefilter.enable = off; $SETUP"
ON="SET rangefilter.enable = on; $SETUP"

rows_for()
{
	[ "$1" -lt "$MANY" ] && rf_say "$ROWS" || rf_say 100
}

make_tables()
{
	rf_psql -v partitions="$1" -v rows="$(rows_for "$1")" <<'SQL'
DROP VIEW IF EXISTS events;
DROP TABLE IF EXISTS dim;
SELECT format('DROP TABLE ev_%s', day) FROM generate_series(0, 20000) day WHERE to_regclass('ev_' || day) IS NOT NULL \gexec
DROP TABLE IF EXISTS ev;
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
SELECT ((day * 7919::bigint + 13) % :partitions) * 20 + n % 20, timestamp '2020-01-01' + day * interval '1 day' + n * interval '40 s', 'event ' || n
FROM generate_series(0, :partitions - 1) day, generate_series(1, :rows) n;
CREATE INDEX ev_device_rf ON ev USING rangefilter (device);
CREATE INDEX ev_device ON ev (device);
CREATE VIEW events AS SELECT device, ts FROM ev WHERE payload IS NOT NULL;
CREATE OR REPLACE FUNCTION events_of(int) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(ts) FROM ev WHERE device = $1); END';
VACUUM (FREEZE, ANALYZE) ev, dim;
CHECKPOINT;
SQL
}

# Query $1 with a condition that says which devices, or on which days: "constant" or "key".
known_form()
{
	local devices=${DEVICES[$1]:-7} condition

	if [ "$2" = constant ]; then
		condition=" AND ev.device IN ($devices)"
	else
		condition=$(rf_psql -c "SET rangefilter.enable = on; SELECT ' AND (' || string_agg(DISTINCT format('ev.ts >= %L AND ev.ts < %L', ts::date, ts::date + 1), ' OR ') || ')'
			FROM ev WHERE device IN ($devices)")
	fi
	printf '%s' "${QUERIES[$1]//@/$condition}"
}

# psql, which is ended if it takes too long.  Planning is not interrupted: the server is started anew then.
ask()
{
	local status=0

	rf_run timeout "$((20 * LIMIT))" "$RF_BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@" 2>/dev/null || status=$?
	[ "$status" != 124 ] ||
		rf_run "$RF_BIN/pg_ctl" -D "$RF_TMP/late/data" -l "$RF_TMP/late/log" -m immediate -w -t 300 restart >/dev/null
	return "$status"
}

# The milliseconds of processor time that the backend takes for the second to last executions of statement $2, in a
# session that begins with $1; the limit if one was given up.
session()
{
	local i times

	times=$({
		printf '%s\n' '\o /dev/null' "$1;" 'SELECT pg_backend_pid() AS pid \gset' '\setenv PID :pid'
		for ((i = 0; i < REPEAT; i++)); do
			printf '%s\n' '\! cut -d " " -f 1 /proc/$PID/schedstat' "$2;"
		done
		printf '%s\n' '\! cut -d " " -f 1 /proc/$PID/schedstat'
	} | ask) || { printf '%s000\n' "$LIMIT"; return; }
	awk 'NR > 2 { printf("%.3f\n", ($1 - before) / 1e6) } { before = $1 }' <<<"$times"
}

# How many locks a transaction holds that has run statement $2 after $1.
locks()
{
	printf '%s;\nBEGIN;\n\\o /dev/null\n%s;\n\\o\n%s;\nROLLBACK;\n' "$1" "$2" \
		"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'" |
		ask | tail -n 1
}

# Milliseconds, as they are shown; nothing if there are none.
shown()
{
	[ -n "$1" ] || return 0
	awk -v ms="$1" -v limit="${LIMIT}000" 'BEGIN { exit !(ms >= limit) }' && rf_say "> ${LIMIT}000" || rf_round "$1"
}

# A line: query $2 on a table of $1 partitions; $3 is said besides.
measure()
{
	local partitions=$1 name=$2 note=${3:-} query=${QUERIES[$2]//@/} forms=(on) timed=() form round rounds=$ROUNDS
	local -A statement setup answer median locks

	[ "$partitions" -ge "$MANY" ] || forms=(off on)
	statement=([off]=$query [on]=$query)
	setup=([off]=$OFF [on]=$ON [constant]=$ON [key]=$OFF)
	if [ "$query" != "${QUERIES[$name]}" ]; then
		forms+=(constant key)
		statement[constant]=$(known_form "$name" constant)
		statement[key]=$(known_form "$name" key)
	fi
	for form in "${forms[@]}"; do
		if answer[$form]=$(ask -c "${setup[$form]}; ${statement[$form]}"); then
			timed+=("$form")
			[ "${answer[$form]}" = "${answer[${timed[0]}]}" ] || rf_die "other answers with skipping: $query"
			locks[$form]=$(locks "${setup[$form]}" "${statement[$form]}")
		else
			median[$form]=${LIMIT}000
		fi
	done
	[ "$partitions" -lt "$MANY" ] || rounds=2
	for ((round = 0; round < rounds; round++)); do
		for form in "${timed[@]}"; do
			session "${setup[$form]}" "${statement[$form]}" >>"$RF_TMP/times.$form"
		done
	done
	for form in "${timed[@]}"; do
		median[$form]=$(rf_median <"$RF_TMP/times.$form")
		rm "$RF_TMP/times.$form"
	done
	printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$partitions" "$name$note" "$(shown "${median[off]:-}")" \
		"$(shown "${median[on]}")" "$(shown "${median[constant]:-}")" "$(shown "${median[key]:-}")" \
		"$([ -z "${median[off]:-}" ] || rf_ratio "${median[off]}" "${median[on]}")" "${locks[off]:-}" "${locks[on]:-}"
}

# A line: transactions a second of many clients on a table of $1 partitions.
measure_clients()
{
	local form
	local -A tps

	printf '%s\n' "\\set id random(0, 20 * $1 - 1)" 'SELECT count(ts) FROM dim JOIN ev ON ev.device = dim.id WHERE dim.id = :id;' |
		rf_run tee "$RF_TMP/clients.sql" >/dev/null
	for form in off on; do
		tps[$form]=$(PGOPTIONS="-c rangefilter.enable=$form" rf_run "$RF_BIN/pgbench" -n -M prepared -c "$CLIENTS" -j 2 -T "$SECONDS_EACH" \
			-f "$RF_TMP/clients.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*without.*/\1/p')
	done
	printf '| %s | %s | %s | %s | %s |\n' "$1" "$CLIENTS" "$(rf_round "${tps[off]}")" "$(rf_round "${tps[on]}")" "$(rf_ratio "${tps[on]}" "${tps[off]}")"
}

# The lines that are not within the bar: more than 1.1 times as long as without skipping, or, of those that it
# names, more than 2 ms (4 ms from 10,000 partitions on) or 30 locks.
beyond_bar()
{
	awk -F ' *[|] *' -v bar=" ${BAR[*]} " -v many="$MANY" '
		$2 + 0 < 1 { next }
		$4 != "" && $4 !~ />/ && $5 > 1.1 * $4 { print "- " $2 ", " $3 ": " $5 " ms instead of " $4; next }
		{ name = $3; sub(/,.*/, "", name) }
		$2 >= 1000 && index(bar, " " name " ") && ($5 ~ />/ || $5 > ($2 >= many ? 4 : 2)) { print "- " $2 ", " $3 ": " $5 " ms" }
		$2 >= 1000 && index(bar, " " name " ") && $10 > 30 { print "- " $2 ", " $3 ": " $10 " locks" }' "$RF_TMP/lines"
}

report()
{
	local name

	cat <<TEXT
# Values known only when the query runs

Written by \`make bench B=late\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version)
- Events in partitions by day, $ROWS rows each (100 at 10,000 partitions); each day has twenty devices. Indexes on \`ev.device\` by rangefilter and btree,
  at "no btree" by rangefilter alone.
  Planning and execution in ms of the backend's processor time, rangefilter in \`shared_preload_libraries\`; median of $ROUNDS sessions (2 at 10,000 partitions) in turns, the second to
  the ${REPEAT}th execution in each. Locks: of relations, at the end of a transaction.
- constant: the query has the devices' ids as constants, too; key: their days, with rangefilter.enable off
TEXT
	for name in "${NAMES[@]}" update merge; do
		printf -- '- %s: `%s`\n' "$name" "${QUERIES[$name]//@/}"
	done
	cat <<TEXT

| partitions | query | off | on | constant | key | off / on | locks off | on |
|--:|---|--:|--:|--:|--:|--:|--:|--:|
TEXT
	cat "$RF_TMP/lines"
	if [ -s "$RF_TMP/clients" ]; then
		cat <<TEXT

Transactions a second of \`pgbench -M prepared\`, the join of one device by its id, $SECONDS_EACH s each:

| partitions | clients | off | on | on / off |
|--:|--:|--:|--:|--:|
TEXT
		cat "$RF_TMP/clients"
	fi
	printf '\nBeyond the bar (2 ms and 30 locks at 1,000 partitions, twice the time at 10,000; 1.1 times the time without skipping):\n\n'
	beyond_bar | grep . || rf_say "- nothing"
}

main()
{
	local partitions name

	rf_prepare_bench
	rf_start_server late shared_preload_libraries=rangefilter shared_buffers=1GB max_wal_size=4GB \
		max_locks_per_transaction=1024 max_connections=$((CLIENTS + 20)) autovacuum=off jit=off max_parallel_workers_per_gather=0
	rf_psql -c 'CREATE EXTENSION rangefilter'
	: >"$RF_TMP/lines"
	: >"$RF_TMP/clients"
	for partitions in $PARTITIONS; do
		make_tables "$partitions" 2>/dev/null
		for name in "${NAMES[@]}"; do
			measure "$partitions" "$name" >>"$RF_TMP/lines"
		done
		[ "$CLIENTS" = 0 ] || [ "$partitions" -ge "$MANY" ] || measure_clients "$partitions" >>"$RF_TMP/clients"
		rf_psql -c 'DROP INDEX ev_device'
		for name in "${BAR[@]}"; do
			measure "$partitions" "$name" ', no btree' >>"$RF_TMP/lines"
		done
	done
	for partitions in $WRITES; do
		make_tables "$partitions" 2>/dev/null
		for name in update merge; do
			measure "$partitions" "$name" >>"$RF_TMP/lines"
		done
	done
	report >"$RF_TMP/section"
	cat "$RF_TMP/section"
	[ -n "$RESULTS" ] || [ "$PARTITIONS $ROWS $ROUNDS $WRITES $CLIENTS" != "100 1000 10000 2000 5 36 200 64" ] ||
		RESULTS=$RF_ROOT/test/bench/RESULTS-late.md
	[ -z "$RESULTS" ] || cat "$RF_TMP/section" >"$RESULTS"
}

main
