# Crashes where WAL is not the whole story: unlogged tables, wal_level =
# minimal, prepared transactions.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('kinds', conf => "wal_level = minimal\nmax_wal_senders = 0\n");

sub crash
{
	$node->stop('immediate');
	$node->start;
	return;
}

sub value
{
	my ($sql) = @_;

	return $node->safe_psql('postgres', $sql);
}

#
# Unlogged tables: empty after a crash, and so are their indexes
#
my $unlogged = q{
CREATE UNLOGGED TABLE u (k int, b text COLLATE "C");
INSERT INTO u SELECT g, 'b' || g FROM generate_series(1, 1000) g;
CREATE INDEX u_k ON u USING rangefilter (k);
CREATE INDEX u_b ON u USING rangefilter (b);
INSERT INTO u SELECT g, 'b' || g FROM generate_series(2001, 2050) g;
};
my $look = q{SELECT count(*), rangefilter_may_contain('u_k', 5, 5), rangefilter_may_contain('u_b', 'b5', 'b5'),
	rangefilter_may_contain('u_k', 7777, 7777), (SELECT count(*) FROM u WHERE k = 7777) FROM u};

# A crash right after, after a checkpoint, and after a clean restart before it.
foreach my $between ('', 'CHECKPOINT', 'restart')
{
	my $name = "unlogged, $between";

	value($unlogged);
	is(value($look), '1050|t|t|f|0', "$name: before");
	$between eq 'restart' ? $node->restart : value($between);
	is(value($look), '1050|t|t|f|0', "$name: still") if $between;
	crash();
	is(value($look), '0|f|f|f|0', "$name: empty");
	is(value(q{INSERT INTO u VALUES (7777, 'new') RETURNING k}), '7777', "$name: goes on");
	is(value($look), '1|f|f|t|1', "$name: finds the new row");
	value(q{INSERT INTO u SELECT g, 'c' || g FROM generate_series(1, 5000) g; VACUUM u});
	is(value(q{SELECT rangefilter_verify('u_k'), rangefilter_verify('u_b'), rangefilter_may_contain('u_k', 5001, 7776)}),
		'5001|5001|f', "$name: summarizes");
	crash();
	is(value($look), '0|f|f|f|0', "$name: empty again");
	value('ALTER TABLE u SET LOGGED; INSERT INTO u VALUES (7777)');
	crash();
	is(value($look), '1|f|f|t|1', "$name: logged");
	value('DROP TABLE u');
}

# An unlogged index made by REINDEX and TRUNCATE has an empty one in wait, too.
value($unlogged);
value('REINDEX TABLE u; TRUNCATE u; INSERT INTO u VALUES (1)');
crash();
is(value('SELECT count(*) FROM u'), '0', 'unlogged, truncated');
is(value(q{INSERT INTO u VALUES (7777, 'x'); SELECT rangefilter_verify('u_k')}), '1', 'unlogged, truncated: goes on');

#
# wal_level = minimal: what is new in a transaction is synced, not logged
#
value(q{
BEGIN;
CREATE TABLE m (p int, k int, b text COLLATE "C") PARTITION BY LIST (p);
CREATE TABLE m1 PARTITION OF m FOR VALUES IN (1);
CREATE TABLE m2 PARTITION OF m FOR VALUES IN (2);
INSERT INTO m SELECT 1 + k % 2, k, 'b' || k FROM generate_series(1, 3000) k;
CREATE INDEX m_k ON m USING rangefilter (k);
CREATE INDEX m_b ON m USING rangefilter (b);
INSERT INTO m SELECT 1, k, 'late' || k FROM generate_series(10001, 10020) k;
SELECT rangefilter_summarize('m_b');
INSERT INTO m VALUES (1, 20000, 'last');
COMMIT;
});
my $check = q{
SELECT rangefilter_verify('m_k'), rangefilter_verify('m_b'), (SELECT count(*) FROM m WHERE k = 10007),
	(SELECT count(*) FROM m WHERE b = 'last'), rangefilter_may_contain('m_k', 30000, NULL)};

is(value($check), '3021|3021|1|1|f', 'minimal: before the crash');
crash();
is(value($check), '3021|3021|1|1|f', 'minimal: after it');
value('BEGIN; TRUNCATE m1; INSERT INTO m SELECT 1, k FROM generate_series(5000, 5999) k; COMMIT');
crash();
is(value(q{SELECT rangefilter_verify('m1_k_idx'), count(*) FROM m WHERE k BETWEEN 5000 AND 5999}),
	'1000|1000', 'minimal: truncated and loaded');
value('BEGIN; REINDEX INDEX m1_k_idx; INSERT INTO m VALUES (1, 8888); COMMIT');
value('INSERT INTO m VALUES (1, 9999)');
crash();
is( value(q{SELECT rangefilter_verify('m1_k_idx'), rangefilter_may_contain('m1_k_idx', 8888, 8888),
	rangefilter_may_contain('m1_k_idx', 9999, 9999), rangefilter_may_contain('m1_k_idx', 8889, 9998)}),
	'1002|t|t|f', 'minimal: made anew');

#
# Prepared transactions across a restart and a crash
#
value(q{
CREATE TABLE p (k int);
INSERT INTO p SELECT generate_series(1, 1000);
CREATE INDEX p_k ON p USING rangefilter (k);
BEGIN;
INSERT INTO p SELECT generate_series(2001, 2100);
DELETE FROM p WHERE k = 7;
PREPARE TRANSACTION 'one';
BEGIN;
INSERT INTO p VALUES (3000);
PREPARE TRANSACTION 'two';
});
my $known = q{
SELECT rangefilter_may_contain('p_k', 2050, 2050), rangefilter_may_contain('p_k', 3000, 3000),
	rangefilter_may_contain('p_k', 7, 7), rangefilter_may_contain('p_k', 2500, 2500)};

