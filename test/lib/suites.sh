# suites.sh: one function per test suite.  Each begins jobs that run the tests named
# in its arguments (none: all there are), and count every test with count_passed or
# count_failed; a suite that cannot run at all returns non-zero.
#
# SEED_USED is what the random tests begin with.
#
# Functions are called where "set -e" has no effect: they check for themselves.
#
# shellcheck shell=bash

FAILURES=()
NJOBS=0

# Regression tests in which neither planning nor what sessions share is of interest (a
# pattern), and those that have the same plans where another module's planner hook
# returns copies to ours.
NOT_PLANNING='wormhole_(ascending|build|index_only|scan)|advise|levels|filter_choice|maintenance|summarize'
BELOW_NEIGHBOUR='estimate|explain|gate|locate_indexes|multicolumn|skipping'

# TAP tests of what goes with other extensions and clients.
WITH_OTHERS='040_neighbours|041_partitions_kept|043_pooler'

# What the servers of regress, modules and pgtap have.  Compiling expressions
# took most of the time of some tests; the one it is about switches it on.
TEST_SETTINGS=(max_prepared_transactions=10 jit=off)
# Of regress: a snapshot of autovacuum's would keep VACUUM from removing rows.
REGRESS_SETTINGS=("${TEST_SETTINGS[@]}" autovacuum=off)
# Of isolation, where sessions have what those of "make installcheck" have.
ISOLATION_SETTINGS=(max_prepared_transactions=10)

count_passed()
{
	PASSED=$((PASSED + ${1:-1}))
}

# One failed test, and what to call it in the summary.
count_failed()
{
	FAILED=$((FAILED + 1))
	FAILURES+=("$1")
	rf_say "FAILED $1"
}

# Adds up the "N passed, M failed" lines of a log; fails where it has none (but if what was to be run
# is left out here), or where the program that wrote it failed without saying in which test.
count_lines()
{
	local name=$1 log=$2 status=$3 passed failed

	passed=$(sed -n 's/^\(.*[^0-9]\)\{0,1\}\([0-9][0-9]*\) passed, [0-9][0-9]* failed$/\2/p' "$log" |
		awk '{ n += $1 } END { print n + 0 }')
	failed=$(sed -n 's/^.*[0-9] passed, \([0-9][0-9]*\) failed$/\1/p' "$log" |
		awk '{ n += $1 } END { print n + 0 }')
	count_passed "$passed"
	if [ "$failed" -gt 0 ]; then
		count_failed "$name: $failed tests"
		FAILED=$((FAILED + failed - 1))
	elif [ "$status" != 0 ]; then
		count_failed "$name: exit status $status"
	elif [ "$passed" = 0 ] && ! grep -q ': left out: ' "$log"; then
		count_failed "$name: reported no tests"
	fi
}

# Runs a function beside others, as many at a time as there are processors, in a
# shell of its own.  $1 is a name for it.  What it prints comes when it ends; its
# counts are added by finish_jobs.
job()
{
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
		wait -n || true
	done
	NJOBS=$((NJOBS + 1))
	run_job "$RF_TMP/job$NJOBS" "$@" &
}

run_job()
{
	local file=$1 name=$2 started=$SECONDS
	shift 2

	PASSED=0 FAILED=0 FAILURES=()
	"$@" >"$file.log" 2>&1 || count_failed "$name: could not run" >>"$file.log"
	printf '%s: %s passed, %s failed, %s s\n\n' "$name" "$PASSED" "$FAILED" $((SECONDS - started)) >>"$file.log"
	cat "$file.log"
	printf '%s\n' "$PASSED" "$FAILED" "${FAILURES[@]}" >"$file.counts"
}

finish_jobs()
{
	local i counts

	wait
	for i in $(seq "$NJOBS"); do
		if mapfile -t counts <"$RF_TMP/job$i.counts" && [ "${#counts[@]}" -ge 2 ]; then
			PASSED=$((PASSED + counts[0]))
			FAILED=$((FAILED + counts[1]))
			FAILURES+=("${counts[@]:2}")
		else
			cat "$RF_TMP/job$i.log"
			count_failed "job $i ended early"
		fi
		rm -f "$RF_TMP/job$i".*
	done
	NJOBS=0
}

# The names, without the ending $2, of the files in directory $1 that have it.
names_in()
{
	local file names=''

	for file in "$1"/*."$2"; do
		[ -e "$file" ] || { rf_say "no tests in ${1#"$RF_SRC/"}" >&2; return 1; }
		file=${file##*/}
		names+=${names:+$'\n'}${file%".$2"}
	done
	printf '%s\n' "$names"
}

