-- The tables that most of core's tests read, as partitioned ones.  Their rows and names of
-- columns stay.
CREATE FUNCTION pg_temp.make_partitioned(name text, key text) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format('ALTER TABLE %I RENAME TO rf_old', name);
	EXECUTE format('CREATE TABLE %I (LIKE rf_old INCLUDING ALL) PARTITION BY HASH (%I)', name, key);
	FOR i IN 0 .. 4 LOOP
		EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 5, REMAINDER %s)', name || '_part' || i, name, i);
	END LOOP;
	EXECUTE format('INSERT INTO %I SELECT * FROM rf_old', name);
	DROP TABLE rf_old;
	EXECUTE format('GRANT ALL ON %I TO public', name);
	EXECUTE format('ANALYZE %I', name);
END
$$;
SELECT pg_temp.make_partitioned(name, key)
FROM (VALUES ('onek', 'unique1'), ('tenk1', 'unique1'), ('tenk2', 'unique2'), ('int2_tbl', 'f1'), ('int4_tbl', 'f1'),
	('int8_tbl', 'q1'), ('float8_tbl', 'f1'), ('text_tbl', 'f1'), ('varchar_tbl', 'f1')) t (name, key);
