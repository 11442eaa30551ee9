package throttle

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// hardDrift is how far clocks are off: 8.33 %.
const hardDrift = 0.0833

// A skewed clock runs at a rate of its own against true time, which the test moves.
type skewed struct {
	true   *time.Duration
	rate   float64
	timers []*skewedTimer
}

type skewedTimer struct {
	clock *skewed
	at    time.Duration // by the clock; 0: stopped
	f     func()
}

var skewedEpoch = time.Unix(1_800_000_000, 0)

func (c *skewed) read() time.Duration { return time.Duration(float64(*c.true) * c.rate) }
func (c *skewed) Now() time.Time      { return skewedEpoch.Add(c.read()) }

func (c *skewed) AfterFunc(d time.Duration, f func()) sharing.Timer {
	t := &skewedTimer{clock: c, f: f}
	c.timers = append(c.timers, t)
	t.Reset(d)
	return t
}

func (t *skewedTimer) Reset(d time.Duration) bool {
	was := t.at > 0
	t.at = t.clock.read() + d
	return was
}

func (t *skewedTimer) Stop() bool {
	was := t.at > 0
	t.at = 0
	return was
}

// fire calls what is due.
func (c *skewed) fire() {
	for _, t := range c.timers {
		if t.at > 0 && t.at <= c.read() {
			t.at = 0
			t.f()
		}
	}
}

// A hardPool is real Throttles with clocks of their own, whose shares an adversary
// moves, and the log of what they granted.
type hardPool struct {
	t     testing.TB
	r     *rand.Rand
	limit Limit
	now   time.Duration // true time
	procs []*hardProcessor
	log   []use // by time, what was granted and used
	units []use // the same in units, less what was credited again
	most  int   // largest cost of a draw
}

type hardProcessor struct {
	th     *Throttle
	clock  *skewed
	share  int64
	until  time.Duration // by its clock; 0: no end
	rests  time.Duration // true time until which it draws nothing
	held   []hardPermit
	keeps  float64 // how likely a permit is settled later
	waiter *waiter
}

type hardPermit struct {
	p     Permit
	entry int
	at    time.Duration // when it is settled
	used  int
}

func newHardPool(t testing.TB, seed uint64) *hardPool {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	p := &hardPool{t: t, r: r, limit: Limit{
		Max:  1 + r.IntN([]int{5, 30, 200}[r.IntN(3)]),
		Per:  []time.Duration{time.Second, time.Minute, 200 * time.Millisecond}[r.IntN(3)],
		Hard: true,
	}}
	if r.IntN(2) == 0 {
		p.limit.Burst = 1 + r.IntN(p.limit.Max)
	}
	keeps := []float64{0, 0, 0.3, 0.9}[r.IntN(4)]
	clocks := r.IntN(3)
	for range 1 + r.IntN(10) {
		rate := []float64{1, 1 + hardDrift, 1 - hardDrift + float64(r.IntN(2))*2*hardDrift}[clocks]
		c := &skewed{true: &p.now, rate: rate}
		th, _ := scripted(t, p.limit, 0, withClock(c))
		p.procs = append(p.procs, &hardProcessor{th: th, clock: c, keeps: keeps})
	}
	p.limit = p.procs[0].th.Limit()
	p.most = 1
	if r.IntN(3) == 0 {
		p.most = 1 + r.IntN(p.limit.Burst)
	}
	return p
}

// lease puts a share in force, now and then for a time only.
func (p *hardPool) lease(pr *hardProcessor, share int64) {
	l := limit.Lease{Share: share}
	pr.share, pr.until = share, 0
	if share > 0 && p.r.IntN(4) == 0 {
		pr.until = pr.clock.read() + time.Duration(p.r.ExpFloat64()*float64(p.limit.Per))
		l.Until = skewedEpoch.Add(pr.until)
	}
	pr.th.setLease(l)
	p.served(pr)
}

// free is what nobody has the right to.
func (p *hardPool) free() int64 {
	left := wholeShare
	for _, pr := range p.procs {
		if pr.until > 0 && pr.clock.read() >= pr.until {
			pr.share = 0
		}
		left -= pr.share
	}
	require.GreaterOrEqual(p.t, left, int64(0))
	return left
}

// move moves shares: all fall before one rises. Who gives a share away has drawn
// all it could.
func (p *hardPool) move() {
	want := make([]int64, len(p.procs))
	switch p.r.IntN(4) {
	case 0: // all to one
		want[p.r.IntN(len(want))] = wholeShare
	case 1: // evenly, to all
		for i := range want {
			want[i] = wholeShare / int64(len(want))
		}
	case 2: // from one to another
		for i, pr := range p.procs {
			want[i] = pr.share
		}
		i, j := p.r.IntN(len(want)), p.r.IntN(len(want))
		part := int64(p.r.Float64() * float64(want[i]))
		want[i] -= part
		want[j] += part
	default:
		sum, parts := 0.0, make([]float64, len(want))
		for i := range parts {
			if p.r.IntN(3) > 0 {
				parts[i] = p.r.ExpFloat64()
			}
			sum += parts[i]
		}
		for i := range want {
			want[i] = int64(parts[i] / max(sum, 1e-9) * float64(wholeShare) * 0.999999999)
		}
	}
	for i, pr := range p.procs {
		p.free()
		if want[i] < pr.share {
			if p.r.IntN(2) == 0 {
				p.greedy(pr)
			}
			p.lease(pr, want[i])
		}
	}
	for i, pr := range p.procs {
		if more := min(want[i]-pr.share, p.free()); more > 0 {
			p.lease(pr, pr.share+more)
		}
	}
}

