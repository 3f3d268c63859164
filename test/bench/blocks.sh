#!/bin/bash
#
# blocks.sh: heap blocks that bitmap scans read, by rangefilter and by BRIN.
#
# Single tables in the order of their rows' arrival; one index at a time, and
# questions for values that are there and values that are not.  BRIN gets as
# much space as rangefilter takes, or as much as it can use.  Writes its section
# of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	BLOCKS_ROWS=2000000			rows of the generated tables
#	BLOCKS_QUESTIONS=200		of each kind
#	BLOCKS_RESULTS=file			where to write, also when not at full size

RESULTS=${BLOCKS_RESULTS:+$(realpath -m "$BLOCKS_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

ROWS=${BLOCKS_ROWS:-2000000}
QUESTIONS=${BLOCKS_QUESTIONS:-200}
RANGE=16
NAMES=(rangefilter "BRIN bloom" "BRIN minmax-multi" "BRIN minmax, a block a range")

# The tables: random numbers; devices that report 50 rows in a burst, some 20
# times; flights as they left.
make_tables()
{
	rf_psql <<SQL
CREATE EXTENSION rangefilter;
CREATE TABLE random AS SELECT hashint8extended(n, 1) AS k, n AS v FROM generate_series(1, $ROWS) n;
CREATE TABLE bursts AS SELECT hashint8extended(hashint8extended(n / 50, 2) % ($ROWS / 1000), 3) AS k, n AS v
	FROM generate_series(1, $ROWS) n;
CREATE TABLE flights (day date, carrier text, flight int, tailnum text COLLATE "C", origin text, dest text,
	dep_delay int, distance int, time_hour timestamptz);
SQL
	rf_run xz -dc "$RF_SRC/test/data/flights.csv.xz" |
		rf_psql -c '\copy flights FROM STDIN (FORMAT csv, HEADER)'
	rf_psql <<'SQL'
VACUUM ANALYZE;
-- Heap blocks a query reads, those included that the index has looked into and left out:
-- BRIN and rangefilter call each block ten rows.
CREATE FUNCTION blocks(query text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	RETURN coalesce(
		(jsonb_path_query_first(plan, 'strict $.** ? (@."Node Type" == "Bitmap Index Scan")."Actual Rows"')::float / 10)::bigint,
		(SELECT relpages FROM pg_class WHERE oid = (plan -> 0 -> 'Plan' ->> 'Relation Name')::regclass));
END
$$;
SQL
}

# Blocks read in the mean by questions ($3: conditions, an SQL query) to table $1.
mean_blocks()
{
	rf_psql -c 'SET enable_seqscan = off' \
		-c "SELECT round(avg(blocks('SELECT * FROM $1 WHERE ' || c)), 1) FROM ($2) q (c)"
}

# One line's cell: the index's size in kB and the mean blocks read by questions
# for values that are there, by such that are not, and by ranges.
cell()
{
	local table=$1 column=$2 index=$3 there=$4 absent=$5 ranges=$6

	if ! rf_psql -c "CREATE INDEX i ON $table USING $index" >/dev/null 2>&1; then
		printf ' |  |  |  |'
		return
	fi
	printf ' %s | %s | %s | %s |' "$(rf_psql -c "SELECT pg_relation_size('i') / 1024")" \
		"$(mean_blocks "$table" "$there")" "$(mean_blocks "$table" "$absent")" \
		"${ranges:+$(mean_blocks "$table" "$ranges")}"
	rf_psql -c 'DROP INDEX i'
}

# The lines of a column: $3 is its type's name in BRIN's operator classes, $4 the
# value of a condition that no row has, $5 the width of ranges (empty: none), $6
# the number of distinct values in a range of blocks.
column()
{
	local table=$1 column=$2 type=$3 absent=$4 width=$5 distinct=$6 bits=$7 rate=$8
	local there ranges='' methods i

	there="SELECT format('$column = %L', $column) FROM $table TABLESAMPLE bernoulli (10) REPEATABLE (1) LIMIT $QUESTIONS"
	absent="SELECT format('$column = %L', $absent) FROM generate_series(1, $QUESTIONS) n"
	[ -z "$width" ] || ranges="SELECT format('$column BETWEEN %s AND %s', $column + 1, $column + $width)
		FROM $table TABLESAMPLE bernoulli (10) REPEATABLE (2) WHERE $column < 9000000000000000000 LIMIT $QUESTIONS"
	methods=("rangefilter ($column) WITH (pages_per_range = $RANGE, bits_per_key = $bits)"
		"brin ($column ${type}_bloom_ops (n_distinct_per_range = $distinct, false_positive_rate = $rate)) WITH (pages_per_range = $RANGE)"
		"brin ($column ${type}_minmax_multi_ops (values_per_range = 256)) WITH (pages_per_range = $RANGE)"
		"brin ($column) WITH (pages_per_range = 1)")
	for i in "${!methods[@]}"; do
		printf '| %s.%s: %s |' "$table" "$column" "${NAMES[i]}"
		cell "$table" "$column" "${methods[i]}" "$there" "$absent" "$ranges"
		printf '\n'
	done
}

measure()
{
	column random k int8 'hashint8extended(n, 99)' 1000000000 2960 24 0.0002
	column bursts k int8 'hashint8extended(n, 99)' 1000000000 100 24 0.0001
	column flights tailnum text "'N' || n || 'XX'" '' 600 40 0.0005
	column flights flight int4 '10000 + n' '' 700 40 0.0005
}

report()
{
	local cpu

	cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	cat <<TEXT
# Heap blocks that bitmap scans read

Written by \`make bench B=blocks\` on $(date -u +%Y-%m-%d), revision $(git -C "$RF_ROOT" describe --always --dirty 2>/dev/null || printf 'unknown').

- Machine: ${cpu:-$(uname -m)}, $(nproc) cores; $("$RF_BIN/postgres" --version)
- $ROWS random numbers ($(rf_psql -c "SELECT relpages FROM pg_class WHERE relname = 'random'") blocks); as many rows of devices that report 50 rows in a
  burst ($(rf_psql -c "SELECT relpages FROM pg_class WHERE relname = 'bursts'") blocks); 336,776 flights in order of time ($(rf_psql -c "SELECT relpages FROM pg_class WHERE relname = 'flights'") blocks).
- Mean of $QUESTIONS questions each, for values that are there, values that are not, and
  ranges of $(printf '%d' 1000000000) numbers next to one; index size in kB. Ranges of
  $RANGE blocks, but for the last line of a column.

| | kB | there | not there | ranges |
|---|--:|--:|--:|--:|
TEXT
	cat "$RF_TMP/lines"
}

main()
{
	rf_prepare_bench demo
	rf_start_server blocks session_preload_libraries=rangefilter shared_buffers=1GB max_wal_size=4GB \
		maintenance_work_mem=512MB autovacuum=off jit=off max_parallel_workers_per_gather=0
	make_tables
	measure >"$RF_TMP/lines"
	report >"$RF_TMP/section"
	rf_finish_bench blocks "$ROWS $QUESTIONS" "2000000 200"
}

main
