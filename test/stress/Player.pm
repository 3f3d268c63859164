# Player.pm: one process of the stress run: its sessions, its counters, and what
# is an error.
#
# Sessions are the oracle test's, with SQLSTATEs in error messages.

package Player;

use strict;
use warnings;
use Random;
use Session;

# What concurrent DDL does to statements of others, whether anything is
# skipped or not.  By role:
#	40001 serialization_failure: SERIALIZABLE; rows that moved to another partition
#	40P01 deadlock_detected: readers lock partitions in their plans' order
#	42P01 undefined_table: a partition or index that was dropped
#	23514 check_violation: the row's partition is detached; rows in the default
#		partition that belong to one being attached
#	55P03 lock_not_available, 57014 query_canceled: the timeouts we set
#	55000 object_not_in_prerequisite_state, 42809 wrong_object_type: (not) a partition
#		any more; a detach pending; an index being made or left invalid
#	42P07 duplicate_table, 42704 undefined_object, 42P17 invalid_object_definition:
#		made, dropped or attached meanwhile, or in a transaction that failed
#	2BP01 dependent_objects_still_exist: a leaf's index is still part of one that
#		could not be dropped for the lock
#	25P02 in_failed_sql_transaction, 3B001 no such savepoint: follow one of the others
#	21000 cardinality_violation: MERGE met a row twice
our %tolerated = (
	reader => [qw(40001 40P01 42P01 25P02 3B001)],
	racer => [qw(40P01 42P01 55000)],    # rangefilter_summarize() only
	writer => [qw(40001 40P01 23514 25P02 3B001 21000)],
	maintenance => [qw(40P01 42P01 55P03 57014 55000 42809 42704)],
	ddl => [qw(40P01 2BP01 42P01 55P03 57014 55000 42809 42P07 42704 42P17 23514 25P02)]);

# So long may a statement take before it counts as hanging, in seconds.
my $PATIENCE = 120;

sub new
{
	my ($class, %self) = @_;
	my $self = bless { passed => 0, failed => 0, counts => {}, %self }, $class;

	$self->{tolerate} = { map { $_ => 1 } @{ $tolerated{ $self->{role} } } };
	return $self;
}

# A session with random settings that make other plans.
sub connect
{
	my ($self, $name, %settings) = @_;
	my $session = Session->new("$self->{name} $name",
		client_min_messages => 'error', jit => 'off', timezone => 'UTC', extra_float_digits => 1, %settings);

	$session->must("\\set VERBOSITY verbose");
	return $session;
}

sub plan_settings
{
	my %settings = (
		plan_cache_mode => weighted(5 => 'auto', 4 => 'force_generic_plan', 1 => 'force_custom_plan'),
		enable_partition_pruning => weighted(4 => 'on', 1 => 'off'),
		enable_seqscan => weighted(2 => 'on', 1 => 'off'),
		'rangefilter.cache_size' => weighted(3 => '8MB', 2 => '0', 1 => '16kB'));

	$settings{"enable_$_"} = weighted(2 => 'on', 1 => 'off')
	  for qw(partitionwise_join partitionwise_aggregate hashjoin mergejoin material memoize);
	%settings = (%settings, parallel_setup_cost => 0, parallel_tuple_cost => 0, min_parallel_table_scan_size => 0)
	  if chance(15);
	return %settings;
}

# What a process waits for.
sub state_of_process
{
	my ($pid) = @_;

	return join '', map { my $file = "/proc/$pid/$_"; my $text = `cat $file 2>/dev/null`; "$_: " . $text =~ s/\n?$/\n/r } qw(cmdline wchan status syscall);
}

# Waits for an answer.  Returns the SQLSTATE of its first error, or undef, and
# its lines.
sub receive
{
	my ($self, $session) = @_;
	my @lines;

	local $SIG{ALRM} = sub { die "a statement has been running for $PATIENCE s:\n$session->{last}\n" . state_of_process($session->{pid}); };
	alarm $PATIENCE;
	@lines = $session->receive;
	alarm 0;
	for (@lines)
	{
		die "$session->{name}: the connection is lost: $_\n" if /^(?:FATAL|PANIC):/;
		return ($1, $_) if /^ERROR:  (\w{5}): /;
	}
	return (undef, @lines);
}

sub run
{
	my ($self, $session, $sql) = @_;

	print STDERR "$session->{name}: $sql\n" if $self->{verbose};
	$session->send($sql);
	return $self->receive($session);
}

# Runs what changes something: one statement after the other, though one fails.
# Returns how many did.
sub change
{
	my ($self, $session, @statements) = @_;
	my $errors = 0;

	for my $statement (@statements)
	{
		my ($state, $error) = $self->run($session, "$statement;");

		$self->count(defined $state ? "error $state" : 'statements');
		next unless defined $state;
		$errors++;
		next if $self->{tolerate}{$state};

		# It looks for the index's table before it locks that; by then the index may be gone.
		next if $statement =~ /^REINDEX .*CONCURRENTLY/ && $error =~ /XX000: could not open relation with OID/;

		# Said of catalogs, which only core writes.
		next if $statement =~ /^(REINDEX|VACUUM FULL|ALTER|CREATE|DROP)/ && $error =~ /XX000: tuple concurrently (updated|deleted)/;

		# The horizon goes back when a standby begins to send feedback: then VACUUM may have removed the value of
		# a row version that must be kept now.  The same without the library.
		next if $statement =~ /^VACUUM FULL/ && $error =~ /XX001: missing chunk/;
		$self->fail('an error that is not DDL\'s', $statement, $error);
	}
	return $errors;
}

# Plays to the end and returns the player.
sub playing
{
	my ($self, $play) = @_;

	if ($play) { $play->($self); }
	else { $self->play; }
	return $self;
}

sub count { $_[0]{counts}{ $_[1] } += $_[2] // 1; }

sub time_is_up { return Time::HiRes::time() >= $_[0]{deadline} || -e $_[0]{stop}; }

# A failure stops all: what is there can then be looked at.
sub fail
{
	my ($self, $what, @details) = @_;

	$self->{failed}++;
	print "FAILED: round $self->{round}, $self->{name}: $what\n" . join('', map { "  $_\n" } @details);
	open my $file, '>', $self->{stop} or die "$self->{stop}: $!\n";
	close $file;
}

1;
