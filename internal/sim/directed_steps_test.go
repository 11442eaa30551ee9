package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// play runs a schedule.
func (s directed) play(t *testing.T) *world {
	t.Helper()
	p := calmPlan(3)
	if s.plan != nil {
		s.plan(&p)
	}
	w := newWorld(1, p, traceTo(t))
	s.run(t, w)
	return w
}

// overlap brings two shares to overlap by 2 %, which no store can help: it was
// rolled back, keeps its identity, and a is granted more before b comes and tells.
// If the row of b is forgotten as well, the overlap is 52 %.
// Both keep so little too much of their own accord. Nothing is checked from here on.
func overlap(t *testing.T, w *world, forgotten bool) (a, b *process) {
	t.Helper()
	a, b = w.join("a"), w.join("b")
	c := w.join("c")
	a.demand, c.demand = percent(48), percent(4)
	w.until(t, func() bool { return near(a, 48) && near(b, 48) && near(c, 4) })
	w.run(w.now + 3*time.Second)
	w.leave(c)
	w.until(t, func() bool { return w.store.rec.Claims() < percent(97) })
	w.cutOff(a)
	older := w.store.copied()
	full := 50
	if forgotten {
		older.Rows = slices.DeleteFunc(older.Rows, func(row driver.Row) bool { return row.ID == b.id })
		full = 100
	}
	w.until(t, func() bool { return near(b, 52) })
	w.cutOff(b)
	w.plan.loss = protocol.Degrade
	w.store.restart(w, older, w.store.written)
	a.demand = driver.Whole
	w.reach(a)
	w.until(t, func() bool { return near(a, full) })
	require.True(t, near(b, 52))
	return a, b
}

// percent is a share.
func percent(n int) driver.Share { return driver.Whole / 100 * driver.Share(n) }

// near tells whether a process holds a share, to 1 %.
func near(p *process, n int) bool {
	d := p.held - percent(n)
	return -percent(1) < d && d < percent(1)
}

// until lets events happen until something is so.
func (w *world) until(t *testing.T, so func() bool) {
	t.Helper()
	for end := w.now + 5*time.Minute; !so(); {
		at, some := w.queue.Next()
		require.True(t, some)
		require.Less(t, w.now, end, "it never came to that")
		if w.violation != nil {
			return
		}
		w.run(at)
	}
}

// cut loses what a process sends in a direction from now on.
func (w *world) cut(p *process, dir int) { p.cut[dir] = w.now + time.Hour }

func (w *world) cutOff(p *process) {
	w.cut(p, up)
	w.cut(p, down)
}

func (w *world) reach(p *process) {
	p.cut = [2]time.Duration{}
	w.turn(p)
}

// lastAnswered is the share that the store answered the process last.
func (w *world) lastAnswered(p *process) driver.Share {
	for _, row := range w.store.rec.Rows {
		if row.Incarnation == p.incarnation {
			return row.Answered
		}
	}
	return 0
}

// A ghost is a processor that has left, of which some packets are under way.
type ghost struct {
	requests []driver.Request
	leave    driver.Leave
}

func newGhost(t *testing.T, w *world) *ghost {
	t.Helper()
	g := &ghost{}
	p := protocol.NewProcessor(protocol.ProcessorConfig{Pool: "pool", ID: "ghost", OnStoreLoss: protocol.Stop}, "gone")
	for i := range 3 {
		req := p.Request(w.now, uint64(i+1), protocol.Observation{Demand: driver.Whole})
		ans, _ := w.store.rec.Sync(&req, w.store.moment(w))
		require.NoError(t, p.Take(w.now, ans, ""))
		g.requests = append(g.requests, req)
		w.now += time.Second
	}
	g.leave = p.Leave(w.now)
	w.store.rec.Leave(&g.leave, w.store.moment(w))
	return g
}

// haunt lets a request arrive once more.
func (g *ghost) haunt(w *world, i int) {
	before := outline(&w.store.rec)
	w.store.rec.Sync(&g.requests[i], w.store.moment(w))
	w.checkStep(&g.requests[i], before)
}
