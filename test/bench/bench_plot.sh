#!/bin/bash
#
# bench_plot.sh: plots the time of a query against the number of partitions, from
# the tables of RESULTS.md.
#
#	bench_plot.sh [RESULTS.md]		writes an SVG to standard output
#
# RESULTS.md is the one source: its tables come from several runs of make bench, since
# 10,000 partitions have a run of their own.  The floor is what a query takes that
# names its partition, in a table whose indexes are btrees; without such a figure there
# is no floor.

set -euo pipefail
directory=$(dirname "${BASH_SOURCE[0]}")

# The measures as bench.sh calls them.
awk -f "$directory/figures.awk" "${1:-$directory/RESULTS.md}" |
	awk -F '\t' '
		BEGIN {
			print "title,One row by a random id, simple protocol, everything in memory"
			print "x,partitions of 20,000 rows (10,000 partitions: of 1,000)"
			print "y,ms"
		}
		$3 == "`id = x`, simple protocol, ms" && $4 ~ /^(btree|rangefilter|rangefilter and btree)$/ {
			print "point," $4 "," $1 "," $5
		}
		$3 == "`id = x AND day = d` (with the partition key), simple protocol, ms" && $4 == "btree" {
			print "point,with the partition key," $1 "," $5
		}' |
	awk -f "$directory/lines_plot.awk"
