# The SQL in README.md and docs runs as it stands there, a document after the other.

use strict;
use warnings;

use File::Basename;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $root = dirname(__FILE__) . '/../..';

# A server like one in use: with another library, and tables.
my $node = PostgreSQL::Test::Cluster->new('documents');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'plpgsql'\nfsync = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE mydb');
$node->safe_psql('mydb', q{
CREATE TABLE flights (day date, tailnum text COLLATE "C") PARTITION BY RANGE (day);
CREATE TABLE flights_1 PARTITION OF flights FOR VALUES FROM ('2013-01-01') TO ('2013-01-02');
CREATE TABLE flights_2 PARTITION OF flights FOR VALUES FROM ('2013-01-02') TO ('2013-01-03');
CREATE TABLE events (created_at timestamptz, device_id int, tenant int, email text, url text COLLATE "C")
	PARTITION BY RANGE (created_at);
SELECT format('CREATE TABLE events_2024_%s PARTITION OF events FOR VALUES FROM (%L) TO (%L)',
	to_char(m, 'MM'), m, m + interval '1 month')
FROM generate_series(timestamp '2024-01-01', '2024-06-01', '1 month') m \gexec
INSERT INTO events SELECT timestamp '2024-01-01' + n * interval '1 hour', n, n % 7, n || '@example.org', '/' || n
FROM generate_series(1, 4000) n;
CREATE TABLE devices (id int, site text);
INSERT INTO devices VALUES (77, 'Oslo');
CREATE TABLE pages (url text);
CREATE TABLE orders (customer int, placed timestamptz, total numeric);
});

# The blocks of SQL in a document, without the output that a block may end with.
sub blocks
{
	my ($document) = @_;
	my $text = slurp_file("$root/$document");
	my @blocks;

	while ($text =~ /^```sql\n(.*?)^```$/gms)
	{
		my @lines = split /\n/, $1;

		pop @lines while @lines && $lines[-1] !~ /;(\s*--.*)?$|\\g(x|exec)$/;
		push @blocks, join("\n", @lines) . "\n";
	}
	return @blocks;
}

# Links from a document to files that are not there, and to headings that are not.
sub dead_links
{
	my ($document) = @_;
	my $text = slurp_file("$root/$document");
	my @dead;

	while ($text =~ /\]\(([^)\s]+)\)/g)
	{
		my $link = $1;
		my ($file, $heading) = split /#/, $link;
		my $path = $file eq '' ? $document : $document =~ m{^(.*/)} ? "$1$file" : $file;

		next if $link =~ /^https?:/;
		if (!-e "$root/$path")
		{
			push @dead, $link;
		}
		elsif (defined $heading)
		{
			# As GitHub makes anchors of headings.
			my @anchors = map { tr/ /-/r } map { s/[^a-z0-9 _-]//gr } map { lc } slurp_file("$root/$path") =~ /^#+ (.*)$/mg;

			push @dead, $link unless grep { $_ eq $heading } @anchors;
		}
	}
	return @dead;
}

foreach my $document ('README.md', 'ARCHITECTURE.md', 'test/README.md', 'test/RUNS.md', 'test/bench/RESULTS.md',
	map { s{^\Q$root\E/}{}r } glob("$root/docs/*.md $root/src/*/README.md $root/src/*/*/README.md"))
{
	is(join(' ', dead_links($document)), '', "$document: no dead links");
}

# Runs them all.
my %output;

sub run_document
{
	my ($document) = @_;
	my $n = 0;

	foreach my $sql (blocks($document))
	{
		my ($out, $err) = ('', '');
		my $status = $node->psql('mydb', $sql, stdout => \$out, stderr => \$err);

		$n++;
		is($status, 0, "$document, block $n") or diag($sql, $err);
		$output{$document} .= "$out\n";
	}
	return $n;
}

cmp_ok(run_document('README.md'), '>=', 2, 'README.md has SQL');

# Citus' functions run a command on each shard.  Here the table is the only one.
$node->safe_psql('mydb', q{
CREATE FUNCTION run_command_on_placements(t regclass, command text,
	OUT nodename text, OUT nodeport int, OUT shardid bigint, OUT success bool, OUT result text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
	nodename := 'localhost'; nodeport := 5432; shardid := 1; success := true;
	EXECUTE format(command, t) INTO result;
	RETURN NEXT;
END $$;
CREATE FUNCTION run_command_on_shards(t regclass, command text,
	OUT shardid bigint, OUT success bool, OUT result text)
RETURNS SETOF record LANGUAGE sql AS
$$ SELECT shardid, success, result FROM run_command_on_placements(t, command) $$;
});

foreach my $document (map { "docs/$_.md" } qw(skipping joins options monitoring wormhole performance scaling-out operations))
{
	# The last block of operations.md removes the extension.
	run_document($document);
}
like($output{'docs/scaling-out.md'}, qr/^1\|6\|4000\|.*\|f$/m, 'shards: all partitions and rows');
like($output{'docs/operations.md'}, qr/^6\|4000\|.*\|f$/m, 'an index on each partition, with all rows');
is($node->safe_psql('mydb', q{SELECT count(*) FROM pg_extension WHERE extname = 'rangefilter'}), 0, 'removed');

# What was to be added to the setting is there after the restart; then it is taken out.
$node->restart;
is($node->safe_psql('mydb', 'SHOW shared_preload_libraries'), 'plpgsql, rangefilter', 'the library has been added');
is($node->safe_psql('mydb', 'SELECT count(*) FROM events WHERE device_id = 77'), 1, 'queries go on working');
$node->safe_psql('mydb', 'ALTER SYSTEM RESET shared_preload_libraries');
$node->restart;
is($node->safe_psql('mydb', 'SHOW shared_preload_libraries'), 'plpgsql', 'and taken out');
is($node->safe_psql('mydb', 'SELECT count(*) FROM events WHERE device_id = 77'), 1, 'queries go on working');

$node->stop;
done_testing();
