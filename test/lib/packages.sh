# packages.sh: finding a PostgreSQL server with its development files, and
# installing what is missing where the system is Debian or Ubuntu.
#
# rf_need server|tests|demo|format ...	makes sure of it, or says what to do and exits
#
# Sets PG_CONFIG and RF_MAJOR (unless only "format" was needed).
#
# shellcheck shell=bash

RF_MAJOR_MIN=15
RF_PGDG="https://wiki.postgresql.org/wiki/Apt tells how to add the PostgreSQL project's own packages"

# The file that keeps an installed server package from creating and starting a
# database cluster on its own.
RF_NO_CLUSTER=/etc/postgresql-common/createcluster.d/zz-rangefilter.conf

rf_installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Sets PG_CONFIG and RF_MAJOR from what is on the system already: the user's
# PG_CONFIG, or else the newest server that has its development files, or else
# the newest server.  Fails where there is none new enough.
rf_find_server()
{
	local dir major best='' partial='' version

	if [ -n "${PG_CONFIG:-}" ]; then
		PG_CONFIG=$(command -v "$PG_CONFIG") || rf_die "PG_CONFIG: no such program"
		version=$("$PG_CONFIG" --version)
		RF_MAJOR=$(printf '%s' "$version" | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
		[ "$RF_MAJOR" -ge "$RF_MAJOR_MIN" ] 2>/dev/null ||
			rf_die "PostgreSQL $RF_MAJOR_MIN or later is required; $PG_CONFIG is of $version"
		return 0
	fi
	for dir in /usr/lib/postgresql/*/bin; do
		major=${dir%/bin}
		major=${major##*/}
		[ "$major" -ge "$RF_MAJOR_MIN" ] 2>/dev/null && [ -x "$dir/postgres" ] || continue
		if [ -e "${dir%/bin}/lib/pgxs/src/makefiles/pgxs.mk" ]; then
			[ "$major" -gt "${best:-0}" ] && best=$major
		fi
		[ "$major" -gt "${partial:-0}" ] && partial=$major
	done
	RF_MAJOR=${best:-$partial}
	if [ -z "$RF_MAJOR" ]; then
		# No Debian: any server's tools that are in the path will do.
		command -v dpkg-query >/dev/null || ! command -v pg_config >/dev/null || {
			PG_CONFIG=pg_config
			rf_find_server
			return
		}
		return 1
	fi
	return 0
}

# Sets RF_MAJOR to the newest version that apt offers; fails where that is
# none or too old.
rf_offered_server()
{
	RF_MAJOR=$(apt-cache pkgnames postgresql-server-dev- 2>/dev/null |
		sed -n 's/^postgresql-server-dev-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
	[ "${RF_MAJOR:-0}" -ge "$RF_MAJOR_MIN" ]
}

# Installs packages as root, without their starting a server.  $1 is the
# command that becomes root, or empty.
rf_apt_install()
{
	local root=$1
	shift

	rf_say "installing: $*"
	$root mkdir -p "${RF_NO_CLUSTER%/*}"
	printf 'create_main_cluster = false\n' | $root tee "$RF_NO_CLUSTER" >/dev/null
	if ! $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
		--no-install-recommends "$@" >"$RF_TMP/apt.log" 2>&1 </dev/null; then
		$root rm -f "$RF_NO_CLUSTER"
		tail -n 20 "$RF_TMP/apt.log" >&2
		rf_die "apt-get could not install: $*"
	fi
	$root rm -f "$RF_NO_CLUSTER"
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

rf_missing_packages()
{
	local package

	for package in $(rf_package_list "$@"); do
		rf_installed "$package" || printf '%s ' "$package"
	done
}

rf_need()
{
	local missing root='' updated=

	case " $* " in
		*" server "*)
			# No server: which one can be had decides the packages' names.
			if ! rf_find_server; then
				command -v apt-get >/dev/null ||
					rf_die "no PostgreSQL server found: install $RF_MAJOR_MIN or later with its development files, or set PG_CONFIG"
				if [ "$(id -u)" = 0 ]; then
					apt-get update -q >/dev/null 2>&1 || rf_say "apt-get update failed; going on" >&2
					updated=1
				fi
				if ! rf_offered_server; then
					[ -n "$RF_MAJOR" ] || [ -n "$updated" ] ||
						rf_die "no PostgreSQL server is installed; first run: sudo apt-get update"
					rf_die "PostgreSQL $RF_MAJOR_MIN or later is required; this system offers ${RF_MAJOR:-none}. $RF_PGDG"
				fi
			fi
			;;
	esac

	if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
		missing=$(rf_missing_packages "$@")
		if [ -n "$missing" ]; then
			if [ "$(id -u)" != 0 ]; then
				root='sudo -n'
				if ! $root true 2>/dev/null; then
					rf_say "Packages are missing, and only root may install them. Please run:" >&2
					rf_say "    sudo apt-get install --no-install-recommends ${missing% }" >&2
					exit 1
				fi
			fi
			[ -n "$updated" ] || $root apt-get update -q >/dev/null 2>&1 ||
				rf_say "apt-get update failed; going on" >&2
			# shellcheck disable=SC2086 # a list of words
			rf_apt_install "$root" $missing
		fi
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
			command -v pg_bsd_indent >/dev/null ||
				rf_die "pg_bsd_indent not found (package pg-bsd-indent; in PostgreSQL's sources: src/tools/pg_bsd_indent)"
			;;
	esac
}
