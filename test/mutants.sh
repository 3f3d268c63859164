#!/bin/bash
#
# mutants.sh: does a test notice when the source is changed a little?
#
# Makes one small change at a time (tools/mutate.pl) in a copy of the repository, compiles the
# one file, and runs tests until one fails.  Which tests run a line is measured first: each test
# runs once with these files compiled for gcov.  Of a change only the tests are run that run its
# line, first those that tools/mutants_tests.list names (tools/covered.pl has the order).  Prints a
# line for each change, and at the end those that no test has noticed.
#
# Environment, with defaults:
#	MUTANTS=20					so many changes, chosen at random
#	MUTANTS_FILES=				the sources; all of the planner part, levels and wormhole's writes if not set
#	MUTANTS_LIST=				a file with lines of mutate.pl: these instead
#	MUTANTS_MAP=				a file for what is measured first: written if it is not there; for the
#								same sources and tests only.  (MAP.noticed beside it has which test has
#								noticed a change of which file.)
#	MUTANTS_TESTS='.*'			of the tests, those that fit (regress/x, isolation/x, preloaded/x, module/x,
#								tap/x, oracle/10)
#	MUTANTS_SECONDS=600			after these no more tests are run for a change
#	MUTANTS_JOBS=				so many at a time; the number of processors if not set
#	SEED						of the choice

# shellcheck source=lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=lib/server.sh
. "$RF_ROOT/test/lib/server.sh"
# shellcheck source=lib/suites.sh
. "$RF_ROOT/test/lib/suites.sh"

FILES_DEFAULT="src/planner/*.c src/planner/*/*.c src/rangefilter/rfinsert.c src/rangefilter/page/rfdelta.c
src/rangefilter/page/rflevels.c src/wormhole/tree/whsplit.c src/wormhole/tree/whdelete.c src/wormhole/write/*.c"

# TAP tests that take a few seconds and reach what the others do not.
TAP_TESTS='002_standby|005_damage|006_crash_unlogged_prepared|008_activity|009_secured_explain|015_old_snapshot|016_digest_store|017_reused_names|018_denied_sets|022_wormhole_dead_entries|023_wormhole_page_deletion|024_wormhole_unfinished_splits|026_wormhole_damage|030_digests_inserts|034_worker|035_levels|036_insert_appends|040_neighbours|046_cold|057_append_while_asked|058_gate_digests|061_knowledge|065_wormhole_vacuum_waits'

MUTANTS=${MUTANTS:-20}
MUTANTS_TESTS=${MUTANTS_TESTS:-.*}
MUTANTS_SECONDS=${MUTANTS_SECONDS:-600}
MUTANTS_JOBS=${MUTANTS_JOBS:-$(nproc)}
SEED=${SEED:-$RANDOM}

# A test that takes more seconds than this is too slow for us.
TEST_LIMIT=300

# Writes the changes to be made to RF_TMP/chosen.
choose_changes()
{
	if [ -n "${MUTANTS_LIST:-}" ]; then
		cp "$MUTANTS_LIST" "$RF_TMP/chosen"
		return
	fi
	(cd "$RF_ROOT" && perl test/tools/mutate.pl "${FILES[@]}") >"$RF_TMP/all"
	perl -MList::Util=shuffle -e 'srand(shift); my $n = shift; my @l = shuffle(<STDIN>); print grep { defined } @l[0 .. $n - 1]' \
		"$SEED" "$MUTANTS" <"$RF_TMP/all" >"$RF_TMP/chosen"
	rf_say "seed $SEED: $(wc -l <"$RF_TMP/chosen") of $(wc -l <"$RF_TMP/all") changes"
}

# The tests' names.
all_tests()
{
	names_in "$RF_SRC/sql" sql | sed 's,^,regress/,'
	names_in "$RF_SRC/test/isolation/specs" spec | sed 's,.*,isolation/&\npreloaded/&,'
	(cd "$RF_SRC/test/modules" && ls -d */sql) | sed 's,\(.*\)/sql,module/\1,'
	names_in "$RF_SRC/test/t" pl | grep -xE "$TAP_TESTS" | sed 's,^,tap/,'
	rf_say oracle/10
}

