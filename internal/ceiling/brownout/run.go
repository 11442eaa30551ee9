package brownout

import (
	"math/rand/v2"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
)

// A Way is how processors handle refusals.
type Way int

// The ways that are compared.
const (
	Fixed  Way = iota // fixed shares; a refused call is tried again every second
	Alone             // the law in each processor for itself
	Shared            // the law for the pool, and in each processor until the pool knows
)

// A Plan specifies a simulation.
type Plan struct {
	Way        Way
	Processors int
	Limit      int                  // per second, for the pool
	Service    func(ms int) float64 // the capacity of the service, per second
	Seconds    int
	Seed       uint64
}

// A Result is the result of a run.
type Result struct {
	Calls, Accepted, Refused int
	Can                      float64 // calls that the service could have accepted
	Cuts                     int64   // of the pool
	Seconds                  []Second
}

// A Second is one second of a run. Ceiling is the pool's ceiling at its start.
type Second struct {
	Can, Ceiling      float64
	Accepted, Refused int
}

// Used returns the used fraction of the service's capacity.
func (r *Result) Used() float64 { return float64(r.Accepted) / r.Can }

// UsedIn does so for some seconds.
func (r *Result) UsedIn(from, until int) float64 {
	accepted, can := 0.0, 0.0
	for _, s := range r.Seconds[from:until] {
		accepted += float64(s.Accepted)
		can += s.Can
	}
	return accepted / can
}

// RefusedPart returns the refused fraction of the calls.
func (r *Result) RefusedPart() float64 { return float64(r.Refused) / float64(r.Calls) }

// RefusedIn does so for some seconds.
func (r *Result) RefusedIn(from, until int) float64 {
	accepted, refused := 0, 0
	for _, s := range r.Seconds[from:until] {
		accepted += s.Accepted
		refused += s.Refused
	}
	return float64(refused) / float64(accepted+refused)
}

// Back returns the number of seconds after from until the used fraction of the service's capacity first reached part in a second; if it
// never did, all remaining seconds.
func (r *Result) Back(from int, part float64) int {
	for i, s := range r.Seconds[from:] {
		if float64(s.Accepted) >= part*s.Can {
			return i + 1
		}
	}
	return len(r.Seconds) - from
}

// A run is one simulation under way. Its time is in milliseconds.
type run struct {
	Plan

	rng     *rand.Rand
	service service
	procs   []*processor
	store   store
	now     int
	future  map[int][]func() // what happens in a millisecond
	result  Result
}

// Run simulates a plan.
func Run(p Plan) Result {
	r := &run{
		Plan: p, rng: rand.New(rand.NewPCG(p.Seed, 1)),
		service: service{rate: p.Service}, future: map[int][]func(){},
	}
	r.store.notes = make([]note, p.Processors)
	for i := range p.Processors {
		r.procs = append(r.procs, newProcessor(r, i))
	}
	for ; r.now < p.Seconds*1000; r.now++ {
		if r.now%1000 == 0 {
			r.result.Seconds = append(r.result.Seconds, Second{Can: p.Service(r.now), Ceiling: r.ceiling()})
		}
		r.service.tick(r.now)
		for _, f := range r.future[r.now] {
			f()
		}
		delete(r.future, r.now)
		for _, q := range r.procs {
			q.tick()
		}
	}
	r.result.Can, r.result.Cuts = r.service.can, r.store.state.Generation
	return r.result
}

// in schedules f in so many milliseconds, at least one.
func (r *run) in(ms int, f func()) {
	at := r.now + max(ms, 1)
	r.future[at] = append(r.future[at], f)
}

// way returns the duration of a message to the store, in milliseconds.
func (r *run) way() int { return 1 + r.rng.IntN(4) }

// call sends one call and reports the response.
func (r *run) call(answer func(accepted bool)) {
	way := func() int { return 20 + r.rng.IntN(30) }
	r.in(way(), func() {
		ok := r.service.take()
		r.result.Calls++
		at := &r.result.Seconds[len(r.result.Seconds)-1]
		if ok {
			r.result.Accepted++
			at.Accepted++
		} else {
			r.result.Refused++
			at.Refused++
		}
		r.in(way(), func() { answer(ok) })
	})
}

// ceiling returns how much the pool may use now, per second.
func (r *run) ceiling() float64 {
	sum := 0.0
	for _, p := range r.procs {
		sum += p.rate()
	}
	return sum
}

// micros returns the time in the law's unit.
func (r *run) micros() int64 { return int64(r.now+1) * 1000 }

// config returns the limit of the pool.
func (r *run) config() backoff.Config {
	return backoff.Config{Max: int64(r.Limit), Per: time.Second, Reserved: backoff.Whole / 100}
}
