# Types.pm: the key types, and random values of each.
#
# Values are made in "windows": those of one window lie close together, those
# of different windows apart, as far as the type has room.  A value is the text
# PostgreSQL reads it from.  For each type:
#	sql			its name in a column definition
#	make		a value of a window
#	extremes	values at the type's edges
#	long		values that differ only beyond what a filter keeps
#	others		types its btree family compares it with, and how to get a
#				value of such a type from one of this type
#	string		LIKE, prefixes and collations make sense
#	range		a range type over it
#	vague		equal values may look different
#	keys		index expressions over it (%s is the column) of the same type

package Types;

use strict;
use warnings;
use POSIX qw(strftime);
use Exporter 'import';
use Random;
our @EXPORT = qw(%types quoted value_of);

sub quoted
{
	my ($text) = @_;

	$text =~ s/'/''/g;
	return "'$text'";
}

sub seconds { return 1_600_000_000 + $_[0] * 1_000_000 + below(900_000); }
sub clock { return strftime('%H:%M:%S', gmtime($_[0] * 1700 + below 1700)); }
sub hexes { return join '', map { sprintf '%02x', $_ } @_; }
sub bytes { return map { below 256 } 1 .. $_[0]; }
sub same { return $_[0]; }

# The first bytes of a string, characters kept whole.
sub cut
{
	my $head = substr $_[0], 0, $_[1];

	$head =~ s/[\xc2-\xf4][\x80-\xbf]*$// if length $_[0] > $_[1];
	return $head;
}

# Long strings without repetitions, so that compression does not save them from
# being stored out of line.
sub letters { return join '', map { chr(97 + below 26) } 1 .. $_[0]; }

sub word
{
	my ($window) = @_;
	my $start = ('', 'https://example.org/a/long/path/that/many/strings/share/beyond/any/bound/kept/')[ $window % 2 ];

	return $start . sprintf('%03d', $window) . weighted(
		20 => sub { letters(below 4) },
		10 => sub { letters(8) . ' ' },
		5 => sub { one_of("\x{c3}\x{a9}t\x{c3}\x{a9}", "\x{f4}\x{8f}\x{bf}\x{bf}", '%', '_x', '\\', "a'b", 'A', "\x01") },
		2 => sub { letters(40) },
		1 => sub { letters(300) },
		0.1 => sub { letters(5000) })->();
}

our @word_extremes = ('', ' ', '   ', 'a', "\x01", "\x7f", '%', '_', '\\', 'Zz',
	"\x{c3}\x{a4}", "\x{c3}\x{9f}", "\x{f4}\x{8f}\x{bf}\x{bf}", "\x{ee}\x{80}\x{80}", 'x' x 200);
our @word_long = map { 'x' x 3000 . $_ } '', 'a', 'b', 'bb';

