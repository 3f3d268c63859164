# filters_report.awk: the filters' section of RESULTS.md.
#
#	awk -f filters_report.awk -v machine=FILE -v queries=N reference.csv figures.csv

BEGIN {
	FS = ","
	order = "uniform normal clustered timestamps words changes"
	title["uniform"] = "Uniform 64-bit numbers"
	title["normal"] = "Normal 64-bit numbers"
	title["clustered"] = "Nearly dense ids in clusters of 1,000"
	title["timestamps"] = "Arrivals of a Poisson process, 0.1 s apart, in us"
	title["words"] = "English words"
	title["changes"] = "Change keys (file path @ time)"
}

/^#/ { next }

FILENAME ~ /reference/ {
	text = $4 ", " $5 " bits: " $6 ($7 != "" ? ", " $7 " ns, " $8 " ns" : "")
	at = $1 SUBSEP $2 SUBSEP $3
	if (at in reference)
		text = reference[at] "; " text
	reference[at] = text
	if (!(($1, $2, $3) in listed)) {
		listed[$1, $2, $3] = 1
		references[$1, $2] = references[$1, $2] " " $3
	}
	next
}

# set,questions,asked,budget,filter,keys,bits,queries,empty,fpr,negatives,ns,build
{
	key = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4
	keys[$1] = $6
	bits[key] = $7
	empty[key] = $9
	fpr[key] = $10
	ns[key] = $12
	build[key] = $13
	negatives += $11
	asked += $8
	if ($2 ~ /^near /) {
		note_near()
		next
	}
	if (!(($1, $4) in seen) && $3 == "bloom") {
		seen[$1, $4] = 1
		budgets[$1] = budgets[$1] " " $4
	}
	if ($3 == "auto" || $3 == "exact" || $2 ~ /;/)
		others[$1] = others[$1] "|" ($3 == "auto" ? "auto: " $5 : $3) ($2 ~ /;/ ? " of " $4 " bits" : "") ", " $2 "|" \
			number($7) "|" rate($10, $9) "|" whole($12) "|" whole($13) "\n"
}

# A question next to a key: near, its distance, its width.
function note_near(	part)
{
	split($2, part, " ")
	near[$1, part[2], part[3], $4] = rate($10, $9)
	if (part[2] != "hash")
		near_wrong[$1] += $9 * $10
	if (!(("", $4) in near_seen)) {
		near_seen["", $4] = 1
		near_budgets = near_budgets " " $4
	}
}

function rate(value, of)
{
	if (of == 0)
		return ""
	if (value == 0)
		return "0"
	return sprintf(value < 0.01 ? "%.1e" : "%.3f", value)
}

function number(value)
{
	return sprintf("%.2f", value)
}

function whole(value)
{
	return sprintf("%.0f", value)
}

function figures(set, questions, filter, budget,	key)
{
	key = set SUBSEP questions SUBSEP filter SUBSEP budget
	if (!(key in bits))
		return " | | | |"
	return " " number(bits[key]) " | " rate(fpr[key], empty[key]) " | " \
		whole(ns[key]) " | " whole(build[key]) " |"
}

function only_fpr(set, questions, filter, budget,	key)
{
	key = set SUBSEP questions SUBSEP filter SUBSEP budget
	return (key in bits ? " " rate(fpr[key], empty[key]) : "") " |"
}

# The budgets of a set, and those that only references have.
function all_budgets(set, questions,	n, list, i, result)
{
	result = budgets[set]
	n = split(references[set, questions], list, " ")
	for (i = 1; i <= n; i++)
		if ((" " result " ") !~ (" " list[i] " "))
			result = result " " list[i]
	return result
}

function numbers_table(set,	n, list, i, b, at)
{
	print "| budget | SNARF: bits | FPR | ns | build | SuRF: bits | FPR | ns | build | 2^-(bits - 2.6) | Bloom, points | reference: bits, FPR, ns, build |"
	print "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
	n = split(all_budgets(set, "range"), list, " ")
	for (i = 1; i <= n; i++) {
		b = list[i]
		at = set SUBSEP "range" SUBSEP "snarf" SUBSEP b
		print "| " b " |" figures(set, "range", "snarf", b) \
			figures(set, "range", "surf", b) " " \
			(at in bits ? rate(2 ^ (2.6 - bits[at]), 1) : "") " |" \
			only_fpr(set, "point", "bloom", b) " " reference[set, "range", b] " |"
	}
}

