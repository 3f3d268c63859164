# Racer.pm: a process that knows the rows it has committed, and looks for them
# in READ COMMITTED.
#
# One session changes rows that nobody else touches, in partitions that stay;
# another one asks for them by key, while a transaction commits or after it.
# What it sees must be what was there before or after one of the transactions
# under way: no row less, and none more.

package Racer;

use strict;
use warnings;
use Random;
use Types;
use parent -norequire, 'Player';

sub new
{
	my ($class, %self) = @_;
	my $self = $class->SUPER::new(role => 'racer', %self);

	$self->{table} = one_of(grep { $_->{racing} } @{ $self->{tables} });
	return $self unless $self->{table};
	$self->{first} = -$self->{number} * 10_000_000;
	$self->{last} = $self->{first};
	$self->{rows} = {};    # id => key
	$self->{full} = 0;    # the partition that got many rows of late
	$self->{keys} = [ @{ $self->{table}{hot} }[ 0 .. 2 ] ];
	# Others shall notice deadlocks first.
	$self->{writer} = $self->connect('writer', deadlock_timeout => '20s');
	$self->{reader} = $self->connect('reader', Player::plan_settings(), 'rangefilter.enable' => 'on', deadlock_timeout => '20s');
	$self->new_keys;
	$self->prepare;
	return $self;
}

