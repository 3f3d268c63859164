# A session that stays connected while its standby is promoted has guesses of
# before, which replay has made wrong without telling anybody.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $primary = new_server('primary', init => { allows_streaming => 1 });
my $standby = PostgreSQL::Test::Cluster->new('standby');

$primary->safe_psql(
	'postgres', q{
CREATE TABLE kept (p int, k int) PARTITION BY LIST (p);
CREATE TABLE kept1 PARTITION OF kept FOR VALUES IN (1);
CREATE TABLE kept2 PARTITION OF kept FOR VALUES IN (2);
CREATE TABLE kept3 PARTITION OF kept FOR VALUES IN (3);
INSERT INTO kept SELECT p, k FROM generate_series(1, 3) p, generate_series(1, 100) k;
CREATE INDEX ON kept USING rangefilter (k);
CREATE TABLE gone (p int, k int) PARTITION BY LIST (p);
CREATE TABLE gone1 PARTITION OF gone FOR VALUES IN (1);
CREATE TABLE gone2 PARTITION OF gone FOR VALUES IN (2);
INSERT INTO gone SELECT p, k FROM generate_series(1, 2) p, generate_series(1, 100) k;
CREATE INDEX gone_k ON gone USING rangefilter ((k + 0));
});
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $asks = 'SELECT count(*) FROM kept WHERE k = 5000';
my $session = open_session($standby);

# A row that only a snapshot of the standby sees: it is dead to all on the primary, and covered by the
# summary there until VACUUM has removed it.  A plan that skips, and is checked; one that is made
# later; a gate; one in a loop.
my @finds = (
	'EXECUTE fixed', 'SELECT count(*) FROM gone WHERE k + 0 = 5000', 'EXECUTE once(5000)',
	'SELECT count(*) FROM (VALUES (5000), (5001)) v (n), LATERAL (SELECT FROM gone WHERE k + 0 = n OFFSET 0) l');
my $held = open_session($standby);
ask($held, 'SET plan_cache_mode = force_generic_plan;
	PREPARE fixed AS SELECT count(*) FROM gone WHERE k + 0 = 5000; PREPARE once(int) AS SELECT count(*) FROM gone WHERE k + 0 = $1');
like(ask($held, 'EXPLAIN EXECUTE fixed'), qr/Partitions Skipped: 2 of 2/, 'standby: both skipped');
$primary->safe_psql('postgres', 'INSERT INTO gone VALUES (2, 5000)');
$primary->wait_for_catchup($standby);
ask($held, 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM kept');
$primary->safe_psql('postgres', q{DELETE FROM gone WHERE k = 5000; SELECT rangefilter_summarize('gone_k')});
is($primary->safe_psql('postgres', q{SELECT rangefilter_may_contain('gone2_expr_idx', 5000, 5000)}), 't', 'the primary has not forgotten a row');
$primary->wait_for_catchup($standby);
is(ask($held, $_), '1', "standby: it is found: $_") foreach @finds;

is(ask($session, $asks), '0', 'standby: no such key') for 1 .. 2;
like(ask($session, "EXPLAIN $asks"), qr/Partitions Skipped: 3 of 3/, 'standby: all skipped');
$primary->safe_psql('postgres', 'INSERT INTO kept VALUES (2, 5000)');
$primary->wait_for_catchup($standby);
$standby->promote;
is(ask($session, $asks), '1', 'promoted: a key that came in recovery is found');
is(ask($held, $_), '1', "promoted, with the snapshot of before: it is found: $_") foreach @finds;
ask($held, 'COMMIT');
is(ask($held, $_), '0', "promoted: it is not: $_") foreach @finds;
close_session($held);

$asks =~ s/5000/6000/;
is(ask($session, $asks), '0', 'promoted: no such key') for 1 .. 2;
$standby->safe_psql('postgres', 'INSERT INTO kept VALUES (3, 6000)');
is(ask($session, $asks), '1', 'promoted: until there is one');
like(ask($session, "EXPLAIN $asks"), qr/Partitions Skipped: 2 of 3/, 'promoted: the others are skipped');
close_session($session);

$standby->stop;
$primary->stop;
done_testing();
