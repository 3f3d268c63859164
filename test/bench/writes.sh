#!/bin/bash
#
# writes.sh: what writes cost, and what is skipped while they go on.
#
# One table in partitions that each span all keys, with no index on the key, BRIN,
# a btree, wormhole and rangefilter.  It grows by small statements, keys are changed,
# a queue moves through it, rows are copied in.  After each step: the price of a
# row, and how long a query takes for a key that is not there.  Autovacuum is off, so
# what is shown is the state between two VACUUMs.  Writes its section of
# test/bench/RESULTS.md, and writes.svg, when run at full size.
#
# Environment, with defaults:
#	WRITES_TABLES="200x20000:20,100 20x20000:20,100,300,1000"
#						partitions x rows in each : growth in percent, in steps
#	WRITES_VARIANTS="none brin btree wormhole rangefilter"
#	WRITES_BATCH=10		rows a statement
#	WRITES_CLIENTS=8	writing into one partition
#	WRITES_HOT=100000	rows in it before
#	WRITES_SECONDS=3	for each measurement of that
#	WRITES_ROUNDS=9		measurements of each variant, in turns (median)
#	WRITES_REPEAT=300	queries of one session (median; a thirtieth of them where nothing helps)
#	WRITES_SETTINGS=	of the server, "name=value ..."
#	WRITES_RESULTS=file	where to write, also when not at full size

RESULTS=${WRITES_RESULTS:+$(realpath -m "$WRITES_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

TABLES_DEFAULT="200x20000:20,100 20x20000:20,100,300,1000"
TABLES=${WRITES_TABLES:-$TABLES_DEFAULT}
VARIANTS=${WRITES_VARIANTS:-none brin btree wormhole rangefilter}
BATCH=${WRITES_BATCH:-10}
CLIENTS=${WRITES_CLIENTS:-8}
HOT=${WRITES_HOT:-100000}
SECONDS_EACH=${WRITES_SECONDS:-3}
ROUNDS=${WRITES_ROUNDS:-9}
REPEAT=${WRITES_REPEAT:-300}

# The statement that makes the index of variant $1 on table $2.
index_statement()
{
	case $1 in
		none) ;;
		brin) rf_say "CREATE INDEX $2_k ON $2 USING brin (k int8_bloom_ops) WITH (autosummarize = on)" ;;
		*) rf_say "CREATE INDEX $2_k ON $2 USING $1 (k)" ;;
	esac
}

# The table $4 (by default "written") with $2 partitions of $3 rows, the index of variant $1.
make_table()
{
	rf_psql -v partitions="$2" -v rows="$3" -v table="${4:-written}" <<SQL 2>/dev/null
DROP TABLE IF EXISTS :table;
CREATE TABLE :table (p int NOT NULL, k bigint, n int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE %1\$s_%2\$s PARTITION OF %1\$s FOR VALUES IN (%2\$s)', :'table', p)
FROM generate_series(0, :partitions - 1) p
\gexec
INSERT INTO :table SELECT p, new_key(), 0 FROM generate_series(0, :partitions - 1) p, generate_series(1, :rows);
$(index_statement "$1" "${4:-written}");
VACUUM (FREEZE, ANALYZE) :table;
CHECKPOINT;
SQL
}

# Queries for keys that are not there, to standard output.
queries()
{
	local i

	for ((i = 0; i < $1; i++)); do
		printf 'SELECT count(*) FROM written WHERE k = %s;\n' $((RANDOM * 1000000007 * 2 + 1))
	done
}

# How often variant $1 is asked.
repeat_of()
{
	case $1 in
		none | brin) rf_say $(((REPEAT + 29) / 30)) ;;
		*) rf_say "$REPEAT" ;;
	esac
}

query_ms()
{
	local n

	n=$(repeat_of "$1")
	queries $((n + 2)) | rf_time_script | tail -n "$n" | rf_median
}

