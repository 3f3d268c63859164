# Crashes at random points of a write load: after recovery no summary may deny
# a row, and queries answer the same with skipping and without it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;
use Time::HiRes qw(usleep);

my $seed = seed();
my $node = new_server(
	'crash', conf => q{
max_wal_size = '64MB'
checkpoint_timeout = '30s'
wal_writer_delay = '10ms'
});

load_schema($node);

# A process of the server other than the postmaster: a client's, if possible
# one that changes something.
sub some_backend
{
	my ($status, $out) = $node->psql(
		'postgres', q{
SELECT pid FROM pg_stat_activity WHERE application_name = 'load'
ORDER BY (state = 'active') DESC, random() LIMIT 1});

	return $out;
}

foreach my $round (1 .. 6)
{
	my $how = ('kill the postmaster', 'immediate stop', 'kill a backend')[ $round % 3 ];
	my $name = "seed $seed, round $round, $how";
	my $load = start_load($node, 30, $seed + $round);
	my $wait = pick(300, 2500);

	usleep($wait * 1000);
	if ($how eq 'kill the postmaster')
	{
		my $pid = (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];

		$node->kill9;
		usleep(10_000) while kill(0, $pid);
	}
	elsif ($how eq 'immediate stop')
	{
		$node->stop('immediate');
	}
	else
	{
		my $pid = some_backend();

		is(kill('KILL', $pid), 1, "$name: killed");
	}
	my $complaints = finish_load($load);

	like($complaints, qr/connection|terminat|server closed|shut|backend died/i,
		"$name: the load was on");
	# After a stop the backends without a postmaster may still be ending, after
	# a kill the server may still be recovering.
	my $up = 0;

	for (1 .. 300)
	{
		$up =
		  $how eq 'kill a backend'
		  ? eval { $node->psql('postgres', 'SELECT 1') == 0 }
		  : $node->start(fail_ok => 1);
		last if $up;
		usleep(100_000);
	}
	ok($up, "$name: recovered");
	all_verified($node, $name);
	is(denied($node), '0|0|0|0', "$name: nothing is denied");
	same_answers($node, $name);

	# The files are fit for more.
	if ($round % 2)
	{
		$node->safe_psql('postgres', 'VACUUM');
		all_verified($node, "$name, after VACUUM");
		same_answers($node, "$name, after VACUUM", 10);
		is( $node->safe_psql(
				'postgres',
				q{SELECT bool_or(tail_open), bool_or(rangefilter_may_contain(index, 1000001, NULL))
				FROM rangefilter_status('t_k')}),
			'f|f',
			"$name: closed after VACUUM");
	}
}

$node->stop;
done_testing();
