-- Every partitioned table gets a rangefilter index on each column that can have one, as
-- soon as it is there or has another column.  Names of indexes are none that a test may choose.
CREATE EXTENSION rangefilter;
CREATE SCHEMA rf_force;
GRANT USAGE ON SCHEMA rf_force TO public;
CREATE FUNCTION rf_force.add_indexes() RETURNS event_trigger LANGUAGE plpgsql
	SET client_min_messages = warning AS
$$
DECLARE
	col record;
	index record;
BEGIN
	FOR col IN
		SELECT a.attrelid::regclass AS relation, a.attname, format('rf_force_%s_%s', a.attrelid, a.attnum) AS name
		FROM pg_event_trigger_ddl_commands() c JOIN pg_class r ON r.oid = c.objid AND c.classid = 'pg_class'::regclass
			JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE r.relkind = 'p' AND NOT r.relispartition
	LOOP
		CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relname = col.name);
		BEGIN
			EXECUTE format('CREATE INDEX %I ON %s USING rangefilter (%I)', col.name, col.relation, col.attname);
		EXCEPTION WHEN OTHERS THEN
			NULL;
		END;
	END LOOP;
	FOR index IN
		SELECT c.oid, c.oid::regclass AS name
		FROM pg_class c JOIN pg_am m ON m.oid = c.relam
		WHERE m.amname = 'rangefilter' AND c.relname NOT LIKE 'rf\_force\_%'
	LOOP
		EXECUTE format('ALTER INDEX %s RENAME TO rf_force_%s', index.name, index.oid);
	END LOOP;
END
$$;
CREATE EVENT TRIGGER rf_force ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE')
	EXECUTE FUNCTION rf_force.add_indexes();
