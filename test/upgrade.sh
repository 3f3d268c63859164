#!/bin/bash
#
# upgrade.sh: pg_upgrade from one version to another takes the indexes' files over.
#
#	test/upgrade.sh OLD_PG_CONFIG NEW_PG_CONFIG
#
# A cluster of the old version gets indexes of all kinds, in all states that are on
# disk: summarized, with keys since, with levels, with a load that nobody summarized,
# after deletions and splits.  After pg_upgrade nothing may differ: definitions,
# status, answers with skipping and without, and what rangefilter_verify() and
# wormhole_check() count.  Then the new version writes, vacuums and reindexes.
#
# The last line is "N passed, M failed"; the exit status is 1 unless M is 0.  It is 3 if
# pg_upgrade fails for these versions without the extension, too: an older release of a
# newer version may not know what a newer release of an older version writes.

old_config=$(realpath -- "$1")
new_config=$(realpath -- "$2")
cd "$(dirname "${BASH_SOURCE[0]}")" || exit
# shellcheck source=lib/common.sh
. lib/common.sh
# shellcheck source=lib/packages.sh
. "$RF_ROOT/test/lib/packages.sh"
# shellcheck source=lib/server.sh
. "$RF_ROOT/test/lib/server.sh"

PASSED=0 FAILED=0

SETTINGS=(shared_preload_libraries=rangefilter rangefilter.autosummarize=off autovacuum=off jit=off)

# One test: $1 names it, $2 is what there is, $3 what should be.
is()
{
	if [ "$2" = "$3" ]; then
		PASSED=$((PASSED + 1))
	else
		FAILED=$((FAILED + 1))
		rf_say "FAILED $1"
		diff <(rf_say "$3") <(rf_say "$2") || true
	fi
}

# A private installation of the server of $1 with the extension; RF_BIN is its programs.
install_with()
{
	PG_CONFIG=$1
	rf_check_pg_config
	rf_private_postgres
	rf_make clean >/dev/null
	rf_install_extension WERROR=1 ASSERT=1
}

create_tables()
{
	rf_psql <<'SQL' >/dev/null
CREATE TABLE t (p int, k int, b text COLLATE "C", n numeric, w text COLLATE "C", at timestamptz, u uuid)
	PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s)', i, i) FROM generate_series(0, 5) i \gexec
CREATE FUNCTION fill(low int, high int) RETURNS void LANGUAGE sql
BEGIN ATOMIC
	INSERT INTO t SELECT k % 6, k, 'b' || k, k / 10.0, CASE WHEN k % 50 = 0 THEN repeat('w', 3000) || k END,
		to_timestamp(k * 1000), md5(k::text)::uuid FROM generate_series(low, high) k;
END;
SELECT fill(1, 3000);
CREATE UNLOGGED TABLE loose AS SELECT k FROM generate_series(1, 500) k;
CREATE TABLE pages (url text COLLATE "C", n int);
SQL
}

create_indexes()
{
	rf_psql <<'SQL' >/dev/null
CREATE EXTENSION rangefilter;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b) WITH (filter = surf, bits_per_key = 20, suffix = hash);
CREATE INDEX t_n ON t USING rangefilter (n) WITH (suffix = mixed);
CREATE INDEX t_w ON t USING rangefilter (w);
CREATE INDEX t_at ON t USING rangefilter (at) WITH (pages_per_range = 1, bits_per_key = 24);
CREATE INDEX t_u ON t USING rangefilter (u);
CREATE INDEX t_e ON t USING rangefilter ((k * 2)) WHERE k % 3 = 0;
CREATE INDEX t_nk ON t USING rangefilter (n, k);
CREATE INDEX loose_k ON loose USING rangefilter (k);

CREATE UNIQUE INDEX t0_unique ON t0 USING wormhole (k);
CREATE INDEX t_order ON t USING wormhole (n DESC NULLS LAST, b) INCLUDE (k);
CREATE INDEX t_full ON t USING wormhole (b) WITH (fillfactor = 70);
CREATE INDEX t_some ON t USING wormhole (u) WHERE k % 2 = 0;
CREATE INDEX pages_url ON pages USING wormhole (url);
CREATE UNIQUE INDEX pages_both ON pages USING wormhole (n, url) NULLS NOT DISTINCT;
INSERT INTO pages SELECT 'https://www.example.org/' || i % 70 || '/' || md5(i::text), nullif(i % 500, 0)
	FROM generate_series(1, 20000) i;
