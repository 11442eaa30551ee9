package pools

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A caller is how the callers of a crew draw.
type caller struct {
	pods    []*pod
	tag     string
	sizes   []int // in turn
	every   time.Duration
	hold    [2]time.Duration // how long a call takes: at least, and at most
	within  time.Duration    // its deadline; 0: none
	try     bool
	service *service
	meter   *meter // nil: nothing is judged
}

// caller reads from an order which pods draw, for which tag, and how.
func (o *order) caller() (how caller) {
	who := o.Word("")
	who, how.tag, _ = strings.Cut(who, ":")
	how.pods, how.try, how.service = o.who(who), o.Is("try"), o.services[o.Value("service")]
	how.every, how.within = o.Time(o.Value("every")), o.Time(o.Value("within"))
	least, most, _ := strings.Cut(o.Value("hold"), "..")
	how.hold = [2]time.Duration{o.Time(least), max(o.Time(least), o.Time(most))}
	for size := range strings.SplitSeq(o.Value("draw"), ",") {
		how.sizes = append(how.sizes, max(1, int(o.Number(size))))
	}
	return how
}

// A crew draws again and again.
type crew struct {
	ctx               context.Context //nolint:containedctx // it ends with the crew
	stop              func()
	granted           atomic.Int64
	accepted, refused atomic.Int64 // calls, by the service
	now, most         atomic.Int64 // calls in flight
	byPod             []atomic.Int64

	mu      sync.Mutex
	last    time.Time     // of a call
	closest time.Duration // of two calls; 0: none
}

// called notes that a call begins.
func (c *crew) called(at, n int) {
	c.granted.Add(int64(n))
	c.byPod[at].Add(int64(n))
	if now := c.now.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if gap := now.Sub(c.last); !c.last.IsZero() && (c.closest == 0 || gap < c.closest) {
		c.closest = max(gap, 1)
	}
	c.last = now
}

// gap returns the least time between two calls since the last look.
func (c *crew) gap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	gap := c.closest
	c.closest, c.last = 0, time.Time{}
	return gap
}

func newEmptyCrew(how *caller) *crew {
	c := &crew{byPod: make([]atomic.Int64, len(how.pods))}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// newCrew has callers at each pod that draw as fast as they can, or every so often.
func (p *pool) newCrew(how caller, callers int) *crew {
	c := newEmptyCrew(&how)
	for at := range how.pods {
		for i := range callers {
			how := how // its own tag
			how.tag = strings.ReplaceAll(how.tag, "*", strconv.Itoa(i))
			if how.pods[at].rate != nil {
				how.meter = p.meter(how.tag)
			}
			go func() {
				for k := i; c.ctx.Err() == nil && (c.draw(&how, at, k) || how.every > 0); k++ {
					_ = world.Sleep(c.ctx, how.every)
				}
			}()
		}
	}
	return c
}

// newArrivals has calls come to each pod at a rate in tokens per second, however many wait.
func (p *pool) newArrivals(how caller, rate float64) *crew {
	c := newEmptyCrew(&how)
	how.meter = p.meter(how.tag)
	for at := range how.pods {
		go func() {
			for k := 0; c.ctx.Err() == nil; k++ {
				go c.draw(&how, at, k)
				_ = world.Sleep(c.ctx, time.Duration(float64(how.sizes[k%len(how.sizes)])/rate*float64(time.Second)))
			}
		}()
	}
	return c
}

// draw makes the call number k at a pod.
func (c *crew) draw(how *caller, at, k int) bool {
	l, n := throttle.ForTags(how.pods[at].limiter(), how.tag), how.sizes[k%len(how.sizes)]
	p, ok := how.acquire(c.ctx, l, n)
	if !ok {
		return false
	}
	how.meter.add(p.N())
	c.called(at, p.N())
	_ = world.Sleep(c.ctx, how.hold[0]+rand.N(how.hold[1]-how.hold[0]+1))
	c.now.Add(-1) // before its slot is another's
	if how.service == nil {
		p.Settle(p.N())
		return true
	}
	outcome := how.service.take()
	p.Report(outcome)
	if outcome == throttle.OutcomeAccepted {
		c.accepted.Add(1)
	} else {
		c.refused.Add(1)
	}
	return true
}

func (how *caller) acquire(ctx context.Context, l throttle.Limiter, n int) (throttle.Permit, bool) {
	if how.try {
		return l.TryAcquire(n)
	}
	if how.within > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, how.within)
		defer cancel()
	}
	p, err := l.Acquire(ctx, n)
	return p, err == nil
}

// fair returns what the pod with the least got since the last call, as a part of an even one.
func (c *crew) fair() float64 {
	least, sum := int64(1<<62), int64(0)
	for i := range c.byPod {
		n := c.byPod[i].Swap(0)
		least, sum = min(least, n), sum+n
	}
	return float64(least*int64(len(c.byPod))) / float64(max(sum, 1))
}

// count returns the tokens that crews have drawn: all of a name, of pods, or of several: a+b; or calls that a service has accepted or
// refused: NAME/refused.
func (o *order) count(word string) (n int64) {
	if first, more, ok := strings.Cut(word, "+"); ok {
		return o.count(first) + o.count(more)
	}
	name, what, _ := strings.Cut(word, "/")
	if c, ok := o.crews[name]; ok {
		return map[string]*atomic.Int64{"": &c.granted, "accepted": &c.accepted, "refused": &c.refused}[what].Load()
	}
	for _, one := range o.who(name) {
		n += o.crews[one.name].granted.Load()
	}
	return n
}

// A service accepts so many calls per second, with a burst of a tenth of a second and at least three.
type service struct {
	mu          sync.Mutex
	rate, level float64
	at          time.Time
	overloaded  bool // it refuses calls because it has too much to do
}

func (s *service) can(rate float64, overloaded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate, s.overloaded = rate, overloaded
}

func (s *service) take() throttle.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.level = min(s.level+s.rate*now.Sub(s.at).Seconds(), max(3, s.rate/10))
	if s.at = now; s.level >= 1 {
		s.level--
		return throttle.OutcomeAccepted
	}
	if s.overloaded {
		return throttle.OutcomeOverloaded
	}
	return throttle.OutcomeRefused
}
