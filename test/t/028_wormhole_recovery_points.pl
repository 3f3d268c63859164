# A server is recovered to points within inserts and splits, deletion of pages by
# VACUUM, removal of dead entries, builds, REINDEX CONCURRENTLY, CLUSTER and
# TRUNCATE: right before records of the indexes, as if it had crashed there.
# Each time all indexes are whole, have every row, and can be written to.  Redo
# compares all pages of the indexes with the primary's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server(
	'wormhole_steps',
	init => { has_archiving => 1, allows_streaming => 1 },
	conf => q{
checkpoint_timeout = '1h'
max_wal_size = '4GB'
wal_consistency_checking = 'generic'
});

# Keys with long anchors: few leaves to a page of the directory, which is split
# and deleted as well.
$node->safe_psql(
	'postgres', qq{
CREATE FUNCTION key(k int) RETURNS text LANGUAGE sql IMMUTABLE AS \$\$
	SELECT lpad((k / 100)::text, 8, '0') || repeat(md5((k / 100 + $seed)::text), 25) || lpad(k::text, 8, '0') \$\$;
CREATE TABLE w (k int, d int, s text COLLATE "C");
CREATE UNIQUE INDEX w_k ON w USING wormhole (k);
CREATE INDEX w_d ON w USING wormhole (d);
CREATE INDEX w_s ON w USING wormhole (s);
});
$node->backup('before');

# What is done, and how many points of each are recovered to.
my @phases = (
	[ 'inserts', 4, q{INSERT INTO w SELECT g, g % 7, key(g) FROM generate_series(1, 3000) g ORDER BY md5(g::text)} ],
	[ 'VACUUM that deletes pages', 6, q{DELETE FROM w WHERE k > 200; VACUUM w} ],
	[ 'inserts that use them', 3, q{INSERT INTO w SELECT g, g % 7, key(g) FROM generate_series(3001, 5000) g ORDER BY md5(g::text)} ],
	[ 'removal of entries that scans found dead', 2, q{
		DELETE FROM w WHERE k BETWEEN 3001 AND 3500;
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SELECT count(s) FROM w WHERE k > 0; SELECT count(s) FROM w WHERE s > ''; SELECT count(s) FROM w WHERE d > -1;
		INSERT INTO w SELECT g, g % 7, key(g) FROM generate_series(3001, 3500) g ORDER BY md5(g::text)} ],
	[ 'REINDEX', 2, q{REINDEX INDEX CONCURRENTLY w_s; REINDEX INDEX w_k} ],
	[ 'CLUSTER, VACUUM FULL', 2, q{CLUSTER w USING w_s; VACUUM FULL w} ],
	[ 'TRUNCATE', 1, q{TRUNCATE w; INSERT INTO w SELECT g, g % 7, key(g) FROM generate_series(1, 300) g} ]);
my $from = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
foreach my $phase (@phases)
{
	push @$phase, $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');

	# Each statement for itself, as VACUUM wants.
	$node->safe_psql('postgres', $phase->[2]);
	push @$phase, $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
}
my $end = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$node->safe_psql('postgres', 'INSERT INTO w VALUES (-1, 0); SELECT pg_switch_wal()');
$node->poll_query_until('postgres', "SELECT archived_count > 0 AND last_archived_wal >= pg_walfile_name('$end') FROM pg_stat_archiver")
  or die 'WAL was not archived';
my @segments = sort grep { m{/[0-9A-F]{24}$} } glob($node->archive_dir . '/*');

# The beginnings of records of indexes within a phase: changes, whole pages
# of builds and rewritten tables, and the conflicts before dead entries are removed.
sub places
{
	my ($start, $stop) = @_;
	my ($dump) = run_command([ 'pg_waldump', '--path', $node->archive_dir, '--start', $start, '--end', $stop ]);

	return map { /^rmgr: (?:Generic|custom|Btree|XLOG .*FPI).*lsn: ([0-9A-F\/]+), prev/ ? $1 : () } split /\n/, $dump;
}

sub recover_to
{
	my ($lsn, $name) = @_;
	my $server = PostgreSQL::Test::Cluster->new('recovered_' . $lsn =~ s{/}{_}r);

	$server->init_from_backup($node, 'before', has_restoring => 1, standby => 0);
	$server->append_conf('postgresql.conf', "recovery_target_lsn = '$lsn'\nrecovery_target_inclusive = off\nrecovery_target_action = promote\nrecovery_target_timeline = current\narchive_mode = off\n");
	$server->start;
	$server->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'recovery did not end';

	my $check = q{SELECT count(*) FROM (SELECT wormhole_check(indexrelid, true) FROM pg_index WHERE indrelid = 'w'::regclass AND indisvalid) x};
	my $compare = q{SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;
		SELECT count(*), md5(string_agg(k::text, ',')) FROM (SELECT k FROM w ORDER BY k) x;
		SELECT count(*), md5(string_agg(s, ',')) FROM (SELECT s FROM w ORDER BY s DESC) x;
		SELECT count(*), sum(d) FROM (SELECT d FROM w ORDER BY d) x;
		RESET enable_seqscan; RESET enable_sort; SET enable_indexscan = off; SET enable_indexonlyscan = off;
		SELECT count(*), md5(string_agg(k::text, ',' ORDER BY k)) FROM w;
		SELECT count(*), md5(string_agg(s, ',' ORDER BY s DESC)) FROM w;
		SELECT count(*), sum(d) FROM w;};
	my @answers = split /\n/, $server->safe_psql('postgres', $compare);

	is($server->safe_psql('postgres', $check), 3, "$name, $lsn: whole");
	is("@answers[0 .. 2]", "@answers[3 .. 5]", '... with all rows');
	$server->safe_psql('postgres', q{
		INSERT INTO w SELECT g, g % 7, key(g % 6000) FROM generate_series(10001, 11500) g ORDER BY md5(g::text);
		DELETE FROM w WHERE k % 3 = 0});
	$server->safe_psql('postgres', 'VACUUM w');
	@answers = split /\n/, $server->safe_psql('postgres', $compare);
	is($server->safe_psql('postgres', $check), 3, '... whole after changes');
	is("@answers[0 .. 2]", "@answers[3 .. 5]", '... with all rows');
	$server->stop;
	return;
}

foreach my $phase (@phases)
{
	my ($name, $n, $sql, $start, $stop) = @$phase;
	my @places = places($start, $stop);

	cmp_ok(scalar @places, '>=', $n, "seed $seed, $name: " . @places . ' records');
	recover_to($places[ pick(int(@places * $_ / $n), int(@places * ($_ + 1) / $n) - 1) ], $name) foreach 0 .. $n - 1;
}
$node->stop;
done_testing();
