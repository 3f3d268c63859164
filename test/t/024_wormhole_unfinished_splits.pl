# Splits that were cut short: a server is recovered to the very point between
# the records of a split, of leaves, of directory pages and of the root.  All keys
# are found, the index passes its check, and the next insert that comes by
# finishes the split.  Also what inserts log, and wal_level = minimal.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server(
	'wormhole_splits',
	init => { has_archiving => 1, allows_streaming => 1 },
	conf => q{
full_page_writes = off
checkpoint_timeout = '1h'
});

# Groups of keys that begin alike, each in its own way: few leaves to a page of
# the directory, so that this is split, too.
my $key = q{repeat(md5((i %% 60 + %d)::text), 25) || md5(i::text)};
my $insert = 'INSERT INTO w SELECT ' . sprintf($key, $seed % 1000) . ', i FROM generate_series(%d, %d) i';

$node->safe_psql('postgres', 'CREATE TABLE w (k text COLLATE "C", i int); CREATE INDEX w_k ON w USING wormhole (k)');
$node->backup('before');
$node->safe_psql('postgres', sprintf($insert, 1, 1500));
my $end = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
my $path = $node->safe_psql('postgres', q{SELECT pg_relation_filepath('w_k')});
my $file = (split m{/}, $path)[-1];
$node->safe_psql('postgres', 'INSERT INTO w VALUES (NULL, 0); SELECT pg_switch_wal()');
$node->poll_query_until('postgres', "SELECT archived_count > 0 AND last_archived_wal >= pg_walfile_name('$end') FROM pg_stat_archiver")
  or die 'WAL was not archived';

# The records of the index that change several pages, and stand right behind
# another such record: second steps of splits.  Kinds are told by the pages.
# All steps behind a split begin with the left half's page; in a split of the
# directory, that comes after the page one level below.

my $dir = $node->archive_dir;
my @segments = sort grep { m{/[0-9A-F]{24}$} } glob("$dir/*");
my ($dump, $messages) = run_command(
	[ 'pg_waldump', '--path', $dir, $segments[0], $segments[-1] ]);
my %places;
my ($last, $left) = ('', -1);
foreach my $line (split /\n/, $dump)
{
	my ($lsn, $before) = $line =~ m{lsn: ([0-9A-F/]+), prev ([0-9A-F/]+)} or next;
	my @blocks = $line =~ m{blkref #\d+: rel \d+/\d+/$file (?:fork main )?blk (\d+)}g;

	next if $line !~ /^rmgr: (Generic|custom)/ || @blocks < 2;
	my $kind =
		(grep { $_ == 0 } @blocks) ? 'new root'
	  : $blocks[0] != $left ? 'directory page above'
	  : @blocks > 2 ? 'directory page'
	  : 'leaf';
	push @{ $places{$kind} }, $lsn if $before eq $last;
	($last, $left) = ($lsn, $blocks[0]);
}
is(join(', ', sort keys %places), 'directory page, directory page above, leaf, new root', "seed $seed: splits of every kind");

# How many pages have the flag of an incomplete split, in the file.
sub incomplete
{
	my ($server) = @_;

	return $server->safe_psql('postgres', q{CHECKPOINT; SELECT count(*) FROM
		(SELECT pg_read_binary_file(pg_relation_filepath('w_k')) AS f) f,
		generate_series(1, length(f) / 8192 - 1) b WHERE get_byte(f, b * 8192 + 58) & 6 = 4});
}

sub recover_to
{
	my ($kind, $lsn) = @_;
	my $name = $lsn =~ s{/}{_}r;
	my $server = PostgreSQL::Test::Cluster->new("recovered_$name");
	my $text = "seed $seed: before $lsn, $kind";

	$server->init_from_backup($node, 'before', has_restoring => 1, standby => 0);
	$server->append_conf('postgresql.conf', "recovery_target_lsn = '$lsn'\nrecovery_target_inclusive = off\nrecovery_target_action = promote\nrecovery_target_timeline = current\narchive_mode = off\n");
	$server->start;
	$server->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery did not end';
	cmp_ok(incomplete($server), '>', 0, "$text: a split is incomplete");

	# The insert was never committed: dead rows, but the index has their keys.
	is($server->safe_psql('postgres', q{SELECT wormhole_check('w_k') > 0}), 't', "$text: whole");

	# Leaves are written by inserts of the same keys; all pages of the directory
	# by so many that each leaf is split.
	my $rows = $kind eq 'directory page above' ? 20000 : 1500;
	$server->safe_psql('postgres', sprintf($insert, 1, $rows));
	is(incomplete($server), 0, "$text: inserts finished it");
	is($server->safe_psql('postgres', q{SELECT wormhole_check('w_k', true) >= count(*) FROM w}), 't', "$text: whole again");
	is( $server->safe_psql('postgres',
			'SET enable_seqscan = off; SELECT count(*) FROM w a WHERE EXISTS (SELECT FROM w b WHERE b.k = a.k AND b.i = a.i OFFSET 0)'),
		$rows,
		"$text: every key is found");
	$server->stop;
	return;
}

foreach my $kind (sort keys %places)
{
	my @all = @{ $places{$kind} };

	recover_to($kind, $_) foreach @all <= 2 ? @all : ($all[ pick(0, $#all / 2) ], $all[ pick($#all / 2 + 1, $#all) ]);
}

# An insert logs its entry and few slots, not half a page.
$node->safe_psql('postgres', q{
CREATE TABLE v (k int8);
CREATE INDEX v_k ON v USING wormhole (k);
INSERT INTO v SELECT hashint8extended(i, 0) FROM generate_series(1, 20000) i});
my $start = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', 'INSERT INTO v SELECT hashint8extended(-i, 0) FROM generate_series(1, 10000) i');
cmp_ok($node->safe_psql('postgres', "SELECT (pg_current_wal_insert_lsn() - '$start') / 10000"), '<', 700, 'WAL of a random insert and its row');
$node->stop;

# Nothing is logged for an index as new as its transaction.
$node = new_server('wormhole_minimal', init => {}, conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\n");
$node->safe_psql('postgres', q{
BEGIN;
CREATE TABLE w (k int8);
CREATE INDEX w_k ON w USING wormhole (k);
INSERT INTO w SELECT hashint8extended(i, 0) FROM generate_series(1, 20000) i;
COMMIT;
BEGIN;
TRUNCATE w;
INSERT INTO w SELECT hashint8extended(i, 0) FROM generate_series(1, 10000) i;
COMMIT;
INSERT INTO w SELECT i FROM generate_series(1, 5000) i});
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', q{SELECT wormhole_check('w_k', true)}), 15000, 'wal_level = minimal');
$node->stop;
done_testing();
