#!/bin/bash
#
# format.sh: lays out the C sources as PostgreSQL's pgindent does; with --check,
# changes nothing, and fails where a file is not laid out so or breaks one of
# the rules that format.pl and rooms.pl list.

cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=../lib/common.sh
. ../lib/common.sh
# shellcheck source=../lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"

rf_init
rf_need format
cd "$RF_ROOT"
status=0
perl test/tools/format.pl "$@" || status=1
[ "${1:-}" != --check ] || perl test/tools/rooms.pl || status=1
exit "$status"
