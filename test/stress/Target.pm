# Target.pm: a table of the stress run: the oracle test's random tables
# (Schema.pm), and what is done to one while others read it.
#
# Half of the partitions are "loose": truncated, detached, dropped and made
# anew at any moment.  The others always stay, so that it is known which of
# their rows there are.  Rows marked 'race' belong to Racer.pm: no other change
# touches them.
#
# A snapshot does not see that a partition was attached after it was taken: the
# partition's rows appear.  To leave no doubt which answer is right, a table is
# either "clean" (rows of an attached partition were written by the transaction
# that attached it, so that no older snapshot sees them) or "dirty".

package Target;

use strict;
use warnings;
use Random;
use Types;
use parent -norequire, 'Schema';

# Different processes give different numbers to their rows.
my $IDS = 1_000_000_000;

sub new
{
	my ($class, $name, $type, $collations) = @_;
	my $self = $class->SUPER::new($name, $type, 0, $collations);

	$self->{dirty} = chance(25);
	$self->{racing} = $self->{by} =~ /^(?:list|range)/;
	return $self;
}

# The default partition would forbid DETACH CONCURRENTLY: only some tables
# have one.
sub bounds
{
	my ($self, $p) = @_;
	my $bounds = $self->SUPER::bounds($p);

	$self->{has_default} //= chance(25);
	return $bounds if $bounds ne 'DEFAULT' || $self->{has_default};
	return "FOR VALUES IN ($p)" if $self->{by} =~ /^list/;
	return "FOR VALUES FROM ($p) TO (" . ($p + 1) . ')';
}

# From now on rows are numbered as those of this process, which may write files
# whose names begin so.
sub belongs_to
{
	my ($self, $process, $files) = @_;

	$self->{next_id} = $process * $IDS;
	$self->{file} = $files . "_$self->{name}";
}

sub is_safe { return $_[1] % 2 == 0; }
sub safe_parts { my ($self) = @_; return grep { is_safe($self, $_) } 0 .. $self->{nparts} - 1; }
sub loose_leaves { my ($self) = @_; return grep { $_->{bounds} && !is_safe($self, $_->{p}) } @{ $self->{leaves} }; }

# A change, of the old kind of inheritance tree at times; see Schema.pm.
sub change
{
	my ($self) = @_;
	my $change = $self->SUPER::change;
	my $t = $self->{name};

	$change =~ s/ WHERE / WHERE note IS DISTINCT FROM 'race' AND / if $change =~ /^(?:UPDATE|DELETE)/;
	if (chance(8) && $change !~ /\bp = /)
	{
		my $child = below 3;

		$change =~ s/^INSERT INTO $t /INSERT INTO ${t}_old$child /;
		$change =~ s/^(UPDATE|DELETE FROM) $t /$1 ${t}_old /;
	}
	return $change;
}

# COPY, from a file: psql would take the rows for statements if COPY failed.
sub copy
{
	my ($self, @arguments) = @_;
	my ($statement, $rows) = split /\n/, $self->SUPER::copy(@arguments), 2;

	open my $out, '>:raw', $self->{file} or die "$self->{file}: $!\n";
	print {$out} $rows;
	close $out;
	return $statement =~ s/FROM STDIN;/"FROM " . quoted($self->{file})/er;
}

