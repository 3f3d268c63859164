# Damaged and truncated index files: right answers or a clear error, never a
# crash, never a hang; where something that can be noticed is impossible, never
# a lost row; REINDEX heals.
#
# Every case damages the index of a table of its own, so that one stop of the
# server does for all.  Offsets are those of src/rangefilter/README.md.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangeFilter;
use Test::More;

my $seed = seed();
# Without checksums, which would find most of it.
my $node = new_server('damage', without_checksums => 1);
my $block = 8192;
my $frame = 24;
my $content = 40;

# Fields of the metapage's content, of a delta slot and of a segment; and of
# the frame that every page has behind its header.
my %meta = (
	magic => 0, version => 4, codec => 6, identity => 8, flags => 28,
	summarized => 32, announced_start => 36, announced_end => 40,
	delta_min_block => 44, next_owner => 48, nlevels => 52, ndelta => 56,
	nretired => 58, nspare => 60, nsegments => 62, directory_len => 64,
	delta => 72, spare => 168, directory => 224);
my %slot = (block => 0, owner => 4, nkeys => 8);
my %segment = (
	length => 0, kind => 4, flags => 5, root_len => 6, start => 8, end => 12,
	run_block => 16, npages => 20, owner => 24, min_len => 28, max_len => 30,
	range_blocks => 64, place_pages => 68, imprecise => 72, places_len => 80, run_len => 82);
my %frame = (identity => 0, owner => 8, kind => 12, version => 13, page_id => 14);

sub get
{
	my ($file, $blkno, $offset, $template, $size) = @_;

	return unpack($template, substr($$file, $blkno * $block + $offset, $size));
}

sub put
{
	my ($file, $blkno, $offset, $bytes) = @_;

	substr($$file, $blkno * $block + $offset, length($bytes)) = $bytes;
	return;
}

sub delta_block { return get($_[0], 0, $content + $meta{delta}, 'V', 4); }

sub run_block
{
	return get($_[0], 0, $content + $meta{directory} + $segment{run_block}, 'V', 4);
}

sub segment_field
{
	return get($_[0], 0, $content + $meta{directory} + $segment{ $_[1] }, 'V', 4);
}

# The first level's entry, behind the one segment's; and its run.
sub level_at { return $content + $meta{directory} + segment_field($_[0], 'length'); }

sub level_block { return get($_[0], 0, level_at($_[0]) + $segment{run_block}, 'V', 4); }

# The first of the run's pages that hold places.
sub places_block
{
	return run_block($_[0]) + segment_field($_[0], 'npages') - segment_field($_[0], 'place_pages');
}

# Makers of damage: each returns a function of the file's contents.
sub in_meta
{
	my ($field, $bytes) = @_;

	return sub { put($_[0], 0, $content + $meta{$field}, $bytes) };
}

sub in_slot
{
	my ($field, $bytes) = @_;

	return sub { put($_[0], 0, $content + $meta{delta} + $slot{$field}, $bytes) };
}

sub in_segment
{
	my ($field, $bytes) = @_;

	return sub {
		put($_[0], 0, $content + $meta{directory} + $segment{$field}, $bytes);
	};
}

sub in_level
{
	my ($field, $bytes) = @_;

	return sub { put($_[0], 0, level_at($_[0]) + $segment{$field}, $bytes) };
}

# In the frame of the metapage, the first page of the run, a level or the delta.
sub in_frame
{
	my ($page, $field, $bytes) = @_;

	return sub {
		my $blkno =
			$page eq 'run' ? run_block($_[0])
		  : $page eq 'places' ? places_block($_[0])
		  : $page eq 'delta' ? delta_block($_[0])
		  : $page eq 'level' ? level_block($_[0])
		  : 0;

		put($_[0], $blkno, $frame + $frame{$field}, $bytes);
	};
}

sub cut_to
{
	my ($bytes) = @_;

	return sub { ${ $_[0] } = substr(${ $_[0] }, 0, $bytes < 0 ? length(${ $_[0] }) + $bytes : $bytes) };
}

