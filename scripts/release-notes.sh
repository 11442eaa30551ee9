#!/usr/bin/env bash
# Prints what CHANGELOG.md says of a version, without its heading. It fails for a version of which it says nothing, so that
# there is no release without.
#
#   scripts/release-notes.sh v1.2.3 [CHANGELOG]
set -euo pipefail

fail() {
	printf 'release-notes: %s\n' "$*" >&2
	exit 1
}

version="${1:-}" changelog="${2:-$(dirname "${BASH_SOURCE[0]}")/../CHANGELOG.md}"
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "the version is \"$version\", allowed: v1.2.3 or v1.2.3-rc.1"

notes="$(awk -v heading="## [${version#v}]" '
	index($0, "## ") == 1 || /^\[[^]]+\]: / { inside = index($0, heading) == 1; next }
	inside
' "$changelog")"
notes="$(sed -e '/./,$!d' <<<"$notes")"
[[ -n $notes ]] || fail "$changelog has nothing below \"## [${version#v}]\""
printf '%s\n' "$notes"