function strings_table(set, questions,	n, list, i, b)
{
	if (questions == "range")
		print ""
	print "| budget | " questions "s: bits | FPR | ns | build | " \
		(questions == "point" ? "Bloom | " : "") "reference: bits, FPR, ns, build |"
	print "|--:|--:|--:|--:|--:|" (questions == "point" ? "--:|" : "") "---|"
	n = split(all_budgets(set, questions), list, " ")
	for (i = 1; i <= n; i++) {
		b = list[i]
		print "| " b " |" figures(set, questions, "surf", b) \
			(questions == "point" ? only_fpr(set, "point", "bloom", b) : "") \
			" " reference[set, questions, b] " |"
	}
}

function others_table(set,	n, list, i)
{
	if (others[set] == "")
		return
	print ""
	print "| also | bits | FPR | ns | build |"
	print "|---|--:|--:|--:|--:|"
	n = split(others[set], list, "\n")
	for (i = 1; i < n; i++) {
		gsub(/\|/, " | ", list[i])
		print substr(list[i], 2) " |"
	}
}

# The upper bound that Costa et al. prove for Grafite (SIGMOD 2024): a range of
# so many numbers, at so many bits a key.
function grafite(width, budget,	bound)
{
	bound = width / 2 ^ (budget - 2)
	return rate(bound < 1 ? bound : 1, 1)
}

# A row of rates for each of three widths at each budget.
function near_row(text, set, distance,	n, list, i, b, row)
{
	n = split(near_budgets, list, " ")
	row = "| " text " |"
	for (i = 1; i <= n; i++) {
		b = list[i]
		if (distance == "bound")
			row = row " " grafite(1, b) " / " grafite(32, b) " / " grafite(1024, b) " |"
		else if (distance == "hash")
			row = row " " near[set, distance, 1, b] " |"
		else
			row = row " " near[set, distance, 1, b] " / " near[set, distance, 32, b] \
				" / " near[set, distance, 1024, b] " |"
	}
	print row
}

# One row of a set that is stored exactly at all budgets.
function near_right(set, n,	i)
{
	printf("| %s, 1 to 2^30 |", set)
	for (i = 1; i <= n; i++)
		printf(" 0 / 0 / 0 |")
	print ""
}

function near_table(	n, list, i, j, m, distances)
{
	print ""
	print "## Questions next to a key"
	print ""
	print "False positives of ranges of 1 / 32 / 1024 numbers that begin above a random key, at a distance from 1 to 1, 2^6,"
	print "2^15 or 2^30: correlation degrees 1, 0.8, 0.5 and 0 of Costa et al. (Grafite, SIGMOD 2024). Their bound of a range of L"
	print "numbers at B bits a key, L / 2^(B - 2), holds for any keys and questions. By `auto`."
	print ""
	gsub(/^ /, "", near_budgets)
	m = split(near_budgets, list, " ")
	printf("|")
	for (j = 1; j <= m; j++)
		printf(" | %s bits", list[j])
	print " |"
	printf("|---|")
	for (j = 1; j <= m; j++)
		printf("--:|")
	print ""
	split("0 6 15 30", distances, " ")
	n = split("uniform timestamps clustered", list, " ")
	for (i = 1; i <= n; i++) {
		if (!(list[i] in keys))
			continue
		if (near_wrong[list[i]] == 0) {
			near_right(list[i], m)
			continue
		}
		for (j = 1; j <= 4; j++)
			near_row(list[i] ", " (j == 1 ? "1" : "2^" distances[j]), list[i], distances[j])
		near_row(list[i] ", 1; `surf`, `suffix = hash`", list[i], "hash")
	}
	near_row("bound of Grafite", "", "bound")
}

END {
	print "# Filters without a server"
	print ""
	while ((getline line < machine) > 0)
		print line
	print "- Bits: real size in bits per distinct key, all pages and the root. FPR: share of"
	print "  the empty questions not answered with no. ns: of a question. build: ns a key, from"
	print "  sorted keys; both of processor time. Reference: the papers' own programs, on"
	print "  another machine under load (see reference.csv)."
	print "- Numbers: questions are ranges of 256 numbers, spread as the keys are (clustered:"
	print "  points between ids); other questions are in the tables below. Strings: half of the"
	print "  set, drawn at random, is in the filter, the other half asks: for the point, and for"
	print "  the range up to the string with its last byte + 1."
	printf("- %d questions were asked in all; %d false negatives.\n", asked, negatives)
	print ""
	print "![False positives against bits per key](filters.svg)"
	n = split(order, sets, " ")
	for (i = 1; i <= n; i++) {
		set = sets[i]
		if (!(set in keys))
			continue
		print ""
		print "## " title[set] ": " keys[set] " keys"
		print ""
		if (set == "words" || set == "changes") {
			strings_table(set, "point")
			strings_table(set, "range")
		}
		else
			numbers_table(set)
		others_table(set)
	}
	if (near_budgets != "")
		near_table()
}
