-- Functions for the tests of plans, which include this file.

-- A line of a plan in the words of PostgreSQL 15: later ones name subqueries and their
-- results differently, and give fractions of rows.
CREATE FUNCTION in_old_words(line text) RETURNS text
LANGUAGE sql AS
$$
	SELECT replace(replace(regexp_replace(regexp_replace(regexp_replace(line,
		'InitPlan Range Filter', 'Range Filter'),
		'((InitPlan|SubPlan) )[a-z]+_(\d)', '\1\3', 'g'),
		'InitPlan (\d) \(returns \$\d\)', 'InitPlan \1'),
		'(InitPlan 1).col1', '$0'),
		'.00 loops=', ' loops=');
$$;

-- A plan in the words of PostgreSQL 15.  Later ones also name the sides of
-- equalities differently, and say what was disabled, and what a plan without a scan
-- is instead of.
CREATE FUNCTION plan_of(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) ', options) || query LOOP
		CONTINUE WHEN line ~ '^ *(Disabled|Replaces|Index Searches): ';
		line := regexp_replace(line, '\n *["<]?Disabled[^\n]*', '', 'g');
		line := in_old_words(line);
		line := regexp_replace(line, 'Memory: \d+kB', 'in memory');
		line := regexp_replace(line, 'ANY \(.* = \((hashed SubPlan [a-z_]*\d)\)\.col1\)', '\1');
		line := regexp_replace(line, 'SubPlan [a-z_]*\d', 'SubPlan');
		RETURN NEXT replace(line, '(k = d.id)', '(d.id = k)');
	END LOOP;
END
$$;