# Impossible things: name, damage.
my @impossible = (
	[ 'no file to speak of', cut_to(0) ],
	[ 'only the metapage', cut_to($block) ],
	[ 'the last block missing', cut_to(-$block) ],
	[ 'half of the last block missing', cut_to(-4096) ],
	[ 'half a metapage', cut_to(4096) ],
	[ 'all zeros', sub { ${ $_[0] } = "\0" x length(${ $_[0] }) } ],
	[ 'a metapage of zeros', sub { put($_[0], 0, 0, "\0" x $block) } ],
	[ 'a run page of zeros', sub { put($_[0], run_block($_[0]), 0, "\0" x $block) } ],
	[ 'a delta page of zeros', sub { put($_[0], delta_block($_[0]), 0, "\0" x $block) } ],
	[ 'the metapage of another index', sub { put($_[0], 0, 0, ${ $_[1] }) } ],
	[ 'magic number', in_meta('magic', 'RFL2') ],
	[ 'format version 2', in_meta('version', pack('v', 2)) ],
	[ 'an unknown codec', in_meta('codec', pack('v', 999)) ],
	[ 'another identity', in_meta('identity', 'identity') ],
	[ 'all flags', in_meta('flags', "\xff" x 4) ],
	[ 'summarized to the end of time', in_meta('summarized', "\xff" x 4) ],
	[ 'summarized nothing', in_meta('summarized', "\0" x 4) ],
	[ 'announced everything',
		sub {
			put($_[0], 0, $content + $meta{flags}, pack('V', 0x140));
			put($_[0], 0, $content + $meta{announced_start}, pack('VV', 0, 0xFFFFFFFF));
		} ],
	[ 'owner ids all over again', in_meta('next_owner', pack('V', 1)) ],
	[ '9 delta slots', in_meta('ndelta', pack('v', 9)) ],
	[ 'many delta slots', in_meta('ndelta', "\xff\xff") ],
	[ '8 delta slots', in_meta('ndelta', pack('v', 8)) ],
	[ 'more retired than there are', in_meta('nretired', pack('v', 9)) ],
	[ '9 spare blocks', in_meta('nspare', pack('v', 9)) ],
	[ '8 spare blocks that are the metapage', in_meta('nspare', pack('v', 8)) ],
	[ 'spare blocks out of the file',
		sub {
			put($_[0], 0, $content + $meta{nspare}, pack('v', 3));
			put($_[0], 0, $content + $meta{spare}, pack('V3', 0xFFFFFFFF, 100000, 77));
		} ],
	[ 'spare blocks in use',
		sub {
			put($_[0], 0, $content + $meta{nspare}, pack('v', 3));
			put($_[0], 0, $content + $meta{spare},
				pack('V3', run_block($_[0]), delta_block($_[0]), delta_block($_[0])));
		} ],
	[ 'no segments, but a directory', in_meta('nsegments', "\0\0") ],
	[ 'many segments', in_meta('nsegments', "\xff\xff") ],
	[ 'no directory, but a segment', in_meta('directory_len', "\0" x 4) ],
	[ 'a long directory', in_meta('directory_len', "\xff" x 4) ],
	[ 'a directory past the page', in_meta('directory_len', pack('V', 8000)) ],
	[ 'pd_lower before the directory', sub { put($_[0], 0, 12, pack('v', 24)) } ],
	[ 'pd_lower past pd_upper', sub { put($_[0], 0, 12, pack('v', 9000)) } ],
	[ 'special space of another size', sub { put($_[0], 0, 16, pack('v', 8184)) } ],
	[ 'delta slot: the metapage', in_slot('block', "\0" x 4) ],
	[ 'delta slot: no block', in_slot('block', "\xff" x 4) ],
	[ 'delta slot: out of the file', in_slot('block', pack('V', 100)) ],
	[ 'delta slot: the run', sub { put($_[0], 0, $content + $meta{delta}, pack('V', run_block($_[0]))) } ],
	[ 'delta slot: another owner', in_slot('owner', pack('V', 12345)) ],
	[ 'delta slot: no keys', in_slot('nkeys', "\0" x 4) ],
	[ 'delta slot: many keys', in_slot('nkeys', "\xff" x 4) ],
	[ 'segment: no length', in_segment('length', "\0" x 4) ],
	[ 'segment: short', in_segment('length', pack('V', 8)) ],
	[ 'segment: long', in_segment('length', "\xf8\xff\xff\xff") ],
	[ 'segments: the second one beyond memory', sub { in_meta('nsegments', "\2\0")->(@_); in_segment('length', "\xf8\xff\xff\xff")->(@_) } ],
	[ 'segment: odd length', in_segment('length', pack('V', 77)) ],
	[ 'segment: no filter', in_segment('kind', "\0") ],
	[ 'segment: an unknown filter', in_segment('kind', "\x09") ],
	[ 'segment: a long root', in_segment('root_len', "\xff\xff") ],
	[ 'segment: a run on the metapage', in_segment('run_block', "\0" x 4) ],
	[ 'segment: a run at the end of time', in_segment('run_block', "\xff" x 4) ],
	[ 'segment: a run out of the file', in_segment('run_block', pack('V', 100000)) ],
	[ 'segment: a run in the delta',
		sub {
			put($_[0], 0, $content + $meta{directory} + $segment{run_block}, pack('V', delta_block($_[0])));
		} ],
	[ 'segment: many pages', in_segment('npages', "\xff" x 4) ],
	[ 'segment: another owner', in_segment('owner', pack('V', 12345)) ],
	[ 'segment: a long minimum', in_segment('min_len', "\xff\xff") ],
	[ 'segment: a long maximum', in_segment('max_len', "\xff\xff") ],
	[ 'segment: ends before it starts', in_segment('start', pack('V2', 5, 2)) ],
	[ 'no levels, but an entry', in_meta('nlevels', "\0\0"), 'text' ],
	[ 'many levels', in_meta('nlevels', "\xff\xff") ],
	[ 'level: short', in_level('length', pack('V', 8)), 'text' ],
	[ 'level: long', in_level('length', "\xf8\xff\xff\xff"), 'text' ],
	[ 'level: of another kind', in_level('kind', "\x03"), 'text' ],
	[ 'level: no root', in_level('root_len', "\0\0"), 'text' ],
	[ 'level: a long root', in_level('root_len', "\xff\xff"), 'text' ],
	[ 'level: a run on the metapage', in_level('run_block', "\0" x 4), 'text' ],
	[ 'level: a run out of the file', in_level('run_block', pack('V', 100000)), 'text' ],
	[ 'level: no pages', in_level('npages', "\0" x 4), 'text' ],
	[ 'level: another owner', in_level('owner', pack('V', 12345)), 'text' ],
	[ 'level: a page of zeros', sub { put($_[0], level_block($_[0]), 0, "\0" x $block) }, 'text' ],
	[ 'level: magic number of its page', sub { put($_[0], level_block($_[0]), $content, "\0") }, 'text' ],
	[ 'level: no keys on its page', sub { put($_[0], level_block($_[0]), $content + 2, "\0\0") }, 'text' ],
	[ 'level: many keys on its page', sub { put($_[0], level_block($_[0]), $content + 2, "\xff\xff") }, 'text' ],
	[ 'level: a long prefix', sub { put($_[0], level_block($_[0]), $content + 4, "\xff\xff") }, 'text' ],
	[ 'level: lengths where keys are', sub { put($_[0], level_block($_[0]), $content + 1, "\1") }, 'text' ],
	[ 'level: a long rest', sub { put($_[0], level_block($_[0]), $content + 6, "\xff\x03") }, 'text' ],
	(map { my $page = $_;
		(
			[ "$page page: kind", in_frame($page, 'kind', "\x07"), $page eq 'level' && 'text' ],
			[ "$page page: version", in_frame($page, 'version', "\x01"), $page eq 'level' && 'text' ],
			[ "$page page: identity", in_frame($page, 'identity', 'identity'), $page eq 'level' && 'text' ],
			[ "$page page: owner", in_frame($page, 'owner', pack('V', 54321)), $page eq 'level' && 'text' ],
			[ "$page page: page id", in_frame($page, 'page_id', "\x80\xff"), $page eq 'level' && 'text' ],
		) } ('metapage', 'run', 'level', 'delta')),
	[ 'delta page: a key less', sub {
		my $at = delta_block($_[0]);

		put($_[0], $at, 12, pack('v', get($_[0], $at, 12, 'v', 2) - 8)) } ],
	[ 'delta page: half a number more', sub {
		my $at = delta_block($_[0]);

		put($_[0], $at, 12, pack('v', get($_[0], $at, 12, 'v', 2) + 4)) }, 'int' ],
	# The first of those that are gone begins with zeros.
	[ 'delta page: sixteen numbers less', sub {
		my $at = delta_block($_[0]);

		put($_[0], $at, 12, pack('v', get($_[0], $at, 12, 'v', 2) - 16 * 8)) }, 'int' ],
	[ 'delta page: half an offset more', sub {
		my $at = delta_block($_[0]);

		put($_[0], $at, 12, pack('v', get($_[0], $at, 12, 'v', 2) + 1)) }, 'text' ],
	[ 'delta page: a longer special space', sub { put($_[0], delta_block($_[0]), 14, pack('v', $block - 4)) }, 'int' ],
	[ 'delta page: its end before its start', sub { put($_[0], delta_block($_[0]), 12, pack('v', 0)) } ],
	[ 'delta page: offsets', sub { put($_[0], delta_block($_[0]), $content, "\xff" x 8) }, 'text' ],
	[ 'delta page: no offsets', sub { put($_[0], delta_block($_[0]), $content, "\0" x 8) }, 'text' ],
	[ 'delta page: lengths', sub {
		my $at = delta_block($_[0]);

		for my $i (0 .. 20)
		{
			my $key = get($_[0], $at, $content + 2 * $i, 'v', 2);

			put($_[0], $at, $key, "\xff\xff");
		}
	}, 'text' ],
	[ 'last delta page: offsets', sub {
		my $n = get($_[0], 0, $content + $meta{ndelta}, 'v', 2);
		my $at = get($_[0], 0, $content + $meta{delta} + 12 * ($n - 1), 'V', 4);

		put($_[0], $at, $content, "\xff" x 8);
	}, 'text' ]);