# The words of $1 that are among the names that follow, or all of $1.
pick()
{
	local all=$1 name
	shift

	if [ $# = 0 ]; then
		printf '%s\n' "$all"
		return
	fi
	for name in "$@"; do
		if grep -qxF -e "$name" <<<"$all"; then
			printf '%s\n' "$name"
		else
			rf_say "no test called $name" >&2
			return 1
		fi
	done
}

# A server that crashed fails the suite, whatever the tests said.
check_server_log()
{
	local name=$1 log=$RF_TMP/$1/log

	if grep -E 'PANIC:|TRAP:|AddressSanitizer|was terminated by signal|exited with exit code [2-9]' "$log"; then
		count_failed "$name: the server crashed"
		tail -n 30 "$log"
	fi
}

# Without and with assertions: each can hide a warning of the other.  What is
# installed has them.
build_suite()
{
	local module

	if choose build; then
		rf_say "== build =="
		if rf_make all WERROR=1; then
			count_passed
		else
			count_failed "build: without assertions"
		fi
		if command -v clang >/dev/null; then
			if rf_make clean >/dev/null && rf_make all WERROR=1 CC=clang; then
				count_passed
			else
				count_failed "build: with clang"
			fi
		fi
		rf_make clean >/dev/null || return 1
	fi
	rf_install_extension WERROR=1 ASSERT=1 || return 1
	count_passed
	# Not grep -q: it ends at the first match, and make fails if it writes more.
	if rf_make -n uninstall | grep 'echo.*RESET session_preload_libraries' >/dev/null; then
		count_passed
	else
		count_failed "build: uninstall does not warn of preload settings"
	fi
	for module in "$RF_SRC"/test/modules/*/; do
		[ -e "$module/Makefile" ] || continue
		if rf_make -C "$module" all COPT='-Werror -DUSE_ASSERT_CHECKING' &&
			rf_make -C "$module" install DESTDIR="$RF_PG" >/dev/null; then
			count_passed
		else
			count_failed "build: test module $(basename "$module")"
		fi
	done
	return 0
}

# By make, on all processors: nothing runs beside it.
unit_suite()
{
	job unit run_unit
	wait
}

run_unit()
{
	local status=0

	[ -e "$RF_SRC/test/unit/Makefile" ] || { rf_say "no unit tests"; return 1; }
	# The server's library path and settings are no business of these.
	rf_run make -s --no-print-directory -j "$(nproc)" -C "$RF_SRC/test/unit" check >"$RF_TMP/unit.log" 2>&1 || status=$?
	cat "$RF_TMP/unit.log"
	count_lines unit "$RF_TMP/unit.log" "$status"
}

# pg_regress or pg_isolation_regress in a directory: its results, counted.
# $1 is a name for the summary, $2 the program, $3 the input directory, $4
# further options, $5 the tests.
run_regress()
{
	local name=$1 program=$2 input=$3 options=$4 tests=$5
	local out=$RF_TMP/out/$name log=$RF_TMP/$1.log status=0 passed failed test

	rf_run mkdir -p "$out"
	# shellcheck disable=SC2086 # lists of words
	rf_run "$RF_PGXS/src/test/$program" --inputdir="$input" --outputdir="$out" \
		--bindir="$RF_BIN" --host="$PGHOST" --port="$PGPORT" --user="$PGUSER" \
		--dbname="rf_${name//[^a-z0-9]/_}" --encoding=UTF8 --no-locale $options $tests \
		>"$log" 2>&1 || status=$?
	cat "$log"

	# "test x ... ok  12 ms" up to PostgreSQL 15, TAP from 16 on.
	passed=$(grep -cE '^(test| {4,5}) *[^ ]+ +\.\.\. ok|^ok [0-9]+' "$log") || true
	count_passed "$passed"
	failed=0
	while IFS= read -r test; do
		count_failed "$name/$test"
		failed=$((failed + 1))
	done < <(sed -nE -e 's/^(test| {4,5}) *([^ ]+) +\.\.\. FAILED.*/\2/p' \
		-e 's/^not ok [0-9]+ +[-+] +([^ ]+).*/\1/p' "$log")
	if [ "$failed" -gt 0 ] && [ -e "$out/regression.diffs" ]; then
		head -n "${RF_DIFF_LINES:-300}" "$out/regression.diffs"
	fi
	# shellcheck disable=SC2086
	set -- $tests
	if [ $((passed + failed)) != $# ] || { [ "$status" != 0 ] && [ "$failed" = 0 ]; }; then
		count_failed "$name: $((passed + failed)) of $# tests ran, exit status $status"
	fi
}

# What "make installcheck" gives to sessions: the Makefile's variable $1.
session_settings()
{
	sed -n "s/^$1 = //p" "$RF_SRC/Makefile" | grep .
}

# Once more beside rf_neighbour, which frees and replaces what planner hooks may:
# all that is about planning, with its hooks called after ours, and a part with
# its hooks before.  The first of these is as "make installcheck" on a server that
# preloads the libraries and has defaults else.
regress_suite()
{
	local all tests

	all=$(names_in "$RF_SRC/sql" sql) || return 1
	all=$(pick "$all" "$@") || return 1
	job regress run_preloaded regress session '' "$all"
	tests=$(printf '%s\n' "$all" | grep -vxE "$NOT_PLANNING") || true
	[ -z "$tests" ] || job regress/neighbour run_preloaded neighbour shared rangefilter,rf_neighbour "$tests"
	tests=$(printf '%s\n' "$all" | grep -xE "$BELOW_NEIGHBOUR") || true
	[ -z "$tests" ] || job regress/neighbour_first run_preloaded neighbour_first session rf_neighbour,rangefilter "$tests"
}

# Regression tests $4 on a server called $1 that loads the libraries $3; $2 is the kind
# of preloading.
run_preloaded()
{
	local settings=("$2_preload_libraries=$3") options=

	if [ "$2" = shared ]; then
		options=$(session_settings REGRESS_SETTINGS) || return 1
	else
		settings+=("${REGRESS_SETTINGS[@]}")
	fi
	rf_start_server "$1" "${settings[@]}"
	PGOPTIONS=$options run_regress "$1" regress/pg_regress "$RF_SRC" \
		--load-extension=rangefilter "$4"
	rf_stop_server "$1"
	check_server_log "$1"
}

# Twice: guesses are checked in other ways where the library is preloaded.
isolation_suite()
{
	local tests

	tests=$(names_in "$RF_SRC/test/isolation/specs" spec) || return 1
	tests=$(pick "$tests" "$@") || return 1
	job isolation run_isolation isolation '' "$tests"
	job isolation/preloaded run_isolation isolation_preloaded rangefilter "$tests"
}

# Isolation tests $3 on a server called $1 that preloads $2.
run_isolation()
{
	local options

	options=$(session_settings ISOLATION_SETTINGS) || return 1
	rf_start_server "$1" "${ISOLATION_SETTINGS[@]}" shared_preload_libraries="$2"
	PGOPTIONS=$options run_regress "$1" isolation/pg_isolation_regress "$RF_SRC/test/isolation" \
		--load-extension=rangefilter "$3"
	rf_stop_server "$1"
	check_server_log "$1"
}

# Test modules have sql/ and expected/ of their own, if they want.
modules_suite()
{
	local all

	all=$(cd "$RF_SRC/test/modules" 2>/dev/null && ls) || { rf_say "no test modules"; return 0; }
	all=$(pick "$all" "$@") || return 1
	job modules run_modules "$all"
}

run_modules()
{
	local all=$1 module name tests

	rf_start_server modules "${TEST_SETTINGS[@]}"
	for name in $all; do
		module=$RF_SRC/test/modules/$name
		[ -d "$module/sql" ] || continue
		tests=$(names_in "$module/sql" sql) || return 1
		run_regress "$name" regress/pg_regress "$module" '' "$tests"
	done
	rf_stop_server modules
	check_server_log modules
}

# Each file in a database of its own, which has the extensions and loads the
# library in every session.
pgtap_suite()
{
	local tests

	tests=$(names_in "$RF_SRC/test/pgtap" sql) || return 1
	tests=$(pick "$tests" "$@") || return 1
	[ -e "$RF_PG$("$PG_CONFIG" --sharedir)/extension/pgtap.control" ] ||
		{ rf_say "this PostgreSQL has no pgTAP: install it from https://pgtap.org"; return 1; }
	job pgtap run_pgtap "$tests"
}

run_pgtap()
{
	local tests=$1 test status

	rf_start_server pgtap "${TEST_SETTINGS[@]}"
	for test in $tests; do
		status=0
		rf_psql -c "CREATE DATABASE \"$test\"" \
			-c "ALTER DATABASE \"$test\" SET session_preload_libraries = 'rangefilter'" || return 1
		rf_psql -d "$test" -c 'CREATE EXTENSION pgtap' -c 'CREATE EXTENSION rangefilter' || return 1
		PGDATABASE=$test rf_run perl "$RF_SRC/test/lib/tap.pl" \
			--exec "psql -XqAt -v ON_ERROR_STOP=1 -f" \
			"$RF_SRC/test/pgtap/$test.sql" >"$RF_TMP/tap.log" 2>&1 || status=$?
		cat "$RF_TMP/tap.log"
		count_lines "pgtap/$test" "$RF_TMP/tap.log" "$status"
	done
	rf_stop_server pgtap
	check_server_log pgtap
}

# Perl scripts that run servers of their own.
tap_suite()
{
	local tests test

	[ -e "$RF_PGXS/src/test/perl/PostgreSQL/Test/Cluster.pm" ] ||
		{ rf_say "this PostgreSQL came without its Perl test modules"; return 1; }
	tests=$(names_in "$RF_SRC/test/t" pl) || return 1
	tests=$(pick "$tests" "$@") || return 1
	rf_run mkdir -p "$RF_TMP/tap/ports"
	! grep -qxE "$WITH_OTHERS" <<<"$tests" || rf_add_neighbours
	for test in $tests; do
		job "tap/$test" run_tap "$test"
	done
}

# The directory of ports keeps tests that run at a time from choosing the same one.
# TAP_TIMEOUT is how many seconds a test may take.
run_tap()
{
	local test=$1 directory=$RF_TMP/tap/$1 modules=$RF_PGXS/src/test/perl status=0

	rf_run mkdir -p "$directory"
	rf_run env -u PGHOST -u PGUSER -u PGDATABASE PGPORT=65432 SEED="$SEED_USED" \
		PG_REGRESS="$RF_PGXS/src/test/regress/pg_regress" \
		PG_TEST_PORT_DIR="$RF_TMP/tap/ports" RF_NEIGHBOURS="$RF_NEIGHBOURS" \
		TESTDIR="$directory" TESTDATADIR="$directory/tmp_check" TESTLOGDIR="$directory/log" \
		timeout --kill-after=10 "${TAP_TIMEOUT:-3600}" perl -I "$modules" -I "$RF_SRC/test/t" "$RF_SRC/test/lib/tap.pl" \
		-I "$modules" -I "$RF_SRC/test/t" \
		"$RF_SRC/test/t/$test.pl" >"$directory.log" 2>&1 || status=$?
	cat "$directory.log"
	count_lines "tap/$test" "$directory.log" "$status"
	[ "$status" = 0 ] ||
		find "$directory" -path '*/log/*' \( -name '*.log' -o -name 'regress_log_*' \) -exec tail -n 25 {} +
}

# Random data, DML and queries: with skipping and without it, the same answer.
oracle_suite()
{
	[ -x "$RF_SRC/test/oracle/run" ] || { rf_say "no oracle test"; return 1; }
	job oracle run_oracle
}

run_oracle()
{
	local status=0 seed=$SEED_USED preload=session

	[ $((seed % 2)) = 0 ] || preload=shared
	rf_start_server oracle "${preload}_preload_libraries=rangefilter" \
		max_prepared_transactions=10
	rf_psql -c 'CREATE DATABASE oracle' || return 1
	rf_psql -d oracle -c 'CREATE EXTENSION rangefilter' || return 1
	rf_say "seed $seed, ${preload}_preload_libraries: again with SEED=$seed make test T=oracle"
	PGDATABASE=oracle rf_run "$RF_SRC/test/oracle/run" --seed "$seed" \
		--seconds "${ORACLE_SECONDS:-120}" >"$RF_TMP/oracle.log" 2>&1 || status=$?
	cat "$RF_TMP/oracle.log"
	count_lines oracle "$RF_TMP/oracle.log" "$status"
	rf_stop_server oracle
	check_server_log oracle
}

# A stress run of its own server: $1 names it, $2 is the kind of preloading, $3
# the seed, $4 how many seconds.
run_stress()
{
	local name=$1 preload=$2 seed=$3 seconds=$4 status=0

	# Autovacuum and the worker come often, and whoever waits finds deadlocks soon.
	rf_start_server "$name" "${preload}_preload_libraries=rangefilter" \
		rangefilter.autosummarize_delay=200ms \
		autovacuum_naptime=1s autovacuum_vacuum_threshold=100 \
		autovacuum_vacuum_insert_threshold=200 deadlock_timeout=200ms \
		log_error_verbosity=verbose
	rf_psql -c 'CREATE DATABASE stress' || return 1
	rf_psql -d stress -c 'CREATE EXTENSION rangefilter' || return 1
	rf_say "seed $seed, ${preload}_preload_libraries"
	PGDATABASE=stress rf_run "$RF_SRC/test/stress/run" --seed "$seed" \
		--seconds "$seconds" >"$RF_TMP/stress.log" 2>&1 || status=$?
	cat "$RF_TMP/stress.log"
	count_lines "$name" "$RF_TMP/stress.log" "$status"
	grep -A 3 'XX000:' "$RF_TMP/$name/log" || true
	rf_stop_server "$name"
	check_server_log "$name"
}

# Changes, DDL and VACUUM against queries, all at once; a short form of "make
# stress".
stress_suite()
{
	local seed=$SEED_USED preload=session

	[ $((seed % 2)) = 0 ] || preload=shared
	job stress run_stress stress "$preload" "$seed" "${STRESS_SECONDS:-15}"
}
