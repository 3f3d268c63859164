# meter_points.awk: points for lines_plot.awk from meter.csv.

BEGIN {
	FS = ","
	print "title,Soak run: memory and sizes over time"
	print "x,seconds"
	print "y,MB"
}

NR > 1 {
	printf("point,largest session (%s),%s,%s\n", $2, $1, $5 / 1024)
	printf("point,files (%s),%s,%s\n", $2, $1, $7)
}
