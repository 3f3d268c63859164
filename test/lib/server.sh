# server.sh: a private installation of PostgreSQL with the extension in it, and
# private servers.
#
# PostgreSQL finds its files relative to its programs.  So a copy of the
# programs, beside links to the libraries and shared files, is an installation
# of its own into which the extension can be installed, while the system's
# directories stay as they are and nobody needs the right to write there.
#
#	rf_private_postgres		makes it: RF_TMP/pg, programs in RF_BIN
#	rf_sanitize				has its servers watched by AddressSanitizer
#	rf_add_neighbours		adds other extensions to it, if they can be had
#	rf_copy_source			copies the repository to RF_SRC
#	rf_seed					prints the seed of the random tests
#	rf_make args			make in RF_SRC, against that PostgreSQL
#	rf_install_extension	builds and installs the extension
#	rf_start_server name [setting=value ...]	a server; sets PGHOST and so on.
#							RF_INITDB: options of initdb; RF_PREPARED: a data
#							directory to be copied instead
#	rf_stop_server name
#
# shellcheck shell=bash

rf_private_postgres()
{
	local bindir pkglibdir sharedir file

	bindir=$("$PG_CONFIG" --bindir)
	pkglibdir=$("$PG_CONFIG" --pkglibdir)
	sharedir=$("$PG_CONFIG" --sharedir)
	RF_PG=$RF_TMP/pg
	RF_NEIGHBOURS=$RF_TMP/neighbours
	RF_BIN=$RF_PG$bindir
	RF_PGXS=$(dirname "$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")")

	rf_run mkdir -p "$RF_BIN" "$RF_PG$pkglibdir" "$RF_PG$sharedir/extension"
	rf_run cp -L "$bindir"/* "$RF_BIN/"
	for file in "$pkglibdir"/*; do
		case ${file##*/} in
			rangefilter*) ;;
			*) printf '%s\0' "$file" ;;
		esac
	done | rf_run xargs -0 ln -s -t "$RF_PG$pkglibdir"
	for file in "$sharedir"/*; do
		[ "${file##*/}" = extension ] || printf '%s\0' "$file"
	done | rf_run xargs -0 ln -s -t "$RF_PG$sharedir"
	for file in "$sharedir"/extension/*; do
		case ${file##*/} in
			rangefilter*) ;;
			*) printf '%s\0' "$file" ;;
		esac
	done | rf_run xargs -0 ln -s -t "$RF_PG$sharedir/extension"
	"${RF_AS[@]}" "$RF_BIN/postgres" --version >/dev/null 2>&1 ||
		rf_die "cannot run programs in $RF_TMP (mounted noexec?): set TMPDIR"
	export PATH=$RF_BIN:$PATH
}

# What is built from now on is watched by AddressSanitizer, whose library the server
# loads first.  It ends a process at the first fault, and says so in the server's log.
# Servers with NLS, as Debian's, hang when they start so.
rf_sanitize()
{
	local library

	library=$("${CC:-gcc}" -print-file-name=libasan.so)
	[ -e "$library" ] || rf_die "gcc came without libasan.so"
	export COPT='-fsanitize=address -fno-omit-frame-pointer'
	rf_run mv "$RF_BIN/postgres" "$RF_BIN/postgres.real"
	printf '%s\n' '#!/bin/sh' "export LD_PRELOAD=$library ASAN_OPTIONS=detect_leaks=0:abort_on_error=1" \
		'exec "${0%/*}/postgres.real" "$@"' | rf_run tee "$RF_BIN/postgres" >/dev/null
	rf_run chmod +x "$RF_BIN/postgres"
	rf_run timeout 60 "$RF_BIN/postgres" --version >/dev/null ||
		rf_die "this server does not start below AddressSanitizer: set PG_CONFIG"
}

# Other extensions and clients, for the tests beside them.  What is not installed is
# unpacked, if it can be had; RF_NEIGHBOURS is where.
rf_add_neighbours()
{
	local directory file
	# shellcheck disable=SC2046 # a list of packages
	rf_unpack "$RF_NEIGHBOURS" $(rf_neighbour_list)
	for directory in "$("$PG_CONFIG" --pkglibdir)" "$("$PG_CONFIG" --sharedir)/extension" "$("$PG_CONFIG" --bindir)"; do
		for file in "$RF_NEIGHBOURS$directory"/*; do
			[ ! -f "$file" ] || rf_run ln -sf -t "$RF_PG$directory" "$file"
		done
	done
}

# The user that builds may not be able to read the repository, and the
# repository stays as it is.
rf_copy_source()
{
	RF_SRC=$RF_TMP/src
	rf_run mkdir "$RF_SRC"
	tar -C "$RF_ROOT" -cf - --exclude=./.git --exclude='*.o' --exclude='*.d' \
		--exclude='*.so' --exclude='*.bc' --exclude=./test/unit/bin --exclude=./test/bench/bin . |
		rf_run tar -C "$RF_SRC" -xf - --no-same-owner --touch
}

# The number the random tests begin with unless SEED says: made from the files
# under src, sql and test, so that the same tree asks the same questions again,
# and another tree others.
rf_seed()
{
	local sum

	sum=$(cd "$RF_SRC" && find src sql test -type f ! -path 'test/unit/bin/*' ! -path 'test/bench/*' \
		! -name '*.[od]' ! -name '*.so' ! -name '*.bc' -print0 | LC_ALL=C sort -z | xargs -0 cat | cksum)
	rf_say "${SEED:-$((${sum%% *} % 2147483647))}"
}

rf_make()
{
	rf_run make -s -C "$RF_SRC" -j "$(nproc)" PG_CONFIG="$PG_CONFIG" with_llvm=no "$@"
}

# Arguments are make's: WERROR=1 ASSERT=1
rf_install_extension()
{
	rf_make all "$@"
	rf_make install DESTDIR="$RF_PG" "$@" >/dev/null
}

rf_start_server()
{
	local name=$1 data=$RF_TMP/$1/data setting
	shift

	rf_run mkdir -p "$RF_TMP/$name/socket"
	if [ -n "${RF_PREPARED:-}" ]; then
		rf_run cp -a "$RF_PREPARED" "$data"
	else
		# shellcheck disable=SC2086 # a list of words
		rf_run "$RF_BIN/initdb" -D "$data" -U postgres -A trust --no-locale -E UTF8 \
			--no-sync ${RF_INITDB:-} >"$RF_TMP/$name/initdb.log" || {
			cat "$RF_TMP/$name/initdb.log" >&2
			rf_die "initdb failed"
		}
	fi
	{
		printf '%s\n' "listen_addresses = ''" "port = 5432" \
			"unix_socket_directories = '$RF_TMP/$name/socket'" "fsync = off" \
			"timezone = 'UTC'"
		for setting in "$@"; do
			printf "%s = '%s'\n" "${setting%%=*}" "${setting#*=}"
		done
	} | rf_run tee -a "$data/postgresql.conf" >/dev/null
	rf_run "$RF_BIN/pg_ctl" -D "$data" -l "$RF_TMP/$name/log" -w -t 60 start >/dev/null || {
		tail -n 20 "$RF_TMP/$name/log" >&2
		rf_die "the private server did not start"
	}
	export PGHOST=$RF_TMP/$name/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

rf_stop_server()
{
	rf_run "$RF_BIN/pg_ctl" -D "$RF_TMP/$1/data" -m fast -w stop >/dev/null
}

# psql that stops at the first error and prints bare values.
rf_psql()
{
	rf_run "$RF_BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"
}
