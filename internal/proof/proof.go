// Package proof holds what the reliability tests measure, in a form that `make
// soak` turns into docs/reliability.md. A test records its figures with Record;
// the page is made of nothing else, so that no figure of a run in it is typed.
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

// Folder is the environment variable that names the folder for figures. Unset: a
// test checks and records nothing.
const Folder = "NUMATHROTTLE_FIGURES"

// Record writes what a test measured to the folder, as <name>.json.
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

// Save writes figures to a folder, as <name>.json, all of them or none.
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

// Load reads what a test has recorded.
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

// A Step is one command of `make soak`, as it was run.
type Step struct {
	Name, Command, Commit string
	// Machine is what it ran on: the release of Go, the platform and the number of cores.
	Machine string
	Began   time.Time
	Took    time.Duration
	// Outcome is Well, or why the step failed. Empty: not recorded, as in older figures.
	Outcome string
}

// Well is the outcome of a step that did not fail.
const Well = "ok"

// Failed tells whether the step is known to have failed.
func (s *Step) Failed() bool { return s.Outcome != "" && s.Outcome != Well }

// A Violation is a promise that was seen broken.
type Violation struct {
	// Promise is its number, such as "R1".
	Promise string
	Text    string
	// Replay is the command that shows it again.
	Replay string
}

// A Fault is one kind of fault, as often as it was injected.
type Fault struct {
	Name  string
	Times uint64
	// Met counts the states that it met: "valid", "expiring", "lowered", "frozen".
	Met map[string]uint64
	// Recovery is how long use took to be whole again, where it was measured for
	// each fault; Allowed is the longest that is promised.
	Recovery *Times
	Allowed  time.Duration
}

// A Window is the worst window of one length: the tokens granted in it, or the
// calls that the service saw, as a fraction of what the bound allows.
type Window struct {
	Length time.Duration
	Worst  float64
	// Tokens and Allowed are those of the worst window.
	Tokens, Allowed float64
}

// Times sums up durations.
type Times struct {
	N                 int
	P50, P99, Longest time.Duration
}

// Summarize sums up durations; it sorts them.
func Summarize(d []time.Duration) Times {
	if len(d) == 0 {
		return Times{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[min(len(d)-1, int(q*float64(len(d))))] }
	return Times{N: len(d), P50: at(0.5), P99: at(0.99), Longest: d[len(d)-1]}
}

// Pools are the figures of many runs of a pool under faults: of the simulation
// ("simulation"), of the goroutine shell in virtual time ("shell"), of the state machine that issues slots
// ("permits"), and of real servers ("redis", "nats", "stops", "strict", "overrides", "limits").
type Pools struct {
	// Subject says what ran, with versions of servers.
	Subject string
	// Runs counts seeds, or rounds; First is the first seed.
	Runs, First uint64
	Processors  int
	// Hours is the time that the pools ran, virtual where time is.
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
	// Notes are further figures that the test wants on the page, in order.
	Notes      []Note
	Violations []Violation
}

// Permits are the slots that a real store has issued, each compared with the others on the
// store's own stamps ("permits-redis", "permits-nats").
type Permits struct {
	Store   string
	Permits int
	// Faults is how often the server was restarted or emptied meanwhile.
	Faults int
}

// A Note is one more figure: what it is, and what it came to.
type Note struct{ What, Figure string }

// A Mutant is one rule of the protocol left out ("mutants" records a list).
type Mutant struct {
	Rule string
	// Says is what the rule says.
	Says string
	// Seeds is how many random runs it took until a promise broke, 0 when a
	// Directed schedule does it.
	Seeds    int
	Directed string
	// Caught is the check that failed; empty when none did. Older figures leave such a rule out.
	Caught string
}

// A Regression is a violation that was found once, and the test that shows that it
// is gone ("regressions" records a list).
type Regression struct{ Found, Replay string }

// A Fuzzed is one fuzz target ("fuzz" records a list).
type Fuzzed struct {
	Target     string
	Seconds    int
	Executions uint64
	// Result is "ok" or "FAILED". Empty: not recorded, as in older figures.
	Result string
}
