# packages.sh: finding a PostgreSQL server with its development files, and
# installing what is missing where the system is Debian or Ubuntu.
#
# rf_need server|tests|demo|format ...	makes sure of it, or says what to do and exits
# rf_unpack directory package ...	unpacks packages there that are not installed
#
# Sets PG_CONFIG and RF_MAJOR for "server".
#
# shellcheck shell=bash

# The versions the extension is built and tested with.
RF_MAJOR_MIN=15
RF_MAJOR_MAX=19

# The version of pg_bsd_indent that belongs to PostgreSQL 15.
RF_INDENT_VERSION=2.1.1

RF_PGDG="https://wiki.postgresql.org/wiki/Apt tells how to add the PostgreSQL project's own packages"

# The file that keeps an installed server package from creating and starting a
# database cluster on its own.
RF_NO_CLUSTER=/etc/postgresql-common/createcluster.d/zz-rangefilter.conf

# How to become root: empty for root, a command, or "impossible".
RF_ROOT_COMMAND=
RF_UPDATED=

rf_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

rf_have_apt()
{
	command -v dpkg-query >/dev/null && command -v apt-get >/dev/null
}

rf_find_root()
{
	if [ "$(id -u)" != 0 ]; then
		RF_ROOT_COMMAND='sudo -n'
		$RF_ROOT_COMMAND true 2>/dev/null || RF_ROOT_COMMAND=impossible
	fi
}

# Refreshes the package lists, once and if we may.
rf_apt_update()
{
	[ -z "$RF_UPDATED" ] && [ "$RF_ROOT_COMMAND" != impossible ] || return 0
	RF_UPDATED=1
	$RF_ROOT_COMMAND apt-get update -q >/dev/null 2>&1 ||
		rf_say "apt-get update failed; going on" >&2
}

# Is this a version we support?
rf_supported()
{
	[ "$1" -ge "$RF_MAJOR_MIN" ] 2>/dev/null && [ "$1" -le "$RF_MAJOR_MAX" ]
}

# Sets RF_MAJOR to the version of the user's PG_CONFIG.
rf_check_pg_config()
{
	local version

	PG_CONFIG=$(command -v "$PG_CONFIG") || rf_die "PG_CONFIG: no such program"
	version=$("$PG_CONFIG" --version)
	RF_MAJOR=$(printf '%s' "$version" | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
	rf_supported "$RF_MAJOR" ||
		rf_die "PostgreSQL $RF_MAJOR_MIN to $RF_MAJOR_MAX is required; $PG_CONFIG is of $version"
}

# Sets RF_MAJOR to the newest server that is installed with its development
# files, or else to the newest server; fails where there is none.
rf_installed_server()
{
	local dir major complete='' partial=''

	for dir in /usr/lib/postgresql/*/bin; do
		major=${dir%/bin}
		major=${major##*/}
		if rf_supported "$major" && [ -x "$dir/postgres" ]; then
			if [ -e "${dir%/bin}/lib/pgxs/src/makefiles/pgxs.mk" ]; then
				[ "$major" -le "${complete:-0}" ] || complete=$major
			fi
			[ "$major" -le "${partial:-0}" ] || partial=$major
		fi
	done
	RF_MAJOR=${complete:-$partial}
	[ -n "$RF_MAJOR" ]
}

# Sets RF_MAJOR to the newest version that apt offers, and that we support;
# fails where that is none.
rf_offered_server()
{
	local offered major

	offered=$(apt-cache pkgnames postgresql-server-dev- 2>/dev/null |
		sed -n 's/^postgresql-server-dev-\([0-9]*\)$/\1/p' | sort -n)
	RF_MAJOR=
	for major in $offered; do
		! rf_supported "$major" || RF_MAJOR=$major
	done
	[ -n "$RF_MAJOR" ] && return
	[ -n "$offered" ] || [ -n "$RF_UPDATED" ] ||
		rf_die "no PostgreSQL server is installed; first run: sudo apt-get update"
	rf_die "PostgreSQL $RF_MAJOR_MIN to $RF_MAJOR_MAX is required; this system offers" \
		"${offered:-none}. $RF_PGDG"
}

# Decides for which server everything is built.
rf_choose_server()
{
	if [ -n "${PG_CONFIG:-}" ]; then
		rf_check_pg_config
	elif ! rf_installed_server; then
		if rf_have_apt; then
			rf_apt_update
			rf_offered_server
		elif command -v pg_config >/dev/null; then
			PG_CONFIG=pg_config
			rf_check_pg_config
		else
			rf_die "no PostgreSQL server found: install $RF_MAJOR_MIN or later with its development files, or set PG_CONFIG"
		fi
	fi
}

