-- Unique checks of which core asks btrees alone: one that only says whether the key is unique
-- (UNIQUE_CHECK_PARTIAL), and one of a row that has its entry (UNIQUE_CHECK_EXISTING).
SET client_min_messages = warning;
CREATE EXTENSION rangefilter;
CREATE EXTENSION rf_damage;
\set no_error 2
\set existing 3
CREATE TABLE once (k int8);
INSERT INTO once SELECT generate_series(1, 100);
CREATE UNIQUE INDEX once_k ON once USING wormhole (k);
SELECT rf_insert('once_k', 5, ctid, :existing) FROM once WHERE k = 5;
-- That made no entry.
SELECT wormhole_check('once_k', true);
-- Another row has the key; no row has it.
SELECT rf_insert('once_k', 5, ctid, :existing) FROM once WHERE k = 6;
SELECT rf_insert('once_k', 200, ctid, :existing) FROM once WHERE k = 6;
-- Entries are made, of a new key and of one that is there; the latter is found behind the row itself.
SELECT rf_insert('once_k', 300, ctid, :no_error) AS new, rf_insert('once_k', 5, ctid, :no_error) AS again
FROM once WHERE k = 7;
SELECT wormhole_check('once_k');
SELECT rf_insert('once_k', 5, ctid, :existing) FROM once WHERE k = 5;
