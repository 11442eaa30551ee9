#!/usr/bin/env bash
# Prints the directory for the files of tests. The servers that they start keep their data in files, and a disk that others
# keep busy answers late, which would be measured instead of the pools: so it is in memory where there is room, and where
# programs may be run from. Nothing is lost by that: servers are killed in the tests, the machine is not.
set -euo pipefail

readonly IN_MEMORY=/dev/shm ENOUGH_MB=2048

# fits tells whether a directory has room enough, and lets programs be run.
fits() {
	local free probe rc=0
	free="$(df -Pm "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')"
	[[ ${free:-0} -ge $ENOUGH_MB ]] || return 1
	probe="$(mktemp "$1/probe.XXXXXX" 2>/dev/null)" || return 1
	printf '#!/bin/sh\n' >"$probe"
	chmod 700 "$probe"
	"$probe" 2>/dev/null || rc=$?
	rm -f "$probe"
	return "$rc"
}

if fits "$IN_MEMORY"; then
	printf '%s\n' "$IN_MEMORY"
else
	printf '%s\n' "${TMPDIR:-/tmp}"
fi
