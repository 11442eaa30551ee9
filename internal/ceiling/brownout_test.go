package ceiling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// The service falls to a quarter for a minute. At least 0.95 of its capacity is used, and less than one call in a hundred is refused. Ten
// seconds after its return 80 % is in use.
func TestFallAndReturn(t *testing.T) {
	for seed := range uint64(testkit.Fewer(10)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			used, refused, back := runBrownout(20, 50, seed)
			require.GreaterOrEqual(t, used, 0.95)
			require.Less(t, refused, 0.01)
			require.LessOrEqual(t, back, 10)
		})
	}
}

// Other numbers of processors, deeper and shallower falls, and an outage.
func TestOtherFalls(t *testing.T) {
	testkit.SkipRace(t, "its runs have one goroutine, and TestFallAndReturn has them too")
	for _, tc := range []struct {
		processors int
		low        float64
	}{{1, 50}, {2, 50}, {3, 50}, {8, 50}, {50, 50}, {20, 100}, {20, 180}, {20, 25}, {20, 0}} {
		t.Run(fmt.Sprint(tc.processors, " processors, ", tc.low), func(t *testing.T) {
			used, refused, back := runBrownout(tc.processors, tc.low, 1)
			require.Less(t, refused, 0.02)
			if tc.low == 0 {
				require.LessOrEqual(t, back, 25)
				return
			}
			require.GreaterOrEqual(t, used, 0.88)
			require.LessOrEqual(t, back, 15)
		})
	}
}

const (
	brownoutMax                    = 200 // per second, the limit and what the service can do
	fallAt, backAt, brownoutLength = 60, 120, 240
	// In milliseconds, for a lease of ten seconds: between two syncs, between two urgent ones, and the lag of a cut.
	syncEvery, urgentEvery, poolLag = 1000, 100, 300
)

// A brownout is processors that share a limit, at a service that can do less for a while. Each processor is always busy and draws at an even
// share of the pool's ceiling. It applies the law by itself until the next cut of the pool is known. A store keeps the document and the
// notes. The law and its counts are those of the product; time is virtual, in milliseconds.
type brownout struct {
	rng    *rand.Rand
	now    int
	future map[int][]func() // what happens in a millisecond

	low, room, can  float64 // of the service: capacity in the fall, calls at hand, all calls that it could have accepted
	calls, accepted int
	second          [brownoutLength]int // accepted

	processors []*busyProcessor
	state      backoff.State
	version    int
	notes      []brownoutNote
}

// A brownoutNote is a processor's report to the others.
type brownoutNote struct {
	report backoff.Report
	active bool
}

type busyProcessor struct {
	*brownout

	id     int
	tokens float64

	// The pool's law as far as known, with its counts. counting is the generation whose refusals are counted; -1: none, its lag is not over.
	pool     backoff.State
	tally    backoff.Tally
	counting int64
	seen     int // the version
	others   []brownoutNote

	own   Part // by its own law, as a part of that
	begun int  // counts the restarts of own's counting

	syncing                   bool
	nextSync, lastSync, urged int
}

// runBrownout returns the used part of the capacity, the refused part of the calls, and the seconds until 80 % of the capacity is in use
// again.
func runBrownout(processors int, low float64, seed uint64) (used, refused float64, back int) {
	b := &brownout{rng: rand.New(rand.NewPCG(seed, 1)), future: map[int][]func(){}, low: low, notes: make([]brownoutNote, processors)}
	for i := range processors {
		b.processors = append(b.processors, &busyProcessor{
			brownout: b, id: i, tokens: b.rng.Float64(), nextSync: b.rng.IntN(syncEvery), lastSync: -syncEvery,
		})
	}
	for ; b.now < brownoutLength*1000; b.now++ {
		can := b.capacity()
		b.can += can / 1000
		b.room = min(b.room+can/1000, max(1, can/10)) // the burst is a tenth of a second
		for _, f := range b.future[b.now] {
			f()
		}
		delete(b.future, b.now)
		for _, p := range b.processors {
			p.tick()
		}
	}
	again := slices.IndexFunc(b.second[backAt:], func(accepted int) bool { return accepted >= brownoutMax*8/10 })
	if again < 0 {
		again = brownoutLength
	}
	return float64(b.accepted) / b.can, float64(b.calls-b.accepted) / float64(b.calls), again + 1
}

func (b *brownout) capacity() float64 {
	if b.now >= fallAt*1000 && b.now < backAt*1000 {
		return b.low
	}
	return brownoutMax
}

