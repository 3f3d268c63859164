-- A table that is moved and filled in a transaction which is rolled back: its
-- indexes keep their files.  (A btree index then finds other rows by these
-- entries; a wormhole index refuses them.)
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_wh_moved LOCATION '';
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE TABLE moved (k int, v int);
INSERT INTO moved SELECT i, i FROM generate_series(1, 100) i;
CREATE INDEX moved_k ON moved USING wormhole (k);

BEGIN;
ALTER TABLE moved SET TABLESPACE regress_wh_moved;
INSERT INTO moved VALUES (1000, 1000);
ROLLBACK;

-- An update, too, also where the move was in a subtransaction.
BEGIN;
SAVEPOINT s;
ALTER TABLE moved SET TABLESPACE regress_wh_moved;
RELEASE s;
SAVEPOINT t;
UPDATE moved SET k = 1000 WHERE k = 1;
ROLLBACK TO t;
DELETE FROM moved WHERE k = 2;
ROLLBACK;

-- Not after the move has been rolled back, or if the index has got a new file
-- since then.
BEGIN;
SAVEPOINT s;
ALTER TABLE moved SET TABLESPACE regress_wh_moved;
ROLLBACK TO s;
INSERT INTO moved VALUES (2000, 2000);
ALTER TABLE moved SET TABLESPACE regress_wh_moved;
SAVEPOINT u;
REINDEX INDEX moved_k;
INSERT INTO moved VALUES (3000, 3000);
ROLLBACK TO u;
SAVEPOINT v;
INSERT INTO moved VALUES (4000, 4000);
ROLLBACK TO v;
REINDEX INDEX moved_k;
INSERT INTO moved VALUES (5000, 5000);
COMMIT;

-- Nor where the index goes with the table.  (Core forgets when both got their
-- files, if a later change is rolled back.)
BEGIN;
TRUNCATE moved;
INSERT INTO moved SELECT i, i FROM generate_series(1, 10) i;
SAVEPOINT s;
ALTER TABLE moved ALTER k TYPE bigint;
INSERT INTO moved VALUES (11, 11);
ROLLBACK TO s;
INSERT INTO moved VALUES (12, 12);
SAVEPOINT t;
REINDEX INDEX moved_k;
ROLLBACK TO t;
INSERT INTO moved VALUES (13, 13);
SAVEPOINT u;
ALTER TABLE moved SET TABLESPACE pg_default;
SAVEPOINT v;
TRUNCATE moved;
ROLLBACK TO v;
INSERT INTO moved VALUES (15, 15);
ROLLBACK TO u;
CLUSTER moved USING moved_k;
INSERT INTO moved VALUES (14, 14);
SELECT k FROM moved WHERE k > 9;
ROLLBACK;
INSERT INTO moved VALUES (6000, 6000);

SELECT * FROM moved WHERE k >= 1000;
SELECT wormhole_check('moved_k', true);

-- TRUNCATE after the move would empty the index's file in place, and a rollback
-- would not bring its entries back.  Not so in another subtransaction, or if the index
-- has got a new file since.
BEGIN;
ALTER TABLE moved SET TABLESPACE pg_default;
TRUNCATE moved;
ROLLBACK;
BEGIN;
ALTER TABLE moved SET TABLESPACE pg_default;
SAVEPOINT s;
TRUNCATE moved;
ROLLBACK TO s;
REINDEX INDEX moved_k;
TRUNCATE moved;
SELECT count(*) FROM moved WHERE k > 0;
ROLLBACK;
SELECT wormhole_check('moved_k', true);

-- Emptied at COMMIT.
CREATE TEMP TABLE emptied (k int) ON COMMIT DELETE ROWS;
CREATE INDEX emptied_k ON emptied USING wormhole (k);
ALTER TABLE emptied SET TABLESPACE regress_wh_moved;
SELECT wormhole_check('emptied_k', true);
DROP TABLE emptied;

-- A table that is made in the same transaction.
BEGIN;
CREATE TABLE made (k int);
CREATE INDEX made_k ON made USING wormhole (k);
INSERT INTO made VALUES (1);
SAVEPOINT s;
ALTER TABLE made SET TABLESPACE regress_wh_moved;
SAVEPOINT t;
INSERT INTO made VALUES (2);
ROLLBACK TO s;
INSERT INTO made VALUES (3);
SELECT * FROM made WHERE k > 0;
COMMIT;


-- A rangefilter index may have too many keys, and summaries of more blocks than
-- the table has then.  The rows that come into these blocks later are found.
CREATE TABLE parts (p int, k int, pad text) PARTITION BY LIST (p);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT 1 + i % 2, i, repeat('x', 100) FROM generate_series(1, 1000) i;
CREATE INDEX parts_k ON parts USING rangefilter (k);
VACUUM parts;
BEGIN;
ALTER TABLE parts_1 SET TABLESPACE regress_wh_moved;
INSERT INTO parts SELECT 1, i, repeat('x', 100) FROM generate_series(10001, 12000) i;
DELETE FROM parts WHERE k BETWEEN 100 AND 200;
SELECT rangefilter_summarize('parts_1_k_idx') IS NOT NULL AS summarized;
ROLLBACK;
INSERT INTO parts SELECT 1, i, repeat('x', 100) FROM generate_series(20001, 20500) i;
SELECT count(*) FROM parts WHERE k BETWEEN 100 AND 200;
SELECT count(*) FROM parts WHERE k BETWEEN 20001 AND 20500;
SELECT count(*) FROM generate_series(20001, 20500) i WHERE NOT EXISTS (SELECT FROM parts WHERE k = i);
SELECT rangefilter_verify('parts_1_k_idx');

-- After TRUNCATE in the transaction that has moved the table it says nothing, since the
-- rows may come back, also when many rows came or a summarize was asked for.
VACUUM parts;
BEGIN;
ALTER TABLE parts_1 SET TABLESPACE regress_wh_moved;
TRUNCATE parts_1;
INSERT INTO parts SELECT 1, i, repeat('x', 100) FROM generate_series(1, 3000, 2) i;
SELECT rangefilter_summarize('parts_1_k_idx');
SELECT count(*) FROM parts WHERE k = 77;
ROLLBACK;
SELECT count(*) FROM parts WHERE k BETWEEN 51 AND 60;
SELECT count(*) FROM parts WHERE k = 52;
SELECT rangefilter_verify('parts_1_k_idx');
VACUUM parts;
SELECT tail_open FROM rangefilter_status('parts_1_k_idx');
DROP TABLE moved, made, parts;
DROP TABLESPACE regress_wh_moved;