rf_package_list()
{
	local what

	for what in "$@"; do
		case $what in
			server)
				[ -n "${PG_CONFIG:-}" ] ||
					printf '%s\n' "postgresql-$RF_MAJOR" "postgresql-server-dev-$RF_MAJOR"
				printf '%s\n' make gcc libc6-dev libicu-dev
				;;
			tests)
				[ -n "${PG_CONFIG:-}" ] || printf '%s\n' "postgresql-$RF_MAJOR-pgtap"
				printf '%s\n' perl libipc-run-perl
				;;
			demo)
				printf '%s\n' xz-utils
				;;
			format)
				printf '%s\n' perl pg-bsd-indent
				;;
		esac
	done
}

# Installs packages, without their starting a server.
rf_apt_install()
{
	local status=0

	if [ "$RF_ROOT_COMMAND" = impossible ]; then
		rf_say "Packages are missing, and only root may install them. Please run:" >&2
		rf_say "    sudo apt-get install --no-install-recommends $*" >&2
		exit 1
	fi
	rf_apt_update
	rf_say "installing: $*"
	$RF_ROOT_COMMAND mkdir -p "${RF_NO_CLUSTER%/*}"
	printf 'create_main_cluster = false\n' | $RF_ROOT_COMMAND tee "$RF_NO_CLUSTER" >/dev/null
	$RF_ROOT_COMMAND env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
		--no-install-recommends "$@" >"$RF_TMP/apt.log" 2>&1 </dev/null || status=$?
	$RF_ROOT_COMMAND rm -f "$RF_NO_CLUSTER"
	if [ "$status" != 0 ]; then
		tail -n 20 "$RF_TMP/apt.log" >&2
		rf_die "apt-get could not install: $*"
	fi
}

# Extensions and clients that the library is tested beside, where they can be had.
# Those of Debian are for Debian's servers.
rf_neighbour_list()
{
	local name

	if [[ $PG_CONFIG = "/usr/lib/postgresql/$RF_MAJOR/"* ]]; then
		for name in hypopg partman pg-hint-plan pg-qualstats pgaudit repack; do
			printf '%s\n' "postgresql-$RF_MAJOR-$name"
		done
	fi
	printf '%s\n' pgbouncer python3-psycopg
}

# Unpacks those packages that are not installed, with what they need, into a directory.
# Nothing is installed, and nobody has to be root.  What cannot be had is not an error.
rf_unpack()
{
	local directory=$1 package file wanted=()
	shift

	rf_have_apt || return 0
	for package in "$@"; do
		if ! rf_installed "$package" && apt-cache show "$package" >/dev/null 2>&1; then
			wanted+=("$package")
		fi
	done
	[ "${#wanted[@]}" -gt 0 ] || return 0
	rf_run mkdir -p "$directory/archives/partial"
	if ! rf_download "$directory" "${wanted[@]}" && { rf_apt_update; ! rf_download "$directory" "${wanted[@]}"; }; then
		rf_say "apt-get could not download: ${wanted[*]}" >&2
		return 0
	fi
	for file in "$directory"/archives/*.deb; do
		rf_run dpkg-deb -x "$file" "$directory"
	done
}

# Downloads packages, and what they need, into a directory's archives.
rf_download()
{
	local directory=$1
	shift

	rf_run timeout 120 apt-get install -y -q --download-only --no-install-recommends \
		-o Debug::NoLocking=1 -o Dir::Cache::archives="$directory/archives" "$@" >"$RF_TMP/apt.log" 2>&1 </dev/null
}

rf_need()
{
	local package missing=()

	rf_find_root
	case " $* " in *" server "*) rf_choose_server ;; esac

	if rf_have_apt; then
		for package in $(rf_package_list "$@"); do
			rf_installed "$package" || missing+=("$package")
		done
		[ "${#missing[@]}" = 0 ] || rf_apt_install "${missing[@]}"
	fi

	case " $* " in
		*" server "*)
			PG_CONFIG=${PG_CONFIG:-/usr/lib/postgresql/$RF_MAJOR/bin/pg_config}
			[ -e "$("$PG_CONFIG" --pgxs)" ] ||
				rf_die "$PG_CONFIG: the server's development files are missing"
			;;
	esac
	case " $* " in
		*" format "*)
			pg_bsd_indent --version 2>/dev/null | grep -qF " $RF_INDENT_VERSION " ||
				rf_die "pg_bsd_indent $RF_INDENT_VERSION not found: other versions lay out differently"
			;;
	esac
}
