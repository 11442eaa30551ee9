package driver

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// Variables that make TestPermitsAreSpaced longer, or repeat part of it.
const (
	permitsVariable    = "NUMATHROTTLE_PERMITS"     // how many are issued at least; 100,000 when unset
	permitSeedVariable = "NUMATHROTTLE_PERMIT_SEED" // the first seed; 0 when unset
)

// Permits are a spacing apart on the store's clock, exactly, whatever happens to the
// store, its clock and the network.
func TestPermitsAreSpaced(t *testing.T) {
	const each, enough = 2_500, 100_000
	permits, first := testkit.Fewer(testkit.Fewer(enough)), uint64(number(t, permitSeedVariable, 0))
	if testing.Short() {
		permits = min(permits, 10_000)
	}
	permits = number(t, permitsVariable, permits)
	began := time.Now()
	figures := proof.Pools{Subject: "the state machine that issues slots", First: first}
	var sum [6]int
	var faults [len(issueFaults)]int
	for seed := first; sum[0] < permits; seed++ {
		is := newIssue(t, seed)
		is.run(each)
		if n := is.violations(); n > 0 {
			v := proof.Violation{
				Promise: "R10", Text: fmt.Sprintf("%d permits of seed %d came too close to the one before", n, seed),
				Replay: fmt.Sprintf("%s=%d %s=1 go test -run '^TestPermitsAreSpaced$' ./pkg/consensus/driver", permitSeedVariable, seed, permitsVariable),
			}
			figures.Violations = append(figures.Violations, v)
			t.Errorf("%s\nagain: %s", v.Text, v.Replay)
		}
		for i, n := range is.count {
			sum[i] += n
		}
		for i, n := range is.faults {
			faults[i] += n
		}
		figures.Runs++
		figures.Hours += is.now.Hours()
	}
	figures.Granted, figures.Took = uint64(sum[0]), time.Since(began)
	for i, name := range issueFaults {
		figures.Faults = append(figures.Faults, proof.Fault{Name: name, Times: uint64(faults[i])})
	}
	for i, what := range [...]string{
		1: "requests refused", 2: "requests answered by a frozen pool", 3: "reservations given back",
		4: "times something was forgotten", 5: "requests of others before an answer was read back",
	} {
		if i > 0 {
			figures.Notes = append(figures.Notes, proof.Note{What: what, Figure: strconv.Itoa(sum[i])})
		}
	}
	t.Logf("%d permits in %d runs, faults %v, %v", sum[0], figures.Runs, faults, figures.Notes)
	proof.Record(t, "permits", figures)
	if sum[0] >= enough { // or it says little
		for i, n := range sum {
			require.Positive(t, n, "count %d", i)
		}
		for i, n := range faults {
			require.Positive(t, n, issueFaults[i])
		}
	}
}

// number returns the value of a variable, or what it is when it is unset.
func number(t *testing.T, variable string, unset int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	require.GreaterOrEqual(t, n, 0, variable)
	return n
}
