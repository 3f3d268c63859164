# meter_points.awk: points for lines_plot.awk from meter.csv: the largest of each minute.

BEGIN {
	FS = ","
	print "title,Soak run: memory and sizes over time"
	print "x,seconds"
	print "y,MB"
}

function flush()
{
	if (minute == 0)
		return
	printf("point,all sessions,%s,%s\n", minute * 60, all / 1024)
	printf("point,largest session,%s,%s\n", minute * 60, largest / 1024)
	printf("point,files,%s,%s\n", minute * 60, files)
	all = largest = files = 0
}

NR > 1 {
	if (int($1 / 60) + 1 != minute) {
		flush()
		minute = int($1 / 60) + 1
	}
	all = $4 > all ? $4 : all
	largest = $5 > largest ? $5 : largest
	files = $7 > files ? $7 : files
}

END { flush() }
