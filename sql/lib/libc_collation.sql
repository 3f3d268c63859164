-- The collation rf_libc, deterministic and not C, whatever it is called on this system.
DO $$
DECLARE
	locale text;
BEGIN
	FOREACH locale IN ARRAY ARRAY['C.UTF-8', 'C.utf8', 'en_US.UTF-8', 'en_US.utf8', 'de_DE.UTF-8',
		'ja_JP.UTF-8', 'fr_FR.UTF-8']
	LOOP
		BEGIN
			EXECUTE format('CREATE COLLATION rf_libc (provider = libc, locale = %L)', locale);
			RETURN;
		EXCEPTION WHEN undefined_object OR wrong_object_type OR invalid_object_definition
			OR invalid_parameter_value OR feature_not_supported THEN
			NULL;
		END;
	END LOOP;
	RAISE 'this system has no locale for this test';
END
$$;
