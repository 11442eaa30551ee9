#!/usr/bin/env bash
# Refuses to release what was measured on something else: each step that docs/reliability.md shows, and the run of docs/benchmarks.md,
# has to be of a commit that is at most 100 commits behind, and all steps have to have ended well. It is for releases; a change of the
# code need not wait for a soak.
#
#   scripts/evidence.sh [COMMIT]    HEAD by default; EVIDENCE_BEHIND=200 allows 200 commits
set -euo pipefail

cd "${EVIDENCE_ROOT:-$(dirname "${BASH_SOURCE[0]}")/..}"
commit="$(git rev-parse --verify --quiet "${1:-HEAD}^{commit}")" || {
	printf 'evidence: the commit is "%s", which is not in the repository\n' "$1" >&2
	exit 1
}
most="${EVIDENCE_BEHIND:-100}"
[[ $most =~ ^[0-9]{1,6}$ ]] || {
	printf 'evidence: EVIDENCE_BEHIND is "%s", allowed: a whole number\n' "$most" >&2
	exit 1
}
bad=0

fault() {
	printf 'evidence: %s\n' "$*" >&2
	bad=1
}

# near PAGE WHAT COMMIT HOW tells when a run is of a commit too far behind, and how to run it anew.
near() {
	local page="$1" what="$2" of="$3" how="$4" tested behind
	if [[ ! $of =~ ^[0-9a-f]{7,40}$ ]]; then
		fault "$page: $what is of the commit \"$of\", allowed: a commit without changes beside it: run $how"
	elif ! tested="$(git rev-parse --verify --quiet "$of^{commit}")" || ! git merge-base --is-ancestor "$tested" "$commit"; then
		fault "$page: $what is of $of, which is no commit before $commit: run $how"
	elif behind="$(git rev-list --count "$tested..$commit")" && ((behind > most)); then
		fault "$page: $what is of $of, $behind commits behind, allowed: $most: run $how"
	fi
}

steps=0
while IFS='|' read -r _ name of began _ ended _; do
	name="${name//[[:space:]]/}" of="${of//[[:space:]]/}" ended="$(xargs <<<"$ended")"
	steps=$((steps + 1))
	if [[ $began == *"not run"* || $ended == *"not run"* || -z $of ]]; then
		fault "docs/reliability.md: $name was not run: run make soak"
		continue
	fi
	[[ $ended == ok ]] || fault "docs/reliability.md: $name ended with \"$ended\", allowed: ok"
	near docs/reliability.md "$name" "$of" "make soak"
done < <(awk '/^\| step \| commit \|/ { on = 1; getline; next } on && !/^\|/ { exit } on' docs/reliability.md)
((steps > 0)) || fault "docs/reliability.md has no table of steps: run make soak"

of="$(sed -n 's/^| commit | *\([^ |]*\) *|$/\1/p' docs/benchmarks.md | head -n 1)"
if [[ -z $of ]]; then
	fault "docs/benchmarks.md names no commit: run make bench"
else
	near docs/benchmarks.md "the run" "$of" "make bench"
fi
exit "$bad"