our %types = (
	int2 => {
		make => sub { $_[0] * 600 - 30000 + below 500 },
		extremes => [ -32768, 32767, 0, -1, 1 ],
		others => { int4 => \&same, int8 => \&same },
		keys => [ '(%s / 2::int2)' ],
	},
	int4 => {
		make => sub { $_[0] * 30_000_000 - 900_000_000 + below one_of(1000, 20_000_000) },
		extremes => [ -2147483648, 2147483647, 0, -1, 1 ],
		others => {
			int2 => sub { $_[0] % 32768 },
			int8 => sub { chance(70) ? $_[0] : one_of('-9223372036854775808', '9223372036854775807', '2147483648', '-2147483649') }
		},
		range => 'int4range',
		keys => [ '(%s / 3)', '(%s %% 1000)', '(-(%s / 2))' ],
	},
	int8 => {
		make => sub { ($_[0] - 20) * 1_000_000_000_000 + below one_of(1000, 1_000_000_000) },
		extremes => [ '-9223372036854775808', '9223372036854775807', 0, -1, 1 ],
		others => { int4 => sub { $_[0] % 2147483648 }, int2 => sub { $_[0] % 32768 } },
		range => 'int8range',
		keys => [ '(%s / 1000)', '(%s & 65535)' ],
	},
	oid => {
		make => sub { $_[0] * 90_000_000 + below one_of(1000, 80_000_000) },
		extremes => [ 0, 1, 4294967295, 2147483648 ],
		others => {},
	},
	float4 => {
		make => sub { ($_[0] - 20) * 1000 + below(4000) / 8 },
		extremes => [ 'NaN', 'Infinity', '-Infinity', '-0', '0', '1.4e-45', '3.4028235e38', '-3.4028235e38', '0.1' ],
		others => { float8 => sub { one_of($_[0], '0.1', '1e300', '-1e300', '5e-324', 'NaN') } },
		vague => 1,
		keys => ['(-%s)'],
	},
	float8 => {
		make => sub { ($_[0] - 20) * 1e6 + rand 1e5 },
		extremes => [ 'NaN', 'Infinity', '-Infinity', '-0', '0', '5e-324', '1.7976931348623157e308', '-1e308', '0.1' ],
		others => { float4 => sub { one_of($_[0] =~ /^-?[\d.]+$/ ? $_[0] : '0.1', '0.1', '3.4028235e38', 'NaN') } },
		vague => 1,
		keys => ['(-%s)'],
	},
	numeric => {
		make => sub {
			my $n = ($_[0] - 20) * 1000 + below 900;
			weighted(5 => $n, 3 => "$n.50", 3 => "$n.5", 2 => "$n.0", 2 => "$n." . below(1_000_000_000),
				1 => $n . '0' x 30, 1 => "0.000000000$_[0]" . below(1000));
		},
		extremes => [ 'NaN', 'Infinity', '-Infinity', '0', '0.00', '-0.0', '1e400', '-1e400', '1e-300', '-1e-300', '9999.99999' ],
		others => {},
		range => 'numrange',
		vague => 1,
		keys => [ '(%s + 1.0)' ],
	},
	timestamp => {
		make => sub { strftime('%Y-%m-%d %H:%M:%S', gmtime seconds($_[0])) },
		extremes => [ 'infinity', '-infinity', '4713-01-01 00:00:00 BC', '294276-12-31 23:59:59.999999', '2000-01-01' ],
		others => {
			date => sub { $_[0] =~ /^(\S+)(?: \S+?(?:( BC)|$))?/ ? $1 . ($2 // '') : '2000-01-01' },
			timestamptz => \&same
		},
		range => 'tsrange',
		keys => [ q{date_trunc('hour', %s)} ],
	},
	timestamptz => {
		make => sub { strftime('%Y-%m-%d %H:%M:%S', gmtime seconds($_[0])) . one_of('+00', '+05:30', '-08') },
		extremes => [ 'infinity', '-infinity', '4713-01-01 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00', '2000-01-01 00:00+00' ],
		others => { timestamp => \&same, date => \&same },
		range => 'tstzrange',
		keys => [],
	},
	date => {
		make => sub { strftime('%Y-%m-%d', gmtime(($_[0] - 10) * 50_000_000 + below 20_000_000)) },
		extremes => [ 'infinity', '-infinity', '4713-01-01 BC', '5874897-12-31', '294277-01-01', '2000-01-01' ],
		others => {
			timestamp => sub {
				return one_of('infinity', '-infinity', '294276-12-31 23:59:59') unless $_[0] =~ /^\d{4}-[^B]*$/;
				return $_[0] . one_of(' 00:00', ' 12:00', ' 23:59:59.999999');
			},
			timestamptz => sub { $_[0] =~ /^\d{4}-\d\d-\d\d$/ ? "$_[0] 12:00+00" : 'infinity' }
		},
		range => 'daterange',
		keys => [q{greatest(%s, '2000-01-01'::date)}],
	},
	time => {
		make => sub { clock($_[0]) . (chance(20) ? '.' . below(1000) : '') },
		extremes => [ '00:00', '24:00:00', '23:59:59.999999' ],
		others => {},
	},
	timetz => {
		make => sub { clock($_[0]) . one_of('+00', '+02', '-11:30', '+15:59:59') },
		extremes => [ '00:00+15:59:59', '24:00:00-15:59:59', '00:00+00', '12:00+01', '11:00+00' ],
		others => {},
	},
	interval => {
		make => sub {
			one_of($_[0] . ' days ' . below(24) . ' hours', $_[0] * 24 + below(24) . ' hours',
				($_[0] % 12) . ' mons ' . below(30) . ' days', -$_[0] . ' days');
		},
		extremes => [ '178000000 years', '-178000000 years', '0', '1 mon', '30 days', '720:00:00', '-1 mon', '2147483647 days', '2147483647 mons 2147483647 days' ],
		others => {},
		vague => 1,
	},
	money => {
		make => sub { ($_[0] - 20) * 1000 + below(90000) / 100 },
		extremes => [ '-92233720368547758.08', '92233720368547758.07', 0 ],
		others => {},
	},
	bool => {
		make => sub { $_[0] % 3 == 2 ? one_of('true', 'false') : $_[0] % 3 ? 'true' : 'false' },
		extremes => [ 'true', 'false' ],
		others => {},
	},
	uuid => {
		make => sub { sprintf('%02x', $_[0] * 4) . hexes(bytes 15) },
		extremes => [ '0' x 32, 'f' x 32, '8' . '0' x 31 ],
		others => {},
	},
	text => {
		make => \&word, extremes => \@word_extremes, long => \@word_long, string => 1,
		others => { name => sub { cut($_[0], 20) }, varchar => \&same },
		keys => [ 'lower(%s)', q{(%s || 'x')}, 'left(%s, 5)' ],
	},
	varchar => {
		make => \&word, extremes => \@word_extremes, long => \@word_long, string => 1,
		others => { name => sub { cut($_[0], 20) }, text => \&same },
	},
	bpchar => {
		sql => 'char(12)', string => 1,
		make => sub { cut(word($_[0] * 2), 10) . one_of('', ' ', '  ') },
		extremes => [ '', ' ', 'a', 'a  ', "\x7f", 'ab' ],
		others => {},
	},
	name => {
		make => sub { sprintf('%03d', $_[0]) . letters(below 10) },
		extremes => [ '', 'a', 'x' x 63, "\x7f" ], string => 1, plain => 1,
		others => { text => \&same },
	},
	bytea => {
		make => sub {
			'\\x' . sprintf('%02x', $_[0] * 5) . hexes(weighted(
					10 => sub { bytes(below 4) },
					5 => sub { bytes(12) },
					3 => sub { (0) x below 5 },
					3 => sub { (255) x below 5 },
					0.2 => sub { bytes(3000) })->());
		},
		extremes => [ '\\x', '\\x00', '\\xff', '\\x' . 'ff' x 70, '\\x' . '00' x 70, '\\x' . 'ff' x 2000 ],
		long => [ map { '\\x' . 'ff' x 2000 . $_ } '', '00', '01', 'ff' ],
		others => {},
	},
	inet => {
		make => sub {
			weighted(
				6 => "10.$_[0]." . below(256) . '.' . below(256),
				3 => "10.$_[0]." . below(256) . '.' . below(256) . '/' . one_of(8, 16, 24, 31),
				2 => sprintf('fd00:%x::%x', $_[0], below 65536),
				1 => sprintf('fd00:%x::%x/%d', $_[0], below(65536), one_of(32, 64, 127)));
		},
		extremes => [ '0.0.0.0', '0.0.0.0/0', '255.255.255.255', '255.255.255.255/0', '::', '::/0', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff' ],
		others => { cidr => sub { one_of('10.0.0.0/8', '10.5.0.0/16', 'fd00::/16', '0.0.0.0/0') } },
	},
	cidr => {
		make => sub {
			one_of("10.$_[0].0.0/16", "10.$_[0]." . below(256) . '.0/24',
				"10.$_[0]." . below(256) . '.' . below(256) . '/32', sprintf('fd00:%x::/32', $_[0]));
		},
		extremes => [ '0.0.0.0/0', '255.255.255.255/32', '::/0', '::/128' ],
		others => { inet => sub { one_of('10.5.3.1', '10.7.1.1/8', $_[0]) } },
	},
	macaddr => {
		make => sub { sprintf '08:00:%02x:%02x:%02x:%02x', $_[0] * 3, bytes 3 },
		extremes => [ '00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff' ],
		others => {},
	},
	macaddr8 => {
		make => sub { sprintf '08:00:%02x:ff:fe:%02x:%02x:%02x', $_[0] * 3, bytes 3 },
		extremes => [ '00:00:00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff:ff:ff' ],
		others => {},
	});

# A literal of a type.
sub value_of
{
	my ($type, $text) = @_;

	return quoted($text) . "::$type";
}

1;
