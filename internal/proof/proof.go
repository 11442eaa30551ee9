// Package proof holds the figures of the reliability tests, in a form that `make soak` turns into docs/reliability.md. A test records its
// figures with Record; the page has no other source, so that no figure of a run is typed by hand.
package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Folder is the environment variable that names the folder for figures. Unset: a test checks and records nothing.
const Folder = "NUMATHROTTLE_FIGURES"

// Record writes a test's figures to the folder, as <name>.json.
func Record(t testing.TB, name string, figures any) {
	t.Helper()
	dir := os.Getenv(Folder)
	if dir == "" {
		return
	}
	if err := Save(dir, name, figures); err != nil {
		t.Fatal(err)
	}
}

// Save writes figures to a folder, as <name>.json, atomically.
func Save(dir, name string, figures any) error {
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return fmt.Errorf("figures of %s: %w", name, err)
	}
	file := filepath.Join(dir, name+".json")
	err = os.WriteFile(file+".new", text, 0o600) //nolint:gosec // the caller names its own folder
	if err == nil {
		err = os.Rename(file+".new", file) //nolint:gosec // as above
	}
	if err != nil {
		return fmt.Errorf("figures of %s: %w", name, err)
	}
	return nil
}

// Load reads the figures that a test has recorded.
func Load(dir, name string, figures any) error {
	text, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		return fmt.Errorf("figures of %s: %w", name, err)
	}
	if err := json.Unmarshal(text, figures); err != nil {
		return fmt.Errorf("figures of %s: %w", name, err)
	}
	return nil
}

// A Step is a completed command of `make soak`.
type Step struct {
	Name, Command, Commit string
	// Machine describes the machine: the release of Go, the platform and the number of cores.
	Machine string
	Began   time.Time
	Took    time.Duration
	// Outcome is Well, or the reason of the failure. Empty: not recorded, as in older figures.
	Outcome string
}

// Well is the outcome of a step that did not fail.
const Well = "ok"

// Failed reports whether the step is known to have failed.
func (s *Step) Failed() bool { return s.Outcome != "" && s.Outcome != Well }

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
	// Met counts the states in which it happened: "valid", "expiring", "lowered", "frozen".
	Met map[string]uint64
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

// Pools are the figures of many runs of a pool under faults. They come from the simulation ("simulation"), the goroutine shell in virtual
// time ("shell"), the state machine that issues slots ("permits"), and real servers ("redis", "nats", "stops", "strict", "overrides",
// "limits").
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
	// Granted counts tokens, or calls seen by the service.
	Granted uint64
	Faults  []Fault
	Windows []Window
	// PeakShare is the largest sum of shares in use at one moment; at most 1.
	PeakShare float64
	Recovery  *Times
	// Notes are further figures for the page, in order.
	Notes      []Note
	Violations []Violation
}

// Permits are the slots issued by a real store, compared with each other on the store's own stamps ("permits-redis", "permits-nats").
type Permits struct {
	Store   string
	Permits int
	// Faults is how often the server was restarted or emptied in the meantime.
	Faults int
}

// A Note is one more figure: its description, and its value.
type Note struct{ What, Figure string }

// A Mutant is one omitted rule of the protocol ("mutants" records a list).
type Mutant struct {
	Rule string
	// Says states the rule.
	Says string
	// Seeds is how many random runs it took until a promise broke, 0 if a Directed schedule breaks it.
	Seeds    int
	Directed string
	// Caught is the check that failed; empty if none did. Older figures omit such a rule.
	Caught string
}

// A Regression is a violation that was found once, and the test that shows that it is fixed ("regressions" records a list).
type Regression struct{ Found, Replay string }

// A Fuzzed is one fuzz target ("fuzz" records a list).
type Fuzzed struct {
	Target     string
	Seconds    int
	Executions uint64
	// Result is "ok" or "FAILED". Empty: not recorded, as in older figures.
	Result string
}
