# Damaged wormhole indexes: wormhole_check() finds each kind of fault and says
# which it is; pages of an unknown version are refused by all that reads them;
# REINDEX heals.
#
# Every case damages an index of a table of its own, so that one stop of the
# server does for all.  Offsets are those of src/wormhole/README.md.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
# Without checksums, which would find all of it.
my $node = new_server('wormhole_damage', without_checksums => 1);
my $size = 8192;
my $header = 64;

# Fields of a page's header, and of the metapage's content: where, and how packed.
my %field = (
	pd_lower => [ 12, 'v' ], pd_upper => [ 14, 'v' ], identity => [ 24, 'Q<' ],
	prev => [ 32, 'V' ], next => [ 36, 'V' ], prefix_len => [ 48, 'v' ],
	slots => [ 54, 'v' ], nslots => [ 56, 'v' ], flags => [ 58, 'v' ],
	level => [ 60, 'C' ], version => [ 61, 'C' ], page_id => [ 62, 'v' ],
	magic => [ $header, 'V' ], meta_version => [ $header + 4, 'v' ],
	ncolumns => [ $header + 6, 'v' ], root => [ $header + 8, 'V' ],
	root_level => [ $header + 12, 'V' ], codec => [ $header + 16, 'v' ]);
my %flag = (deleted => 2, incomplete => 4, rightmost => 8, dense => 128, one_key => 256);
my %info = (length => 0x0FFF, dead => 0x1000, list => 0x2000);

sub get
{
	my ($file, $block, $name) = @_;
	my ($offset, $packed) = @{ $field{$name} };

	return unpack($packed, substr($$file, $block * $size + $offset, 8));
}

sub put_bytes
{
	my ($file, $offset, $bytes) = @_;

	die 'outside of the file' if $offset + length($bytes) > length($$file);
	substr($$file, $offset, length($bytes)) = $bytes;
	return;
}

sub put
{
	my ($file, $block, $name, $value) = @_;
	my ($offset, $packed) = @{ $field{$name} };

	return put_bytes($file, $block * $size + $offset, pack($packed, $value));
}

# Where a slot is in the file; its head, offset and info.
sub slot_at { my ($file, $block, $i) = @_; return $block * $size + get($file, $block, 'slots') + 8 * $i; }

sub slot { return unpack('Vvv', substr(${ $_[0] }, slot_at(@_), 8)); }

# Where what follows an entry's key is.
sub body_at
{
	my ($file, $block, $i) = @_;
	my ($head, $offset, $info) = slot($file, $block, $i);
	my $length = $info & $info{length};

	return $block * $size + $offset + ($length > 4 ? $length - 4 : 0);
}

# The blocks of the leaves in order, and the root, which is above them.
sub leaves
{
	my ($file) = @_;
	my @blocks = (1);

	while ((my $next = get($file, $blocks[-1], 'next')) != 0xFFFFFFFF)
	{
		push @blocks, $next;
	}
	return @blocks;
}

sub root { return get($_[0], 0, 'root'); }

# A number in one of the leaves' headers, put there or worked out from what is there.
sub in_leaf
{
	my ($number, $name, $value) = @_;

	return sub {
		my $block = (leaves($_[0]))[$number];

		put($_[0], $block, $name, ref $value ? $value->(get($_[0], $block, $name), $_[0]) : $value);
	};
}

sub in_meta
{
	my ($name, $value) = @_;

	return sub { put($_[0], 0, $name, $value) };
}

# Exchanges the bytes at two places.
sub exchange
{
	my ($file, $a, $b, $n) = @_;
	my $bytes = substr($$file, $a, $n);

	put_bytes($file, $a, substr($$file, $b, $n));
	put_bytes($file, $b, $bytes);
	return;
}

# What a slot's third field is changed to.
sub change_info
{
	my ($file, $block, $i, $change) = @_;
	my ($head, $offset, $info) = slot($file, $block, $i);

	return put_bytes($file, slot_at($file, $block, $i), pack('Vvv', $head, $offset, $change->($info)));
}

# Where a dense leaf's record is; the bytes of its TID.
sub record_at
{
	my ($file, $block, $i) = @_;
	my ($len, $tid_len) = unpack('CC', substr($$file, $block * $size + get($file, $block, 'slots') - 2, 2));

	return ($block + 1) * $size - ($i + 1) * (($len > 4 ? $len - 4 : 0) + $tid_len);
}

