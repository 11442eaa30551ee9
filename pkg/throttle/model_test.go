package throttle

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A model drives a Throttle with random operations in virtual time and has a
// twin judge every answer.
type model struct {
	*twin
	r     *rand.Rand
	th    *Throttle
	s     *script
	began time.Time
	most  int // largest cost of a draw
}

func TestRandomOperationsMatchTwin(t *testing.T) {
	for seed := range uint64(testkit.Fewer(200)) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			r := rand.New(rand.NewPCG(seed, 11))
			l := Limit{
				Max:   1 + r.IntN(500),
				Per:   []time.Duration{time.Second, time.Second, 10 * time.Second, 200 * time.Millisecond}[r.IntN(4)],
				Burst: 1 + r.IntN(100),
			}
			th, s := scripted(t, l, 0)
			m := &model{twin: &twin{t: t, limit: l}, r: r, th: th, s: s, began: time.Now()}
			m.most = 1 + r.IntN(max(l.Max, l.Burst))
			if r.IntN(2) == 0 {
				m.most = 1 + r.IntN(l.Burst)
			}
			m.lease()
			for range 300 {
				m.step()
				sound(t, th)
			}
			for len(m.queue) > 0 {
				m.queue[0].call.cancel()
				m.settled(nil)
			}
			m.bound(m.most)
		})
	}
}

// step lets time pass, and does one thing.
func (m *model) step() {
	mean := float64(m.most) / float64(m.limit.Max) * float64(m.limit.Per) / 3
	time.Sleep(time.Duration(m.r.ExpFloat64() * mean))
	m.settled(nil)
	switch m.r.IntN(12) {
	case 0, 1, 2:
		m.try()
	case 3, 4, 5:
		m.acquire(false)
	case 6:
		m.acquire(true)
	case 7, 8:
		m.settle()
	case 9:
		if len(m.queue) > 0 {
			m.queue[m.r.IntN(len(m.queue))].call.cancel()
			m.settled(nil)
		}
	default:
		m.lease()
	}
	m.check(m.th)
}

func (m *model) since() time.Duration { return time.Since(m.began) }

// settled books how waiting calls ended up to now, in the order of time.
// reported judges those that were refused at this moment, before others were granted
// what these had waited for; it is nil when none may be.
func (m *model) settled(reported func(failed map[*pending]bool)) {
	synctest.Wait()
	ended := map[*pending]result{}
	failed := map[*pending]bool{}
	for _, p := range m.queue {
		if len(p.call.done) == 0 {
			continue
		}
		res := <-p.call.done
		ended[p] = res
		if e := (*Error)(nil); errors.As(res.err, &e) && e.Cause == nil {
			require.Equal(m.t, ReasonLimit, e.Reason)
			require.Equal(m.t, m.since(), res.at.Sub(m.began))
			failed[p] = true
		}
	}
	if reported != nil {
		reported(failed)
	} else {
		require.Empty(m.t, failed, "refused out of the blue")
	}
	var rest []*pending
	for _, p := range m.queue {
		if _, ok := ended[p]; ok {
			rest = append(rest, p)
		}
	}
	slices.SortStableFunc(rest, func(p, q *pending) int { return ended[p].at.Compare(ended[q].at) })
	for _, p := range rest {
		res := ended[p]
		m.advance(res.at.Sub(m.began))
		switch {
		case res.err == nil:
			m.booked(p, res.permit)
		case errors.Is(res.err, context.Canceled):
			m.remove(p)
		default:
			m.missed(p, res.err)
		}
	}
	m.advance(m.since())
}

// booked books the grant of a waiter, which must be the first.
func (m *model) booked(p *pending, permit Permit) {
	require.Same(m.t, m.queue[0], p, "overtaken")
	if p.n != p.least {
		n := permit.N()
		require.LessOrEqual(m.t, n, p.n)
		require.Greater(m.t, float64(n)+1+tolerance, min(m.level, float64(p.n)), "took less than there was")
	} else {
		require.Equal(m.t, p.n, permit.N())
	}
	pos := m.granted
	m.took(permit.N(), p.least)
	m.queue = m.queue[1:]
	m.first()
	m.permits = append(m.permits, drawn{p: permit, pos: pos, vague: p.collects})
}

// missed books a deadline that passed in the queue: without a share nobody could
// know, otherwise it must have been a close thing.
func (m *model) missed(p *pending, err error) {
	require.ErrorIs(m.t, err, ErrThrottled)
	require.ErrorIs(m.t, err, context.DeadlineExceeded)
	require.Equal(m.t, p.deadline, m.now)
	if m.valid() {
		ahead := 0
		for _, q := range m.queue {
			ahead += q.least
			if q == p {
				break
			}
		}
		require.Less(m.t, m.due(ahead), tolerance/m.rate()*float64(1+ahead)+1e-6, "should have been told before")
	}
	m.remove(p)
}

