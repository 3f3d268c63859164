# What happens to an empty leaf, and to the one on its left, while VACUUM waits for the latter to
# delete the former.  And what VACUUM tells.  And a split while the metapage is locked.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('vacuum_waits');

sub sql { return $node->safe_psql('postgres', @_); }

# Full leaves, so that the next key splits one.
sql(q{
CREATE EXTENSION rf_damage;
CREATE TABLE t (k int8) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT 10 * g FROM generate_series(1, 12000) g;
CREATE INDEX t_k ON t USING wormhole (k) WITH (fillfactor = 100);
CREATE INDEX t_some ON t USING wormhole (k) WHERE k % 100 = 0;
-- A number of two bytes, or of four, of a page.
CREATE FUNCTION field(block int, at int, bytes int) RETURNS int8 LANGUAGE sql AS
	$$SELECT sum(get_byte(rf_page('t_k', block), at + b)::int8 << 8 * b) FROM generate_series(0, bytes - 1) b$$;
-- The leaves in order, with the rows before each, as the index was built.
CREATE TABLE leaves AS
WITH RECURSIVE l (n, block) AS (SELECT 1, 1 UNION ALL SELECT n + 1, field(block, 36, 4)::int FROM l WHERE field(block, 36, 4) < 1000000)
SELECT n, block, sum(field(block, 56, 2)) OVER (ORDER BY n) - field(block, 56, 2) AS before FROM l;
});
my @leaves = map { [ split /\|/ ] } split /\n/, sql('SELECT block, before FROM leaves ORDER BY n');
cmp_ok(@leaves, ">", 12, scalar(@leaves) . ' leaves');

# A key that is not there, in leaf number n, as it was built.
sub key_in { return 10 * ($leaves[ $_[0] ][1] + 50) + $_[1]; }

# Waits until a session with this query waits for something.
sub wait_for
{
	my ($text, $event) = @_;

	return $node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%$text%' AND wait_event = '$event'");
}

# VACUUM empties leaf number n and waits for the one on its left.  Before the latter is let go, calls a
# function, and one more before VACUUM waits.  Returns what VACUUM tells.  What is held is let go when
# another leaf has changed: the next one, and the first one.
sub while_vacuum_waits
{
	my ($n, $before, $do) = @_;
	my ($first, $second, $vacuum) = map { open_session($node) } 1 .. 3;
	my ($left, $block) = map { $leaves[$_][0] } $n - 1, $n;
	my ($low, $high) = map { 10 * $leaves[$_][1] } $n, $n + 1;

	sql("DELETE FROM t WHERE k > $low AND k <= $high");
	send_sql($first, "SELECT rf_hold_page('t_k', $block, $leaves[ $n + 1 ][0])");
	wait_for("rf_hold_page(''t_k'', $block,", 'Extension') or die;
	send_sql($vacuum, 'VACUUM (VERBOSE, INDEX_CLEANUP on, DISABLE_PAGE_SKIPPING, TRUNCATE off) t');
	wait_for('VACUUM (', 'BufferContent') or die;
	send_sql($second, "SELECT rf_hold_page('t_k', $left, 1)");
	wait_for("rf_hold_page(''t_k'', $left,", 'Extension') or die;
	$before->();
	sql('INSERT INTO t VALUES (' . key_in($n + 1, 1) . ')');
	is(answer($first), 't', "leaf $n: empty");
	$node->poll_query_until('postgres', "SELECT field($block, 56, 2) = 0") or die;
	wait_for('VACUUM (', 'BufferContent') or die;
	$do->();
	sql('INSERT INTO t VALUES (' . key_in(0, 1 + $n % 9) . ')');
	is(answer($second), 't', '... the leaf on its left is let go');
	my $told = answer($vacuum);
	close_session($_) foreach $first, $second, $vacuum;
	is(sql("SELECT wormhole_check('t_k', true) - count(*) FROM t"), 0, '... checked');

	# The index has a row more, which came after the table was read.
	is(sql("SELECT i.reltuples - t.reltuples FROM pg_class i, pg_class t WHERE i.relname = 't_k' AND t.relname = 't'"), 0, '... as many rows as in the table');
	cmp_ok(sql("SELECT reltuples FROM pg_class WHERE relname = 't_some'"), '<=', 1200, '... some of them in a partial index');
	return $told;
}

# The left one is split: the empty leaf has another neighbour.  The second try deletes it.
my $writer = open_session($node);
my $split = key_in(2, 1);
my $told = while_vacuum_waits(3, sub {
	send_sql($writer, "INSERT INTO t VALUES ($split)");
	wait_for("VALUES ($split)", 'BufferContent') or die;
}, sub { });
is(answer($writer), '', '... a key is put into the left leaf, which is split');
like($told, qr/index "t_k": pages: \d+ in total, 1 newly deleted, 1 currently deleted, 1 reusable/, '... VACUUM has deleted the empty leaf');
is(sql("SELECT field($leaves[3][0], 58, 2) & 2"), 2, '... indeed');

# A row comes into the empty leaf.
my $came = key_in(6, 1);
$told = while_vacuum_waits(6, sub { }, sub { sql("INSERT INTO t VALUES ($came)") });
unlike($told, qr/[1-9] newly deleted/, '... a leaf that is not empty any more stays');

# A scan has the empty leaf pinned, with rows that have come.
my $reader = open_session($node);
my @rows = map { key_in(9, $_) } 1 .. 2;
$told = while_vacuum_waits(9, sub { }, sub {
	sql("INSERT INTO t VALUES ($rows[0]), ($rows[1])");
	is(ask($reader, "SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN; DECLARE c CURSOR FOR SELECT k FROM t WHERE k IN ($rows[0], $rows[1]) ORDER BY k; FETCH c"),
		$rows[0], '... a scan is in it');
});
unlike($told, qr/[1-9] newly deleted/, '... so does one that is pinned');
is(ask($reader, 'FETCH c; COMMIT'), $rows[1], '... and the scan goes on');
close_session($_) foreach $writer, $reader;
is(sql("SET enable_seqscan = off; SELECT count(*) FROM t WHERE k IN ($split, $came, $rows[0], $rows[1])"), 4, 'all rows are found');
# A split of a page that is not the root does not need the metapage, which stays locked here until
# the directory has the anchor of the new leaf.
my $root = sql("SELECT field(0, 72, 4)");
my $holder = open_session($node);
my $splitter = open_session($node);
my $before = sql("SELECT field($root, 56, 2)");

is(sql("SELECT field($root, 60, 1)"), 1, 'the root is one page of anchors');
ask($splitter, "INSERT INTO t VALUES (2)");
send_sql($holder, "SELECT rf_hold_page('t_k', 0, $root)");
wait_for("rf_hold_page(''t_k'', 0,", 'Extension') or die;
ask($splitter, 'DO $$ BEGIN FOR i IN 1 .. 1000 LOOP INSERT INTO t VALUES (100000 + 7 * i); END LOOP; END $$');
is(answer($holder), 't', 'leaves are split while the metapage is locked');
cmp_ok(sql("SELECT field($root, 56, 2)"), '>', $before, '... and the directory has their anchors');
close_session($_) foreach $holder, $splitter;

$node->stop;
done_testing();