sub tid_at
{
	my ($file, $block, $i) = @_;

	return record_at($file, $block, $i - 1) - 4;
}

# Changes bits of the last byte of the key in the second leaf, which has one key.
sub change_key
{
	my ($file, $bits) = @_;
	my $at = ((leaves($file))[1] + 1) * $size - 1;

	return put_bytes($file, $at, chr(ord(substr($$file, $at, 1)) ^ $bits));
}

# Sets a bit of a TID's first byte in the second leaf.
sub set_bit
{
	my ($bit) = @_;

	return sub {
		my $at = tid_at($_[0], (leaves($_[0]))[1], 3);

		put_bytes($_[0], $at, chr($bit | ord(substr(${ $_[0] }, $at, 1))));
	};
}

# Changes one of the two lengths of the second leaf's records.
sub in_lengths
{
	my ($byte, $change) = @_;

	return sub {
		my $block = (leaves($_[0]))[1];
		my $at = $block * $size + get($_[0], $block, 'slots') - 2 + $byte;

		put_bytes($_[0], $at, chr($change->(ord(substr(${ $_[0] }, $at, 1)))));
	};
}

# Name, damage, what wormhole_check(i) says, what wormhole_check(i, true) says
# if only that finds it, and the table if it is not the one of unique keys in ordinary leaves.
my $version = 77;
# A page whose header is not sound is not looked into.
my $refused = qr/damaged at block \d+\nHINT/;
my $unknown = qr/has format version $version at block \d+, not \d+/;
my @cases = (
	[ 'version of a leaf', in_leaf(2, 'version', $version), $unknown ],
	[ 'version of the root', sub { put($_[0], root($_[0]), 'version', $version) }, $unknown ],
	[ 'version of the metapage', in_meta('version', $version), $unknown ],
	[ 'version of the index', in_meta('meta_version', $version), $unknown ],
	[ 'another magic number', in_meta('magic', 1), qr/is not a wormhole index/ ],
	[ 'another number of columns', in_meta('ncolumns', 2), qr/are encoded in another way/ ],
	[ 'another encoding', in_meta('codec', 999), qr/are encoded in another way/ ],
	[ 'a root past the end', in_meta('root', 5000), qr/damaged at block 5000/ ],
	[ 'a page of zeros', sub { put_bytes($_[0], (leaves($_[0]))[1] * $size, "\0" x $size) }, qr/damaged at block/ ],
	[ 'a page of something else', in_leaf(1, 'page_id', 1), qr/damaged at block/ ],
	[ 'an impossible number of slots', in_leaf(1, 'nslots', sub { $_[0] + 1 }), qr/damaged at block/ ],
	[ 'last block missing', sub { ${ $_[0] } = substr(${ $_[0] }, 0, length(${ $_[0] }) - $size) }, qr/damaged at block/ ],
	[ 'link to the left', in_leaf(2, 'prev', sub { (leaves($_[1]))[0] }), qr/The link to the left is wrong/ ],
	[ 'link to the right passes a leaf by', in_leaf(1, 'next', sub { (leaves($_[1]))[3] }), qr/The link to the left is wrong/ ],
	[ 'links lead back', in_leaf(3, 'next', sub { (leaves($_[1]))[1] }), qr/The link to the left is wrong/ ],
	[ 'links pass a leaf by', sub {
		my @leaves = leaves($_[0]);

		put($_[0], $leaves[1], 'next', $leaves[3]);
		put($_[0], $leaves[3], 'prev', $leaves[1]);
	}, qr/does not begin where the one to its left ends|It does not begin|nothing leads to it/ ],
	[ 'no end of the list', in_leaf(-1, 'flags', sub { $_[0] & ~$flag{rightmost} }), qr/damaged at block/ ],
	[ 'a leaf of another index', in_leaf(2, 'identity', sub { $_[0] ^ 1 }), qr/linked, but not one of its level/ ],
	[ 'a leaf of another level', in_leaf(2, 'level', 1), qr/The directory leads to it wrongly/ ],
	[ 'a deleted leaf in the list', in_leaf(2, 'flags', sub { $_[0] | $flag{deleted} }), qr/The directory leads to it wrongly/ ],
	[ 'two slots exchanged', sub {
		my $block = (leaves($_[0]))[1];

		exchange($_[0], slot_at($_[0], $block, 3), slot_at($_[0], $block, 4), 8);
	}, qr/Entries are not in order/ ],
	[ 'a key outside of the bounds', sub {
		my $block = (leaves($_[0]))[1];
		my $last = get($_[0], $block, 'nslots') - 1;

		put_bytes($_[0], slot_at($_[0], $block, $last), "\xff" x 4);
	}, qr/not within the page's bounds/ ],
	[ 'an entry in the header', sub { put_bytes($_[0], slot_at($_[0], (leaves($_[0]))[1], 3) + 4, pack('v', 10)) }, qr/lies outside of the page/ ],
	[ 'an entry past the end', sub { change_info($_[0], (leaves($_[0]))[1], 3, sub { 4000 }); put_bytes($_[0], slot_at($_[0], (leaves($_[0]))[1], 3) + 4, pack('v', 8000)) }, qr/lies outside of the page/ ],
	[ 'exchanged children', sub {
		exchange($_[0], body_at($_[0], root($_[0]), 1), body_at($_[0], root($_[0]), 2), 4);
	}, qr/does not begin where the directory says/ ],
	[ 'a child past the end', sub { put_bytes($_[0], body_at($_[0], root($_[0]), 2), pack('V', 5000)) }, qr/damaged at block 5000/ ],
	[ 'a child that is the metapage', sub { put_bytes($_[0], body_at($_[0], root($_[0]), 2), pack('V', 0)) }, qr/The directory leads to it wrongly/ ],
	[ 'an anchor too high', sub {
		my $last = body_at($_[0], root($_[0]), 2) - 1;

		put_bytes($_[0], $last, chr(1 + ord(substr(${ $_[0] }, $last, 1))));
	}, qr/does not begin where the directory says/ ],
	[ 'a leaf without an anchor', sub {
		my $n = get($_[0], root($_[0]), 'nslots');

		put($_[0], root($_[0]), 'nslots', $n - 1);
		put($_[0], root($_[0]), 'pd_lower', get($_[0], root($_[0]), 'pd_lower') - 8);
	}, qr/The directory does not lead to the page/ ],
	[ 'a leaf that nothing leads to', sub { ${ $_[0] } .= substr(${ $_[0] }, (leaves($_[0]))[1] * $size, $size) }, qr/in use, but nothing leads to it/ ],
	[ 'an entry missing', sub {
		my $block = (leaves($_[0]))[1];

		put($_[0], $block, 'nslots', get($_[0], $block, 'nslots') - 1);
		put($_[0], $block, 'pd_lower', get($_[0], $block, 'pd_lower') - 8);
	}, undef, qr/row \(\d+,\d+\) of table "t\d+" is not in index/ ],
	[ 'another row', sub {
		put_bytes($_[0], body_at($_[0], (leaves($_[0]))[1], 3) + 4, pack('v', 290));
	}, undef, qr/row \(\d+,\d+\) of table "t\d+" is not in index/ ],
	[ 'a living row marked dead', sub { change_info($_[0], (leaves($_[0]))[1], 3, sub { $_[0] | $info{dead} }) },
		undef, qr/marks row \(\d+,\d+\) of table "t\d+" as dead, but it is visible/ ],
	[ 'rows of a list exchanged', sub {
		my $at = body_at($_[0], (leaves($_[0]))[0], 0) + 2;

		exchange($_[0], $at, $at + 6, 6);
	}, qr/The row pointers of an entry are not in order/, undef, 'equal' ],
	[ 'an empty list', sub { put_bytes($_[0], body_at($_[0], (leaves($_[0]))[0], 0), pack('v', 0)) },
		qr/An entry reaches past the end of the page/, undef, 'equal' ],
	[ 'a list that is too long', sub { put_bytes($_[0], body_at($_[0], (leaves($_[0]))[0], 0), pack('v', 60000)) },
		qr/An entry reaches past the end of the page/, undef, 'equal' ],
	[ 'a dense leaf that is said to be none', in_leaf(1, 'flags', sub { $_[0] & ~$flag{dense} }), $refused, undef, 'dense' ],
	[ 'a leaf that is said to be dense', in_leaf(1, 'flags', sub { $_[0] | $flag{dense} }), $refused ],
	[ 'a longer key in a dense leaf', in_lengths(0, sub { $_[0] + 1 }), $refused, undef, 'dense' ],
	[ 'a key too long for a dense leaf', in_lengths(0, sub { 255 }), $refused, undef, 'dense' ],
	[ 'a longer TID in a dense leaf', in_lengths(1, sub { 5 }), $refused, undef, 'dense' ],
	[ 'a TID of no length', in_lengths(1, sub { 0 }), $refused, undef, 'dense' ],
	[ 'a record less', in_leaf(1, 'pd_upper', sub { $_[0] + 7 }), $refused, undef, 'dense' ],
	[ 'an impossible number of records', in_leaf(1, 'nslots', sub { $_[0] + 1 }), $refused, undef, 'dense' ],
	[ 'two heads exchanged', sub {
		my $block = (leaves($_[0]))[1];
		my $slots = $block * $size + get($_[0], $block, 'slots');

		exchange($_[0], $slots + 4 * 3, $slots + 4 * 4, 4);
	}, qr/Entries are not in order|An entry is not found by its key/, undef, 'dense' ],
	[ 'a gap that is none', set_bit(1), qr/A gap is not like the slot behind it/, undef, 'dense' ],
	[ 'a living row of a dense leaf marked dead', set_bit(2), undef, qr/marks row \(\d+,\d+\) of table "t\d+" as dead, but it is visible/, 'dense' ],
	[ 'an impossible row of a dense leaf', sub { put_bytes($_[0], tid_at($_[0], (leaves($_[0]))[1], 3), "\0" x 4) }, qr/A row pointer is impossible/, undef, 'dense' ],
	[ 'another row of a dense leaf', sub { put_bytes($_[0], tid_at($_[0], (leaves($_[0]))[1], 3), pack('V', 2 << 11 | 290 << 2)) },
		undef, qr/row \(\d+,\d+\) of table "t\d+" is not in index/, 'dense' ],
	[ 'another key of a dense leaf', sub {
		my $at = record_at($_[0], (leaves($_[0]))[1], 3);

		put_bytes($_[0], $at, substr(${ $_[0] }, $at, 2) ^ "\x01\x01");
	}, undef, qr/row \(\d+,\d+\) of table "t\d+" is not in index/, 'dense' ],
	[ 'a leaf of one key that is said to have more', in_leaf(1, 'flags', sub { $_[0] & ~$flag{one_key} }), $refused, undef, 'one key' ],
	[ 'a dense leaf that is said to have one key', in_leaf(1, 'flags', sub { $_[0] | $flag{one_key} }), $refused, undef, 'dense' ],
	[ 'an ordinary leaf that is said to have one key', in_leaf(1, 'flags', sub { $_[0] | $flag{one_key} }), $refused ],
	[ 'a longer key of a leaf of one key', in_lengths(0, sub { $_[0] + 1 }), $refused, undef, 'one key' ],
	[ 'longer TIDs of a leaf of one key', in_lengths(1, sub { 5 }), $refused, undef, 'one key' ],
	[ 'no record of a leaf of one key', sub {
		my $block = (leaves($_[0]))[1];

		put($_[0], $block, 'pd_upper', get($_[0], $block, 'pd_upper') + 4 * get($_[0], $block, 'nslots'));
		put($_[0], $block, 'nslots', 0);
	}, $refused, undef, 'one key' ],
	[ 'another key of a leaf of one key', sub { change_key($_[0], 8) }, undef, qr/row \(\d+,\d+\) of table "t\d+" is not in index/, 'one key' ],
	[ 'a key of a leaf of one key that is not between the bounds', sub { change_key($_[0], 1) }, qr/Entries are not in order|outside|bounds/, undef, 'one key' ]);

# Random changes of slots and entries: the check finds something or nothing,
# with the table all that is missing, and nothing happens to the server.
sub random_bytes
{
	my ($file) = @_;

	foreach (1 .. (1, 3, 20, 300)[ pick(0, 3) ])
	{
		my $block = pick(0, length($$file) / $size - 1);

		put_bytes($file, $block * $size + pick($header, $size - 1), chr(pick(0, 255)));
	}
	return;
}
push @cases, map { [ "seed $seed, random bytes $_", \&random_bytes, qr/./, qr/./, ('equal', 'unique', 'dense', 'one key')[ $_ % 4 ], 'any' ] } 1 .. 60;

my $setup = '';
foreach my $i (0 .. $#cases)
{
	my $kind = $cases[$i][4] // 'unique';
	my $key = { equal => 'g % 40', unique => 'g * 7', dense => 'hashint8extended(g, 5)', 'one key' => '7' }->{$kind};
	my $payload = $kind eq 'unique' ? 'INCLUDE (v)' : '';

	$setup .= qq{
CREATE TABLE t$i AS SELECT ($key)::int8 AS k, 1::int2 AS v FROM generate_series(1, 3000) g;
CREATE INDEX i$i ON t$i USING wormhole (k) $payload;
};
}
$node->safe_psql('postgres', $setup);
my @paths = split /\n/, $node->safe_psql('postgres',
	"SELECT pg_relation_filepath(format('i%s', i)::regclass) FROM generate_series(0, $#cases) i");

is($node->safe_psql('postgres', q{SELECT leaf_pages > 5, directory_pages FROM wormhole_status('i0')}), 't|1', 'leaves and a root');
$node->stop;
foreach my $i (0 .. $#cases)
{
	my $path = $node->data_dir . '/' . $paths[$i];
	my $file = slurp_file($path);

	eval { $cases[$i][1]->(\$file); 1 } or die "$cases[$i][0]: $@";
	open(my $out, '>:raw', $path) or die "$path: $!";
	print $out $file;
	close($out);
}
$node->start;
my $session = open_session($node);

ask($session, "\\set VERBOSITY verbose\nSET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off");

# That an answer is the error of a damaged index, with a hint, and says what.
sub found
{
	my ($answer, $what, $name) = @_;

	like($answer, $what, $name);
	return like($answer, qr/^ERROR:  XX00[12]/m, '... as corruption') && like($answer, qr/^HINT:  Please REINDEX it\./m, '... with a hint');
}

foreach my $i (0 .. $#cases)
{
	my ($name, $damage, $fault, $with_heap, $table, $any) = @{ $cases[$i] };

	if ($any)
	{
		# A list that became shorter can only be seen by what the table has,
		# and so can a row pointer too many.
		like(ask($session, "SELECT wormhole_check('i$i')"), qr/^(\d+$|ERROR:  XX00[12])/m, "$name: an answer");
		like(ask($session, "SELECT wormhole_check('i$i', true)"), qr/^(3\d\d\d$|ERROR:  XX00[12])/m,
			"$name: no row of the table is missing, or it is said");
	}
	elsif ($fault)
	{
		found(ask($session, "SELECT wormhole_check('i$i')"), $fault, $name);
	}
	else
	{
		like(ask($session, "SELECT wormhole_check('i$i')"), qr/^(3000|2999)$/, "$name: nothing wrong with the index itself");
		found(ask($session, "SELECT wormhole_check('i$i', true)"), $with_heap, $name);
	}

	# All that reads a page of an unknown version refuses it.
	if ($fault eq $unknown)
	{
		found(ask($session, $_), $unknown, "$name: $_")
		  foreach ("SELECT count(*) FROM (SELECT k FROM t$i ORDER BY k) x", "SELECT count(*) FROM (SELECT k FROM t$i ORDER BY k DESC) x",
			"INSERT INTO t$i SELECT g FROM generate_series(1, 30000, 10) g");
		found(ask($session, "DELETE FROM t$i WHERE k % 3 = 0; VACUUM t$i"), $unknown, "$name: VACUUM") unless $name =~ /root|meta|of the index/;
		found(ask($session, "SELECT * FROM wormhole_status('i$i')"), $unknown, "$name: wormhole_status") unless $name =~ /meta|of the index/;
	}

	# VACUUM follows the links, and must not do so for ever.
	if ($name eq 'links lead back')
	{
		found(ask($session, "SET statement_timeout = '100s'; DELETE FROM t$i WHERE k % 3 = 0; VACUUM t$i"),
			qr/damaged at block \d+/, "$name: VACUUM");
		ask($session, 'RESET statement_timeout');
	}
	ask($session, "REINDEX INDEX i$i");
	is(ask($session, "SELECT wormhole_check('i$i', true) = count(*) FROM t$i"), 't', '... and REINDEX heals it');
}
close_session($session);
$node->stop;
done_testing();