sub transaction
{
	my ($self) = @_;
	my @statements = $self->SUPER::transaction;

	return @statements if !@statements || $statements[0] ne 'BEGIN';
	splice @statements, 1 + below($#statements), 0, pause(100) if chance(30);
	return @statements;
}

# Keeps a statement, a lock or a snapshot waiting for up to so many ms.
sub pause { return sprintf 'SELECT pg_sleep(%.3f)', rand($_[0]) / 1000; }

# Half of the rows of a table that has become too long.
sub shrink
{
	my ($self) = @_;

	return "DELETE FROM $self->{name} WHERE note IS DISTINCT FROM 'race' AND id % 2 = " . below(2)
	  . " AND (SELECT count(*) FROM $self->{name}) > 6000";
}

# What goes on beside the changes; some of it is cancelled.
sub maintenance
{
	my ($self) = @_;
	my $leaf = $self->leaf;
	my $statement = weighted(
		10 => $self->SUPER::maintenance,
		2 => "REINDEX TABLE CONCURRENTLY $leaf",
		1 => "REINDEX (VERBOSE) INDEX CONCURRENTLY $self->{name}_key",
		1 => "VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) $leaf",
		1 => "VACUUM (INDEX_CLEANUP off) $leaf",
		1 => "VACUUM FULL $leaf",
		1 => "REINDEX TABLE $leaf",
		1 => "ANALYZE $self->{name}",
		2 => "SELECT rangefilter_verify('$self->{name}_key')");

	return $statement if chance(85);
	return ('SET statement_timeout = ' . (1 + below 40), $statement, 'RESET statement_timeout');
}

# The rows a partition gets when it is new.
sub fill
{
	my ($self, $leaf) = @_;

	return chance(20) ? () : $self->insert(1 + below(chance(20) ? 300 : 30), $leaf->{p});
}

# DDL on a loose partition, given what state it is in: missing, alone, pending
# or attached.
sub partition_ddl
{
	my ($self, $leaf, $state) = @_;
	my ($t, $l) = ($self->{name}, $leaf->{name});
	my $attach = "ALTER TABLE $t ATTACH PARTITION $l $leaf->{bounds}";
	my @fill = $self->fill($leaf);
	my $end = weighted(4 => 'COMMIT', 1 => 'ROLLBACK');

	return "ALTER TABLE $t DETACH PARTITION $l FINALIZE" if $state eq 'pending';
	if ($state eq 'missing')
	{
		my $like = "CREATE TABLE $l (LIKE $t" . one_of('', ' INCLUDING INDEXES') . ')';

		return chance(50)
		  ? ('BEGIN', "CREATE TABLE $l PARTITION OF $t $leaf->{bounds}", @fill, $end)
		  : ('BEGIN', $like, $attach, @fill, $end);
	}
	if ($state eq 'alone')
	{
		return "DROP TABLE $l" if chance(15);
		return 'CREATE INDEX CONCURRENTLY ON ' . $l . ' ' . $self->{how} if chance(20);
		return "DELETE FROM $l WHERE id % 3 = 1" if chance(20);
		return $attach if $self->{dirty};
		return ('BEGIN', "TRUNCATE $l", $attach, @fill, $end);
	}
	return @{
		weighted(
			3 => ["TRUNCATE $l"],
			3 => [ 'BEGIN', "TRUNCATE $l", @fill, pause(20), $end ],
			3 => ["ALTER TABLE $t DETACH PARTITION $l"],
			6 => ["ALTER TABLE $t DETACH PARTITION $l CONCURRENTLY"],
			3 => [ 'BEGIN', "ALTER TABLE $t DETACH PARTITION $l",
				"UPDATE $l SET k = " . $self->new_value . ' WHERE id % 20 = 1', $attach, $end ],
			3 => ["DROP TABLE $l"],
			1 => ["VACUUM FULL $l"],
			1 => [ 'BEGIN', "REINDEX TABLE $l", @fill, $end ])
	};
}

# DDL on the whole table.
sub table_ddl
{
	my ($self) = @_;
	my $t = $self->{name};
	my @leaves = map { $_->{name} } @{ $self->{leaves} };

	return @{
		weighted(
			3 => ["REINDEX INDEX ${t}_key"],
			2 => [ "DROP INDEX ${t}_key", $self->fill($self->{leaves}[0]), $self->create_index ],
			2 => [ 'BEGIN', "DROP INDEX ${t}_key", $self->create_index, one_of('COMMIT', 'ROLLBACK') ],
			2 => [ 'BEGIN', "ALTER TABLE $t ADD added int DEFAULT 5", pause(10), "ALTER TABLE $t DROP added", 'COMMIT' ],
			2 => [ "ALTER INDEX ${t}_key RENAME TO ${t}_renamed", "ALTER INDEX ${t}_renamed RENAME TO ${t}_key" ],
			4 => [ $self->build_concurrently(@leaves) ],
			1 => [ "DROP INDEX IF EXISTS ${t}_again", "CREATE INDEX ${t}_again ON $t USING rangefilter (k2, k)" ])
	};
}

# An index of a partitioned table as it is made without locking out writers.
sub build_concurrently
{
	my ($self, @leaves) = @_;
	my $t = $self->{name};

	@leaves = () if grep { !$_->{bounds} } @{ $self->{leaves} };
	return ("DROP INDEX IF EXISTS ${t}_slow", "CREATE INDEX ${t}_slow ON ONLY $t $self->{how}",
		map { ("DROP INDEX CONCURRENTLY IF EXISTS ${_}_slow",
				"CREATE INDEX CONCURRENTLY ${_}_slow ON $_ $self->{how}",
				"ALTER INDEX ${t}_slow ATTACH PARTITION ${_}_slow") } some_of(3, @leaves));
}

# Remembers how the index was made.
sub create_index
{
	my ($self) = @_;
	my @statements = $self->SUPER::create_index;

	($self->{how}) = $statements[0] =~ /(USING rangefilter .*)/;
	return @statements;
}

# The statements that make the table and what queries read beside it.
sub create_all
{
	my ($self) = @_;
	my ($t, $sql) = ($self->{name}, "$self->{sql_type}$self->{collation}");
	my @load = map { $self->insert(150) } 1 .. 2 + below 5;

	splice @load, below(1 + @load), 0, $self->create_index, $self->more_indexes;
	return (@{ $self->{create} }, @load, "ANALYZE $t",
		"CREATE TABLE ${t}_small (id bigint, k $sql)",
		"INSERT INTO ${t}_small (id, k) VALUES " . join(', ', map { "($_, " . Query::argument($self) . ')' } 1 .. 6),
		"CREATE TABLE ${t}_old (id bigint, p int, k2 int, k $sql, note text)",
		(map { ("CREATE TABLE ${t}_old$_ () INHERITS (${t}_old)",
				"INSERT INTO ${t}_old$_ SELECT id, p, k2, k, note FROM $t WHERE p % 3 = $_",
				"CREATE INDEX ON ${t}_old$_ USING rangefilter (k)") } 0 .. 2),
		"CREATE VIEW ${t}_view AS SELECT id, p, k2, k, note FROM $t WHERE k2 >= 10",
		"CREATE VIEW ${t}_barrier WITH (security_barrier) AS SELECT id, p, k2, k, note FROM $t WHERE k2 >= 10");
}

1;
