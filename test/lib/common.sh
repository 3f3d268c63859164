# common.sh: what every script of test/ needs: messages, a temporary directory
# that is always removed, and running commands as a user who is not root.
#
# Source it, then call rf_init.  It sets
#	RF_ROOT		the repository
#	RF_TMP		a temporary directory, owned by the user that runs commands
#	RF_AS		the command prefix that becomes that user (empty: already so)
#
# shellcheck shell=bash

set -euo pipefail

RF_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
RF_TMP=
RF_AS=()

rf_say()
{
	printf '%s\n' "$*"
}

rf_die()
{
	printf 'rangefilter: %s\n' "$*" >&2
	exit 1
}

# Makes the temporary directory and arranges that it goes away, and with it
# everything started in it, however the script ends.
rf_init()
{
	local variable

	# Neither the caller's servers nor the caller's make are ours.
	for variable in ${!PG@}; do
		[ "$variable" = PG_CONFIG ] || unset "$variable"
	done
	unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS
	export LC_ALL=C
	umask 022

	trap rf_cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM

	RF_TMP=$(mktemp -d "${TMPDIR:-/tmp}/rangefilter.XXXXXX")
	# A socket's path has room for 107 bytes.
	if [ "${#RF_TMP}" -gt 60 ]; then
		rmdir "$RF_TMP"
		RF_TMP=$(mktemp -d /tmp/rangefilter.XXXXXX)
	fi
	mkdir "$RF_TMP/running"
	cd "$RF_TMP"
}

# To be called once the packages are there: the server's package brings the
# user postgres.  A server refuses to run as root, so nothing else does either.
rf_choose_user()
{
	local user

	export HOME=$RF_TMP TMPDIR=$RF_TMP/tmp
	mkdir -p "$TMPDIR"
	chmod 755 "$RF_TMP"
	[ "$(id -u)" = 0 ] || return 0
	for user in postgres nobody; do
		if id "$user" >/dev/null 2>&1; then
			RF_AS=(setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups --)
			export USER=$user LOGNAME=$user
			chown -R "$user:" "$RF_TMP"
			"${RF_AS[@]}" test -x "$RF_TMP" ||
				rf_die "user $user cannot enter $RF_TMP: set TMPDIR to a directory all may enter"
			return 0
		fi
	done
	rf_die "running as root, and neither user postgres nor user nobody exists"
}

# Runs a command as that user.  It gets a session of its own, of which we take
# note, so that a signal interrupts our wait and the clean-up ends the command
# with all its children.
rf_run()
{
	local pid status=0

	setsid env --default-signal=INT,QUIT "${RF_AS[@]}" "$@" <&0 &
	pid=$!
	: >"$RF_TMP/running/$pid"
	wait "$pid" || status=$?
	rm -f "$RF_TMP/running/$pid"
	return "$status"
}

# Ends commands that rf_run left, then every server whose data directory is in
# RF_TMP, and removes RF_TMP.  RF_KEEP=1 keeps the files.
rf_cleanup()
{
	local status=$? file pid pids=() tries

	trap '' HUP INT TERM
	trap - EXIT
	[ -n "$RF_TMP" ] || exit "$status"
	cd /

	# shellcheck disable=SC2046 # a list of processes
	kill $(jobs -p) 2>/dev/null || true
	for file in "$RF_TMP"/running/*; do
		[ -e "$file" ] || continue
		kill -TERM -- "-${file##*/}" 2>/dev/null || true
	done
	while IFS= read -r file; do
		pid=$(head -n 1 "$file" 2>/dev/null) || continue
		# A server works in its data directory: a stale file names nobody.
		if [ -n "$pid" ] && [ "/proc/$pid/cwd" -ef "${file%/*}" ]; then
			kill -QUIT "$pid" 2>/dev/null && pids+=("$pid")
		fi
	done < <(find "$RF_TMP" -name postmaster.pid 2>/dev/null)
	for tries in $(seq 100); do
		for pid in "${pids[@]}"; do
			[ ! -e "/proc/$pid" ] || { sleep 0.1; continue 2; }
		done
		break
	done

	if [ -n "${RF_KEEP:-}" ]; then
		rf_say "kept: $RF_TMP"
	else
		# What is just ending may still write: try again.
		for tries in 1 2 3 4 5; do
			rm -rf "$RF_TMP" 2>/dev/null && break
			sleep 0.5
		done
		[ ! -e "$RF_TMP" ] || rf_say "could not remove all of $RF_TMP (try $tries)" >&2
	fi
	exit "$status"
}
