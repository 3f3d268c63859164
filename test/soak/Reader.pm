# Reader.pm: the stress run's Checker, which compares with what sequential scans
# find; and cursors that are held, or go on after other queries.
#
# It reads from a standby, too, in one session: a snapshot that is exported there lacks transactions in
# progress if there are many subtransactions.

package Reader;

use strict;
use warnings;
use Random;
use Query;
use parent -norequire, 'Checker';

my @scans = qw(enable_indexscan enable_indexonlyscan enable_bitmapscan);

sub new
{
	my ($class, %self) = @_;
	my $self = $class->SUPER::new(%self);

	# A plan that is kept stays when these settings change, so only a session of its own has
	# none with indexes.
	$self->must_off($_) for $self->{toggle} ? () : (map { "SET $_ = off" } @scans), 'SET enable_seqscan = on';
	return $self;
}

# The standby keeps the locks of a primary that has crashed, until that starts again.
sub connect
{
	my ($self, $name, %settings) = @_;

	return $self->SUPER::connect($name, %settings, $self->{standby} ? (lock_timeout => '10s') : ());
}

sub must_off { $_[0]{off}->must("$_[1];"); }

sub mode
{
	my ($self, $skip) = @_;
	my $on = $skip ? 'on' : 'off';

	return join '; ', "SET rangefilter.enable = $on", (map { "SET $_ = $on" } @scans),
	  'SET enable_seqscan = ' . ($skip && chance(60) ? 'off' : 'on');
}

# On a standby replay ends sessions that are in its way, which frees their locks: then TRUNCATE is seen
# by older snapshots.  And DETACH CONCURRENTLY does not wait there for those who have locked the table, and
# may still read the partition.  So the first and the last answer without skipping must agree.
sub may_change { return $_[0]{standby} || $_[1]{dirty}; }

# DROP INDEX CONCURRENTLY does not wait there for those who have locked the table either: core may list an
# index of any kind, and find it gone when it opens it.
sub is_index_gone { return $_[0]{standby} && $_[1] =~ /XX000: could not open relation with OID/; }

sub order
{
	my ($self, $table) = @_;

	return one_of([ 0, 1, 0 ], [ 0, 1, 1, 0 ]) if $self->{standby};
	return $self->SUPER::order($table);
}

# On a standby others make the functions.
sub prepare
{
	my ($self) = @_;

	return $self->SUPER::prepare unless $self->{standby};
	my $table = one_of(@{ $self->{tables} });
	my $name = "q$self->{name}_" . ++$self->{nprepared};
	my ($make, $call, $nargs, $ordered) = prepared_query($table, $name);

	return if $make !~ /^PREPARE/ || $self->both("$make;");
	push @{ $self->{prepared} }, { table => $table, call => $call, nargs => $nargs, ordered => $ordered, name => $name, make => $make };
	$self->forget if @{ $self->{prepared} } > 10;
}

# A cursor's rows are those of its snapshot, whenever they are fetched.
sub cursor
{
	my ($self) = @_;
	my ($query, $ordered, $table) = $self->reading;
	my $hold = chance(60);
	my ($state, @rows, @more, $off);

	return if $query =~ /^(?:EXECUTE|DECLARE)/ || $self->may_change($table);
	$self->{on}->must('BEGIN ISOLATION LEVEL REPEATABLE READ;');
	$self->{skipping} = -1;
	($state) = $self->run($self->{on}, $self->mode(1) . '; DECLARE h CURSOR ' . ($hold ? 'WITH HOLD' : '') . " FOR $query;");
	($state, @rows) = $self->run($self->{on}, 'FETCH ' . below(4) . ' FROM h;') unless defined $state;
	if (!defined $state)
	{
		my ($other) = $self->reading;

		$self->run($self->{on}, "SAVEPOINT s; $other;");
		$self->run($self->{on}, 'ROLLBACK TO s;');
		($state, $off) = $self->{toggle} ? $self->answer(0, $query, $ordered) : ('none', undef);
		# ROLLBACK TO brings the settings back, but not what we know of them.
		$self->{skipping} = -1;
	}
	if ($hold)
	{
		my ($error) = $self->run($self->{on}, 'COMMIT;');

		$state //= $error;
		# A conflict with recovery leaves the transaction open.
		$self->run($self->{on}, 'ROLLBACK;') if defined $error;
		$self->run($self->{helper}, Target::pause(300) . ';');
	}
	if (!defined $state)
	{
		($state, @more) = $self->run($self->{on}, 'FETCH ALL FROM h;');
		$self->compare_cursor($query, $ordered, $table, $state, $off, @rows, @more);
	}
	$self->run($self->{on}, 'ROLLBACK;') unless $hold;
	$self->run($self->{on}, 'CLOSE ALL;');
	$self->run($self->{on}, 'RESET ALL;') if $self->{toggle};
}

sub compare_cursor
{
	my ($self, $query, $ordered, $table, $state, $off, @rows) = @_;
	my $on = join "\n", $ordered ? @rows : sort @rows;

	if (defined $state)
	{
		return if $self->{tolerate}{$state} || $state =~ /^2/;
		$self->report('an error while fetching', $query, $table, @rows);
	}
	elsif ($on eq $off) { $self->{passed}++; $self->count('of them by cursors'); }
	elsif ($self->detach_pending($table, $self->{helper})) { $self->count('detach pending'); }
	else { $self->report('a cursor has other rows', $query, $table, Checker::differences($on, $off)); }
}

sub transaction
{
	my ($self) = @_;

	return $self->cursor if $self->{toggle} && chance(10);
	return $self->SUPER::transaction;
}

1;
