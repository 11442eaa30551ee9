#!/usr/bin/env bash
# Prints the tests of some folders that ask internal/testkit how much to do, themselves or by a helper, as a pattern for go test -run. They
# are those that make norace has to run: the others have run whole with the race detector. Whoever only mentions the name of such a helper
# counts as asking: rather too many than too few.
set -euo pipefail

[[ $# -gt 0 ]] || {
	printf 'usage: %s FOLDER...\n' "$0" >&2
	exit 2
}

# asking FOLDER prints the names of its tests, one a line.
asking() {
	awk '
		/^func / {
			name = $0
			sub(/^func (\([^)]*\) )?/, "", name)
			sub(/[^A-Za-z0-9_].*/, "", name)
		}
		!/^[ \t]*\/\// { body[name] = body[name] "\n" substr($0, length(name) && /^func / ? index($0, name) + length(name) : 1) }
		/^[^\/]*testkit\.(SkipRace|Fewer|Some|Race)([^A-Za-z]|$)/ { asks[name] = 1 }
		END {
			for (more = 1; more;) {
				more = 0
				for (helper in asks) {
					if (helper ~ /^(Test|Benchmark|Fuzz|Example)/ || done[helper]++) continue
					for (f in body)
						if (!(f in asks) && body[f] ~ "(^|[^A-Za-z0-9_])" helper "([^A-Za-z0-9_]|$)") more = asks[f] = 1
				}
			}
			for (f in asks) if (f ~ /^Test/) print f
		}
	' "$1"/*_test.go
}

names="$(for folder in "$@"; do asking "$folder"; done | LC_ALL=C sort -u | paste -sd '|')"
[[ -n $names ]] || {
	printf 'no test in %s asks internal/testkit\n' "$*" >&2
	exit 1
}
printf '^(%s)$\n' "$names"