# In the run that is in the segment's entry: at its beginning, or before its end.
sub in_entry_run
{
	my ($offset, $bytes) = @_;

	return sub {
		my $at = $content + $meta{directory};
		my $len = get($_[0], 0, $at + $segment{run_len}, 'v', 2);

		$at += 88 + get($_[0], 0, $at + $segment{min_len}, 'v', 2) + get($_[0], 0, $at + $segment{max_len}, 'v', 2)
		  + get($_[0], 0, $at + $segment{root_len}, 'v', 2);
		put($_[0], 0, $at + ($offset < 0 ? $len : 0) + $offset, $bytes);
	};
}

# The same for a run in the entry.  A SNARF's magic number is 9 bytes before its end; a SuRF begins with it.
my @impossible_entry = (
	[ 'cut in the run', cut_to(4096) ],
	[ 'a metapage of zeros', sub { put($_[0], 0, 0, "\0" x $block) } ],
	[ 'no length', in_segment('run_len', "\0\0") ],
	[ '8 bytes less', in_segment('run_len', pack('v', 4992)) ],
	[ '8 bytes more', in_segment('run_len', pack('v', 5008)) ],
	[ 'an odd length', in_segment('run_len', pack('v', 4999)) ],
	[ 'a long one', in_segment('run_len', "\xff\xff") ],
	[ 'as places', in_segment('places_len', pack('vv', 5000, 0)) ],
	[ 'in a block of its own', in_segment('run_block', pack('V', 1)) ],
	[ 'in the delta', sub { put($_[0], 0, $content + $meta{directory} + $segment{run_block}, pack('V', delta_block($_[0]))) } ],
	[ 'in no block', in_segment('run_block', "\xff" x 4) ],
	[ 'no pages', in_segment('npages', "\0" x 4) ],
	[ 'two pages', in_segment('npages', pack('V', 2)) ],
	[ 'with a page of places', in_segment('place_pages', pack('V', 1)) ],
	[ 'another owner', in_segment('owner', pack('V', 12345)) ],
	[ 'the owner of nothing', in_segment('owner', "\0" x 4) ],
	[ 'flag of copies', in_segment('flags', "\x10") ],
	[ 'a longer root', sub {
		my $at = $content + $meta{directory} + $segment{root_len};

		put($_[0], 0, $at, pack('v', get($_[0], 0, $at, 'v', 2) + 1)) } ],
	[ 'a shorter root', sub {
		my $at = $content + $meta{directory} + $segment{root_len};

		put($_[0], 0, $at, pack('v', get($_[0], 0, $at, 'v', 2) - 1)) } ],
	[ 'pd_lower before it', sub { put($_[0], 0, 12, pack('v', 400)) } ],
	[ 'its beginning', in_entry_run(0, "\0" x 8), 'text' ],
	[ 'its magic number', in_entry_run(-9, "\0\0"), 'int' ],
	[ 'all of it', in_entry_run(0, "\0" x 5000) ]);