// in schedules f in so many milliseconds, at least one.
func (b *brownout) in(ms int, f func()) {
	at := b.now + max(ms, 1)
	b.future[at] = append(b.future[at], f)
}

// call sends one call and reports the response. Each way takes 20 to 50 ms.
func (b *brownout) call(answer func(calls backoff.Totals)) {
	b.in(20+b.rng.IntN(30), func() {
		b.calls++
		got := backoff.Totals{Refused: 1}
		if b.room >= 1 {
			b.room--
			b.accepted++
			b.second[b.now/1000]++
			got = backoff.Totals{Accepted: 1}
		}
		b.in(20+b.rng.IntN(30), func() { answer(got) })
	})
}

// micros returns the time in the law's unit.
func (b *brownout) micros() int64 { return int64(b.now+1) * 1000 }

// brownoutLimit is the limit of the pool, and ownLimit the whole for a processor's own law, independent of its share.
var (
	brownoutLimit = backoff.Config{Max: brownoutMax, Per: time.Second, Reserved: backoff.Whole / 100}
	ownLimit      = backoff.Config{Max: 1, Per: time.Second, Reserved: backoff.Whole / 100}
)

// share returns the processor's share of the pool, per second.
func (p *busyProcessor) share() float64 {
	return brownoutMax / float64(len(p.processors)) * brownoutLimit.Ceiling(p.pool, p.micros()) / backoff.Whole
}

func (p *busyProcessor) tick() {
	now := p.micros()
	if p.own.Settle(now) {
		p.begun++
	}
	switch {
	case !p.pool.Counts(now):
		p.counting = -1
	case p.counting != p.pool.Generation:
		p.counting, p.urged = p.pool.Generation, 0
		p.tally.Begin(now, false)
	}
	p.tokens = min(p.tokens+p.share()*p.own.Of(ownLimit, now)/1000, 1)
	if p.tokens >= 1 {
		p.tokens--
		p.draw()
	}
	if p.now%100 == p.id%100 && p.own.Step(ownLimit, now, p.share(), 1, 1) {
		p.begun++
	}
	if !p.syncing && p.now >= p.nextSync {
		p.sync()
	}
}

// draw makes one call. At most five syncs are brought forward in a generation.
func (p *busyProcessor) draw() {
	pool, own := p.counting, p.begun
	p.call(func(got backoff.Totals) {
		p.own.Tally.Count(p.micros(), got, own == p.begun)
		if p.tally.Count(p.micros(), got, pool == p.counting && pool >= 0) && p.urged < 5 {
			p.urged++
			p.hurry()
		}
	})
}

// hurry brings the next sync forward.
func (p *busyProcessor) hurry() { p.nextSync = min(p.nextSync, max(p.now+1, p.lastSync+urgentEvery)) }

func (p *busyProcessor) note() brownoutNote {
	now := p.micros()
	return brownoutNote{p.tally.Report(brownoutMax, p.counting, now), p.tally.Active(now)}
}

// reports returns the reports of all active processors, including its own newest.
func (p *busyProcessor) reports(own brownoutNote) (out []backoff.Report) {
	for i, n := range p.others {
		if i != p.id && n.active {
			out = append(out, n.report)
		}
	}
	return append(out, own.report)
}

// sync reports to the store and the others, takes a step of the pool's law if one is due, and receives the answer. Each way takes 1 to 4 ms.
func (p *busyProcessor) sync() {
	p.syncing, p.lastSync = true, p.now
	p.nextSync = p.now + syncEvery - p.rng.IntN(syncEvery/20)
	own, now, n := p.note(), p.micros(), len(p.processors)
	reports, seen := p.reports(own), p.seen
	due := p.pool.Due(now, reports, n) || !p.pool.Free() && now-p.pool.At >= 900_000
	next := brownoutLimit.Next(p.pool, backoff.Step{
		Now: now, Lag: poolLag * 1000, Reports: reports, Processors: n, Used: 1, Offered: 1,
	})
	p.in(1+p.rng.IntN(4), func() {
		p.notes[p.id] = own
		if due && seen == p.version {
			p.state, p.version = next, p.version+1
		}
		state, version, notes := p.state, p.version, slices.Clone(p.notes)
		p.in(1+p.rng.IntN(4), func() {
			p.syncing = false
			if state.Generation != p.pool.Generation {
				p.own.Restart(p.micros()) // the pool knows now
				p.begun++
			}
			p.pool, p.seen, p.others = state, version, notes
			if state.Due(p.micros(), p.reports(p.note()), n) {
				p.hurry()
			}
		})
	})
}
