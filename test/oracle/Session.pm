# Session.pm: a psql that lives as long as we do, and answers.

package Session;

use strict;
use warnings;
use IPC::Open2;

# Starts psql with the given server settings.
sub new
{
	my ($class, $name, %settings) = @_;
	my $self = bless { name => $name, sent => 0, pending => 0 }, $class;

	local $ENV{PGAPPNAME} = "oracle $name";
	local $ENV{PGOPTIONS} = join ' ', map { "-c $_=$settings{$_}" } sort keys %settings;
	# Errors are part of an answer: on the same pipe, and without positions.
	$self->{pid} = open2($self->{out}, $self->{in},
		'exec psql -X -q -A -t -v VERBOSITY=terse 2>&1');
	$self->{in}->autoflush(1);
	return $self;
}

# Sends statements without waiting for their end.
sub send
{
	my ($self, $sql) = @_;

	$self->{sent}++;
	$self->{last} = $sql;
	$self->{pending}++;
	print { $self->{in} } "$sql\n\\echo <<end $self->{sent}>>\n"
	  or die "$self->{name}: psql is gone\n";
}

# Waits for the end of what was sent first and returns the lines it printed.
sub receive
{
	my ($self) = @_;
	my $end = '<<end ' . ($self->{sent} - $self->{pending} + 1) . '>>';
	my @lines;
	my $out = $self->{out};

	while (defined(my $line = <$out>))
	{
		chomp $line;

		# Which one depends on the plan: hashing or comparing.
		$line =~ s/(could not determine which collation to use for string) \w+/$1/;
		if ($line eq $end)
		{
			$self->{pending}--;
			return @lines;
		}
		push @lines, $line;
	}
	die "$self->{name}: the connection is lost in\n$self->{last}\n" . join('', map { "$_\n" } @lines);
}

sub run
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->receive;
}

# Runs what must not fail, and returns its first line.
sub must
{
	my ($self, $sql) = @_;
	my @lines = $self->run($sql);
	my ($error) = grep { /^(?:ERROR|FATAL|PANIC):/ } @lines;

	die "$self->{name}: $error\n" . substr($sql, 0, 3000) . "\n" if defined $error;
	return $lines[0];
}

sub quit
{
	my ($self) = @_;

	close $self->{in};
	close $self->{out};
	waitpid $self->{pid}, 0;
}

1;
