# filters_plot.awk: an SVG plot of false positives against bits per key.
#
#	awk -f filters_plot.awk published.csv reference.csv figures.csv
#
# The way up is logarithmic, from 1 down to 1e-6; what is below lies on the axis.
# Diamonds are what the papers' own programs did for us, squares what the papers say.

BEGIN {
	FS = ","
	left = 70; top = 46; width = 560; height = 440
	bits_min = 4; bits_max = 34; decades = 6
	name["uniform", "range", "snarf"] = "SNARF, uniform"
	name["timestamps", "range", "snarf"] = "SNARF, timestamps"
	name["uniform", "range", "surf"] = "SuRF, uniform"
	name["uniform", "point", "bloom"] = "Bloom (points only)"
	name["words", "range", "surf"] = "SuRF, words"
	name["changes", "range", "surf"] = "SuRF, change keys"
	order = "uniform range snarf,timestamps range snarf,uniform range surf,uniform point bloom,words range surf,changes range surf"
	split("#1f5fa8,#5aa0d8,#b5451f,#777777,#2f7d32,#7a4aa0", color, ",")
}

/^#/ { next }

FILENAME ~ /published/ {
	npublished++
	published_set[npublished] = $1
	published_questions[npublished] = $2
	published_filter[npublished] = $3
	published_x[npublished] = $5
	published_y[npublished] = $6
	next
}

FILENAME ~ /reference/ {
	if ($2 == "range" && $6 > 0) {
		nreferences++
		reference_x[nreferences] = $5
		reference_y[nreferences] = $6
		reference_set[nreferences] = $1
		reference_snarf[nreferences] = $4 ~ /SNARF/
	}
	next
}

(($1, $2, $3) in name) && $9 > 0 {
	key = $1 SUBSEP $2 SUBSEP $3
	n[key]++
	x[key, n[key]] = $7
	y[key, n[key]] = $10
}

function at_x(bits)
{
	return left + (bits - bits_min) / (bits_max - bits_min) * width
}

function at_y(rate,	depth)
{
	depth = rate > 0 ? -log(rate) / log(10) : decades
	if (depth > decades)
		depth = decades
	return top + depth / decades * height
}

function label(px, py, anchor, fill, text)
{
	printf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n",
		   px, py, anchor, fill, text)
}

function line(x1, y1, x2, y2, stroke)
{
	printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n",
		   x1, y1, x2, y2, stroke)
}

# A diamond for a figure of a reference.
function diamond(px, py, stroke)
{
	printf("<path d=\"M%.1f %.1fl5 5l-5 5l-5 -5z\" fill=\"none\" stroke=\"%s\"/>\n",
		   px, py - 5, stroke)
}

# A square for a figure that a paper gives.
function square(px, py, stroke)
{
	printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n",
		   px - 4, py - 4, stroke)
}

function axes(	i, bits)
{
	for (i = 0; i <= decades; i++) {
		line(left, at_y(10 ^ -i), left + width, at_y(10 ^ -i), "#e2e2e2")
		label(left - 8, at_y(10 ^ -i) + 4, "end", "#444", i == 0 ? "1" : "1e-" i)
	}
	for (bits = bits_min; bits <= bits_max; bits += 4) {
		line(at_x(bits), top, at_x(bits), top + height, "#f0f0f0")
		label(at_x(bits), top + height + 18, "middle", "#444", bits)
	}
	line(left, top + height, left + width, top + height, "#444")
	label(left + width / 2, top + height + 38, "middle", "#444", "bits per key, real size")
	label(left, top - 22, "start", "#222", "False positives among empty ranges")
}

function curve(key, stroke,	i)
{
	printf("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", stroke)
	for (i = 1; i <= n[key]; i++)
		printf("%.1f,%.1f ", at_x(x[key, i]), at_y(y[key, i]))
	print "\"/>"
	for (i = 1; i <= n[key]; i++)
		printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
			   at_x(x[key, i]), at_y(y[key, i]), stroke)
}

END {
	total = left + width + 210
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n",
		   total, top + height + 60)
	printf("<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", total, top + height + 60)
	axes()
	nseries = split(order, series, ",")
	for (i = 1; i <= nseries; i++) {
		split(series[i], part, " ")
		key = part[1] SUBSEP part[2] SUBSEP part[3]
		if (!(key in n))
			continue
		curve(key, color[i])
		row++
		line(left + width + 20, top + 20 * row, left + width + 44, top + 20 * row, color[i])
		label(left + width + 52, top + 20 * row + 4, "start", "#222", name[key])
		shade[part[1], part[3]] = color[i]
	}
	for (i = 1; i <= nreferences; i++) {
		stroke = shade[reference_set[i], reference_snarf[i] ? "snarf" : "surf"]
		if (stroke != "" && reference_x[i] <= bits_max)
			diamond(at_x(reference_x[i]), at_y(reference_y[i]), stroke)
	}
	row++
	diamond(left + width + 32, top + 20 * row, "#444")
	label(left + width + 52, top + 20 * row + 4, "start", "#222", "papers' own programs")
	for (i = 1; i <= npublished; i++) {
		stroke = shade[published_set[i], published_filter[i]]
		square(at_x(published_x[i]), at_y(published_y[i]), stroke)
		if (published_questions[i] == "point")
			label(at_x(published_x[i]) + 8, at_y(published_y[i]) - 6, "start", stroke, "points")
	}
	row++
	square(left + width + 32, top + 20 * row, "#444")
	label(left + width + 52, top + 20 * row + 4, "start", "#222", "published in the papers")
	print "</svg>"
}