# In the contents of the first page of places, or of the last one.
sub in_places
{
	my ($offset, $bytes, $last) = @_;

	return sub {
		my $at = places_block($_[0]) + ($last ? segment_field($_[0], 'place_pages') - 1 : 0);

		put($_[0], $at, $content + $offset, $bytes);
	};
}

# The same for places on pages of the run, and for the filter before them.  Offsets of src/filter/places/places.h: magic
# 0, ranges 4, first rank 8, keys 16, bits of a mask 20, entries' start 24 and
# length 26, numbers of keys from 28 on.
my @impossible_places = (
	[ 'a page of zeros', sub { put($_[0], places_block($_[0]), 0, "\0" x $block) } ],
	[ 'the last page missing', cut_to(-$block) ],
	[ 'all pages missing', sub { ${ $_[0] } = substr(${ $_[0] }, 0, places_block($_[0]) * $block) } ],
	[ 'magic number', in_places(0, 'PLC2') ],
	[ 'no ranges', in_places(4, "\0" x 4) ],
	[ 'a range less', sub {
		my $at = places_block($_[0]);

		put($_[0], $at, $content + 4, pack('V', get($_[0], $at, $content + 4, 'V', 4) - 1)) } ],
	[ 'many ranges', in_places(4, "\xff" x 4) ],
	[ 'a later first rank', in_places(8, pack('VV', 8000, 0)) ],
	[ 'a first rank at the end of time', in_places(8, "\xff" x 8) ],
	[ 'last page: a first rank at the end of time', in_places(8, "\xff" x 8, 1) ],
	[ 'last page: the first rank of the first', in_places(8, "\0" x 8, 1) ],
	[ 'no keys', in_places(16, "\0" x 4) ],
	[ 'last page: no keys', in_places(16, "\0" x 4, 1) ],
	[ 'few keys', in_places(16, pack('V', 10)) ],
	[ 'last page: few keys', in_places(16, pack('V', 10), 1) ],
	[ 'many keys', in_places(16, "\xff" x 4) ],
	[ 'long masks', in_places(20, "\xff" x 4) ],
	[ 'no masks', in_places(20, "\0" x 4) ],
	[ 'entries in the header', in_places(24, "\0\0") ],
	[ 'entries past the page', in_places(24, "\xff\x7f") ],
	[ 'no entries', in_places(26, "\0\0") ],
	[ 'long entries', in_places(26, "\xff\xff") ],
	[ 'ranges that do not exist', in_places(28, "\xff" x 1000) ],
	[ 'last page: ranges that do not exist', in_places(28, "\xff" x 1000, 1) ],
	[ 'segment: no ranges', in_segment('range_blocks', "\0" x 4) ],
	[ 'segment: larger ranges', in_segment('range_blocks', pack('V', 3)) ],
	[ 'segment: ranges at the end of time', in_segment('range_blocks', "\xff" x 4) ],
	[ 'segment: more ranges than there can be', sub {
		in_meta('summarized', "\xff" x 4)->($_[0]);
		in_segment('end', "\xff" x 4)->($_[0]);
		in_segment('imprecise', "\x01")->($_[0]) } ],
	[ 'segment: no pages of places', in_segment('place_pages', "\0" x 4) ],
	[ 'segment: a page of places less', sub {
		put($_[0], 0, $content + $meta{directory} + $segment{place_pages},
			pack('V', segment_field($_[0], 'place_pages') - 1)) } ],
	[ 'segment: a page of places more', sub {
		put($_[0], 0, $content + $meta{directory} + $segment{place_pages},
			pack('V', segment_field($_[0], 'place_pages') + 1)) } ],
	[ 'segment: many pages of places', in_segment('place_pages', "\xff" x 4) ],
	[ 'segment: places in the entry', in_segment('places_len', pack('v', 64)) ],
	[ 'kind', in_frame('places', 'kind', "\x03") ],
	[ 'version', in_frame('places', 'version', "\x01") ],
	[ 'identity', in_frame('places', 'identity', 'identity') ],
	[ 'owner', in_frame('places', 'owner', pack('V', 54321)) ],
	[ 'page id', in_frame('places', 'page_id', "\x80\xff") ],
	[ 'filter: a page of zeros', sub { put($_[0], run_block($_[0]), 0, "\0" x $block) } ],
	[ 'filter: all pages of zeros', sub {
		my $at = run_block($_[0]);

		put($_[0], $at, 0, "\0" x ($block * (places_block($_[0]) - $at))) } ],
	[ 'filter: owner', in_frame('run', 'owner', pack('V', 54321)) ]);

