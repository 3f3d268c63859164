# Schema.pm: a random partitioned table with a rangefilter index, and random
# changes to it.
#
# Rows are (id, p, k2, k, note, extra): id is unique, p says which partition, k is
# the key; some indexes have other columns beside it.  The rows of one p take their keys from a few windows (see Types.pm), so
# that there is something to skip.  Some "hot" keys come and go, in any partition.

package Schema;

use strict;
use warnings;
use Random;
use Types;

# How many windows hold data; those above hold none.
our $WINDOWS = 30;

# Makes a table of a key type, as SQL in $self->{create}.  A big one, of int8, has
# a partition so long that its index gets more than one segment.
sub new
{
	my ($class, $name, $type, $big, $collations) = @_;
	my $info = $types{$type};
	my $self = bless {
		name => $name,
		type => $type,
		big => $big,
		info => $info,
		sql_type => $info->{sql} // $type,
		pool => [],
		next_id => 1,
		next_index => 0,
		nparts => $class->choose_nparts($big),
		by => weighted(40 => 'list (p)', 40 => 'range (p)', 15 => 'hash (p)', $type eq 'money' ? () : (5 => 'hash (k)')),
		nulls => one_of(0, 0, 5, 30),
		windows => [],
		leaves => [],
	}, $class;

	$self->{collation} = '';
	$self->{collation} = chance(60) ? ' COLLATE "C"' : ' COLLATE "' . one_of(@$collations) . '"'
	  if $info->{string} && !$info->{plain};
	$self->{hot} = [ $info->{long} ? some_of(2, @{ $info->{long} }) : (), map { $info->{make}->($WINDOWS + below 10) } 1 .. 6 ];
	# Mostly each partition has keys of its own; else they all share them.
	my $apart = chance(75);
	for my $p (0 .. $self->{nparts} - 1)
	{
		$self->{windows}[$p] = $apart
		  ? [ $p % $WINDOWS, ($p + 7 * below 2) % $WINDOWS ]
		  : [ map { below $WINDOWS } 1 .. 4 ];
	}
	$self->choose_key;
	$self->{by} = 'list (p)' if $big;
	$self->{create} = [ $self->create_parent, map { $self->create_part($_) } 0 .. $self->{nparts} - 1 ];
	return $self;
}

# How many partitions it has.  From 32 on, bounds and digests lie side by side.
sub choose_nparts { return 3 + ($_[1] ? below(3) : weighted(5 => below(6), 3 => below(14), 1 => 27 + below(20))); }

# What the index is on: the column, an expression, several of them; all rows, or
# some.
sub choose_key
{
	my ($self) = @_;
	my $keys = $self->{info}{keys};

	$self->{columns} = chance(40)
	  ? one_of([qw(k k2)], [qw(k2 k)], [qw(note k)], [qw(k note)], [qw(p k)], [qw(note k2 k)], [qw(k k2 note p)], [qw(k2 k note)])
	  : ['k'];

	$self->{key} = $keys && @$keys && chance(20) ? one_of(@$keys) : '%s';
	$self->{where} = chance(12) ? one_of('k2 > 20', 'note IS NOT NULL', 'k IS NOT NULL') : undef;
}

# The key in terms of a table alias: mostly what is indexed.
sub key
{
	my ($self, $alias) = @_;

	return "$alias.k" if $self->{key} ne '%s' && chance(25);
	return sprintf $self->{key}, "$alias.k";
}

# A column of the index, as the index has it.
sub indexed
{
	my ($self, $column) = @_;

	return $column eq 'k' ? '(' . sprintf($self->{key}, 'k') . ')' : $column;
}

sub columns
{
	my ($self) = @_;

	return ('id bigint', 'p int', 'k2 int', "k $self->{sql_type}$self->{collation}", 'note text', 'extra int', $self->{big} ? 'pad text' : ());
}

sub create_parent
{
	my ($self) = @_;

	return "CREATE TABLE $self->{name} (" . join(', ', $self->columns) . ") PARTITION BY $self->{by}";
}

# The bounds of partition number p; for list and range the last one may be the
# default partition.
sub bounds
{
	my ($self, $p) = @_;

	return "FOR VALUES WITH (MODULUS $self->{nparts}, REMAINDER $p)" if $self->{by} =~ /^hash/;
	return 'DEFAULT' if $p == $self->{nparts} - 1;
	return "FOR VALUES IN ($p)" if $self->{by} =~ /^list/;
	return "FOR VALUES FROM ($p) TO (" . ($p + 1) . ')';
}

