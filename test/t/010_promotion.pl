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
});
$primary->backup('base');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $asks = 'SELECT count(*) FROM kept WHERE k = 5000';
my $session = open_session($standby);

is(ask($session, $asks), '0', 'standby: no such key') for 1 .. 2;
like(ask($session, "EXPLAIN $asks"), qr/Partitions Skipped: 3 of 3/, 'standby: all skipped');
$primary->safe_psql('postgres', 'INSERT INTO kept VALUES (2, 5000)');
$primary->wait_for_catchup($standby);
$standby->promote;
is(ask($session, $asks), '1', 'promoted: a key that came in recovery is found');

$asks =~ s/5000/6000/;
is(ask($session, $asks), '0', 'promoted: no such key') for 1 .. 2;
$standby->safe_psql('postgres', 'INSERT INTO kept VALUES (3, 6000)');
is(ask($session, $asks), '1', 'promoted: until there is one');
like(ask($session, "EXPLAIN $asks"), qr/Partitions Skipped: 2 of 3/, 'promoted: the others are skipped');
close_session($session);

$standby->stop;
$primary->stop;
done_testing();
