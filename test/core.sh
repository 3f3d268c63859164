#!/bin/bash
#
# core.sh: PostgreSQL's own regression tests with skipping and deferred scans forced.
#
#	test/core.sh [test ...]
#
# Runs tests of the server's source (src/test/regress) without the extension, and with a
# rangefilter index on every column of every partitioned table, and rangefilter.defer_partitions = 1:
# with the usual costs of rows and pages, and with those that make nested loops cheap.  All must
# return the same rows, and raise the same errors; plans are not compared.  Then all once more
# with those tables partitioned that most tests read (core/partitioned.sql).
#
# The source is PG_SOURCE, a directory, or that of Debian's package, by "apt-get source".
# If neither is there, nothing is tested, and the last line says so.
#
# The last line is "N passed, M failed", where a test of each run counts; the exit status is
# 1 unless M is 0.

wanted=("$@")
source=${PG_SOURCE:+$(realpath -m "$PG_SOURCE")}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=lib/common.sh
. lib/common.sh
# shellcheck source=lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=lib/server.sh
. "$RF_ROOT/test/lib/server.sh"

# What the tests need, and the tests; those that this version has are run.
BEFORE=(test_setup create_function_c create_misc create_aggregate create_index)
TESTS=(inherit subselect union join aggregates portals plancache limit partition_join partition_prune)

PASSED=0 FAILED=0
DEFERRED=0
AUTO_EXPLAIN=

# Sets REGRESS to the directory of core's tests, in a copy that belongs to us; fails if it cannot be had.
find_source()
{
	local archive version

	REGRESS=$RF_TMP/source
	rf_run mkdir "$REGRESS"
	if [ -n "$source" ]; then
		version=$(sed -n "s/^PACKAGE_VERSION='\([0-9]*\).*/\1/p" "$source/configure" 2>/dev/null) || true
		[ "$version" = "$RF_MAJOR" ] || rf_die "PG_SOURCE: $source is no source of PostgreSQL $RF_MAJOR"
		tar -C "$source/src/test/regress" -cf - sql expected data regress.c | rf_run tar -C "$REGRESS" -xf - --no-same-owner
		return
	fi
	rf_have_apt || return 1
	(cd "$REGRESS" && rf_run timeout 300 apt-get source -q --download-only "postgresql-$RF_MAJOR" >"$RF_TMP/apt.log" 2>&1 </dev/null) || return 1
	archive=$(find "$REGRESS" -name '*.orig.tar.*' | head -n 1)
	[ -n "$archive" ] || return 1
	rf_run tar -C "$REGRESS" -xf "$archive" --strip-components=4 --wildcards '*/src/test/regress/*'
}

# Prepares core's tests: its functions in C, and the file that partitions tables.
prepare_tests()
{
	printf 'MODULES = regress\nPGXS := %s\ninclude $(PGXS)\n' "$("$PG_CONFIG" --pgxs)" |
		rf_run tee "$REGRESS/Makefile" >/dev/null
	rf_run make -s -C "$REGRESS" PG_CONFIG="$PG_CONFIG" with_llvm=no all >"$RF_TMP/regress.log" 2>&1 ||
		{ cat "$RF_TMP/regress.log"; rf_die "core's regress.c does not compile"; }
	rf_run cp "$RF_SRC/test/core/partitioned.sql" "$REGRESS/sql/rf_partitioned.sql"
	rf_run touch "$REGRESS/expected/rf_partitioned.out"
}

# Runs the tests of the schedule on a server of its own, called $1.  $2 is "force" if the
# extension is there; further arguments are settings.
run_tests()
{
	local name=$1 force=$2 log=$RF_TMP/$1.log settings=(jit=off autovacuum=off)
	shift 2

	if [ -n "$force" ]; then
		settings+=("shared_preload_libraries=rangefilter$AUTO_EXPLAIN" rangefilter.defer_partitions=1
			auto_explain.log_min_duration=0)
	fi
	rf_start_server "$name" "${settings[@]}" "$@"
	rf_psql -c 'CREATE DATABASE regression'
	[ -z "$force" ] || PGDATABASE=regression rf_psql -f "$RF_SRC/test/core/force.sql"
	rf_run mkdir -p "$RF_TMP/out/$name"
	rf_run "$RF_PGXS/src/test/regress/pg_regress" --use-existing --inputdir="$REGRESS" --outputdir="$RF_TMP/out/$name" \
		--dlpath="$REGRESS" --bindir="$RF_BIN" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" --dbname=regression \
		--max-connections=1 --schedule="$RF_TMP/schedule" >"$log" 2>&1 || true
	rf_stop_server "$name"
	if grep -q 'was terminated by signal' "$RF_TMP/$name/log"; then
		count_failed "$name: the server crashed"
		grep -m 1 -B 30 -A 2 'was terminated by signal' "$RF_TMP/$name/log"
	fi
	DEFERRED=$((DEFERRED + $(grep -c 'Range Filter Scan' "$RF_TMP/$name/log" || true)))
}

count_failed()
{
	FAILED=$((FAILED + 1))
	rf_say "FAILED $1"
}

# Compares a run's results with those of the run without the extension.
compare_results()
{
	local plain=$1 name=$2 test

	for test in "${SCHEDULE[@]}"; do
		if [ ! -e "$RF_TMP/out/$plain/results/$test.out" ]; then
			count_failed "$plain/$test: not run"
		elif diff -U 5 <(perl "$RF_SRC/test/core/rows.pl" "$RF_TMP/out/$plain/results/$test.out") \
			<(perl "$RF_SRC/test/core/rows.pl" "$RF_TMP/out/$name/results/$test.out") >"$RF_TMP/difference"; then
			PASSED=$((PASSED + 1))
		else
			count_failed "$name/$test"
			head -n "${RF_DIFF_LINES:-100}" "$RF_TMP/difference"
		fi
	done
}

# Runs all tests; $1 names the runs, $2 is a further preparation.
run_all()
{
	local test

	SCHEDULE=()
	for test in "${BEFORE[0]}" $2 "${BEFORE[@]:1}" "${wanted[@]}"; do
		[ ! -e "$REGRESS/sql/$test.sql" ] || SCHEDULE+=("$test")
	done
	printf 'test: %s\n' "${SCHEDULE[@]}" | rf_run tee "$RF_TMP/schedule" >/dev/null
	run_tests "$1" ''
	run_tests "$1-forced" force
	compare_results "$1" "$1-forced"
	run_tests "$1-loops" force seq_page_cost=10 random_page_cost=0.1 cpu_tuple_cost=1
	compare_results "$1" "$1-loops"
}

main()
{
	rf_init
	rf_need server
	rf_choose_user
	rf_private_postgres
	rf_copy_source
	find_source || { rf_say "skipped: the source of PostgreSQL $RF_MAJOR is not here; set PG_SOURCE, or add deb-src lines for apt-get source"; exit 0; }
	rf_install_extension WERROR=1 ASSERT=1
	prepare_tests
	[ "${#wanted[@]}" -gt 0 ] || wanted=("${TESTS[@]}")
	[ ! -e "$("$PG_CONFIG" --pkglibdir)/auto_explain.so" ] || AUTO_EXPLAIN=,auto_explain
	run_all core ''
	run_all partitioned rf_partitioned
	[ -z "$AUTO_EXPLAIN" ] || [ "$DEFERRED" -gt 0 ] || count_failed 'no query was deferred'
	rf_say "$DEFERRED deferred scans"
	rf_say "$PASSED passed, $FAILED failed"
	[ "$FAILED" = 0 ]
}

main
