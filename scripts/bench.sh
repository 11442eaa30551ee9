#!/usr/bin/env bash
# Runs the benchmarks and writes their output, with the commit and the date, into docs/benchmarks.md. With arguments for
# go test it runs and prints a part: scripts/bench.sh -bench Peers
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly GO="${GO:-go}" page=docs/benchmarks.md

run() { "$GO" -C benchmarks test -vet=off -run '^$' -timeout 0 "$@"; }

if (($# > 0)); then
	run "$@"
	exit
fi
commit="$(git rev-parse --short HEAD)"
[[ -z $(git status --porcelain -- . ":!$page") ]] || commit+=-dirty
date="$(LC_ALL=C date -u '+%-d %B %Y, %H:%M UTC')"
text="$(mktemp)"
trap 'rm -f "$text"' EXIT
{
	# Round by round: what is compared runs side by side, also on a machine whose speed changes.
	for _ in 1 2 3 4 5 6; do
		run -bench HotPath -cpu 1,2
		run -bench 'Handler|Sync|Lateness'
	done
	run -bench 'Wait|Pool|Peers'
} | tee "$text"
# The rounds of each benchmark together, in the order in which they came.
awk '
	/^PASS$/ || /^ok / || /^(goos|goarch|pkg|cpu):/ && seen[$0]++ { next }
	!($1 in rows) { names[++n] = $1 }
	{ rows[$1] = rows[$1] $0 "\n" }
	END { for (i = 1; i <= n; i++) printf "%s", rows[names[i]] }
' "$text" >"$text.rounds"
mv "$text.rounds" "$text"
awk -v text="$text" -v commit="$commit" -v date="$date" -v go="$("$GO" env GOVERSION), $(nproc) cores" '
	/^<!-- run: / {
		printf "%s\n|  |  |\n| --- | --- |\n| commit | %s |\n| date | %s |\n| machine | %s |\n\n```\n", $0, commit, date, go
		while ((getline line < text) > 0) print line
		print "```"
		skip = 1
	}
	/^<!-- end -->/ { skip = 0 }
	!skip
' "$page" >"$text.page"
cat "$text.page" >"$page"
rm "$text.page"
