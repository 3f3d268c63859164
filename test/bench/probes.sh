#!/bin/bash
#
# probes.sh: pages and time of a question to an index, through shared buffers.
#
# With the test module rf_probes, which calls what the planner part calls for
# each partition.  Writes its section of test/bench/RESULTS.md when run at full
# size.
#
# Environment, with defaults:
#	PROBES_ROWS="20000 1000000 10000000"	sizes of tables of their own
#	PROBES_PARTITIONS=200		indexes over 20000 rows each, asked in turn
#	PROBES_ROUNDS=20			times that 100,000 questions are asked
#	PROBES_RESULTS=file			where to write, also when not at full size

RESULTS=${PROBES_RESULTS:+$(realpath -m "$PROBES_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

ROWS=${PROBES_ROWS:-20000 1000000 10000000}
PARTITIONS=${PROBES_PARTITIONS:-200}
ROUNDS=${PROBES_ROUNDS:-20}
QUESTIONS=100000

# A table of random numbers, and an index.
make_numbers()
{
	rf_psql -c "CREATE TABLE $1 AS SELECT hashint8extended(n, $3) AS k FROM generate_series(1, $2) n" \
		-c "CREATE INDEX ${1}_k ON $1 USING rangefilter (k)"
}

# Asks indexes $2 with filter $3 for the keys (an SQL array) $4, and prints a
# line.  $1 is what to call it, $5 what comes between the keys and the rounds.
ask()
{
	local name=$1 indexes=$2 filter=$3 keys=$4 width=$5 open times=()

	for open in false true; do
		rf_psql -F ' ' -c "SELECT ns, pages, max_pages, disk_pages, denied
			FROM rf_probes($indexes, $keys$width, $ROUNDS, $open)" >"$RF_TMP/answer"
		read -r ns pages max_pages disk_pages denied <"$RF_TMP/answer"
		[ "$disk_pages" = 0 ] || rf_die "$name: not all pages were in shared buffers"
		times+=("$(rf_round "$ns")")
	done
	printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$name" "$filter" "$(rf_round "$pages")" \
		"$max_pages" "${times[0]}" "${times[1]}" "$denied"
}

# The name of an index's filter.
filter_of()
{
	rf_psql -c "SELECT filter FROM rangefilter_status('$1')"
}

# Numbers that are not there (hashed with another seed).
numbers()
{
	printf '(SELECT array_agg(hashint8extended(n, 99)) FROM generate_series(1, %s) n)' "$QUESTIONS"
}

measure()
{
	local rows i

	for rows in $ROWS; do
		make_numbers "n$rows" "$rows" 1
		for i in 1 65536; do
			ask "$rows numbers, ranges of $i" "'{n${rows}_k}'" "$(filter_of "n${rows}_k")" \
				"$(numbers)" ", $i"
		done
		if [ "$rows" -gt 1000000 ]; then
			rf_psql -c "DROP TABLE n$rows"
		fi
	done
	for ((i = 0; i < PARTITIONS; i++)); do
		make_numbers "p$i" 20000 "$i"
	done
	ask "$PARTITIONS indexes in turn, 20000 numbers each" \
		"(SELECT array_agg(('p' || i || '_k')::regclass) FROM generate_series(0, $PARTITIONS - 1) i)" \
		snarf "$(numbers)" ", 1"
	rf_psql -c "CREATE TABLE bytes AS SELECT md5(n::text)::uuid AS u, md5(n::text) COLLATE \"C\" AS t
				FROM generate_series(1, 1000000) n" \
		-c 'CREATE INDEX bytes_u ON bytes USING rangefilter (u)' \
		-c 'CREATE INDEX bytes_t ON bytes USING rangefilter (t)'
	ask '1000000 uuids' "'{bytes_u}'" "$(filter_of bytes_u)" \
		"(SELECT array_agg(uuid_send(md5((-n)::text)::uuid)) FROM generate_series(1, $QUESTIONS) n)" ''
	ask '1000000 strings of 32 digits' "'{bytes_t}'" "$(filter_of bytes_t)" \
		"(SELECT array_agg(md5((-n)::text)::bytea) FROM generate_series(1, $QUESTIONS) n)" ''
}

report()
{
	local cpu

	cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	cat <<TEXT
# One question to an index

Written by \`make bench B=probes\` on $(date -u +%Y-%m-%d), revision $(git -C "$RF_ROOT" describe --always --dirty 2>/dev/null || printf 'unknown').

- Machine: ${cpu:-$(uname -m)}, $(nproc) cores; $("$RF_BIN/postgres" --version)
- \`rf_probe()\` as the planner part calls it, with all pages in shared buffers and 14
  bits a key; pages: buffers read, the metapage included; ns, open: the index is open;
  ns, all: the index is locked, opened, asked, closed and unlocked.
- $QUESTIONS different keys that are not there, in random order, $ROUNDS times.

| | filter | pages | at most | ns, open | ns, all | denied |
|---|---|--:|--:|--:|--:|--:|
TEXT
	cat "$RF_TMP/lines"
}

main()
{
	rf_prepare_bench
	rf_make -C test/modules/rf_probes all
	rf_make -C test/modules/rf_probes install DESTDIR="$RF_PG" >/dev/null
	rf_start_server probes shared_buffers=1GB max_wal_size=4GB maintenance_work_mem=512MB \
		autovacuum=off jit=off
	rf_psql -c 'CREATE EXTENSION rangefilter' -c 'CREATE EXTENSION rf_probes'
	measure >"$RF_TMP/lines"
	report >"$RF_TMP/section"
	rf_finish_bench probes "$ROWS $PARTITIONS" "20000 1000000 10000000 200"
}

main
