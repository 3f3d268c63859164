#!/bin/bash
#
# tpc.sh: the queries of TPC-DS and TPC-H over partitioned fact tables, with
# skipping and without.
#
# Nobody chose these queries for what they would gain: most cannot skip anything,
# and none of them must take much longer for the indexes.  Each is run without
# skipping and with, in turns; the rows must be the same.  Data and queries come
# from the generators in the Python package duckdb, at run time.  Writes its
# section of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	TPC_DS_SCALE=1			scale factors; 0: not this suite
#	TPC_H_SCALE=0.5
#	TPC_QUERIES=			only these, like "ds10 ds14 h9"
#	TPC_REPEAT=2			runs with and without (the best counts)
#	TPC_TIMEOUT=60			seconds after which a run is given up
#	TPC_SETTINGS=			of the server, "name=value ..."
#	TPC_RESULTS=file		where to write, also when not at full size

RESULTS=${TPC_RESULTS:+$(realpath -m "$TPC_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

DS_SCALE=${TPC_DS_SCALE:-1}
H_SCALE=${TPC_H_SCALE:-0.5}
REPEAT=${TPC_REPEAT:-2}
TIMEOUT=${TPC_TIMEOUT:-60}
DUCKDB=1.1.3

# What counts as faster and slower.
LIMIT=1.5

# Python with the generators, in the temporary directory.
prepare_generators()
{
	command -v python3 >/dev/null || rf_die "python3 is missing: the data comes from its package duckdb"
	{ python3 -m venv "$RF_TMP/python" && "$RF_TMP/python/bin/pip" install -q "duckdb==$DUCKDB"; } \
		>"$RF_TMP/pip.log" 2>&1 || {
		tail -n 5 "$RF_TMP/pip.log" >&2
		rf_die "cannot install duckdb $DUCKDB by pip into a virtual environment of Python" \
			"(Debian, Ubuntu: package python3-venv; and the network)"
	}
}

# A database with the tables of suite $1 (ds, h) at scale $2.
make_database()
{
	rf_run mkdir "$RF_TMP/$1"
	rf_run "$RF_TMP/python/bin/python" "$RF_ROOT/test/bench/tpc.py" "$1" "$2" "$RF_TMP/$1"
	rf_run rm "$RF_TMP/$1/data.duckdb"
	rf_psql -c "CREATE DATABASE $1"
	PGDATABASE=$1 rf_psql -c 'CREATE EXTENSION rangefilter' -f "$RF_TMP/$1/schema.sql" \
		-f "$RF_TMP/$1/indexes.sql" -c 'VACUUM (FREEZE, ANALYZE)' -c CHECKPOINT >/dev/null 2>"$RF_TMP/load.log" || {
		tail -n 5 "$RF_TMP/load.log" >&2
		rf_die "cannot make the tables of TPC-${1^^}"
	}
	rf_run rm -f "$RF_TMP/$1"/*.csv
}

# Runs query $2 of suite $1, REPEAT times in both ways, in turns and in one
# session.  Writes RF_TMP/run/off.1 and so on, and to standard output the words
# "off" or "on" with milliseconds, or with "timeout" or "error".
run_query()
{
	local query i way

	query=$(cat "$RF_TMP/$1/$2.sql")
	rf_run rm -rf "$RF_TMP/run"
	rf_run mkdir "$RF_TMP/run"
	{
		# what a session reads of the catalogs first is not the query's
		printf '%s\n' '\o /dev/null' "SET statement_timeout = '${TIMEOUT}s';"
		for way in off on; do
			printf 'SET rangefilter.enable = %s;\nEXPLAIN %s;\n' "$way" "$query"
		done
		for ((i = 1; i <= REPEAT; i++)); do
			for way in off on; do
				printf 'SET rangefilter.enable = %s;\n\\o %s\n\\timing on\n%s\n;\n\\timing off\n' \
					"$way" "$RF_TMP/run/$way.$i" "$query"
				printf '\\o /dev/null\n\\echo %s :LAST_ERROR_SQLSTATE :ERROR\n' "$way"
			done
		done
	} | PGDATABASE=$1 rf_run "$RF_BIN/psql" -X -q -A -t 2>&1 | awk '
		/^Time: / { ms = $2 }
		/^(off|on) .* (true|false)$/ { print $1, $3 == "false" ? ms : $2 == "57014" ? "timeout" : "error" }
		/ERROR:/ { print >"/dev/stderr" }'
}

# The best time of a way ($1) in the answer of run_query; "timeout" or "error"
# if there is one.
best()
{
	awk -v way="$1" '$1 == way && $2 + 0 == 0 { word = $2 }
		$1 == way && $2 + 0 > 0 && (best == "" || $2 < best) { best = $2 }
		END { print best != "" ? best : word }' "$RF_TMP/answer"
}

hashes()
{
	local file

	for file in "$RF_TMP"/run/*; do
		LC_ALL=C sort "$file" | sha256sum
	done | sort -u | wc -l
}

# Are the rows of all runs the same?  Of a query with LIMIT, whose order may
# leave it open which rows come, those of the query without it.
same_rows()
{
	[ "$(hashes)" != 1 ] || return 0
	grep -qiE '^ *LIMIT +[0-9]+' "$RF_TMP/$1/$2.sql" || return 1
	sed -E 's/^ *LIMIT +[0-9]+//I' "$RF_TMP/$1/$2.sql" | rf_run tee "$RF_TMP/$1/unlimited.sql" >/dev/null
	REPEAT=1 run_query "$1" unlimited >/dev/null
	[ "$(hashes)" = 1 ]
}

# A line of RF_TMP/lines: suite, query, off, on, and on / off or a word.
measure()
{
	local off on verdict

	run_query "$1" "$2" >"$RF_TMP/answer"
	off=$(best off)
	on=$(best on)
	case "$off $on" in
		*error*) verdict=error ;;
		"timeout timeout") verdict=timeout ;;
		timeout*) verdict=$(awk -v t="$TIMEOUT" -v on="$on" 'BEGIN { printf "<%.2f", on / t / 1000 }') ;;
		*timeout) verdict=$(awk -v t="$TIMEOUT" -v off="$off" 'BEGIN { printf ">%.2f", t * 1000 / off }') ;;
		*)
			same_rows "$1" "$2" || rf_die "other rows: query ${2#q} of TPC-${1^^}"
			verdict=$(awk -v on="$on" -v off="$off" 'BEGIN { printf "%.2f", on / off }')
			;;
	esac
	printf '%s %s %s %s %s\n' "$1" "${2#q}" "$off" "$on" "$verdict" | tee -a "$RF_TMP/lines" >&2
}

# The queries of suite $1 that are wanted.
queries()
{
	local file name

	for file in "$RF_TMP/$1"/q*.sql; do
		name=${file##*/q}
		name=${name%.sql}
		case " ${TPC_QUERIES:-all} " in
			*" all "* | *" $1${name#0} "* | *" $1$name "*) rf_say "q$name" ;;
		esac
	done
}

