package fairtags_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

var update = flag.Bool("update", false, "write the table of scenarios into the page")

// A scenario is one of FoundationDB's tests of tag quotas, or of those that its design lacks. Rates are in tokens a second, which are its
// pages.
type scenario struct {
	name string
	// says is what happens, in a few words, and fdb what FoundationDB does: its formulas, with the mocks of its tests.
	says, fdb  string
	limit      float64
	processors int // 1 unless it says more
	zones      []float64
	tags       []fairtags.Terms
	on         [][]int // the zones of each tag; all unless it says so
	clients    []client
	stages     []stage
}

// A stage changes something, and is over when a state is reached and held for ten looks, one a second, of which the first is by
// seconds after the change at the latest. When it lasts a number of seconds instead, only its last look counts.
type stage struct {
	change, during func(w *world) // once, and in each second
	reached        func(w *world) error
	always         func(w *world) error // at every look
	by             int                  // patience unless it says so
	lasts          int
}

const (
	held     = 10 // looks
	patience = 30 // seconds in which a state must be reached
)

func quota(reserved, total float64) fairtags.Terms {
	return fairtags.Terms{Reserved: reserved, Total: total, Limiting: inf}
}

func same(n int, of float64) (list []float64) {
	return slices.Repeat([]float64{of}, n)
}

// everywhere is a client at each of n processors.
func everywhere(n, tag int, calls, cost float64) (clients []client) {
	for at := range n {
		clients = append(clients, client{at, tag, calls, cost})
	}
	return clients
}

// What can be reached.

