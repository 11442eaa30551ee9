package operators

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Target is packages whose mutants are played, and the packages whose short tests are to notice them, in this order.
type Target struct {
	Name     string
	Packages []string
	Tests    []string
	Slow     string // a pattern of tests of the first of these packages, which are run when its others notice nothing
}

// Targets are all of them.
var Targets = []Target{
	{Name: "engine", Packages: []string{"./internal/engine/..."}, Tests: []string{
		"./internal/engine/bucket", "./internal/engine/gate", "./internal/engine/join", "./internal/engine/tagbucket", "./internal/engine/waitqueue",
		"./pkg/throttle",
	}},
	{Name: "fairtags", Packages: []string{"./internal/fairtags"}, Tests: []string{"./internal/fairtags"}},
	{Name: "fairslots", Packages: []string{"./internal/fairslots"}, Tests: []string{"./internal/fairslots"}},
	{
		Name: "protocol", Packages: protocol[:1], Tests: protocol,
		Slow: "^Test(CallsThatWaitForLong|TooManyTagsWait|CallsInFlightOfATag|FewSlotsGo|ABookIs|ReservedSlotsCome|EqualTagsHave|SlotsOfTagsWith|WhichNames)",
	},
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

// Play compiles a target's tests with its mutants, in the module at root, and runs them with one mutant after the other. The error says
// that tests don't compile, fail without a mutant, or that the list of reasons names a mutant that they notice.
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
	ends, err := play(ctx, t.tests(root, folder, overlay), chosen, o.Jobs)
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

// A test is the tests of a package. They are compiled, and run without a mutant, when the first mutant needs them.
type test struct {
	pkg, folder, binary, overlay, root string
	which                              string // a flag that chooses some of them; "-test.short" for all

	once sync.Once
	none bool          // the package has no tests
	most time.Duration // how long they may take with a mutant
	err  error
}

// tests returns the target's tests.
func (t *Target) tests(root, folder, overlay string) (list []*test) {
	for i, pkg := range t.Tests {
		which := []string{"-test.short"}
		if i == 0 && t.Slow != "" {
			which = []string{"-test.skip=" + t.Slow, "-test.run=" + t.Slow}
		}
		for _, w := range which {
			binary := filepath.Join(folder, strconv.Itoa(len(list))+".test")
			list = append(list, &test{pkg: pkg, folder: filepath.Join(root, pkg), binary: binary, overlay: overlay, root: root, which: w})
		}
	}
	return list
}

// prepare compiles the tests and runs them without a mutant.
func (c *test) prepare(ctx context.Context) error {
	c.once.Do(func() {
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", c.overlay, "-o", c.binary, c.pkg)
		cmd.Dir = c.root
		if text, err := cmd.CombinedOutput(); err != nil {
			c.err = fmt.Errorf("compile the tests of %s: %w\n%s", c.pkg, err, text)
			return
		}
		if _, err := os.Stat(c.binary); err != nil {
			c.none = true
			return
		}
		began := time.Now()
		c.most = time.Hour
		if text, err := c.run(ctx, 0); err != nil {
			c.err = fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", c.pkg, err, text)
		}
		c.most = 20*time.Second + 5*time.Since(began)
	})
	return c.err
}

// mostMemory bounds the memory of a test in KiB: a mutant may fill it without end.
const mostMemory = 6 << 20

// run runs the tests with a mutant.
func (c *test) run(ctx context.Context, id int) (text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.most)
	defer cancel()
	script := fmt.Sprintf(`ulimit -v %d; exec "$0" -test.short -test.failfast -test.count=1 "$1"`, mostMemory)
	cmd := exec.CommandContext(ctx, "sh", "-c", script, c.binary, c.which)
	cmd.Dir = c.folder
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(id))
	cmd.WaitDelay = time.Second
	text, err = cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return text[max(0, len(text)-4000):], err
}

// An end is what became of a mutant.
type end int

const (
	survived end = iota
	killed
	timedOut
)

func (c *test) play(ctx context.Context, id int) end {
	switch _, err := c.run(ctx, id); {
	case err == nil:
		return survived
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut
	}
	return killed
}

// play plays mutants, some at a time, until one can't be played.
func play(ctx context.Context, tests []*test, list []Mutant, jobs int) ([]end, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ends := make([]end, len(list))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(jobs, 1) {
		workers.Go(func() {
			for i := range next {
				var err error
				if ends[i], err = playOne(ctx, tests, list[i].ID); err != nil {
					stop(err)
				}
			}
		})
	}
	for i := range list {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	return ends, context.Cause(ctx)
}

func playOne(ctx context.Context, tests []*test, id int) (end, error) {
	for _, c := range tests {
		if err := c.prepare(ctx); err != nil {
			return survived, err
		}
		if c.none {
			continue
		}
		if end := c.play(ctx, id); end != survived {
			return end, context.Cause(ctx)
		}
	}
	return survived, nil
}
