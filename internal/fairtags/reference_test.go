package fairtags_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A reference is FoundationDB's global tag throttler with the mocks of its tests, by its formulas: what the smoothers forget in, which
// rates it tells, and what makes a server limit a tag. Times are in seconds. The world is what it is about; only its tags,
// clients and zones count.
type reference struct {
	*world
	now     float64
	tags    []*throttled
	servers []*server
	next    []float64 // of each client's next call
	ignored int       // so many of the worst servers do not count
}

// What is known of one tag.
type throttled struct {
	calls             *trend
	target, perClient *smoother
}

// A server knows the cost of the tags that call it, as it tells it (a second old) and as it is.
type server struct {
	costs []*trend
	told  []*smoother
	queue float64 // told too, against its target
}

func newReference(w *world, ignored int) *reference {
	r := &reference{world: w, ignored: ignored, next: make([]float64, len(w.clients))}
	for range w.tags {
		r.tags = append(r.tags, &throttled{calls: &trend{level: 2, slope: 10}, target: &smoother{fold: 10}, perClient: &smoother{fold: 10}})
	}
	for range w.zones {
		s := &server{}
		for range w.tags {
			s.costs, s.told = append(s.costs, &trend{level: 1, slope: 1}), append(s.told, &smoother{fold: 10})
		}
		r.servers = append(r.servers, s)
	}
	for i, c := range w.clients {
		r.next[i] = 1 / max(c.calls, 1e-9)
	}
	return r
}

// second lets one second pass, in thousandths.
func (r *reference) second() {
	for range 1000 {
		r.now += 0.001
		for i, c := range r.clients {
			if r.now < r.next[i] {
				continue
			}
			on := r.world.tags[c.tag].on
			for _, z := range on {
				r.servers[z].costs[c.tag].add(r.now, c.cost/float64(len(on)))
			}
			r.tags[c.tag].calls.add(r.now, 1)
			allowed := c.calls
			if _, perClient, known := r.rates(c.tag); known {
				allowed = min(allowed, perClient)
			}
			r.next[i] += 1 / allowed
		}
	}
	for z, s := range r.servers {
		load := 0.0
		for i, c := range s.costs {
			load += c.rate(r.now)
			s.told[i].set(r.now, c.rate(r.now))
		}
		s.queue = load / r.zones[z].capacity
	}
}

// A bound is what holds a tag, in calls a second.
type bound struct {
	calls, desired, limiting, target float64
}

// bound works out what holds a tag now; known is false when it has too few calls, or no quota.
func (r *reference) bound(i int) (b bound, known bool) {
	t, cost := r.tags[i], 0.0
	for _, s := range r.servers {
		cost += s.told[i].at(r.now)
	}
	terms := r.world.tags[i].Terms
	if b.calls = t.calls.rate(r.now); b.calls < 1 || math.IsInf(terms.Total, 1) {
		return bound{}, false
	}
	average := max(cost/b.calls, 1)
	var worst []float64
	for z, s := range r.servers {
		const spring = 0.25
		if over := (s.queue - 1 + spring) / spring; over > 0 && slices.Contains(r.world.tags[i].on, z) {
			worst = append(worst, b.calls/min(2, over))
		}
	}
	b.desired, b.limiting = terms.Total/average, nth(worst, r.ignored)
	b.target = max(terms.Reserved/average, min(b.desired, b.limiting))
	return b, true
}

// rates returns what is told of a tag: the target, and what each client may do.
func (r *reference) rates(i int) (target, perClient float64, known bool) {
	b, known := r.bound(i)
	if !known {
		return 0, 0, false
	}
	t := r.tags[i]
	t.target.set(r.now, b.target)
	t.perClient.set(r.now, max(1, min(b.target, b.target/b.calls*t.perClient.at(r.now))))
	return max(1, t.target.at(r.now)), max(1, t.perClient.at(r.now)), true
}

// An outcome is what one of FoundationDB's tests waits for. Rates are in calls a second.
type outcome struct {
	targets   []float64 // of each tag; +Inf for none
	sum       float64   // of all targets, in place of them
	perClient float64   // if it is not 0
	busy      int       // so many tags that the servers limit, if it is not 0
}

// reached says what is not as it should be.
func (r *reference) reached(o outcome) error {
	sum, busy := 0.0, 0
	for i := range r.tags {
		target, perClient, known := r.rates(i)
		sum += target
		if b, known := r.bound(i); known && b.limiting < b.desired {
			busy++
		}
		if o.sum > 0 {
			continue
		}
		if math.IsInf(o.targets[i], 1) != !known {
			return fmt.Errorf("tag %d has a target: %t", i, known)
		}
		if err := within("the target", o.targets[i], target); known && err != nil {
			return err
		}
		if err := within("the rate per client", o.perClient, perClient); o.perClient > 0 && err != nil {
			return err
		}
	}
	if o.busy > 0 && busy != o.busy {
		return exactly("busy tags", o.busy, busy)
	}
	if o.sum > 0 {
		return within("the sum of targets", o.sum, sum)
	}
	return nil
}

// wait lets time pass until an outcome has been held for ten looks, and tells when it was reached.
func (r *reference) wait(o outcome) (seconds int, err error) {
	good := 0
	for second := 1; second <= 600; second++ {
		r.second()
		if fault := r.reached(o); fault != nil {
			good, err = 0, fault
			continue
		}
		if good++; good == held {
			return second - held + 1, nil
		}
	}
	return 0, fmt.Errorf("not reached in 600 s: %w", err)
}

// A smoother follows a number.
type smoother struct{ fold, to, is, last float64 }

func (s *smoother) at(now float64) float64 {
	s.is += (s.to - s.is) * -math.Expm1((s.last-now)/s.fold)
	s.last = now
	return s.is
}

func (s *smoother) set(now, to float64) {
	s.at(now)
	s.to = to
}

// A trend smooths a sum, and tells its rate.
type trend struct{ level, slope, sum, is, per, last float64 }

func (t *trend) total(now float64) float64 {
	keep := math.Exp((t.last - now) / t.level)
	return (1-keep)*t.sum + keep*(t.is+(now-t.last)*t.per)
}

func (t *trend) rate(now float64) float64 {
	if now == t.last {
		return t.per
	}
	keep := math.Exp((t.last - now) / t.slope)
	return (1-keep)*(t.total(now)-t.is)/(now-t.last) + keep*t.per
}

func (t *trend) add(now, more float64) {
	if now > t.last {
		t.per, t.is, t.last = t.rate(now), t.total(now), now
	}
	t.sum += more
}

// nth is the smallest number but n; +Inf when there is none.
func nth(of []float64, n int) float64 {
	if len(of) <= n {
		return inf
	}
	of = slices.Sorted(slices.Values(of))
	return of[n]
}

// reference plays a scenario by FoundationDB's formulas, and tells how many seconds each of its stages took.
func (s scenario) reference() (took string, err error) {
	if len(s.zones) == 0 {
		s.zones = same(10, 100)
	}
	w := s.world()
	r := newReference(w, s.ignored)
	var stages []string
	for i, stage := range s.stages {
		if stage.change != nil {
			stage.change(w)
		}
		seconds, err := r.wait(stage.there)
		if err != nil {
			return "", fmt.Errorf("FoundationDB's stage %d: %w", i, err)
		}
		stages = append(stages, strconv.Itoa(seconds))
	}
	return strings.Join(stages, " + ") + " s", nil
}
