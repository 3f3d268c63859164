#!/bin/bash
#
# soak.sh: the soak run on private servers; see run.
#
#	test/soak/soak.sh [options of run]
#
# The last line is "N passed, M failed".
#
# Environment: SECONDS_TO_RUN (600), SEED, SOAK_OUTPUT (a directory for meter.csv and meter.svg); SOAK_DIRECTORY
# (where the servers are kept at the end; if a run has left them there, this one goes on with them); ASSERT= leaves
# our assertions out; RF_KEEP=1 keeps the temporary directory.

DIRECTORY=${SOAK_DIRECTORY:+$(realpath -m "$SOAK_DIRECTORY")}
OUTPUT=${SOAK_OUTPUT:+$(realpath -m "$SOAK_OUTPUT")}
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=../lib/common.sh
. ../lib/common.sh
# shellcheck source=../lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=../lib/server.sh
. "$RF_ROOT/test/lib/server.sh"

main()
{
	local seconds=${SECONDS_TO_RUN:-600} seed=${SEED:-$(date +%s)} status=0

	[ -z "$DIRECTORY" ] || [ ! -e "$DIRECTORY" ] || [ -e "$DIRECTORY/kept" ] ||
		rf_die "$DIRECTORY has no run that could be gone on with: remove it"
	rf_init
	rf_need server tests
	rf_choose_user
	rf_say "PostgreSQL: $("$PG_CONFIG" --version)"
	rf_private_postgres
	rf_copy_source
	rf_install_extension ASSERT="${ASSERT-1}"
	if [ -n "$DIRECTORY" ] && [ -e "$DIRECTORY" ]; then
		mv "$DIRECTORY" "$RF_TMP/soak"
	else
		rf_run mkdir "$RF_TMP/soak"
	fi
	rf_run "$RF_SRC/test/soak/run" --directory "$RF_TMP/soak" --seed "$seed" --seconds "$seconds" "$@" || status=$?
	if [ -n "$OUTPUT" ]; then
		mkdir -p "$OUTPUT"
		cp "$RF_TMP/soak/meter.csv" "$OUTPUT/"
		awk -f "$RF_SRC/test/soak/meter_points.awk" "$RF_TMP/soak/meter.csv" |
			awk -f "$RF_SRC/test/bench/lines_plot.awk" >"$OUTPUT/meter.svg"
	fi
	[ -z "$DIRECTORY" ] || mv "$RF_TMP/soak" "$DIRECTORY"
	[ "$status" = 0 ]
}

main "$@"