# The extension with its test modules, and a small data directory with a database as pg_regress
# makes it.
prepare()
{
	local module

	rf_install_extension ASSERT=1
	for module in "$RF_SRC"/test/modules/*/; do
		rf_make -C "$module" all install COPT=-DUSE_ASSERT_CHECKING DESTDIR="$RF_PG" >/dev/null
	done
	RF_INITDB=--wal-segsize=1 rf_start_server prepared
	run_regress mutants regress/pg_regress "$RF_SRC" --load-extension=rangefilter '' >"$RF_TMP/prepare.log" || true
	rf_stop_server prepared
	RF_PREPARED=$RF_TMP/prepared/data
}

# Makes this shell a worker: it has copies of the source and the installation, and a
# temporary directory of its own.  Its number is $1.
become_worker()
{
	local directory=$RF_TMP/w$1

	UNCHANGED=$RF_SRC
	rm -rf "$directory"
	rf_run mkdir -p "$directory/tap/ports"
	rf_run cp -a "$RF_SRC" "$RF_PG" "$directory"
	rf_run ln -s ../running "$directory/running"
	RF_BIN=$directory/pg${RF_BIN#"$RF_PG"}
	RF_PG=$directory/pg
	RF_SRC=$directory/src
	RF_TMP=$directory
	export PATH=$RF_BIN:$PATH
	SERVERS=
}

# Starts the server for a kind of test unless it runs.
need_server()
{
	local kind=$1 settings

	case $kind in
		regress) settings=("${REGRESS_SETTINGS[@]}" session_preload_libraries=rangefilter) ;;
		module) settings=("${TEST_SETTINGS[@]}") ;;
		isolation) settings=("${TEST_SETTINGS[@]}" rangefilter.autosummarize=off) ;;
		*) settings=("${TEST_SETTINGS[@]}" rangefilter.autosummarize=off shared_preload_libraries=rangefilter) ;;
	esac
	case " $SERVERS " in
		*" $kind "*) ;;
		*)
			SERVERS+=" $kind"
			# In a shell of its own, which ends where the server does not start.
			(rf_start_server "$kind" "${settings[@]}") || return
			;;
	esac
	export PGHOST=$RF_TMP/$kind/socket PGPORT=5432 PGUSER=postgres
}

# Ends the servers, by pg_ctl's mode $1 or as they can be ended, and removes them.
stop_servers()
{
	local kind process memory

	for kind in $SERVERS; do
		if ! rf_run timeout 60 "$RF_BIN/pg_ctl" -D "$RF_TMP/$kind/data" -m "$1" -w stop >/dev/null 2>&1; then
			memory=$(sed -n '7s/.* //p' "$RF_TMP/$kind/data/postmaster.pid" 2>/dev/null) || true
			for process in /proc/[0-9]*; do
				[ ! "$process/cwd" -ef "$RF_TMP/$kind/data" ] || kill -KILL "${process#/proc/}" 2>/dev/null || true
			done
			[ -z "$memory" ] || ipcrm -m "$memory" 2>/dev/null || true
		fi
		rm -rf "${RF_TMP:?}/$kind"
	done
	SERVERS=
}

# Runs a program of pg_regress's on tests $6 ..., at most $2 seconds.  The database is made for them, but
# for rf_mutants.
run_program()
{
	local program=$1 limit=$2 input=$3 kind=$4 database=$5 existing=

	[ "$database" != rf_mutants ] || existing=--use-existing

	rf_run timeout --kill-after=5 "$limit" "$RF_PGXS/src/test/$program" --inputdir="$input" \
		--outputdir="$RF_TMP/$kind" --bindir="$RF_BIN" --host="$PGHOST" --port="$PGPORT" \
		--user="$PGUSER" --dbname="$database" $existing --no-locale "${@:6}"
}

# Runs a test, at most $2 seconds: does it pass?
run_test()
{
	local kind=${1%/*} name=${1#*/} limit=$2

	FAILED=0
	if [ "$kind" = tap ]; then
		TAP_TIMEOUT=$limit run_tap "$name"
		rm -rf "$RF_TMP/tap/$name"
	else
		need_server "$kind" || return
		case $kind in
			regress)
				run_program regress/pg_regress "$limit" "$RF_SRC" "$kind" rf_mutants "$name" || return
				;;
			module)
				# shellcheck disable=SC2046 # a list of words
				run_program regress/pg_regress "$limit" "$RF_SRC/test/modules/$name" "$kind" rf_module \
					$(names_in "$RF_SRC/test/modules/$name/sql" sql) || return
				;;
			oracle)
				PGDATABASE=rf_mutants rf_run timeout --kill-after=5 "$limit" \
					"$RF_SRC/test/oracle/run" --seed "$SEED" --seconds "$name" || return
				;;
			*)
				run_program isolation/pg_isolation_regress "$limit" "$RF_SRC/test/isolation" "$kind" rf_mutants "$name" ||
					return
				;;
		esac
		check_server_log "$kind"
	fi
	[ "$FAILED" = 0 ]
}

install_library()
{
	rf_run cp "$RF_SRC/rangefilter.so" "$RF_PG$("$PG_CONFIG" --pkglibdir)/"
}

