#!/bin/bash
#
# typedefs.sh: rewrites typedefs.list, the types of the server and of the C
# library that our sources use.  pg_bsd_indent has to know them by name.  (Our
# own need no list: format.pl finds them.)
#
# They are read from the debugging information of what is built here, as far as
# our sources mention them.

cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=../lib/common.sh
. ../lib/common.sh
# shellcheck source=../lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=../lib/server.sh
. "$RF_ROOT/test/lib/server.sh"

rf_init
rf_need server
rf_choose_user
rf_copy_source
rf_make all PG_CFLAGS='-g -fno-eliminate-unused-debug-types'

find "$RF_SRC" -name '*.o' -exec readelf --debug-dump=info {} + 2>/dev/null |
	awk '/DW_TAG_/ { typedef = /DW_TAG_typedef/ }
		 typedef && /DW_AT_name/ { print $NF }' |
	sort -u >"$RF_TMP/known"
# bool is a macro.
printf '%s\n' bool >>"$RF_TMP/known"
# Words of the code, not of comments and strings.
find "$RF_SRC/src" "$RF_SRC/test" -name '*.[ch]' -exec cat {} + |
	perl -0777 -pe 's{/\*.*?\*/}{ }gs; s{"(\\.|[^"\\])*"}{ }g' |
	grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$RF_TMP/used"
(cd "$RF_SRC" && perl test/tools/format.pl --own-typedefs) | sort -u >"$RF_TMP/own"
sort -u "$RF_TMP/known" | comm -12 - "$RF_TMP/used" | comm -23 - "$RF_TMP/own" \
	>"$RF_TMP/list"
cat "$RF_TMP/list" >"$RF_ROOT/test/tools/typedefs.list"
rf_say "test/tools/typedefs.list: $(wc -l <"$RF_TMP/list") types"
