# Checker.pm: a process that asks the same with and without skipping, seeing
# the same snapshot.
#
# A "toggle" has one session and switches rangefilter.enable.  A "pair" has two,
# which share an exported snapshot: the one that skips keeps its plans.

package Checker;

use strict;
use warnings;
use Random;
use Query;
use parent -norequire, 'Player';

sub new
{
	my ($class, %self) = @_;
	my $self = $class->SUPER::new(role => 'reader', %self);
	my %settings = Player::plan_settings();

	$self->{on} = $self->connect('on', %settings, 'rangefilter.enable' => 'on');
	$self->{off} = $self->{toggle} ? $self->{on} : $self->connect('off', %settings, 'rangefilter.enable' => 'off');
	$self->{helper} = $self->connect('helper', 'rangefilter.enable' => 'off');
	$self->{nprepared} = 0;
	$self->prepare for 1 .. 6;
	return $self;
}

sub sessions { my ($self) = @_; return $self->{toggle} ? ($self->{on}) : ($self->{on}, $self->{off}); }

sub both
{
	my ($self, $sql) = @_;
	my $errors = 0;

	for ($self->sessions)
	{
		my ($state) = $self->run($_, $sql);
		$errors++ if defined $state;
	}
	return $errors;
}

# A query with a name, kept over many transactions.
sub prepare
{
	my ($self) = @_;
	my $table = one_of(@{ $self->{tables} });
	my $id = "$self->{name}_" . ++$self->{nprepared};
	my ($make, $call, $nargs, $ordered) = prepared_query($table, "q$id");
	my $errors = $make =~ /^PREPARE/ ? $self->both("$make;") : defined(($self->run($self->{helper}, "$make;"))[0]);

	# A leaf that the query reads may be missing just now.
	return if $errors;
	push @{ $self->{prepared} }, { table => $table, call => $call, nargs => $nargs, ordered => $ordered, name => "q$id", make => $make };
	$self->forget if @{ $self->{prepared} } > 10;
}

sub forget
{
	my ($self) = @_;
	my $old = splice @{ $self->{prepared} }, below(8), 1;

	return $self->both("DEALLOCATE $old->{name};") if $old->{call} =~ /^EXECUTE/;
	$self->run($self->{helper}, "SELECT format('DROP FUNCTION %s', oid::regprocedure) FROM pg_proc WHERE proname = '$old->{name}' \\gexec");
}

