-- What only some versions of the server can do, for the tests that include this file.

-- What the server keeps for btree until 17: is the statement refused by that message
-- there, and not since 18?  It is undone.
CREATE FUNCTION wh_kept_until_17(statement text, message text) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
	is_kept CONSTANT bool := current_setting('server_version_num')::int < 180000;
BEGIN
	BEGIN
		EXECUTE statement;
		RAISE EXCEPTION 'it works';
	EXCEPTION WHEN OTHERS THEN
		RETURN SQLERRM = CASE WHEN is_kept THEN message ELSE 'it works' END;
	END;
END $$;

-- What a statement is refused with, without what some versions add: where in the
-- statement, and advice.
CREATE FUNCTION refused(statement text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE statement;
	RETURN 'it works';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $$;
