#!/bin/bash
#
# versions.sh: the tests on every PostgreSQL that is here.
#
#	test/versions.sh [suite[/name] ...]		test/run with each
#	test/versions.sh --compile				compiles with each but the one that test/run takes,
#											with warnings as errors
#
# PG_CONFIGS: the pg_config programs of servers that were installed by hand.  Added are
# the servers of Debian's packages, /usr/lib/postgresql.  Prints one line for each, and
# below it what failed.  The exit status is 1 if something failed.  RF_KEEP=1 keeps the
# logs.
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

# Runs suites with one server; all that it can run if none is named.
test_version()
{
	local config=$1 log=$RF_TMP/log line missing started=$SECONDS status=0 suite suites
	shift

	missing=$(missing_suites "$config")
	suites=("$@")
	if [ $# = 0 ] && [ -n "$missing" ]; then
		for suite in build unit modules regress isolation pgtap tap oracle stress; do
			grep -qx "$suite" <<<"$missing" || suites+=("$suite")
		done
	fi
	rf_run env PG_CONFIG="$config" bash "$RF_ROOT/test/run" "${suites[@]}" >"$log" 2>&1 || status=1
	line=$(sed -n '/^[0-9]* passed, [0-9]* failed$/h; ${g;s/^$/could not run/;p;}' "$log")
	line="$(name_of "$config"): $line, $((SECONDS - started)) s"
	[ "${#suites[@]}" = $# ] || line+=" (without ${missing//$'\n'/ })"
	rf_say "$line"
	if [ "$status" != 0 ]; then
		grep '^FAILED' "$log" | sort -u || tail -n 20 "$log"
	fi
	[ -z "${RF_KEEP:-}" ] || mv "$log" "$log.$(name_of "$config" | tr ' ' -)"
	return "$status"
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
	local config what=test_version tested='' failed=0

	rf_init
	if [ "${1:-}" = --compile ]; then
		what=compile_version
		shift
		rf_need server
		rf_choose_user
		rf_copy_source
		tested=$PG_CONFIG
	fi
	find_servers
	for config in "${CONFIGS[@]}"; do
		[ "$config" = "$tested" ] || "$what" "$config" "$@" || failed=1
	done
	[ -n "$tested" ] || [ "${#CONFIGS[@]}" -gt 0 ] ||
		rf_die "no PostgreSQL found: set PG_CONFIGS"
	return "$failed"
}

main "$@"