# A query, whether its answer is ordered, its table, and whether its plan is
# kept.
sub reading
{
	my ($self) = @_;

	if (@{ $self->{prepared} // [] } && chance(50))
	{
		my $query = one_of(@{ $self->{prepared} });
		my $arguments = join ', ', map { argument($query->{table}) } 1 .. $query->{nargs};

		return ($query->{call} =~ s/%s/$arguments/r, $query->{ordered}, $query->{table}, 1);
	}
	my $table = one_of(@{ $self->{tables} });
	my ($query, $ordered) = select_query($table, {});

	$query = "DECLARE c CURSOR FOR $query; FETCH ALL FROM c; CLOSE c" if chance(5);
	return ($query, $ordered, $table, 0);
}

# The settings to ask with.
sub mode
{
	my ($self, $skip) = @_;

	return 'SET rangefilter.enable = ' . ($skip ? 'on' : 'off');
}

# One answer, as an error or a text in which the order counts only if it is
# defined.
sub answer
{
	my ($self, $skip, $query, $ordered) = @_;
	my $session = $skip ? $self->{on} : $self->{off};

	if ($self->{toggle} && $self->{skipping} != $skip)
	{
		my ($state) = $self->run($session, $self->mode($skip) . ';');

		return $state if defined $state;
		$self->{skipping} = $skip;
	}
	my ($state, @lines) = $self->run($session, "$query;");

	return ($state, $lines[0]) if defined $state;
	return (undef, join "\n", $ordered ? @lines : sort @lines);
}

# In which order to ask.  Where partitions with old rows are attached, the first
# and the last answer without skipping must agree to be of use.
sub order
{
	my ($self, $table) = @_;

	return one_of([ 0, 1, 0 ], [ 0, 1, 1, 0 ]) if $table->{dirty};
	return one_of([ 1, 0, 1 ], [ 1, 0, 1 ], [ 0, 1, 0 ], [ 1, 0 ], [ 0, 1 ], [ 1, 1, 0 ]);
}

# Makes a session of a pair learn of partitions attached by now.  Core's sessions
# do when they lock a table that they have not locked yet (LockRelationOid()):
# one that has read the table in this transaction goes on without the new
# partition, while the other, which has not, reads it.  Without this, the first
# and the last answer without skipping can agree though a partition was attached
# between them.  The function locks a table that nothing else here does, and
# unlocks it.
sub look_for_partitions
{
	my ($self, $skip) = @_;

	$self->run($skip ? $self->{on} : $self->{off}, "SELECT pg_relation_size('pg_language');");
}

# Asks the same several times.  Returns false if the transaction is of
# no more use.
sub ask
{
	my ($self) = @_;
	my ($query, $ordered, $table, $kept) = $self->reading;
	my @answers;

	for my $skip (@{ $self->order($table) })
	{
		$self->look_for_partitions($skip) if $self->may_change($table) && !$self->{toggle};
		my ($state, $text) = $self->answer($skip, $query, $ordered);

		if (defined $state && ($self->{tolerate}{$state} || $self->is_index_gone($text)))
		{
			$self->count("error $state");
			return 0;
		}
		push @answers, { skip => $skip, error => $state, text => $text };
		$self->run($self->{helper}, Target::pause(150) . ';') if chance(8);
		last if defined $state && !$self->{rollback};
	}
	$self->judge($query, $table, $kept, @answers);
	$self->explain($query) if chance(5) && $query !~ /^DECLARE/;
	return !grep { defined $_->{error} } @answers;
}

# Does the query skip anything?
sub explain
{
	my ($self, $query) = @_;
	my ($state, @plan) = $self->run($self->{on}, "SET LOCAL rangefilter.enable = on; EXPLAIN (COSTS OFF) $query;");

	$self->{skipping} = 1;
	return if defined $state;
	$self->count('explained');
	$self->count('explained, have gates') if grep { /Range Filter Append/ } @plan;
	$self->count('explained, skip') if grep { /Partitions Skipped: [1-9]/ } @plan;
}

# An error of an index that has gone while a query was planned?  See Reader.
sub is_index_gone { return 0; }

# May partitions with rows that a snapshot sees come or go?
sub may_change { return $_[1]{dirty}; }

# What the answers to a query say.
sub judge
{
	my ($self, $query, $table, $kept, @answers) = @_;
	my @on = grep { $_->{skip} } @answers;
	my @off = grep { !$_->{skip} } @answers;
	# 42P22: a comparison of a text with a name, of two collations, fails where
	# a row gets that far.
	my ($wrong) = grep { defined $_->{error} && $_->{error} !~ /^(2[12]|42P22)/ } @answers;

	if ($wrong) { $self->report('an error that is not DDL\'s', $query, $table, $wrong->{text}); }
	elsif (!@on || !@off || grep { defined $_->{error} } @answers) { $self->count('errors in data'); }
	elsif ($self->may_change($table) && $off[0]{text} ne $off[-1]{text}) { $self->count('attached meanwhile'); }
	elsif (!grep { $_->{text} ne $answers[0]{text} } @answers)
	{
		$self->{passed}++;
		$self->count('of them with kept plans') if $kept;
		$self->count('of them with rows') if $answers[0]{text} ne '';
	}
	elsif ($self->detach_pending($table, $kept ? $self->{helper} : $self->{on})) { $self->count('detach pending'); }
	elsif ($self->detached($table)) { $self->count('detached meanwhile'); }
	else
	{
		$self->report('another answer with skipping than without', $query, $table,
			map { 'skipping ' . ($_->{skip} ? 'on: ' : 'off: ') . differences($_->{text}, $off[0]{text}) } @answers);
	}
}

# A plan that was kept from a transaction with an older snapshot still reads a
# partition that is being detached; that one made now does not.  While it
# reads it, the detaching cannot end.
#
# So does any plan if the snapshot was taken while DETACH CONCURRENTLY was
# committing its first half: other sessions see it committed (in CommitTransaction(),
# ProcArrayEndTransaction()) before they are told to forget the table's partitions
# (AtEOXact_Inval()).  Then the snapshot shows that the detaching is pending.
sub detach_pending
{
	my ($self, $table, $session) = @_;
	my ($state, $n) = $self->run($session, "SELECT count(*) FROM pg_inherits
		WHERE inhdetachpending AND inhparent = '$table->{name}'::regclass;");

	return !defined $state && $n > 0;
}

# The partitions of a table at all levels.
sub partitions
{
	my ($self, $table, $session) = @_;
	my ($state, @oids) = $self->run($session, "WITH RECURSIVE below AS (SELECT inhrelid FROM pg_inherits WHERE inhparent = '$table->{name}'::regclass
		UNION ALL SELECT i.inhrelid FROM pg_inherits i JOIN below b ON i.inhparent = b.inhrelid) SELECT inhrelid FROM below;");

	return defined $state ? () : @oids;
}

# Has a partition gone that the snapshot saw?  The second half of DETACH CONCURRENTLY waits for those who had
# locked the table at the end of the first half.  A session with an older snapshot that comes later plans with
# the partition.  If it has to wait for the lock of the partition, it reads it when the detaching is done,
# and the next session with the same snapshot does not.
sub detached
{
	my ($self, $table) = @_;
	my %now = map { $_ => 1 } $self->partitions($table, $self->{helper});

	return %now && grep { !$now{$_} } $self->partitions($table, $self->{on});
}

sub differences
{
	my ($text, $expected) = @_;
	my %count;

	$count{$_}++ for split /\n/, $text;
	$count{$_}-- for split /\n/, $expected;
	my @lines = sort grep { $count{$_} } keys %count;
	my $rest = @lines > 10 ? ' and ' . (@lines - 10) . ' more' : '';
	return scalar(my @all = split /\n/, $text) . ' lines; '
	  . join(' ', map { sprintf '%+d [%s]', $count{$_}, substr $_, 0, 200 } @lines[ 0 .. ($#lines < 9 ? $#lines : 9) ]) . $rest;
}

# Says all that can be found out about a wrong answer while its snapshot is there.
sub report
{
	my ($self, $what, $query, $table, @details) = @_;
	my $on = $self->{on};
	my (undef, @plan) = $self->run($on, "SET LOCAL rangefilter.enable = on; EXPLAIN (COSTS OFF) $query;");
	my (undef, $snapshot) = $self->run($on, 'SELECT pg_current_snapshot();');
	my (undef, @verified) = $self->run($self->{helper}, "SELECT rangefilter_verify('$table->{name}_key');");

	my ($made) = map { $_->{make} } grep { $query =~ /\b$_->{name}\b/ } @{ $self->{prepared} };

	$self->fail($what, $query, $made ? $made : (), @details, "snapshot $snapshot", 'plan now:', @plan, "rangefilter_verify: @verified");
}

# A transaction with one snapshot.  A toggle may change rows of its own in it.
sub transaction
{
	my ($self) = @_;
	my $level = weighted(5 => 'REPEATABLE READ', 1 => 'SERIALIZABLE');
	my $write = $self->{toggle} && !$self->{standby} && chance(15);

	$level = 'REPEATABLE READ' if !$self->{toggle} || $self->{standby};
	$self->{rollback} = chance(30);
	$self->{skipping} = -1;
	$self->{on}->must("BEGIN ISOLATION LEVEL $level;");
	if (!$self->{toggle})
	{
		my $snapshot = $self->{on}->must('SELECT pg_export_snapshot();');

		$self->{off}->must("BEGIN ISOLATION LEVEL $level; SET TRANSACTION SNAPSHOT '$snapshot';");
	}
	# With savepoints a transaction goes on after an error.
	$self->run($_, '\\set ON_ERROR_ROLLBACK ' . ($self->{rollback} ? 'on' : 'off')) for $self->sessions;
	# Snapshots may be older than what they are first used for.
	$self->run($self->{on}, Target::pause(chance(10) ? 500 : 20) . ';') if chance(40);
	for (1 .. 1 + below 4)
	{
		last unless $self->ask;
		if ($write)
		{
			my ($state) = $self->run($self->{on}, one_of(@{ $self->{tables} })->change . ";");

			last if defined $state && !$self->{rollback};
		}
		last if $self->time_is_up;
	}
	$self->both('\\set ON_ERROR_ROLLBACK off');
	$self->both($write ? 'ROLLBACK;' : 'COMMIT;');
	# A conflict with recovery may cancel COMMIT, which leaves the transaction open.
	$self->both('ROLLBACK;') if $self->{standby};
	$self->run($_, 'RESET rangefilter.enable;') for $self->{toggle} ? $self->{on} : ();
	$self->count('snapshots');
}

sub play
{
	my ($self) = @_;

	until ($self->time_is_up)
	{
		$self->transaction;
		$self->prepare if chance(10);
	}
}

1;
