#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZ_TIME each (25s, or a number of inputs such as 1000000x), FUZZ_JOBS (4)
# at a time with one worker each, and prints a table. FUZZ_ONLY is a pattern of the targets to run. What makes a target
# fail stays in the package's testdata/fuzz, where every later test run reads it. A target that ended early, without a
# fault, is run once more, and has failed when it ends early again. With NUMATHROTTLE_FIGURES, the name of
# a folder, it also writes the sums there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly GO="${GO:-go}" FUZZ_TIME="${FUZZ_TIME:-25s}" FUZZ_JOBS="${FUZZ_JOBS:-4}" FUZZ_ONLY="${FUZZ_ONLY:-.}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cache="$("$GO" env GOCACHE)/fuzz"
module="$("$GO" list -m)"

# What steers the fuzzer is counted in this module and in the parser of its files only. "go test -fuzz" counts in every
# dependency, which takes minutes to compile and makes the inputs several times slower.
readonly INSTRUMENTS=("-gcflags=$module/...=-d=libfuzzer" "-gcflags=go.yaml.in/yaml/v3=-d=libfuzzer")

# build compiles the tests of every package that has targets to run, and lists these: binary, directory, package, name.
build() {
	local dir path files n=0
	while read -r dir path files; do
		# shellcheck disable=SC2086 # a list of file names
		(cd "$dir" && grep -ho '^func Fuzz[A-Za-z0-9_]*' $files | grep -qE "$FUZZ_ONLY") || continue
		n=$((n + 1))
		"$GO" test -c "${INSTRUMENTS[@]}" -o "$work/$n.test" "$path"
		(cd "$dir" && "$work/$n.test" -test.list '^Fuzz') | { grep -E "$FUZZ_ONLY" || true; } | while read -r name; do
			printf '%s %s %s %s\n' "$work/$n.test" "$dir" "$path" "$name"
		done
	done < <("$GO" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}} {{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}{{end}}' ./...)
}

# milliseconds prints how long a time of Go's is (25s, 1m30s, 0.5s, 500ms); nothing for a number of inputs.
milliseconds() {
	local text="$1" sum=0
	while [[ $text =~ ^([0-9]+)(\.([0-9]+))?(ms|h|m|s) ]]; do
		local unit=1000 fraction="${BASH_REMATCH[3]}000"
		case "${BASH_REMATCH[4]}" in ms) unit=1 ;; m) unit=60000 ;; h) unit=3600000 ;; esac
		sum=$((sum + 10#${BASH_REMATCH[1]} * unit + 10#${fraction:0:3} * unit / 1000))
		text="${text#"${BASH_REMATCH[0]}"}"
	done
	[[ -n $text ]] || printf '%d' "$sum"
}

# now prints the time in milliseconds.
now() { printf '%d' "$((${EPOCHREALTIME//[!0-9]/} / 1000))"; }

# fuzz runs one target once, and prints how it ended: ok, FAILED, or early when the end of the time was said to have come
# before 90 % of it.
fuzz() {
	local binary="$1" dir="$2" path="$3" name="$4" log="$5" began took
	began="$(now)"
	if (cd "$dir" && "$binary" -test.run='^$' -test.fuzz="^$name\$" -test.fuzztime="$FUZZ_TIME" -test.fuzzcachedir="$cache/$path" \
		-test.fuzzminimizetime=1000x -test.parallel=1 -test.timeout=0) >"$log" 2>&1 </dev/null; then
		echo ok
		return
	fi
	took=$(($(now) - began))
	# Go before 1.27 may take the end of the time for a failure (https://go.dev/issue/75804); a target that fails says
	# more, and leaves its input behind. A number of inputs has no such end.
	if [[ -z $whole ]] || ! grep -q '^    context deadline exceeded$' "$log" || grep -q 'Failing input' "$log"; then
		echo FAILED
	elif ((took * 10 < whole * 9)); then
		printf 'fuzz: the time was over after %d of %d ms\n' "$took" "$whole" >>"$log"
		echo early
	else
		echo ok
	fi
}

# run fuzzes one target, once more when it ended early, and leaves a line for the table: name, inputs, new interesting
# ones, seconds, result.
run() {
	local binary="$1" dir="$2" path="$3" name="$4" start=$SECONDS result last executed=0 found=0
	local log="$work/${path//\//_}.$name.log" short="${path#"$module"}"
	short="${short#/}"
	mkdir -p "$cache/$path"
	result="$(fuzz "$binary" "$dir" "$path" "$name" "$log")"
	if [[ $result == early ]]; then
		start=$SECONDS
		result="$(fuzz "$binary" "$dir" "$path" "$name" "$log")"
		[[ $result != early ]] || result=FAILED
	fi
	# The fuzzer's last count: "fuzz: elapsed: 25s, execs: 500000 (20000/sec), new interesting: 7 (total: 90)".
	last="$(grep -o 'execs: [0-9]* .*new interesting: [0-9]*' "$log" | tail -n 1)" || true
	if [[ -n $last ]]; then
		executed="${last#execs: }" executed="${executed%% *}" found="${last##* }"
	fi
	# A target that ran nothing has shown nothing.
	[[ $executed -gt 0 ]] || result=FAILED
	if [[ $result != ok ]]; then
		printf '==> %s %s\n%s\n' "${short:-.}" "$name" "$(tail -n 60 "$log")" >"$log.failed"
	fi
	printf '%s %s %s %s %s\n' "${short:+$short.}$name" "$executed" "$found" "$((SECONDS - start))" "$result" >"$log.line"
}

whole="$(milliseconds "$FUZZ_TIME")"
build >"$work/targets"
[[ -s $work/targets ]] || {
	printf 'fuzz: no target matches %s\n' "$FUZZ_ONLY" >&2
	exit 1
}
printf 'fuzz: %d targets, %s each, %d at a time\n' "$(wc -l <"$work/targets")" "$FUZZ_TIME" "$FUZZ_JOBS"
while read -r binary dir path name; do
	while [[ $(jobs -rp | wc -l) -ge $FUZZ_JOBS ]]; do wait -n; done
	run "$binary" "$dir" "$path" "$name" &
done <"$work/targets"
wait

cat "$work"/*.log.failed 2>/dev/null || true
sort "$work"/*.log.line >"$work/table"
{
	printf 'target inputs new seconds result\n'
	cat "$work/table"
} | awk '{ printf "%-58s %12s %6s %8s  %s\n", $1, $2, $3, $4, $5 }'

if [[ -n ${NUMATHROTTLE_FIGURES:-} ]]; then
	awk '{ n += $2 } END { printf "%d targets, %d inputs\n", NR, n }' "$work/table" >"$NUMATHROTTLE_FIGURES/fuzz"
fi
! grep -q ' FAILED$' "$work/table"
