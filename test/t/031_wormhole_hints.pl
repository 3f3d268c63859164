# Hints of wormhole indexes that sessions share, and those of a session that
# others change the index under.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server(
	'wormhole_hint',
	conf => q{
wormhole.hint_memory = '256kB'
max_wal_size = '256MB'
});
my $rows = 20000;

# Three indexes, of which the area has room for one or two, and one it is too
# small for.
$node->safe_psql(
	'postgres', qq{
CREATE TABLE w (k int8, s text COLLATE "C", u uuid, l text COLLATE "C");
INSERT INTO w SELECT i, md5(i::text) || repeat('x', i % 100), md5(i::text)::uuid, repeat(md5((i % 50)::text), 32) || i
	FROM generate_series(1, $rows) i;
CREATE INDEX w_k ON w USING wormhole (k);
CREATE INDEX w_s ON w USING wormhole (s);
CREATE INDEX w_u ON w USING wormhole (u);
CREATE INDEX w_l ON w USING wormhole (l);
VACUUM ANALYZE w;
});

# Looks up many keys one by one and counts the rows found.
my %look_up = (
	k => 'SELECT count(*) FROM generate_series(1, 4000) j, LATERAL (SELECT FROM w WHERE k = j * 7919 % 20000 + 1 OFFSET 0) x;',
	s => q{SELECT count(*) FROM generate_series(1, 4000) j, LATERAL (SELECT FROM w WHERE s = md5((j * 7919 % 20000 + 1)::text) || repeat('x', (j * 7919 % 20000 + 1) % 100) OFFSET 0) x;},
	u => 'SELECT count(*) FROM generate_series(1, 4000) j, LATERAL (SELECT FROM w WHERE u = md5((j * 7919 % 20000 + 1)::text)::uuid OFFSET 0) x;',
	l => 'SELECT count(*) FROM generate_series(1, 4000) j, LATERAL (SELECT FROM w WHERE l = repeat(md5(((j * 7919 % 20000 + 1) % 50)::text), 32) || (j * 7919 % 20000 + 1) OFFSET 0) x;');
my $status = q{SELECT hint_bytes > 0, hint_hits, stale_walks, directory_descents FROM wormhole_status('w_};
my $first = open_session($node);
my $second = open_session($node);

ask($first, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET wormhole.hint_after = 0');
ask($second, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET wormhole.hint_after = 1000000');

sub status
{
	my ($session, $index) = @_;

	return split /\|/, ask($session, "$status$index')");
}

is(ask($first, $look_up{k}), 4000, 'the first session finds all');
my ($there, $hits, $stale, $descents) = status($first, 'k');
is($there, 't', 'a session makes a hint');
cmp_ok($hits, '>=', 3999, 'and uses it');
is($stale, 0, 'it is right');
is(ask($second, $look_up{k}), 4000, 'the second session finds all');
my ($there2, $hits2, $stale2, $descents2) = status($second, 'k');
is($there2, 't', 'the hint is there for others');
cmp_ok($hits2, '>=', 7990, 'who use it from the first lookup on; all are counted');
is($stale2, 0, 'it is right');
cmp_ok($descents2 - $descents, '<=', 10, 'and nobody went through the directory');

# Room for others is made, and for one that is too large not.
foreach my $round (1 .. 3)
{
	foreach my $index ('u', 's', 'l', 'k')
	{
		is(ask($first, $look_up{$index}), 4000, "round $round: index $index, maker");
		is(ask($second, $look_up{$index}), 4000, "round $round: index $index, user");
	}
}
is((status($first, 'l'))[0], 'f', 'a hint too large is not made');

# A session that saw the index small finds its way when it is large.
$node->safe_psql('postgres', 'CREATE TABLE g (k int8); CREATE INDEX g_k ON g USING wormhole (k)');
ask($second, 'SET wormhole.enable_hint = off; SELECT count(*) FROM g WHERE k = 1');
$node->safe_psql('postgres', 'INSERT INTO g SELECT i FROM generate_series(1, 200000) i');
my $read = sub {
	my $answer = ask($second, 'EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off, SUMMARY off) SELECT count(*) FROM g WHERE k = 199999');

	return $answer =~ /Buffers: shared hit=(\d+)/ ? $1 : 1_000_000;
};
$read->();
cmp_ok($read->(), '<', 20, 'a descent begins at the new root');
ask($second, 'RESET wormhole.enable_hint');

# Readers search hints while they are being replaced.
my $dir = $node->basedir;
append_to_file("$dir/read.sql", qq{
\\set k random(1, $rows)
SELECT 1 / count(*) FROM w WHERE k = :k;
SELECT 1 / count(*) FROM w WHERE u = md5(:k::text)::uuid;
SELECT 1 / count(*) FROM w WHERE s = md5(:k::text) || repeat('x', :k % 100);
SELECT 1 / (count(*) - 9) FROM (SELECT k FROM w WHERE k >= :k - 100000 AND k <= $rows ORDER BY k DESC LIMIT 10) x;
});
append_to_file("$dir/write.sql", qq{
\\set n random(-1000000000, -1)
INSERT INTO w SELECT :n - j, 'n' || :n || '.' || j, md5((:n + j)::text || 'n')::uuid, 'x' FROM generate_series(1, 100) j;
});
$node->command_ok(
	[
		'pgbench', '-n', '-c', 4, '-j', 2, '-T', 8, '--random-seed', $seed,
		'-f', "$dir/read.sql\@40", '-f', "$dir/write.sql\@4",
		"dbname=postgres options='-cenable_seqscan=off -cenable_bitmapscan=off -cwormhole.hint_after=0'"
	],
	"seed $seed: readers and writers at once");
foreach my $index ('k', 's', 'u', 'l')
{
	is(ask($first, $look_up{$index}), 4000, "index $index afterwards");
	is($node->safe_psql('postgres', "SELECT wormhole_check('w_$index', true) = count(*) FROM w"), 't', 'and whole');
}
close_session($first);

# The shared memory is made anew after a crash, in the size it had.
$node->append_conf('postgresql.conf', "wormhole.hint_memory = '64MB'\n");
$node->reload;
my $pid = ask($second, 'SELECT pg_backend_pid()');
is($node->safe_psql('postgres', 'SHOW wormhole.hint_memory'), '64MB', 'the setting has changed');
kill 'KILL', $pid;
$second->{run}->finish;
ok(wait_for_recovery($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)"),
	'the server is up again');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SET wormhole.hint_after = 0; $look_up{k}"), 4000, 'and finds all');
# Inserts look where the session's last row of the key went in, or its last row if that was behind all others.
# (Each key has several leaves, and each insert another key than the one before.)
my $inserter = open_session($node);

ask($inserter, q{CREATE TABLE w_few (k int, n int8); CREATE INDEX w_few_k ON w_few USING wormhole (k); CREATE INDEX w_few_n ON w_few USING wormhole (n);
INSERT INTO w_few SELECT g % 3, g FROM generate_series(1, 20000) g});
foreach my $index ('few_k', 'few_n')
{
	my ($there, $hits, $stale, $descents) = status($inserter, $index);

	cmp_ok($hits + $stale + $descents, '<', 1000, "$index: few inserts need a search for their leaf");
}
is(ask($inserter, q{SELECT wormhole_check('w_few_k', true) = 20000 AND wormhole_check('w_few_n', true) = 20000}), 't', 'they go into the right one');
close_session($inserter);

$node->stop;
done_testing();
