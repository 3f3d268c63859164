# Serializable transactions that look for neighbours of a key and insert it if there are
# none never make neighbours, while leaves of a few entries split and VACUUM deletes
# them.  Splits that do not copy predicate locks are found within seconds.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server('serializable', conf => "max_pred_locks_per_transaction = 256\nmax_connections = 50\n");

$node->safe_psql('postgres', q{
CREATE TABLE s (k int8, pad text);
CREATE INDEX s_k ON s USING wormhole (k) INCLUDE (pad);
CREATE TABLE found (n int8);
});

my $neighbours = 'FROM (SELECT k - lag(k) OVER (ORDER BY k) AS distance FROM s) x WHERE distance <= 5';
my @loads = (
	start_scripts($node, 10, $seed, { look => [ 1, q{
\set k random(1, 1000)
\set lo :k - 5
\set hi :k + 5
BEGIN ISOLATION LEVEL SERIALIZABLE;
SET LOCAL enable_seqscan = off;
SELECT count(*) AS n FROM s WHERE k BETWEEN :lo AND :hi \gset
\sleep 2 ms
\if :n = 0
INSERT INTO s VALUES (:k, repeat('x', 1300));
\endif
COMMIT;
} ] }, '-c', 24, '-j', 2),
	start_scripts($node, 10, $seed, { delete => [ 1, qq{
\\set k random(-100, 1000)
\\set n random(50, 300)
INSERT INTO found SELECT count(*) $neighbours HAVING count(*) > 0;
DELETE FROM s WHERE k BETWEEN :k AND :k + :n;
\\sleep 10 ms
} ] }, '-c', 1, '-j', 1),
	start_scripts($node, 10, $seed, { vacuum => [ 1, "VACUUM (INDEX_CLEANUP ON) s;\n\\sleep 5 ms\n" ] }, '-c', 1, '-j', 1));

foreach my $load (@loads)
{
	unlike(finish_load($load), qr/ERROR|aborted/, "seed $seed: no errors");
}
cmp_ok($node->safe_psql('postgres', 'SELECT count(*) FROM s'), '>', 0, "seed $seed: there are rows");
is($node->safe_psql('postgres', "SELECT count(*) $neighbours"), 0, "seed $seed: no neighbours at the end");
is($node->safe_psql('postgres', 'SELECT count(*) FROM found'), 0, "seed $seed: and none before");
indexes_whole($node, 's', "seed $seed: at the end");
$node->stop;
done_testing();
