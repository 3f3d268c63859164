# Loner.pm: a process that has a table of its own, permanent, temporary or
# unlogged, and does everything to it in one session: changes and DDL in nested
# savepoints, cancelled statements, prepared transactions, changes of roles.
# Since nobody else changes the table, every answer can be compared at once.

package Loner;

use strict;
use warnings;
use Random;
use Types;
use Query;
use parent -norequire, 'Player';

my @scans = qw(enable_indexscan enable_indexonlyscan enable_bitmapscan);

# What must never be: internal errors, files, crashes.
my $FORBIDDEN = qr/^(?:XX|58|08|53|P0)/;

sub new
{
	my ($class, %self) = @_;
	my $self = $class->SUPER::new(role => 'loner', %self);
	my @kinds = ('permanent', 'permanent', 'unlogged', 'temporary');

	$self->{kind} = one_of(@kinds);
	$self->{on} = $self->connect('', Player::plan_settings(), statement_timeout => '60s', lock_timeout => '3s', search_path => 'loner,public');
	# Caches are lost with each look at them, where the server can do that.
	$self->{discards} = $self->{assertions} && chance(25);
	$self->begin_table;
	return $self;
}

sub begin_table
{
	my ($self) = @_;
	my $name = "l$self->{number}_" . ++$self->{tables_made};
	my $type = one_of(@{ $self->{types} });
	my $table = $self->{table} = Ground->new($name, $type, $self->{collations});
	my $how = { permanent => '', unlogged => 'UNLOGGED ', temporary => 'TEMP ' }->{ $self->{kind} };

	$table->{alone} = 1;
	$table->{file} = "$self->{directory}/copy$self->{number}_$name";
	$self->{prepared} = [];
	$self->{savepoints} = [];
	$self->{in_transaction} = 0;
	for my $statement ($table->create_all)
	{
		# A partitioned table has no rows to log.
		$statement =~ s/^CREATE TABLE/CREATE ${how}TABLE/ unless $how =~ /UNLOGGED/ && $statement =~ / PARTITION BY /;
		my ($state, $error) = $self->run($self->{on}, "$statement;");

		$self->fail('an error in making a table', $statement, $error) if defined $state && $state !~ /^(?:42|0A|2|55|54)/;
	}
	$self->count('tables');
}

# Runs something that may fail, but not in any way.  True if it did.
sub try
{
	my ($self, $sql) = @_;
	my ($state, $error) = $self->run($self->{on}, "$sql;");

	push @{ $self->{history} }, substr($sql, 0, 300) . (defined $state ? "   -- $state" : '');
	shift @{ $self->{history} } if @{ $self->{history} } > 60;
	return 0 unless defined $state;
	$self->count("error $state");
	$self->fail_with_history('an internal error', $sql, $error)
	  if $state =~ $FORBIDDEN && $error !~ /tuple concurrently/;
	return 1;
}

sub fail_with_history
{
	my ($self, $what, @details) = @_;

	$self->fail("$what ($self->{kind} table)", @details, 'before that:', @{ $self->{history} });
}

