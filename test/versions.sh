#!/bin/bash
#
# versions.sh: the tests on every PostgreSQL that is here.
#
#	test/versions.sh [suite[/name] ...]		test/run with each, and upgrade, if all or it is named
#	test/versions.sh --compile				compiles with each but the one that test/run takes,
#											with warnings as errors
#
# PG_CONFIGS: the pg_config programs of servers that were installed by hand.  Added are
# the servers of Debian's packages, /usr/lib/postgresql.  Prints one line for each, and
# below it what failed.  Then one for pg_upgrade from the oldest to the newest of them
# (upgrade.sh); where PostgreSQL itself cannot do that, from the next one.  The exit status is 1 if something failed.  RF_KEEP=1 keeps the logs.
#
# A server without pgTAP, or without PostgreSQL's Perl modules, is tested without the
# suite that needs it; its line says so.

cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# What is called PG... is unset for the tests.
configs=${PG_CONFIGS:-}
# shellcheck source=lib/common.sh
. lib/common.sh
# shellcheck source=lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=lib/server.sh
. "$RF_ROOT/test/lib/server.sh"

# Sets CONFIGS to the servers' pg_config programs, each once.
find_servers()
{
	local config major

	CONFIGS=()
	for config in $configs; do
		PG_CONFIG=$config
		rf_check_pg_config
		[ -e "$("$PG_CONFIG" --pgxs)" ] ||
			rf_die "$PG_CONFIG: the server's development files are missing"
		CONFIGS+=("$PG_CONFIG")
	done
	for config in /usr/lib/postgresql/*/bin/pg_config; do
		major=${config%/bin/pg_config}
		if rf_supported "${major##*/}" && [ -e "$("$config" --pgxs)" ] &&
			[[ " ${CONFIGS[*]} " != *" $config "* ]]; then
			CONFIGS+=("$config")
		fi
	done
}

# "PostgreSQL 17.11"
name_of()
{
	"$1" --version | cut -d ' ' -f 1,2
}

# The suites that a server cannot run.
missing_suites()
{
	[ -e "$("$1" --sharedir)/extension/pgtap.control" ] || echo pgtap
	[ -e "$(dirname "$("$1" --pgxs)")/../../src/test/perl/PostgreSQL/Test/Cluster.pm" ] || echo tap
}

# Runs a test whose last line is "N passed, M failed", and prints one line that begins
# with $1.  What failed goes to standard output, too.
run_and_tell()
{
	local name=$1 log=$RF_TMP/log line started=$SECONDS status=0
	shift

	rf_run "$@" >"$log" 2>&1 || status=$?
	line=$(sed -n '/^[0-9]* passed, [0-9]* failed$/h; /^not possible: /h; ${g;s/^$/could not run/;p;}' "$log")
	rf_say "$name: $line, $((SECONDS - started)) s"
	if [ "$status" != 0 ] && [ "$status" != 3 ]; then
		grep '^FAILED' "$log" | sort -u || tail -n 20 "$log"
	fi
	[ -z "${RF_KEEP:-}" ] || mv "$log" "$log.${name//[^A-Za-z0-9.]/-}"
	return "$status"
}

# Runs suites with one server; all that it can run if none is named.
test_version()
{
	local config=$1 missing name suite suites
	shift

	missing=$(missing_suites "$config")
	suites=("$@")
	if [ $# = 0 ] && [ -n "$missing" ]; then
		for suite in build unit modules regress isolation pgtap tap oracle stress; do
			grep -qx "$suite" <<<"$missing" || suites+=("$suite")
		done
	fi
	name=$(name_of "$config")
	[ "${#suites[@]}" = $# ] || name+=" (without ${missing//$'\n'/ })"
	run_and_tell "$name" env PG_CONFIG="$config" bash "$RF_ROOT/test/run" "${suites[@]}"
}

# pg_upgrade from the oldest server to the newest.
test_upgrade()
{
	local i status sorted

	mapfile -t sorted < <(for i in "${CONFIGS[@]}"; do
		printf '%s %s\n' "$("$i" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')" "$i"
	done | sort -s -n -u -k 1,1 | cut -d ' ' -f 2-)
	for ((i = 0; i < ${#sorted[@]} - 1; i++)); do
		status=0
		run_and_tell "pg_upgrade from $(name_of "${sorted[i]}") to $(name_of "${sorted[-1]}")" \
			bash "$RF_ROOT/test/upgrade.sh" "${sorted[i]}" "${sorted[-1]}" || status=$?
		[ "$status" = 3 ] || return "$status"
	done
	rf_say "pg_upgrade: not tested, because no two versions are here between which it is possible"
}

# Compiles the extension and the test modules with one server.
compile_version()
{
	local log=$RF_TMP/log module status=0

	PG_CONFIG=$1
	{
		rf_make clean && rf_make all WERROR=1 ASSERT=1 &&
			for module in "$RF_SRC"/test/modules/*/; do
				rf_make -C "$module" clean && rf_make -C "$module" all COPT=-Werror || return
			done
	} >"$log" 2>&1 || status=1
	if [ "$status" = 0 ]; then
		rf_say "$(name_of "$1"): compiled"
	else
		rf_say "$(name_of "$1"): FAILED to compile"
		tail -n 20 "$log"
	fi
	return "$status"
}

main()
{
	local config what=test_version tested='' failed=0 upgrade='' word suites=()

	rf_init
	if [ "${1:-}" = --compile ]; then
		what=compile_version
		shift
		rf_need server
		rf_choose_user
		rf_copy_source
		tested=$PG_CONFIG
	elif [ $# = 0 ]; then
		upgrade=1
	fi
	for word in "$@"; do
		if [ "$word" = upgrade ]; then
			upgrade=1
		else
			suites+=("$word")
		fi
	done
	find_servers
	if [ $# = 0 ] || [ "${#suites[@]}" -gt 0 ]; then
		for config in "${CONFIGS[@]}"; do
			[ "$config" = "$tested" ] || "$what" "$config" "${suites[@]}" || failed=1
		done
	fi
	[ -z "$upgrade" ] || test_upgrade || failed=1
	[ -n "$tested" ] || [ "${#CONFIGS[@]}" -gt 0 ] ||
		rf_die "no PostgreSQL found: set PG_CONFIGS"
	return "$failed"
}

main "$@"
