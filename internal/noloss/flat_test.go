package noloss

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

const (
	flatPool = "flat"
	// The limit per second: what is made once for so many messages is made in the first quarter of a short run, too, and a
	// long one leaves the processors to others.
	flatRate, flatRateLong = 3000, 1000
	flatLong               = 5 * time.Minute
	// In the time of the test so many samples are taken. Memory is flat when what the last quarter of them shows
	// is above what the second does by this part at most; in the first everything is made that is kept. In a short run what
	// is under way at the moment weighs more.
	samples                 = 80
	flatness, flatnessShort = 0.05, 0.1
	// offering is how many messages a process that takes them one by one has in its hands, of which each has up to so many
	// goroutines: numaflow-go has three for a streamed message and one for the next, and the wrapper has one.
	offering, goroutinesEach = 20, 5
	// At least guests processors come and go meanwhile, each under an ID of its own, and one in guestEvery.
	guests     = samples / 4
	guestEvery = 10 * time.Second
	// leaked is what a leaking handler keeps of each message.
	leaked = 1 << 10
)

// A sample is what a process holds at one moment: live objects on the heap and goroutines, after a collection of
// garbage, and resident memory.
type sample struct {
	Heap       int64 `json:"heap"`
	Goroutines int64 `json:"goroutines"`
	Resident   int64 `json:"-"`
}

// TestMemoryStaysFlat lets handler processes of every kind draw on one Redis for a while, in which processors come and go
// and the limit is changed. NUMATHROTTLE_FLAT_FOR says for how long.
func TestMemoryStaysFlat(t *testing.T) {
	testkit.SkipShort(t, "it starts processes")
	testkit.SkipRace(t, "the race detector has memory of its own")
	length := 20 * time.Second
	if text := os.Getenv("NUMATHROTTLE_FLAT_FOR"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, "NUMATHROTTLE_FLAT_FOR")
	}
	rate, within := flatRate, flatnessShort
	if length >= flatLong {
		rate, within = flatRateLong, flatness
	}
	store := "redis://" + testenv.Redis(t).Addr()
	kinds := []string{kindMap, kindBatchMap, kindMapStream, kindTransform, kindSink}
	figures := make([]flatFigures, len(kinds)+1)
	// Only against hanging: at a low priority beside other tests the processes wait long for their turn, and hold no more for it.
	ctx, cancel := context.WithTimeout(t.Context(), length+5*time.Minute)
	defer cancel()
	began := time.Now()
	done := make(chan struct{})
	var around sync.WaitGroup
	var came, changed int
	around.Go(func() { came = comeAndGo(ctx, t, store, rate, min(length/guests, guestEvery), done) })
	around.Go(func() { changed = changeLimit(ctx, t, store, rate, length/samples, done) })
	t.Run("processes", func(t *testing.T) {
		for i, kind := range append(kinds, kindMap) {
			j := job{Kind: kind, Rate: rate, Store: store, Leaks: i == len(kinds)}
			t.Run(fmt.Sprint(kind, map[bool]string{true: " that leaks"}[j.Leaks]), func(t *testing.T) {
				t.Parallel()
				figures[i] = watch(ctx, t, j, length)
				figures[i].within = within
			})
		}
	})
	close(done)
	around.Wait()
	require.GreaterOrEqual(t, came, guests, "processors that came and went")
	require.GreaterOrEqual(t, changed, samples/2, "changes of the limit")
	if t.Failed() {
		return
	}
	leak := figures[len(kinds)]
	require.NotEmpty(t, leak.broken(), "the judge does not see a handler that leaks: %s", leak)
	var broken []proof.Violation
	p := proof.Pools{
		Subject:    fmt.Sprintf("handler processes of %d kinds that share a limit of %d per second by one Redis", len(kinds), rate),
		Processors: len(kinds), Took: time.Since(began), Hours: length.Hours(),
	}
	for i, f := range figures[:len(kinds)] {
		t.Logf("%s: %s", kinds[i], f)
		p.Granted += uint64(f.messages)
		p.Notes = append(p.Notes, proof.Note{What: kinds[i] + ", in the second and in the last quarter of the time", Figure: f.String()})
		for _, what := range f.broken() {
			broken = append(broken, proof.Violation{
				Promise: "R13", Text: kinds[i] + ": " + what + " is not flat: " + f.String(),
				Replay: fmt.Sprintf("NUMATHROTTLE_FLAT_FOR=%s go test -run %s ./internal/noloss", length, t.Name()),
			})
		}
	}
	p.Violations = broken
	proof.Record(t, "flat", p)
	require.Empty(t, broken)
}

