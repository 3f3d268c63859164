# RangeFilter.pm: what the TAP tests share.

package RangeFilter;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(new_server has_library seed pick load_schema all_verified same_answers compare_queries
  denied start_load start_scripts finish_load same_by_index indexes_whole open_session send_sql
  answer ask close_session wait_for_recovery run_with_resource_manager use_resource_manager);

my $resource_manager = 0;

# Runs another test of this directory with a resource manager of our own.
sub run_with_resource_manager
{
	my ($test) = @_;

	$resource_manager = 128;
	do "$FindBin::RealBin/$test" // die $@ || $!;
	return;
}

# Sets wormhole.resource_manager, and has redo compare all pages of our indexes unless told not to.
# "all" would compare those of tables, too, which doubles the WAL, and leaves out what is registered
# after the setting was read.
sub use_resource_manager
{
	my ($server, $id, $compare) = @_;
	my $ours = $id ? 'generic, wormhole' : 'generic';

	$server->append_conf('postgresql.conf', "wormhole.resource_manager = $id\n");
	$server->append_conf('postgresql.conf', "wal_consistency_checking = '$ours'\n") if $compare // 1;
	return;
}

# A server that has preloaded the library.  Autovacuum is off, and the worker: tests
# say themselves when to summarize.
sub new_server
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	# Checksums find pages that changed behind WAL's back, also those that a
	# test damages.
	my @checksums =
	  !$params{without_checksums} ? '--data-checksums'
	  : $node->pg_version >= 18 ? '--no-data-checksums'
	  : ();
	$node->init(extra => \@checksums, %{ $params{init} // {} });
	$node->append_conf(
		'postgresql.conf', qq{
shared_preload_libraries = 'rangefilter'
autovacuum = off
rangefilter.autosummarize = off
fsync = off
jit = off
max_prepared_transactions = 10
log_min_messages = warning
log_statement = none
log_checkpoints = off
restart_after_crash = on
timezone = 'UTC'
});
	# A standby may lag behind checkpoints.  Core's test module allows 10 connections then,
	# and those that end still count for a moment.
	$node->append_conf('postgresql.conf', "wal_keep_size = '1GB'\nmax_connections = 50\n")
	  if $params{init} && $params{init}{allows_streaming};
	$node->append_conf('postgresql.conf', $params{conf}) if $params{conf};
	use_resource_manager($node, $resource_manager, scalar(($params{conf} // "") =~ /wal_consistency_checking/)) if $resource_manager;
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION rangefilter');
	return $node;
}

# Does the server have a library?
sub has_library
{
	my ($node, $library) = @_;

	chomp(my $directory = $node->config_data('--pkglibdir'));
	return -e "$directory/$library.so";
}

# The seed of this run, which goes into the tests' names: SEED=n repeats it.
sub seed
{
	my $seed = $ENV{SEED} // (time() ^ ($$ << 8)) & 0x7FFFFFFF;

	srand($seed);
	return $seed;
}

# A random number from the first to the second one.
sub pick
{
	my ($from, $to) = @_;

	return $from + int(rand($to - $from + 1));
}

# A partitioned table with an index for each kind of filter and key: numbers,
# byte strings, an expression, a partial index, rows.
sub load_schema
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q{
CREATE TABLE t (p int, k int, b text COLLATE "C", n numeric, w text COLLATE "C")
	PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES IN (%s)', i, i)
	FROM generate_series(0, 5) i \gexec
ALTER TABLE t0 ALTER w SET STORAGE external;
INSERT INTO t SELECT k % 6, k, 'b' || k, k / 10.0, CASE WHEN k % 50 = 0 THEN repeat('w', 3000) || k END
	FROM generate_series(1, 3000) k;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_b ON t USING rangefilter (b);
CREATE INDEX t_n ON t USING rangefilter (n) WITH (suffix = mixed);
CREATE INDEX t_w ON t USING rangefilter (w) WITH (suffix = hash);
CREATE INDEX t_e ON t USING rangefilter ((k * 2)) WHERE k % 3 = 0;
CREATE INDEX t_wnk ON t USING rangefilter (w, n, k);
CREATE INDEX t_btree ON t (k);
});
	return;
}

# Does rangefilter_verify() find every row version of the table in all its
# indexes?  One test.
sub all_verified
{
	my ($node, $name) = @_;
	my ($status, $out, $err) = $node->psql(
		'postgres', q{
SELECT count(rangefilter_verify(c.oid)) > 0 FROM pg_class c
JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON i.indexrelid = c.oid
WHERE a.amname = 'rangefilter' AND c.relkind = 'i' AND i.indisvalid});

	return is("$out$err", 't', "$name: verified");
}

# How many rows that a snapshot sees do the summaries deny?  A list, one number
# for each of the columns.
sub denied
{
	my ($node) = @_;

	return $node->safe_psql(
		'postgres', q{
SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain('t_k', k, k)),
	count(*) FILTER (WHERE NOT rangefilter_may_contain('t_b', b, b)),
	count(*) FILTER (WHERE NOT rangefilter_may_contain('t_n', n, n)),
	count(*) FILTER (WHERE NOT rangefilter_may_contain('t_w', w, w))
FROM t});
}

# The same random queries with skipping and without it, each pair in one
# snapshot.  One test.
sub same_answers
{
	my ($node, $name, $n) = @_;
	my $script = "BEGIN ISOLATION LEVEL REPEATABLE READ;\n";
	my @queries;

	for (1 .. $n // 25)
	{
		my $k = pick(-100, 9000);
		my $to = $k + pick(0, 20);

		# Every third query learns the values only when it runs.
		my $late = pick(0, 2) == 0;
		my ($low, $high, $b) = map { $late ? "(SELECT $_)" : $_ } $k, $to, "'b$k'";
		my $where = (
			"k = $low", "k BETWEEN $low AND $high",
			"k IN ($low, $high, -1)", "b = $b",
			"b > $b AND b < 'b${k}z'", "b LIKE $b || '%'",
			"n = $low / 10.0", "n >= $low / 10.0 AND n < $high / 10.0",
			"w = repeat('w', 3000) || $k", "k * 2 = $low * 2 AND k % 3 = 0",
			"k IS NULL", "k = $low OR n = $high / 10.0",
			"w IS NULL AND n = $low / 10.0", "w IS NULL AND n BETWEEN $low / 10.0 AND $high / 10.0",
			"w IS NULL AND n = $k / 10.0 AND k > $k",
			"w = repeat('w', 3000) || $k AND n = $k / 10.0")[ pick(0, 15) ];

		push @queries, $where;
		foreach my $enable ('on', 'off')
		{
			$script .= "SET rangefilter.enable = $enable;\n"
			  . "SELECT count(*), sum(k), min(b) FROM t WHERE $where;\n";
		}
	}
	my @lines = split /\n/,
	  $node->safe_psql('postgres', $script . "COMMIT;\n");
	my @bad =
	  grep { $lines[ 2 * $_ ] ne $lines[ 2 * $_ + 1 ] } 0 .. $#queries;

	is(scalar(@lines), 2 * @queries, "$name: all queries answered");
	return is(
		join("\n",
			map { "$queries[$_]: $lines[2 * $_], not $lines[2 * $_ + 1]" } @bad),
		'', "$name: the same with and without skipping");
}

# Queries in one session, each with skipping and without it, in transactions that are
# rolled back.  A query is a list: its name, SQL to be run before it in the transaction,
# the query, and whether EXPLAIN ANALYZE is to show that partitions were skipped.  Three
# tests: all have rows, the same ones, and those skip that are to.
sub compare_queries
{
	my ($node, $name, $session, @queries) = @_;
	my $script = "$session;\n";
	my (%answer, @empty, @differ, @read_all);

	foreach my $i (0 .. $#queries)
	{
		my (undef, $before, $query, $skips) = @{ $queries[$i] };

		$script .= "\\echo == $i $_\nBEGIN; SET LOCAL rangefilter.enable = $_; $before; $query; ROLLBACK;\n"
		  foreach ('on', 'off');
		$script .= "\\echo == $i plan\nBEGIN; $before; "
		  . "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query; ROLLBACK;\n"
		  if $skips;
	}
	foreach (split /^== /m, $node->safe_psql('postgres', $script))
	{
		$answer{$1} = join("\n", sort split /\n/, $2) if /^(\d+ \w+)\n(.*)/s;
	}
	foreach my $i (0 .. $#queries)
	{
		my ($query, undef, undef, $skips) = @{ $queries[$i] };
		my ($on, $off, $plan) = map { $answer{"$i $_"} // '' } 'on', 'off', 'plan';

		push @empty, $query if $off eq '';
		push @differ, "$query: $on, not $off" if $on ne $off;
		push @read_all, "$query: $plan" if $skips && $plan !~ /Partitions Skipped: [1-9]/;
	}
	is(join("\n", @empty), '', "$name: all queries have rows");
	is(join("\n", @differ), '', "$name: the same with and without skipping");
	return is(join("\n", @read_all), '', "$name: partitions are skipped");
}

# A psql that stays, to hold a transaction or a snapshot.
sub open_session
{
	my ($node, $database) = @_;
	my ($in, $out) = ('', '');
	my $timer = IPC::Run::timeout(60);
	my $run = IPC::Run::start(
		[
			$node->installed_command('psql'), '-XAqt', '-v', 'ON_ERROR_STOP=0',
			'-d', $node->connstr($database // 'postgres')
		],
		'<', \$in, '>', \$out, '2>&1', $timer);

	return { in => \$in, out => \$out, run => $run, timer => $timer, n => 0 };
}

# Sends something, without waiting for the answer.
sub send_sql
{
	my ($session, $sql) = @_;

	$session->{mark} = 'answered ' . ++$session->{n};
	${ $session->{out} } = '';
	${ $session->{in} } .= "$sql;\n\\echo $session->{mark}\n";
	$session->{run}->pump_nb;
	return;
}

# What the session answers, errors included; dies after a minute without.
sub answer
{
	my ($session) = @_;
	my $mark = $session->{mark};
	my $answer;

	$session->{timer}->start(60);
	$session->{run}->pump until ${ $session->{out} } =~ /^\Q$mark\E\n/m;
	($answer = ${ $session->{out} }) =~ s/\n?\Q$mark\E\n//;
	return $answer;
}

sub ask
{
	my ($session, $sql) = @_;

	send_sql($session, $sql);
	return answer($session);
}

sub close_session
{
	my ($session) = @_;

	${ $session->{in} } .= "\\q\n";
	return $session->{run}->finish;
}

# Waits until a server whose process was killed answers a query with "t"; false if
# it does not within minutes.  poll_query_until() does not do here: writing to a psql
# that has ended, since it was refused, dies.
sub wait_for_recovery
{
	my ($node, $query) = @_;

	for (1 .. 1800)
	{
		return 1 if eval { $node->safe_psql('postgres', $query) eq 't' };
		usleep(100_000);
	}
	return 0;
}

# The scripts of the write load, and how often each runs.
my %scripts = (
	insert => [
		80, q{
INSERT INTO t VALUES (:k % 6, :k, 'b' || :k, :k / 10.0);
}
	],
	bulk => [
		8, q{
INSERT INTO t SELECT g % 6, g, 'b' || g, g / 10.0, CASE WHEN g % 50 = 0 THEN repeat('w', 3000) || g END
	FROM generate_series(:k::int, :k + :few) g;
}
	],
	copy => [ 16, q{COPY t FROM '__FILE__' WITH (FORMAT csv);} ],
	nulls => [
		8, q{INSERT INTO t (p) VALUES (:k % 6), (:few % 6);}
	],
	update => [
		48, q{
UPDATE t SET k = :k, b = 'b' || :k, n = :k / 10.0 WHERE k = :from;
}
	],
	hot => [ 16, q{UPDATE t SET w = repeat('w', 3000) || :k WHERE k = :from;} ],
	move => [ 16, q{UPDATE t SET p = :few % 6 WHERE k = :from;} ],
	delete => [ 32, q{DELETE FROM t WHERE k BETWEEN :from AND :from + :few / 10;} ],
	rolled_back => [
		24, q{
BEGIN;
INSERT INTO t VALUES (:k % 6, :k, 'b' || :k, :k / 10.0);
SAVEPOINT a;
INSERT INTO t VALUES (:few % 6, :few, 'b' || :few, :few / 10.0);
ROLLBACK TO a;
UPDATE t SET k = k + 1 WHERE k = :from;
ROLLBACK;
}
	],
	savepoint => [
		24, q{
BEGIN;
SAVEPOINT a;
INSERT INTO t VALUES (:k % 6, :k, 'b' || :k, :k / 10.0);
RELEASE a;
SAVEPOINT b;
INSERT INTO t VALUES (:few % 6, :from, 'b' || :from, :from / 10.0);
ROLLBACK TO b;
COMMIT;
}
	],
	vacuum => [ 4, q{VACUUM t:part;} ],
	summarize => [ 4, q{SELECT rangefilter_summarize('t:part:_k_idx');} ],
	checkpoint => [ 1, q{SELECT pg_sleep(0.3); CHECKPOINT;} ]);

# Starts pgbench with the scripts above, so many transactions a second (0: as
# many as it can).  Returns what finish_load() wants.
sub start_load
{
	my ($node, $seconds, $seed, $rate) = @_;
	my $dir = $node->basedir;
	my $csv = "$dir/copy.csv";
	my %weighted;

	PostgreSQL::Test::Utils::append_to_file($csv,
		join('', map { "$_,8${_}00,b8${_}00,8${_}0,\n" } 0 .. 5))
	  unless -e $csv;
	foreach my $name (sort keys %scripts)
	{
		my ($weight, $text) = @{ $scripts{$name} };

		$text =~ s/__FILE__/$csv/g;
		$text =~ s/t:part:_k_idx/t:part\x{0}/g;

		# Names of tables are no place for pgbench's variables: choose by \if.
		if ($text =~ /t:part/)
		{
			my $lines = '';

			for my $part (0 .. 5)
			{
				my $line = $text;

				$line =~ s/t:part\x{0}/t${part}_k_idx/g;
				$line =~ s/t:part/t$part/g;
				$lines .= ($part ? '\elif' : '\if') . " :few % 6 = $part\n$line\n";
			}
			$text = "$lines\\endif";
		}
		$weighted{$name} = [ $weight,
			"\\set k random(1, 9000)\n\\set few random(0, 200)\n"
			  . "\\set from random(1, 9000)\n$text\n" ];
	}
	return start_scripts($node, $seconds, $seed, \%weighted, '--max-tries', 100, $rate ? ('-R', $rate) : ());
}

# Begins to run scripts of pgbench in four sessions.  For each name weight and text.
sub start_scripts
{
	my ($node, $seconds, $seed, $scripts, @options) = @_;
	my $dir = $node->basedir;
	my ($out, $err) = ('', '');
	my @command = (
		$node->installed_command('pgbench'), '-n',
		'-h', $node->host, '-p', $node->port, '-c', 4, '-j', 4,
		'-T', $seconds, '--random-seed', $seed, @options);

	foreach my $name (sort keys %$scripts)
	{
		my ($weight, $text) = @{ $scripts->{$name} };

		unlink "$dir/$name.sql";
		PostgreSQL::Test::Utils::append_to_file("$dir/$name.sql", $text);
		push @command, '-f', "$dir/$name.sql\@$weight";
	}
	push @command, 'dbname=postgres application_name=load';
	return { out => \$out, err => \$err,
		run => IPC::Run::start(\@command, '<', \undef, '>', \$out, '2>', \$err) };
}

# Waits for the load to end.  Returns what pgbench complained of.
sub finish_load
{
	my ($load) = @_;

	$load->{run}->finish;
	return join("\n", grep { !/^pgbench \(|^pgbench: setting/ } split /\n/, ${ $load->{err} });
}

# Queries answer the same, in one snapshot, by indexes and without.  Settings may say
# which ways there are by indexes.
sub same_by_index
{
	my ($server, $name, $queries, $settings) = @_;
	my @lines = split /\n/, $server->safe_psql('postgres',
		"BEGIN ISOLATION LEVEL REPEATABLE READ;
		SET enable_seqscan = off; SET enable_sort = off; $settings $queries
		SET enable_seqscan = on; SET enable_sort = on; SET enable_indexscan = off;
		SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $queries COMMIT;");
	my $half = @lines / 2;

	return is(join("\n", @lines[ 0 .. $half - 1 ]), join("\n", @lines[ $half .. $#lines ]),
		"$name: the same with and without the indexes");
}

# wormhole_check() finds no fault with a table's indexes.
sub indexes_whole
{
	my ($server, $table, $name) = @_;
	my ($status, $out, $err) = $server->psql('postgres',
		"SELECT wormhole_check(indexrelid, true) FROM pg_index WHERE indrelid = '$table'::regclass");

	return is($err, '', "$name: indexes are whole");
}

1;
