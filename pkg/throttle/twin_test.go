package throttle

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tolerance is how far the twin and the Throttle may be apart, in tokens: a
// bucket that is as small as one token loses a nanosecond's worth per timer.
const tolerance = 0.01

// A twin is a bucket in plain floating point, without any of the engine's
// concerns: one level, one queue, advanced from event to event. It does not
// decide; it judges what the engine decided.
type twin struct {
	t     testing.TB
	limit Limit
	now   time.Duration
	share float64
	until time.Duration // when the share ends
	level float64       // with what the first waiter collected
	queue []*pending
	// permits are those that were not settled yet.
	permits []drawn

	earned  float64 // by the share, since the beginning
	kept    float64 // permits that ended before so many grants are not given back
	granted int     // tokens, since the beginning
	largest float64 // largest capacity so far
	log     []grant
}

// A grant is what the bound is checked on.
type grant struct {
	tokens, back float64
	earned       float64 // when it was granted
}

// A pending is a call of the model that waits.
type pending struct {
	call     *call
	n, least int
	deadline time.Duration
	collects bool // has been first with more to draw than the bucket holds
}

// A drawn is a permit of the model.
type drawn struct {
	p   Permit
	pos int // tokens granted before it
	// vague: which tokens count as granted since depends on what was collected.
	vague bool
}

func (w *twin) valid() bool   { return w.share > 0 && w.now < w.until }
func (w *twin) rate() float64 { return w.share * float64(w.limit.Max) / w.limit.Per.Seconds() }

func (w *twin) capacity() float64 {
	if w.share == 0 {
		return 0
	}
	return max(1, w.share*float64(w.limit.Burst))
}

// advance goes on to now. Only a bucket that nobody waits at overflows.
func (w *twin) advance(now time.Duration) {
	if w.share > 0 && w.now < w.until {
		more := w.rate() * (min(now, w.until) - w.now).Seconds()
		w.level += more
		w.earned += more
	}
	w.now = now
	if len(w.queue) == 0 {
		w.level = min(w.level, w.capacity())
	}
	w.first()
}

// first notes whether the first waiter asks for more than the bucket holds.
func (w *twin) first() {
	if len(w.queue) > 0 && w.valid() && float64(w.queue[0].least) > w.capacity()-tolerance {
		w.queue[0].collects = true
	}
}

// collecting tells whether the engine's level may be split in a way that the
// twin does not know.
func (w *twin) collecting() bool { return len(w.queue) > 0 && w.queue[0].collects }

// due is how many seconds it takes until tokens are there.
func (w *twin) due(tokens int) float64 { return max(0, float64(tokens)-w.level) / w.rate() }

func (w *twin) waiting() (tokens int) {
	for _, p := range w.queue {
		tokens += p.least
	}
	return tokens
}

// took books a grant of n tokens; the waiter had asked for no fewer than least.
func (w *twin) took(n, least int) {
	require.True(w.t, w.valid(), "granted without a share")
	require.GreaterOrEqual(w.t, w.level, float64(least)-tolerance, "granted before the tokens were there")
	require.GreaterOrEqual(w.t, w.level, float64(n)-tolerance, "granted more than was there")
	w.level -= float64(n)
	w.granted += n
	w.largest = max(w.largest, w.capacity())
	w.log = append(w.log, grant{tokens: float64(n), earned: w.earned})
}

// remove takes out a waiter that failed; what it had collected beyond the
// capacity is lost.
func (w *twin) remove(p *pending) {
	for i, q := range w.queue {
		if q == p {
			w.queue = append(w.queue[:i:i], w.queue[i+1:]...)
			if i == 0 {
				w.level = min(w.level, w.capacity())
			}
			if p.collects {
				w.blur()
			}
			w.first()
			return
		}
	}
	require.Fail(w.t, "it did not wait")
}

// blur marks the open permits: what was collected, perhaps for nothing, may count
// as granted since they were drawn.
func (w *twin) blur() {
	for i := range w.permits {
		w.permits[i].vague = true
	}
}

// lease puts a share in force.
func (w *twin) lease(share float64, until time.Duration) {
	room, back := w.capacity(), min(share, w.share)*float64(w.limit.Max)
	if !w.valid() {
		room = 0
	}
	if w.collecting() {
		w.blur()
	}
	w.share, w.until = share, until
	room = min(room, w.capacity())
	if back = max(back, room); room == 0 {
		back = -0.5 // not even the last permit
	}
	w.kept = max(w.kept, float64(w.granted)-back)
	if !w.collecting() || room == 0 {
		w.level = min(w.level, room)
	}
	w.first()
}

// late checks which waiters were told that they do not fit any more.
func (w *twin) late(failed func(*pending) bool) {
	ahead := 0
	for _, p := range append([]*pending(nil), w.queue...) {
		slack := (p.deadline - w.now).Seconds() - w.due(ahead+p.least)
		margin := tolerance/w.rate() + 1e-6
		if failed(p) {
			require.True(w.t, w.valid(), "told without a share")
			require.LessOrEqual(w.t, slack, margin, "told although it fits")
			w.remove(p)
			continue
		}
		if w.valid() && p.deadline < math.MaxInt64 {
			require.GreaterOrEqual(w.t, slack, -margin, "not told although it does not fit")
		}
		ahead += p.least
	}
}

// check compares levels, and that nobody waits who could be served.
func (w *twin) check(th *Throttle) {
	st := th.Status()
	require.Equal(w.t, len(w.queue), st.Waiting)
	require.Equal(w.t, int64(w.granted), st.Granted)
	if len(w.queue) > 0 && w.valid() {
		require.Less(w.t, w.level, float64(w.queue[0].least)+tolerance, "left waiting although the tokens are there")
	}
	if !w.collecting() {
		want := w.level
		if !w.valid() {
			want = min(want, 0)
		}
		require.InDelta(w.t, want, st.Tokens, tolerance)
	}
}

// bound checks every window between two grants.
func (w *twin) bound(largest int) {
	for i := range w.log {
		sum, back := 0.0, 0.0
		for j := i; j < len(w.log); j++ {
			sum += w.log[j].tokens
			back += w.log[j].back
			most := w.log[j].earned - w.log[i].earned + w.largest + float64(largest) + back
			require.LessOrEqual(w.t, sum, most+tolerance, "grants %d to %d", i, j)
		}
	}
}
