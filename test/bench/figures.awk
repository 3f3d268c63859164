# figures.awk: the tables of RESULTS.md that make bench wrote, one figure a line.
#
#	awk -f figures.awk RESULTS.md
#
# Prints partitions, rows in each, measure, variant and value, with tabs between them.

/^## [0-9]+ partitions x [0-9]+ rows/ { partitions = $2; rows = $5; header = 1; next }

/^#/ || /^<!--/ { partitions = 0 }

partitions && /^\|/ {
	n = split($0, cell, /[ ]*\|[ ]*/)
	if (header) {
		for (i = 3; i < n; i++)
			variant[i] = cell[i]
		header = 0
	} else if (cell[2] !~ /^-+$/) {
		for (i = 3; i < n; i++) {
			if (cell[i] != "" && variant[i] !~ /\//)
				printf("%d\t%d\t%s\t%s\t%s\n", partitions, rows, cell[2], variant[i], cell[i])
		}
	}
}
