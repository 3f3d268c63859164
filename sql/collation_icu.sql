--
-- Collations of ICU
--
-- collation_icu_1.out is for servers built without ICU.
SELECT count(*) = 0 AS skip_test FROM pg_collation
WHERE collprovider = 'i' AND collname LIKE '%-x-icu' \gset
\if :skip_test
\quit
\endif
CREATE SCHEMA rf_icu;
SET search_path = rf_icu, public;

-- Deterministic ones equate as bytes do, others do not.
CREATE COLLATION rf_icu (provider = icu, locale = 'en');
CREATE COLLATION rf_blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE i (d text COLLATE rf_icu, n text COLLATE rf_blind);
INSERT INTO i VALUES ('a', 'a'), ('Z', 'Z');
CREATE INDEX ON i USING rangefilter (d);
CREATE INDEX ON i USING rangefilter (n);
CREATE INDEX ON i USING rangefilter (n COLLATE "C");
CREATE INDEX ON i USING rangefilter ((d COLLATE rf_blind));
SELECT rangefilter_may_contain('i_d_idx', 'a', 'a') AS equal, rangefilter_may_contain('i_d_idx', 'b', 'b') AS other,
	rangefilter_may_contain('i_d_idx', 'b', 'c') AS range;
ALTER TABLE i ALTER d TYPE text COLLATE rf_blind;
SELECT rangefilter_verify('i_d_idx');

-- Advice on columns: ranges need an order of bytes.
CREATE TABLE words (p int, w text COLLATE rf_icu, v varchar(9) COLLATE rf_blind) PARTITION BY RANGE (p);
CREATE TABLE words0 PARTITION OF words FOR VALUES FROM (0) TO (1);
CREATE TABLE words1 PARTITION OF words FOR VALUES FROM (1) TO (2);
CREATE TABLE words2 PARTITION OF words FOR VALUES FROM (2) TO (3);
CREATE TABLE words3 PARTITION OF words FOR VALUES FROM (3) TO (4);
INSERT INTO words SELECT g / 10, 'w' || g, 'w' || g FROM generate_series(0, 39) g;
SELECT skipped_by_points, skipped_by_ranges_1ppm, advice FROM rangefilter_advise('words', 'w');
SELECT skipped_by_points, skipped_by_ranges_1ppm, advice FROM rangefilter_advise('words', 'v');

SET client_min_messages = warning;
DROP SCHEMA rf_icu CASCADE;