DELETE FROM pages WHERE n BETWEEN 100 AND 300;
VACUUM pages;
INSERT INTO pages SELECT 'https://www.example.org/again/' || i, i FROM generate_series(1, 3000) i;

-- Values go, and others come: a few at a time (levels, and the delta), and one load that stays open.
DELETE FROM t WHERE k BETWEEN 700 AND 1200;
VACUUM t;
DO $$ BEGIN FOR i IN 0 .. 299 LOOP PERFORM fill(5001 + i * 30, 5030 + i * 30); END LOOP; END $$;
BEGIN;
INSERT INTO t SELECT 5, k, 'load' || k, k, NULL, NULL, NULL FROM generate_series(20000, 24999) k;
SAVEPOINT s;
INSERT INTO t SELECT 4, k, 'gone' || k, k, NULL, NULL, NULL FROM generate_series(30000, 30999) k;
ROLLBACK TO s;
COMMIT;
ANALYZE;
SQL
}

definitions()
{
	rf_psql -c "SELECT pg_get_indexdef(c.oid), c.reloptions, pg_relation_size(c.oid)
				FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
				WHERE amname IN ('rangefilter', 'wormhole') AND indisvalid ORDER BY 1, c.oid::regclass::text"
}

status()
{
	rf_psql -c "SELECT s.* FROM pg_class c JOIN pg_am a ON a.oid = c.relam, rangefilter_status(c.oid) s
				WHERE amname = 'rangefilter' AND relkind = 'i' ORDER BY c.oid::regclass::text"
}

# What the functions that check indexes count, by index.
checked()
{
	rf_psql -c "SELECT c.oid::regclass, CASE amname WHEN 'wormhole' THEN wormhole_check(c.oid, true) ELSE rangefilter_verify(c.oid) END
				FROM pg_class c JOIN pg_am a ON a.oid = c.relam
				WHERE amname IN ('rangefilter', 'wormhole') AND relkind = 'i' ORDER BY c.oid::regclass::text" 2>&1
}

# The same questions with skipping, by wormhole alone, and by nothing.
answers()
{
	local settings

	for settings in 'rangefilter.enable = on' 'rangefilter.enable = off' 'enable_seqscan = off' \
		'enable_indexscan = off; SET enable_bitmapscan = off; SET rangefilter.enable = off'; do
		rf_psql <<SQL
SET $settings;
SELECT sum(k), count(*) FROM t WHERE k BETWEEN 100 AND 103 OR k IN (701, 5003, 13999, 20001, 30001);
SELECT count(*), sum(k) FROM t WHERE b = 'b77' OR b IN ('b5333', 'load24000', 'gone30000', 'b900');
SELECT count(*), sum(k) FROM t WHERE n = 7.7 OR n BETWEEN 600.1 AND 600.9;
SELECT count(*), min(k) FROM t WHERE w = repeat('w', 3000) || 50 OR w = repeat('w', 3000) || 51;
SELECT count(*), sum(k) FROM t WHERE at BETWEEN to_timestamp(99000) AND to_timestamp(101000) OR at IS NULL;
SELECT count(*), sum(k) FROM t WHERE u = md5('40')::uuid OR u = md5('x')::uuid;
SELECT count(*) FROM t WHERE k * 2 = 60 AND k % 3 = 0;
SELECT count(*) FROM t WHERE n = 3.3 AND k > 30;
SELECT count(*) FROM loose WHERE k IN (3, 501);
SELECT md5(string_agg(k::text, ',' ORDER BY n DESC NULLS LAST, b, k)) FROM t WHERE n > 500;
SELECT md5(string_agg(url, ',')) FROM (SELECT url FROM pages WHERE url LIKE 'https://www.example.org/7%' ORDER BY url) x;
SELECT count(*) FROM pages WHERE n IS NULL;
SQL
	done
}

