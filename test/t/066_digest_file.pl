# The file that keeps shared digests while the server is down: what it saves, and when it
# must not be used.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $node = new_server('kept', init => { allows_streaming => 1 }, conf => "max_locks_per_transaction = 512\n");
my $standby = PostgreSQL::Test::Cluster->new('standby');
my $file = $node->data_dir . '/pg_stat/rangefilter.digests';
my $preload = "shared_preload_libraries = 'rangefilter'\n";

# Even numbers, and words; digests of words have knots and bits of hashes.
$node->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, k bigint, s text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 70) i \gexec
INSERT INTO t SELECT p, abs(hashint8extended(n, p)) / 2 * 2, md5(n || ' ' || p) || substr(md5(p::text), 1, n % 9)
FROM generate_series(1, 70) p, generate_series(1, 1500) n;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s) WITH (filter = surf, suffix = mixed);
CREATE FUNCTION warm() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int;
	found int = 0;
BEGIN
	FOR i IN 1 .. 200 LOOP
		EXECUTE format('SELECT count(*) FROM t WHERE k = %s', abs(hashint8extended(i, 100)) / 2 * 2 + 1) INTO n;
		found := found + n;
		EXECUTE format('SELECT count(*) FROM t WHERE s = %L', md5(i || ' 100')) INTO n;
		found := found + n;
	END LOOP;
	RETURN found;
END $$;
});
$node->backup('base');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;

# How many digests are there and true?
sub digests
{
	return $node->safe_psql('postgres', 'SELECT indexes FROM rangefilter_shared_cache()');
}

# Buffers that the first planning of a session looks at.
sub buffers
{
	my ($condition) = @_;
	my $plan = $node->safe_psql('postgres', "LOAD 'rangefilter'; EXPLAIN (COSTS OFF, BUFFERS) SELECT * FROM t WHERE $condition");
	my ($counts) = $plan =~ /Planning:\n\s+Buffers: shared (.*)/ or die $plan;
	my $sum = 0;

	$sum += $_ foreach $counts =~ /(\d+)/g;
	return $sum;
}

# Each of these keys is found as often as without skipping.
sub finds
{
	my ($what, @conditions) = @_;
	my @answers = map {
		my $enable = $_;
		$node->safe_psql('postgres', "LOAD 'rangefilter'; SET rangefilter.enable = $enable;\n"
			. join('', map { "SELECT count(*) FROM t WHERE $_;\n" } @conditions));
	} qw(on off);

	is($answers[0], $answers[1], "$what: the rows are those without skipping");
	return;
}

my @there = map { my $p = 7 * $_; ("k = abs(hashint8extended($_, $p)) / 2 * 2", "s = md5('$_ $p') || substr(md5('$p'), 1, $_)") } 1 .. 8;

is($node->safe_psql('postgres', 'SELECT warm()'), 0, 'numbers and words that are not there');

# Keys that are added to a digest, one by a prepared transaction, and so many that a digest is outdated.
$node->safe_psql('postgres', q{
INSERT INTO t VALUES (3, 33, 'thirty-three');
BEGIN; INSERT INTO t VALUES (6, 31, 'thirty-one'); PREPARE TRANSACTION 'kept';
INSERT INTO t SELECT 9, abs(hashint8extended(n, 9000)) / 2 * 2, md5(n || ' 9000') FROM generate_series(1, 20000) n;
});
my $digests = digests();
cmp_ok($digests, '>', 120, 'most partitions have digests of both columns');

# A proper stop, and others.
ok(!-e $file, 'a server that runs has no file');
$node->stop;
ok(-e $file, 'one that is stopped has');
$node->start;
ok(!-e $file, 'the start removes it');
is(digests(), $digests, 'digests are there as before');
my $kept = buffers('k = 35');
$node->safe_psql('postgres', "COMMIT PREPARED 'kept'");
finds('restarted', @there, 'k = 33', "s = 'thirty-three'", 'k = 31', "s = 'thirty-one'", (map { ("k = abs(hashint8extended($_, 9000)) / 2 * 2", "s = md5('$_ 9000')") } 19993 .. 20000), 'k = 35', "s BETWEEN 'a' AND 'a1'");

$node->stop('immediate');
ok(!-e $file, 'an immediate stop leaves no file');
$node->start;
is(digests(), 0, 'and no digests');
cmp_ok(buffers('k = 35'), '>', $kept + 100, 'without digests metapages are read');

# Less memory than before, or none.
$node->safe_psql('postgres', 'SELECT warm()');
$node->append_conf('postgresql.conf', 'rangefilter.shared_cache_size = 1MB');
$node->restart;
my $fewer = digests();
ok($fewer > 0 && $fewer < $digests, 'less memory, fewer digests');
finds('less memory', @there);
$node->append_conf('postgresql.conf', 'rangefilter.shared_cache_size = 0');
$node->restart;
finds('no memory', @there);
$node->append_conf('postgresql.conf', 'rangefilter.shared_cache_size = 64MB');
$node->restart;
is(digests(), 0, 'the file is of a stop before the last one');