// watch offers messages to a process of its own and samples what it holds.
func watch(ctx context.Context, t *testing.T, j job, length time.Duration) flatFigures {
	t.Helper()
	dir := dataplane.Dir(t)
	j.Notes, j.Samples = os.DevNull, filepath.Join(dir, "samples")
	p := startProcess(t, dir, j)
	f, err := openFeed(ctx, p.job)
	require.NoError(t, err)
	var id atomic.Int64
	var pushing sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	atOnce, callers := 1, offering
	if j.Kind == kindBatchMap || j.Kind == kindSink {
		atOnce, callers = 50, 1
	}
	for range callers {
		pushing.Go(func() { offerOn(ctx, t, f, &id, atOnce) })
	}
	for id.Load() < 1000 && ctx.Err() == nil && !t.Failed() { // a new pool is frozen at first
		time.Sleep(10 * time.Millisecond)
	}
	var taken []sample
	ticker := time.NewTicker(length / samples)
	defer ticker.Stop()
	for len(taken) < samples && !t.Failed() {
		<-ticker.C
		taken = append(taken, p.sample(ctx, t))
	}
	stop()
	pushing.Wait()
	f.Abort()
	return flatFigures{of: taken, messages: int(id.Load())}
}

// offerOn offers messages, so many at once, until ctx ends. id is the newest number.
func offerOn(ctx context.Context, t *testing.T, f feed, id *atomic.Int64, atOnce int) {
	t.Helper()
	for ids := make([]int, atOnce); ctx.Err() == nil; {
		for i := range ids {
			ids[i] = int(id.Add(1))
		}
		outcomes, err := f.offer(ctx, ids)
		for i, o := range outcomes {
			if o.wrong != "" || o.nacked {
				t.Errorf("message %d: %+v", ids[i], o)
			}
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("messages from %d on: %v", ids[0], err)
			return
		}
	}
}

// sample asks the process what it holds.
func (p *process) sample(ctx context.Context, t *testing.T) (s sample) {
	t.Helper()
	_ = os.Remove(p.job.Samples)
	require.NoError(t, p.signal(syscall.SIGUSR2))
	for {
		text, err := os.ReadFile(p.job.Samples)
		if err == nil && json.Unmarshal(text, &s) == nil {
			s.Resident = p.resident(t)
			return s
		}
		require.NoError(t, ctx.Err(), "the process does not say what it holds")
		time.Sleep(5 * time.Millisecond)
	}
}

// tellSamples writes what the process holds to a file whenever it is asked.
func tellSamples(path string, asked <-chan os.Signal) {
	for range asked {
		runtime.GC()
		runtime.GC() // what was pooled is kept by the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		text, err := json.Marshal(sample{Heap: int64(m.HeapAlloc), Goroutines: int64(runtime.NumGoroutine())})
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "sample:", err)
		}
	}
}

// comeAndGo has processors join the pool and leave it, one after the other, and returns how many did.
func comeAndGo(ctx context.Context, t *testing.T, store string, rate int, every time.Duration, done <-chan struct{}) (n int) {
	t.Helper()
	for ; ; n++ {
		select {
		case <-done:
			return n
		case <-time.After(every / 2):
		}
		guest, err := openFlat(ctx, store, rate, fmt.Sprint("guest-", n))
		if err != nil {
			t.Error(err)
			return n
		}
		select {
		case <-done:
		case <-time.After(every / 2):
		}
		guest.Close()
	}
}

