#!/bin/bash
#
# format.sh: lays out the C sources as PostgreSQL's pgindent does; with --check,
# changes nothing, and fails where a file is not laid out so or breaks one of
# the rules that format.pl lists.

cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=../lib/common.sh
. ../lib/common.sh
# shellcheck source=../lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"

rf_init
rf_need format
cd "$RF_ROOT"
perl test/tools/format.pl "$@"
