//go:build numathrottle_faults

package chaos

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

// Variables that make a test longer, or repeat it.
const (
	roundsVariable = "NUMATHROTTLE_FAULT_ROUNDS"
	seedVariable   = "NUMATHROTTLE_FAULT_SEED"
)

// rounds is how often every lane goes through its faults.
func rounds(t testing.TB) int {
	t.Helper()
	return int(positive(t, roundsVariable))
}

// seed is what order and timing of the faults are drawn from.
func seed(t testing.TB) uint64 {
	t.Helper()
	return positive(t, seedVariable)
}

// positive returns the value of a variable, 1 when it is unset.
func positive(t testing.TB, variable string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(variable), "1"), 10, 31)
	require.NoError(t, err, variable)
	require.Positive(t, n, variable)
	return n
}

// replay is the command that runs a test again with the same seed.
func replay(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%s=%d %s=%d go test -tags numathrottle_faults -run '^%s$' ./internal/chaos",
		seedVariable, seed(t), roundsVariable, rounds(t), t.Name())
}

// A ledger gathers what the lanes of a test have measured. Its methods may be
// called from several goroutines.
type ledger struct {
	promise string // such as "R7"

	mu         sync.Mutex
	began      time.Time
	figures    proof.Pools
	recoveries map[string][]time.Duration
}

// newLedger returns a ledger for a test. subject says what runs, with versions.
func newLedger(t testing.TB, promise, subject string) *ledger {
	t.Helper()
	return &ledger{
		promise: promise, began: time.Now(), recoveries: map[string][]time.Duration{},
		figures: proof.Pools{Subject: subject, Runs: uint64(rounds(t)), First: seed(t)},
	}
}

// addFault notes a fault, how long recovery took, and how long it might.
func (l *ledger) addFault(name string, took, allowed time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.figures.Faults, func(f proof.Fault) bool { return f.Name == name })
	if i < 0 {
		i = len(l.figures.Faults)
		l.figures.Faults = append(l.figures.Faults, proof.Fault{Name: name, Allowed: allowed})
	}
	l.figures.Faults[i].Times++
	l.figures.Faults[i].Allowed = max(l.figures.Faults[i].Allowed, allowed)
	l.recoveries[name] = append(l.recoveries[name], took)
}

// addWindows keeps the worst window of each length.
func (l *ledger) addWindows(windows []proof.Window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range windows {
		i := slices.IndexFunc(l.figures.Windows, func(o proof.Window) bool { return o.Length == w.Length })
		switch {
		case i < 0:
			l.figures.Windows = append(l.figures.Windows, w)
		case w.Worst > l.figures.Windows[i].Worst:
			l.figures.Windows[i] = w
		}
	}
}

// addPool notes a pool that has done its work.
func (l *ledger) addPool(p *pool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures.Processors += len(p.workers)
	l.figures.Hours += (clock() - p.began).Hours()
	l.figures.Granted += p.service.seen()
}

// note adds one more figure.
func (l *ledger) note(what, figure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.figures.Notes = append(l.figures.Notes, proof.Note{What: what, Figure: figure})
}

// brokenf fails the test because of a broken promise, and goes on. replay is the
// command that shows it again.
func (l *ledger) brokenf(t testing.TB, replay, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	l.mu.Lock()
	l.figures.Violations = append(l.figures.Violations, proof.Violation{Promise: l.promise, Text: text, Replay: replay})
	l.mu.Unlock()
	t.Errorf("%s is broken: %s\nagain: %s", l.promise, text, replay)
}

// record sums up, prints and hands over the figures under a name.
func (l *ledger) record(t testing.TB, name string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []time.Duration
	for i := range l.figures.Faults {
		f := &l.figures.Faults[i]
		all = append(all, l.recoveries[f.Name]...)
		times := proof.Summarize(l.recoveries[f.Name])
		f.Recovery = &times
		t.Logf("%-50s %4d times, recovery p50 %6.2fs, longest %6.2fs, allowed %s",
			f.Name, f.Times, times.P50.Seconds(), times.Longest.Seconds(), f.Allowed)
	}
	slices.SortFunc(l.figures.Faults, func(a, b proof.Fault) int { return cmp.Compare(a.Name, b.Name) })
	if len(all) > 0 {
		times := proof.Summarize(all)
		l.figures.Recovery = &times
	}
	for _, w := range l.figures.Windows {
		t.Logf("worst window of %s: %v calls of %v, %.3f", w.Length, w.Tokens, w.Allowed, w.Worst)
	}
	l.figures.Took = time.Since(l.began)
	t.Logf("%d faults, %d calls, %d violations, %s", len(all), l.figures.Granted, len(l.figures.Violations),
		l.figures.Took.Round(time.Second))
	proof.Record(t, name, l.figures)
}