func (m *model) try() {
	n := 1 + m.r.IntN(m.most)
	p, ok := m.th.TryAcquire(n)
	if ok {
		require.Empty(m.t, m.queue, "overtook")
		m.permits = append(m.permits, drawn{p: p, pos: m.granted})
		m.took(n, n)
		return
	}
	if len(m.queue) == 0 && m.valid() {
		require.Less(m.t, m.level, float64(n)+tolerance, "refused although the tokens are there")
	}
}

func (m *model) acquire(upTo bool) {
	p := &pending{n: 1 + m.r.IntN(m.most), deadline: math.MaxInt64}
	p.least = p.n
	if upTo {
		p.least = 1
	}
	var patience time.Duration
	if m.r.IntN(2) == 0 {
		scale := float64(m.waiting()+p.least) / float64(m.limit.Max) * float64(m.limit.Per)
		patience = 1 + time.Duration(m.r.Float64()*2*scale)
		p.deadline = m.since() + patience
	}
	acquire := m.th.Acquire
	if upTo {
		acquire = m.th.AcquireUpTo
	}
	p.call = beginWith(acquire, p.n, patience)
	m.queue = append(m.queue, p)
	m.first()
	// Refused at once, or in the queue: who waited before is not concerned.
	before := len(m.queue) - 1
	m.settled(func(failed map[*pending]bool) {
		for _, q := range m.queue[:min(before, len(m.queue))] {
			require.False(m.t, failed[q] && q != p, "refused because of another call")
		}
		m.late(func(q *pending) bool { return failed[q] })
	})
}

func (m *model) lease() {
	share := m.r.Float64()
	switch m.r.IntN(6) {
	case 0:
		share = 0
	case 1:
		share = m.share
	case 2:
		share = 1
	}
	if m.collecting() && share < m.share && m.valid() {
		share = m.share // which part of it is clamped depends on the timers
	}
	until := time.Duration(math.MaxInt64)
	l := limit.Lease{Share: fraction(share)}
	if m.r.IntN(2) == 0 {
		d := time.Duration(m.r.ExpFloat64() * float64(m.limit.Per) * 20)
		until, l.Until = m.since()+d, time.Now().Add(d)
	}
	m.s.h.Lease(l)
	m.twin.lease(float64(l.Share)/float64(wholeShare), until)
	m.settled(func(failed map[*pending]bool) {
		m.late(func(q *pending) bool { return failed[q] })
	})
}

func (m *model) settle() {
	if len(m.permits) == 0 {
		return
	}
	i := m.r.IntN(len(m.permits))
	if m.r.IntN(2) == 0 {
		i = len(m.permits) - 1
	}
	d := m.permits[i]
	m.permits = append(m.permits[:i], m.permits[i+1:]...)
	used := m.r.IntN(d.p.N() + 1)
	if m.r.IntN(3) == 0 {
		used = d.p.N() + m.r.IntN(5)
	}
	if m.collecting() || d.vague && used < d.p.N() {
		used = d.p.N()
	}
	before := m.returned()
	d.p.Settle(used)
	if used > d.p.N() {
		if !m.valid() {
			m.level = min(m.level, 0)
		}
		m.level -= float64(used - d.p.N())
	} else if used < d.p.N() {
		m.credit(d, used, m.returned()-before)
	}
	m.settled(func(failed map[*pending]bool) {
		m.late(func(q *pending) bool { return failed[q] })
	})
	before = m.returned()
	d.p.Settle(m.r.IntN(100))
	require.Zero(m.t, m.returned()-before, "settled twice")
}

// returned is how many tokens were given back, with the fraction that Status
// leaves out.
func (m *model) returned() float64 {
	m.th.gate.Lock()
	defer m.th.gate.Unlock()
	return m.th.bucket.Tokens(m.th.bucket.Credited())
}

// credit books what was given back, if the rule allows it.
func (m *model) credit(d drawn, used int, got float64) {
	want := max(0, min(float64(d.p.N()-used), m.capacity()-m.level))
	since := float64(m.granted - d.pos)
	period := max(m.share*float64(m.limit.Max), m.capacity(), float64(d.p.N()))
	end := float64(d.pos + d.p.N())
	if !m.valid() || since > period+tolerance || end < m.kept-tolerance {
		want = 0
	} else if (since > period-1-tolerance || end < m.kept+tolerance) && got == 0 {
		want = 0 // on the brink of rounding
	}
	require.InDelta(m.t, want, got, tolerance, "%v granted since, of %v", since, period)
	m.level += got
	if len(m.log) > 0 {
		m.log[len(m.log)-1].back += got
	}
}
