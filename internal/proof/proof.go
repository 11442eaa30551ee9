// Package proof holds the figures of the reliability tests. A test records its figures with Record, a program with Write; `make soak` writes
// them into docs/reliability.md.
package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Folder is the environment variable that names the folder for figures. Unset: a test checks and records nothing.
const Folder = "NUMATHROTTLE_FIGURES"

// Record writes a test's figures to the file of that name in the folder, as text.
func Record(t testing.TB, name string, figures any) {
	t.Helper()
	if err := Write(name, figures); err != nil {
		t.Fatalf("figures of %s: %v", name, err)
	}
}

// Write is Record for a program.
func Write(name string, figures any) error {
	dir := os.Getenv(Folder)
	if dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, figures), 0o600) //nolint:gosec // its own folder
}

// A Violation is a broken promise.
type Violation struct {
	// Promise is its number, such as "R1".
	Promise string
	Text    string
	// Replay is the command that reproduces it.
	Replay string
}

// A Fault is one kind of fault, and how often it was injected.
type Fault struct {
	Name  string
	Times uint64
	// Recovery is how long it took until use was whole again, if measured for each fault; Allowed is the promised maximum.
	Recovery *Times
	Allowed  time.Duration
}

// A Window is the worst window of one length: the granted tokens, or the service's calls, as a fraction of the bound.
type Window struct {
	Length time.Duration
	Worst  float64
	// Tokens and Allowed belong to the worst window.
	Tokens, Allowed float64
}

// Times summarises durations.
type Times struct {
	N                 int
	P50, P99, Longest time.Duration
}

// Summarize summarises durations; it sorts them.
func Summarize(d []time.Duration) Times {
	if len(d) == 0 {
		return Times{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[min(len(d)-1, int(q*float64(len(d))))] }
	return Times{N: len(d), P50: at(0.5), P99: at(0.99), Longest: d[len(d)-1]}
}

// Pools are the figures of many runs of a pool under faults.
type Pools struct {
	// Subject describes the tested parts, with versions of servers.
	Subject string
	// Runs counts seeds, or rounds; First is the first seed.
	Runs, First uint64
	Processors  int
	// Hours is the running time of the pools, in virtual time if they use it.
	Hours float64
	// Took is how long the test ran.
	Took   time.Duration
	Events uint64
	Syncs  uint64
	// Granted counts tokens, calls seen by the service, or messages.
	Granted uint64
	Faults  []Fault
	Windows []Window
	// PeakShare is the largest sum of shares in use at one moment; at most 1.
	PeakShare float64
	Recovery  *Times
	// Notes are further figures, in order.
	Notes      []Note
	Violations []Violation
}

// A Note is one more figure: its description, and its value.
type Note struct{ What, Figure string }

// String returns the figures in one line, without those that are zero.
func (p Pools) String() string {
	var parts []string
	add := func(said bool, format string, args ...any) {
		if said {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	for _, v := range p.Violations {
		add(true, "**%s broken**: %s. Replay: `%s`", v.Promise, v.Text, v.Replay)
	}
	add(p.Runs > 0, "%s runs from %d", Count(p.Runs), p.First)
	add(p.Processors > 0, "%d processors", p.Processors)
	add(p.Hours >= 0.1, "%.1f hours", p.Hours)
	add(p.Events > 0, "%s events", Count(p.Events))
	add(p.Granted > 0, "%s granted", Count(p.Granted))
	add(p.PeakShare > 0, "largest sum of shares %.3f", p.PeakShare)
	for _, w := range p.Windows {
		add(true, "worst %s %.3f", w.Length, w.Worst)
	}
	faults := uint64(0)
	for _, f := range p.Faults {
		faults += f.Times
	}
	add(faults > 0, "%s faults", Count(faults))
	if r := p.Recovery; r != nil {
		add(r.N > 0, "%d recoveries: p50 %s, p99 %s, longest %s", r.N, short(r.P50), short(r.P99), short(r.Longest))
	}
	for _, n := range p.Notes {
		add(true, "%s: %s", n.What, n.Figure)
	}
	return p.Subject + ": " + strings.Join(parts, ", ")
}

// Permits are the slots issued by a real store, compared with each other on the store's own stamps.
type Permits struct {
	Store   string
	Permits int
	// Faults is how often the server was restarted or emptied in the meantime.
	Faults int
}

func (p Permits) String() string {
	return fmt.Sprintf("%s: %s permits, %d faults", p.Store, Count(uint64(max(p.Permits, 0))), p.Faults)
}

// Count writes a number with commas.
func Count(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short returns a duration with three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
