package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/short"
)

// fakeGo stands in for the go command: its "test -c" makes the fake below.
const fakeGo = `#!/usr/bin/env bash
case "$1 $2" in
"env GOCACHE") echo "$FAKE/cache" ;;
"list -m") echo example.com/module ;;
"list -f") echo "$FAKE example.com/module fuzz_test.go" ;;
"test -c")
	while [[ $1 != -o ]]; do shift; done
	cp "$FAKE/binary" "$2" ;;
esac
`

// fakeBinary stands in for a test binary. Each target says what it does when it is fuzzed, and how
// often it was.
const fakeBinary = `#!/usr/bin/env bash
if [[ $1 == -test.list ]]; then
	grep -o 'Fuzz[A-Za-z]*' "$FAKE/fuzz_test.go"
	exit
fi
for word; do [[ $word != -test.fuzz=* ]] || name="${word#*=^}" name="${name%$}"; done
echo run >>"$FAKE/$name.runs"
times="$(wc -l <"$FAKE/$name.runs")"
over() { # the end of the time, taken for a failure after so many seconds
	sleep "$1"
	printf -- '--- FAIL: %s\n    context deadline exceeded\nFAIL\n' "$name"
	exit 1
}
echo "fuzz: elapsed: 1s, execs: 100$times (20/sec), new interesting: 7 (total: 9)"
case "$name" in
FuzzWell) ;;
FuzzToTheEnd) over 1 ;;
FuzzEarlyOnce) if ((times == 1)); then over 0.1; else over 1; fi ;;
FuzzEarlyThenWell) ((times > 1)) || over 0.1 ;;
FuzzEarly) over 0.1 ;;
FuzzFails) printf 'Failing input written to testdata\n' && over 1 ;;
FuzzPanics) echo panic && exit 2 ;;
esac
`

// The end of the time, which Go may take for a failure, excuses only a target that ran as long
// as it should.
func TestFuzzTargetsThatEndEarly(t *testing.T) {
	short.Skip(t, "it runs the fuzzer")
	want := map[string]struct {
		result     string
		runs       int
		executions uint64
	}{
		"FuzzWell":          {"ok", 1, 1001},
		"FuzzToTheEnd":      {"ok", 1, 1001},
		"FuzzEarlyOnce":     {"ok", 2, 1002},
		"FuzzEarlyThenWell": {"ok", 2, 1002},
		"FuzzEarly":         {"FAILED", 2, 1002},
		"FuzzFails":         {"FAILED", 1, 1001},
		"FuzzPanics":        {"FAILED", 1, 1001},
	}
	fake := t.TempDir()
	t.Setenv("FAKE", fake)
	t.Setenv("GO", filepath.Join(fake, "go"))
	t.Setenv("FUZZ_JOBS", "8")
	t.Setenv("FUZZ_TIME", "1s")
	t.Setenv("FUZZ_ONLY", ".")
	t.Setenv("NUMATHROTTLE_FIGURES", fake)
	var targets strings.Builder
	for name := range want {
		targets.WriteString("func " + name + "(f *testing.F) {\n")
	}
	for name, content := range map[string]string{"go": fakeGo, "binary": fakeBinary, "fuzz_test.go": targets.String()} {
		require.NoError(t, os.WriteFile(filepath.Join(fake, name), []byte(content), 0o755))
	}

	out, err := script(t, "scripts/fuzz.sh")
	require.Error(t, err, out)
	require.Regexp(t, `(?s)==> \. FuzzEarly\n.*fuzz: the time was over after \d+ of 1000 ms`, out)
	for name, w := range want {
		require.Regexp(t, fmt.Sprintf(`(?m)^%s +%d +\d+ +\d+  %s$`, name, w.executions, w.result), out)
		runs, err := os.ReadFile(filepath.Join(fake, name+".runs"))
		require.NoError(t, err)
		require.Equal(t, w.runs, strings.Count(string(runs), "\n"), name)
	}
	figures, err := os.ReadFile(filepath.Join(fake, "fuzz"))
	require.NoError(t, err)
	require.Equal(t, "7 targets, 7010 inputs\n", string(figures))

	t.Setenv("FUZZ_ONLY", "FuzzToTheEnd|FuzzWell")
	out, err = script(t, "scripts/fuzz.sh")
	require.NoError(t, err, out)
}
