#!/bin/bash
#
# choice.sh: does the planner choose the fastest scan where a rangefilter index
# can be scanned?
#
# Tables without partitions, of several sizes; columns of several distributions;
# questions of several widths, for a rangefilter index alone and beside a btree.
# Each question is answered by each plan that there is, forced by settings, and by
# the one that the planner chooses.  Everything is in shared buffers.  Writes
# test/bench/RESULTS-choice.md when run at full size (RESULTS.md is long enough).
#
# Environment, with defaults:
#	CHOICE_TABLES="20000:0 ..."	tables: rows, and bytes of padding in each row
#	CHOICE_CHUNK=600			seconds of one call that measures
#	CHOICE_RESULTS=file			where to write, also when not at full size
#	CHOICE_CASES=file			where to write all cases

RESULTS=${CHOICE_RESULTS:+$(realpath -m "$CHOICE_RESULTS")}
CASES=${CHOICE_CASES:+$(realpath -m "$CHOICE_CASES")}
# shellcheck source=../lib/bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/bench.sh"

FULL="20000:0 20000:300 200000:0 200000:300 2000000:0"
TABLES=${CHOICE_TABLES:-$FULL}
CHUNK=${CHOICE_CHUNK:-600}

# A table's columns: random numbers; bursts of 200 rows with neighbouring
# numbers; a hundred numbers; numbers that grow with time, in disorder over 100
# rows.  By default an index has places for 20,000 rows, not for more.
make_table()
{
	local table=t_$1_$2 options='' column

	[ "$1" -le 20000 ] || options='WITH (pages_per_range = 16, bits_per_key = 24)'
	rf_psql <<SQL
CREATE TABLE $table (random bigint, bursts bigint, few bigint, time bigint, v int, pad text);
ALTER TABLE $table ALTER pad SET STORAGE plain;
INSERT INTO $table SELECT abs(hashint8extended(n, 1) / 2) % 1000000000,
	abs(hashint8extended(n / 200, 2) / 2) % 1000000 * 1000 + n % 200,
	abs(hashint8extended(n, 3) / 2) % 100 * 1000,
	n * 10 + abs(hashint8extended(n, 4) / 2) % 1000, n, repeat('x', $2)
	FROM generate_series(1, $1) n;
SQL
	for column in random bursts few time; do
		rf_psql -c "CREATE INDEX ON $table USING rangefilter ($column) $options" \
			-c "SELECT ask('$table', '$column')"
	done
	rf_psql -c "VACUUM ANALYZE $table"
}