report()
{
	cat <<TEXT
# TPC-DS and TPC-H

Written by \`make bench B=tpc\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version)
- TPC-DS at scale $DS_SCALE, its seven fact tables in 62 to 123 partitions by day sold, returned or
  counted; TPC-H at scale $H_SCALE, lineitem and orders by month. On each key and date of these a
  range filter, no other index; other tables have primary keys.
- Each query $REPEAT times with \`rangefilter.enable = off\` and with \`on\`, in turns and in one session; the
  best counts, planning included; given up after $TIMEOUT s. The rows were the same. Not audited
  results of these benchmarks.

TEXT
	awk -v limit="$LIMIT" -v timeout="$TIMEOUT" '
		function ms(x) { return x + 0 > 0 ? sprintf("%.2f", x / 1000) : "> " timeout }
		function row(    s) { return sprintf("| %s %s | %s | %s | %s |\n", $1 == "ds" ? "TPC-DS" : "TPC-H", $2 + 0, ms($3), ms($4), $5) }
		$5 == "timeout" { both++; next }
		$5 == "error" { failed = failed " " $1 $2; next }
		{ x = $5; n++; bare = x; sub(/[<>]/, "", bare)
		  if (x !~ /[<>]/) { off += $3; on += $4; logs += log(bare); m++ }
		  if (bare > limit && x !~ /</) { slow++; rows = rows row() }
		  else if (bare < 1 / limit) { fast++; rows = rows row() } }
		END {
			printf "%d queries: %d faster by more than %s, %d slower by more than that, %d in between", n, fast, limit, slow, n - fast - slow
			if (both) printf "; %d more take longer than %s s both ways", both, timeout
			printf ".\nOf those that were not given up: %.1f s without, %.1f s with skipping; geometric mean of ratios %.2f.\n", off / 1000, on / 1000, m ? exp(logs / m) : 1
			if (failed) print "\nFailed:" failed
			printf "\n| query | without, s | with, s | ratio |\n|--|--:|--:|--:|\n%s", rows
		}' "$RF_TMP/lines"
}

main()
{
	local suite scale query settings

	rf_prepare_bench
	prepare_generators
	read -ra settings <<<"${TPC_SETTINGS:-}"
	rf_start_server tpc session_preload_libraries=rangefilter shared_buffers=2GB work_mem=64MB \
		effective_cache_size=4GB max_wal_size=8GB max_locks_per_transaction=4096 autovacuum=off jit=off \
		"${settings[@]}"
	: >"$RF_TMP/lines"
	for suite in ds h; do
		scale=$DS_SCALE
		[ "$suite" = ds ] || scale=$H_SCALE
		[ "$scale" != 0 ] || continue
		make_database "$suite" "$scale"
		for query in $(queries "$suite"); do
			measure "$suite" "$query"
		done
	done
	report >"$RF_TMP/section"
	rf_finish_bench tpc "$DS_SCALE $H_SCALE ${TPC_QUERIES:-all}" "1 0.5 all"
}

main
