#!/usr/bin/env bash
# Builds the programs as they are shipped: static, without the paths of this machine, and with the version and the commit
# of the checkout in them, which --version prints. The Dockerfile, the releases and the smoke test build with this script and
# with no other flags.
#
#   scripts/build.sh OUT [PROGRAM ...]    into the folder OUT; without a PROGRAM all three
#
# GOOS and GOARCH choose the platform, as always; GO the toolchain.
set -euo pipefail

readonly GO="${GO:-go}"
readonly PROGRAMS=(./cmd/numathrottle ./examples/llm-map ./examples/http-sink)

fail() {
	printf 'build: %s\n' "$*" >&2
	exit 1
}

[[ $# -ge 1 && -n $1 ]] || fail "no folder to build into, allowed: scripts/build.sh OUT [PROGRAM ...]"
mkdir -p "$1"
out="$(cd "$1" && pwd)"
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=()
for program in "$@"; do
	package=""
	for p in "${PROGRAMS[@]}"; do
		[[ ${p##*/} != "$program" ]] || package="$p"
	done
	[[ -n $package ]] || fail "$program is no program, allowed: ${PROGRAMS[*]##*/}"
	packages+=("$package")
done
[[ ${#packages[@]} -gt 0 ]] || packages=("${PROGRAMS[@]}")

# Without a checkout, or without git, there is no version to be had; the Go tool would fail on a git that refuses to work.
vcs=false
if git rev-parse --verify -q HEAD >/dev/null 2>&1; then vcs=true; fi

# No CGO: nothing to link against in an empty image, and one toolchain for every platform. What only a debugger reads is left out
# when linking, so that it need not be compiled.
CGO_ENABLED=0 "$GO" build -trimpath -buildvcs="$vcs" -gcflags='all=-dwarf=false' -ldflags='-s -w' -o "$out/" "${packages[@]}"
