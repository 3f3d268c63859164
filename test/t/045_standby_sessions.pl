# Sessions on a standby ask all the time while replay goes on, while the standby is
# promoted, and while the promoted server is written to.  Each query has two answers of one
# snapshot, by the indexes and by expressions that no index knows.  Then the old primary
# follows the new one by pg_rewind, and the two change places.  A base backup taken
# under this load is as good as the server.  From it comes also a standby of the standby,
# which stays in recovery while that is promoted.
#
# STANDBY_ROUNDS=n repeats all that, STANDBY_SECONDS=n makes each round longer.

use strict;
use warnings;

use File::Copy;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $rounds = $ENV{STANDBY_ROUNDS} // 1;
my $seconds = $ENV{STANDBY_SECONDS} // 4;
my $seed = seed();
my $primary = new_server(
	'one',
	init => { allows_streaming => 1 },
	conf => q{
rangefilter.autosummarize = on
rangefilter.autosummarize_delay = '500ms'
wal_consistency_checking = 'generic'
max_wal_size = '200MB'
max_standby_streaming_delay = '60s'
hot_standby_feedback = on
wal_receiver_status_interval = '1s'
wal_keep_size = '2GB'
deadlock_timeout = '100ms'
});
my $standby = PostgreSQL::Test::Cluster->new('two');
my $cascade = PostgreSQL::Test::Cluster->new('three');

