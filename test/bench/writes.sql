-- What writes.sh lets run on its table "written": small statements, each a
-- transaction of its own.  Keys are even, so that odd ones are not there.

CREATE FUNCTION new_key() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN 2 * (random() * 1e15)::bigint;

-- Adds "rows" rows to each partition: statements of "batch" rows, the
-- partitions in turns.
CREATE PROCEDURE trickle(partitions int, rows int, batch int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0 .. rows / batch - 1 LOOP
		FOR p IN 0 .. partitions - 1 LOOP
			INSERT INTO written SELECT p, new_key(), i FROM generate_series(1, batch);
			COMMIT;
		END LOOP;
	END LOOP;
END $$;

-- Gives new keys to the rows of "blocks" blocks of each partition, from block
-- "first" on, a block a statement.
CREATE PROCEDURE move_keys(partitions int, first int, blocks int) LANGUAGE plpgsql AS $$
BEGIN
	FOR b IN first .. first + blocks - 1 LOOP
		FOR p IN 0 .. partitions - 1 LOOP
			EXECUTE format('UPDATE written_%s SET k = new_key() WHERE ctid >= %L AND ctid < %L',
						   p, format('(%s,0)', b), format('(%s,0)', b + 1));
			COMMIT;
		END LOOP;
	END LOOP;
END $$;

-- A queue: the rows of a block are deleted, as many new ones are added.
CREATE PROCEDURE queue(partitions int, first int, blocks int) LANGUAGE plpgsql AS $$
DECLARE
	gone int;
BEGIN
	FOR b IN first .. first + blocks - 1 LOOP
		FOR p IN 0 .. partitions - 1 LOOP
			EXECUTE format('DELETE FROM written_%s WHERE ctid >= %L AND ctid < %L',
						   p, format('(%s,0)', b), format('(%s,0)', b + 1));
			GET DIAGNOSTICS gone = ROW_COUNT;
			INSERT INTO written SELECT p, new_key(), b FROM generate_series(1, gone);
			COMMIT;
		END LOOP;
	END LOOP;
END $$;