# A worker's part of measuring: its share of the tests with the sources compiled for gcov.
measure()
{
	local number=$1 test started n=0

	become_worker "$number"
	rf_run touch "${FILES[@]/#/$RF_SRC/}"
	rf_make all ASSERT=1 COPT='-O0 --coverage'
	install_library
	while IFS= read -r test <&3; do
		n=$((n + 1))
		[ $((n % MUTANTS_JOBS)) = "$number" ] || continue
		find "$RF_SRC/src" -name '*.gcda' -delete
		started=$SECONDS
		if run_test "$test" "$TEST_LIMIT" >"$RF_TMP/log" 2>&1; then
			stop_servers fast
			(cd "$RF_SRC" && find src -name '*.gcda' -print0 | xargs -0 -r gcov --stdout 2>/dev/null) |
				perl "$RF_ROOT/test/tools/covered.pl" --read "$test" $((SECONDS - started)) "${FILES[@]}" >>"$MAP"
		else
			stop_servers immediate
			rf_say "left out: $test fails without any change, or takes more than $TEST_LIMIT s"
			cp "$RF_TMP/log" "$MAP.${test//\//_}.log"
		fi
	done 3<"$TESTS"
}

# Makes the change that mutate.pl's fields tell, and sets BY to the test that notices it.
notice()
{
	local file=$1 line=$2 seconds status started=$SECONDS

	BY=compiler
	perl "$RF_ROOT/test/tools/mutate.pl" --apply "$RF_SRC/$file" "${@:2}"
	rf_make all ASSERT=1 COPT=-O0 >"$RF_TMP/log" 2>&1 || return 0
	install_library
	perl "$RF_ROOT/test/tools/covered.pl" "$MAP" "$NOTICED" "$file" "$line" >"$RF_TMP/tests"
	while IFS=$'\t' read -r BY seconds <&4; do
		if [ $((SECONDS - started)) -gt "$MUTANTS_SECONDS" ]; then
			BY="nothing in $MUTANTS_SECONDS s"
			return
		fi
		status=0
		run_test "$BY" $((seconds * 4 + 20)) >"$RF_TMP/log" 2>&1 || status=$?
		if [ "$status" != 0 ]; then
			printf '%s\t%s\n' "$file" "$BY" >>"$NOTICED"
			if [ "$status" = 124 ] || grep -q 'exit status 124$' "$RF_TMP/log"; then
				BY+=', which did not end'
			fi
			return
		fi
	done 4<"$RF_TMP/tests"
	BY=nothing
	[ -s "$RF_TMP/tests" ] || BY='nothing: no test runs this line'
}

# A worker's part of the changes.
change()
{
	local number=$1 file line column old new n=0 started

	become_worker "$number"
	while IFS=$'\t' read -r file line column old new <&3; do
		n=$((n + 1))
		[ $((n % MUTANTS_JOBS)) = "$number" ] || continue
		started=$SECONDS
		notice "$file" "$line" "$column" "$old" "$new"
		stop_servers immediate
		rf_say "$file:$line:$column: \"$old\" -> \"$new\": $BY ($((SECONDS - started)) s)"
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$file" "$line" "$column" "$old" "$new" "$BY" >>"$RESULTS"
		rf_run cp -p "$UNCHANGED/$file" "$UNCHANGED/${file%.c}.o" "$RF_SRC/${file%/*}/"
	done 3<"$CHOSEN"
}

# Runs a function in all workers.
in_workers()
{
	local number worker workers=()

	for ((number = 0; number < MUTANTS_JOBS; number++)); do
		"$1" "$number" &
		workers+=($!)
	done
	for worker in "${workers[@]}"; do
		wait "$worker" || rf_die "a worker has failed"
	done
}

main()
{
	local survived wrong

	rf_init
	# shellcheck disable=SC2206 # patterns
	FILES=($(cd "$RF_ROOT" && printf '%s\n' ${MUTANTS_FILES:-$FILES_DEFAULT}))
	MAP=${MUTANTS_MAP:-$RF_TMP/map}
	CHOSEN=$RF_TMP/chosen NOTICED=$MAP.noticed RESULTS=$RF_TMP/results TESTS=$RF_TMP/all_tests
	[ -e "$NOTICED" ] || grep -v '^#' "$RF_ROOT/test/tools/mutants_tests.list" >"$NOTICED"
	: >"$RESULTS"
	choose_changes
	rf_need server tests
	rf_choose_user
	rf_private_postgres
	rf_copy_source
	SEED_USED=$SEED PASSED=0 FAILED=0
	ulimit -c 0
	prepare
	if [ ! -s "$MAP" ]; then
		all_tests | grep -xE "$MUTANTS_TESTS" >"$TESTS"
		in_workers measure
		rf_say "tests: $(cut -f 1 "$MAP" | sort -u | wc -l) of $(wc -l <"$TESTS")"
	fi
	in_workers change
	rf_say "not noticed:"
	grep -P '\tnothing[^\t]*$' "$RESULTS" || true
	survived=$(grep -cP '\tnothing[^\t]*$' "$RESULTS") || true
	wrong=$(grep -cP '\tcompiler$' "$RESULTS") || true
	rf_say "$(($(wc -l <"$RESULTS") - survived - wrong)) noticed, $survived not, $wrong do not compile"
}

main
