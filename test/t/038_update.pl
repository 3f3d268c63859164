# ALTER EXTENSION UPDATE to a later version, which exists for this test only: indexes,
# what sessions remember and dumps survive it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

# The private installation's directory of scripts.
my ($share) = run_command([ 'pg_config', '--sharedir' ]);
my $script = "$share/extension/rangefilter--1.0--1.0next.sql";
open my $file, '>', $script or plan skip_all => "cannot write $script";
print $file <<'SQL';
\echo Use "ALTER EXTENSION rangefilter UPDATE" to load this file. \quit
CREATE FUNCTION rangefilter_next() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
CREATE OR REPLACE VIEW rangefilter_next_view AS SELECT count(*) AS indexes FROM rangefilter_activity;
SQL
close $file;

my $node = new_server('update');
my $skipped = q{EXPLAIN (COSTS OFF) SELECT * FROM t WHERE k = 100000};
load_schema($node);
my $session = open_session($node);
like(ask($session, $skipped), qr/Partitions Skipped|Range Filter/, 'partitions are skipped');
is($node->psql('postgres', q{ALTER EXTENSION rangefilter UPDATE TO '1.0next'}), 0, 'the extension is updated');
is($node->safe_psql('postgres', 'SELECT rangefilter_next()'), 1, 'and has what the new version brings');
like(ask($session, $skipped), qr/Partitions Skipped|Range Filter/, 'a session that was there goes on');
like($node->safe_psql('postgres', $skipped), qr/Partitions Skipped: /, 'so does a new one');
all_verified($node, 'after the update');
close_session($session);

my ($dump) = run_command([ 'pg_dump', '-d', $node->connstr('postgres'), '--schema-only' ]);
like($dump, qr/CREATE EXTENSION IF NOT EXISTS rangefilter/, 'the extension is dumped as a whole');
unlike($dump, qr/rangefilter_next/, 'and not its new members');
unlink $script;
$node->stop;
done_testing();
