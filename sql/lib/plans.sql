-- Functions for the tests of plans, which include this file.

-- A plan in the words of PostgreSQL 15: later ones name the results of subqueries
-- and the sides of equalities differently, give fractions of rows, and say what
-- was disabled.
CREATE FUNCTION plan_of(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) ', options) || query LOOP
		CONTINUE WHEN line ~ '^ *Disabled: ';
		line := regexp_replace(line, '\n *["<]?Disabled[^\n]*', '', 'g');
		line := replace(line, '.00 loops=', ' loops=');
		line := regexp_replace(line, 'Memory: \d+kB', 'in memory');
		line := regexp_replace(line, 'InitPlan (\d) \(returns \$\d\)', 'InitPlan \1');
		line := replace(line, '(InitPlan 1).col1', '$0');
		line := replace(line, 'ANY (day = (hashed SubPlan 2).col1)', 'hashed SubPlan 2');
		RETURN NEXT replace(line, '(k = d.id)', '(d.id = k)');
	END LOOP;
END
$$;
