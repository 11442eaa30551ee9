#!/usr/bin/env bash
# Prints which tests are less, or nothing, with the race detector, with which they would take ten times as long: a line for
# each package, with a pattern of its tests. They are the ones that call race.Skip, race.Fewer or race.Some. A call outside of
# a test is a fault, for nobody would know which tests it makes less of; so is race.Skip inside of a block, for it may be skipped.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly GO="${GO:-go}"

any=
while read -r dir path; do
	compgen -G "$dir/*_test.go" >/dev/null || continue
	tests="$(cat "$dir"/*_test.go | awk -v path="$path" '
		/^func / { name = "" }
		/^func Test/ { name = $2; sub(/\(.*/, "", name) }
		/race\.(Skip|Fewer|Some)\(/ {
			if (name == "" || /race\.Skip\(/ && !/^\trace\.Skip\(t, "/) {
				print path ": a call of package race is at the wrong place: " $0 >"/dev/stderr"
				exit 1
			}
			if (!seen[name]++) { print name }
		}' | paste -sd '|')"
	[[ -n $tests ]] || continue
	any=1
	printf '%s ^(%s)$\n' "$path" "$tests"
done < <("$GO" list -f '{{.Dir}} {{.ImportPath}}' ./...)
[[ -n $any ]] || {
	echo "no test calls package race" >&2
	exit 1
}
