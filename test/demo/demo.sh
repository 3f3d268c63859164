#!/bin/bash
#
# demo.sh: range filters at work on real data, for people who have never heard
# of them.  Everything happens on a server of its own that goes away afterwards.
# At the end a picture of the times.
#
# Environment: PG_CONFIG; DEMO_PSQL=1 opens psql on the demo's server at the end.

cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=../lib/common.sh
. ../lib/common.sh
# shellcheck source=../lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=../lib/server.sh
. "$RF_ROOT/test/lib/server.sh"
# shellcheck source=../lib/measure.sh
. "$RF_ROOT/test/lib/measure.sh"

RUNS=15
PLANE="SELECT day, carrier, flight, origin, dest FROM flights WHERE tailnum = 'N535AS'"
NUMBERS="SELECT day, carrier, flight, tailnum, dest FROM flights WHERE flight BETWEEN 4751 AND 4800"

# Median times, by variant and query.
declare -A MS

heading()
{
	printf '\n--- %s\n\n' "$*"
}

# Shows a statement the way it would be typed, then what it returns.
show()
{
	printf 'demo=# %s;\n' "$1"
	rf_run "$RF_BIN/psql" -X -q -P pager=off -P footer=off -v ON_ERROR_STOP=1 -c "$1"
}

# Shows EXPLAIN's output as far as it is interesting: $2 lines of it.
show_plan()
{
	local lines total

	printf 'demo=# EXPLAIN (COSTS OFF) %s;\n' "$1"
	rf_psql -c "EXPLAIN (COSTS OFF) $1" >"$RF_TMP/plan"
	total=$(wc -l <"$RF_TMP/plan")
	lines=$2
	head -n "$lines" "$RF_TMP/plan" | sed 's/^/  /'
	if [ "$total" -gt "$lines" ]; then
		printf '  ... and %d more lines\n' "$((total - lines))"
	fi
	printf '\n'
}

# Notes the time of both queries under the name $1; and they must return what they
# returned at first.
measure()
{
	local answer

	answer=$(printf 'SELECT md5(string_agg(q::text, chr(10) ORDER BY q::text)) FROM (%s) q;\n' \
		"$PLANE" "$NUMBERS" | rf_psql)
	: "${ANSWER:=$answer}"
	[ "$answer" = "$ANSWER" ] || rf_die "the demo's queries returned something else than before: $1"
	MS[$1.plane]=$(rf_round "$(rf_time_query "$PLANE" $RUNS)")
	MS[$1.numbers]=$(rf_round "$(rf_time_query "$NUMBERS" $RUNS)")
}

# The size of all indexes called $1 on the partitions, in kB.
size_kb()
{
	rf_psql -c "SELECT round(sum(pg_relation_size(relid)) / 1024.0) FROM pg_partition_tree('$1') WHERE isleaf"
}

# A bar for each of the times, the longest of them $1 ms, to scale.  As a bar has at
# least one character, the shortest may be too long; the line below says so.
bars()
{
	local width=50 variant

	for variant in 'none:no index' btree:btree filter:rangefilter; do
		awk -v name="${variant#*:}" -v ms="${MS[${variant%%:*}.plane]}" -v longest="$1" -v width=$width 'BEGIN {
			n = int(ms / longest * width + 0.5)
			bar = sprintf("%" width "s", "")
			gsub(/ /, "#", bar)
			bar = substr(bar, 1, n > 1 ? n : 1)
			printf("  %-12s %-*s %8s ms\n", name, width, bar, ms)
		}'
	done
	printf '\n  One # stands for %s ms; a time that is shorter gets one, too.\n' "$(rf_ratio "$1" $width)"
}

# What make bench measured with more partitions.
more_partitions()
{
	awk -f "$RF_ROOT/test/bench/figures.awk" "$RF_ROOT/test/bench/RESULTS.md" |
		awk -F '\t' '
			function thousands(n) { return n < 1000 ? n : sprintf("%d,%03d", n / 1000, n % 1000) }
			$3 == "`id = x`, simple protocol, ms" && $1 >= 1000 {
				if (!($1 in rows)) order[++count] = $1
				rows[$1] = $2
				ms[$1, $4] = $5
			}
			END {
				printf("  %-32s %10s %13s\n", "", "btree", "rangefilter")
				for (i = 1; i <= count; i++) {
					n = order[i]
					printf("  %-32s %7s ms %10s ms\n", thousands(n) " partitions of " thousands(rows[n]) " rows",
						ms[n, "btree"], ms[n, "rangefilter"])
				}
			}'
}

create_table()
{
	rf_psql <<'SQL'
CREATE DATABASE demo;
\c demo
CREATE EXTENSION rangefilter;
CREATE TABLE flights (
	day date NOT NULL, carrier text, flight int, tailnum text COLLATE "C",
	origin text, dest text, dep_delay int, distance int, time_hour timestamptz
) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE flights_%s PARTITION OF flights FOR VALUES FROM (%L) TO (%L)',
			  to_char(day, 'YYYY_MM_DD'), day::date, day::date + 1)
FROM generate_series(date '2013-01-01', '2013-12-31', '1 day') day
\gexec
SQL
	export PGDATABASE=demo
	rf_run xz -dc "$RF_SRC/test/data/flights.csv.xz" |
		rf_psql -c '\copy flights FROM STDIN (FORMAT csv, HEADER)'
	rf_psql -c 'VACUUM ANALYZE flights'
}