# Random bytes in the contents of pages whose frame stays sane: no promise is
# possible for the answers, so only that there are some.
sub random_bytes
{
	my ($file) = @_;
	my $pages = length($$file) / $block;
	my $n = (1, 3, 20, 300)[ pick(0, 3) ];
	my $page = pick(0, 2) ? pick(0, $pages - 1) : 0;

	for (1 .. $n)
	{
		put($file, $page, pick($content, $block - 1), chr(pick(0, 255)));
	}
	return;
}

# The cases: a table each, t<number>.
my @cases;

foreach my $type ('int', 'text')
{
	foreach my $case (@impossible)
	{
		my ($name, $damage, $only) = @$case;

		next if $only && $only ne $type;
		push @cases, { name => "$type: $name", type => $type, strict => 1, damage => $damage };
	}
	foreach my $case (@impossible_entry)
	{
		my ($name, $damage, $only) = @$case;

		next if $only && $only ne $type;
		push @cases, { name => "$type: a run in its entry: $name", type => $type, strict => 1, entry => 1, damage => $damage };
	}
	for my $i (1 .. 25)
	{
		push @cases,
		  {
			name => "seed $seed, $type: random bytes $i",
			type => $type, strict => 0, entry => $i % 2, damage => \&random_bytes
		  };
	}
}

