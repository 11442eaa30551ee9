package pools

import (
	"cmp"
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
	pods    []string // by name
	tag     string
	names   int   // of a tag with *, in turn; 0: each caller has its own
	sizes   []int // in turn
	every   span  // the time between two calls
	hold    span  // how long a call takes
	within  span  // its deadline; 0: none
	try     bool
	service *service
}

// A span is a time: at least, and at most.
type span [2]time.Duration

func (o *order) span(key string) span {
	least, most, _ := strings.Cut(o.Value(key), "..")
	return span{o.Time(least), max(o.Time(least), o.Time(most))}
}

// some returns a time of the span.
func (s span) some() time.Duration { return s[0] + rand.N(s[1]-s[0]+1) }

// caller reads from an order which pods draw, for which tag, and how.
func (o *order) caller() (how caller) {
	who := o.Word("")
	who, how.tag, _ = strings.Cut(who, ":")
	for _, one := range o.who(who) {
		how.pods = append(how.pods, one.name)
	}
	how.try, how.service, how.names = o.Is("try"), o.services[o.Value("service")], int(o.Number(o.Value("names")))
	how.every, how.within, how.hold = o.span("every"), o.span("within"), o.span("hold")
	for size := range strings.SplitSeq(o.Value("draw"), ",") {
		how.sizes = append(how.sizes, max(1, int(o.Number(size))))
	}
	return how
}

// A crew draws again and again.
type crew struct {
	caller

	pool              *pool
	tags              []tagged
	ctx               context.Context //nolint:containedctx // it ends with the crew
	stop              func()
	began             time.Time
	granted           atomic.Int64
	accepted, refused atomic.Int64 // calls, by the service
	now, most         atomic.Int64 // calls in flight
	byPod             []atomic.Int64

	mu      sync.Mutex
	last    time.Time     // of a call
	closest time.Duration // of two calls; 0: none
	busy    time.Duration // the ends of calls less their beginnings
}

// A tagged is a tag of a crew.
type tagged struct {
	name  string
	meter *meter // nil: nothing is judged
	got   atomic.Int64
}

// called notes that a call begins.
func (c *crew) called(at int, tag *tagged, n int) {
	c.granted.Add(int64(n))
	c.byPod[at].Add(int64(n))
	tag.got.Add(int64(n))
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	now := time.Now()
	if gap := now.Sub(c.last); !c.last.IsZero() && (c.closest == 0 || gap < c.closest) {
		c.closest = max(gap, 1)
	}
	c.last = now
	c.busy -= now.Sub(c.began)
}

// ended notes that a call ends.
func (c *crew) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Add(-1) // with busy: see seconds
	c.busy += time.Since(c.began)
}

// seconds returns how long all calls have been in flight together.
func (c *crew) seconds() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy.Seconds() + float64(c.now.Load())*time.Since(c.began).Seconds()
}

// gap returns the least time between two calls since the last look.
func (c *crew) gap() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	gap := c.closest
	c.closest, c.last = 0, time.Time{}
	return gap
}

// crew returns one without callers. They have so many tags if the tag has *.
func (p *pool) crew(how caller, tags int) *crew {
	if !strings.Contains(how.tag, "*") {
		tags = 1
	}
	c := &crew{caller: how, pool: p, tags: make([]tagged, tags), began: time.Now(), byPod: make([]atomic.Int64, len(how.pods))}
	for i := range c.tags {
		c.tags[i].name = strings.ReplaceAll(how.tag, "*", strconv.Itoa(i))
		c.tags[i].meter = p.meter(c.tags[i].name)
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// newCrew has callers at each pod that draw as fast as they can, or every so often.
func (p *pool) newCrew(how caller, callers int) *crew {
	c := p.crew(how, cmp.Or(how.names, callers))
	for at := range c.pods {
		for i := range callers {
			go func() {
				for k := 0; c.ctx.Err() == nil; k++ {
					tag := i
					if c.names > 0 {
						tag += (k*len(c.pods) + at) * callers
					}
					if !c.draw(at, i+k, tag) && c.every[1] == 0 {
						return
					}
					_ = world.Sleep(c.ctx, c.every.some())
				}
			}()
		}
	}
	return c
}

// newArrivals has calls come to each pod at a rate in tokens per second, however many wait.
func (p *pool) newArrivals(how caller, rate float64) *crew {
	c := p.crew(how, max(1, how.names))
	for at := range c.pods {
		go func() {
			for k := 0; c.ctx.Err() == nil; k++ {
				go c.draw(at, k, k*len(c.pods)+at)
				_ = world.Sleep(c.ctx, time.Duration(float64(c.sizes[k%len(c.sizes)])/rate*float64(time.Second)))
			}
		}()
	}
	return c
}

// draw makes a call at a pod, with the next of the sizes and of the tags.
func (c *crew) draw(at, size, tag int) bool {
	of := &c.tags[tag%len(c.tags)]
	p, ok := c.acquire(throttle.ForTags(c.pool.pod(c.pods[at]).limiter(), of.name), c.sizes[size%len(c.sizes)])
	if !ok {
		return false
	}
	n := p.N()
	c.called(at, of, n)
	c.pool.window.add(n)
	c.pool.whole.begin(n)
	of.meter.begin(n)
	_ = world.Sleep(c.ctx, c.hold.some())
	of.meter.end(n) // before its slot is another's
	c.pool.whole.end(n)
	c.ended()
	if c.service == nil {
		p.Settle(n)
		return true
	}
	outcome := c.service.take()
	p.Report(outcome)
	if outcome == throttle.OutcomeAccepted {
		c.accepted.Add(1)
	} else {
		c.refused.Add(1)
	}
	return true
}

func (c *crew) acquire(l throttle.Limiter, n int) (throttle.Permit, bool) {
	if c.try {
		return l.TryAcquire(n)
	}
	ctx := c.ctx
	if c.within[1] > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, c.within.some())
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

// alike returns how many of the tags have got tokens since the last call, and Jain's index of what each got: 1 is even.
func (c *crew) alike() (got int, index float64) {
	sum, squares := 0.0, 0.0
	for i := range c.tags {
		n := float64(c.tags[i].got.Swap(0))
		sum, squares = sum+n, squares+n*n
		if n > 0 {
			got++
		}
	}
	return got, sum * sum / max(squares, 1) / float64(len(c.tags))
}

// count returns the tokens that crews have drawn: all of a name, of pods, or of several: a+b; or calls that a service has accepted or
// refused: NAME/refused; or for how long calls have been in flight: NAME/busy.
func (o *order) count(word string) float64 {
	if first, more, ok := strings.Cut(word, "+"); ok {
		return o.count(first) + o.count(more)
	}
	name, what, _ := strings.Cut(word, "/")
	if c, ok := o.crews[name]; ok {
		if what == "busy" {
			return c.seconds()
		}
		return float64(map[string]*atomic.Int64{"": &c.granted, "accepted": &c.accepted, "refused": &c.refused}[what].Load())
	}
	sum := 0.0
	for _, one := range o.who(name) {
		sum += float64(o.crews[one.name].granted.Load())
	}
	return sum
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
