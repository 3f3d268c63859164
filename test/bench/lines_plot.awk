# lines_plot.awk: an SVG plot of lines, both axes logarithmic.
#
#	awk -f lines_plot.awk figures.csv
#
# Lines of the input: "title,TEXT", "x,NAME OF THE AXIS", "y,NAME OF THE AXIS",
# "point,SERIES,X,Y".  Series get their colors in the order in which they come.

BEGIN {
	FS = ","
	left = 70; top = 46; width = 560; height = 380
	split("#777777,#b5451f,#1f5fa8,#2f7d32,#7a4aa0,#a08000", color, ",")
}

$1 == "title" || $1 == "x" || $1 == "y" { text[$1] = substr($0, length($1) + 2); next }

$1 == "point" && $3 > 0 && $4 > 0 {
	if (!($2 in n))
		series[++count] = $2
	n[$2]++
	px[$2, n[$2]] = $3
	py[$2, n[$2]] = $4
	if (!points++) {
		x_min = x_max = $3
		y_min = y_max = $4
	}
	if ($3 < x_min) x_min = $3
	if ($3 > x_max) x_max = $3
	if ($4 < y_min) y_min = $4
	if ($4 > y_max) y_max = $4
}

function log10(v)
{
	return log(v) / log(10)
}

function floor(v)
{
	return int(v) > v ? int(v) - 1 : int(v)
}

function at_x(v)
{
	return left + (log10(v) - x_low) / (x_high - x_low) * width
}

function at_y(v)
{
	return top + height - (log10(v) - y_low) / (y_high - y_low) * height
}

function label(x, y, anchor, fill, what)
{
	printf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y, anchor, fill, what)
}

function line(x1, y1, x2, y2, stroke)
{
	printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, stroke)
}

# A power of ten as people write it.
function power(e)
{
	return e < 0 ? sprintf("%.*f", -e, 10 ^ e) : sprintf("%d", 10 ^ e)
}

function axes(	e)
{
	for (e = y_low; e <= y_high; e++) {
		line(left, at_y(10 ^ e), left + width, at_y(10 ^ e), "#e2e2e2")
		label(left - 8, at_y(10 ^ e) + 4, "end", "#444", power(e))
	}
	for (e = x_low; e <= x_high; e++) {
		line(at_x(10 ^ e), top, at_x(10 ^ e), top + height, "#f0f0f0")
		label(at_x(10 ^ e), top + height + 18, "middle", "#444", power(e))
	}
	line(left, top + height, left + width, top + height, "#444")
	line(left, top, left, top + height, "#444")
	label(left + width / 2, top + height + 38, "middle", "#222", text["x"])
	label(left - 8, top - 10, "end", "#222", text["y"])
}

function draw(s, fill,	i, path)
{
	for (i = 1; i <= n[s]; i++) {
		path = path (i == 1 ? "M" : "L") sprintf("%.1f %.1f", at_x(px[s, i]), at_y(py[s, i]))
		printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", at_x(px[s, i]), at_y(py[s, i]), fill)
	}
	printf("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path, fill)
}

END {
	if (!points)
		exit 1
	x_low = floor(log10(x_min)); x_high = -floor(-log10(x_max))
	y_low = floor(log10(y_min)); y_high = -floor(-log10(y_max))
	if (x_high == x_low) x_high++
	if (y_high == y_low) y_high++
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n",
		left + width + 190, top + height + 56)
	printf("<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	label(left, 22, "start", "#222", text["title"])
	axes()
	for (s = 1; s <= count; s++) {
		draw(series[s], color[(s - 1) % 6 + 1])
		line(left + width + 12, top + 18 * s - 4, left + width + 30, top + 18 * s - 4, color[(s - 1) % 6 + 1])
		label(left + width + 36, top + 18 * s, "start", "#222", series[s])
	}
	print "</svg>"
}
