# What a session remembers of partitions, step by step, and what questions cost it: with
# change counters and shared digests, and where the server has not loaded the library.  Much
# of this saves time only, and no answer shows that it is lost.  So pages and calls of the
# planner are counted here.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

# All keys of t are even.  The 100 partitions of t are two matrices, the second one of 36; fewer than the 32 of u
# have none.
my $schema = q{
CREATE EXTENSION rf_knowledge;
CREATE TABLE t (p int, k int, m int DEFAULT 0) PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 100) i \gexec
INSERT INTO t SELECT p, 2 * abs(hashint8extended(g * 1000 + p, 1) % 10000000) FROM generate_series(1, 100) p, generate_series(1, 300) g;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE TABLE s (p int, k text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE s%1$s PARTITION OF s FOR VALUES IN (%1$s)', i) FROM generate_series(1, 40) i \gexec
INSERT INTO s SELECT p, 'id-' || md5((g * 1000 + p)::text) FROM generate_series(1, 40) p, generate_series(1, 300) g;
CREATE INDEX s_k ON s USING rangefilter (k);
CREATE TABLE h (p int, k text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE h%1$s PARTITION OF h FOR VALUES IN (%1$s)', i) FROM generate_series(1, 40) i \gexec
INSERT INTO h SELECT p, 'id-' || md5((g * 1000 + p)::text) FROM generate_series(1, 40) p, generate_series(1, 300) g;
CREATE INDEX h_k ON h USING rangefilter (k) WITH (filter = surf, suffix = hash);
CREATE TABLE u (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE u%1$s PARTITION OF u FOR VALUES IN (%1$s)', i) FROM generate_series(1, 32) i \gexec
INSERT INTO u SELECT p, 2 * abs(hashint8extended(g * 1000 + p, 3) % 1000000) FROM generate_series(1, 32) p, generate_series(1, 300) g;
CREATE INDEX u_k ON u USING rangefilter (k);
CREATE TABLE alike (p int, k text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE alike%1$s PARTITION OF alike FOR VALUES IN (%1$s)', i) FROM generate_series(1, 34) i \gexec
INSERT INTO alike SELECT p, repeat('the same', 20) || md5((g * 1000 + p)::text) FROM generate_series(1, 34) p, generate_series(1, 300) g;
CREATE INDEX alike_k ON alike USING rangefilter (k);
CREATE TABLE half (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE half%1$s PARTITION OF half FOR VALUES IN (%1$s)', i) FROM generate_series(1, 4) i \gexec
SELECT format('CREATE INDEX ON half%s USING rangefilter (k)', i) FROM generate_series(1, 2) i \gexec
CREATE TABLE two (p int, a int, b int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE two%1$s PARTITION OF two FOR VALUES IN (%1$s)', i) FROM generate_series(1, 32) i \gexec
INSERT INTO two SELECT p, 2 * abs(hashint8extended(g * 1000 + p, 4) % 1000000), 2 * abs(hashint8extended(g * 1000 + p, 5) % 1000000)
FROM generate_series(1, 32) p, generate_series(1, 300) g;
CREATE INDEX two_a ON two USING rangefilter (a);
CREATE INDEX two_b ON two USING rangefilter (b);
CREATE TABLE other (n int);
-- Too few partitions for digests.
CREATE TABLE small (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE small%1$s PARTITION OF small FOR VALUES IN (%1$s)', i) FROM generate_series(1, 20) i \gexec
INSERT INTO small SELECT p, 2 * abs(hashint8extended(g * 1000 + p, 7) % 1000000) FROM generate_series(1, 20) p, generate_series(1, 20) g;
CREATE INDEX small_k ON small USING rangefilter (k);
-- The keys of the first four partitions span much less than those of the others.
CREATE TABLE narrow (p int, k int) PARTITION BY LIST (p);
SELECT format('CREATE TABLE narrow%1$s PARTITION OF narrow FOR VALUES IN (%1$s)', i) FROM generate_series(1, 36) i \gexec
INSERT INTO narrow SELECT p, 2 * abs(hashint8extended(g * 1000 + p, 8) % CASE WHEN p <= 4 THEN 1000 ELSE 1000000 END)
FROM generate_series(1, 36) p, generate_series(1, 300) g;
CREATE INDEX narrow_k ON narrow USING rangefilter (k);
CREATE TABLE b (p int, k text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE b%1$s PARTITION OF b FOR VALUES IN (%1$s)', i) FROM generate_series(1, 36) i \gexec
INSERT INTO b SELECT p, 'id-' || md5((g * 1000 + p)::text) FROM generate_series(1, 36) p, generate_series(1, 300) g;
CREATE INDEX b_k ON b USING rangefilter (k);

-- The cost of n questions about keys that are not there: pages, and plannings besides one for each.
CREATE FUNCTION cost(query text, n int, seed int DEFAULT 2) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	pages bigint = rf_pages();
	plannings bigint = rf_plannings();
	k bigint;
BEGIN
	FOR i IN 1 .. n LOOP
		k := 2 * abs(hashint8extended(i, seed) % 10000000) + 1;
		EXECUTE 'EXPLAIN ' || format(query, k, k + 20, 'id-' || md5('x' || k));
	END LOOP;
	RETURN format('%s pages, %s plannings', rf_pages() - pages, rf_plannings() - plannings - n);
END $$;
-- The pages that so many runs of a query look at.
CREATE FUNCTION run(query text, n int, seed int DEFAULT 2) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	pages bigint = rf_pages();
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format(query, 2 * abs(hashint8extended(i, seed) % 10000000) + 1);
	END LOOP;
	RETURN format('%s pages', rf_pages() - pages);
END $$;
CREATE TABLE q (k int);
INSERT INTO q SELECT 2 * abs(hashint8extended(g, 2) % 10000000) + 1 FROM generate_series(1, 40) g;
VACUUM ANALYZE q, t, u;
};

my $point = 'SELECT FROM t WHERE k = %1$s';
my $range = 'SELECT FROM t WHERE k BETWEEN %1$s AND %2$s';
my $string = 'SELECT FROM s WHERE k = %3$L';
my $strings = 'SELECT FROM s WHERE k BETWEEN %3$L AND %3$L || \'\'0\'\'';

# Name, session (w writes), SQL, and what it answers: where there are change counters, and where
# it is another one without.
my @steps = (
	[ 'warm up', 'r', q{SELECT cost('SELECT', 1) IS NOT NULL}, 't' ],
	[ 'nothing known', 'r', q{SELECT rf_entry('t')}, '' ],
	[ 'the first question', 'r', "SELECT cost('$point', 1) IS NOT NULL; SELECT rf_entry('t')",
		"t\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 35 current, 35 certain",
		"t\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: none, 0 left out\nt_k matrix 1: none, 0 left out" ],
	[ 'the second one', 'r', "SELECT cost('$point', 1)",
		"1 pages, 0 plannings",
		"101 pages, 0 plannings" ],
	[ 'until there are digests', 'r', "SELECT cost('$point', 60) IS NOT NULL; SELECT rf_entry('t')",
		"t\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 64 current, 64 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],
	[ 'points', 'r', "SELECT cost('$point', 50, 3)",
		"56 pages, 0 plannings" ],
	[ 'ranges', 'r', "SELECT cost('$range', 50, 4)",
		"150 pages, 0 plannings",
		"151 pages, 0 plannings" ],
	[ 'few partitions', 'r', "SELECT cost('$point AND p IN (3, 70)', 50, 5)",
		"81 pages, 0 plannings" ],
	[ 'alternatives', 'r', "SELECT cost('$point OR k = %2\$s', 50, 6)",
		"64 pages, 0 plannings" ],
	[ 'two conditions', 'r', "SELECT cost('$point AND k <> 7 AND m = 1', 50, 7)",
		"101 pages, 0 plannings",
		"1700 pages, 0 plannings" ],
	[ 'no key', 'r', "SELECT cost('SELECT FROM t WHERE k IS NULL', 2)",
		"97 pages, 0 plannings",
		"2 pages, 0 plannings" ],
	[ 'outside', 'r', "SELECT cost('SELECT FROM t WHERE k < -%1\$s', 20)",
		"26 pages, 0 plannings" ],
	[ 'least and greatest', 'r', "SELECT rangefilter_activity_reset(); SELECT cost('SELECT min(m), max(m) FROM t WHERE k = %1\$s', 10); "
		. q{SELECT min(probes), max(probes), min(skips), max(skips) FROM rangefilter_activity WHERE "table"::text ~ '^t[0-9]'},
		"\n69 pages, 0 plannings\n10|10|10|10" ],
	[ 'no key, or one', 'r', "SELECT cost('SELECT FROM t WHERE k IS NULL OR k = %1\$s', 2)",
		"202 pages, 0 plannings" ],
	[ 'a condition that no key fulfils', 'r', "SELECT rangefilter_activity_reset(); SELECT cost('SELECT FROM t WHERE k < 1 AND k > 3', 5) IS NOT NULL; "
		. q{SELECT sum(probes), sum(skips) FROM rangefilter_activity WHERE "table"::text ~ '^t[0-9]'},
		"\nt\n0|0" ],

	# Something else has become visible.
	[ 'another table', 'w', 'INSERT INTO other VALUES (1)', '' ],
	[ 'points after that', 'r', "SELECT cost('$point', 1, 8); SELECT cost('$point', 20, 9); SELECT rf_entry('t')",
		"1 pages, 0 plannings\n22 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 64 current, 64 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"101 pages, 0 plannings\n22 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 64 current, 64 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],

	# A key in one partition.
	[ 'a key', 'w', 'INSERT INTO t VALUES (5, 1)', '' ],
	[ 'points after a key', 'r', "SELECT cost('$point', 1, 8); SELECT cost('$point', 20, 9); SELECT rf_entry('t')",
		"1 pages, 0 plannings\n22 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 64 current, 64 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"104 pages, 0 plannings\n65 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],
	[ 'an own key', 'r', 'INSERT INTO t VALUES (6, 1)', '' ],
	[ 'points after an own key', 'r', "SELECT cost('$point', 1, 8); SELECT cost('$point', 20, 9); SELECT rf_entry('t')",
		"105 pages, 0 plannings\n22 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 64 current, 64 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"105 pages, 0 plannings\n104 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 62 columns, 62 current, 62 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],
	[ 'many keys', 'w', 'INSERT INTO t SELECT 7, 1 - 2 * g FROM generate_series(1, 30) g; SELECT rangefilter_summarize(\'t7_k_idx\') >= 0', 't' ],
	[ 'points after many', 'r', "SELECT cost('$point', 1, 8); SELECT cost('$point', 40, 9); SELECT rf_entry('t')",
		"2 pages, 0 plannings\n86 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"110 pages, 0 plannings\n246 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached, hashed\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 61 columns, 61 current, 61 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],

	# A change of another table.
	[ 'a setting of another table', 'w', 'ALTER TABLE other SET (fillfactor = 90)', '' ],
	[ 'points after that setting', 'r', "SELECT cost('$point', 1, 8); SELECT cost('$point', 1, 8)",
		"2 pages, 0 plannings\n2 pages, 0 plannings",
		"108 pages, 0 plannings\n6 pages, 0 plannings" ],

	# A prepared plan: its guard looks at what has changed, and only once.
	[ 'prepare', 'r', "SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT FROM t WHERE k = 15; SELECT cost('EXECUTE q', 3)",
		"4 pages, -2 plannings" ],
	[ 'another row', 'w', 'INSERT INTO other VALUES (1)', '' ],
	[ 'the guard', 'r', "SELECT cost('EXECUTE q', 1); SELECT cost('EXECUTE q', 3)",
		"0 pages, -1 plannings\n0 pages, -3 plannings",
		"102 pages, -1 plannings\n0 pages, -3 plannings" ],
	[ 'another key', 'w', 'INSERT INTO t VALUES (8, 1)', '' ],
	[ 'the guard after a key', 'r', "SELECT cost('EXECUTE q', 1); SELECT cost('EXECUTE q', 3)",
		"4 pages, -1 plannings\n0 pages, -3 plannings",
		"105 pages, -1 plannings\n0 pages, -3 plannings" ],
	[ 'the key asked for', 'w', 'INSERT INTO t VALUES (9, 15)', '' ],
	[ 'planned again', 'r', "SELECT cost('EXECUTE q', 3); SELECT rf_entry('t')",
		"135 pages, -1 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached, hashed\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"147 pages, -1 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached, hashed\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 59 columns, 59 current, 59 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],

	# Another file of one index, a partition of its own.
	[ 'another file', 'w', "REINDEX INDEX t10_k_idx", '' ],
	[ 'points after a REINDEX', 'r', "SELECT cost('$point', 1, 8) IS NOT NULL; SELECT cost('$point', 20, 9); SELECT rf_entry('t')",
		"t\n55 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached, hashed\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"t\n223 pages, 0 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; 0 own of 100 members; 101 records\nt_k: 100 places, 100 found, 100 located, 100 cached, hashed\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 59 columns, 59 current, 59 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain" ],
	[ 'an index of a partition', 'w', 'CREATE INDEX t11_m ON t11 USING rangefilter (m)', '' ],
	[ 'its question', 'r', "SELECT cost('SELECT FROM t WHERE m = %1\$s', 1) IS NOT NULL; SELECT cost('SELECT FROM t WHERE m = %1\$s', 5); SELECT rf_entry('t')",
		"t\n495 pages, 0 plannings\nentry 3: valid, candidate, 2 indexes, 1 partitioned; 1 own of 100 members; 103 records\nt_k: 100 places, 100 found, 100 located, 0 cached\nt11_m: 1 places, 1 found, 1 located, 1 cached, hashed" ],
	[ 'another partition', 'w', 'CREATE TABLE t101 PARTITION OF t FOR VALUES IN (101)', '' ],
	[ 'a new entry', 'r', "SELECT cost('$point', 1, 8) IS NOT NULL; SELECT rf_entry('t')",
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 102 records\nt_k: 101 places, 101 found, 101 located, 2 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 102 records\nt_k: 101 places, 101 found, 101 located, 101 cached\nt_k matrix 0: none, 0 left out\nt_k matrix 1: none, 0 left out" ],
	[ 'cached', 'r', "SELECT cost('$point', 1, 8); SELECT cost('$point', 20, 9); SELECT rf_entry('t')",
		"2 pages, 0 plannings\n42 pages, 0 plannings\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 102 records\nt_k: 101 places, 101 found, 101 located, 4 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"105 pages, 0 plannings\n1493 pages, 0 plannings\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 102 records\nt_k: 101 places, 101 found, 101 located, 101 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 64 current, 64 certain\nt_k matrix 1: 14336 bits, 2^5 parts each of 7168 buckets of 99, 36 columns, 36 current, 36 certain" ],

	# Few partitions are mapped alone.
	[ 'few', 'n', "SELECT cost('SELECT', 1) IS NOT NULL; SELECT cost('$point AND p IN (3, 70)', 1, 5) IS NOT NULL; SELECT rf_entry('t')",
		"t\nt\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 3 records\nt_k: 101 places, 2 found, 2 located, 2 cached, not mapped, hashed" ],
	[ 'few more', 'n', "SELECT cost('$point AND p IN (1, 70)', 1, 5) IS NOT NULL; SELECT rf_entry('t')",
		"t\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 4 records\nt_k: 101 places, 3 found, 3 located, 3 cached, not mapped, hashed" ],
	[ 'a plan of few', 'n', "PREPARE few AS SELECT FROM t WHERE k = 77 AND p IN (1, 70); SELECT cost('EXECUTE few', 2)",
		"1 pages, -1 plannings" ],
	[ 'one more row of another table', 'w', 'INSERT INTO other VALUES (1)', '' ],
	[ 'the plan of few is checked', 'n', "SELECT cost('EXECUTE few', 1)",
		"0 pages, -1 plannings",
		"2 pages, -1 plannings" ],
	[ 'few too many', 'n', "SELECT cost('$point AND p IN (1, 21, 22, 23)', 1, 5) IS NOT NULL; SELECT rf_entry('t')",
		"t\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 105 records\nt_k: 101 places, 101 found, 101 located, 3 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 64 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain",
		"t\nentry 1: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 105 records\nt_k: 101 places, 101 found, 101 located, 6 cached\nt_k matrix 0: none, 0 left out\nt_k matrix 1: none, 0 left out" ],

	# Strings, whose digests are of hashes.
	[ 'the first question about strings', 'r', "SELECT cost('$string', 1) IS NOT NULL; SELECT rf_entry('s')",
		"t\nentry 5: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\ns_k: 40 places, 40 found, 40 located, 40 cached\ns_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 40 columns, 39 current, 39 certain; of hashes",
		"t\nentry 5: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\ns_k: 40 places, 40 found, 40 located, 40 cached\ns_k matrix 0: none, 0 left out" ],
	[ 'strings until there are digests', 'r', "SELECT cost('$string', 300) IS NOT NULL; SELECT rf_entry('s')",
		"t\nentry 5: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\ns_k: 40 places, 40 found, 40 located, 40 cached\ns_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 40 columns, 40 current, 40 certain; of hashes" ],
	[ 'strings', 'r', "SELECT cost('$string', 50, 3)",
		"52 pages, 0 plannings" ],
	[ 'ranges of strings', 'r', "SELECT cost('$strings', 50, 3)",
		"2073 pages, 0 plannings" ],
	[ 'strings above', 'r', q{SELECT cost('SELECT FROM s WHERE k > ''ie''', 3)},
		"15 pages, 0 plannings" ],
	[ 'strings below', 'r', q{SELECT cost('SELECT FROM s WHERE k < ''ia''', 3)},
		"15 pages, 0 plannings" ],

	[ 'strings that begin alike', 'r', q{SELECT cost('SELECT FROM alike WHERE k = repeat(''the same'', 20) || %3$L', 150) IS NOT NULL; SELECT rf_entry('alike')},
		"t\nentry 6: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 35 records\nalike_k: 34 places, 34 found, 34 located, 34 cached\nalike_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 34 columns, 34 current, 34 certain; of hashes" ],

	# Most partitions must be known before there are digests, and other keys need other ones.
	[ 'too few are asked', 'r', "SELECT cost('SELECT FROM u WHERE k = %1\$s %% 2000000 AND p <= 15', 60) IS NOT NULL; SELECT rf_entry('u')",
		"t\nentry 7: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 33 records\nu_k: 32 places, 32 found, 32 located, 15 cached\nu_k matrix 0: none, 0 left out" ],
	[ 'one is new', 'r', "SELECT cost('SELECT FROM u WHERE k = %1\$s %% 2000000 AND p <= 16', 1) IS NOT NULL; SELECT rf_entry('u')",
		"t\nentry 7: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 33 records\nu_k: 32 places, 32 found, 32 located, 16 cached\nu_k matrix 0: none, 0 left out" ],
	[ 'most are asked', 'r', "SELECT cost('SELECT FROM u WHERE k = %1\$s %% 2000000 AND p <= 16', 60) IS NOT NULL; SELECT rf_entry('u')",
		"t\nentry 7: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 33 records\nu_k: 32 places, 32 found, 32 located, 16 cached\nu_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 9, 16 columns, 16 current, 16 certain" ],
	[ 'keys far from these', 'w', q{INSERT INTO u SELECT p, 1000000000 + 5000 * g FROM generate_series(1, 32) p, generate_series(1, 1200) g;
		SELECT rangefilter_summarize('u_k') > 0}, 't' ],
	[ 'other digests', 'r', "SELECT cost('SELECT FROM u WHERE k = %1\$s', 80) IS NOT NULL; SELECT rf_entry('u'); SELECT cost('SELECT FROM u WHERE k = %1\$s', 20, 4)",
		"t\nentry 7: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 33 records\nu_k: 32 places, 32 found, 32 located, 32 cached\nu_k matrix 0: 72704 bits, 2^5 parts each of 36352 buckets of 865, 32 columns, 32 current, 32 certain\n24 pages, 0 plannings",
		"t\nentry 7: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 33 records\nu_k: 32 places, 32 found, 32 located, 32 cached, hashed\nu_k matrix 0: 72704 bits, 2^5 parts each of 36352 buckets of 865, 32 columns, 32 current, 32 certain\n24 pages, 0 plannings" ],

	# What gates cost: pages of indexes and tables, when the query runs.
	[ 'a gate', 'r', q{PREPARE g (int) AS SELECT count(*) FROM t WHERE k = $1; SELECT run('EXECUTE g(%1$s)', 1, 8) IS NOT NULL; SELECT run('EXECUTE g(%1$s)', 20, 9)},
		"t\n28 pages",
		"t\n1525 pages" ],
	[ 'after a key of one partition', 'w', 'INSERT INTO t VALUES (12, 1)', '' ],
	[ 'the gate after that', 'r', q{SELECT run('EXECUTE g(%1$s)', 1, 8); SELECT run('EXECUTE g(%1$s)', 20, 9)},
		"1 pages\n22 pages",
		"111 pages\n45 pages" ],
	[ 'a loop over a gate', 'r', q{SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
		PREPARE j AS SELECT count(*) FROM q, LATERAL (SELECT FROM t WHERE k = q.k OFFSET 0) t; SELECT run('EXECUTE j', 1) IS NOT NULL; SELECT run('EXECUTE j', 2)},
		"t\n100 pages",
		"t\n10 pages" ],
	[ 'in a session that knows nothing', 'n', q{SELECT run('SELECT', 1) IS NOT NULL; SET plan_cache_mode = force_generic_plan;
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
		PREPARE j AS SELECT count(*) FROM (SELECT generate_series(1, 2000001, 100000) k OFFSET 0) q, LATERAL (SELECT FROM u WHERE k = q.k OFFSET 0) u;
		SELECT run('EXECUTE j', 1) IS NOT NULL; SELECT run('EXECUTE j', 1); SELECT rf_entry('u')},
		"t\nt\n78 pages\nentry 3: valid, candidate, 1 indexes, 1 partitioned; 0 own of 32 members; 33 records\nu_k: 32 places, 32 found, 32 located, 30 cached\nu_k matrix 0: 72704 bits, 2^5 parts each of 36352 buckets of 865, 32 columns, 32 current, 32 certain",
		"t\nt\n558 pages\nentry 3: valid, candidate, 1 indexes, 1 partitioned; 0 own of 32 members; 33 records\nu_k: 32 places, 32 found, 32 located, 32 cached\nu_k matrix 0: 72704 bits, 2^5 parts each of 36352 buckets of 865, 32 columns, 32 current, 32 certain" ],
	[ 'a gate of few members', 'n', q{PREPARE f (int) AS SELECT count(*) FROM u WHERE k = $1 AND p < 5; SELECT run('EXECUTE f(%1$s)', 1, 8) IS NOT NULL; SELECT run('EXECUTE f(%1$s)', 5, 9)},
		"t\n20 pages" ],
	[ 'a hash join', 'r', q{SET enable_hashjoin = on; SET enable_nestloop = off; PREPARE h AS SELECT count(*) FROM q JOIN t USING (k);
		SELECT run('EXECUTE h', 1) IS NOT NULL; SELECT run('EXECUTE h', 2)},
		"t\n22 pages",
		"t\n10 pages" ],

	# No room.
	[ 'no room', 'r', "SET rangefilter.cache_size = 0; SELECT cost('$point', 1, 8) IS NOT NULL; SELECT cost('$point', 2, 8); SELECT rf_entry('t')",
		"t\n214 pages, 0 plannings\nentry 8: valid, candidate, 2 indexes, 1 partitioned; 1 own of 101 members; 103 records\nt_k: 101 places, 101 found, 101 located, 0 cached\nt11_m: 0 places, 0 found, 0 located, 0 cached, not mapped" ],
	[ 'little room', 'r', "SET rangefilter.cache_size = '150kB'; SELECT cost('$point', 1, 8) IS NOT NULL; SELECT cost('$point', 80, 9); SELECT rf_entry('t')",
		"t\n170 pages, 0 plannings\nentry 8: valid, candidate, 2 indexes, 1 partitioned; 1 own of 101 members; 103 records\nt_k: 101 places, 101 found, 101 located, 10 cached\nt_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 82, 63 columns, 63 current, 63 certain\nt_k matrix 1: 15360 bits, 2^5 parts each of 7680 buckets of 82, 36 columns, 36 current, 36 certain\nt11_m: 0 places, 0 found, 0 located, 0 cached, not mapped",
		"t\n8487 pages, 0 plannings\nentry 8: valid, candidate, 2 indexes, 1 partitioned; 1 own of 101 members; 103 records\nt_k: 101 places, 101 found, 101 located, 101 cached\nt_k matrix 0: none, 8 left out\nt_k matrix 1: none, 13 left out\nt11_m: 0 places, 0 found, 0 located, 0 cached, not mapped" ],

	# SuRFs have no digests.  No sizes of the cache are set in this session.
	[ 'strings of SuRFs', 'n', q{SELECT cost('SELECT FROM h WHERE k = %3$L', 300) IS NOT NULL; SELECT rf_entry('h');
		SELECT cost('SELECT FROM h WHERE k = %3$L', 50, 3); SELECT cost('SELECT FROM h WHERE k BETWEEN %3$L AND %3$L || ''0''', 50, 3)},
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nh_k: 40 places, 40 found, 40 located, 40 cached\nh_k matrix 0: none, 0 left out\n2048 pages, 0 plannings\n3487 pages, 0 plannings",
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nh_k: 40 places, 40 found, 40 located, 40 cached\nh_k matrix 0: none, 0 left out\n2048 pages, 0 plannings\n3690 pages, 0 plannings" ],

	# A partition has an index of its own, and changes otherwise.
	[ 'another setting of a partition', 'w', 'ALTER TABLE t11 SET (fillfactor = 90)', '' ],
	[ 'the same indexes', 'r', q{SELECT cost('SELECT FROM t WHERE m = %1$s', 1) IS NOT NULL; SELECT substring(e FROM '^entry \d+') FROM rf_entry('t') e WHERE e ~ '^entry'},
		"t\nentry 8" ],
	# (The last change that the session hears of is that of the partition, and the one before is another table's.)
	[ 'once more a setting of another table', 'w', 'ALTER TABLE other SET (fillfactor = 80)', '' ],
	[ 'the same indexes again', 'r', q{SELECT cost('SELECT FROM t WHERE m = %1$s', 1) IS NOT NULL; SELECT substring(e FROM '^entry \d+') FROM rf_entry('t') e WHERE e ~ '^entry'},
		"t\nentry 8" ],
	[ 'without its own index', 'w', 'DROP INDEX t11_m', '' ],
	[ 'other indexes', 'r', q{SELECT cost('SELECT FROM t WHERE m = %1$s', 1) IS NOT NULL; SELECT substring(e FROM '^entry \d+') FROM rf_entry('t') e WHERE e ~ '^entry'},
		"t\nentry 9" ],

	# Where half of the partitions have an index of their own, only these have places.  One that the table cannot have, for
	# it is about whole rows, is of no kind.
	[ 'half', 'n', q{SELECT cost('SELECT FROM half WHERE k = %1$s', 1) IS NOT NULL; SELECT rf_entry('half')},
		"t\nentry 5: valid, candidate, 1 indexes, 0 partitioned; 2 own of 4 members, needed; 4 records\nhalf1_k_idx: 2 places, 2 found, 2 located, 2 cached, hashed" ],
	[ 'one more', 'w', q{CREATE FUNCTION whole(half1) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN ($1).k; END';
		CREATE INDEX ON half1 USING rangefilter (whole(half1.*)); CREATE INDEX ON half3 USING rangefilter (k);
		CREATE INDEX ON half4 USING rangefilter (p, (k + 1))}, '' ],
	[ 'more than half', 'n', q{SELECT cost('SELECT FROM half WHERE k = %1$s', 1) IS NOT NULL; SELECT rf_entry('half')},
		"t\nentry 6: valid, candidate, 2 indexes, 0 partitioned; 5 own of 4 members, needed; 7 records\nhalf1_k_idx: 4 places, 3 found, 3 located, 3 cached\nhalf4_p_expr_idx: 0 places, 0 found, 0 located, 0 cached, not mapped" ],

	# Under AND one index is asked if it denies, under OR both.
	[ 'two indexes', 'n', q{SELECT cost('SELECT FROM two WHERE a = %1$s %% 2000000', 60) IS NOT NULL; SELECT cost('SELECT FROM two WHERE b = %1$s %% 2000000', 60) IS NOT NULL;
		SELECT rf_entry('two')},
		"t\nt\nentry 7: valid, candidate, 2 indexes, 2 partitioned; own not read, 0 sought; 66 records\ntwo_a: 32 places, 32 found, 32 located, 32 cached\ntwo_a matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 9, 32 columns, 32 current, 32 certain\ntwo_b: 32 places, 32 found, 32 located, 32 cached\ntwo_b matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 9, 32 columns, 32 current, 32 certain" ],
	[ 'one of them denies', 'n', q{SELECT rangefilter_activity_reset(); SELECT cost('SELECT FROM two WHERE a = -1 AND b = -1', 10) IS NOT NULL;
		SELECT right(index::text, 5), sum(probes), sum(skips) FROM rangefilter_activity WHERE "table"::text ~ '^two' GROUP BY 1 ORDER BY 1},
		"\nt\na_idx|320|320\nb_idx|0|0" ],
	[ 'both deny', 'n', q{SELECT rangefilter_activity_reset(); SELECT cost('SELECT FROM two WHERE a = -1 OR b = -1', 10) IS NOT NULL;
		SELECT right(index::text, 5), sum(probes), sum(skips) FROM rangefilter_activity WHERE "table"::text ~ '^two' GROUP BY 1 ORDER BY 1},
		"\nt\na_idx|320|320\nb_idx|320|320" ],
	[ 'both deny, for the least and the greatest', 'n', q{SELECT rangefilter_activity_reset(); SELECT cost('SELECT min(p), max(p) FROM two WHERE a = -1 OR b = -1', 10) IS NOT NULL;
		SELECT right(index::text, 5), sum(probes), sum(skips) FROM rangefilter_activity WHERE "table"::text ~ '^two' GROUP BY 1 ORDER BY 1},
		"\nt\na_idx|320|320\nb_idx|320|320" ],

	# A guard when the session has forgotten digests and cached metapages.
	[ 'a plan with denials', 'n', q{PREPARE two AS SELECT FROM two WHERE a = -1 OR b = -1; SELECT cost('EXECUTE two', 2)},
		"2 pages, -1 plannings" ],
	[ 'a row of another table', 'w', 'INSERT INTO other VALUES (1)', '' ],
	[ 'after all was forgotten', 'n', q{SET rangefilter.cache_size = '9MB'; SELECT cost('SELECT', 1) IS NOT NULL; SELECT rf_entry('two');
		SELECT cost('EXECUTE two', 1); SELECT cost('EXECUTE two', 1); SELECT rf_entry('two')},
		"t\nentry 7: valid, candidate, 2 indexes, 2 partitioned; own not read, 0 sought; 66 records\ntwo_a: 32 places, 32 found, 32 located, 0 cached\ntwo_b: 32 places, 32 found, 32 located, 0 cached\n128 pages, -1 plannings\n0 pages, -1 plannings\nentry 7: valid, candidate, 2 indexes, 2 partitioned; own not read, 0 sought; 66 records\ntwo_a: 32 places, 32 found, 32 located, 0 cached, hashed\ntwo_b: 32 places, 32 found, 32 located, 0 cached, hashed" ],

	[ 'when all indexes are opened', 'n', "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT cost('EXECUTE two', 1); COMMIT",
		"326 pages, -1 plannings" ],

	# The same with other strings.
	[ 'other strings', 'w', q{TRUNCATE h; INSERT INTO h SELECT p, 'other-' || md5((g * 1000 + p)::text) FROM generate_series(1, 40) p, generate_series(1, 300) g;
		SELECT rangefilter_summarize('h_k') > 0}, 't' ],
	[ 'none of these', 'n', q{SELECT cost('SELECT FROM h WHERE k = ''other-'' || right(%3$L, 32)', 300) IS NOT NULL; SELECT rf_entry('h')},
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nh_k: 40 places, 40 found, 40 located, 40 cached\nh_k matrix 0: none, 0 left out" ],

	# Filters with hashes have digests.
	[ 'other filters', 'w', q{DO $$ BEGIN FOR i IN 1 .. 40 LOOP
			EXECUTE format('ALTER INDEX h%s_k_idx RESET (filter, suffix)', i); EXECUTE format('REINDEX INDEX h%s_k_idx', i);
		END LOOP; END $$}, '' ],
	[ 'digests of these', 'n', q{SELECT cost('SELECT FROM h WHERE k = ''other-'' || right(%3$L, 32)', 300) IS NOT NULL; SELECT rf_entry('h')},
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nh_k: 40 places, 40 found, 40 located, 40 cached\nh_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 40 columns, 40 current, 40 certain; of hashes" ],

	# Digests of strings need no partition in particular.
	[ 'more strings', 'w', q{CREATE TABLE v (p int, k text COLLATE "C") PARTITION BY LIST (p);
		DO $$ BEGIN FOR i IN 1 .. 40 LOOP EXECUTE format('CREATE TABLE v%1$s PARTITION OF v FOR VALUES IN (%1$s)', i); END LOOP; END $$;
		INSERT INTO v SELECT * FROM s; CREATE INDEX v_k ON v USING rangefilter (k)}, '' ],
	[ 'three of four partitions', 'w', "SELECT cost('SELECT FROM v WHERE k = %3\$L AND p IN (" . join(', ', grep { $_ % 4 != 1 } 1 .. 40) . ")', 300) IS NOT NULL; SELECT rf_entry('v')",
		"t\nentry 2: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nv_k: 40 places, 40 found, 40 located, 30 cached\nv_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 30 columns, 30 current, 30 certain; of hashes",
		"t\nentry 2: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nv_k: 40 places, 40 found, 40 located, 30 cached\nv_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 30 columns, 30 current, 30 certain; of hashes" ],

	# Two indexes of the same operator class: a gate asks the digests of the second one.
	[ 'a gate of the second of two', 'r', q{SELECT cost('SELECT FROM two WHERE a = %1$s %% 2000000', 60) IS NOT NULL; SELECT cost('SELECT FROM two WHERE b = %1$s %% 2000000', 60) IS NOT NULL;
		SELECT count(*) >= 20 FROM (SELECT b FROM two WHERE p = 7 LIMIT 20) x, LATERAL (SELECT FROM two WHERE b = x.b OFFSET 0) y;
		SELECT run('SELECT FROM (SELECT b FROM two WHERE p = 7 LIMIT 20) x, LATERAL (SELECT FROM two WHERE b = x.b OFFSET 0) y', 1)},
		"t\nt\nt\n127 pages",
		"t\nt\nt\n746 pages" ],

	# A plan that relies on digests: none of the indexes is looked at, except for predicate locks.
	[ 'a plan by digests', 'x', "PREPARE digests AS SELECT FROM t WHERE k = 79; SELECT cost('EXECUTE digests', 2) IS NOT NULL",
		't' ],
	[ 'a further row of another table', 'w', 'INSERT INTO other VALUES (1)', '' ],
	[ 'the plan by digests is checked', 'x', "SELECT cost('EXECUTE digests', 1)",
		"0 pages, -1 plannings",
		"106 pages, -1 plannings" ],
	[ 'under SERIALIZABLE', 'x', q{BEGIN ISOLATION LEVEL SERIALIZABLE; EXECUTE digests;
		SELECT count(DISTINCT relation) FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND relation::regclass::text ~ '^t\d+_k_idx'; COMMIT},
		'101' ],
	# Where there are too few partitions for digests, none are made, and none for a question that they do not answer.
	[ 'too few for digests', 'x', "SELECT cost('SELECT FROM small WHERE k = %1\$s', 1) IS NOT NULL; SELECT rf_entry('small')",
		"t\nentry 2: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 21 records\nsmall_k: 20 places, 20 found, 20 located, 20 cached" ],
	[ 'a plan without digests', 'x', "PREPARE small AS SELECT FROM small WHERE k = 79; SELECT cost('EXECUTE small', 2)",
		"1 pages, -1 plannings" ],
	[ 'still a row of another table', 'w', 'INSERT INTO other VALUES (1)', '' ],
	[ 'it is checked in order', 'x', "SELECT cost('EXECUTE small', 1); SELECT rf_entry('small')",
		"0 pages, -1 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 21 records\nsmall_k: 20 places, 20 found, 20 located, 20 cached",
		"20 pages, -1 plannings\nentry 2: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 21 records\nsmall_k: 20 places, 20 found, 20 located, 20 cached" ],
	[ 'a first question that digests do not answer', 'x', "SELECT cost('SELECT FROM b WHERE k IS NULL AND p <= 34', 1) IS NOT NULL; SELECT rf_entry('b')",
		"t\nentry 3: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 37 records\nb_k: 36 places, 36 found, 36 located, 34 cached" ],
	# Strings, some of which the session does not know.
	[ 'strings of some partitions', 'x', "SELECT cost('SELECT FROM b WHERE k = %3\$L AND p <= 34', 60) IS NOT NULL; SELECT rf_entry('b')",
		"t\nentry 3: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 37 records\nb_k: 36 places, 36 found, 36 located, 34 cached\nb_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 34 columns, 34 current, 34 certain; of hashes" ],
	# A session gives up where four partitions can have no digests.
	[ 'partitions that can have no digests', 'x', "SELECT cost('SELECT FROM narrow WHERE k = %1\$s', 1) IS NOT NULL; SELECT rf_entry('narrow')",
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 37 records\nnarrow_k: 36 places, 36 found, 36 located, 36 cached\nnarrow_k matrix 0: 14336 bits, 2^5 parts each of 7168 buckets of 9, 0 columns, 0 current, 0 certain",
		"t\nentry 4: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 37 records\nnarrow_k: 36 places, 36 found, 36 located, 36 cached\nnarrow_k matrix 0: none, 0 left out" ],
	# A partition whose filter is of another kind has no digest.
	[ 'another filter', 'w', 'ALTER INDEX v1_k_idx SET (filter = surf); REINDEX INDEX v1_k_idx', '' ],
	[ 'the others', 'x', "SELECT cost('SELECT FROM v WHERE k = %3\$L AND p IN (1, 5, 9, " . join(', ', grep { $_ % 4 != 1 } 1 .. 40) . ")', 120) IS NOT NULL; SELECT rf_entry('v')",
		"t\nentry 5: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nv_k: 40 places, 40 found, 40 located, 7 cached\nv_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 32 columns, 32 current, 32 certain; of hashes",
		"t\nentry 5: valid, candidate, 1 indexes, 1 partitioned; own not read, 0 sought; 41 records\nv_k: 40 places, 40 found, 40 located, 33 cached\nv_k matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 32 columns, 32 current, 32 certain; of hashes" ]);

for my $kind ('shared', 'own')
{
	my $node = new_server($kind,
		conf => "max_locks_per_transaction = 512\nrangefilter.defer_partitions = 1000\n"
		  . ($kind eq 'own' ? "shared_preload_libraries = ''\nsession_preload_libraries = 'rangefilter'\n" : ''));

	$node->safe_psql('postgres', $schema);
	my %sessions = map { $_ => open_session($node) } 'r', 'w', 'n', 'x';
	for my $step (@steps)
	{
		my ($name, $session, $sql, $expected, $without) = @$step;

		my $got = ask($sessions{$session}, $sql);

		$expected = $without if $kind eq 'own' && defined $without;
		# From PostgreSQL 16 on core reads a few pages more or less to plan or execute a query.
		s/\d+ pages/pages/g for $node->pg_version < 16 ? () : ($got, $expected);
		is($got, $expected, "$kind: $name");
	}

	# Queries of a table that has no such index are not prepared for skipping.
	ask($sessions{n}, 'CREATE TABLE bare (p int) PARTITION BY LIST (p); CREATE TABLE bare1 PARTITION OF bare FOR VALUES IN (1)');
	is(ask($sessions{n}, "SELECT cost('SELECT FROM bare', 1) IS NOT NULL; SELECT rf_entry('bare')"), "t\nentry 8: valid, no candidate, 0 indexes, 0 partitioned; 0 own of 1 members, needed; 0 records", "$kind: no index");
	# Nor are those of other tables, also in subqueries: changing the setting does not have them planned anew.
	like(ask($sessions{n}, q{PREPARE plain AS SELECT (SELECT count(*) FROM (SELECT n FROM other OFFSET 0) x); SELECT cost('EXECUTE plain', 2);
			SET rangefilter.enable = off; RESET rangefilter.enable; SELECT cost('EXECUTE plain', 1)}), qr/, -1 plannings\n.*, -1 plannings$/, "$kind: a plan that does not depend on the setting");

	# Keys have at most eight columns; a partitioned index of more is none of ours.
	my @columns = map { "c$_" } 1 .. 9;
	ask($sessions{n}, 'CREATE TABLE broad (p int, ' . join(', ', map { "$_ int" } @columns) . ') PARTITION BY LIST (p);'
		  . ' CREATE TABLE broad1 PARTITION OF broad FOR VALUES IN (1);'
		  . " CREATE INDEX broad_9 ON ONLY broad USING rangefilter (@{[ join ', ', @columns ]});"
		  . " CREATE INDEX broad_8 ON ONLY broad USING rangefilter (@{[ join ', ', @columns[0 .. 7] ]});"
		  . " CREATE INDEX broad1_8 ON broad1 USING rangefilter (@{[ join ', ', @columns[1 .. 8] ]})");
	is(ask($sessions{n}, "SELECT cost('SELECT FROM broad WHERE c1 = 1', 1) IS NOT NULL; SELECT rf_entry('broad')"), "t\nentry 9: valid, candidate, 2 indexes, 1 partitioned; 1 own of 1 members, needed; 3 records\nbroad_8: 1 places, 0 found, 0 located, 0 cached\nbroad1_8: 0 places, 0 found, 0 located, 0 cached, not mapped", "$kind: many columns");

	# An index of a partition, about an expression, that somebody has locked: the same.
	ask($sessions{w}, 'BEGIN; REINDEX INDEX half4_p_expr_idx');
	ask($sessions{n}, 'ALTER TABLE ONLY half ALTER p SET DEFAULT 1');
	my $half = "SELECT cost('SELECT FROM half WHERE k = 1 AND p < 4', 1) IS NOT NULL; SELECT rf_entry('half')";
	like(ask($sessions{n}, $half), qr/, 1 indexes, 0 partitioned; 4 own .*half1_k_idx: 4 places, 3 found/s, "$kind: a partition's locked index");
	ask($sessions{w}, 'COMMIT');
	like(ask($sessions{n}, $half), qr/, 2 indexes, 0 partitioned; 5 own/, "$kind: the partition's index is not locked any more");

	# Between the indexes of this table's partitions there will be many others.
	ask($sessions{w}, 'CREATE TABLE far (p int, k int) PARTITION BY LIST (p); CREATE TABLE far1 PARTITION OF far FOR VALUES IN (1);'
		  . ' CREATE INDEX ON far1 USING rangefilter (k)');

	# A gate's first partitions may lack an index.  The digests of the others are asked nevertheless.
	ask($sessions{n}, q{CREATE TABLE late (p int, k int, l int DEFAULT 0) PARTITION BY LIST (p);
		DO $$ BEGIN FOR i IN 1 .. 40 LOOP
			EXECUTE format('CREATE TABLE late%1$s PARTITION OF late FOR VALUES IN (%1$s)', i);
			EXECUTE format('INSERT INTO late SELECT %s, 2 * abs(hashint8extended(g * 1000 + %1$s, 6) %% 10000000) FROM generate_series(1, 300) g', i);
			IF i > 1 THEN EXECUTE format('CREATE INDEX ON late%s USING rangefilter (l)', i); END IF;
			IF i > 2 THEN EXECUTE format('CREATE INDEX ON late%s USING rangefilter (k)', i); END IF;
		END LOOP; END $$;
		ANALYZE late;
		SET enable_nestloop = off; SET enable_hashjoin = on;
		PREPARE late_point (int) AS SELECT count(*) FROM late WHERE k = $1;
		PREPARE late_join AS SELECT count(*) FROM (SELECT k FROM q LIMIT 2) x JOIN late USING (k) WHERE l = (SELECT 0)});
	for (['late_point(%1$s)', "t\n21 pages"], ['late_join', "t\n30 pages"])
	{
		my ($query, $expected) = @$_;
		my $got = ask($sessions{n}, "SELECT run('EXECUTE $query', 40) IS NOT NULL; SELECT run('EXECUTE $query', 5, 3)");
		s/\d+ pages/pages/ for $node->pg_version < 16 ? () : ($got, $expected);
		is($got, $expected, "$kind: $query beside partitions without an index");
	}

	# A prepared plan relies on digests of the partitions' own indexes, the first of which is dropped then.
	is(ask($sessions{n}, q{SELECT cost('SELECT FROM late WHERE k = %1$s', 60) IS NOT NULL;
			PREPARE late_denied AS SELECT count(*) FROM late WHERE k = 77; EXECUTE late_denied}), "t\n0", "$kind: denied by the digests of partitions' own indexes");
	# Who drops an index may write rows before he commits.  It is asked again, though here the transaction does not commit.
	my ($before) = ask($sessions{n}, "SELECT cost('EXECUTE late_denied', 1)") =~ /^(\d+) pages/;
	ask($sessions{w}, 'BEGIN; DROP INDEX late3_k_idx; ROLLBACK');
	my ($after) = ask($sessions{n}, "SELECT cost('EXECUTE late_denied', 1)") =~ /^(\d+) pages/;
	cmp_ok($after, '>', $before, "$kind: one of these is about to be dropped");
	ask($sessions{w}, 'DROP INDEX late3_k_idx; INSERT INTO late VALUES (3, 77)');
	is(ask($sessions{n}, 'SELECT count(*) FROM late WHERE k = 79; EXECUTE late_denied'), "0\n1", "$kind: one of these is dropped");

	# Such a plan, when the digests are forgotten, and the OID of an index is that of one on another column.
	is(ask($sessions{n}, q{PREPARE late_reused AS SELECT count(*) FROM late WHERE k = 81; EXECUTE late_reused; SET rangefilter.cache_size = '10MB'}), '0', "$kind: denied once more");
	ask($sessions{w}, "UPDATE pg_index SET indkey = '1' WHERE indexrelid = 'late4_k_idx'::regclass; REINDEX INDEX late4_k_idx; INSERT INTO late VALUES (4, 81)");
	is(ask($sessions{n}, 'SELECT 1; EXECUTE late_reused'), "1\n1", "$kind: an OID that is used again");
	# ... and where the index is that of a partitioned one.
	ask($sessions{w}, q{CREATE TABLE reused (p int, k int) PARTITION BY LIST (p); CREATE TABLE reused1 PARTITION OF reused FOR VALUES IN (1);
		INSERT INTO reused SELECT 1, g FROM generate_series(1, 50) g; CREATE INDEX ON reused USING rangefilter (k)});
	is(ask($sessions{n}, 'SELECT count(*) FROM reused WHERE k = 81'), '0', "$kind: an index that a partitioned one has");
	ask($sessions{w}, "UPDATE pg_index SET indkey = '1' WHERE indexrelid = 'reused1_k_idx'::regclass; REINDEX INDEX reused1_k_idx; INSERT INTO reused VALUES (1, 81)");
	is(ask($sessions{n}, 'SELECT count(*) FROM reused WHERE k = 81'), '1', "$kind: the OID of such an index that is used again");

	# Where entries are in use, and in a planning that is nested in another one, nothing is forgotten to make room.
	ask($sessions{n}, q{CREATE FUNCTION nested() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN EXECUTE ''SELECT rf_room(false)''; RETURN 1; END'});
	for (['rf_room(true)', 3], ['nested()', 3], ['rf_room(false)', 0])
	{
		my ($call, $cached) = @$_;
		like(ask($sessions{n}, "$half; SELECT $call IS NULL; SELECT rf_entry('half')"),
			qr/^t\n.*[ft]\nentry[^\n]*\nhalf1_k_idx: [^\n]* $cached cached/s, "$kind: room by $call");
	}

	# Nor is an entry freed that a planning uses in which others are nested.
	ask($sessions{n}, q{SET rangefilter.cache_size = '64kB';
		CREATE FUNCTION others() RETURNS int STABLE LANGUAGE plpgsql AS $$
		BEGIN EXECUTE 'SELECT FROM t WHERE k = 1'; EXECUTE 'SELECT FROM u WHERE k = 1'; EXECUTE 'SELECT FROM two WHERE a = 1'; RETURN 4; END $$});
	my ($entry) = ask($sessions{n}, $half) =~ /(entry \d+):/;
	like(ask($sessions{n}, "EXPLAIN SELECT FROM half WHERE k = 1 AND k + 0 < others(); SELECT rf_entry('half')"), qr/$entry:/, "$kind: an entry in use");
	ask($sessions{n}, "SET rangefilter.cache_size = '9MB'");

	# A partitioned index that somebody has locked is not waited for, but looked for again.  (From PostgreSQL 16 on core waits for it.)
	if ($node->pg_version < 16)
	{
		ask($sessions{w}, 'BEGIN; ALTER INDEX u_k SET TABLESPACE pg_default');
		ask($sessions{n}, 'COMMENT ON TABLE u IS NULL; ALTER TABLE ONLY u ALTER p SET DEFAULT 1');
		like(ask($sessions{n}, "SELECT cost('SELECT FROM u WHERE k = 1', 1) IS NOT NULL; SELECT rf_entry('u')"), qr/0 partitioned; 32 own/, "$kind: a locked index");
		ask($sessions{w}, 'ROLLBACK');
		like(ask($sessions{n}, "SELECT cost('SELECT FROM u WHERE k = 1', 1) IS NOT NULL; SELECT rf_entry('u')"), qr/1 partitioned/, "$kind: the index is not locked any more");
	}

	# Indexes of partitions that the session has not read have no digests.
	ask($sessions{n}, q{DO $$ BEGIN FOR i IN 1 .. 32 LOOP EXECUTE format('CREATE INDEX ON u%s USING rangefilter ((p + 0))', i); END LOOP; END $$});
	is(ask($sessions{w}, q{SET plan_cache_mode = force_generic_plan; PREPARE u (int) AS SELECT count(*) FROM u WHERE p + 0 = $1; EXECUTE u (99)}), '0', "$kind: indexes of partitions alone");

	# Cached metapages lack what the session itself has inserted: they are not asked then, lest the guard plan again.
	ask($sessions{n}, q{CREATE TABLE mine (p int, k int) PARTITION BY LIST (p); CREATE TABLE mine1 PARTITION OF mine FOR VALUES IN (1);
		INSERT INTO mine SELECT 1, 2 * g FROM generate_series(1, 300) g; CREATE INDEX mine_k ON mine USING rangefilter (k)});
	for (1001 .. 1003)
	{
		is(ask($sessions{n}, "SELECT cost('SELECT FROM mine WHERE k = $_', 2) ~ ', 0 plannings'; INSERT INTO mine VALUES (1, $_); SELECT cost('SELECT FROM mine WHERE k = $_', 1) ~ ', 0 plannings'"),
			"t\nt", "$kind: a key that the session itself has inserted, $_");
	}

	# An index that has not changed is not asked again by a guard: that would read its filter, too.
	ask($sessions{w}, q{SELECT rangefilter_summarize('mine_k')});
	ask($sessions{n}, "PREPARE mine AS SELECT FROM mine WHERE k = 301; SELECT cost('EXECUTE mine', 2)");
	ask($sessions{w}, 'INSERT INTO other VALUES (1)');
	my ($got, $expected) = (ask($sessions{n}, "SELECT cost('EXECUTE mine', 1)"), ($kind eq 'own' ? 1 : 0) . ' pages, -1 plannings');
	s/\d+ pages/pages/g for $node->pg_version < 16 ? () : ($got, $expected);
	is($got, $expected, "$kind: the guard of an index that has not changed");

	# Rows of the catalogs between those of the partitions are not all read.
	ask($sessions{w}, 'CREATE TABLE far2 PARTITION OF far FOR VALUES IN (2); CREATE INDEX ON far USING rangefilter (k)');
	my ($first, $last) = ask($sessions{n}, q{BEGIN; SELECT pg_stat_get_xact_tuples_returned('pg_index_indexrelid_index'::regclass);
		SELECT count(*) FROM far WHERE k = 1; SELECT pg_stat_get_xact_tuples_returned('pg_index_indexrelid_index'::regclass); COMMIT}) =~ /^(\d+)\n0\n(\d+)$/;
	cmp_ok($last - $first, '<', 60, "$kind: indexes that are far from each other");

	# Digests of partitions that have one key each, and of strings where one partition has another filter.
	ask($sessions{w}, q{CREATE TABLE one (p int, k int) PARTITION BY LIST (p); CREATE TABLE odd (p int, k text COLLATE "C") PARTITION BY LIST (p);
		DO $$ BEGIN FOR i IN 1 .. 32 LOOP
			EXECUTE format('CREATE TABLE one%1$s PARTITION OF one FOR VALUES IN (%1$s)', i);
			EXECUTE format('CREATE TABLE odd%1$s PARTITION OF odd FOR VALUES IN (%1$s)', i);
		END LOOP; END $$;
		INSERT INTO one SELECT p, 8 FROM generate_series(1, 32) p;
		INSERT INTO odd SELECT p, CASE WHEN p = 2 THEN 'other-' ELSE 'id-' END || md5((g * 1000 + p)::text)
		FROM generate_series(1, 32) p, generate_series(1, 300) g WHERE p <> 2 OR g <= 60;
		CREATE INDEX ON one USING rangefilter (k); CREATE INDEX ON odd USING rangefilter (k);
		ALTER INDEX odd2_k_idx SET (filter = surf); REINDEX INDEX odd2_k_idx});
	is(ask($sessions{n}, q{SELECT cost('SELECT FROM one WHERE k = %1$s', 60) IS NOT NULL; SELECT e FROM rf_entry('one') e WHERE e ~ 'matrix'}),
		"t\none_k_idx matrix 0: 1024 buckets of 1, 32 columns, 32 current, 32 certain", "$kind: one key each") if $kind eq 'shared';
	is(ask($sessions{n}, q{SELECT cost('SELECT FROM odd WHERE k = %3$L', 300) IS NOT NULL; SELECT e FROM rf_entry('odd') e WHERE e ~ 'matrix'}),
		"t\nodd_k_idx matrix 0: 15360 bits, 2^5 parts each of 7680 buckets of 75059993789509, 31 columns, 31 current, 31 certain; of hashes", "$kind: another filter in one partition");

	# In a database with few rangefilter indexes pg_index is not read for each partition of a table without one.
	if ($kind eq 'shared')
	{
		$node->safe_psql('postgres', 'CREATE DATABASE without');
		my ($reader, $writer) = map { open_session($node, 'without') } 1 .. 2;
		my $rows = "SELECT pg_stat_get_xact_tuples_returned('pg_index_indrelid_index'::regclass)";
		my $planned = sub {
			my ($begin) = @_;
			my ($before, $after) = ask($reader, "$begin$rows; EXPLAIN SELECT FROM plain WHERE p = 5 AND k = 1; $rows") =~ /^(\d+)\n.*\n(\d+)$/s;
			my ($entry) = ask($reader, "SELECT rf_entry('plain')") =~ /; (.*members)/;
			return (($after - $before < 30 ? 'few' : 'many') . " rows read, $entry");
		};

		ask($writer, q{CREATE EXTENSION rangefilter; CREATE EXTENSION rf_knowledge; CREATE TABLE plain (p int, k int) PARTITION BY LIST (p);
			DO $$ BEGIN FOR i IN 1 .. 200 LOOP EXECUTE format('CREATE TABLE plain%1$s PARTITION OF plain FOR VALUES IN (%1$s)', i); END LOOP; END $$;
			CREATE INDEX ON plain (k); CREATE TABLE elsewhere (k int, l int); CREATE INDEX ON elsewhere USING rangefilter (k, l)});
		is($planned->('BEGIN; '), 'few rows read, 0 own of 200 members', 'first planning without an index');
		ask($writer, 'CREATE INDEX plain7_k ON plain7 USING rangefilter (k)');
		is($planned->(''), 'few rows read, 1 own of 200 members', 'an index of one partition');
		ask($reader, 'COMMIT; BEGIN; CREATE INDEX plain8_k ON plain8 USING rangefilter (k)');
		is($planned->(''), 'few rows read, 2 own of 200 members', 'one that the session itself makes');
		ask($reader, 'ROLLBACK');
		is($planned->('BEGIN; '), 'few rows read, 1 own of 200 members', 'which is rolled back');
		ask($writer, 'DROP INDEX plain7_k; CREATE INDEX plain9_k ON plain9 USING rangefilter (k)');
		is($planned->(''), 'few rows read, 1 own of 200 members', 'another one');
		is(ask($reader, "EXPLAIN (COSTS OFF) SELECT FROM plain WHERE p IN (8, 9) AND k = 1") =~ /Partitions Skipped: (.*)/ ? $1 : 'none', '1 of 2', 'which is asked');
		# More invalidations than are remembered.
		ask($writer, q{DROP INDEX plain9_k; DO $$ BEGIN FOR i IN 1 .. 600 LOOP CREATE TEMP TABLE x (); DROP TABLE x; END LOOP; END $$});
		is($planned->(''), 'few rows read, 0 own of 200 members', 'after many invalidations');
		# With as many indexes elsewhere, partitions are looked at.
		ask($writer, q{DO $$ BEGIN FOR i IN 1 .. 201 LOOP CREATE INDEX ON elsewhere USING rangefilter (k); END LOOP; END $$});
		ask($reader, 'COMMIT; ALTER TABLE plain ALTER k SET NOT NULL');
		is($planned->('BEGIN; '), 'many rows read, 0 own of 200 members', 'more indexes than partitions');
		ask($reader, 'COMMIT');
		ask($writer, 'CREATE INDEX plain1_k ON plain1 USING rangefilter (k)');
		is($planned->('BEGIN; '), 'many rows read, 1 own of 200 members', 'and one of a partition');
		close_session($_) for $reader, $writer;
	}

	# A session's own digests are less exact where there is less room.
	if ($kind eq 'own')
	{
		my $tight = open_session($node);

		is(ask($tight, "SET rangefilter.cache_size = '350kB'; SELECT cost('$point', 80) IS NOT NULL; SELECT e FROM rf_entry('t') e WHERE e ~ 'matrix'"),
			"t\nt_k matrix 0: 7680 bits, 2^5 parts each of 3840 buckets of 163, 64 columns, 64 current, 64 certain\nt_k matrix 1: 7168 bits, 2^5 parts each of 3584 buckets of 197, 36 columns, 36 current, 36 certain", "$kind: little room for digests");
		close_session($tight);
	}

	# A gate makes room for what it reads, in place of what the session knows of other tables.
	if ($kind eq 'shared')
	{
		my $full = open_session($node);
		ask($full, q{SET plan_cache_mode = force_generic_plan; PREPARE narrow (int) AS SELECT count(*) FROM narrow WHERE k = $1; SELECT run('EXECUTE narrow(%1$s)', 1);
			SELECT cost('SELECT FROM t WHERE k IS NULL', 1);
			SELECT set_config('rangefilter.cache_size', sum(bytes) / 1024 - 45 || 'kB', false) FROM rangefilter_session_cache() WHERE what NOT LIKE 'wormhole%';
			SELECT cost('SELECT FROM t WHERE k IS NULL', 1); SELECT cost('SELECT FROM t WHERE k IS NULL', 1)});
		# (No query is planned between what the session knows of the table and the gate: that would make room, too.)
		is(ask($full, q{SELECT cost('SELECT FROM t WHERE k IS NULL', 1) IS NOT NULL; EXECUTE narrow(77);
				SELECT bool_or(e ~ ' \d\d cached') FROM rf_entry('narrow') e}), "t\n0\nt", "$kind: room that a gate makes");
		close_session($full);
	}
	close_session($_) for values %sessions;

	# Where pages are read from disk, indexes of partitions that are left out are not locked for longer than the question.
	$node->restart;
	is($node->safe_psql('postgres', q{BEGIN; SELECT count(*) FROM t WHERE k IS NULL;
			SELECT count(*) < 10 FROM pg_locks WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^t\d+_k_idx'; COMMIT}), "0\nt", "$kind: pages on disk");
	$node->stop;
}
done_testing();