# The statements that make a partition: directly, attached with another order
# of columns and dropped ones, or partitioned itself.
sub create_part
{
	my ($self, $p) = @_;
	my $leaf = "$self->{name}_$p";
	my $bounds = $self->bounds($p);

	if (chance(15) && !$self->{big})
	{
		my @subs = map { "${leaf}_$_" } 0, 1;
		my ($by, @bounds) = chance(50)
		  ? ('hash (id)', 'FOR VALUES WITH (MODULUS 2, REMAINDER 0)', 'FOR VALUES WITH (MODULUS 2, REMAINDER 1)')
		  : ('range (k2)', 'FOR VALUES FROM (MINVALUE) TO (30)', 'DEFAULT');

		push @{ $self->{leaves} }, map { { name => $_, p => $p, parent => $leaf } } @subs;
		return ("CREATE TABLE $leaf PARTITION OF $self->{name} $bounds PARTITION BY $by",
			map { "CREATE TABLE $subs[$_] PARTITION OF $leaf $bounds[$_]" } 0, 1);
	}
	push @{ $self->{leaves} }, { name => $leaf, p => $p, parent => $self->{name}, bounds => $bounds };
	return "CREATE UNLOGGED TABLE $leaf PARTITION OF $self->{name} $bounds" if chance(3);
	return "CREATE TABLE $leaf PARTITION OF $self->{name} $bounds" if chance(70);
	return ("CREATE TABLE $leaf (" . join(', ', shuffled($self->columns, 'gone1 text', 'gone2 int')) . ')',
		"ALTER TABLE $leaf DROP gone1, DROP gone2",
		"ALTER TABLE $self->{name} ATTACH PARTITION $leaf $bounds");
}

# The statements that make the index.  Sometimes not every partition gets one.
sub create_index
{
	my ($self) = @_;
	my $t = $self->{name};
	my @options;

	push @options, 'filter = ' . one_of('auto', 'surf', $self->is_number && @{ $self->{columns} } == 1 ? 'snarf' : 'auto') if chance(50);
	push @options, 'bits_per_key = ' . one_of(4, 8, 14, 20, 64) if chance(40);
	push @options, 'pages_per_range = ' . one_of(0, 1, 1, 1, 1, 2, 3, 16) if chance(80);
	push @options, 'suffix = ' . one_of('none', 'hash', 'real', 'mixed') if chance(50);
	my $how = 'USING rangefilter (' . join(', ', map { $self->indexed($_) } @{ $self->{columns} }) . ')'
	  . (@options ? ' WITH (' . join(', ', @options) . ')' : '')
	  . ($self->{where} ? " WHERE $self->{where}" : '');
	my @leaves = map { $_->{name} } @{ $self->{leaves} };

	return "CREATE INDEX ${t}_key ON $t $how" if chance(80) || grep { !$_->{bounds} } @{ $self->{leaves} };

	# Belonging to the table's index, to the partition alone, or none.
	my ($attached, $own) = one_of([ 80, 0 ], [ 0, 80 ], [ 40, 70 ]);
	return ("CREATE INDEX ${t}_key ON ONLY $t $how",
		map {
			my $name = $_ . '_own' . ++$self->{next_index};
			chance($attached) ? ("CREATE INDEX $name ON $_ $how", "ALTER INDEX ${t}_key ATTACH PARTITION $name")
			  : chance($own) ? "CREATE INDEX $name ON $_ $how"
			  : ()
		  } @leaves);
}

# Indexes that some partitions alone have: like the table's, or of other columns,
# or of some rows.
sub own_indexes
{
	my ($self) = @_;
	my @columns = map { $self->indexed($_) } @{ $self->{columns} };

	return map {
		my $columns = one_of([@columns], [@columns], [ shuffled(@columns) ], ['k'], [qw(k2 k)], ['k2'], ['(k2 + 1)', 'k']);
		my $where = chance(70) ? '' : ' WHERE ' . one_of('k2 > 20', 'k2 > 97', "note = 'note " . below(11) . "'", 'note IS NOT NULL', 'k IS NOT NULL');

		"CREATE INDEX ${_}_own" . ++$self->{next_index} . " ON $_ USING rangefilter (" . join(', ', @$columns) . ")$where"
	} grep { chance(50) } map { $_->{name} } @{ $self->{leaves} };
}

# A statement that drops the indexes that a partition alone has.
sub drop_own_indexes
{
	my ($self, $leaf) = @_;

	return "DO 'DECLARE i regclass;"
	  . " BEGIN FOR i IN SELECT oid FROM pg_class WHERE relname ~ ''^${leaf}_own'' AND NOT relispartition LOOP"
	  . " EXECUTE ''DROP INDEX '' || i; END LOOP; END'";
}

