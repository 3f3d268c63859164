# Ground.pm: a table of the soak run: the stress run's, with wormhole indexes,
# tablespaces, changes of types, bulk loads, a queue and a policy.

package Ground;

use strict;
use warnings;
use Random;
use Types;
use parent -norequire, 'Target';

# Digest matrices need many partitions.
sub choose_nparts { return chance(30) ? 40 + below 90 : $_[0]->SUPER::choose_nparts($_[1]); }

# Of rows with these, indexes on the whole key cannot be made.
sub has_long_keys { return $_[0]{type} =~ /^(?:text|varchar|bytea)$/; }

sub is_text { return $_[0]{type} =~ /^(?:text|varchar)$/; }

# A wormhole index; some types and collations have none.
sub wormhole
{
	my ($self, $table, $name) = @_;
	my @columns = $self->has_long_keys ? ('id', 'k2, id', 'note, k2', 'p, note DESC NULLS LAST')
	  : ('k', 'k', 'k DESC', 'k, id', 'k2, k', 'k DESC NULLS LAST, k2', 'p, k');
	my $columns = one_of(@columns);
	my $include = chance(20) ? ' INCLUDE (id)' : '';
	my $options = chance(30) ? ' WITH (' . one_of('fillfactor = 30', 'deduplicate = off') . ')' : '';
	my $where = chance(15) ? ' WHERE k2 > 20' : '';

	$include = '' if $columns =~ /\bid\b/;
	return "DO 'BEGIN CREATE INDEX $name ON $table USING wormhole ($columns)$include$options$where;"
	  . " EXCEPTION WHEN undefined_object OR feature_not_supported OR indeterminate_collation THEN NULL; END'";
}

sub more_indexes
{
	my ($self) = @_;

	return ($self->SUPER::more_indexes, chance(70) ? $self->wormhole($self->{name}, "$self->{name}_worm") : (),
		map { $self->wormhole($_->{name}, "$_->{name}_own" . ++$self->{next_index}) } grep { chance(10) } @{ $self->{leaves} });
}

# A load that puts more into one partition than a delta's pages keep.
sub load
{
	my ($self) = @_;

	return $self->copy(one_of(300, 1000, 3000), chance(70) ? below $self->{nparts} : undef);
}

# New keys at one end, old ones taken from the other: for numbers and times.
sub queue
{
	my ($self) = @_;
	my $t = $self->{name};
	my ($first, $p) = ($self->{next_id}, below $self->{nparts});
	my $n = 1 + below 30;

	return $self->insert(5) unless $self->{type} =~ /^(?:int[48]|float8|numeric|timestamptz|date)$/;
	return "DELETE FROM $t WHERE note = 'queue' AND k < (SELECT max(k) FROM $t WHERE note = 'queue')"
	  . " AND id IN (SELECT id FROM $t WHERE note = 'queue' ORDER BY k LIMIT " . below(60) . ' FOR UPDATE SKIP LOCKED)'
	  if chance(40);
	$self->{next_id} += $n;
	my $one = $self->{type} eq 'timestamptz' ? "interval '1 second'" : '1';
	my $start = $self->{type} =~ /^(?:timestamptz|date)$/ ? "'2030-01-01'" : '900000000';

	return "INSERT INTO $t (id, p, k2, k, note) SELECT $first + g, $p, g % 100,"
	  . " (coalesce((SELECT max(k) FROM $t WHERE note = 'queue'), ${start}::$self->{sql_type}) + g * $one)::$self->{sql_type}, 'queue'"
	  . " FROM generate_series(1, $n) g";
}

sub change
{
	my ($self) = @_;

	return weighted(
		20 => sub { $self->SUPER::change },
		4 => sub { $self->queue },
		0.5 => sub { $self->load })->();
}

# Runs what a query makes: a command for one of the indexes or partitions.
sub for_one_index
{
	my ($self, $command, $condition) = @_;

	return "SELECT format('$command', c.oid::regclass) FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_am a ON a.oid = c.relam"
	  . " WHERE c.relkind = 'i' AND c.relname ~ '^$self->{name}_' AND a.amname IN ('rangefilter', 'wormhole') AND $condition"
	  . " ORDER BY random() LIMIT 1 \\gexec --";
}

sub tablespace { return one_of('soak1', 'soak2', 'pg_default'); }

