#!/bin/bash
#
# mutants.sh: does a test notice when the source is changed a little?
#
# Makes one small change at a time (tools/mutate.pl) in a copy of the repository, and runs
# the suites one after the other until one fails.  Prints a line for each change, and at the end
# those that no suite has noticed.
#
# Environment, with defaults:
#	MUTANTS=20					so many changes, chosen at random
#	MUTANTS_FILES=				the sources; all of plan-time skipping, levels and wormhole's writes
#								if not set
#	MUTANTS_SUITES="regress isolation"	words for test/run
#	MUTANTS_LIST=				a file with lines of mutate.pl: these instead
#	SEED						of the choice

# shellcheck source=lib/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

FILES_DEFAULT="src/planner/skip/*.c src/planner/gate/*.c src/planner/knowledge/*.c src/rangefilter/rfinsert.c
src/rangefilter/page/rfdelta.c src/rangefilter/page/rflevels.c src/wormhole/write/*.c"

MUTANTS=${MUTANTS:-20}
SUITES=${MUTANTS_SUITES:-regress isolation}
SEED=${SEED:-$RANDOM}

# More seconds than a suite takes: a change may make a server wait for ever.
SUITE_TIMEOUT=600

# Puts the repository's files, as they are, into a copy.
copy_repository()
{
	mkdir -p "$RF_TMP/copy"
	git -C "$RF_ROOT" ls-files -z | (cd "$RF_ROOT" && xargs -0 cp --parents -t "$RF_TMP/copy")
}

# Writes the changes to be made to RF_TMP/chosen.
choose_changes()
{
	local files=${MUTANTS_FILES:-$FILES_DEFAULT}

	if [ -n "${MUTANTS_LIST:-}" ]; then
		cp "$MUTANTS_LIST" "$RF_TMP/chosen"
		return
	fi
	# shellcheck disable=SC2086
	(cd "$RF_ROOT" && perl test/tools/mutate.pl $files) >"$RF_TMP/all"
	perl -MList::Util=shuffle -e 'srand(shift); my $n = shift; my @l = shuffle(<STDIN>); print grep { defined } @l[0 .. $n - 1]' \
		"$SEED" "$MUTANTS" <"$RF_TMP/all" >"$RF_TMP/chosen"
	rf_say "seed $SEED: $(wc -l <"$RF_TMP/chosen") of $(wc -l <"$RF_TMP/all") changes"
}

# Which suite notices the change that is made?  Prints its name, "nothing" if none does.
noticed_by()
{
	local suite status

	for suite in $SUITES; do
		status=0
		timeout --kill-after=10 "$SUITE_TIMEOUT" bash "$RF_TMP/copy/test/run" "$suite" >"$RF_TMP/log" 2>&1 || status=$?
		if grep -q '^FAILED build' "$RF_TMP/log"; then
			rf_say compiler
			return
		elif [ "$status" != 0 ]; then
			rf_say "$suite"
			return
		fi
	done
	rf_say nothing
}

main()
{
	local file line column old new by n=0 survived=0 wrong=0

	rf_init
	copy_repository
	choose_changes
	by=$(noticed_by)
	[ "$by" = nothing ] || rf_die "$by fails without any change, too"
	: >"$RF_TMP/survivors"
	while IFS=$'\t' read -r file line column old new <&3; do
		perl "$RF_ROOT/test/tools/mutate.pl" --apply "$RF_TMP/copy/$file" "$line" "$column" "$old" "$new"
		by=$(noticed_by)
		rf_say "$file:$line:$column: \"$old\" -> \"$new\": $by"
		cp "$RF_ROOT/$file" "$RF_TMP/copy/$file"
		n=$((n + 1))
		case $by in
			compiler) wrong=$((wrong + 1)) ;;
			nothing)
				survived=$((survived + 1))
				printf '%s\t%s\t%s\t%s\t%s\n' "$file" "$line" "$column" "$old" "$new" >>"$RF_TMP/survivors"
				;;
		esac
	done 3<"$RF_TMP/chosen"
	rf_say "not noticed:"
	cat "$RF_TMP/survivors"
	rf_say "$((n - survived - wrong)) noticed, $survived not, $wrong do not compile"
}

main