# Other indexes: on another column, which can skip as well; of another kind.
sub more_indexes
{
	my ($self) = @_;
	my $t = $self->{name};

	return (
		chance(25) ? "CREATE INDEX ${t}_k2 ON $t USING rangefilter (k2)" : (),
		# Long strings do not fit a btree.
		chance(15) ? "CREATE INDEX ${t}_other ON $t USING " . ($self->{type} =~ /^(?:text|varchar|bytea)$/ ? 'hash' : 'btree') . " (k)" : (),
		chance(5) ? "CREATE INDEX ${t}_again ON $t USING rangefilter (k)" : (),
		chance(25) ? $self->own_indexes : ());
}

# Does the type take SNARF?
sub is_number
{
	my ($self) = @_;

	return $self->{type} =~ /^(?:int\d|oid|float\d|timestamp|timestamptz|date|time|money|macaddr8?|bool)$/;
}

# The text of a key for a row of partition p, or undef for NULL.
sub row_key
{
	my ($self, $p) = @_;
	my $text;

	return undef if chance($self->{nulls}) || ($p == 1 && $self->{nulls} == 30);
	return one_of(@{ $self->{hot} }) if chance(3);
	return $self->{pool}[ below scalar @{ $self->{pool} } ] if @{ $self->{pool} } && chance(5);
	$text = chance(1) ? one_of(@{ $self->{info}{extremes} }) : $self->{info}{make}->(one_of(@{ $self->{windows}[$p] }));
	push @{ $self->{pool} }, $text if @{ $self->{pool} } < 500;
	$self->{pool}[ below scalar @{ $self->{pool} } ] = $text if chance(10);
	return $text;
}

# Random rows as lists of texts.
sub rows
{
	my ($self, $n, $p) = @_;
	my @rows;

	for (1 .. $n)
	{
		my $part = $p // below $self->{nparts};
		my $key = $self->row_key($part);

		push @rows, [ $self->{next_id}++, $part, below(100), $key, chance(80) ? 'note ' . below 10 : undef ];
	}
	return @rows;
}

sub insert
{
	my ($self, $n, $p) = @_;

	return "INSERT INTO $self->{name} (id, p, k2, k, note) VALUES "
	  . join(', ', map { '(' . join(', ', map { defined $_ ? quoted($_) : 'NULL' } @$_) . ')' } $self->rows($n, $p));
}

# Many rows for the long partition, each of which fills a block.
sub insert_long
{
	my ($self, $n) = @_;
	my $first = $self->{next_id};

	$self->{next_id} += $n;
	return "INSERT INTO $self->{name} (id, p, k2, k, note, pad) SELECT $first + g, 0, g % 100, "
	  . quoted((one_of(@{ $self->{windows}[0] }) - 20) . '000000000000')
	  . "::int8 + g * 1000003::int8 % 1000000000, 'long', repeat('x', 7500)"
	  . " FROM generate_series(0, $n - 1) g";
}

# The same as COPY.
sub copy
{
	my ($self, $n, $p) = @_;
	my @lines = map { join "\t", map { defined $_ ? s/\\/\\\\/gr : '\N' } @$_ } $self->rows($n, $p);

	return join "\n", "COPY $self->{name} (id, p, k2, k, note) FROM STDIN;", @lines, "\\.\n";
}

sub new_value
{
	my ($self) = @_;

	return one_of('NULL', quoted(one_of(@{ $self->{info}{extremes} }))) if chance(5);
	return $self->hot_value if chance(25);
	return quoted($self->{info}{make}->(below($WINDOWS + 5))) . "::$self->{sql_type}";
}

sub hot_value
{
	my ($self) = @_;

	return quoted(one_of(@{ $self->{hot} })) . "::$self->{sql_type}";
}

# Which rows a change is for.
sub some_rows
{
	my ($self) = @_;

	return weighted(
		4 => 'id % ' . (50 + below 200) . ' = ' . below(50),
		2 => 'id = ' . below($self->{next_id}),
		2 => 'p = ' . below($self->{nparts}) . ' AND k2 < ' . below(60),
		2 => 'k = ' . $self->hot_value,
		1 => 'k IS NULL AND k2 < 50');
}

# A change that may run while others read.
sub change
{
	my ($self) = @_;
	my $t = $self->{name};

	return weighted(
		5 => sub { $self->insert(1 + below 5) },
		1 => sub { $self->insert(220 + below(50), below $self->{nparts}) },
		1 => sub { $self->copy(1 + below 40) },
		$self->{big} ? (4 => sub { $self->insert_long(100 + below 1000) }) : (),
		4 => sub { "UPDATE $t SET k = " . $self->new_value . ' WHERE ' . $self->some_rows },
		2 => sub { "UPDATE $t SET note = 'changed' WHERE " . $self->some_rows },
		2 => sub { "UPDATE $t SET p = " . below($self->{nparts}) . ' WHERE ' . $self->some_rows },
		2 => sub { "UPDATE $t SET k2 = 99 - k2 WHERE " . $self->some_rows },
		3 => sub { "DELETE FROM $t WHERE " . $self->some_rows },
		0.5 => sub { "DELETE FROM $t WHERE p = " . below($self->{nparts}) },
		1 => sub { $self->merge(chance(50) ? $self->new_value : 'NULL') })->();
}