# A server without the library changes an index meanwhile.
$node->safe_psql('postgres', 'SELECT warm()');
cmp_ok(digests(), '>', 120, 'digests again');
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
ok(-e $file, 'a server without the library leaves the file alone');
$node->safe_psql('postgres', "INSERT INTO t VALUES (4, 35, 'thirty-five')");
$node->stop;
$node->append_conf('postgresql.conf', $preload);
$node->start;
is(digests(), 0, 'the file is of an earlier stop');
finds('an earlier stop', 'k = 35', "s = 'thirty-five'");

# Changes bytes of the file, at an offset from its end if that is negative, and its checksum unless told not to.
my @crc_table = map { my $crc = $_; $crc = $crc & 1 ? $crc >> 1 ^ 0x82f63b78 : $crc >> 1 for 1 .. 8; $crc } 0 .. 255;

sub change_file
{
	my ($offset, $keep_checksum) = @_;
	my $content = slurp_file($file);
	my $crc = 0xffffffff;

	substr($content, $offset, 1) = chr(1 ^ ord(substr($content, $offset, 1)));
	unless ($keep_checksum)
	{
		$crc = $crc_table[ ($crc ^ $_) & 255 ] ^ $crc >> 8 foreach unpack('C*', substr($content, 12));
		substr($content, 8, 4) = pack('L', $crc ^ 0xffffffff);
	}
	open my $changed, '>:raw', $file or die "$file: $!";
	print $changed $content;
	close $changed;
	return;
}

# A file of which nothing that matters has changed, and others: another database system, shutdown, time
# or library, another magic and server version, a damaged one.
foreach my $change ([ 'hash bits of a bucket', -1, 0 ], [ 'database system', 12 ], [ 'shutdown', 20 ], [ 'time', 28 ], [ 'library', 36 ],
	[ 'magic', 0 ], [ 'server', 4 ], [ 'damaged', -1000, 1 ])
{
	my ($what, $offset, $keep_checksum) = @$change;
	my $log = -s $node->logfile;

	$node->safe_psql('postgres', 'SELECT warm()') if digests() == 0;
	$node->stop;
	change_file($offset, $keep_checksum);
	$node->start;
	is(digests() > 0 ? 'used' : 'not used', $offset == -1 ? 'used' : 'not used', "a file is used or not: $what");
	finds($what, $there[0], $there[9]);
	next unless $offset == 0 || $offset == 4 || $keep_checksum;
	like(slurp_file($node->logfile, $log), qr/ignoring invalid data in file "pg_stat\/rangefilter.digests"\n.*DETAIL:  Digests/, "... which is told: $what");
}

# A file that the server cannot read does not stay, in the way of the next one.
$node->safe_psql('postgres', 'SELECT warm()') if digests() == 0;
$node->stop;
chmod 0, $file;
my $log = -s $node->logfile;
$node->start;
ok(!-e $file, 'a file that cannot be read is removed');
like(slurp_file($node->logfile, $log), qr/could not read file "pg_stat\/rangefilter.digests"/, '... which is told');
$node->safe_psql('postgres', 'SELECT warm()');
$node->restart;
cmp_ok(digests(), '>', 120, 'so the next one can be written');

# A process that is killed has shared memory made anew.
$node->safe_psql('postgres', 'SELECT warm()') if digests() == 0;
$node->restart;
cmp_ok(digests(), '>', 0, 'digests of before the restart');
my $killed = open_session($node);
my $pid = ask($killed, 'SELECT pg_backend_pid()');
kill 'KILL', $pid;
wait_for_recovery($node, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid)");
is(digests(), 0, 'none after a crash');
finds('after a crash', @there);

# The standby takes over and gets a row.  The old primary follows it and then takes over again:
# replay has told no counter of the row.
$node->safe_psql('postgres', 'SELECT warm()');
$node->wait_for_catchup($standby);
$node->stop;
ok(-e $file, 'the old primary has a file');
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO t VALUES (5, 37, 'thirty-seven')");
$node->enable_streaming($standby);
$node->set_standby_mode();
$node->start;
ok(!-e $file, 'which it reads');
$standby->wait_for_catchup($node);
finds('as a standby', @there, 'k = 37', "s = 'thirty-seven'");
$node->promote;
is(digests(), 0, 'what was loaded does not count after replay');
finds('promoted', @there, 'k = 37', "s = 'thirty-seven'");
is($node->safe_psql('postgres', 'SELECT warm()'), 0, 'new ones are made');
cmp_ok(digests(), '>', 120, 'as before');
finds('with new ones', @there, 'k = 37', "s = 'thirty-seven'");

$standby->stop;
$node->stop;
done_testing();
