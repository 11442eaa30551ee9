package bucket

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A twin is a bucket as its callers see it, in the plainest way: a level that is brought up to date at each step, and never above the
// capacity. A token is 1024 units, and the whole limit earns one unit per nanosecond.
type twin struct {
	t *testing.T
	r *rand.Rand
	c Config
	b *Bucket

	now     int64
	law     *Segment
	open    bool
	level   int64
	total   int64 // granted, with the fences
	void    int64
	back    int64 // given back
	kept    int64 // what was drawn before is not credited any more
	permits []permit
}

type permit struct {
	pos, units int64
	n          int
}

const token = 1024

// Whatever its callers do, a bucket holds what the twin holds, and answers as the twin does.
func TestBucketMatchesTwin(t *testing.T) {
	for seed := range uint64(testkit.Fewer(2000)) {
		r := rand.New(rand.NewPCG(seed, 1))
		most := 1 << (2 + 2*r.IntN(3))
		c := Config{
			Max: most, Per: time.Duration(most * token), Burst: 1 << r.IntN(6), Hard: r.IntN(3) == 0, Debt: []int{0, 3, 20, 1 << 60}[r.IntN(4)],
		}
		if c.Hard {
			c.Burst = min(c.Burst, c.Max)
		}
		w := &twin{t: t, r: r, c: c, b: &Bucket{}}
		w.b.Begin(c, func() int64 { return w.now })
		w.law = w.b.Law()
		for range 150 {
			w.pass()
			w.step()
			w.compare()
			if t.Failed() {
				t.Fatalf("seed %d, %+v", seed, c)
			}
		}
	}
}

func (w *twin) equal(want, got any, what string) {
	w.t.Helper()
	require.Equal(w.t, want, got, "%s at %d with %+v, %d units, limit %+v", what, w.now, *w.law, w.level, w.c)
}

// earned returns the units earned by a time, nothing after the end of the share.
func (w *twin) earned(at int64) int64 {
	if at = min(at, w.law.Until); at <= w.law.Start {
		return w.law.Earned
	}
	return exactUnits(w.law, at-w.law.Start).Int64()
}

func (w *twin) valid() bool { return w.now < w.law.Until }

// pass lets time pass, often up to a moment at which something changes.
func (w *twin) pass() {
	var d int64
	switch w.r.IntN(6) {
	case 0:
		d = w.r.Int64N(4 * token)
	case 1:
		d = min(max(w.law.Until-w.now-w.r.Int64N(2), 0), 100*token)
	case 2, 3: // until there are whole tokens
		if wait, ok := w.law.Wait(w.r.Int64N(4)*token - w.level); ok {
			d = max(min(int64(wait), 100*token)-w.r.Int64N(2), 0)
		}
	}
	before := w.earned(w.now)
	w.now += d
	w.level += w.earned(w.now) - before
	w.clip()
}

func (w *twin) clip() {
	if !w.law.Lease.Issuing {
		w.level = min(w.level, w.law.Capacity)
	}
}

func (w *twin) fence() { w.total++; w.void++ }

// room returns how many of so many units can go back.
func (w *twin) room(units int64) int64 {
	if !w.valid() {
		return 0
	}
	return max(0, min(units, w.law.Capacity-w.level))
}

func (w *twin) give(units int64) { w.level += units; w.back += units }

func (w *twin) drawn(pos int64, n int, units int64) {
	w.equal(w.total, pos, "position")
	w.total += units
	w.level -= units
	w.permits = append(w.permits, permit{pos, units, n})
}

// pick takes out one of the permits.
func (w *twin) pick() (p permit, ok bool) {
	if len(w.permits) == 0 {
		return p, false
	}
	i := len(w.permits) - 1 - w.r.IntN(min(len(w.permits), 4))
	p = w.permits[i]
	w.permits = append(w.permits[:i], w.permits[i+1:]...)
	return p, true
}

func (w *twin) step() {
	steps := []func(){
		w.draw, w.draw, w.draw, w.takeFrom, w.take, w.undraw, w.settle, w.settle, w.putBack, w.owe, w.charge, w.repay, w.forgive, w.change,
		w.shut, w.deposit,
	}
	steps[w.r.IntN(len(steps))]()
}

func (w *twin) draw() {
	n, now := 1+w.r.IntN(3), w.now
	can := w.open && w.valid() && w.level >= int64(n*token)
	if w.r.IntN(2) == 0 {
		now = w.law.Start - 1 - w.r.Int64N(token) // the clock was read before the change
	}
	if now == w.now || w.now == w.law.Start {
		w.equal(can, w.b.Peek(int64(n*token), now), "peek")
	}
	pos, ok := w.b.Draw(int64(n*token), now)
	w.equal(can, ok, "draw")
	if ok {
		w.drawn(pos, n, int64(n*token))
	}
}