# A filter, and a delta: a page of numbers, or a page of strings and a level, to which
# one page has been merged.  Long strings, so that their bounds are cut.  With so many bits a
# key the run has a page of its own.
my $setup = '';

for my $i (0 .. $#cases)
{
	my $case = $cases[$i];
	my $key = $case->{type} eq 'int' ? '%s' : q{'k' || repeat(chr(97 + (%1$s) % 26), 90) || %1$s};

	$case->{key} = sub { return sprintf($key, $_[0]) };
	my $of_k = $case->{key}->('k');

	$setup .= qq{
CREATE TABLE t$i (p int, k $case->{type}@{[ $case->{type} eq 'text' ? ' COLLATE "C"' : '' ]})
	PARTITION BY LIST (p);
CREATE TABLE t${i}a PARTITION OF t$i FOR VALUES IN (1);
CREATE TABLE t${i}b PARTITION OF t$i FOR VALUES IN (2);
INSERT INTO t$i SELECT 1 + k / 700, $of_k FROM generate_series(1, 800) k;
CREATE INDEX i$i ON t$i USING rangefilter (k)@{[ $case->{entry} ? '' : ' WITH (bits_per_key = 64)' ]};
INSERT INTO t$i SELECT 1, $of_k FROM (SELECT CASE k WHEN 1145 THEN 65536 ELSE k END FROM generate_series(1001, 1150) k) k (k);
};
}
# Tables whose keys are in one range of blocks, but for those up to 30, which are
# in some, and 0, which is in all.  Nothing is done to the last of them.
for my $i (0 .. @impossible_places)
{
	$setup .= qq{
CREATE TABLE p$i (k int, v text);
INSERT INTO p$i SELECT CASE k % 20 WHEN 0 THEN CASE k % 400 WHEN 0 THEN 0 ELSE k / 20 % 31 END
	ELSE k * 7919 % 20000 + 100 END, 'of the filter' FROM generate_series(1, 20000) k;
CREATE INDEX q$i ON p$i USING rangefilter (k) WITH (pages_per_range = 1);
ANALYZE p$i;
};
}
$node->safe_psql('postgres', $setup);
my @paths = split /\n/, $node->safe_psql('postgres',
	"SELECT pg_relation_filepath(format('t%sa_k_idx', i)::regclass) FROM generate_series(0, $#cases) i");
my @placed = split /\n/, $node->safe_psql('postgres',
	"SELECT pg_relation_filepath(format('q%s', i)::regclass) FROM generate_series(0, @{[ scalar @impossible_places ]}) i");

$node->stop;
my $other = substr(slurp_file($node->data_dir . '/' . $paths[0]), 0, $block);

# Are these offsets still those of the format?  Else nothing would be hit.
sub kinds_of_pages
{
	my ($file, @blocks) = @_;

	return join(' ', map { get($file, $_, $frame + $frame{kind}, 'C', 1) } @blocks);
}

my ($first_entry) = grep { $cases[$_]->{entry} } 0 .. $#cases;
my ($last_entry) = grep { $cases[$_]->{entry} } reverse 0 .. $#cases;

for my $path (@paths[$first_entry, $last_entry])
{
	my $file = slurp_file($node->data_dir . '/' . $path);

	is(get(\$file, 0, $content + $meta{directory} + $segment{run_len}, 'v', 2), 5000, 'the run is found in its entry');
	is(run_block(\$file) . kinds_of_pages(\$file, delta_block(\$file)), '03', 'it has no page, and the delta is found');
}
for my $path ($paths[0], $paths[-2])
{
	my $file = slurp_file($node->data_dir . '/' . $path);

	like(kinds_of_pages(\$file, 0, run_block(\$file), delta_block(\$file)),
		qr/^1 2 [34]$/, 'metapage, run and delta are found');
	is(segment_field(\$file, 'end'), get(\$file, 0, $content + $meta{summarized}, 'V', 4),
		'the segment is found');
}
{
	my $file = slurp_file($node->data_dir . '/' . $paths[-2]);

	is(get(\$file, 0, $content + $meta{nlevels}, 'v', 2) . kinds_of_pages(\$file, level_block(\$file)),
		'12', 'the level is found');
}
my $undamaged = slurp_file($node->data_dir . '/' . $placed[-1]);

cmp_ok(segment_field(\$undamaged, 'place_pages'), '>', 1, 'there are pages of places');
is(get(\$undamaged, places_block(\$undamaged), $content, 'a4', 4), 'PLC1', 'they are found');

sub damage_file
{
	my ($path, $name, $damage) = @_;
	my $file = slurp_file($node->data_dir . "/$path");

	eval { $damage->(\$file, \$other); 1 } or die "$name: $@";
	open(my $out, '>:raw', $node->data_dir . "/$path") or die "$path: $!";
	print $out $file;
	close($out);
	return;
}

damage_file($paths[$_], $cases[$_]->{name}, $cases[$_]->{damage}) for (0 .. $#cases);
damage_file($placed[$_], @{ $impossible_places[$_] }) for (0 .. $#impossible_places);
$node->start;

# Runs a statement.  Returns what it says, or "damaged" for an error that says
# so, with a hint what to do if asked for.
my $session = open_session($node);

ask($session, "\\set VERBOSITY verbose\nSELECT 1");

sub run
{
	my ($sql, $hint) = @_;
	my $answer = ask($session, $sql);

	return 'damaged'
	  if $answer =~ /^(ERROR|WARNING):  XX002/m && (!$hint || $answer =~ /^HINT:  REINDEX/m);
	return 'damaged'
	  if $answer =~ /^(ERROR|WARNING):  XX001/m && $answer =~ /(invalid page|could not read)/;
	return $answer;
}

my $fine = qr/^(damaged|t)$/;

for my $i (0 .. $#cases)
{
	my $case = $cases[$i];
	my $name = $case->{name};
	my $key = $case->{key};
	my $strict = $case->{strict};
	my $lost = $strict ? '= 0' : '>= 0';

	# Queries with skipping, for keys of the filter and of the delta.
	my $found = $strict ? '3' : '\d';

	like(run("SELECT count(*) FROM t$i WHERE k IN (" . join(', ', map { $key->($_) } (3, 650, 1100)) . ')'),
		qr/^(damaged|$found)$/, "$name: query");
	like(run("SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain('t${i}a_k_idx', k, k)) $lost FROM t${i}a"),
		$fine, "$name: may_contain");
	like(run("SELECT rangefilter_may_contain('i$i', " . $key->(1500) . ', ' . $key->(1500) . ') IS NOT NULL'),
		$fine, "$name: may_contain of a partitioned index");
	like(run("SELECT count(*) = 1 FROM rangefilter_status('t${i}a_k_idx')"), $fine, "$name: status");

	# New rows, one and many, known and unknown: they are refused, or found.
	my $new = run("INSERT INTO t$i VALUES (1, @{[ $key->(1500) ]}), (1, @{[ $key->(1501) ]})", 1);

	like($new, qr/^(damaged)?$/, "$name: insert");
	if ($new ne 'damaged' && $strict)
	{
		like(run("SELECT count(*) FROM t$i WHERE k = " . $key->(1501)), qr/^(damaged|1)$/, "$name: insert is found");
	}
	like(run("INSERT INTO t$i SELECT 1, @{[ $key->('k') ]} FROM generate_series(2001, 2100) k", 1),
		qr/^(damaged)?$/, "$name: more inserts");
	like(run("SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain('t${i}a_k_idx', k, k)) $lost FROM t${i}a"),
		$fine, "$name: may_contain afterwards");
	my $verified = run("SELECT rangefilter_verify('t${i}a_k_idx') > 0");

	like($verified, $fine, "$name: verify");

	# It may heal itself.
	like(run("SELECT rangefilter_summarize('t${i}a_k_idx') >= 0", 1), $fine, "$name: summarize");
	like(run("VACUUM t${i}a"), qr/^(damaged)?$/, "$name: VACUUM");
	like(run("INSERT INTO t$i SELECT 1, @{[ $key->('k') ]} FROM generate_series(3001, 3300) k", 1),
		qr/^(damaged)?$/, "$name: inserts after VACUUM");
	like(run("SELECT count(*) FILTER (WHERE NOT rangefilter_may_contain('t${i}a_k_idx', k, k)) $lost FROM t${i}a"),
		$fine, "$name: may_contain after VACUUM");

	is(run("REINDEX INDEX t${i}a_k_idx"), '', "$name: REINDEX");
	is(run(
			"INSERT INTO t$i VALUES (1, @{[ $key->(9000) ]});\n"
			. "SELECT rangefilter_verify('t${i}a_k_idx') > 0, rangefilter_may_contain('t${i}a_k_idx', @{[ $key->(9000) ]}, @{[ $key->(9000) ]}), "
			. "rangefilter_may_contain('t${i}a_k_idx', @{[ $key->(9999) ]}, @{[ $key->(9999) ]})"),
		't|t|f', "$name: healed");
}

# Bitmap scans of the tables with places: right answers, whatever is damaged.
sub scan_places
{
	my ($i, $when) = @_;
	my $name = $i < @impossible_places ? "places: $impossible_places[$i]->[0]" : 'places';

	foreach my $where ('k = 0', 'k = 17', 'k IN (101, 20099)', 'k BETWEEN 500 AND 520',
		'k BETWEEN 9000 AND 17000', 'k > 20050', 'k < 40')
	{
		my $query = "SELECT count(*), sum(k) FROM p$i WHERE $where";

		is(run("SET enable_seqscan = off; $query"), run("SET enable_seqscan = on; SET enable_bitmapscan = off; $query; RESET enable_bitmapscan"),
			"$name: $where, $when");
	}
	return;
}

for my $i (0 .. @impossible_places)
{
	scan_places($i, 'damaged');

	# Into blocks whose places are written down, with keys that are elsewhere.
	is(run("DELETE FROM p$i WHERE v = 'of the filter' AND k % 3 = 1"), '', "places $i: delete");
	is(run("VACUUM (INDEX_CLEANUP off, TRUNCATE off) p$i"), '', "places $i: VACUUM of the table");
	like(run("INSERT INTO p$i SELECT k, 'new' FROM generate_series(0, 3000, 7) k", 1), qr/^(damaged)?$/,
		"places $i: insert");
	scan_places($i, 'after inserts');
}
like(run("SET enable_seqscan = off; EXPLAIN (COSTS off) SELECT * FROM p@{[ scalar @impossible_places ]} WHERE k = 17"),
	qr/Bitmap Index Scan on q/, 'places: by bitmap scans');

# A damaged page of the delta is not merged: its keys would be denied then.  The first page was not merged
# when it was full, since somebody else had the lock of runs.
$node->safe_psql('postgres', q{
CREATE EXTENSION rf_damage;
CREATE TABLE m (p int, k int) PARTITION BY LIST (p);
CREATE TABLE m1 PARTITION OF m FOR VALUES IN (1);
INSERT INTO m SELECT 1, g FROM generate_series(1, 100) g;
CREATE INDEX m_k ON m USING rangefilter (k);
CREATE PROCEDURE trickle(low int, high int) LANGUAGE plpgsql AS
	'BEGIN FOR i IN low .. high LOOP INSERT INTO m SELECT 1, 1000 * i + g FROM generate_series(1, 150) g; END LOOP; END'});
my $holder = open_session($node);
ask($holder, "BEGIN; SELECT rf_hold_runs('m1_k_idx')");
$node->safe_psql('postgres', 'CALL trickle(1, 9)');
ask($holder, 'COMMIT');
close_session($holder);
$node->safe_psql('postgres', qq{SELECT rf_damage('m1_k_idx', get_byte(rf_page('m1_k_idx', 0), @{[ $content + $meta{delta} + $slot{block} ]}), $frame, '\\x0000')});
$node->safe_psql('postgres', 'CALL trickle(10, 40)');
is($node->safe_psql('postgres', q{SELECT levels, tail_open FROM rangefilter_status('m1_k_idx')}), '0|t',
	'a damaged page of the delta: nothing is merged, and where there is no room the tail is open');
is($node->safe_psql('postgres', 'SELECT count(*) FROM m WHERE k IN (1005, 3005, 15005, 40005)'), 4, 'a damaged page of the delta: all rows are found');

# A run that begins at the last block number there is: the next one is that of the metapage, which
# an insert has locked exclusively when it asks the run.
$node->safe_psql('postgres', qq{
CREATE TABLE wrap (k int);
INSERT INTO wrap SELECT k * 7919 % 1000003 FROM generate_series(1, 20000) k;
CREATE INDEX wrap_k ON wrap USING rangefilter (k);
SELECT rf_damage('wrap_k', 0, @{[ $content + $meta{directory} + $segment{run_block} ]}, '\\xffffffff')});
is(run("INSERT INTO wrap VALUES (600001)", 1), 'damaged', 'a run that ends behind the last block number');

close_session($session);
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no crash');
$node->stop;
done_testing();