// both asks for all of some states.
func both(states ...func(w *world) error) func(w *world) error {
	return func(w *world) error {
		for _, reached := range states {
			if err := reached(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// within says that a number is within a tenth of what it should be.
func within(what string, should, is float64) error {
	if math.Abs(is-should) > should/10 {
		return fmt.Errorf("%s is %.3g, and should be %.3g", what, is, should)
	}
	return nil
}

// target: as many calls a second could a tag make, by its average cost.
func target(tag int, calls float64) func(w *world) error {
	return func(w *world) error {
		cost, known := w.tags[tag].average.Cost()
		if !known {
			return fmt.Errorf("tag %d has no average cost", tag)
		}
		return within(fmt.Sprintf("the target of tag %d", tag), calls, w.bound(tag)/cost)
	}
}

// targets: the targets of all tags make so many calls a second together.
func targets(calls float64) func(w *world) error {
	return func(w *world) error {
		sum := 0.0
		for i := range w.tags {
			cost, _ := w.tags[i].average.Cost()
			sum += w.bound(i) / cost
		}
		return within("the sum of targets", calls, sum)
	}
}

// busy: so many tags are held by what the servers can take.
func busy(tags int) func(w *world) error {
	return func(w *world) error {
		n := 0
		for _, t := range w.processors[0].plan.Targets[:len(w.tags)] {
			if t.By == fairtags.ByLimiting || t.By == fairtags.ByReserved {
				n++
			}
		}
		if n != tags {
			return fmt.Errorf("%d tags are busy, which should be %d", n, tags)
		}
		return nil
	}
}

// uses: a tag uses so many tokens a second, on all processors.
func uses(tag int, tokens float64) func(w *world) error {
	return func(w *world) error { return within(fmt.Sprintf("the use of tag %d", tag), tokens, w.use(tag)) }
}

// usesAt: a tag uses so many tokens a second at one processor.
func usesAt(tag, at int, tokens float64) func(w *world) error {
	return func(w *world) error {
		return within(fmt.Sprintf("the use of tag %d at %d", tag, at), tokens, w.processors[at].used[tag])
	}
}

// nobodyWaits: everybody gets what he asks for.
func nobodyWaits(w *world) error {
	for i, t := range w.tags {
		if refused := t.refused[w.looks-1]; refused > 1e-6 {
			return fmt.Errorf("tag %d is refused %.3g", i, refused)
		}
	}
	return nil
}

// granted: in the last seconds a tag was granted so many tokens.
func granted(tag, seconds int, tokens float64) func(w *world) error {
	return func(w *world) error {
		sum := 0.0
		for _, used := range w.tags[tag].used[w.looks-seconds:] {
			sum += used
		}
		return within(fmt.Sprintf("what tag %d was granted", tag), tokens, sum)
	}
}

func (w *world) use(tag int) float64 { return w.tags[tag].used[w.looks-1] }

func (w *world) bound(tag int) float64 { return w.processors[0].plan.Targets[tag].Bound }

// What changes.

func calls(client int, calls float64) func(w *world) {
	return func(w *world) { w.clients[client].calls = calls }
}

func total(tag int, total float64) func(w *world) {
	return func(w *world) { w.tags[tag].Total = total }
}

func capacity(zone int, capacity float64) func(w *world) {
	return func(w *world) { w.zones[zone].capacity = capacity }
}

// world is the one in which a scenario is played.
func (s scenario) world() *world {
	w := newWorld(s.limit, max(s.processors, 1), s.tags)
	for _, c := range s.zones {
		w.zones = append(w.zones, &zone{capacity: c})
	}
	for i, t := range w.tags {
		if len(s.on) > 0 {
			t.on = s.on[i]
			continue
		}
		for z := range s.zones {
			t.on = append(t.on, z)
		}
	}
	w.clients = slices.Clone(s.clients)
	return w
}

// play runs a scenario and tells how many seconds each of its stages took.
func (s scenario) play() (took string, err error) {
	w := s.world()
	var stages []string
	for i, stage := range s.stages {
		if stage.change != nil {
			stage.change(w)
		}
		seconds, err := stage.wait(w)
		if err != nil {
			return "", fmt.Errorf("stage %d: %w", i, err)
		}
		if stage.lasts == 0 {
			stages = append(stages, strconv.Itoa(seconds))
		}
	}
	if len(stages) == 0 {
		return "holds", nil
	}
	return strings.Join(stages, " + ") + " s", nil
}

// wait lets time pass until the stage is over, and tells when its state was reached.
func (s stage) wait(w *world) (seconds int, err error) {
	lasts := s.lasts
	if testkit.Race {
		lasts = min(lasts, 60) // what lasts longer has one goroutine and many tags
	}
	for second := 1; second <= lasts; second++ {
		if err := s.look(w); err != nil {
			return 0, fmt.Errorf("second %d: %w", second, err)
		}
	}
	switch {
	case s.lasts > 0 && s.reached != nil:
		return 0, s.reached(w)
	case s.lasts > 0:
		return 0, nil
	}
	by, good := s.by, 0
	if by == 0 {
		by = patience
	}
	for second := 1; second < by+held; second++ {
		if err := s.look(w); err != nil {
			return 0, fmt.Errorf("second %d: %w", second, err)
		}
		if fault := s.reached(w); fault != nil {
			good, err = 0, fmt.Errorf("in second %d %w", second, fault)
			continue
		}
		if good++; good == held {
			return second - held + 1, nil
		}
	}
	return 0, fmt.Errorf("not reached, or not held, in %d s: %w", by, err)
}

// look lets a second pass.
func (s stage) look(w *world) error {
	if s.during != nil {
		s.during(w)
	}
	w.second()
	if s.always != nil {
		return s.always(w)
	}
	return nil
}

func exactly(what string, should, is int) error {
	if is != should {
		return fmt.Errorf("%s: %d, which should be %d", what, is, should)
	}
	return nil
}

// families are all scenarios by what they stand for.
var families = []struct {
	name, title string
	scenarios   []scenario
}{
	{"GlobalTagThrottling", "GlobalTagThrottling", globalTagThrottling},
	{"GrvProxyTagThrottler", "GrvProxyTagThrottler", grvProxyTagThrottler},
	{"Pools", "not in FoundationDB", pools},
}

// Every scenario ends as it should, and the page tells how soon.
func TestScenarios(t *testing.T) {
	var table strings.Builder
	played, all := 0, 0
	table.WriteString("| scenario | what happens | FoundationDB | here |\n|---|---|---|---|\n")
	for _, f := range families {
		fmt.Fprintf(&table, "| **%s** | | | |\n", f.title)
		for _, s := range f.scenarios {
			all++
			t.Run(f.name+"/"+s.name, func(t *testing.T) {
				took, err := s.play()
				require.NoError(t, err)
				t.Logf("%s: %s; FoundationDB: %s", s.says, took, s.fdb)
				fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", s.name, s.says, s.fdb, took)
				played++
			})
		}
	}
	if played < all {
		return // one failed, or -run chose some
	}
	const page = "scenarios.md"
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(content), "<!-- scenarios:")
	comment, rest, _ := strings.Cut(rest, "\n")
	_, after, ends := strings.Cut(rest, "<!-- end -->")
	require.True(t, begins && ends, "%s has no place for the table", page)
	want := before + "<!-- scenarios:" + comment + "\n" + table.String() + "<!-- end -->" + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./internal/fairtags -run TestScenarios -update")
}