# The answers are alike whatever found them.
is_one_answer()
{
	local lines

	mapfile -t lines <<<"$2"
	is "$1: the same by every way" "$(printf '%s\n' "${lines[@]}")" \
		"$(for _ in 1 2 3 4; do printf '%s\n' "${lines[@]:0:$((${#lines[@]} / 4))}"; done)"
}

skipped()
{
	rf_psql -c "EXPLAIN SELECT FROM t WHERE k = 77" -c "EXPLAIN SELECT FROM t WHERE b = 'b77'" \
		-c "EXPLAIN SELECT FROM t WHERE u = md5('40')::uuid" | sed -n 's/^ *\(Partitions Skipped.*\)/\1/p'
}

# A cluster of the old version, with tables, and an empty one of the new version.
start_clusters()
{
	RF_BIN=$NEW_BIN
	rf_start_server "new$1" "${SETTINGS[@]}"
	rf_stop_server "new$1"
	RF_BIN=$OLD_BIN
	rf_start_server "old$1" "${SETTINGS[@]}"
	create_tables
}

# pg_upgrade wants both servers stopped, and runs them itself.
upgrade()
{
	rf_run mkdir -p "$RF_TMP/socket"
	rf_run env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE "$NEW_BIN/pg_upgrade" --no-sync -U postgres \
		-b "$OLD_BIN" -B "$NEW_BIN" -d "$RF_TMP/old$1/data" -D "$RF_TMP/new$1/data" \
		-s "$RF_TMP/socket" -p 5432 -P 5433 >"$RF_TMP/pg_upgrade$1.log" 2>&1
}

# Why did pg_upgrade fail?
fail()
{
	tail -n 30 "$RF_TMP/pg_upgrade.log"
	start_clusters _plain
	rf_stop_server old_plain
	if ! upgrade _plain; then
		rf_say "not possible: pg_upgrade fails without rangefilter, too"
		exit 3
	fi
	rf_die "pg_upgrade failed, and does not without rangefilter"
}

main()
{
	local definitions status checked answers skipped

	rf_init
	PG_CONFIG=$new_config
	rf_need server
	rf_choose_user
	rf_copy_source
	export RF_INITDB=--data-checksums

	install_with "$new_config"
	NEW_BIN=$RF_BIN
	install_with "$old_config"
	OLD_BIN=$RF_BIN
	start_clusters ''
	create_indexes
	definitions=$(definitions) status=$(status) checked=$(checked) answers=$(answers) skipped=$(skipped)
	rf_stop_server old
	is "there are levels and open tails" \
		"$(awk -F '|' '$10 == "t" { open++ } $16 > 0 { levels++ } END { print (open > 0) (levels > 0) }' <<<"$status")" 11
	is "there is what is skipped" "$(grep -c 'Skipped: [1-9]' <<<"$skipped")" 3
	is_one_answer "before" "$answers"

	upgrade '' || fail
	RF_BIN=$NEW_BIN
	rf_run "$NEW_BIN/pg_ctl" -D "$RF_TMP/new/data" -l "$RF_TMP/new/log" -w -t 60 start >/dev/null
	export PGHOST=$RF_TMP/new/socket
	is "the same indexes" "$(definitions)" "$definitions"
	is "the same status" "$(status)" "$status"
	is "checked" "$(checked)" "$checked"
	is "the same answers" "$(answers)" "$answers"
	is "the same partitions skipped" "$(skipped)" "$skipped"

	# And so on.
	rf_psql -c "SELECT fill(40000, 43000)" -c "DELETE FROM t WHERE k < 300" -c "INSERT INTO pages SELECT 'https://new/' || i, i FROM generate_series(1, 2000) i" \
		-c "UPDATE pages SET url = url || '/' WHERE n % 7 = 0" >/dev/null
	is "an error after writing" "$(checked | grep -c ERROR)" 0
	is_one_answer "after writing" "$(answers)"
	rf_psql -c VACUUM
	is "an error after VACUUM" "$(checked | grep -c ERROR)" 0
	is_one_answer "after VACUUM" "$(answers)"
	is "open tails after VACUUM" "$(status | awk -F '|' '$10 == "t"' | wc -l)" 0
	answers=$(answers)
	rf_psql -c 'REINDEX DATABASE postgres'
	is "an error after REINDEX" "$(checked | grep -c ERROR)" 0
	is "the same answers after REINDEX" "$(answers)" "$answers"
	is "a crash" "$(grep -cE 'PANIC:|TRAP:|was terminated by signal' "$RF_TMP/new/log" "$RF_TMP/old/log" | sed 's/.*://' | paste -sd +)" 0+0

	rf_stop_server new
	rf_say "$PASSED passed, $FAILED failed"
	[ "$FAILED" = 0 ]
}

main
