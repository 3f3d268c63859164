#!/bin/bash
#
# estimates.sh: the planner's row estimates, by counting in the index and without.
#
# Tables whose columns have different distributions, never analyzed and analyzed;
# the factor by which estimates are wrong, and what planning takes.  Writes its
# section of test/bench/RESULTS.md when run at full size.
#
# Environment, with defaults:
#	ESTIMATES_ROWS=300000		rows of each table
#	ESTIMATES_QUESTIONS=100		conditions of each kind
#	ESTIMATES_RESULTS=file		where to write, also when not at full size

RESULTS=${ESTIMATES_RESULTS:+$(realpath -m "$ESTIMATES_RESULTS")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

ROWS=${ESTIMATES_ROWS:-300000}
QUESTIONS=${ESTIMATES_QUESTIONS:-100}

make_tables()
{
	rf_psql -v rows="$ROWS" <<'SQL'
CREATE TABLE random AS SELECT hashint8extended(n, 1) AS k FROM generate_series(1, :rows) n;
CREATE INDEX ON random USING rangefilter (k);
CREATE TABLE skewed AS SELECT exp(abs(hashint8extended(n, 2) % 1000000) / 1000000.0 * 16)::int AS k
	FROM generate_series(1, :rows) n;
CREATE INDEX ON skewed USING rangefilter (k);
CREATE TABLE words AS SELECT md5((n / 8)::text) COLLATE "C" AS k FROM generate_series(1, :rows) n;
CREATE INDEX ON words USING rangefilter (k);
CREATE TABLE mails AS SELECT upper(md5(n::text)) COLLATE "C" AS k FROM generate_series(1, :rows) n;
CREATE INDEX ON mails USING rangefilter (lower(k));
-- each tenant has days of its own
CREATE TABLE tenants AS SELECT n % 300 AS tenant, n % 300 * 100 + n / 300 % 100 AS day, n AS k
	FROM generate_series(1, :rows) n;
CREATE INDEX ON tenants USING rangefilter (tenant, day, k);
-- the newest orders are open
CREATE TABLE orders AS SELECT n AS k, CASE WHEN n > :rows * 0.9 THEN 'open' ELSE 'done' END AS status
	FROM generate_series(1, :rows) n;
CREATE INDEX ON orders USING rangefilter (k) WHERE status = 'open';
-- the last partition came after ANALYZE
CREATE TABLE months (month int, k int) PARTITION BY LIST (month);
SELECT format('CREATE TABLE months_%1$s PARTITION OF months FOR VALUES IN (%1$s)', m) FROM generate_series(1, 12) m
\gexec
CREATE INDEX ON months USING rangefilter (k);
INSERT INTO months SELECT n * 11 / :rows + 1, n FROM generate_series(1, :rows - 1) n;
INSERT INTO months SELECT 12, n FROM generate_series(:rows + 1, :rows * 12 / 11) n;
VACUUM;
CREATE TABLE questions (number serial, name text, tab text, condition text, rows float);
CREATE TABLE answers (number int, name text, analyzed bool, counted bool, factor float, us float);

-- Ranges of an expression between two rows that are so many apart in its order.
CREATE FUNCTION ask_ranges(name text, tab text, expr text, others text, n int, distances int[])
RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format('CREATE TEMP TABLE sorted AS SELECT %s AS x, row_number() OVER (ORDER BY %1$s) AS i FROM %s WHERE %s',
				   expr, tab, others);
	CREATE INDEX ON sorted (i);
	INSERT INTO questions (name, tab, condition)
	SELECT ask_ranges.name, ask_ranges.tab, format('%s AND %s BETWEEN %L AND %L', others, expr, a.x, b.x)
	FROM unnest(distances) d, generate_series(1, n) g,
		LATERAL (SELECT i, i + d AS j FROM abs(hashint8extended(g, d)) h,
			LATERAL (SELECT 1 + h % (count(*) - d) AS i FROM sorted) c) p
		JOIN sorted a ON a.i = p.i JOIN sorted b ON b.i = p.j;
	DROP TABLE sorted;
END
$$;

-- What the planner expects, and the time that EXPLAIN takes.
CREATE FUNCTION explain(tab text, condition text, counted bool, OUT estimated float, OUT us float)
LANGUAGE plpgsql AS
$$
DECLARE
	plan json;
	started timestamptz;
BEGIN
	PERFORM set_config('rangefilter.estimate_rows', counted::text, false);
	started := clock_timestamp();
	EXECUTE format('EXPLAIN (FORMAT JSON) SELECT * FROM %s WHERE %s', tab, condition) INTO plan;
	us := extract(epoch FROM clock_timestamp() - started) * 1000000;
	estimated := plan -> 0 -> 'Plan' ->> 'Plan Rows';
END
$$;

CREATE FUNCTION count_rows(tab text, condition text) RETURNS float LANGUAGE plpgsql AS
$$
DECLARE
	n float;
BEGIN
	EXECUTE format('SELECT count(*) FROM %s WHERE %s', tab, condition) INTO n;
	RETURN n;
END
$$;
SQL
}

make_questions()
{
	rf_psql -v n="$((QUESTIONS / 4))" -v all="$QUESTIONS" -v rows="$ROWS" <<'SQL'
SELECT ask_ranges('random numbers, ranges', 'random', 'k', 'true', :n, '{5,100,3000,60000}');
SELECT ask_ranges('log-uniform numbers, ranges', 'skewed', 'k', 'true', :n, '{5,100,3000,60000}');
SELECT ask_ranges('strings, each 8 times, ranges', 'words', 'k', 'true', :n, '{5,100,3000,60000}');
INSERT INTO questions (name, tab, condition)
SELECT 'strings, each 8 times, one that is not there', 'words', format('k = %L', md5((-g)::text)) FROM generate_series(1, :all) g;
INSERT INTO questions (name, tab, condition)
SELECT 'strings, each 8 times, one that is there', 'words', format('k = %L', md5((g * 99)::text)) FROM generate_series(1, :all) g;
SELECT ask_ranges('`lower(k)`, ranges', 'mails', 'lower(k)', 'true', :n, '{5,100,3000,60000}');
INSERT INTO questions (name, tab, condition)
SELECT '`tenant = x AND day BETWEEN ...`', 'tenants', format('tenant = %s AND day BETWEEN %s AND %s', t, t * 100 + d, t * 100 + d + g % 50)
FROM generate_series(1, :all) g, LATERAL (SELECT g * 7 % 300 AS t, g * 3 % 70 AS d) x;
SELECT ask_ranges('`status = ''open''` and a range, partial index', 'orders', 'k', 'status = ''open''', :n, '{5,100,1000,3000}');
SELECT ask_ranges('partition that came after ANALYZE, ranges', 'months', 'k', format('k > %s', :rows), :n, '{5,100,1000,3000}');
UPDATE questions SET rows = count_rows(tab, condition);
SQL
}

# Asks everything in both ways, in turns; $1: is this after ANALYZE?
ask()
{
	local counted

	for counted in false true false true; do
		rf_psql -c "INSERT INTO answers SELECT number, name, $1, $counted,
			greatest(greatest(estimated, 1) / greatest(rows, 1), greatest(rows, 1) / greatest(estimated, 1)), us
			FROM questions, LATERAL (SELECT * FROM explain(tab, condition, $counted)) e"
	done
}

report()
{
	local cpu

	cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
	cat <<TEXT
# Row estimates

Written by \`make bench B=estimates\` on $(date -u +%Y-%m-%d), revision $(git -C "$RF_ROOT" describe --always --dirty 2>/dev/null || printf 'unknown').

- Machine: ${cpu:-$(uname -m)}, $(nproc) cores; $("$RF_BIN/postgres" --version)
- Factors by which estimates are wrong, median and 95th of a hundred; tables of $ROWS rows;
  $QUESTIONS conditions each, ranges between rows at four distances. Core: \`rangefilter.estimate_rows\`
  is off. Microseconds: what counting adds to an EXPLAIN, after ANALYZE (median).

| | never analyzed, core | counted | analyzed, core | counted | microseconds |
|---|--:|--:|--:|--:|--:|
TEXT
	rf_psql <<'SQL'
SELECT format('| %s | %s | %s | %s | %s | %s |', name,
	string_agg(f, '') FILTER (WHERE NOT analyzed AND NOT counted), string_agg(f, '') FILTER (WHERE NOT analyzed AND counted),
	string_agg(f, '') FILTER (WHERE analyzed AND NOT counted), string_agg(f, '') FILTER (WHERE analyzed AND counted),
	round((sum(us) FILTER (WHERE analyzed AND counted) - sum(us) FILTER (WHERE analyzed AND NOT counted))::numeric))
FROM (SELECT min(number) AS number, name, analyzed, counted, percentile_cont(0.5) WITHIN GROUP (ORDER BY us) AS us,
		to_char(percentile_cont(0.5) WITHIN GROUP (ORDER BY factor), 'FM9999990.00') || ', ' ||
		to_char(percentile_cont(0.95) WITHIN GROUP (ORDER BY factor), 'FM9999990.00') AS f
	  FROM answers GROUP BY name, analyzed, counted) a
GROUP BY name ORDER BY min(number);
SQL
}

main()
{
	rf_prepare_bench
	rf_start_server estimates session_preload_libraries=rangefilter shared_buffers=1GB max_wal_size=4GB \
		autovacuum=off jit=off max_parallel_workers_per_gather=0
	rf_psql -c 'CREATE EXTENSION rangefilter'
	make_tables
	make_questions >/dev/null
	ask false
	rf_psql -c 'ANALYZE random, skewed, words, mails, tenants, orders' \
		-c "$(seq -s '; ' -f 'ANALYZE months_%g' 1 11)"
	ask true
	report >"$RF_TMP/section"
	rf_finish_bench estimates "$ROWS $QUESTIONS" "300000 100"
}

main
