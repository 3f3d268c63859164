# Entries marked dead by scans: they spare visits to the table, on tables of all
# kinds, make room for inserts before VACUUM, are never those of a row that
# somebody sees, and cancel queries on a standby that would miss the rows.
# Redo compares every page with the primary's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_server(
	'wormhole_dead',
	init => { allows_streaming => 1 },
	conf => q{
wal_consistency_checking = 'all'
checkpoint_timeout = '1h'
enable_seqscan = off
enable_bitmapscan = off
});

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('dead_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', q{
max_standby_streaming_delay = '100ms'
hot_standby_feedback = off
});
$standby->start;

# A session with everything a step needs: temporary tables stay.
my $session = open_session($node);

sub buffers
{
	my ($query) = @_;
	my $plan = ask($session, "EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off) $query");

	die $plan unless $plan =~ /(?:Index|Index Only) Scan/;
	die $plan unless $plan =~ /Buffers: (?:shared|local)(?: hit=(\d+))?(?: read=(\d+))?/;
	return ($1 // 0) + ($2 // 0);
}

# Each row of these tables has a page of its own, which is not pruned: it has
# room.  What is dead is dead to the index alone.
foreach my $kind ('TABLE', 'UNLOGGED TABLE', 'TEMP TABLE')
{
	foreach my $list ('v', 'k')
	{
		my $name = lc($kind) . ($list eq 'k' ? ', index-only' : '');

		ask($session, qq{
SET vacuum_freeze_table_age = 0;
DROP TABLE IF EXISTS d;
CREATE $kind d (k int, v int, fill text);
ALTER TABLE d ALTER fill SET STORAGE plain;
INSERT INTO d SELECT g / 4, g, repeat('x', 5000) FROM generate_series(1, 400) g;
CREATE INDEX d_k ON d USING wormhole (k);
DELETE FROM d WHERE k >= 20;});
		my $first = buffers("SELECT $list FROM d WHERE k >= 0 ORDER BY k");
		my $second = buffers("SELECT $list FROM d WHERE k >= 0 ORDER BY k");

		cmp_ok($first, '>', 400, "$name: the first scan looks at dead rows");
		cmp_ok($second, '<', 120, '... the second one does not');
		is(ask($session, 'SELECT count(*), sum(k), max(v) FROM d WHERE k >= 0'), '79|760|79', '... and answers the same');

		# Of a list of rows all must be dead.
		ask($session, 'DELETE FROM d WHERE k = 5 AND v <> 22');
		buffers("SELECT $list FROM d WHERE k = 5") for 1 .. 2;
		is(ask($session, "SELECT count(*), max(v) FROM d WHERE k = 5"), '1|22', '... one of a list of rows lives');
		is(ask($session, "SELECT wormhole_check('d_k', true)"), '400', '... checked');
	}
}
close_session($session);

# A row that is dead to all but one snapshot is not marked; neither is one
# whose deletion is rolled back.
$node->safe_psql('postgres', q{
CREATE TABLE d (k int, v int);
CREATE INDEX d_k ON d USING wormhole (k);
INSERT INTO d SELECT g, g FROM generate_series(1, 1000) g;});
my $old = open_session($node);
ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', 'BEGIN; DELETE FROM d WHERE k > 500; SELECT count(v) FROM d WHERE k > 0; ROLLBACK');
$node->safe_psql('postgres', 'DELETE FROM d WHERE k <= 100; SELECT count(v) FROM d WHERE k > 0') for 1 .. 2;
is(ask($old, 'SELECT count(v) FROM d WHERE k > 0'), '1000', 'an old snapshot sees its rows');
ask($old, 'COMMIT');
close_session($old);
is($node->safe_psql('postgres', 'SELECT count(v) FROM d WHERE k > 0'), '900', 'a new one does not');

# Rows that change often, without VACUUM: dead entries make room for new ones.
sub leaves
{
	return $node->safe_psql('postgres', q{SELECT leaf_pages FROM wormhole_status('d_k')});
}

my $leaves = leaves();
$node->safe_psql('postgres', q{
CREATE INDEX d_v ON d (v);
DO $$
BEGIN
	FOR i IN 1 .. 8000 LOOP
		PERFORM v FROM d WHERE k = 300 + i % 20;
		UPDATE d SET v = v + 1000 WHERE k = 300 + i % 20;
		COMMIT;
	END LOOP;
END $$;});
cmp_ok(leaves(), '<=', $leaves + 2, 'the index of a column that does not change hardly grew');
is($node->safe_psql('postgres', q{SELECT wormhole_check('d_k', true) >= 900}), 't', 'checked');
is($node->safe_psql('postgres', 'SELECT count(*), sum(k), sum(v) FROM d WHERE k > 0'),
	$node->safe_psql('postgres', 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(k), sum(v) FROM d'),
	'the same with and without the index');

# No scan marks them: a unique key that is deleted and inserted again and again, rows whose
# other columns change.  An old snapshot still finds its rows.
$node->safe_psql('postgres', q{
CREATE TABLE u (k int, v int);
CREATE UNIQUE INDEX u_k ON u USING wormhole (k);
CREATE TABLE c (k int, v int);
CREATE INDEX c_k ON c USING wormhole (k);
CREATE INDEX c_v ON c (v);
INSERT INTO u SELECT g, 0 FROM generate_series(0, 60) g;
INSERT INTO c SELECT g / 2, 0 FROM generate_series(1, 400) g;});
my $churn = q{
SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;
DO $$
BEGIN
	FOR i IN 1 .. 2000 LOOP
		DELETE FROM u WHERE k = 30;
		INSERT INTO u VALUES (30, i);
		IF i % 40 = 0 THEN
			UPDATE c SET v = v + 1;
		END IF;
		COMMIT;
	END LOOP;
END $$;};
$node->safe_psql('postgres', $churn);
is($node->safe_psql('postgres', q{SELECT leaf_pages FROM wormhole_status('u_k')}), '1', 'the unique check finds dead rows');
cmp_ok($node->safe_psql('postgres', q{SELECT leaf_pages FROM wormhole_status('c_k')}), '<=', 6, 'versions of a row make room for the next one');
$old = open_session($node);
is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT v, k FROM u WHERE k = 30; SELECT sum(v), count(*) FROM c WHERE k >= 0'),
	"2000|30\n20000|400", 'an old snapshot');
$node->safe_psql('postgres', $churn);
is(ask($old, 'SELECT v, k FROM u WHERE k = 30; SELECT sum(v), count(*) FROM c WHERE k >= 0; COMMIT'), "2000|30\n20000|400", '... sees its rows');
close_session($old);
is($node->safe_psql('postgres', q{SELECT v FROM u WHERE k = 30; SELECT sum(v), count(*) FROM c WHERE k >= 0; SELECT wormhole_check(i, true) > 0 FROM unnest('{u_k,c_k}'::regclass[]) i}),
	"2000\n40000|400\nt\nt", '... and new ones theirs');
ok($node->psql('postgres', 'INSERT INTO u VALUES (30, 0)') != 0, 'the key is unique');

# In a full leaf versions are looked for in the blocks of the table that have most rows of keys with
# several: here 8 rows with newer versions, or 8 of a list, among 200 others.
$node->safe_psql('postgres', q{
CREATE FUNCTION key(k int) RETURNS text LANGUAGE sql AS $$SELECT lpad(k::text, 24, 'k')$$;
CREATE PROCEDURE fill(list bool) LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS f;
	CREATE TABLE f (k text COLLATE "C", v int, pad text);
	ALTER TABLE f ALTER pad SET STORAGE plain;
	CREATE INDEX f_k ON f USING wormhole (k);
	CREATE INDEX f_v ON f (v);
	INSERT INTO f SELECT key(1000 + g) FROM generate_series(1, 100) g;
	-- 13 rows a block
	INSERT INTO f SELECT key(9999), 0, repeat('x', 8000);
	INSERT INTO f SELECT key(CASE WHEN list AND g <= 14 THEN 500 ELSE g END), 0, repeat('x', 520) FROM generate_series(1, 42) g;
	-- a list of the first ones
	REINDEX INDEX f_k;
END $$;
CREATE PROCEDURE fill_up(INOUT n int) LANGUAGE plpgsql AS $$
BEGIN
	WHILE (SELECT leaf_pages FROM wormhole_status('f_k')) = 1 LOOP
		INSERT INTO f VALUES (key(600 + n));
		n := n + 1;
	END LOOP;
END $$;});
my $no_index = 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;';
foreach my $case (
	[ 'versions', 8, 'UPDATE f SET v = 1 WHERE k BETWEEN key(17) AND key(24)' ],
	[ 'rows of a list', 0, 'DELETE FROM f WHERE ctid IN (SELECT ctid FROM f WHERE k = key(500) LIMIT 8)' ])
{
	my ($name, $added, $make_dead) = @$case;
	my $list = $added ? 'false' : 'true';
	my $most = $node->safe_psql('postgres', "CALL fill($list); CALL fill_up(0)") - 1;

	$node->safe_psql('postgres', "CALL fill($list); INSERT INTO f SELECT key(600 + g), 0, repeat('x', 520) FROM generate_series(1, $most - $added) g");
	$node->safe_psql('postgres', "$no_index $make_dead");
	is($node->safe_psql('postgres', q{SELECT leaf_pages, rows FROM wormhole_status('f_k')}), '1|' . (143 + $most), "$name: a full leaf");
	$node->safe_psql('postgres', "$no_index UPDATE f SET v = 1 WHERE k = key(40)");
	is($node->safe_psql('postgres', q{SELECT leaf_pages, rows FROM wormhole_status('f_k')}), '1|' . (136 + $most), '... those that are dead make room');
}

# The standby has the marks as of each page's last record, but trusts none.
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*), sum(k), sum(v) FROM d WHERE k > 0'),
	$node->safe_psql('postgres', 'SELECT count(*), sum(k), sum(v) FROM d WHERE k > 0'), 'the standby answers the same');

