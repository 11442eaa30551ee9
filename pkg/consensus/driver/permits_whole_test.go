package driver

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/race"
)

// A mixture is a pool that changes between shares and permits while both are in use.
// The store forgets nothing.
type mixture struct {
	*trial
	rng       *rand.Rand
	slots     []judged
	most      float64 // of the limit that was in use at once
	mixed     int     // permits reserved while shares were in use
	began, on int
}

// logical is the time on the record's clock at this moment.
func (m *mixture) logical() int64 {
	r := m.record
	if d := m.storeTime - r.Wall; d > 0 && d <= micros(Clamp(longest)) {
		return r.Clock + d
	}
	return r.Clock
}

// judge adds what may be drawn on shares and what may be used of permits at this moment.
func (m *mixture) judge() {
	var held Share
	for _, a := range m.actors {
		held += a.inForce()
	}
	permits, now := 0.0, nanos(m.logical())
	left := m.slots[:0]
	for _, s := range m.slots {
		if now < s.at+int64(Validity(s.spacing)) {
			permits = max(permits, float64(s.trueTime)/float64(s.spacing)) // the whole limit's spacing over that in force
			left = append(left, s)
		}
	}
	if m.slots = left; permits > 0 && held > 0 {
		m.mixed++
	}
	m.most = max(m.most, held.Fraction()+permits)
}

func (m *mixture) step() {
	const low, high = 700 * time.Millisecond, 5 * time.Millisecond
	a := m.actors[m.rng.IntN(len(m.actors))]
	switch m.rng.IntN(60) {
	case 0:
		for _, b := range m.actors {
			b.spacing = []time.Duration{low, high, 150 * time.Millisecond}[m.rng.IntN(3)]
		}
	case 1:
		a.strict = a.spacing > 0 && m.rng.IntN(2) == 0
	case 2:
		m.actors[m.rng.IntN(len(m.actors))].strict = false
	}
	if m.rng.IntN(3) > 0 {
		before := m.record.Permits.Issuing
		if ans := a.sync(Share(m.rng.Int64N(int64(Whole) + 1))); ans.Status == Granted && ans.Issuing != before {
			m.began++
		}
	} else {
		m.reserve()
	}
	if m.record.Permits.Issuing {
		m.on++
	}
	m.judge()
	m.wait(time.Duration(m.rng.Int64N(int64(300 * time.Millisecond))))
	m.judge()
}

func (m *mixture) reserve() {
	req := Reserve{Pool: "pool", Count: 1 + m.rng.IntN(3), Spacing: 5 * time.Millisecond, Ahead: m.rng.IntN(4), Revision: m.record.Revision, Lease: longest}
	whole := max(req.Spacing, m.record.Permits.Spacing)
	res, changed := m.record.Reserve(&req, m.moment())
	if changed {
		m.written = m.storeTime
	}
	if m.at.Deferred && changed {
		res = m.record.ReadReservation(&req, res.Revision, m.moment())
	}
	for i := range res.Count {
		at := res.Time*1000 + int64(res.Wait) + int64(i)*int64(res.Spacing)
		m.slots = append(m.slots, judged{at: at, spacing: res.Spacing, trueTime: whole})
	}
}

func playMixture(tb testing.TB, seed uint64) *mixture {
	tb.Helper()
	m := &mixture{trial: newTrial(tb), rng: rand.New(rand.NewPCG(seed, 20))}
	m.at.Identity = "" // nothing is frozen
	m.at.Deferred = seed%2 == 0
	for i := range 2 + int(seed%4) {
		m.actor(fmt.Sprint("p", i)).spacing = 5 * time.Millisecond
	}
	for range 1500 {
		m.step()
	}
	return m
}

// The permits' claim and all others never come to more than the whole.
func TestSharesAndPermitsAreOneWhole(t *testing.T) {
	seeds := race.Fewer(60)
	mixed, began, most := 0, 0, 0.0
	for seed := range uint64(seeds) {
		m := playMixture(t, seed)
		require.LessOrEqual(t, m.most, 1+1e-6, "seed %d", seed)
		mixed, began, most = mixed+m.mixed, began+m.began, max(most, m.most)
	}
	t.Logf("shares and permits together %d times, %d changes, at most %.6f in use", mixed, began, most)
	require.Greater(t, mixed, 100*seeds/60)
	require.Greater(t, began, 100*seeds/60)
	require.Greater(t, most, 0.99)
}
