#!/usr/bin/env bash
# Prints which tests are skipped with the race detector, because they take ten times as long with it: a line for each
# package, with a pattern of its tests. They are the ones that call race.Skip, as a statement of their own outside of every
# block: a call elsewhere is a fault, for that test would be run nowhere.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly GO="${GO:-go}"

any=
while read -r dir path; do
	compgen -G "$dir/*_test.go" >/dev/null || continue
	tests="$(cat "$dir"/*_test.go | awk '
		/^func Test/ { name = $2; sub(/\(.*/, "", name) }
		/^\trace\.Skip\(t\)/ { print name }' | paste -sd '|')"
	calls="$(cat "$dir"/*_test.go | grep -c 'race\.Skip(' || true)"
	[[ $calls -eq $(tr '|' '\n' <<<"$tests" | grep -c . || true) ]] || {
		echo "$path: $calls calls of race.Skip, of which not all stand at the top of a test" >&2
		exit 1
	}
	[[ -n $tests ]] || continue
	any=1
	printf '%s ^(%s)$\n' "$path" "$tests"
done < <("$GO" list -f '{{.Dir}} {{.ImportPath}}' ./...)
[[ -n $any ]] || {
	echo "no test calls race.Skip" >&2
	exit 1
}
