# measure.sh: how long statements take.
#
# shellcheck shell=bash

# The median of the numbers on standard input.
rf_median()
{
	sort -g | awk '{ v[NR] = $1 }
		END { if (NR) print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# Milliseconds that psql measured, one per line.  Standard input is the script;
# what the statements return is thrown away.
rf_time_script()
{
	{
		printf '%s\n' '\o /dev/null' '\timing on'
		cat
	} | rf_psql | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p'
}

# The median of $2 runs of statement $1 in one session, after two runs that
# fill the caches.
rf_time_query()
{
	local i

	for ((i = 0; i < $2 + 2; i++)); do
		printf '%s;\n' "$1"
	done | rf_time_script | tail -n +3 | rf_median
}

# For each of the scripts $2, $3 and so on the median over $1 connections of its last
# statement, one a line. The scripts take turns: a machine may be faster a minute later.
rf_time_connections()
{
	local n=$1 i script

	shift
	for ((i = 0; i < n; i++)); do
		for script in "$@"; do
			printf '%s;\n' "$script" | rf_time_script | tail -n 1
		done
	done >"$RF_TMP/connections"
	for ((i = 0; i < $#; i++)); do
		awk -v i="$i" -v n="$#" '(NR - 1) % n == i' "$RF_TMP/connections" | rf_median
	done
}

# printf's %.*f that leaves out decimals nobody reads: three digits or so.
rf_round()
{
	awk -v x="$1" 'BEGIN { printf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : x >= 1 ? "%.2f" : "%.3f", x) }'
}

# $1 / $2, rounded.
rf_ratio()
{
	rf_round "$(awk -v a="$1" -v b="$2" 'BEGIN { print (b > 0) ? a / b : 0 }')"
}