# Partitions skipped for one such key.
skipped()
{
	local n

	n=$(rf_psql -c 'EXPLAIN (COSTS OFF) SELECT count(*) FROM written WHERE k = 1' |
		sed -n 's/.*Partitions Skipped: \([0-9]*\) of.*/\1/p')
	rf_say "${n:-0}"
}

# Pages that variant $1 reads to find no such key in one partition: the median of some
# keys.  The first statement reads catalogs, too.
pages()
{
	local key query='count(*) FROM written_0 WHERE k = KEY'

	[ "$1" != rangefilter ] || query="rangefilter_may_contain('written_0_k_idx', KEY, KEY)"
	for key in 1 500000004001 1000000008001 300000002101 700000000101 200000000301; do
		rf_say "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) SELECT ${query//KEY/$key};"
	done | rf_psql | awk '/^(Aggregate|Result)/ { whole = 1 }
		/Buffers: shared/ && whole { whole = 0; gsub(/[a-z]+=/, ""); if (n++) print $3 + $4 }' | rf_median
}

# Size in MB of the indexes on the key.
index_mb()
{
	rf_psql -c "SELECT coalesce(sum(pg_relation_size(relid)) / 1e6, 0) FROM pg_partition_tree(to_regclass('written_k'))"
}

wal_position()
{
	rf_psql -c "SELECT pg_current_wal_insert_lsn() - '0/0'"
}

# Runs statement $3 of variant $1, which writes $4 rows, while queries are
# asked, and puts a line of figures for step $2 into RF_TMP/figures.
step()
{
	local variant=$1 name=$2 statement=$3 rows=$4 before ms during

	rf_psql -c CHECKPOINT
	before=$(wal_position)
	touch "$RF_TMP/writing"
	(while [ -e "$RF_TMP/writing" ]; do
		queries 3 | rf_time_script
		sleep 1
	done) >"$RF_TMP/during" &
	ms=$(printf '%s;\n' "$statement" | rf_time_script)
	rm "$RF_TMP/writing"
	wait $!
	during=$(rf_median <"$RF_TMP/during")
	if [ "$rows" = changed ]; then
		rows=$(rf_psql -c "SELECT count(*) FROM written WHERE n <> 0 OR k IS NULL")
	fi
	printf '%s|%s|%s|%s|%s|%s|%s|%s|%s|%s\n' "$TABLE" "$variant" "$name" "$(skipped)" "$during" "$(query_ms "$variant")" \
		"$(awk -v ms="$ms" -v n="$rows" 'BEGIN { print ms * 1000 / n }')" \
		"$(awk -v a="$before" -v b="$(wal_position)" -v n="$rows" 'BEGIN { print (b - a) / n }')" \
		"$(index_mb)" "$(pages "$variant")" >>"$RF_TMP/figures"
}

# A line of figures without anything written.
still()
{
	printf '%s|%s|%s|%s||%s|||%s|%s\n' "$TABLE" "$1" "$2" "$(skipped)" "$(query_ms "$1")" "$(index_mb)" "$(pages "$1")" >>"$RF_TMP/figures"
}