# Enough partitions for digests.  Keys up to 2000 come and go, those above are many.  In t1
# keys gather until VACUUM.
#
# watch() asks until there is a row in done, and counts in settings how often, and how many
# rows were there.  Plans of the constants 1 to 40 are those of before: their guards have to
# notice.  A session that toggles also compares with rangefilter.enable off; that makes the
# plans anew.
$primary->safe_psql(
	'postgres', q{
CREATE TABLE t (p int, id bigserial, k bigint, s text COLLATE "C") PARTITION BY LIST (p);
SELECT format('CREATE TABLE t%1$s PARTITION OF t FOR VALUES IN (%1$s)', i) FROM generate_series(1, 40) i \gexec
CREATE FUNCTION s(k bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT repeat('s', 60) || $1 $$;
CREATE FUNCTION fill(p int, n int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO t SELECT p, nextval('t_id_seq'), k, s(k)
	FROM (SELECT 2000 + 2 * (random() * 1000000)::bigint k FROM generate_series(1, n)) x $$;
SELECT fill(i, 300) FROM generate_series(1, 40) i;
CREATE INDEX t_k ON t USING rangefilter (k);
CREATE INDEX t_s ON t USING rangefilter (s);
CREATE INDEX t_ks ON t USING rangefilter (k, s);
CREATE INDEX t_id ON t USING wormhole (id);
CREATE INDEX t_w ON t USING wormhole (s);
ALTER INDEX t1_s_idx SET (autosummarize = off);
SELECT format('ALTER INDEX t%1$s_k_idx RENAME TO k%1$s', i), format('ALTER INDEX t%1$s_s_idx RENAME TO s%1$s', i) FROM generate_series(1, 40) i \gexec

CREATE FUNCTION look(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n int[];
	unskipped int[];
	by_table int[];
BEGIN
	EXECUTE query INTO n;
	IF n[1] IS DISTINCT FROM n[2] THEN
		PERFORM set_config('rangefilter.enable', 'off', true);
		EXECUTE query INTO unskipped;
		PERFORM set_config('rangefilter.enable', 'on', true), set_config('enable_indexscan', 'off', true),
			set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
		EXECUTE query INTO by_table;
		RAISE EXCEPTION '%: % rows, not %, in recovery: %; without skipping %; without index scans %',
			query, n[1], n[2], pg_is_in_recovery(), unskipped[1], by_table[1];
	END IF;
	RETURN n[2];
END $$;
CREATE TABLE done ();
CREATE PROCEDURE watch(toggles bool) LANGUAGE plpgsql AS $$
DECLARE
	asked int;
	there int;
	r record;
	key bigint;
	n int[];
BEGIN
	WHILE NOT EXISTS (SELECT FROM done) LOOP
		asked := current_setting('my.asked');
		there := current_setting('my.there');
		FOR i IN 1 .. 2 LOOP
			key := 1 + (random() * 1999)::int;
			there := there + look(format('EXECUTE g(%s)', key));
			there := there + look(format('SELECT ARRAY[(SELECT count(*) FROM t WHERE s = %1$L),
				(SELECT count(*) FROM t WHERE s || '''' = %1$L)]', s(key)));
			SELECT ARRAY[(SELECT count(*) FROM t WHERE k BETWEEN key AND key + 3 AND s > 's'),
				(SELECT count(*) FROM t WHERE k + 0 BETWEEN key AND key + 3)] INTO n;
			IF n[1] <> n[2] THEN
				RAISE EXCEPTION '%: % rows, not %, in recovery: %', key, n[1], n[2], pg_is_in_recovery();
			END IF;
			asked := asked + 3;
			PERFORM pg_sleep(0.005 * random());
		END LOOP;

		IF current_setting('transaction_isolation') = 'repeatable read' THEN
			-- Plans of before; and what has come last.
			SELECT array_agg(coalesce(count, 0) ORDER BY i) INTO n
			FROM generate_series(1, 40) i LEFT JOIN (SELECT k + 0 AS k, count(*) FROM t WHERE k + 0 <= 40 GROUP BY 1) x ON x.k = i;
			FOR i IN 1 .. 40 LOOP
				there := there + look(format('EXECUTE c%s(%s)', i, n[i]));
			END LOOP;
			asked := asked + 40;
			FOR r IN SELECT id, k, s FROM t ORDER BY id DESC LIMIT 2 LOOP
				there := there + look(format('SELECT ARRAY[(SELECT count(*) FROM t WHERE k = %s AND id = %s), 1]', r.k, r.id));
				there := there + look(format('SELECT ARRAY[(SELECT count(*) FROM t WHERE s = %L AND id = %s), 1]', r.s, r.id));
				asked := asked + 2;
			END LOOP;
		END IF;
		IF toggles THEN
			key := 1 + (random() * 39)::int;
			EXECUTE format('SELECT ARRAY[count(*), sum(id)] FROM t WHERE k = %s', key) INTO n;
			PERFORM set_config('rangefilter.enable', 'off', true);
			PERFORM look(format('SELECT ARRAY[%s, (SELECT sum(id) FROM t WHERE k = %s)]', coalesce(n[2]::text, 'NULL'), key));
			PERFORM set_config('rangefilter.enable', 'on', true);
			asked := asked + 1;
		END IF;
		PERFORM set_config('my.asked', asked::text, false), set_config('my.there', there::text, false);
		COMMIT;
		PERFORM pg_sleep(0.01);
		COMMIT;
	END LOOP;
END $$;
});

# What pgbench does: four clients that write, one that maintains.  A prepared transaction
# may be left by a promotion.  Only rangefilter indexes are made anew CONCURRENTLY: from others,
# btree's among them, rows are missing that were deleted before and that an older snapshot
# of the standby sees.
my $numbers = "\\set p random(2, 40)\n\\set hot random(1, 2000)\n\\set few random(1, 40)\n\\set n random(1, 100000000)\n";
my %writes = map { $_->[0] => [ $_->[1], "$numbers$_->[2];\n" ] } (
	[ 'insert', 40, 'INSERT INTO t SELECT :p, nextval(\'t_id_seq\'), :hot, s(:hot)' ],
	[ 'insert_few', 30, 'INSERT INTO t SELECT :p, nextval(\'t_id_seq\'), :few, s(:few)' ],
	[ 'delete', 40, 'DELETE FROM t WHERE k BETWEEN :hot AND :hot + 20' ],
	[ 'delete_few', 10, 'DELETE FROM t WHERE k = :few' ],
	[ 'trickle', 40, 'SELECT fill(1, 20)' ],
	[ 'trickle_elsewhere', 10, 'SELECT fill(:p, :few)' ],
	[ 'update', 20, 'UPDATE t SET k = :hot, s = s(:hot) WHERE k = :few' ],
	[ 'move', 5, 'UPDATE t SET p = :p WHERE k = :few' ],
	[ 'two_phase', 3, "BEGIN; INSERT INTO t SELECT :p, nextval('t_id_seq'), :few, s(:few);
PREPARE TRANSACTION 'x:n'; COMMIT PREPARED 'x:n'" ],
	[ 'rolled_back', 5, "BEGIN; INSERT INTO t SELECT :p, nextval('t_id_seq'), :few, s(:few); ROLLBACK" ]);
my %maintenance = map { $_->[0] => [ $_->[1], "$numbers$_->[2];\nSELECT pg_sleep(0.2);\n" ] } (
	[ 'vacuum', 6, 'VACUUM t:p' ],
	[ 'load', 4, 'SELECT fill(:p, 600)' ],
	[ 'summarize', 3, q{SELECT rangefilter_summarize('k:p')} ],
	[ 'reindex', 2, 'REINDEX TABLE t:p' ],
	[ 'reindex_concurrently', 1, 'REINDEX INDEX CONCURRENTLY k:p' ],
	[ 'reindex_concurrently_s', 1, 'REINDEX INDEX CONCURRENTLY s:p' ],
	[ 'truncate', 3, 'BEGIN; TRUNCATE t:p; SELECT fill(:p, 300); COMMIT' ],
	[ 'rewrite', 1, 'VACUUM FULL t:p' ],
	[ 'checkpoint', 1, 'CHECKPOINT' ]);

# Both for ten minutes, or until stop_work() ends them and returns what they complained of.
sub start_work
{
	my ($node) = @_;

	$seed++;
	return [
		start_scripts($node, 600, $seed, \%writes, '-R', 400, '--max-tries', 100),
		start_scripts($node, 600, $seed, \%maintenance, '-c', 1, '-j', 1, '--max-tries', 100) ];
}

sub stop_work
{
	my ($work) = @_;

	$_->{run}->signal('TERM') foreach @$work;
	return join('', map { finish_load($_) } @$work);
}

# A session with plans of before, of constants and of a parameter.
sub start_watching
{
	my ($node, $settings, $toggles) = @_;
	my $session = open_session($node);

	ask($session, join ';', $settings, map { "PREPARE c$_(int) AS SELECT ARRAY[count(*), \$1] FROM t WHERE k = $_" } 1 .. 40);
	ask($session, q{PREPARE g(bigint) AS SELECT ARRAY[(SELECT count(*) FROM t WHERE k = $1 AND s = s($1)), (SELECT count(*) FROM t WHERE k + 0 = $1)]});
	ask($session, q{SET my.asked = '0'; SET my.there = '0'});
	$session->{toggles} = $toggles;
	return $session;
}

# What a session says but that it gave way to replay; what comes with such an error may be
# several lines.  Adds to the counts.
my $gave_way = qr/ERROR:  (canceling statement due to conflict with recovery|deadlock detected)/;
my %count;

sub finish_watching
{
	my ($session) = @_;
	my $answer = answer($session);

	$count{gave_way}++ while $answer =~ s/^.*$gave_way.*\n?((DETAIL|HINT|CONTEXT|PL|SQL|Process|\s).*\n?)*//m;
	$count{$_} += ask($session, "SELECT current_setting('my.$_')") foreach 'asked', 'there';
	return substr($answer, 0, 1000);
}

# Is everything there, by the indexes' own checks, and do they answer as the table does?
sub check
{
	my ($node, $name) = @_;
	my ($status, $out, $err) = $node->psql('postgres', q{
SELECT sum(look(format('SELECT ARRAY[(SELECT count(*) FROM t WHERE k BETWEEN %1$s AND %1$s + %2$s), (SELECT count(*) FROM t WHERE k + 0 BETWEEN %1$s AND %1$s + %2$s)]', key, key % 3))
	+ look(format('SELECT ARRAY[(SELECT count(*) FROM t WHERE s = %1$L), (SELECT count(*) FROM t WHERE s || '''' = %1$L)]', s(key)))) >= 10
FROM (SELECT generate_series(1, 2000, 400) UNION ALL (SELECT k FROM t ORDER BY id DESC LIMIT 5)) x (key)});

	is("$out$err", 't', "$name: the same answers by the indexes and without");
	($status, $out, $err) = $node->psql('postgres', q{
SELECT count(*) FILTER (WHERE amname = 'wormhole' AND wormhole_check(indexrelid, true) < 0),
	count(*) FILTER (WHERE amname = 'rangefilter' AND rangefilter_verify(indexrelid) < 0), count(*) > 200
FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
WHERE relkind = 'i' AND indisvalid});

	return is("$out$err", '0|0|t', "$name: indexes are whole, and have all rows");
}

# Waits until rows that sessions on a server's standby see stay.
sub wait_for_feedback
{
	my ($node) = @_;

	$node->poll_query_until('postgres', 'SELECT count(backend_xmin) = 1 FROM pg_stat_replication') or die 'no feedback';
	return;
}

# The old primary becomes a standby of the new one.
sub rewind
{
	my ($old, $new) = @_;
	my $conf = $old->data_dir . '/postgresql.conf';

	$old->stop;
	copy($conf, $old->basedir) or die "copy: $!";
	command_ok(
		[
			'pg_rewind', '--no-sync', '--target-pgdata', $old->data_dir,
			'--source-server', $new->connstr('postgres')
		],
		"seed $seed: pg_rewind");
	copy($old->basedir . '/postgresql.conf', $conf) or die "copy: $!";
	$old->enable_streaming($new);
	$old->set_standby_mode;
	$old->start;
	$new->wait_for_catchup($old);
	return;
}

foreach my $round (1 .. $rounds)
{
	my $name = "seed $seed, round $round";
	my $work = start_work($primary);

	if ($round == 1)
	{
		$primary->backup('under_load');
		$standby->init_from_backup($primary, 'under_load', has_streaming => 1);
		$standby->start;
		$cascade->init_from_backup($primary, 'under_load');
		$cascade->enable_streaming($standby);
		$cascade->set_standby_mode;
		# PostgreSQL's own fault: when the promoted server's WAL ended between the segments
		# that one record is in, a standby of it streams the new timeline from the second
		# segment only, and panics.  So it finds the first as if in an archive.
		$cascade->append_conf('postgresql.conf',
			q{restore_command = 'case %f in 00000001*) false ;; *) cp "} . $standby->data_dir . q{/pg_wal/%f" "%p" ;; esac'});
		$cascade->start;
	}
	# The work goes as fast as replay, else the standby would lag behind for ever.
	$primary->safe_psql('postgres', 'ALTER SYSTEM SET synchronous_commit = remote_apply');
	$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf()});
	# From now on rows that sessions there see stay; replay only waits for their locks.
	wait_for_feedback($standby) if $round == 1;
	wait_for_feedback($primary);
	my @sessions = (
		start_watching($standby, q{SET default_transaction_isolation = 'repeatable read'; SET plan_cache_mode = force_generic_plan}),
		start_watching($standby, q{SET default_transaction_isolation = 'repeatable read'}, 1),
		start_watching($standby, q{SET enable_bitmapscan = off}));

	push @sessions, start_watching($cascade, q{SET default_transaction_isolation = 'repeatable read'}) if $round == 1;

	# A statement that gives way ends.
	send_sql($_, join('; ', ('CALL watch(' . ($_->{toggles} ? 'true' : 'false') . ')') x 100)) foreach @sessions;
	usleep(1_000_000 * $seconds);
	like($standby->safe_psql('postgres', 'EXPLAIN SELECT FROM t WHERE k = -1'), qr/Partitions Skipped: [1-9]/, "$name: the standby skips");
	is($standby->safe_psql('postgres', q{SELECT levels > 0 FROM rangefilter_status('s1')}), 't', "$name: there are levels");
	$standby->promote;
	is(stop_work($work), '', "$name: work on the primary");
	$standby->safe_psql('postgres', q{SELECT format('COMMIT PREPARED %L', gid) FROM pg_prepared_xacts \gexec});
	wait_for_feedback($standby) if $round == 1;
	$work = start_work($standby);
	usleep(1_000_000 * ($seconds - 1));
	is(stop_work($work), '', "$name: work on the promoted server");
	$standby->safe_psql('postgres', q{SELECT format('COMMIT PREPARED %L', gid) FROM pg_prepared_xacts \gexec});
	$standby->safe_psql('postgres', 'INSERT INTO done DEFAULT VALUES');
	$standby->wait_for_catchup($cascade) if $round == 1;
	is(finish_watching($_), '', "$name: the same answers") foreach @sessions;
	$standby->safe_psql('postgres', 'TRUNCATE done; VACUUM t1');
	close_session($_) foreach @sessions;
	check($standby, "$name, promoted");
	if ($round == 1)
	{
		$standby->wait_for_catchup($cascade);
		check($cascade, "$name, cascade");
		$cascade->stop;
	}
	rewind($primary, $standby);
	check($primary, "$name, rewound");
	($primary, $standby) = ($standby, $primary);
}
note(join ', ', map { "$_ $count{$_}" } sort keys %count);
cmp_ok($count{there}, '>', $count{asked} / 4, 'rows were there');
foreach my $node ($primary, $standby, $cascade)
{
	$node->stop;
	unlike(slurp_file($node->logfile), qr/inconsistent page|PANIC|TRAP|was terminated/, $node->name . ': no complaints in the log');
}
done_testing();