# Takes some keys that were not used before; those of rows are kept.  A key that
# is equal to another one though it looks different is dropped.
sub new_keys
{
	my ($self) = @_;
	my %held = map { $_ => 1 } @{ $self->{keys} }[ 0 .. 2 ], values %{ $self->{rows} };
	my @keys = (sort(keys %held), grep { !$held{$_} } map { $self->{table}{info}{make}->($Schema::WINDOWS + below 10) } 1 .. 3);
	my $type = "$self->{table}{sql_type}$self->{table}{collation}";
	my @same = $self->must($self->{writer}, 'WITH v (i, k) AS (VALUES '
		  . join(', ', map { "($_, " . quoted($keys[$_]) . "::$type)" } 0 .. $#keys)
		  . ') SELECT a.i FROM v a WHERE EXISTS (SELECT FROM v b WHERE b.i < a.i AND b.k = a.k);');

	delete @keys[@same];
	$self->{keys} = [ grep { defined } @keys ];
}

# A key to use or to ask for, mostly a new one.
sub some_key
{
	my ($self) = @_;
	my $keys = $self->{keys};

	return chance(50) ? $keys->[ -1 - below(@$keys < 3 ? scalar @$keys : 3) ] : one_of(@$keys);
}

# The rows with a key.
sub query
{
	my ($self, $key) = @_;

	return "SELECT a.id FROM $self->{table}{name} a WHERE " . $self->equal($key) . ' AND ' . $self->own;
}

sub own
{
	my ($self) = @_;

	return 'a.id BETWEEN ' . ($self->{first} - 9_999_999) . " AND $self->{first} AND a.note = 'race' AND a.k2 = 50";
}

# k = key, in the form that the index has, too, if that is an expression.
sub equal
{
	my ($self, $key) = @_;
	my $table = $self->{table};
	my $equal = "a.k = $key";

	$equal .= ' AND ' . sprintf("$table->{key} = $table->{key}", 'a.k', $key) if $table->{key} ne '%s';
	return $equal;
}

sub prepare
{
	my ($self) = @_;
	my $type = $self->{table}{sql_type};
	my $f = "race_$self->{name}_$self->{round}";

	$self->must($self->{reader}, "PREPARE race($type) AS " . $self->query('$1') . ';');
	$self->must($self->{writer}, "CREATE FUNCTION $f(x $type) RETURNS SETOF bigint LANGUAGE plpgsql AS \$\$ BEGIN RETURN QUERY "
		  . $self->query('x') . '; END $$;');
	$self->{function} = $f;
}

sub must
{
	my ($self, $session, $sql) = @_;
	my ($state, @lines) = $self->run($session, $sql);

	$self->fail('an error where nothing may fail', $sql, @lines) if defined $state;
	return @lines;
}

# A random transaction, as SQL; and the rows as they are after it.
sub transaction
{
	my ($self, $rows) = @_;
	my $t = $self->{table};
	my %rows = %$rows;
	my @statements;

	for (1 .. (chance(70) ? 1 : 3))
	{
		my $key = $self->some_key;
		my $p = chance(50) ? $self->{full} : one_of($t->safe_parts);
		my $id = %rows ? one_of(sort keys %rows) : undef;
		my $kind = !defined $id ? 'insert' : weighted(keys(%rows) > 60 ? (9 => 'delete') : (6 => 'insert', 1 => 'delete'),
			2 => 'key', 2 => 'partition', 1 => 'touch');

		if ($kind eq 'insert')
		{
			$id = --$self->{last};
			$rows{$id} = $key;
			push @statements, "INSERT INTO $t->{name} (id, p, k2, k, note) VALUES ($id, $p, 50, " . quoted($key) . ", 'race')";
		}
		else
		{
			my $where = "WHERE id = $id AND note = 'race'";

			$where .= ' AND k = ' . quoted($rows{$id}) . "::$t->{sql_type}" if chance(50);
			if ($kind eq 'delete') { push @statements, "DELETE FROM $t->{name} $where"; delete $rows{$id}; }
			elsif ($kind eq 'key') { push @statements, "UPDATE $t->{name} SET k = " . quoted($key) . " $where"; $rows{$id} = $key; }
			elsif ($kind eq 'partition') { push @statements, "UPDATE $t->{name} SET p = $p $where"; }
			else { push @statements, "UPDATE $t->{name} SET extra = " . below(100) . " $where"; }
		}
	}
	return (join('; ', @statements) . ';', \%rows) if @statements == 1;
	return ('BEGIN; ' . join('; ', @statements) . '; ROLLBACK;', $rows) if chance(20);
	return ('BEGIN; ' . join('; ', @statements) . '; COMMIT;', \%rows);
}

# Many rows for a partition, so that the tail of its index's summary is open,
# which this session remembers; and a summarize, which closes it.
sub load
{
	my ($self) = @_;
	my $t = $self->{table};
	my ($state, $error);

	$self->{full} = one_of($t->safe_parts);
	$self->new_keys;
	$self->must($self->{writer}, $t->insert(220 + below(60), $self->{full}) . ';');
	return if chance(30);
	($state, $error) = $self->run($self->{reader}, "SELECT rangefilter_summarize('$t->{name}_key');");
	$self->fail('an error that is not DDL\'s', $error) if defined $state && !$self->{tolerate}{$state};
}

# The ids of the rows with a key.
sub expected
{
	my ($self, $rows, $key) = @_;

	return join ' ', sort { $a <=> $b } grep { $rows->{$_} eq $key } keys %$rows;
}

# A statement that asks for the rows with a key, one way or another.
sub question
{
	my ($self, $key) = @_;
	my $value = quoted($key) . "::$self->{table}{sql_type}";
	my $t = $self->{table}{name};

	return weighted(
		4 => $self->query($value),
		4 => "EXECUTE race($value)",
		2 => "SELECT * FROM $self->{function}($value)",
		1 => $self->query("(SELECT $value)"),
		1 => "SELECT a.id FROM (VALUES ($value), (NULL)) v (k) JOIN $t a ON " . $self->equal('v.k') . ' AND ' . $self->own,
		1 => "SELECT s.id FROM (VALUES ($value)) v (k), LATERAL (" . $self->query('v.k') . ' OFFSET 0) s',
		1 => "BEGIN; " . $self->query($value) . '; COMMIT');
}

# Transactions, and a question while they commit; then the same when they have.
sub race
{
	my ($self) = @_;
	my @states = ($self->{rows});
	my $key = $self->some_key;
	my $question = $self->question($key);
	my $sql = '';
	my ($state, @got, $got);

	for (1 .. below 5)
	{
		my ($statements, $rows) = $self->transaction($states[-1]);

		$sql .= "$statements\n";
		push @states, $rows;
	}
	$self->{writer}->send($sql);
	($state, @got) = $self->run($self->{reader}, "$question;");
	$self->compare($question, $key, $state, \@got, $sql, @states);
	($state, @got) = $self->receive($self->{writer});
	if (defined $state)
	{
		$self->fail('an error where nothing may fail', $sql, @got);
		return;
	}
	$self->{rows} = $states[-1];
	return if chance(30);
	$question = $self->question($key) if chance(50);
	($state, @got) = $self->run($self->{reader}, "$question;");
	$self->compare($question, $key, $state, \@got, "committed before: $sql", $self->{rows});
	$self->touch_all($key) if chance(20);
}

sub compare
{
	my ($self, $question, $key, $state, $got, $sql, @states) = @_;
	my $ids = join ' ', sort { $a <=> $b } @$got unless defined $state;

	if (defined $state) { $self->fail('an error where nothing may fail', $question, @$got); }
	elsif (grep { $ids eq $self->expected($_, $key) } @states) { $self->{passed}++; $self->count('of them with rows') if @$got; }
	else
	{
		$self->fail('committed rows are missing, or others seen', $question, "got [$ids], may be",
			(map { '[' . $self->expected($_, $key) . ']' } @states), $sql,
			"rangefilter_verify: " . join(' ', map { $_ // () } $self->run($self->{reader}, "SELECT rangefilter_verify('$self->{table}{name}_key');")));
	}
}

# An UPDATE must find all rows, too.
sub touch_all
{
	my ($self, $key) = @_;
	my $statement = "UPDATE $self->{table}{name} a SET extra = a.extra + 1 WHERE "
	  . $self->equal(quoted($key) . "::$self->{table}{sql_type}") . ' AND ' . $self->own . ' RETURNING a.id';
	my ($state, @got) = $self->run($self->{reader}, "$statement;");

	$self->compare($statement, $key, $state, \@got, 'nobody else changes them', $self->{rows});
}

sub play
{
	my ($self) = @_;

	return unless $self->{table};
	until ($self->time_is_up)
	{
		$self->load if chance(3);
		$self->race;
		Time::HiRes::sleep(rand 0.01) if chance(50);
	}
	$self->must($self->{writer}, "DROP FUNCTION $self->{function};");
}

1;