// changeLimit overrides the limit again and again, and returns how often that was saved.
func changeLimit(ctx context.Context, t *testing.T, store string, rate int, every time.Duration, done <-chan struct{}) (saved int) {
	t.Helper()
	s, err := numathrottle.OpenStore(ctx, numathrottle.Config{Store: store})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer s.Close()
	for n := 0; ; n++ {
		select {
		case <-done:
			return saved
		case <-time.After(every):
		}
		// Too early, while nobody has told his limit, it is refused.
		if protocol.SaveOverride(ctx, s, flatPool, protocol.Override{Max: rate - n%2}) == nil {
			saved++
		}
	}
}

// openFlat joins the pool.
func openFlat(ctx context.Context, store string, rate int, id string) (*throttle.Throttle, error) {
	return numathrottle.Open(ctx, numathrottle.Config{
		Limit: throttle.Limit{Max: rate}, Store: store, Pool: flatPool, ID: id,
		Lease: driver.MinLease, Logger: slog.New(slog.DiscardHandler),
	})
}

// flatFigures are the samples of a process, which are flat within a part of what they are.
type flatFigures struct {
	of       []sample
	within   float64
	messages int
}

// A flatPart is one of the things that are looked at.
type flatPart struct {
	name, unit string
	by         float64
	of         func(sample) int64
	// moving is by how much it goes up and down by itself.
	moving int64
}

var flatParts = []flatPart{
	{name: "heap", unit: " KiB", by: 1 << 10, of: func(s sample) int64 { return s.Heap }},
	{name: "resident memory", unit: " KiB", by: 1 << 10, of: func(s sample) int64 { return s.Resident }},
	{name: "goroutines", by: 1, of: func(s sample) int64 { return s.Goroutines }, moving: offering * goroutinesEach},
}

// quarters returns the median of the second and of the last quarter of the samples.
func (p *flatPart) quarters(f []sample) (second, last int64) {
	median := func(part []sample) int64 {
		var values []int64
		for _, s := range part {
			values = append(values, p.of(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	n := len(f) / 4
	return median(f[n : 2*n]), median(f[3*n:])
}

// broken names what is not flat.
func (f flatFigures) broken() (names []string) {
	for _, part := range flatParts {
		second, last := part.quarters(f.of)
		if float64(last-part.moving) > float64(second)*(1+f.within) {
			names = append(names, part.name)
		}
	}
	return names
}

// String returns the figures in one line.
func (f flatFigures) String() string {
	var parts []string
	for _, part := range flatParts {
		second, last := part.quarters(f.of)
		parts = append(parts, fmt.Sprintf("%s %.0f and %.0f%s", part.name, float64(second)/part.by, float64(last)/part.by, part.unit))
	}
	return fmt.Sprintf("%s; %d messages", strings.Join(parts, ", "), f.messages)
}

func TestFlatIsJudged(t *testing.T) {
	series := func(of func(i int) int64) (f flatFigures) {
		f.within = flatness
		for i := range samples {
			f.of = append(f.of, sample{Heap: of(i), Goroutines: 50 + int64(i*7%(offering*goroutinesEach)), Resident: 1 << 20})
		}
		return f
	}
	for name, c := range map[string]struct {
		of   func(i int) int64
		flat bool
	}{
		"flat":                    {func(int) int64 { return 1000 }, true},
		"up and down":             {func(i int) int64 { return 1000 + int64(i%2)*500 }, true},
		"warms up":                {func(i int) int64 { return 1000 + int64(min(i, samples/4))*50 }, true},
		"falls":                   {func(i int) int64 { return 2000 - int64(i) }, true},
		"grows by 4 % in all":     {func(i int) int64 { return 1000 + 40*int64(i)/samples }, true},
		"grows by 12 % in all":    {func(i int) int64 { return 1000 + 120*int64(i)/samples }, false},
		"grows late":              {func(i int) int64 { return 1000 + int64(i/(3*samples/4))*100 }, false},
		"grows from nothing much": {func(i int) int64 { return 10 + int64(i) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := series(c.of)
			if c.flat {
				require.Empty(t, f.broken(), f)
			} else {
				require.Equal(t, []string{"heap"}, f.broken(), f)
			}
		})
	}
	t.Run("goroutines that stay", func(t *testing.T) {
		f := series(func(int) int64 { return 1000 })
		for i := range f.of {
			f.of[i].Goroutines += int64(4 * i)
		}
		require.Equal(t, []string{"goroutines"}, f.broken(), f)
	})
}