make_functions()
{
	rf_psql <<'SQL'
CREATE EXTENSION rangefilter;
CREATE EXTENSION rf_probes;
CREATE TABLE questions (number serial PRIMARY KEY, tab text, col text, width text, query text);
-- plan: what was forced, or "chosen" and a setting; shape: what it was
CREATE TABLE answers (number int, beside bool, plan text, shape text, core_shape text, ms float);

-- Makes the questions about a column: for no row, for one value, for shares of
-- the rows from the third tenth on.
CREATE FUNCTION ask(tab text, col text) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	share float;
	low bigint;
	high bigint;
	known bool;
BEGIN
	EXECUTE format('CREATE TEMP TABLE sorted ON COMMIT DROP AS SELECT %I AS k, row_number() OVER (ORDER BY %1$I) AS i FROM %I', col, tab);
	SELECT k INTO low FROM sorted WHERE i = (SELECT count(*) * 3 / 10 FROM sorted);
	FOREACH share IN ARRAY '{0,0.0001,0.001,0.01,0.1,0.5}'::float[] LOOP
		SELECT k INTO high FROM sorted WHERE i = (SELECT count(*) * 3 / 10 + ceil(count(*) * share) FROM sorted);
		IF share = 0 OR (SELECT count(*) BETWEEN share * 0.5 * total AND share * 2 * total FROM sorted,
						 (SELECT count(*) AS total FROM sorted) t WHERE k BETWEEN low AND high GROUP BY total) THEN
			INSERT INTO questions (tab, col, width, query) SELECT ask.tab, ask.col,
				CASE WHEN share = 0 THEN 'value' ELSE share * 100 || ' %' END,
				format('SELECT sum(v) FROM %I WHERE %I %s', ask.tab, ask.col,
					CASE WHEN share = 0 THEN '= ' || low ELSE format('BETWEEN %s AND %s', low, high) END);
		END IF;
	END LOOP;
	LOOP
		low := low + 1;
		SELECT count(*) > 0 INTO known FROM sorted WHERE k = low;
		EXIT WHEN NOT known;
	END LOOP;
	INSERT INTO questions (tab, col, width, query)
	VALUES (tab, col, 'no row', format('SELECT sum(v) FROM %I WHERE %I = %s', tab, col, low));
END
$$;

-- Settings that leave one plan, or the choice.
CREATE FUNCTION allow(plan text) RETURNS void LANGUAGE sql AS
$$
SELECT set_config('enable_seqscan', (plan ~ '^(seq|chosen)')::text, false),
	set_config('enable_indexscan', (plan ~ '^(btree$|chosen)')::text, false),
	set_config('enable_bitmapscan', (plan ~ '^(rangefilter|btree bitmap|chosen)')::text, false),
	set_config('rangefilter.enable', (plan ~ '^(rangefilter|chosen)')::text, false),
	set_config('random_page_cost', CASE WHEN plan ~ 'cached' THEN '1.1' ELSE '4' END, false)
$$;

-- What scan a query's plan has.
CREATE FUNCTION shape(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	plan text := '';
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
		plan := plan || line;
	END LOOP;
	RETURN CASE WHEN plan ~ 'Seq Scan' THEN 'seq' WHEN plan ~ 'Bitmap Index Scan on \w+_btree' THEN 'btree bitmap'
		WHEN plan ~ 'Index Scan using \w+_btree' THEN 'btree' WHEN plan ~ 'Bitmap Index Scan' THEN 'rangefilter' END;
END
$$;

-- Answers one question by the plans named, in turns: two turns, or more within a
-- second.  Keeps the least processor time of each, planning included, of second
-- runs: the first one finds the processor's caches as another plan left them.
CREATE FUNCTION answer(question int, beside bool, plans text[]) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	query text;
	result bigint;
	right_one bigint;
	times float[] = '{}';
	begun float;
	started timestamptz := clock_timestamp();
	n int := 0;
	i int;
BEGIN
	SELECT q.query INTO query FROM questions q WHERE number = question;
	WHILE n < 2 OR (n < 100 AND clock_timestamp() < started + interval '1 s') LOOP
		FOR i IN 1 .. cardinality(plans) LOOP
			PERFORM allow(plans[i]);
			EXECUTE query INTO result;
			begun := rf_processor_time();
			EXECUTE query INTO result;
			times := times || rf_processor_time() - begun;
			right_one := coalesce(right_one, result);
			IF result IS DISTINCT FROM right_one THEN
				RAISE EXCEPTION 'wrong result of %', query;
			END IF;
		END LOOP;
		n := n + 1;
	END LOOP;
	FOR i IN 1 .. cardinality(plans) LOOP
		PERFORM allow(plans[i]);
		INSERT INTO answers SELECT question, beside, plans[i], shape(query), CASE WHEN plans[i] ~ 'chosen' THEN
			(SELECT shape(query) FROM set_config('rangefilter.enable', 'off', false)) END,
			(SELECT min(ms) FROM unnest(times) WITH ORDINALITY t (ms, o) WHERE (o - 1) % cardinality(plans) = i - 1);
	END LOOP;
END
$$;

-- Answers questions for so many seconds, beside btrees or not; how many are left?
CREATE FUNCTION answer_some(b bool, plans text[], seconds float) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	started timestamptz := clock_timestamp();
	question int;
BEGIN
	FOR question IN SELECT number FROM questions q
		WHERE NOT EXISTS (SELECT FROM answers a WHERE a.number = q.number AND a.beside = b) ORDER BY number LOOP
		EXIT WHEN clock_timestamp() > started + seconds * interval '1 s';
		PERFORM answer(question, b, plans);
	END LOOP;
	RETURN (SELECT count(*) FROM questions q WHERE NOT EXISTS (SELECT FROM answers a WHERE a.number = q.number AND a.beside = b));
END
$$;
SQL
}

make_btrees()
{
	rf_psql <<'SQL'
SELECT format('CREATE INDEX %I ON %I (%I)', tab || '_' || col || '_btree', tab, col) FROM (SELECT DISTINCT tab, col FROM questions) q
\gexec
VACUUM ANALYZE;
SQL
}

# Answers all questions: $1 says whether beside btrees, $2 which plans.
measure()
{
	local left=1

	while [ "$left" -gt 0 ]; do
		left=$(rf_psql -c "SELECT answer_some($1, '$2', $CHUNK)")
	done
}

# One row for each case.  The ratio is that of two forced plans, since planning without
# rangefilter takes less time than planning the choice.  A case is core's own where
# without rangefilter core's choice is over 1.3 times its best.
make_cases()
{
	rf_psql <<'SQL'
CREATE TABLE cases AS
WITH forced AS (SELECT DISTINCT ON (number, plan) number, plan, ms FROM answers WHERE plan = shape ORDER BY number, plan, ms)
SELECT c.number, q.tab, q.col, q.width, c.beside, substr(c.plan, 8) AS setting, c.shape AS chosen, c.ms AS chosen_ms, f.ms,
	b.plan AS best, b.ms AS best_ms, f.ms / b.ms AS ratio,
	(SELECT max(ms) FILTER (WHERE plan = c.core_shape) / min(ms) FROM forced f
	 WHERE f.number = c.number AND CASE WHEN c.beside THEN plan <> 'rangefilter' ELSE plan = 'seq' END) AS core_ratio,
	(SELECT string_agg(plan || ' ' || round(ms::numeric, 3), ', ') FROM forced f WHERE f.number = c.number) AS times
FROM answers c JOIN questions q USING (number) JOIN forced f ON f.number = c.number AND f.plan = c.shape
CROSS JOIN LATERAL (SELECT plan, ms FROM forced f WHERE f.number = c.number AND (c.beside OR plan !~ 'btree') ORDER BY ms LIMIT 1) b
WHERE c.plan ~ 'chosen';
SQL
}

report()
{
	cat <<TEXT
# Choice between bitmap scans by rangefilter and other scans

Written by \`make bench B=choice\` on $(date -u +%Y-%m-%d), revision $(rf_revision).

- Machine: $(rf_machine); $("$RF_BIN/postgres" --version)
- Processor time, the least of two to a hundred runs. Everything is in shared buffers. *Defaults*: \`random_page_cost\` is 4; *cached*: it is 1.1. One process, no JIT.
- Tables: rows, and bytes of padding in each. Columns: random numbers, bursts of 200 rows, a hundred numbers,
  numbers that grow with time; questions for no row, for one value, and for 0.01 to 50 % of the rows.
- A choice is *good* if the chosen plan takes at most 1.3 times what the best of the forced plans takes, planning included:
  seq scan, bitmap scan by rangefilter, and beside a btree its index scan and its bitmap scan. *Core's own*: of the
  choices that are not good, those where core's choice among its own plans is not good either, without rangefilter.
- Planning takes $(rf_psql -c "SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY (chosen_ms - ms) * 1000)::numeric, 1) FROM cases WHERE chosen = 'btree' AND width IN ('value', 'no row')") us more with a rangefilter index beside the btree, for one value (median).

| | good | of | core's own | worst ratio | worst that is not core's |
|---|--:|--:|--:|--:|--:|
TEXT
	rf_psql <<'SQL'
SELECT format('| %s, %s, %s | %s | %s | %s | %s | %s |', coalesce(tab, 'all tables'), CASE WHEN beside THEN 'beside a btree' ELSE 'alone' END, setting,
	count(*) FILTER (WHERE ratio <= 1.3), count(*), count(*) FILTER (WHERE ratio > 1.3 AND core_ratio > 1.3),
	to_char(max(ratio), 'FM99990.00'), to_char(max(ratio) FILTER (WHERE core_ratio <= 1.3), 'FM99990.00'))
FROM cases GROUP BY GROUPING SETS ((setting, beside, tab), (setting, beside))
ORDER BY setting DESC, beside, min(number) + CASE WHEN grouping(tab) = 1 THEN 1000000 ELSE 0 END;
SELECT E'\nThe choices that are not good and not core''s own, times in ms:\n\n| | chosen | ms | best | ms | ratio |\n|---|---|--:|---|--:|--:|';
SELECT format('| %s.%s, %s, %s%s | %s | %s | %s | %s | %s |', tab, col, width, setting, CASE WHEN beside THEN ', beside a btree' END,
	chosen, round(ms::numeric, 3), best, round(best_ms::numeric, 3), to_char(ratio, 'FM99990.00'))
FROM cases WHERE ratio > 1.3 AND core_ratio <= 1.3 ORDER BY setting DESC, beside, number;
SELECT format(E'\n**%1$s of %2$s within 1.3 of the best**; without core''s own misses %1$s of %3$s.', count(*) FILTER (WHERE ratio <= 1.3), count(*),
	count(*) FILTER (WHERE ratio <= 1.3 OR core_ratio <= 1.3)) FROM cases;
SQL
}

main()
{
	local table

	rf_prepare_bench
	rf_make -C test/modules/rf_probes all
	rf_make -C test/modules/rf_probes install DESTDIR="$RF_PG" >/dev/null
	rf_start_server choice session_preload_libraries=rangefilter shared_buffers=1536MB max_wal_size=4GB \
		maintenance_work_mem=256MB autovacuum=off jit=off max_parallel_workers_per_gather=0
	make_functions
	for table in $TABLES; do
		make_table "${table%:*}" "${table#*:}"
	done
	measure false '{seq,rangefilter,chosen defaults,chosen cached}'
	make_btrees
	measure true '{btree,btree bitmap,chosen defaults,chosen cached}'
	make_cases
	[ -z "$CASES" ] || rf_psql -c 'SELECT * FROM cases ORDER BY number, beside, setting' >"$CASES"
	report >"$RF_TMP/section"
	[ -n "$RESULTS" ] || [ "$TABLES" != "$FULL" ] || RESULTS=$RF_ROOT/test/bench/RESULTS-choice.md
	rf_finish_bench choice "$TABLES" "$FULL"
}

main