func (w *twin) takeFrom() {
	n, room := 1+w.r.IntN(3), w.law.Capacity
	if w.law.Lease.Issuing {
		room = MaxUnits
	}
	pos, ok := w.b.TakeFrom(w.now, int64(n*token), room)
	w.equal(w.level >= int64(n*token), ok, "take from")
	if ok {
		w.drawn(pos, n, int64(n*token))
	}
}

// take takes a part of the level, as a draw does that collects.
func (w *twin) take() {
	if w.level > 0 && !w.law.Lease.Issuing {
		w.b.Trim(w.now, w.law.Capacity)
		units := 1 + w.r.Int64N(w.level)
		w.drawn(w.b.Take(units), int(units/token), units/token*token)
		w.total += units % token
		w.level -= units % token
	}
}

func (w *twin) undraw() {
	if len(w.permits) == 0 {
		return
	}
	last := w.permits[len(w.permits)-1]
	can := last.pos+last.units == w.total
	w.equal(can, w.b.Undraw(last.pos, last.units), "undraw")
	if can {
		w.permits = w.permits[:len(w.permits)-1]
		w.total = last.pos
		w.level += last.units
		w.clip()
	}
}

func (w *twin) settle() {
	p, ok := w.pick()
	if !ok || p.n == 0 || w.law.Lease.Issuing {
		return
	}
	used := w.r.IntN(p.n + 1)
	gone := p.pos+p.units < w.kept
	w.equal(gone, w.b.Gone(p.pos+p.units), "gone")
	since := w.total - p.pos
	unused := int64(p.n-used) * token
	if w.c.Hard {
		if !gone {
			w.b.RefundHard(w.now, p.pos+p.units, unused)
			w.give(max(0, min(unused, w.room(MaxUnits)-(since-p.units)/token*token)))
		}
		return
	}
	most := max(w.period(w.law.Lease.Share), w.law.Capacity, p.units)
	var back int64
	if !gone && since/token <= most/token {
		back = w.room(unused)
	}
	w.equal(back > 0, w.b.Refund(w.now, p.pos, p.n, used), "refund")
	w.give(back)
}

// period returns what a share earns in a period of the limit.
func (w *twin) period(share int64) int64 { return int64(w.c.Max*token) * share / limit.WholeShare }

func (w *twin) putBack() {
	p, ok := w.pick()
	if !ok {
		return
	}
	w.void += p.units
	if w.law.Lease.Issuing || w.r.IntN(2) == 0 {
		w.b.Waste(p.units)
		return
	}
	w.b.PutBack(w.now, p.units)
	w.level += w.room(p.units)
}

// book brings the bucket up to now, and returns how many of n tokens can still be owed.
func (w *twin) book(n int) (units int64, excess int) {
	if !w.law.Lease.Issuing {
		room := int64(0)
		if w.valid() {
			room = w.law.Capacity
		}
		w.b.Trim(w.now, room)
		w.level = min(w.level, room)
	}
	if w.c.Debt == 0 || w.c.Debt == 1<<60 {
		return int64(n * token), 0
	}
	units = max(0, min(int64(n*token), int64(w.c.Debt*token)+w.level))
	return units, n - int(units/token)
}

func (w *twin) owe() {
	n := 1 + w.r.IntN(8)
	units, excess := w.book(n)
	w.equal(excess, w.b.Owe(w.now, n), "excess")
	w.level -= units
	w.fence()
	if w.c.Hard {
		w.kept = w.total
	}
}

func (w *twin) charge() {
	n := 1 + w.r.IntN(8)
	units, excess := w.book(n)
	w.equal(excess, w.b.Charge(w.now, n), "excess")
	w.level -= units
	w.total += units
	if w.c.Hard {
		w.kept = w.total
	}
}

func (w *twin) repay() {
	w.book(0)
	n := 1 + w.r.IntN(8)
	pays := max(0, min(int64(n*token), -w.level))
	w.equal(int(pays/token), w.b.Repay(w.now, n), "repaid")
	w.give(pays)
	if !w.c.Hard && !w.law.Lease.Issuing {
		n -= int(pays / token)
		w.b.Credit(w.now, n)
		w.give(w.room(int64(n * token)))
	}
}

func (w *twin) forgive() {
	debt := max(0, -w.level)
	w.equal(float64(debt)/token, w.b.Forgive(w.now), "forgiven")
	if debt > 0 {
		w.level = 0
		w.fence()
	}
}

