# bench.sh: what the benchmarks of test/bench begin and end with.  Sourcing it
# brings the other parts of this directory, but for the suites.
#
#	rf_prepare_bench [need ...]	a private PostgreSQL with the extension
#	rf_machine, rf_revision		for the heads of reports
#	rf_replace_section name file section
#	rf_finish_bench name size full-size	shows and keeps RF_TMP/section
#
# A script that writes results sets RESULTS: the file the user wants, or nothing.
#
# shellcheck shell=bash

# shellcheck source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=server.sh
. "$RF_ROOT/test/lib/server.sh"
# shellcheck source=measure.sh
. "$RF_ROOT/test/lib/measure.sh"

# Needs a server, and what else is named.
rf_prepare_bench()
{
	rf_init
	rf_need server "$@"
	rf_choose_user
	rf_private_postgres
	rf_copy_source
	rf_install_extension WERROR=1
}

rf_machine()
{
	local cpu memory

	cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	memory=$(awk '/^MemTotal/ { printf("%.0f", $2 / 1048576) }' /proc/meminfo)
	rf_say "${cpu:-$(uname -m)}, $(nproc) cores, $memory GB of memory, $(uname -s) $(uname -r)"
}

rf_revision()
{
	git -C "$RF_ROOT" describe --always --dirty 2>/dev/null || rf_say unknown
}

# Replaces section $1 of file $2, which is what is between its marks, by file $3,
# or appends it.
rf_replace_section()
{
	[ -e "$2" ] || : >"$2"
	awk -v name="$1" -v section="$3" '
		index($0, "<!-- " name ": ") == 1 { inside = 1 }
		!inside { print }
		index($0, "<!-- end of " name " -->") == 1 { inside = 0 }
		END { print "<!-- " name ": written by make bench B=" name " -->"
			while ((getline line < section) > 0) print line
			print "<!-- end of " name " -->" }' "$2" >"$RF_TMP/results"
	cat "$RF_TMP/results" >"$2"
}

# Where results go: RESULTS, or the repository's, but only those of the full
# size ($2, if it is what was measured, $1); else nowhere, and RESULTS is empty.
rf_choose_results()
{
	if [ -z "$RESULTS" ] && [ "$1" = "$2" ]; then
		RESULTS=$RF_ROOT/test/bench/RESULTS.md
	fi
}

rf_finish_bench()
{
	cat "$RF_TMP/section"
	rf_choose_results "$2" "$3"
	[ -z "$RESULTS" ] || rf_replace_section "$1" "$RESULTS" "$RF_TMP/section"
}
