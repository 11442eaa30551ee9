package operators

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Target has the packages whose mutants are played, and the packages whose short tests have to notice them.
type Target struct {
	Name     string
	Packages []string
	Tests    []string
}

// Targets are all of them.
var Targets = []Target{
	{Name: "engine", Packages: []string{"./internal/engine/..."}, Tests: []string{
		"./internal/engine/bucket", "./internal/engine/gate", "./internal/engine/join", "./internal/engine/tagbucket", "./internal/engine/waitqueue",
		"./pkg/throttle",
	}},
	{Name: "throttle", Packages: []string{"./pkg/throttle"}, Tests: []string{"./pkg/throttle"}},
	{Name: "fairtags", Packages: []string{"./internal/fairtags"}, Tests: []string{"./internal/fairtags"}},
	{Name: "fairslots", Packages: []string{"./internal/fairslots"}, Tests: []string{"./internal/fairslots"}},
	{Name: "protocol", Packages: protocol[:1], Tests: protocol},
	{Name: "driver", Packages: []string{"./pkg/consensus/driver"}, Tests: []string{"./pkg/consensus/driver", "./pkg/consensus/memstore"}},
	{Name: "readers", Packages: readers, Tests: readers},
	{Name: "http", Packages: http, Tests: http},
	{Name: "llm", Packages: []string{"./internal/llm/account"}, Tests: []string{"./internal/llm/account", "./pkg/llm"}},
}

var http = []string{"./pkg/throttle/httpthrottle"}

var protocol = []string{"./internal/protocol", "./pkg/consensus"}

// readers are the packages that read the requests to LLMs and their answers. Each has the tests of its own mutants; most take milliseconds.
var readers = []string{
	"./internal/costrule", "./internal/llm/announce", "./internal/llm/profile", "./internal/llm/prompt", "./internal/llm/usage",
}

// Find returns the targets with some names, or all.
func Find(names ...string) ([]Target, error) {
	if len(names) == 0 {
		return Targets, nil
	}
	var found []Target
	var all []string
	for _, t := range Targets {
		all = append(all, t.Name)
		if slices.Contains(names, t.Name) {
			found = append(found, t)
		}
	}
	for _, n := range names {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("target is %q, allowed: %s", n, strings.Join(all, ", "))
		}
	}
	return found, nil
}

// Options choose the mutants to play.
type Options struct {
	Sample int    // so many, the same ones each time; 0: all
	Only   string // those whose name contains it
	Jobs   int    // at a time
}

// A Result is what became of the mutants of a target.
type Result struct {
	All, Played, Killed, TimedOut, Excused int
	Survivors                              []Mutant // without a reason, by file and line
}

// String returns the numbers of a target.
func (r *Result) String() string {
	return fmt.Sprintf("%d mutants, %d played, %d noticed (%d by a time-out), %d survive with a reason, %d without",
		r.All, r.Played, r.Killed, r.TimedOut, r.Excused, len(r.Survivors))
}

// Print writes a line with the numbers of a target, and one for each survivor.
func (r *Result) Print(w io.Writer, target string, took time.Duration) {
	_, _ = fmt.Fprintf(w, "%s: %s, in %.0f s\n", target, r, took.Seconds())
	for _, m := range r.Survivors {
		_, _ = fmt.Fprintf(w, "  %s (line %d)\n", &m, m.Line)
	}
}

// Play compiles a target's tests with its mutants, in the module at root, runs each test once to see which mutants it reaches, and then,
// with one mutant after the other, those that reach it, the quickest first. The error says that tests don't compile, fail without a mutant,
// or that the list of reasons names a mutant that they notice.
func (t *Target) Play(ctx context.Context, root string, o Options) (r Result, err error) {
	set, err := Load(ctx, root, t.Packages...)
	if err != nil {
		return r, err
	}
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return r, fmt.Errorf("folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, err := set.WriteOverlay(folder)
	if err != nil {
		return r, err
	}
	reasons := Reasons()
	all := set.Mutants
	chosen := choose(all, o)
	r.All, r.Played = len(all), len(chosen)
	tests, err := prepare(ctx, t.Tests, root, folder, overlay, o.Jobs)
	if err != nil {
		return r, err
	}
	ends, err := play(ctx, tests, chosen, o.Jobs)
	if err != nil {
		return r, err
	}
	var stale []string
	for i, end := range ends {
		m := chosen[i]
		reason := reasons[m.String()]
		switch {
		case end != survived && reason != "":
			stale = append(stale, m.String())
		case end == killed:
			r.Killed++
		case end == timedOut:
			r.Killed++
			r.TimedOut++
		case reason != "":
			r.Excused++
		default:
			r.Survivors = append(r.Survivors, m)
		}
	}
	if stale != nil {
		return r, fmt.Errorf("survivors.txt has mutants that tests notice:\n%s", strings.Join(stale, "\n"))
	}
	return r, nil
}

// choose returns the mutants to play, in the order of their IDs. A sample consists of those with the least hashes.
func choose(all []Mutant, o Options) []Mutant {
	chosen := slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool { return !strings.Contains(m.String(), o.Only) })
	if o.Sample == 0 || o.Sample >= len(chosen) {
		return chosen
	}
	hash := func(m Mutant) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(m.String()))
		return h.Sum64()
	}
	slices.SortFunc(chosen, func(a, b Mutant) int {
		if hash(a) < hash(b) {
			return -1
		}
		return 1
	})
	chosen = chosen[:o.Sample]
	slices.SortFunc(chosen, func(a, b Mutant) int { return a.ID - b.ID })
	return chosen
}

// An end is what became of a mutant.
type end int

const (
	survived end = iota
	killed
	timedOut
)

// play plays mutants, some at a time, until one can't be played.
func play(ctx context.Context, tests []test, list []Mutant, jobs int) ([]end, error) {
	ends := make([]end, len(list))
	err := each(ctx, len(list), jobs, func(ctx context.Context, i int) (err error) {
		ends[i], err = playOne(ctx, tests, list[i].ID)
		return err
	})
	return ends, err
}

func playOne(ctx context.Context, tests []test, id int) (end, error) {
	for _, part := range parts(tests, id) {
		if end := part.play(ctx, id); end != survived {
			return end, context.Cause(ctx)
		}
	}
	return survived, context.Cause(ctx)
}

// each calls do for 0 to n-1, so many at a time, until one call fails.
func each(ctx context.Context, n, jobs int, do func(context.Context, int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range n {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