# What may go on at the same time.
sub maintenance
{
	my ($self) = @_;

	return weighted(
		2 => 'VACUUM ' . $self->leaf,
		1 => "VACUUM $self->{name}",
		6 => "SELECT rangefilter_summarize('$self->{name}_key')",
		0.5 => 'ANALYZE ' . $self->leaf,
		0.3 => 'REINDEX TABLE CONCURRENTLY ' . $self->leaf);
}

sub merge
{
	my ($self, $value) = @_;
	my $id = $self->{next_id}++;

	return "MERGE INTO $self->{name} t"
	  . " USING (VALUES ($id, " . below($self->{nparts}) . ", $value)) v (id, p, k)"
	  . ' ON t.id = v.id + ' . (chance(50) ? 0 : -$id + below $id)
	  . ' WHEN MATCHED AND t.k2 > 50 THEN DELETE'
	  . " WHEN MATCHED THEN UPDATE SET k = CAST(v.k AS $self->{sql_type}), k2 = 7"
	  . ' WHEN NOT MATCHED THEN INSERT (id, p, k2, k)'
	  . " VALUES (v.id, v.p, 5, CAST(v.k AS $self->{sql_type}))";
}

sub leaf { return one_of(@{ $_[0]{leaves} })->{name}; }

# Several changes in a transaction that ends one way or the other.
sub transaction
{
	my ($self) = @_;
	my @changes = grep { !/^COPY/ } map { $self->change } 1 .. 3;

	return @changes if chance(50) || @changes < 2;
	splice @changes, 1, 0, 'SAVEPOINT a';
	push @changes, 'ROLLBACK TO a', $self->insert(2) if chance(40);
	return ('BEGIN', @changes, one_of('COMMIT', 'COMMIT', 'ROLLBACK'));
}

# A partition that can be taken off and put back.
sub plain_leaf
{
	my ($self) = @_;

	return one_of(grep { $_->{bounds} } @{ $self->{leaves} });
}

# Changes that lock others out, so they run when nobody else does; and
# rebuilding in general.  Returns a list of statements.
sub upheaval
{
	my ($self) = @_;
	my $t = $self->{name};
	my $leaf = $self->leaf;
	my $plain = $self->plain_leaf;
	my $summarize = "SELECT rangefilter_summarize('${t}_key')";
	my @choices = (
		3 => sub { "TRUNCATE $leaf" },
		2 => sub { ('BEGIN', "TRUNCATE $leaf", $self->insert(20), one_of('COMMIT', 'ROLLBACK')) },
		2 => sub { "VACUUM FULL $leaf" },
		3 => sub { "REINDEX INDEX ${t}_key" },
		2 => sub { "REINDEX TABLE $leaf" },
		2 => sub { "REINDEX TABLE CONCURRENTLY $leaf" },
		2 => sub { ("DROP INDEX ${t}_key", $self->insert(10), $self->create_index) },
		1 => sub { ($self->drop_own_indexes($leaf), $self->insert(10), $self->own_indexes) },
		1 => sub { ("ALTER TABLE $t ADD added int DEFAULT 5", $self->insert(5), "ALTER TABLE $t DROP added") },
		1 => sub { "ALTER TABLE $t ALTER extra TYPE " . one_of('bigint', 'int', 'numeric') },
		1 => sub { "VACUUM (FREEZE) $leaf" },
		1 => sub {
			(	'BEGIN', $self->insert(30), "DELETE FROM $t WHERE id % 97 = 3",
				"PREPARE TRANSACTION '$t'", "COMMIT PREPARED '$t'");
		},
		2 => sub { $self->transaction });

	push @choices,
	  3 => sub {
		(	"ALTER TABLE $t DETACH PARTITION $plain->{name}",
			"UPDATE $plain->{name} SET k = " . $self->new_value . ' WHERE id % 20 = 1',
			"ALTER TABLE $t ATTACH PARTITION $plain->{name} $plain->{bounds}");
	  }
	  if $plain && $plain->{bounds} ne 'DEFAULT' && $self->{by} ne 'hash (k)';
	# One segment of all, then further ones.
	push @choices,
	  12 => sub { ($summarize, map { ($self->insert_long(100 + below 700), $summarize) } 1 .. 3) }
	  if $self->{big};
	return weighted(@choices)->();
}

1;
