# Dense leaves: which leaves are dense, and which of these have one key, byte by byte; every way from
# one kind of leaf to the others; crashes and a standby meanwhile.  Redo compares every page of the indexes with the primary's.
#
# Pages are read as src/wormhole/README.md describes them, and all that their entries say must be
# what the table says.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
my $node = new_server(
	'wormhole_dense',
	init => { allows_streaming => 1 },
	conf => q{
max_wal_size = '64MB'
wal_consistency_checking = 'generic'
shared_buffers = 4MB
wal_keep_size = '8GB'
});
my $managed = $node->safe_psql('postgres', 'SHOW wormhole.resource_manager');

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION rf_damage;

-- A number that looks random, from the row's.
CREATE FUNCTION mix(g int8) RETURNS int8 IMMUTABLE LANGUAGE sql AS 'SELECT hashint8extended(g, 7)';
});

$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('dense_standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# The pages of an index that are leaves, in key order.
sub leaves
{
	my ($index) = @_;
	my @pages = map { pack('H*', $_) } split /\n/, sql("SELECT encode(rf_page('$index', block), 'hex')
		FROM generate_series(0, pg_relation_size('$index')::int / 8192 - 1) block ORDER BY block");
	my @leaves;

	for (my $block = 1; $block != 0xFFFFFFFF; $block = unpack('V', substr($pages[$block], 36, 4)))
	{
		push @leaves, $pages[$block];
	}
	return @leaves;
}

sub flags { return unpack('v', substr($_[0], 58, 2)); }

sub is_dense { return flags($_[0]) & 128 ? 1 : 0; }

# Whether it is a dense leaf whose entries all have the same key.
sub has_one_key { return flags($_[0]) & 256 ? 1 : 0; }

# The slots of a leaf: key, TIDs and flags of each.
sub slots
{
	my ($page) = @_;
	my ($prefix_len) = unpack('v', substr($page, 48, 2));
	my ($slots, $n) = unpack('vv', substr($page, 54, 4));
	my $prefix = substr($page, 64, $prefix_len);
	my @slots;

	foreach my $i (0 .. $n - 1)
	{
		my ($len, $at, $head, @tids, $gap, $dead, $key);

		if (has_one_key($page))
		{
			$len = ord(substr($page, $slots - 2, 1));
			my $tid_len = ord(substr($page, $slots - 1, 1));
			$key = $prefix . substr($page, 8192 - $len, $len);
			my $bits = unpack('Q<', substr($page, 8192 - $len - ($i + 1) * $tid_len, $tid_len) . "\0" x (8 - $tid_len));
			($gap, $dead) = ($bits & 1, $bits >> 1 & 1);
			@tids = sprintf('(%d,%d)', $bits >> 11, $bits >> 2 & 511);
		}
		elsif (is_dense($page))
		{
			$len = ord(substr($page, $slots - 2, 1));
			my $tid_len = ord(substr($page, $slots - 1, 1));
			my $tail = $len > 4 ? $len - 4 : 0;
			$at = 8192 - ($i + 1) * ($tail + $tid_len);
			$head = substr($page, $slots + 4 * $i, 4);
			my $bits = unpack('Q<', substr($page, $at + $tail, $tid_len) . "\0" x (8 - $tid_len));
			($gap, $dead) = ($bits & 1, $bits >> 1 & 1);
			@tids = sprintf('(%d,%d)', $bits >> 11, $bits >> 2 & 511);
		}
		else
		{
			my $info;
			($head, $at, $info) = unpack('a4vv', substr($page, $slots + 8 * $i, 8));
			$len = $info & 0x0FFF;
			($gap, $dead) = ($info >> 15 & 1, $info >> 12 & 1);
			my $body = $at + ($len > 4 ? $len - 4 : 0);
			my $ntids = 1;
			($ntids, $body) = (unpack('v', substr($page, $body, 2)), $body + 2) if $info & 0x2000;
			@tids = map { my ($high, $low, $offset) = unpack('vvv', substr($page, $body + 6 * $_, 6)); sprintf('(%d,%d)', $high << 16 | $low, $offset) } 0 .. $ntids - 1;
		}
		$key //= $prefix . substr(scalar(reverse($head)), 0, $len) . ($len > 4 ? substr($page, $at, $len - 4) : '');
		push @slots, [ unpack('H*', $key), $gap, $dead, @tids ];
	}
	return @slots;
}

# "dense/ordinary" leaves of an index, those of one key, gaps and entries marked dead.
sub kinds
{
	my ($index) = @_;
	my ($dense, $ordinary, $one_key, $gaps, $dead) = (0, 0, 0, 0, 0);

	foreach my $page (leaves($index))
	{
		is_dense($page) ? $dense++ : $ordinary++;
		$one_key += has_one_key($page);
		foreach my $slot (slots($page))
		{
			$gaps += $slot->[1];
			$dead += $slot->[2] if !$slot->[1];
		}
	}
	return { dense => $dense, ordinary => $ordinary, one_key => $one_key, gaps => $gaps, dead => $dead, text => "$dense dense, $ordinary ordinary" };
}

# The entries of all leaves are those of the table, in order: the index's column as a key, and rows.
# key makes eight bytes or so of the column.
sub same_entries
{
	my ($table, $index, $key, $name) = @_;
	my @entries = map { my ($k, $gap, $dead, @tids) = @$_; $gap ? () : map { "$k $_" } @tids } map { slots($_) } leaves($index);
	my @rows = split /\n/, sql("SELECT encode($key, 'hex') || ' ' || ctid FROM $table ORDER BY $key, ctid");

	return is(join("\n", @entries), join("\n", @rows), "$name: pages have what the table has");
}

# An int8's key: a mark and the value, with the sign's bit flipped.
my $int8 = q{'\x01'::bytea || int8send((k::numeric - 9223372036854775808 * sign(k::numeric + 0.5))::int8)};

# After each step the index is whole, and answers are right, here and on the standby.
sub fine
{
	my ($table, $name) = @_;

	indexes_whole($node, $table, $name);
	return same_by_index($node, $name, "SELECT count(*), count(k), md5(string_agg(k::text, ',' ORDER BY k)) FROM $table WHERE k IS NULL OR k IS NOT NULL;
		SELECT md5(string_agg(k::text, ',')) FROM (SELECT k FROM $table ORDER BY k) x;
		SELECT md5(string_agg(k::text, ',')) FROM (SELECT k FROM $table ORDER BY k DESC) x;", '');
}

# Types whose keys all have the same length.
my %types = (
	int2 => [ 'int2', 'g % 60000 - 30000' ],
	int4 => [ 'int4', '(mix(g) % 2147483647)' ],
	ids => [ 'int8', 'g' ],
	int8 => [ 'int8', 'mix(g)' ],
	date => [ 'date', "date '2000-01-01' + (mix(g) % 100000)::int" ],
	timestamptz => [ 'timestamptz', "timestamptz '2020-01-01' + mix(g) % 100000000 * interval '1 s'" ],
	float8 => [ 'float8', 'mix(g) / 3.0' ],
	uuid => [ 'uuid', 'md5(g::text)::uuid' ],
	text => [ 'text COLLATE "C"', q{lpad(to_hex(abs(mix(g)) % 2147483647), 8, '0')} ]);

foreach my $type (sort keys %types)
{
	my ($declared, $value) = @{ $types{$type} };

	sql("CREATE TABLE built_$type (k $declared, v int4);
		INSERT INTO built_$type SELECT $value, g FROM generate_series(1, 8000) g;
		CREATE INDEX i_built_$type ON built_$type USING wormhole (k);
		CREATE TABLE grown_$type (k $declared, v int4);
		CREATE INDEX i_grown_$type ON grown_$type USING wormhole (k);
		CREATE INDEX i_grown2_$type ON grown_$type USING wormhole (v, k);
		INSERT INTO grown_$type SELECT $value, mix(g) % 1000 FROM generate_series(1, 8000) g;");
	is(kinds("i_built_$type")->{ordinary}, 0, "$type: a build makes dense leaves");
	cmp_ok(kinds("i_grown_$type")->{dense}, '>', 0.8 * (leaves("i_grown_$type")), "$type: splits make dense leaves");
	cmp_ok(kinds("i_grown2_$type")->{dense}, '>', 0, "$type: two columns, too") unless $type =~ /uuid|text|timestamptz|float8/;
	fine("built_$type", "$type, built");
	fine("grown_$type", "$type, grown");
	sql("DELETE FROM grown_$type WHERE v % 3 = 0; VACUUM grown_$type; DELETE FROM built_$type WHERE v % 3 = 0; VACUUM built_$type;
		INSERT INTO built_$type SELECT k, 1 FROM grown_$type; INSERT INTO grown_$type SELECT $value, 1 FROM generate_series(8000, 12000) g");
	fine("built_$type", "$type, built, changed");
	fine("grown_$type", "$type, grown, changed");
}
foreach my $type ('int8', 'ids')
{
	same_entries("built_$type", "i_built_$type", $int8, "$type, built");
	same_entries("grown_$type", "i_grown_$type", $int8, "$type, grown");
}
is(kinds('i_grown_int8')->{gaps} > 100 ? 1 : 0, $managed ? 0 : 1, 'splits and inserts spread gaps, unless records of our own log them');

# Payloads are in ordinary leaves.
sql('CREATE TABLE included (k int8, v int4); CREATE INDEX i_included ON included USING wormhole (k) INCLUDE (v);
	INSERT INTO included SELECT mix(g), g FROM generate_series(1, 3000) g');
is(kinds('i_included')->{dense}, 0, 'a payload: no dense leaves');
sql('REINDEX INDEX i_included');
is(kinds('i_included')->{dense}, 0, '... and after a build');
fine('included', 'payloads');

# Few equal keys stay records, many become lists, and single ones are records again.
sql('CREATE TABLE few (k int8, v int4); INSERT INTO few SELECT mix(g % 7000), g FROM generate_series(1, 8000) g; CREATE INDEX i_few ON few USING wormhole (k);
	CREATE TABLE many (k int8, v int4); INSERT INTO many SELECT mix(g), 0 FROM generate_series(1, 3000) g; CREATE INDEX i_many ON many USING wormhole (k)');
is(kinds('i_few')->{ordinary}, 0, 'a build makes records of a few lists');
fine('few', 'few equal keys');
same_entries('few', 'i_few', $int8, 'few equal keys');
sql('INSERT INTO many SELECT mix(g), i FROM generate_series(1, 3000) g, generate_series(1, 20) i');
cmp_ok(kinds('i_many')->{ordinary}, '>', 5 * kinds('i_many')->{dense}, 'many equal keys become lists');
fine('many', 'many equal keys');
same_entries('many', 'i_many', $int8, 'many equal keys');
sql('DELETE FROM many WHERE v > 0; VACUUM many');
is(kinds('i_many')->{ordinary}, 0, 'VACUUM makes dense leaves when lists have one row');
fine('many', 'VACUUM of lists');
same_entries('many', 'i_many', $int8, 'VACUUM of lists');

# Keys of many rows get leaves of their own, whether rows are inserted, a few at a time or at once, or were there before,
# and also if their TIDs are in any order.  They are smaller than a btree's: it has six bytes for each row, and fills 96 %.
my %one_key = (
	int8 => [ 'int8', 'abs(mix(g)) % 3' ],
	status => [ 'text COLLATE "C"', q{(ARRAY['pending', 'shipped', 'lost in the post'])[1 + abs(mix(g)) % 3]} ],
	long => [ 'text COLLATE "C"', q{repeat('x', 240) || abs(mix(g)) % 2} ],
	null => [ 'int8', 'nullif(abs(mix(g)) % 2, 1)' ]);
foreach my $type (sort keys %one_key)
{
	my ($declared, $value) = @{ $one_key{$type} };
	my $table = "one_key_$type";

	sql("CREATE TABLE $table (k $declared, v int4); CREATE INDEX i_$table ON $table USING wormhole (k); CREATE INDEX b_$table ON $table (k);
		INSERT INTO $table SELECT $value, g FROM generate_series(1, 12000) g;
		INSERT INTO $table SELECT $value, g FROM generate_series(12001, 15000) g;
		INSERT INTO $table SELECT $value, g FROM generate_series(15001, 20000) g");
	my ($size, $btree) = split /\|/, sql("SELECT pg_relation_size('i_$table'), pg_relation_size('b_$table')");
	cmp_ok($size, '<=', $btree, "$type: rows of few keys take no more room than in a btree");
	cmp_ok(kinds("i_$table")->{one_key}, '>=', 0.6 * leaves("i_$table"), '... mostly in leaves of one key');
	sql("DROP INDEX b_$table");
	fine($table, "$type, few keys");
	same_entries($table, "i_$table", $int8, "$type, few keys") if $type eq 'int8';
	sql("REINDEX INDEX i_$table");
	cmp_ok(sql("SELECT pg_relation_size('i_$table')"), '<=', $btree, '... nor after a build');
	cmp_ok(kinds("i_$table")->{one_key}, '>=', 0.6 * leaves("i_$table"), '... as mostly');
	fine($table, "$type, few keys, built");
	same_entries($table, "i_$table", $int8, "$type, few keys, built") if $type eq 'int8';
	next if $type =~ /long|null/;
	sql("DELETE FROM $table WHERE abs(mix(v)) % 5 < 2; VACUUM $table; INSERT INTO $table SELECT $value, g FROM generate_series(20001, 30000) g");
	fine($table, "$type, few keys, TIDs used again");
	same_entries($table, "i_$table", $int8, "$type, few keys, TIDs used again") if $type eq 'int8';
	sql("DELETE FROM $table WHERE v % 3 > 0; VACUUM $table");
	fine($table, "$type, few keys, few rows");
}

# Other keys come to a leaf of one key, full or not, and go again; a key of more than 255 bytes has none.
sql(q{CREATE TABLE guests (k text COLLATE "C", v int4); CREATE INDEX i_guests ON guests USING wormhole (k);
	INSERT INTO guests SELECT 'mmm', g FROM generate_series(1, 800) g; REINDEX INDEX i_guests});
is(kinds('i_guests')->{one_key}, 1, 'a leaf of one key');
sql(q{INSERT INTO guests VALUES ('aaa', 1), ('mmm', 2), ('zzzz', 3)});
is(kinds('i_guests')->{one_key}, 0, '... that others come to has more');
fine('guests', 'others came');
sql(q{DELETE FROM guests WHERE k <> 'mmm'; VACUUM guests});
is(kinds('i_guests')->{one_key}, 1, '... and one again without them');
fine('guests', 'others went');
sql(q{INSERT INTO guests SELECT 'mmm', g FROM generate_series(1, 1100) g});
is(scalar(leaves('i_guests')), 1, 'such a leaf has room for 1,900 rows');
sql(q{INSERT INTO guests VALUES ('mm', 1), ('mmmm', 2)});
cmp_ok(scalar(leaves('i_guests')), '>', 1, '... and is split for others');
fine('guests', 'others came to a full leaf');
sql(q{UPDATE guests SET k = repeat('y', 300) WHERE v % 2 = 0; VACUUM guests});
fine('guests', 'a long key');
is(scalar(grep { my ($page) = $_; has_one_key($page) && grep { length($_->[0]) > 300 } slots($page) } leaves('i_guests')), 0, 'a long key has no such leaf');

# A leaf that is full but for a byte.  When VACUUM takes a row off a list, its entries take as many bytes as in
# a dense leaf, without those that such a leaf has before the heads: it stays an ordinary one.
sql(q{CREATE TABLE brim (k text COLLATE "C"); INSERT INTO brim SELECT 'aaaaaa' || lpad((g % 11)::text, 7, '0') FROM generate_series(0, 147) g;
	INSERT INTO brim SELECT 'aaaaaa' || lpad((1000 + g)::text, 7, '0') FROM generate_series(1, 116) g;
	INSERT INTO brim SELECT 'aaaaaab' || lpad(g::text, 6, '0') FROM generate_series(1, 10) g;
	CREATE INDEX i_brim ON brim USING wormhole (k) WITH (fillfactor = 50);
	INSERT INTO brim SELECT 'aaaaaa' || lpad((2000 + g)::text, 7, '0') FROM generate_series(1, 164) g});
my ($lower, $upper) = unpack('vv', substr((leaves('i_brim'))[0], 12, 4));
is($upper - $lower, 1, 'a leaf that is full but for a byte');
sql(q{DELETE FROM brim WHERE ctid = (SELECT max(ctid) FROM brim WHERE k = 'aaaaaa0000000'); VACUUM (INDEX_CLEANUP ON) brim});
is(is_dense((leaves('i_brim'))[0]), 0, '... does not become dense when there is no room for that');
fine('brim', 'a full leaf');

# A key of another length: one leaf becomes an ordinary one, and dense again without it.
sql(q{CREATE TABLE odd (k text COLLATE "C"); INSERT INTO odd SELECT lpad(g::text, 7, '0') FROM generate_series(1, 9000) g; CREATE UNIQUE INDEX i_odd ON odd USING wormhole (k)});
my $before = (leaves('i_odd'));
is(kinds('i_odd')->{ordinary}, 0, 'strings of one length');
sql(q{DELETE FROM odd WHERE k BETWEEN '0004000' AND '0006000'; VACUUM odd; INSERT INTO odd VALUES ('0005'), (NULL)});
is(kinds('i_odd')->{ordinary}, 2, 'another length, and a NULL: ordinary leaves');
fine('odd', 'another length');
sql(q{DELETE FROM odd WHERE k = '0005' OR k IS NULL; VACUUM odd});
is(kinds('i_odd')->{ordinary}, 0, 'without them: dense again');
fine('odd', 'another length, removed');

# A key so long that two ordinary leaves would not have room for a full dense one and it.
sql(q{CREATE TABLE long (k text COLLATE "C"); ALTER TABLE long ALTER k SET STORAGE plain; INSERT INTO long SELECT chr(65 + g / 1600) || chr(65 + g / 40 % 40) || chr(65 + g % 40) FROM generate_series(0, 9100) g;
	CREATE UNIQUE INDEX i_long ON long USING wormhole (k) WITH (fillfactor = 100)});
$before = kinds('i_long');
is($before->{ordinary}, 0, 'short strings of one length');
sql(q{INSERT INTO long SELECT chr(65 + g / 1600) || chr(65 + g / 40 % 40) || chr(65 + g % 40) || repeat('x', 2600) FROM generate_series(500, 9000, 2500) g});
is(kinds('i_long')->{dense} > $before->{dense} ? 1 : 0, 1, 'dense leaves are split for long keys');
fine('long', 'long keys');
is($node->psql('postgres', q{INSERT INTO long SELECT k FROM long WHERE length(k) > 9 LIMIT 1}), 3, '... and are unique');

# TIDs take four bytes, five if they must, and an ordinary leaf if five are not enough.
sql('CREATE TABLE far (k int8); INSERT INTO far SELECT mix(g) FROM generate_series(1, 300) g; CREATE INDEX i_far ON far USING wormhole (k) WITH (fillfactor = 100)');
my @far = (
	[ '(2097151,511)', 1, 4, 'the most that four bytes have room for' ],
	[ '(2097152,1)', 1, 5, 'a block beyond' ],
	[ '(536870911,511)', 1, 5, 'the most that five bytes have room for' ],
	[ '(536870912,1)', 0, 0, 'a block beyond' ],
	[ '(5,512)', 0, 0, 'an offset number beyond' ]);
foreach my $case (@far)
{
	my ($tid, $dense, $len, $name) = @$case;

	sql("REINDEX INDEX i_far; SELECT rf_insert('i_far', 99, '$tid')");
	my ($page) = leaves('i_far');
	is(is_dense($page), $dense, "$tid, $name: the kind of leaf");
	is(ord(substr($page, unpack('v', substr($page, 54, 2)) - 1, 1)), $len, '... and the length of its TIDs') if $dense;
	is(scalar(grep { $_->[0] =~ /^01/ && $_->[3] eq $tid && !$_->[1] } slots($page)), 1, '... which it has');
	is(sql("SELECT wormhole_check('i_far')"), 301, '... and is sound');
}
# The same in full leaves: they are split.
sql('INSERT INTO far SELECT mix(g) FROM generate_series(301, 9000) g');
foreach my $case (@far)
{
	my ($tid, $dense, $len, $name) = @$case;

	sql("REINDEX INDEX i_far");
	my $n = (leaves('i_far'));
	sql("SELECT rf_insert('i_far', mix(g), '$tid') FROM generate_series(1, 300) g");
	cmp_ok(scalar(leaves('i_far')), '>', $n, "$tid, $name: full leaves are split");
	is(scalar(grep { $_ eq $tid } map { !$_->[1] ? @{$_}[3 .. $#$_] : () } map { slots($_) } leaves('i_far')), 300, '... all have it');
	is(sql("SELECT wormhole_check('i_far')"), 9300, '... and are sound');
}
sql('REINDEX INDEX i_far');

# The same in leaves of one key.
sql('CREATE TABLE far1 (k int8); INSERT INTO far1 SELECT 7 FROM generate_series(1, 2000) g; CREATE INDEX i_far1 ON far1 USING wormhole (k)');
foreach my $case (@far)
{
	my ($tid, $dense, $len, $name) = @$case;

	sql("REINDEX INDEX i_far1; SELECT rf_insert('i_far1', 7, '$tid')");
	my $page = (leaves('i_far1'))[-1];
	is(has_one_key($page), $dense, "$tid, $name: the kind of leaf of one key");
	is(ord(substr($page, unpack('v', substr($page, 54, 2)) - 1, 1)), $len, '... and the length of its TIDs') if $dense;
	is(scalar(grep { grep { $_ eq $tid } @{$_}[3 .. $#$_] } grep { !$_->[1] } slots($page)), 1, '... which it has');
	is(sql("SELECT wormhole_check('i_far1')"), 2001, '... and is sound');
}
sql('REINDEX INDEX i_far1');

# Marks of dead entries, and their removal by an insert.
sql('CREATE TABLE dying (k int8, v int4); INSERT INTO dying SELECT mix(g), g FROM generate_series(1, 8000) g; CREATE INDEX i_dying ON dying USING wormhole (k); DELETE FROM dying WHERE v % 4 = 0');
sql('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(v) FROM (SELECT v FROM dying ORDER BY k) x') foreach 1 .. 2;
cmp_ok(kinds('i_dying')->{dead}, '>', 1900, 'entries of a dense leaf are marked dead');
fine('dying', 'marks');
my $leaves = leaves('i_dying');
sql('INSERT INTO dying SELECT mix(g), 1 FROM generate_series(8001, 9500) g');
cmp_ok(kinds('i_dying')->{dead}, '<', 500, 'and removed when an insert finds no room');
is(kinds('i_dying')->{ordinary}, 0, '... by dense leaves');
is(scalar(leaves('i_dying')), $leaves, '... which need not be split');
fine('dying', 'marks removed');
sql('VACUUM dying');
same_entries('dying', 'i_dying', $int8, 'marks removed');

# The same in leaves of one key.
sql('CREATE TABLE dying1 (k int8, v int4); INSERT INTO dying1 SELECT mix(g) % 2, g FROM generate_series(1, 8000) g; CREATE INDEX i_dying1 ON dying1 USING wormhole (k); DELETE FROM dying1 WHERE v % 4 = 0');
sql('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(v) FROM (SELECT v FROM dying1 ORDER BY k) x') foreach 1 .. 2;
cmp_ok(kinds('i_dying1')->{dead}, '>', 1300, 'entries of leaves of one key are marked dead');
fine('dying1', 'marks, one key');
sql('INSERT INTO dying1 SELECT mix(g) % 2, 1 FROM generate_series(8001, 12000) g');
fine('dying1', 'one key, marks removed');
sql('VACUUM dying1');
same_entries('dying1', 'i_dying1', $int8, 'one key, marks removed');

# Crashes between, and a standby that had to follow.
foreach my $round (1 .. 3)
{
	sql("INSERT INTO grown_int8 SELECT mix(g), g % 5 FROM generate_series($round * 20000, $round * 20000 + 3000) g;
		INSERT INTO many SELECT mix(g), i FROM generate_series($round, 3000, 9) g, generate_series(1, 30) i;
		INSERT INTO odd SELECT lpad(g::text, 7, '0') || 'x' FROM generate_series($round, 9000, 500) g;
		INSERT INTO dying SELECT mix(g), 1 FROM generate_series($round * 20000, $round * 20000 + 3000) g;
		DELETE FROM dying WHERE k % 5 = 1;
		DELETE FROM dying1 WHERE v % 5 = $round;
		INSERT INTO one_key_int8 SELECT mix(g) % 2, g FROM generate_series($round * 20000, $round * 20000 + 6000) g;
		INSERT INTO one_key_status SELECT 'status ' || g % $round, g FROM generate_series($round * 20000, $round * 20000 + 6000) g;
		SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(v) FROM (SELECT v FROM dying ORDER BY k) x; SELECT count(v) FROM (SELECT v FROM dying1 ORDER BY k) x;
		INSERT INTO dying1 SELECT mix(g) % 2, g FROM generate_series($round * 20000, $round * 20000 + 3000) g;
		INSERT INTO dying SELECT mix(g), 1 FROM generate_series($round * 20000 + 3000, $round * 20000 + 6000) g");
	$node->stop('immediate');
	$node->start;
	foreach my $table ('grown_int8', 'many', 'odd', 'dying', 'long', 'dying1', 'one_key_int8', 'one_key_status')
	{
		fine($table, "seed $seed, crash $round, $table");
	}
	sql('VACUUM many; VACUUM dying; VACUUM dying1');
	same_entries('dying', 'i_dying', $int8, "crash $round");
	same_entries('dying1', 'i_dying1', $int8, "one key, crash $round");
}
$node->wait_for_catchup($standby);
foreach my $table ('grown_int8', 'many', 'odd', 'dying', 'long', 'dying1', 'guests', (map { "one_key_$_" } sort keys %one_key), map { ("built_$_", "grown_$_") } sort keys %types)
{
	my $ask = "SELECT count(*), md5(string_agg(k::text, ',')) FROM (SELECT k FROM $table ORDER BY k) x";

	is($standby->safe_psql('postgres', "SET enable_seqscan = off; SET enable_sort = off; $ask"), sql("SET enable_indexscan = off; SET enable_indexonlyscan = off; $ask"), "the standby has what the primary has, $table");
	indexes_whole($standby, $table, "standby, $table");
}
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO dying SELECT mix(g), 1 FROM generate_series(1, 2000) g; VACUUM dying');
indexes_whole($standby, 'dying', 'promoted standby');
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|was terminated by signal|inconsistent page/, 'no crash, no difference') foreach ($node, $standby);
# A row of a key that has many takes as much WAL as in a btree: no slot moves for it, and leaves are
# written anew seldom.  (With records of our own it takes less.)
my %wal;
my $explain = q{SET wal_consistency_checking = ''; EXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF) INSERT INTO %s SELECT hashint4(g) %% %s FROM generate_series(1, 50000) g};

foreach my $keys (2, 50)
{
	foreach my $am ('btree', 'wormhole')
	{
		sql("CREATE TABLE wal_${am}_$keys (k int) WITH (autovacuum_enabled = off); CREATE INDEX ON wal_${am}_$keys USING $am (k)");
		($wal{$am}) = sql(sprintf($explain, "wal_${am}_$keys", $keys)) =~ /bytes=(\d+)/;
	}
	note("$keys keys: $wal{btree} bytes of WAL with a btree, $wal{wormhole} with wormhole");
	cmp_ok($wal{wormhole}, '<', ($keys == 2 ? 1.07 : 2.2) * $wal{btree}, "$keys keys: WAL");
}

$standby->stop;
$node->stop;
done_testing();
