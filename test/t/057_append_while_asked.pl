# A key is appended to the delta while a question is between the delta's page and the
# filter's.  The answer is no, and it is an answer of the version before.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('appended');

# The filter begins on block 1.  Behind it is the delta's page, with a key.  Rows behind the
# first ones are alone in their blocks, of which the filter knows nothing: for them an
# insert does not read it.
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION rf_damage;
CREATE TABLE t (p int, k int, pad text) PARTITION BY LIST (p);
CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
CREATE TABLE t2 PARTITION OF t FOR VALUES IN (2);
ALTER TABLE t1 ALTER pad SET STORAGE plain;
ALTER TABLE t2 ALTER pad SET STORAGE plain;
INSERT INTO t SELECT p, 1000 * i FROM generate_series(1, 2) p, generate_series(1, 10000) i;
CREATE INDEX t_k ON t USING rangefilter (k);
INSERT INTO t VALUES (2, 777, repeat('x', 8000));
});
my $last = $node->safe_psql('postgres', q{SELECT pg_relation_size('t2_k_idx') / current_setting('block_size')::int - 1});

my $query = 'SELECT p, k FROM t WHERE k = 500500';
my $holder = open_session($node);
my $reader = open_session($node);

# Waits until a session with this query waits for something.
sub wait_for
{
	my ($text, $event) = @_;

	return $node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%$text%' AND '$event' IN (wait_event_type, wait_event)");
}

is($node->safe_psql('postgres', $query), '', 'the key is not there');
send_sql($holder, "SELECT rf_hold_page('t2_k_idx', 1, $last)");
ok(wait_for('rf_hold_page', 'Extension'), 'the page of the filter is locked');
send_sql($reader, $query);
ok(wait_for('WHERE k = 500500', 'BufferContent'), 'the question waits for it');
$node->safe_psql('postgres', q{INSERT INTO t VALUES (2, 500500, repeat('x', 8000))});
is(answer($holder), 't', 'the delta got the key meanwhile');
is(answer($reader), '2|500500', 'the row is found');
close_session($_) foreach $holder, $reader;

$node->stop;
done_testing();