# The table grows by steps of $4, a comma-separated list of percents.
grow()
{
	local variant=$1 partitions=$2 rows=$3 percent before=0 more

	for percent in ${4//,/ }; do
		more=$((rows * (percent - before) / 100))
		step "$variant" "+$percent %" "CALL trickle($partitions, $more, $BATCH)" $((more * partitions))
		before=$percent
	done
	rf_psql -c 'VACUUM written'
	still "$variant" 'VACUUM'
}

# Keys are changed, and rows queued, in a fifth of the blocks and then in all.
change()
{
	local variant=$1 partitions=$2 rows=$3 blocks fifth what

	for what in move_keys queue; do
		make_table "$variant" "$partitions" "$rows"
		blocks=$(rf_psql -c "SELECT pg_relation_size('written_0') / 8192")
		fifth=$((blocks / 5))
		step "$variant" "$what, 20 %" "CALL $what($partitions, 0, $fifth)" $((rows * partitions * fifth / blocks))
		rf_psql -c 'VACUUM written'
		still "$variant" "$what, VACUUM"
		step "$variant" "$what, 100 %" "CALL $what($partitions, $fifth, $((blocks - fifth)))" \
			$((rows * partitions * (blocks - fifth) / blocks))
	done
}

# COPY of as many rows as there are, which summarizes them; of rangefilter also one that leaves
# that to VACUUM, or to the worker.
copy_in()
{
	local variant=$1 partitions=$2 rows=$3

	if [ "$variant" = rangefilter ]; then
		make_table "$variant" "$partitions" "$rows"
		copy_rows "$variant" "$partitions" "$rows" off 'COPY, summary later'
	fi
	make_table "$variant" "$partitions" "$rows"
	copy_rows "$variant" "$partitions" "$rows" on COPY
	rf_psql -c 'VACUUM written'
	still "$variant" 'COPY, VACUUM'
}

# Step $5: COPY of $3 rows into each of $2 partitions with rangefilter.autosummarize = $4.
copy_rows()
{
	rf_psql -c "COPY (SELECT p, new_key(), 1 FROM generate_series(0, $2 - 1) p, generate_series(1, $3))
		TO '$RF_TMP/writes/copy'"
	PGOPTIONS="-c rangefilter.autosummarize=$4" step "$1" "$5" "COPY written FROM '$RF_TMP/writes/copy'" $(($2 * $3))
}

# Clients that write into one partition, a row a transaction.  One measurement differs from
# the next by a third, so the variants take turns.
hot()
{
	local variant round

	for variant in $VARIANTS; do
		make_table "$variant" 1 "$HOT" "hot_$variant"
		printf 'INSERT INTO hot_%s VALUES (0, new_key(), 1);\n' "$variant" >"$RF_TMP/hot_$variant.sql"
	done
	for ((round = 0; round < ROUNDS; round++)); do
		for variant in $VARIANTS; do
			rf_run "$RF_BIN/pgbench" -n -c "$CLIENTS" -j 2 -M prepared -T "$SECONDS_EACH" -f "$RF_TMP/hot_$variant.sql" |
				sed -n 's/^tps = \([0-9.]*\).*/\1/p' >>"$RF_TMP/hot_$variant"
		done
	done
}

# The figures of table $1 as a table of Markdown, a line for each step; in brackets those of
# another column.
table()
{
	awk -F'|' -v table="$1" -v variants="$VARIANTS" -v column="$2" -v other="${3:-0}" '
		function show(x) { return x == "" ? "" : x == int(x) ? x : sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : x >= 1 ? "%.2f" : "%.3f", x) }
		$1 == table {
			if (!($3 in seen)) { seen[$3] = 1; steps[++n] = $3 }
			value[$3, $2] = show($column)
			if (other && $other != "") value[$3, $2] = value[$3, $2] " (" show($other) ")"
		}
		END {
			m = split(variants, v, " ")
			printf("| |"); for (i = 1; i <= m; i++) printf(" %s |", v[i] == "none" ? "no index" : v[i]); print ""
			printf("|---|"); for (i = 1; i <= m; i++) printf("--:|"); print ""
			for (s = 1; s <= n; s++) {
				line = ""
				for (i = 1; i <= m; i++) line = line " " value[steps[s], v[i]] " |"
				if (line ~ /[0-9]/) print "| " steps[s] " |" line
			}
		}' "$RF_TMP/figures"
}