// granted books a permit.
func (p *hardPool) granted(pr *hardProcessor, permit Permit) {
	p.log = append(p.log, use{p.now, permit.N()})
	p.units = append(p.units, use{p.now, int(pr.th.bucket.Units(permit.N()))})
	if p.r.Float64() >= pr.keeps {
		return
	}
	h := hardPermit{p: permit, entry: len(p.log) - 1, at: p.now}
	if p.r.IntN(3) > 0 {
		h.at += time.Duration(p.r.ExpFloat64() * float64(p.limit.Per))
	}
	h.used = max(0, p.r.IntN(permit.N()+1)-p.r.IntN(2)*permit.N())
	if p.r.IntN(20) == 0 {
		h.used = permit.N() + 1 + p.r.IntN(3) // over-use delays what comes after
	}
	pr.held = append(pr.held, h)
}

// settle settles what is due. Only what was really used counts, and that at the
// time at which it was granted.
func (p *hardPool) settle(pr *hardProcessor, all bool) {
	var due []hardPermit
	pr.held = slices.DeleteFunc(pr.held, func(h hardPermit) bool {
		if all || h.at <= p.now {
			due = append(due, h)
			return true
		}
		return false
	})
	for _, h := range due {
		before := pr.th.bucket.Credited()
		h.p.Settle(h.used)
		p.log[h.entry].tokens = min(h.p.N(), h.used)
		p.units[h.entry].tokens -= int(pr.th.bucket.Credited() - before)
		p.served(pr)
	}
}

// greedy takes all there is, and waits for more now and then.
func (p *hardPool) greedy(pr *hardProcessor) {
	pr.clock.fire()
	p.served(pr)
	for {
		permit, ok := pr.th.TryAcquire(1 + p.r.IntN(p.most))
		if !ok {
			break
		}
		p.granted(pr, permit)
	}
	if pr.waiter == nil && p.r.IntN(10) == 0 {
		n := 1 + p.r.IntN(p.most)
		w := &waiter{N: n, Least: n, Deadline: never, Ready: make(chan struct{})}
		require.NoError(p.t, pr.th.enqueue(w))
		pr.waiter = w
		p.served(pr)
	}
}

// served books what the caller that waits was granted at this moment.
func (p *hardPool) served(pr *hardProcessor) {
	if w := pr.waiter; w != nil && !w.Queued() {
		pr.waiter = nil
		require.NoError(p.t, w.Err)
		p.granted(pr, w.Permit)
	}
}

// run lets the pool go on for some periods.
func (p *hardPool) run(periods float64) {
	end := p.now + time.Duration(periods*float64(p.limit.Per))
	token := float64(p.limit.Per) / float64(p.limit.Max)
	moves := []float64{0.002, 0.02, 0.3}[p.r.IntN(3)]
	for p.now < end {
		p.now += 1 + time.Duration(p.r.ExpFloat64()*token/3)
		if p.r.IntN(300) == 0 {
			for _, pr := range p.procs { // a rest, until all are full, and then all at once
				pr.rests = p.now + time.Duration(p.r.Float64()*2*float64(p.limit.Per))
			}
			if p.r.IntN(2) == 0 {
				p.now = p.procs[0].rests + p.limit.Per
			}
		}
		if p.r.Float64() < moves {
			p.move()
		}
		for _, pr := range p.procs {
			p.settle(pr, p.r.IntN(1000) == 0)
			if p.now < pr.rests {
				continue
			}
			p.greedy(pr)
			if p.r.IntN(500) == 0 {
				pr.rests = p.now + time.Duration(p.r.ExpFloat64()*float64(p.limit.Per))
			}
		}
	}
	for _, pr := range p.procs {
		p.settle(pr, true)
		sound(p.t, pr.th)
	}
	require.True(p.t, slices.IsSortedFunc(p.log, func(a, b use) int { return cmp.Compare(a.at, b.at) }))
}

// tryHardPool runs a pool, and returns what its fullest window of Per was used for,
// and what is wrong with it.
func tryHardPool(t testing.TB, seed uint64) (p *hardPool, used int, wrong string) {
	t.Helper()
	p = newHardPool(t, seed)
	p.move()
	p.run(30)
	used = worst(p.log, p.limit.Per)
	granted := int64(worst(p.units, p.limit.Per))
	if used > p.limit.Max || granted >= p.procs[0].th.bucket.Units(p.limit.Max+1) {
		wrong = fmt.Sprintf("seed %d: %d tokens used, %.3f granted and not credited, in %s: %d processors, %+v",
			seed, used, p.procs[0].th.bucket.Tokens(granted), p.limit.Per, len(p.procs), p.limit)
	}
	return p, used, wrong
}

// At most Max in any window of Per: whatever the number of processors, the burst,
// the clocks, the shares' ways and what is given back.
func TestHardPoolKeepsMaxInAnyWindow(t *testing.T) {
	seeds := uint64(testkit.Fewer(200))
	reached, back := 0, int64(0)
	for seed := range seeds {
		p, used, wrong := tryHardPool(t, seed)
		require.Empty(t, wrong)
		if used == p.limit.Max {
			reached++
		}
		for _, pr := range p.procs {
			back += pr.th.Status().Returned
			require.NoError(t, pr.th.Close())
		}
	}
	require.Greater(t, reached, int(seeds/10), "few pools come to Max, so that a token too many would not be seen")
	require.Greater(t, back, int64(5*seeds), "hardly anything was given back")
	t.Logf("%d of %d pools reach Max in a window; %d tokens given back", reached, seeds, back)
}