# The same with skipping and by sequential scans.
sub check
{
	my ($self) = @_;
	my $table = $self->{table};
	my ($query, $ordered, $role) = (undef, 0, '');
	my @answers;

	if (@{ $self->{prepared} } && chance(50))
	{
		my $prepared = one_of(@{ $self->{prepared} });
		my $arguments = join ', ', map { argument($table) } 1 .. $prepared->{nargs};

		$query = $prepared->{call} =~ s/%s/$arguments/r;
		$ordered = $prepared->{ordered};
	}
	else { ($query, $ordered) = select_query($table, {}); }
	$role = 'SET ROLE ' . one_of('soak_user', 'soak_owner') . '; ' if chance(15);
	for my $skip (chance(50) ? (1, 0) : (0, 1))
	{
		my $on = $skip ? 'on' : 'off';
		my ($state, @lines) = $self->run($self->{on}, join('; ', "SET rangefilter.enable = $on", (map { "SET $_ = $on" } @scans))
			  . "; SAVEPOINT asking; $role$query;");

		$self->run($self->{on}, 'ROLLBACK TO asking; RELEASE asking;');
		push @answers, [ $state, $state // join "\n", $ordered ? @lines : sort @lines ];
		if (defined $state && ($state =~ $FORBIDDEN || $state eq '57014'))
		{
			next if $state eq '57014' && $self->{discards};
			$self->fail_with_history('an internal error', $query, @lines);
		}
		push @{ $self->{history} }, substr("-- skip $on: $role$query", 0, 300);
	}
	if (grep { defined $_->[0] } @answers) { $self->count('errors in questions'); }
	elsif ($answers[0][1] eq $answers[1][1]) { $self->{passed}++; $self->count('of them with rows') if $answers[0][1] ne ''; }
	else { $self->report($query, $role, @answers); }
}

sub report
{
	my ($self, $query, $role, @answers) = @_;
	my ($made) = map { $_->{make} } grep { $query =~ /\b$_->{name}\b/ } @{ $self->{prepared} };
	my (undef, @plan) = $self->run($self->{on}, "SET rangefilter.enable = on; EXPLAIN (COSTS OFF) $query;");
	my (undef, @verified) = $self->run($self->{on}, "SELECT rangefilter_verify('$self->{table}{name}_key');");

	$self->fail_with_history('another answer with skipping than without', "$role$query", $made // (),
		Checker::differences($answers[0][1], $answers[1][1]), 'plan now:', @plan, "rangefilter_verify: @verified");
}

sub prepare
{
	my ($self) = @_;
	my $name = "q$self->{number}_" . ++$self->{nprepared};
	my ($make, $call, $nargs, $ordered) = prepared_query($self->{table}, $name);

	$make =~ s/FUNCTION (\w+)/FUNCTION pg_temp.$1/ if $self->{kind} eq 'temporary';
	$call =~ s/FROM (q\w+\()/FROM pg_temp.$1/ if $self->{kind} eq 'temporary';
	$self->run($self->{on}, "SET plan_cache_mode = " . one_of('auto', 'force_generic_plan', 'force_custom_plan') . ';') unless $self->{in_transaction};
	return if $self->try($make);
	push @{ $self->{prepared} }, { call => $call, nargs => $nargs, ordered => $ordered, name => $name, make => $make };
	shift @{ $self->{prepared} } if @{ $self->{prepared} } > 8;
}

# DDL that may be in a transaction.  A table is not moved in one: if it is rolled back after changes, core's
# btrees find other rows.
sub ddl
{
	my ($self) = @_;
	my $table = $self->{table};
	my $t = $table->{name};
	my $leaf = $table->leaf;
	my $loose = one_of($table->loose_leaves);
	my @in_transaction = grep { !/^(?:BEGIN|COMMIT|ROLLBACK|ALTER TABLE \S+ SET TABLESPACE)/ && !/CONCURRENTLY|PREPARE|VACUUM/ } weighted(
		6 => sub { $table->upheaval },
		4 => sub { $table->table_ddl },
		4 => sub { map { $table->index_ddl } 1 .. 2 },
		3 => sub { $table->alter_type },
		2 => sub { ($table->drop_own_indexes($leaf), $table->own_indexes) },
		3 => sub { $loose ? $table->partition_ddl($loose, one_of('missing', 'alone', 'attached', 'attached')) : () },
		1 => sub { "ALTER TABLE $leaf RENAME TO ${leaf}_x", "ALTER TABLE ${leaf}_x RENAME TO $leaf" })->();

	return @in_transaction;
}

# What can only be done outside.
sub alone
{
	my ($self) = @_;
	my $table = $self->{table};
	my $leaf = $table->leaf;
	my $loose = one_of($table->loose_leaves);

	return weighted(
		4 => "VACUUM $leaf",
		1 => "VACUUM FULL $leaf",
		1 => "ALTER TABLE $leaf SET TABLESPACE " . Ground::tablespace(),
		2 => Schema::maintenance($table),
		2 => $table->index_ddl,
		2 => $loose ? "ALTER TABLE $table->{name} DETACH PARTITION $loose->{name} CONCURRENTLY" : 'SELECT 1',
		2 => $loose ? "ALTER TABLE $table->{name} ATTACH PARTITION $loose->{name} $loose->{bounds}" : 'SELECT 1',
		1 => 'ANALYZE');
}

# Changes and queries inside a function with blocks that fail.
sub block
{
	my ($self) = @_;
	my $table = $self->{table};
	my @statements = map { my $s = $_; $s =~ s/'/''/g; "EXECUTE '$s';" } grep { !/\\gexec|^COPY|\\/ } $table->change, chance(40) ? $self->ddl : (), $table->change;
	my $body = join ' ', @statements;
	my $rest = chance(50) ? 'RAISE EXCEPTION USING ERRCODE = \'22000\';' : '';

	return "DO \$x\$ BEGIN BEGIN $body $rest EXCEPTION WHEN OTHERS THEN IF SQLSTATE ~ '^(XX|58)' THEN RAISE; END IF; END; END \$x\$";
}

# One step in a transaction.
sub step
{
	my ($self) = @_;
	my $depth = @{ $self->{savepoints} };
	my $kind = weighted(8 => 'check', 8 => 'change', 4 => 'ddl', 2 => 'block', 3 => 'savepoint', 3 => 'rollback', 1 => 'release', 1 => 'prepare', 1 => 'load', 1 => 'late');

	if ($kind eq 'check') { $self->check for 1 .. 1 + below 3; }
	elsif ($kind eq 'change') { $self->safely($self->{table}->change); }
	elsif ($kind eq 'load') { $self->safely($self->{table}->load); }
	elsif ($kind eq 'ddl') { $self->safely($self->ddl); }
	elsif ($kind eq 'block') { $self->safely($self->block); }
	elsif ($kind eq 'prepare') { $self->run($self->{on}, 'SAVEPOINT p;'); $self->prepare; $self->run($self->{on}, 'ROLLBACK TO p;') if chance(20); }
	elsif ($kind eq 'late') { $self->safely('SET CONSTRAINTS ALL IMMEDIATE'); }
	elsif ($kind eq 'savepoint') { push @{ $self->{savepoints} }, 's' . $depth; $self->try("SAVEPOINT s$depth"); }
	elsif ($depth && $kind eq 'rollback') { my $to = below $depth; splice @{ $self->{savepoints} }, $to + 1; $self->try("ROLLBACK TO s$to"); $self->check; }
	elsif ($depth) { my $to = below $depth; splice @{ $self->{savepoints} }, $to; $self->try("RELEASE s$to"); }
}

# Statements each of which may fail or be cancelled, without the transaction's end.
sub safely
{
	my ($self, @statements) = @_;

	for my $statement (@statements)
	{
		my $cancel = chance(12);

		$self->run($self->{on}, 'SAVEPOINT safe;');
		$self->run($self->{on}, 'SET LOCAL statement_timeout = ' . (1 + below 30) . ';') if $cancel;
		my $failed = $self->try($statement);
		$self->run($self->{on}, 'ROLLBACK TO safe;') if $failed;
		$self->run($self->{on}, "SET LOCAL statement_timeout = '60s';") if $cancel;
		$self->run($self->{on}, 'RELEASE safe;');
		$self->check if chance(30);
		last if $failed;
	}
}

sub transaction
{
	my ($self) = @_;
	my $end = weighted(6 => 'COMMIT', 4 => 'ROLLBACK', 2 => 'PREPARE');
	my $name = "loner$self->{number}";

	$self->try('BEGIN ISOLATION LEVEL ' . weighted(3 => 'READ COMMITTED', 2 => 'REPEATABLE READ', 1 => 'SERIALIZABLE'));
	$self->{in_transaction} = 1;
	$self->{savepoints} = [];
	# Sessions whose caches are lost are very slow.
	$self->run($self->{on}, 'SET LOCAL debug_discard_caches = 1;') if $self->{discards};
	for (1 .. 2 + below($self->{discards} ? 3 : 10))
	{
		last if $self->time_is_up;
		$self->step;
	}
	$self->{in_transaction} = 0;
	if ($end eq 'PREPARE')
	{
		if (!$self->try("PREPARE TRANSACTION '$name'"))
		{
			$self->try(one_of('COMMIT', 'ROLLBACK') . " PREPARED '$name'");
			$self->count('prepared transactions');
		}
		else { $self->try('ROLLBACK'); }
	}
	else { $self->try($end); }
	$self->{savepoints} = [];
	$self->run($self->{on}, 'RESET rangefilter.enable;');
}

sub play
{
	my ($self) = @_;

	until ($self->time_is_up)
	{
		$self->transaction;
		$self->run($self->{on}, 'BEGIN;');
		$self->{in_transaction} = 1;
		$self->check for 1 .. 3;
		$self->{in_transaction} = 0;
		$self->run($self->{on}, 'COMMIT;');
		$self->prepare if chance(30);
		$self->try($self->alone) if chance(30);
		if (chance(4))
		{
			my $t = $self->{table}{name};

			$self->run($self->{on}, 'DEALLOCATE ALL;');
			$self->try("DROP TABLE $t, ${t}_small, ${t}_old CASCADE");
			$self->try("SELECT format('DROP TABLE %s CASCADE', oid::regclass) FROM pg_class WHERE relname ~ '^${t}_' AND relkind = 'r' \\gexec --");
			$self->begin_table;
		}
	}
}

1;