report()
{
	local spec variant

	cat <<TEXT
# Writes

Written by \`make bench B=writes\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version); fsync off, autovacuum and the worker off (loads summarize what they bring), everything in
  memory, the library in shared_preload_libraries${WRITES_SETTINGS:+, $WRITES_SETTINGS}
- Random 64-bit keys: each partition spans all of them. Statements of $BATCH rows, each a transaction, into all
  partitions in turns; \`move_keys\` gives new keys to all rows of a block in a statement, \`queue\` deletes
  them and adds as many. BRIN is \`int8_bloom_ops\` with \`autosummarize\`.
- Queries ask for one key that is not there, simple protocol: the median of $REPEAT by one session. \`+100 %\` means: the table has as many rows again, and
  no VACUUM has come since it was made. A processor core writes, another one asks.
TEXT
	for spec in $TABLES; do
		printf '\n## %s partitions of %s rows\n' "${spec%%x*}" "$(rf_say "${spec#*x}" | sed 's/:.*//')"
		printf '\nPartitions skipped by rangefilter:'
		awk -F'|' -v table="$spec" '$1 == table && $2 == "rangefilter" { printf("%s %s of %d (%s)", n++ ? "," : "", $4, $1, $3) } END { print "." }' \
			"$RF_TMP/figures"
		printf '\nA query after the step (during it), ms:\n\n'
		table "$spec" 6 5
		printf '\nA row, us:\n\n'
		table "$spec" 7
		printf '\nWAL of a row, bytes:\n\n'
		table "$spec" 8
		printf '\nSize of the indexes, MB:\n\n'
		table "$spec" 9
		printf '\nPages read to find no such key in one partition (by \140rangefilter_may_contain()\140 where there is a rangefilter index):\n\n'
		table "$spec" 10
	done
	printf '\n## %s clients into one partition of %s rows\n\nRows a second, the median of %s measurements of %s s in turns:' \
		"$CLIENTS" "$HOT" "$ROUNDS" "$SECONDS_EACH"
	for variant in $VARIANTS; do
		rf_median <"$RF_TMP/hot_$variant" |
			awk -v name="$variant" -v first="${VARIANTS%% *}" '{ printf("%s %s %.0f", name == first ? "" : ",", name == "none" ? "no index" : name, $1) }'
	done
	printf '.\n'
}

# The plot of queries against growth, of the last table.
plot()
{
	local last=${TABLES##* }

	{
		printf 'title,A query for a missing key while the table grows without VACUUM\nx,rows added since the index was made (percent)\ny,ms\n'
		awk -F'|' -v table="$last" '$1 == table && $3 ~ /^\+/ {
			sub(/^\+/, "", $3); sub(/ %/, "", $3)
			print "point," ($2 == "none" ? "no index" : $2) "," $3 "," $6 }' "$RF_TMP/figures"
	} | awk -f "$RF_ROOT/test/bench/lines_plot.awk"
}

main()
{
	local spec variant partitions rows

	rf_prepare_bench
	# shellcheck disable=SC2086
	rf_start_server writes shared_preload_libraries=rangefilter shared_buffers=2GB max_wal_size=16GB \
		max_locks_per_transaction=1024 autovacuum=off rangefilter.autosummarize=off ${WRITES_SETTINGS:-}
	rf_psql -c 'CREATE EXTENSION rangefilter' -f "$RF_SRC/test/bench/writes.sql"
	: >"$RF_TMP/figures"
	for spec in $TABLES; do
		TABLE=$spec
		partitions=${spec%%x*}
		rows=${spec#*x}
		rows=${rows%%:*}
		for variant in $VARIANTS; do
			make_table "$variant" "$partitions" "$rows"
			still "$variant" 'at rest'
			grow "$variant" "$partitions" "$rows" "${spec##*:}"
			change "$variant" "$partitions" "$rows"
			copy_in "$variant" "$partitions" "$rows"
		done
	done
	hot
	report >"$RF_TMP/section"
	rf_finish_bench writes "$TABLES $VARIANTS" "$TABLES_DEFAULT none brin btree wormhole rangefilter"
	[ -z "$RESULTS" ] || plot >"${RESULTS%/*}/writes.svg"
}

main