func (w *twin) shut() {
	w.open = w.r.IntN(3) > 0 && !w.law.Lease.Issuing
	if w.open {
		w.b.Open(w.b.Law())
		return
	}
	w.b.Shut(w.now)
	w.equal(w.law, w.b.Current().Behind, "behind the gate")
}

func (w *twin) deposit() {
	if w.law.Lease.Issuing {
		w.b.Deposit(token)
		w.level += token
	}
}

// lease returns a lease and its end.
func (w *twin) lease() (l limit.Lease, until int64) {
	most := int64(limit.WholeShare)
	if !w.c.Hard && w.r.IntN(4) == 0 {
		most = sharing.MaxShare
	}
	l.Share = []int64{0, most, most / 2, w.r.Int64N(most), w.law.Lease.Share, w.law.Lease.Share}[w.r.IntN(6)]
	switch kind := w.r.IntN(6); {
	case kind == 0: // earns whole tokens in a period, or a little more
		units := w.r.Int64N(int64(w.c.Max))*token + w.r.Int64N(3)
		l.Share = (units*limit.WholeShare + int64(w.c.Max*token) - 1) / int64(w.c.Max*token)
	case kind == 1 && w.c.Hard:
		l.Share = w.b.HardShare(int64(1+w.r.IntN(w.c.Burst)) * token)
	}
	l.Degraded = w.r.IntN(8) == 0
	if l.Issuing = !w.c.Hard && w.r.IntN(4) == 0; l.Issuing {
		l.Share = 0
	}
	l.Reason = []limit.Reason{"", limit.ReasonNames}[w.r.IntN(2)]
	return l, w.now + []int64{0, token, w.r.Int64N(10 * token), w.r.Int64N(100 * token), sharing.Never / 2}[w.r.IntN(5)]
}

func (w *twin) change() {
	l, until := w.lease()
	old, ended := w.law, !w.valid()
	c := w.b.Replace(w.now, until, l)
	w.law = w.b.Law()
	w.checkLaw(l, until)
	if c.Issuing {
		w.equal(true, l.Issuing && old.Lease.Issuing && !ended, "issuing")
		return
	}
	w.equal(true, !l.Issuing || !old.Lease.Issuing || ended, "issuing")
	w.equal(l.Share != old.Lease.Share || ended, c.Moved, "moved")
	emptied := ended || l.Share == 0 || old.Lease.Issuing
	w.equal(emptied, c.Emptied, "emptied")
	w.b.Cut(w.now, c)
	w.shut()
	w.b.Seal(c)
	w.fence()
	room := min(old.Capacity, w.law.Capacity)
	back := max(w.period(min(old.Lease.Share, l.Share)), room)
	if emptied {
		room, back = 0, 0
	}
	w.level = min(w.level, room)
	if !w.c.Hard {
		w.kept = max(w.kept, w.total-back)
	} else if c.Moved {
		w.kept = w.total
	}
}

// checkLaw compares the law in force with the lease.
func (w *twin) checkLaw(l limit.Lease, until int64) {
	capacity := int64(token)
	if !l.Issuing {
		capacity = max(capacity, l.Share*int64(w.c.Burst)*token/limit.WholeShare)
	}
	if w.c.Hard {
		capacity = l.Share * w.b.HardUnits() / limit.WholeShare
		switch {
		case l.Share == 0:
		case l.Degraded:
			l.Reason, capacity = limit.ReasonStoreLost, 0
		case capacity < token:
			l.Reason, capacity = limit.ReasonShareTooSmall, 0
		}
	}
	if !l.Issuing && l.Share == 0 || capacity == 0 {
		capacity, until = 0, w.now
	}
	w.equal(l.Reason, w.law.Lease.Reason, "reason")
	require.InDelta(w.t, capacity, w.law.Capacity, 1)
	w.equal(until, w.law.Until, "end")
	w.equal(capacity > 0 && !l.Issuing && l.Share > 0, w.law.Rate > 0, "rate")
}

// compare compares all that can be seen without changing anything.
func (w *twin) compare() {
	held := w.b.Level(w.now)
	if !w.law.Lease.Issuing {
		held = min(held, w.law.Capacity)
	}
	w.equal(w.level, held, "level")
	w.equal(w.total, w.b.Granted(), "granted")
	w.equal(w.total-w.void, w.b.Drawn(), "drawn")
	w.equal(w.back, w.b.Credited(), "credited")
	w.equal(w.valid(), w.b.Law().Valid(w.now), "valid")
	units := w.law.Capacity + w.r.Int64N(3) - 1
	w.equal(!w.c.Hard || units <= w.law.Capacity, w.b.Fits(w.law, units), "fits")
}