# A snapshot on the standby that sees rows which are dead to all on the primary.
$node->safe_psql('postgres', q{
DROP TABLE d;
CREATE TABLE d (k int, fill text);
ALTER TABLE d ALTER fill SET STORAGE plain;
CREATE INDEX d_k ON d USING wormhole (k);
INSERT INTO d SELECT g, repeat('x', 5000) FROM generate_series(1, 500) g;});
$node->wait_for_catchup($standby);
$old = open_session($standby);
is(ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(fill) FROM d WHERE k > 0'), '500', 'a snapshot on the standby');
$node->safe_psql('postgres', 'DELETE FROM d WHERE k > 100');
$node->safe_psql('postgres', 'SELECT count(fill) FROM d WHERE k > 0') for 1 .. 2;
# One insert logs the marks; the rows are still there for the standby.
$node->safe_psql('postgres', q{INSERT INTO d VALUES (700, repeat('x', 5000))});
$node->wait_for_catchup($standby);
is(ask($old, 'SELECT count(fill) FROM d WHERE k > 0'), '500', 'marks do not hide the rows');
is($standby->safe_psql('postgres', q{SELECT wormhole_check('d_k', true)}), '501', 'checked');
$node->safe_psql('postgres', q{INSERT INTO d SELECT g, repeat('x', 5000) FROM generate_series(1000, 1199) g});
is(leaves(), '1', 'entries were removed, no leaf split');
is($node->safe_psql('postgres', q{SELECT wormhole_check('d_k', true)}), '301', 'checked');
$node->wait_for_catchup($standby);

# psql ends when the server cancels the session.
my $answer = eval { ask($old, 'SELECT count(fill) FROM d WHERE k > 0') } // ${ $old->{out} };
like($answer, qr/^500$|conflict with recovery/, 'the old snapshot on the standby: its rows or an error');
eval { close_session($old) };

# After promotion the marks count.
$standby->promote;
is($standby->safe_psql('postgres', 'SELECT count(fill) FROM d WHERE k > 0'), '301', 'promoted');
$standby->safe_psql('postgres', q{INSERT INTO d SELECT g, 'y' FROM generate_series(1, 2000) g});
$standby->safe_psql('postgres', q{SELECT wormhole_check('d_k', true)});
is($standby->safe_psql('postgres', 'SELECT count(fill) FROM d WHERE k > 0'), '2301', '... and written to');
$standby->stop;

# Crash: marks that were lost are no loss.
$node->safe_psql('postgres', 'DELETE FROM d WHERE k % 3 = 0');
$node->safe_psql('postgres', 'SELECT count(fill) FROM d WHERE k > 0') for 1 .. 2;
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(fill) FROM d WHERE k > 0'),
	$node->safe_psql('postgres', 'SET enable_seqscan = on; SET enable_indexscan = off; SELECT count(fill) FROM d'), 'after a crash');
$node->safe_psql('postgres', q{SELECT wormhole_check('d_k', true)});
$node->stop;
done_testing();
