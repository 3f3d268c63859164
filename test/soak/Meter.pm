# Meter.pm: memory of the servers' processes and sizes of files over time.
#
# Memory is what a process has for itself (PSS of anonymous pages), so shared
# buffers do not count.

package Meter;

use strict;
use warnings;
use Time::HiRes qw(time);

sub new
{
	my ($class, $directory) = @_;
	my $self = bless { started => time, file => "$directory/meter.csv", worst => 0 }, $class;

	open $self->{out}, '>', $self->{file} or die "$self->{file}: $!\n";
	$self->{out}->autoflush(1);
	print { $self->{out} } "seconds,server,clients,client kB,largest client kB,other kB,files MB,shared entries,shared kB\n";
	return $self;
}

# kB of a process: 0 if it has ended.
sub memory
{
	my ($pid) = @_;

	return Server::slurp("/proc/$pid/smaps_rollup") =~ /^Pss_Anon:\s+(\d+)/m ? $1 : 0;
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
		next if $kb <= $kb{largest};
		$kb{largest} = $kb;
		next if $kb <= $self->{worst};
		$self->{worst} = $kb;
		$self->{what} = $title =~ s/\0.*//sr;
	}
	my ($files) = `du -sm '$server->{data}/base' '$server->{data}/pg_tblspc' 2>/dev/null | awk '{ n += \$1 } END { print n }'` =~ /(\d+)/;
	my $shared = `PGCONNECT_TIMEOUT=5 psql -h '$server->{socket}' -U postgres -X -A -t -q -F, -d soak -c "
		SELECT indexes, bytes / 1024 FROM rangefilter_shared_cache()" 2>/dev/null`;
	chomp $shared;
	printf { $self->{out} } "%.0f,%s,%d,%d,%d,%d,%d,%s\n", time - $self->{started}, $server->{name},
	  @kb{qw(clients client largest other)}, $files // 0, $shared =~ /^[\d,]+$/ ? $shared : ',';
}

1;
