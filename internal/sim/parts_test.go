package sim

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestQueueKeepsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var q queue
	var want []time.Duration
	last := time.Duration(-1)
	for range 20_000 {
		if r.IntN(3) > 0 {
			at := max(last, 0) + time.Duration(r.IntN(50))
			q.Push(at, event{gen: uint32(at)})
			i, _ := slices.BinarySearch(want, at)
			want = slices.Insert(want, i, at)
			continue
		}
		at, e, ok := q.Pop()
		require.Equal(t, len(want) > 0, ok)
		if ok {
			require.Equal(t, want[0], at)
			require.Equal(t, uint32(at), e.gen)
			want, last = want[1:], at
		}
	}
	q.Discard(func(at time.Duration, _ *event) bool { return at%2 == 0 })
	want = slices.DeleteFunc(want, func(at time.Duration) bool { return at%2 == 0 })
	for _, w := range want {
		at, _, ok := q.Pop()
		require.True(t, ok)
		require.Equal(t, w, at)
	}
	require.Zero(t, q.Len())
}

func TestQueueIsFairAtOneMoment(t *testing.T) {
	var q queue
	for i := range 100 {
		q.Push(time.Second, event{gen: uint32(i)})
	}
	for i := range 100 {
		_, e, _ := q.Pop()
		require.Equal(t, uint32(i), e.gen)
	}
}

func TestClockTellsWhenItShowsAReading(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		c := clock{since: time.Duration(r.Int64N(1e12)), base: time.Duration(r.Int64N(1e13)), rate: million - maxDrift + r.Int64N(2*maxDrift)}
		reading := c.base + time.Duration(r.Int64N(1e12))
		at := c.when(reading)
		require.GreaterOrEqual(t, c.read(at), reading)
		if at > c.since {
			require.Less(t, c.read(at-1), reading)
		}
	}
	c := clock{rate: million + maxDrift}
	require.Equal(t, 10833*time.Millisecond, c.read(10*time.Second))
	c.set(10*time.Second, million, true)
	require.Equal(t, 10833*time.Millisecond, c.read(time.Hour), "it stands still")
	c.set(time.Hour, million, false)
	require.Equal(t, 11833*time.Millisecond, c.read(time.Hour+time.Second))
}

func TestOneSeedReplaysExactly(t *testing.T) {
	var traces [2]bytes.Buffer
	var results [2]Result
	for i := range traces {
		results[i] = Run(Config{Seed: 7, Duration: 2 * time.Minute, Trace: &traces[i]})
	}
	require.Equal(t, results[0], results[1])
	require.Greater(t, traces[0].Len(), 10_000)
	require.True(t, bytes.Equal(traces[0].Bytes(), traces[1].Bytes()))
	results[1] = Run(Config{Seed: 8, Duration: 2 * time.Minute})
	require.NotEqual(t, results[0].Counters, results[1].Counters)
}

// TestChecksFail shows each check what it is there for.
func TestChecksFail(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *world)
		want  Check
	}{
		{"two hold the whole", func(w *world) {
			for _, p := range w.procs {
				p.held, p.until = driver.Whole*2/3, 2*time.Hour
			}
		}, CheckSum},
		{"one holds more than its claim", func(w *world) {
			p := w.procs[0]
			claim, _ := w.claim(p.incarnation)
			p.held = claim + 1
			w.checkClaim(p)
		}, CheckClaim},
		{"a row that is in use is gone", func(w *world) {
			w.store.rec.Rows = w.store.rec.Rows[1:]
			w.checkStep(nil, outline(&w.store.rec))
		}, CheckClaim},
		{"an ID with two live rows", func(w *world) {
			w.store.rec.Rows[1].ID = w.store.rec.Rows[0].ID
			w.checkRows()
		}, CheckRecord},
		{"an answer where there was no room", func(w *world) {
			row := &w.store.rec.Rows[0]
			before := outline(&w.store.rec)
			row.Answered, row.Claim = driver.Whole, driver.Whole
			w.checkStep(&driver.Request{ID: row.ID, Incarnation: row.Incarnation}, before)
		}, CheckRecord},
		{"nobody can reach the store", func(w *world) {
			w.store.kind = storeMemory
			w.heal()
			w.healed = 0
			w.store.takeDown(w, time.Hour, true)
			w.awaitHealth(w.now)
		}, CheckRecovery},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(1, calmPlan(2), nil)
			w.join("a")
			w.join("b")
			w.run(5 * time.Second)
			require.Nil(t, w.violation)
			require.Len(t, w.procs, 2)
			c.spoil(w)
			w.checkSum()
			require.NotNil(t, w.violation)
			require.Equal(t, c.want, w.violation.Kind, w.violation.Text)
		})
	}
}

// calmPlan is a plan of n busy processors without faults, with a store that knows
// that the pool is new, leases of 10 s and exact clocks.
func calmPlan(n int) plan {
	return plan{
		processors: n, leases: []time.Duration{driver.DefaultLease}, loss: protocol.Stop, knownNew: true,
		up: calmLink, down: calmLink, lateTaken: true, demandMean: time.Hour, busy: 1,
		limit: throttle.Limit{Max: 20, Burst: 2},
	}
}

// Seeds have stores of either kind that know new pools as such, and go on doing so.
func TestPlansKnowNewPools(t *testing.T) {
	var known [storeMemory + 1]int
	for seed := range uint64(300) {
		if p := drawPlan(rand.New(rand.NewPCG(seed, 0)), 0); p.knownNew {
			known[p.store]++
		}
	}
	require.Greater(t, known[storeTimed], 30)
	require.Greater(t, known[storeDeferred], 30)
}
