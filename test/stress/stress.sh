#!/bin/bash
#
# stress.sh: the stress run on private servers, with assertions; see run.
#
#	test/stress/stress.sh
#
# Half of the time the library is loaded by session_preload_libraries, half by
# shared_preload_libraries.  The last line is "N passed, M failed".
#
# Environment: SECONDS_TO_RUN (600), SEED; RF_KEEP=1 keeps the temporary directory.

cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=../lib/common.sh
. ../lib/common.sh
# shellcheck source=../lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=../lib/server.sh
. "$RF_ROOT/test/lib/server.sh"
# shellcheck source=../lib/suites.sh
. "$RF_ROOT/test/lib/suites.sh"

main()
{
	local seconds=${SECONDS_TO_RUN:-600} seed=${SEED:-$(date +%s)} preload

	rf_init
	rf_need server tests
	rf_choose_user
	rf_say "PostgreSQL: $("$PG_CONFIG" --version)"
	rf_private_postgres
	rf_copy_source
	rf_install_extension ASSERT=1

	PASSED=0 FAILED=0
	for preload in session shared; do
		printf "\n== %s_preload_libraries ==\n" "$preload"
		run_stress "stress_$preload" "$preload" "$seed" $((seconds / 2)) ||
			count_failed "stress: could not run"
		seed=$((seed + 1))
	done
	printf '\n'
	[ "${#FAILURES[@]}" = 0 ] || printf 'FAILED %s\n' "${FAILURES[@]}"
	rf_say "$PASSED passed, $FAILED failed"
	[ "$FAILED" = 0 ]
}

main "$@"
