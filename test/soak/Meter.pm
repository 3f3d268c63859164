# Meter.pm: memory of the servers' processes and sizes of files over time.
#
# Memory is what a process has for itself (PSS of anonymous pages), so shared
# buffers do not count.  A session that grows has its memory contexts written into the server's log.

package Meter;

use strict;
use warnings;
use Time::HiRes qw(time);

# Goes on with the file of a run that had measured for so many seconds.
sub new
{
	my ($class, $directory, $seconds_before) = @_;
	my $self = bless { started => time - $seconds_before, file => "$directory/meter.csv", worst => 0 }, $class;

	open $self->{out}, '>>', $self->{file} or die "$self->{file}: $!\n";
	$self->{out}->autoflush(1);
	print { $self->{out} } "seconds,server,clients,client kB,largest client kB,other kB,files MB,shared entries,shared kB\n" unless -s $self->{file};
	return $self;
}

# Since the beginning, without the time between two runs.
sub seconds
{
	my ($self) = @_;

	return time - $self->{started};
}

# kB of a process: 0 if it has ended.
sub memory
{
	my ($pid) = @_;

	return Server::slurp("/proc/$pid/smaps_rollup") =~ /^Pss_Anon:\s+(\d+)/m ? $1 : 0;
}

# What a session has its memory for, in the server's log: when it first has this many kB, and
# whenever it has half as much again.
my $REPORTED_MEMORY = 100_000;

sub report_contexts
{
	my ($self, $server, $pid, $kb) = @_;

	return if $kb < ($self->{next_report}{$pid} // $REPORTED_MEMORY);
	$self->{next_report}{$pid} = $kb * 1.5;
	ask($server, "SELECT pg_log_backend_memory_contexts($pid)");
}

# The answer of a session of its own, or nothing.
sub ask
{
	my ($server, $query) = @_;
	my $answer = `PGCONNECT_TIMEOUT=5 psql -h '$server->{socket}' -U postgres -X -A -t -q -F, -d soak -c "$query" 2>/dev/null`;

	chomp $answer;
	return $answer;
}

sub sample
{
	my ($self, $server) = @_;
	my ($postmaster, @children) = $server->processes;
	my %kb = (client => 0, other => 0, largest => 0, clients => 0);

	for my $pid (@children)
	{
		my $title = Server::slurp("/proc/$pid/cmdline");
		my $kb = memory($pid);

		if ($title !~ /^postgres: postgres /) { $kb{other} += $kb; next; }
		$kb{clients}++;
		$kb{client} += $kb;
		$self->report_contexts($server, $pid, $kb);
		next if $kb <= $kb{largest};
		$kb{largest} = $kb;
		next if $kb <= $self->{worst};
		$self->{worst} = $kb;
		$self->{what} = $title =~ s/\0.*//sr;
	}
	my ($files) = `du -sm '$server->{data}/base' '$server->{data}/pg_tblspc' 2>/dev/null | awk '{ n += \$1 } END { print n }'` =~ /(\d+)/;
	my $shared = ask($server, 'SELECT indexes, bytes / 1024 FROM rangefilter_shared_cache()');
	printf { $self->{out} } "%.0f,%s,%d,%d,%d,%d,%d,%s\n", $self->seconds, $server->{name},
	  @kb{qw(clients client largest other)}, $files // 0, $shared =~ /^[\d,]+$/ ? $shared : ',';
}

1;
