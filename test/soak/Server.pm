# Server.pm: a server of the soak run: made, started, stopped in every way,
# copied as a standby, promoted.
#
# Programs are found by PATH.  A server's socket is in its directory.

package Server;

use strict;
use warnings;
use Time::HiRes qw(sleep);
use Random;

sub new
{
	my ($class, $directory, $name) = @_;
	my $self = $class->kept($directory, $name);

	mkdir $self->{home} or die "$self->{home}: $!\n";
	mkdir $self->{socket} or die "$self->{socket}: $!\n";
	return $self;
}

# One that another run has made and stopped.
sub kept
{
	my ($class, $directory, $name) = @_;
	my $home = "$directory/$name";
	my $log = "$home.log";

	return bless { name => $name, home => $home, data => "$home/data", socket => "$home/socket", log => $log, seen => -s $log }, $class;
}

# Runs a program whose output matters only if it fails.
sub program
{
	my ($self, @command) = @_;
	my $output = "$self->{home}/output";

	open(my $stdout, '>&', \*STDOUT) or die;
	open(my $stderr, '>&', \*STDERR) or die;
	open(STDOUT, '>', $output) or die "$output: $!\n";
	open(STDERR, '>&', \*STDOUT) or die;
	my $status = system @command;
	open(STDOUT, '>&', $stdout) or die;
	open(STDERR, '>&', $stderr) or die;
	return $status == 0;
}

sub must
{
	my ($self, @command) = @_;

	return if $self->program(@command);
	die "$self->{name}: @command failed\n" . slurp("$self->{home}/output") . $self->last_lines;
}

sub slurp
{
	my ($file) = @_;

	open my $in, '<', $file or return '';
	local $/;
	return scalar <$in>;
}

sub last_lines
{
	my ($self) = @_;
	my @lines = split /\n/, slurp($self->{log});

	return join '', map { "  $_\n" } @lines > 20 ? @lines[ -20 .. -1 ] : @lines;
}

sub init
{
	my ($self) = @_;

	$self->must('initdb', '-D', $self->{data}, '-U', 'postgres', '-A', 'trust', '--no-locale', '-E', 'UTF8', '--no-sync',
		chance(50) ? '--data-checksums' : ());
	$self->append("include_if_exists 'soak.conf'");
	open my $hba, '>>', "$self->{data}/pg_hba.conf" or die;
	print {$hba} "local replication all trust\n";
	close $hba;
}

sub append
{
	my ($self, @lines) = @_;

	open my $out, '>>', "$self->{data}/postgresql.conf" or die "$self->{data}: $!\n";
	print {$out} map { "$_\n" } @lines;
	close $out;
}

# The settings for the next start.
sub configure
{
	my ($self, %settings) = @_;

	open my $out, '>', "$self->{data}/soak.conf" or die "$self->{data}: $!\n";
	print {$out} "unix_socket_directories = '$self->{socket}'\n", map { "$_ = '$settings{$_}'\n" } sort keys %settings;
	close $out;
	$self->{settings} = \%settings;
}

sub start
{
	my ($self) = @_;

	$self->must('pg_ctl', '-D', $self->{data}, '-l', $self->{log}, '-w', '-t', 120, 'start');
	$self->{running} = 1;
}

sub stop
{
	my ($self, $mode) = @_;

	$self->must('pg_ctl', '-D', $self->{data}, '-m', $mode, '-w', '-t', 120, 'stop');
	$self->{running} = 0;
}

# The processes of the server, the postmaster first.
sub processes
{
	my ($self) = @_;
	my ($postmaster) = split /\n/, slurp("$self->{data}/postmaster.pid");

	return unless $postmaster;
	my @children = split ' ', slurp("/proc/$postmaster/task/$postmaster/children");
	return ($postmaster, @children);
}

# Ends the postmaster like a failing machine does, and waits until its children
# have noticed.
sub kill_all
{
	my ($self) = @_;
	my @processes = $self->processes;

	kill 'KILL', @processes;
	for (1 .. 600)
	{
		last unless grep { -e "/proc/$_" } @processes;
		sleep 0.1;
	}
	unlink "$self->{data}/postmaster.pid";
	$self->{running} = 0;
}

# Ends one process, of clients mostly: the server ends all others, and recovers.
sub kill_one
{
	my ($self) = @_;
	my ($postmaster, @children) = $self->processes;
	my @clients = grep { slurp("/proc/$_/cmdline") =~ /postgres: postgres / } @children;

	kill 'KILL', one_of(@clients ? @clients : @children);
	sleep 0.5;
	$self->wait_for('SELECT NOT pg_is_in_recovery()');
}

# Waits until a query says so.
sub wait_for
{
	my ($self, $query) = @_;

	for (1 .. 1200)
	{
		my $answer = `psql -h '$self->{socket}' -U postgres -X -A -t -q -d postgres -c "$query" 2>&1`;

		return if $answer eq "t\n";
		sleep 0.1;
	}
	die "$self->{name}: waited in vain for $query\n" . $self->last_lines;
}

sub standby_of
{
	my ($self, $primary) = @_;

	$self->must('pg_basebackup', '-h', $primary->{socket}, '-U', 'postgres', '-D', $self->{data}, '-c', 'fast', '-R', '-N', '-X', 'stream');
	$self->append("primary_conninfo = 'host=$primary->{socket} user=postgres'");
	return $self;
}

sub promote
{
	my ($self) = @_;

	$self->must('pg_ctl', '-D', $self->{data}, '-w', '-t', 120, 'promote');
}

# Lines of the log that say that something is wrong, since the last look.
sub complaints
{
	my ($self, $crashed) = @_;
	my $text = substr(slurp($self->{log}), $self->{seen} // 0);

	# See Player::change().
	$text =~ s/^.*XX001: missing chunk.*\n.*LOCATION: .*\n.*STATEMENT:  VACUUM FULL .*\n//mg;
	my @lines = split /\n/, $text;

	$self->{seen} = -s $self->{log};
	return grep {
		/PANIC|TRAP:|XX000|XX001|XX002|WARNING|terminated by signal|exited with exit code [2-9]|stack smashing/
		  && !($crashed && /terminated by signal 9|terminating connection because of|terminating any other active|FATAL:  terminating/)
		  # What DDL does to others, or core says of itself.
		  && !/WARNING:  57P02: terminating connection/
		  && !/XX000: (could not open relation with OID|tuple concurrently (updated|deleted)|cache lookup failed for (relation|index|attribute))/
		  && !/index "\w+" has wrong|there is (already a|no) transaction in progress|worker took too long|worker started without a worker entry|old_snapshot|oldest xmin is far|cannot reindex invalid index|skipping (vacuum|analyze|reindex)|can only be used in transaction|bogus free space|unexpected directory entry/
	} @lines;
}

1;