main()
{
	rf_init
	rf_need server demo
	rf_choose_user
	rf_say "Building rangefilter and starting a PostgreSQL server just for this demo ..."
	rf_private_postgres
	rf_copy_source
	rf_install_extension WERROR=1
	rf_start_server demo session_preload_libraries=rangefilter max_wal_size=2GB
	rf_say "Loading a year of flights ..."
	create_table

	heading "The table"
	cat <<'TEXT'
All flights that left New York City in 2013, in one partition per day: the usual
way to keep data that grows with time. PostgreSQL answers questions about a
*day* quickly: it looks only at that day's partition.
TEXT
	printf '\n'
	show "SELECT count(*) AS flights, count(DISTINCT tableoid) AS partitions, count(DISTINCT tailnum) AS planes FROM flights"
	cat <<'TEXT'
But which flights did one plane make? The day is not known, so PostgreSQL
must look into all 365 partitions, although this plane came only a few times:
TEXT
	printf '\n'
	show "$PLANE ORDER BY day"

	heading "Before: no index"
	measure none
	show_plan "$PLANE" 5
	rf_say "Every partition is read from end to end: ${MS[none.plane]} ms."

	heading "Before: a btree index on every partition"
	rf_psql -c 'CREATE INDEX flights_tailnum_btree ON flights (tailnum)' \
		-c 'CREATE INDEX flights_flight_btree ON flights (flight)'
	measure btree
	show_plan "$PLANE" 5
	cat <<TEXT
The ordinary cure. No partition is read whole any more, but each still has to be
planned, locked and looked into, to find nothing in nearly all of them: ${MS[btree.plane]} ms.
TEXT
	tailnum_btree=$(size_kb flights_tailnum_btree)
	flight_btree=$(size_kb flights_flight_btree)
	rf_psql -c 'DROP INDEX flights_tailnum_btree, flights_flight_btree'

	heading "A range filter instead"
	cat <<'TEXT'
A range filter is a very small summary of the values in one partition. It
answers a single question: "can any value between x and y be here?" A "no" is
always true. A "maybe" can be wrong: then a partition is read in vain, and no
row is lost. Like any index it is kept up to date on every change.
TEXT
	printf '\n'
	show 'CREATE INDEX flights_tailnum ON flights USING rangefilter (tailnum)'
	show 'CREATE INDEX flights_flight ON flights USING rangefilter (flight)'
	measure filter

	heading "After: the same query"
	show_plan "$PLANE" 20
	cat <<TEXT
"Partitions Skipped: N of M": that many days cannot hold the plane, and so they
are not even planned any more. ${MS[filter.plane]} ms, $(rf_ratio "${MS[none.plane]}" "${MS[filter.plane]}") times faster than without an
index and $(rf_ratio "${MS[btree.plane]}" "${MS[filter.plane]}") times faster than with the btree.

Ranges work as well. All flights numbered 4751 to 4800, a range hardly in use:
TEXT
	printf '\n'
	show_plan "$NUMBERS" 30
	show "$NUMBERS ORDER BY day"

	heading "Side by side (medians of $RUNS runs; every variant returned the same rows)"
	tailnum_filter=$(size_kb flights_tailnum)
	flight_filter=$(size_kb flights_flight)
	printf '%-36s %10s %10s %12s\n' '' 'no index' 'btree' 'rangefilter'
	printf '%-36s %10s %10s %12s\n' \
		'one plane, ms' "${MS[none.plane]}" "${MS[btree.plane]}" "${MS[filter.plane]}" \
		'flight numbers 4751 to 4800, ms' "${MS[none.numbers]}" "${MS[btree.numbers]}" "${MS[filter.numbers]}" \
		'index on tailnum, kB' '' "$tailnum_btree" "$tailnum_filter" \
		'index on flight, kB' '' "$flight_btree" "$flight_filter"
	cat <<'TEXT'

A day has about 900 flights: so few that the smallest range filter, a page of
8 kB for each partition, is large for them. With partitions of 20,000 rows and
more a range filter takes a tenth of a btree's space: make bench shows it.

And it stays right while data changes:
TEXT
	printf '\n'
	show "INSERT INTO flights (day, carrier, flight, tailnum) VALUES ('2013-07-04', 'RF', 1, 'N535AS')"
	show "$PLANE ORDER BY day"

	heading "What to try next"
	cat <<TEXT
  make demo DEMO_PSQL=1       the same, and then a psql prompt on this server.
                              Try there, for example:
                                EXPLAIN ANALYZE SELECT * FROM flights
                                WHERE tailnum IN ('N535AS', 'N505SW');
                                SELECT * FROM rangefilter_status('flights_flight') LIMIT 5;
                                SELECT rangefilter_verify('flights_tailnum');
                                SET rangefilter.enable = off;   -- and once more
  sudo make install           into your own server. There, in each database:
                                CREATE EXTENSION rangefilter;
                                ALTER DATABASE ... SET session_preload_libraries = 'rangefilter';
                                CREATE INDEX ON your_table USING rangefilter (your_column);
  make bench                  1,000 partitions, against no index, BRIN and btree
  README.md                   what it can do, and what it cannot
TEXT
	heading "The picture: all flights of one plane, 365 partitions"
	bars "$(printf '%s\n' "${MS[none.plane]}" "${MS[btree.plane]}" "${MS[filter.plane]}" | sort -g | tail -n 1)"
	cat <<'TEXT'

With more partitions the difference grows. Measured with make bench (one row by
a random id, on another machine; test/bench/RESULTS.md has the details):

TEXT
	more_partitions
	if [ -n "${DEMO_PSQL:-}" ]; then
		printf '\n'
		"${RF_AS[@]}" "$RF_BIN/psql" -X || true
	fi
}

main
