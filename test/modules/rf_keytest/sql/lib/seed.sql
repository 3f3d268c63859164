-- A seed that is drawn anew for each run and shown with every failure; set
-- rf_keytest.seed (say, in PGOPTIONS) to run with a given one.
SELECT coalesce(nullif(current_setting('rf_keytest.seed', true), '')::float8,
				random()) AS seed \gset
SELECT set_config('rf_keytest.seed', :'seed', false) = :'seed' AS seed_set;
DO $$ BEGIN
	RAISE LOG 'rf_keytest.seed = %', current_setting('rf_keytest.seed');
END $$;
SELECT setseed(:seed);
