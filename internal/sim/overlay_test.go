//go:build numathrottle_mutants

package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A sourceMutant is an edit of a file of the product that makes a promise break. The product itself has no switch
// for it: the tests are compiled with the edited file in place of the real one, by go test -overlay.
type sourceMutant struct {
	name     string
	file     string // from the root of the module
	old, new string
	packages string
	tests    string // of which one must fail
}

var sourceMutants = []sourceMutant{
	{
		"a failed request is retried at the fast interval", "internal/protocol/pace.go",
		"return min(each<<min(p.failures-1, 10), most)", "return min(each, most, usual/10)",
		"./internal/sim", "TestAnOverloadPasses/500/queue/0.6",
	},
	{
		"retries have no jitter", "internal/protocol/pace.go",
		"return after(p.backoff(), 0.5)", "return after(p.backoff(), 0)",
		"./internal/protocol", "TestFailuresBackOff",
	},
	{
		"intervals are not stretched", "internal/protocol/load.go",
		"l.factor = min(2*l.stretch(), most)", "l.factor = 1",
		"./internal/sim", "TestAnOverloadPasses/500/.*/0.6",
	},
	{
		"a large pool with a slow store asks twice for each change", "internal/protocol/pace.go",
		"return p.Answer.Live >= largePool && p.load.stretch() > 1", "return false",
		"./internal/sim", "TestHoldersRenewBeforeJoinersJoin/drop",
	},
	{
		"who joins has as much patience as who holds a share", "pkg/consensus/driver/store.go",
		"return left / 4", "return left * 3 / 4",
		"./internal/sim", "TestHoldersRenewBeforeJoinersJoin/drop",
	},
	{
		"requests that are too old are carried out", "pkg/consensus/redisstore/lua/expiry.lua",
		"if ARGV[20] ~= '0'", "if ARGV[20] == 'never'",
		"./pkg/consensus/redisstore", "TestAnExpiredRequestIsNotCarriedOut",
	},
	{
		"each retry asks for the stream's information", "pkg/consensus/natsstore/store.go",
		"st.info, st.lost = seen.info, seen.entry.seq", "st.lost = seen.entry.seq",
		"./pkg/consensus/natsstore", "TestRetriesDoNotAskForTheStream",
	},
	{
		"an answer to a retry is believed whatever has become of the bucket", "pkg/consensus/natsstore/store.go",
		"case at.Remembers > 0 || known != nil:", "case at.Remembers > 0:",
		"./pkg/consensus/natsstore", "TestBucketMadeAnewBetweenTries",
	},
	{
		"a leader that was cut off is asked a hundred times", "pkg/consensus/natsstore/store.go",
		"case known != nil && e.seq <= lost:", "case known != nil && e.seq <= lost && lost < 0:",
		"./pkg/consensus/natsstore", "TestALeaderThatWasCutOffIsLeft",
	},
	{
		"a caller that gives up costs its tag a turn", "internal/engine/waitqueue/tagqueue.go",
		"	l.line.remove(w)\n	heap.Fix(&f.busy, l.at)",
		"	l.line.remove(w)\n	l.start += float64(w.Least) / l.Weight()\n	heap.Fix(&f.busy, l.at)",
		"./pkg/throttle", "TestImpatientCallersCostTheirTagNothing/reserved/.*x/1s",
	},
	{
		"who waits for its tag's tokens comes before all others at the limit", "internal/engine/waitqueue/places.go",
		"			a.stands[i], early = w.Early, early || w.Early", "			a.stands[i], early, standing = w.Early, early || w.Early, standing+2",
		"./pkg/throttle", "TestScenarios/quotas/.*beside_a_hog_with_a_total",
	},
}

// TestSourceMutants makes each edit once, and expects a test to fail.
func TestSourceMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, m := range sourceMutants {
		t.Run(m.name, func(t *testing.T) {
			file := filepath.Join(root, m.file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), m.old), "the edit must fit one place of %s", m.file)
			dir := t.TempDir()
			mutant, overlay := filepath.Join(dir, "mutant"), filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600))
			replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutant}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, replace, 0o600))
			test := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count", "1", "-overlay", overlay, "-run", m.tests, m.packages)
			test.Dir = root
			output, err := test.CombinedOutput()
			require.Error(t, err, "no test has noticed:\n%s", output)
			require.Contains(t, string(output), "--- FAIL", "it must compile")
		})
	}
}
