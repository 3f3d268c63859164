#!/bin/bash
#
# clients.sh: many sessions at once.
#
# A table in partitions by day, each of which spans all ids; sessions ask for an id that one
# partition has.  With rangefilter, loaded in three ways: by the server, by the session, and
# by the first use of an index; with btrees; with the day given, so that core prunes; and
# with ids that follow the days and CHECK constraints that say so.  With plans made for the
# value and with generic ones, alone and beside writers.  Transactions a second, and what
# the most sessions wait for.  Writes its section of test/bench/RESULTS.md when run at full
# size.
#
# Environment, with defaults:
#	CLIENTS_PARTITIONS=200
#	CLIENTS_ROWS=5000				rows per partition
#	CLIENTS_SESSIONS="1 4 16 64"
#	CLIENTS_SECONDS=3				for each measurement
#	CLIENTS_WRITES=300				rows a second that writers insert
#	CLIENTS_RESULTS=file			where to write, also when not at full size

RESULTS=${CLIENTS_RESULTS:+$(realpath -m "$CLIENTS_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

PARTITIONS=${CLIENTS_PARTITIONS:-200}
ROWS=${CLIENTS_ROWS:-5000}
SESSIONS=${CLIENTS_SESSIONS:-1 4 16 64}
SECONDS_EACH=${CLIENTS_SECONDS:-3}
WRITES=${CLIENTS_WRITES:-300}

# Ids are multiples of this.
STRIDE=1000003

# The table $1: the partition of row n is $2.  Its ids are indexed by method $3, if that is given.
make_table()
{
	rf_psql -v partitions="$PARTITIONS" -v rows="$((PARTITIONS * ROWS))" -v table="$1" <<SQL
CREATE TABLE :table (day int NOT NULL, id bigint NOT NULL) PARTITION BY RANGE (day);
SELECT format('CREATE TABLE %1\$s_%2\$s PARTITION OF %1\$s FOR VALUES FROM (%2\$s) TO (%3\$s)', :'table', day, day + 1)
FROM generate_series(0, :partitions - 1) day
\gexec
INSERT INTO :table SELECT $2, n * $STRIDE::bigint FROM generate_series(0, :rows - 1) n;
SQL
	[ -z "${3:-}" ] || rf_psql -c "CREATE INDEX ON $1 USING $3 (id)"
}

make_tables()
{
	local table

	make_table by_rangefilter "n % $PARTITIONS" rangefilter
	make_table by_btree "n % $PARTITIONS" btree
	make_table by_both "n % $PARTITIONS" btree
	rf_psql -c 'CREATE INDEX ON by_both USING rangefilter (id)'
	make_table by_check "n / $ROWS"
	rf_psql -v partitions="$PARTITIONS" -v width="$((ROWS * STRIDE))" <<'SQL'
SELECT format('ALTER TABLE by_check_%s ADD CHECK (id >= %s AND id < %s)', day, day * :width, (day + 1) * :width)
FROM generate_series(0, :partitions - 1) day
\gexec
SQL
	rf_psql -c 'VACUUM (FREEZE, ANALYZE)' -c CHECKPOINT
	printf '\\set n random(0, %s)\n\\set id :n * %s\n\\set day :n %% %s\n' "$((PARTITIONS * ROWS - 1))" "$STRIDE" "$PARTITIONS" >"$RF_TMP/head"
	for table in by_rangefilter by_btree by_both by_check; do
		{ cat "$RF_TMP/head"; rf_say "SELECT * FROM $table WHERE id = :id;"; } >"$RF_TMP/$table.sql"
	done
	for table in by_btree by_both; do
		{ cat "$RF_TMP/head"; rf_say "SELECT * FROM $table WHERE id = :id AND day = :day;"; } >"$RF_TMP/${table}_day.sql"
	done
}

# pgbench with $1 sessions of script $2, plans of kind $3, and options $4; prints transactions a second.
bench()
{
	PGOPTIONS="$4 -c plan_cache_mode=force_$3_plan" rf_run "$RF_BIN/pgbench" -n -c "$1" -j 2 -M prepared -T "$SECONDS_EACH" -f "$RF_TMP/$2.sql" |
		sed -n 's/^tps = \([0-9.]*\).*/\1/p'
}

# Writers of new ids into table $1, in the background, for as long as $RF_TMP/writing is there.
write_rows()
{
	local day=":n % $PARTITIONS"

	[ "$1" != by_check ] || day=":n / $ROWS"
	{
		cat "$RF_TMP/head"
		printf '\\set more random(1, %s)\nINSERT INTO %s VALUES (%s, :id + :more);\n' "$((STRIDE - 1))" "$1" "$day"
	} >"$RF_TMP/write.sql"
	while [ -e "$RF_TMP/writing" ]; do
		rf_run "$RF_BIN/pgbench" -n -c 2 -R "$WRITES" -T 1 -f "$RF_TMP/write.sql" >/dev/null
	done
}

# What sessions that run a statement on table $1 wait for: the five events seen most often.
sample_waits()
{
	local i

	for ((i = 0; i < 40 * SECONDS_EACH; i++)); do
		rf_say "SELECT wait_event_type || ':' || wait_event FROM pg_stat_activity
			WHERE query LIKE 'SELECT * FROM $1 %' AND state = 'active' AND wait_event IS NOT NULL AND wait_event_type <> 'Client';
			SELECT pg_sleep(0.01) \\g /dev/null"
	done | rf_psql | sort | uniq -c | sort -rn | head -n 5 |
		awk '{ printf("%s%s %s", n++ ? ", " : "", $2, $1) } END { if (!n) printf("none") }'
}

# Lines for script $2 with options $3, called $1: with plans of both kinds; in brackets beside
# writers, and what the most sessions wait for then.
measure()
{
	local name=$1 script=$2 options=$3 plans n table alone beside waits i

	table=${script%_day}
	for plans in custom generic; do
		alone=()
		beside=()
		for n in $SESSIONS; do
			alone+=("$(bench "$n" "$script" "$plans" "$options")")
		done
		touch "$RF_TMP/writing"
		write_rows "$table" &
		for n in $SESSIONS; do
			beside+=("$(bench "$n" "$script" "$plans" "$options")")
		done
		bench "${SESSIONS##* }" "$script" "$plans" "$options" >/dev/null &
		sleep 0.5
		waits=$(sample_waits "$table")
		rm "$RF_TMP/writing"
		wait
		printf '| %s | %s |' "$name" "$plans"
		for i in "${!alone[@]}"; do
			printf ' %s (%s) |' "$(rf_round "${alone[i]}")" "$(rf_round "${beside[i]}")"
		done
		printf ' %s |\n' "$waits"
	done
}

report()
{
	local n

	cat <<TEXT
# Many sessions

Written by \`make bench B=clients\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version); fsync and autovacuum off, everything in memory
- $PARTITIONS partitions of $ROWS rows by day. Sessions ask for an id that is there: with rangefilter, in a library that the server, the
  session (\`session_preload_libraries\`) or the first use of an index loads; with btrees; with both; with the day given, too; with ids that
  follow the days and CHECK constraints. pgbench and the server share the machine.
- Transactions a second by number of sessions, with plans for the value and generic ones, alone and (beside writers that insert $WRITES
  rows a second into all partitions); what ${SESSIONS##* } sessions beside writers were seen waiting for, how often, in 100 looks a second.

| | plans |$(for n in $SESSIONS; do printf ' %s |' "$n"; done) waits |
|---|---|$(for n in $SESSIONS; do printf -- '--:|'; done)---|
TEXT
	cat "$RF_TMP/lines"
}

main()
{
	rf_prepare_bench
	rf_start_server clients shared_buffers=2GB max_wal_size=16GB max_locks_per_transaction=1024 max_connections=200 \
		autovacuum=off rangefilter.autosummarize=off
	rf_psql -c 'CREATE EXTENSION rangefilter'
	make_tables
	{
		measure 'btree' by_btree ''
		measure 'CHECK constraints' by_check ''
		measure 'day given, btree' by_btree_day ''
		measure 'rangefilter, by first use' by_rangefilter ''
		measure 'rangefilter, by session' by_rangefilter '-c session_preload_libraries=rangefilter'
		printf "shared_preload_libraries = 'rangefilter'\n" | rf_run tee -a "$RF_TMP/clients/data/postgresql.conf" >/dev/null
		rf_run "$RF_BIN/pg_ctl" -D "$RF_TMP/clients/data" -l "$RF_TMP/clients/log" -w -t 60 restart >/dev/null
		measure 'rangefilter, by server' by_rangefilter ''
		measure 'rangefilter beside btree' by_both ''
		measure 'day given, rangefilter beside btree' by_both_day ''
	} >"$RF_TMP/lines"
	report >"$RF_TMP/section"
	rf_finish_bench clients "$PARTITIONS $ROWS $SESSIONS $SECONDS_EACH" '200 5000 1 4 16 64 3'
}

main