# Indexes of partitions alone, which come and go without the table's.
sub index_ddl
{
	my ($self) = @_;
	my $leaf = $self->leaf;
	my $own = "c.relname ~ '_own' AND NOT c.relispartition";
	my $name = "${leaf}_own" . ++$self->{next_index} . 'd';
	my $columns = one_of('k', 'k', 'k2, k', 'k2', '(k2 + 1), k');

	return weighted(
		5 => "CREATE INDEX CONCURRENTLY $name ON $leaf USING rangefilter ($columns)",
		2 => "CREATE INDEX $name ON $leaf USING rangefilter ($columns)" . one_of('', ' WHERE k2 > 20'),
		2 => $self->wormhole($leaf, $name),
		2 => "CREATE INDEX CONCURRENTLY $name ON $leaf USING wormhole (id)",
		3 => $self->for_one_index('DROP INDEX CONCURRENTLY %s', $own),
		2 => $self->for_one_index('DROP INDEX %s', $own),
		3 => $self->for_one_index('REINDEX INDEX CONCURRENTLY %s', 'true'),
		2 => $self->for_one_index('REINDEX INDEX %s', 'true'),
		1 => $self->for_one_index('REINDEX (TABLESPACE ' . tablespace() . ') INDEX CONCURRENTLY %s', 'true'),
		1 => $self->for_one_index('ALTER INDEX %s SET TABLESPACE ' . tablespace(), 'true'),
		1 => $self->for_one_index('ALTER INDEX %s SET (' . one_of('bits_per_key = 8', 'autosummarize = off', 'autosummarize = on') . ')', "a.amname = 'rangefilter'"));
}

# The key's column is written anew, gets another collation, or a type like its own.  A snapshot that is
# older than a rewritten table sees no rows in it, and that of EXECUTE may be: no rewriting where
# others know their rows.
sub alter_type
{
	my ($self) = @_;
	my $t = $self->{name};
	my $type = $self->{sql_type};
	my $change = "ALTER k TYPE $type$self->{collation}";

	return "ALTER TABLE $t ALTER extra TYPE " . one_of('bigint', 'int') if $self->{by} eq 'hash (k)';
	if ($self->is_text) { $change = 'ALTER k TYPE ' . one_of('text', 'varchar') . (chance(30) ? ' COLLATE "C"' : $self->{collation}); }
	elsif ($type =~ /^(?:int4|int8|float8|numeric)$/ && ($self->{alone} || !$self->{racing})) { $change .= ' USING k + 0'; }
	return ('BEGIN', "DROP VIEW ${t}_view, ${t}_barrier", "ALTER TABLE $t $change" . (($self->{alone} || !$self->{racing}) && chance(30) ? ', ALTER extra TYPE ' . one_of('bigint', 'int') : ''),
		$self->views, one_of('COMMIT', 'COMMIT', 'ROLLBACK'));
}

sub views
{
	my ($self) = @_;
	my $t = $self->{name};

	return ("CREATE VIEW ${t}_view AS SELECT id, p, k2, k, note FROM $t WHERE k2 >= 10",
		"CREATE VIEW ${t}_barrier WITH (security_barrier) AS SELECT id, p, k2, k, note FROM $t WHERE k2 >= 10");
}

sub table_ddl
{
	my ($self) = @_;
	my $leaf = $self->leaf;
	my $kind = weighted(10 => 'stress', 10 => 'index', 2 => 'type', 2 => 'space', 1 => 'logged');

	return $self->SUPER::table_ddl if $kind eq 'stress';
	return $self->index_ddl if $kind eq 'index';
	return $self->alter_type if $kind eq 'type';
	return 'ALTER TABLE ' . $leaf . ' SET TABLESPACE ' . tablespace() if $kind eq 'space';
	$leaf = one_of(map { $_->{name} } $self->loose_leaves) // return unless $self->{alone};
	return ("ALTER TABLE $leaf SET " . one_of('UNLOGGED', 'LOGGED'), "ALTER TABLE $leaf SET LOGGED");
}

# A missing partition may come back as one that is partitioned itself.
sub partition_ddl
{
	my ($self, $leaf, $state) = @_;
	my ($t, $l) = ($self->{name}, $leaf->{name});

	return ('BEGIN', "CREATE TABLE $l PARTITION OF $t $leaf->{bounds} PARTITION BY " . one_of('range (k2)', 'list (k2)'),
		"CREATE TABLE ${l}_s0 PARTITION OF $l DEFAULT", $self->fill($leaf), 'COMMIT')
	  if $state eq 'missing' && chance(15);
	return $self->SUPER::partition_ddl($leaf, $state);
}

# A policy, for those who are not superusers.
sub create_all
{
	my ($self) = @_;
	my $t = $self->{name};
	# A standby cannot read unlogged partitions.
	my @statements = map { s/^CREATE UNLOGGED/CREATE/r } $self->SUPER::create_all;

	return (@statements, "ALTER TABLE $t ENABLE ROW LEVEL SECURITY", "CREATE POLICY half ON $t USING (k2 >= 50)",
		"GRANT ALL ON $t, ${t}_small, ${t}_old, ${t}_view, ${t}_barrier TO soak_owner, soak_user");
}

1;