$node->restart;
is(value($known), 't|t|t|f', 'prepared: after a restart');
value(q{VACUUM p; SELECT rangefilter_summarize('p_k')});
is(value($known), 't|t|t|f', 'prepared: summarized');
crash();
is(value($known), 't|t|t|f', 'prepared: after a crash');
value(q{COMMIT PREPARED 'one'});
crash();
value(q{ROLLBACK PREPARED 'two'});
is(value($known), 't|t|t|f', 'prepared: both ended');
is(value(q{SELECT rangefilter_verify('p_k') >= 1099, count(*) FROM p}), 't|1099', 'prepared: verified');
# What neither can see any more goes with time.
value(q{VACUUM p; REINDEX INDEX p_k});
is(value($known), 't|f|f|f', 'prepared: made anew');

# Loads in prepared transactions: one that opens the tail, and one that finds it open.
value(q{
CREATE TABLE pl (part int, k int) PARTITION BY LIST (part);
CREATE TABLE pl1 PARTITION OF pl FOR VALUES IN (1);
CREATE TABLE pl2 PARTITION OF pl FOR VALUES IN (2);
INSERT INTO pl SELECT 1 + k % 2, k FROM generate_series(1, 2000) k;
CREATE INDEX pl_k ON pl USING rangefilter (k);
CREATE INDEX pl_w ON pl USING wormhole (k);
BEGIN;
INSERT INTO pl SELECT 1, k FROM generate_series(10001, 13000) k;
PREPARE TRANSACTION 'load';
BEGIN;
INSERT INTO pl SELECT 1, k FROM generate_series(20001, 23000) k;
INSERT INTO pl VALUES (2, 25000);
PREPARE TRANSACTION 'load2';
});
my $loaded = q{
SELECT (SELECT count(*) FROM pl WHERE k BETWEEN 12990 AND 13010), (SELECT count(*) FROM pl WHERE k = 22000),
	(SELECT count(*) FROM pl WHERE k = 25000), (SELECT count(*) FROM pl WHERE k IN (7, 8)),
	rangefilter_verify('pl1_k_idx') + rangefilter_verify('pl2_k_idx'), wormhole_check('pl1_k_idx1', true) > 0};

crash();
is(value($loaded), '0|0|0|2|2000|t', 'prepared loads: after a crash');
value(q{COMMIT PREPARED 'load'; VACUUM pl});
is(value($loaded), '11|0|0|2|5000|t', 'prepared loads: one is committed');
crash();
value(q{COMMIT PREPARED 'load2'});
is(value($loaded), '11|1|1|2|8001|t', 'prepared loads: both are, after another crash');
crash();
is(value($loaded), '11|1|1|2|8001|t', 'prepared loads: and a third one');

# An index made in a transaction that is prepared when the server crashes.
value(q{
BEGIN;
CREATE TABLE pp (k int);
INSERT INTO pp SELECT generate_series(1, 1000);
CREATE INDEX pp_k ON pp USING rangefilter (k);
INSERT INTO pp VALUES (5000);
PREPARE TRANSACTION 'three';
});
crash();
value(q{COMMIT PREPARED 'three'});
is( value(q{SELECT rangefilter_verify('pp_k'), rangefilter_may_contain('pp_k', 5000, 5000),
	rangefilter_may_contain('pp_k', 1001, 4999)}),
	'1001|t|f', 'prepared: a new index');

# Crashes in the middle of builds and summarizes leave nothing that harms.
foreach my $statement (
	q{BEGIN; CREATE INDEX pp_k2 ON pp USING rangefilter (k); SELECT pg_sleep(60)},
	q{INSERT INTO pp SELECT generate_series(10000, 12000); SELECT rangefilter_summarize('pp_slow')},
	q{INSERT INTO pp SELECT generate_series(10000, 12000); VACUUM pp},
	q{REINDEX INDEX CONCURRENTLY pp_slow},
	q{CREATE INDEX CONCURRENTLY pp_slow2 ON pp USING rangefilter (slow(k))})
{
	value(q{
CREATE OR REPLACE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN k; END $$;
DROP INDEX IF EXISTS pp_slow, pp_slow2;
CREATE INDEX pp_slow ON pp USING rangefilter (slow(k));
CREATE OR REPLACE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN IF k = 999 THEN PERFORM pg_sleep(60); END IF; RETURN k; END $$;
});
	my $session = open_session($node);

	send_sql($session, $statement);
	ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'}),
		"$statement: in its midst");
	my $writes = $statement !~ /^BEGIN/;

	value(q{INSERT INTO pp VALUES (77777)}) if $writes;
	crash();
	eval { $session->{run}->finish };
	value(q{CREATE OR REPLACE FUNCTION slow(k int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN k; END $$});
	is( value(q{SELECT rangefilter_verify('pp_k') = count(*), rangefilter_verify('pp_slow') = count(*) FROM pp}),
		't|t', "$statement: verified");
	is(value(q{SELECT rangefilter_may_contain('pp_slow', 77777, 77777)}), $writes ? 't' : 'f',
		"$statement: the new row is known");
	value('VACUUM pp');
	is( value(q{SELECT rangefilter_verify('pp_slow') = count(*), rangefilter_may_contain('pp_slow', 90000, NULL) FROM pp}),
		't|f', "$statement: VACUUM puts it right");
}

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no crash but ours');
$node->stop;
done_testing();
