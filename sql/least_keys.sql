--
-- The least number of a type is a key of zeros.  New keys are written one behind the other, sixteen
-- at a time by the page's header; a zero among them, or at their end, is a key as any other.
--
CREATE SCHEMA rf_least;
SET search_path = rf_least, public;
SET client_min_messages = warning;

CREATE TABLE t (k bigint) WITH (autovacuum_enabled = off);
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE FUNCTION has(k bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT rangefilter_may_contain('t_k', k, k) $$;

-- Writes n keys, one of them the least, when so many have come.  How many are denied
-- afterwards, and how many answers are wrong that no key was?
CREATE FUNCTION denied(n int, least_at int, OUT denied bigint, OUT invented bigint) LANGUAGE plpgsql AS
$$
BEGIN
	TRUNCATE t;
	INSERT INTO t VALUES (-5);
	PERFORM rangefilter_summarize('t_k');
	FOR i IN 1 .. n LOOP
		INSERT INTO t VALUES (CASE WHEN i = least_at THEN -9223372036854775808 ELSE 3 * i END);
	END LOOP;
	SELECT count(*) INTO denied FROM t WHERE NOT has(k);
	SELECT count(*) INTO invented FROM generate_series(1, 3 * n, 3) k WHERE has(k);
	IF least_at = 0 THEN
		invented := invented + has(-9223372036854775808)::int;
	END IF;
END
$$;
SELECT count(*), sum(denied) AS denied, sum(invented) AS invented
FROM generate_series(0, 34) n, generate_series(0, n) least_at, denied(n, least_at);

-- Where a page ends, and the next one begins: 1008 keys.
SELECT count(*), sum(denied) AS denied, sum(invented) AS invented
FROM unnest('{990, 991, 992, 993, 1007, 1008, 1009, 1010}'::int[]) least_at,
	unnest('{990, 992, 1007, 1008, 1009, 1030}'::int[]) n, denied(n, least_at)
WHERE least_at <= n;
SELECT levels, level_keys, delta_keys, tail_open FROM rangefilter_status('t_k');
SELECT rangefilter_verify('t_k') >= 1030;

-- The same from other types.
CREATE TABLE types (a smallint, b int, c date, d timestamptz, e float8, f oid) WITH (autovacuum_enabled = off);
INSERT INTO types VALUES (1, 1, '2000-01-01', '2000-01-01', 1, 1);
CREATE INDEX types_a ON types USING rangefilter (a);
CREATE INDEX types_b ON types USING rangefilter (b);
CREATE INDEX types_c ON types USING rangefilter (c);
CREATE INDEX types_d ON types USING rangefilter (d);
CREATE INDEX types_e ON types USING rangefilter (e);
CREATE INDEX types_f ON types USING rangefilter (f);
INSERT INTO types VALUES (-32768, -2147483648, '-infinity', '-infinity', '-infinity', 0);
SELECT rangefilter_may_contain('types_a', a, a) AS a, rangefilter_may_contain('types_b', b, b) AS b,
	rangefilter_may_contain('types_c', c, c) AS c, rangefilter_may_contain('types_d', d, d) AS d,
	rangefilter_may_contain('types_e', e, e) AS e, rangefilter_may_contain('types_f', f, f) AS f
FROM types;

DROP SCHEMA rf_least CASCADE;
