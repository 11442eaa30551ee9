package callmeter_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/callmeter"
)

// A process has a limit whose state a test sets, and calls that take a while.
type process struct {
	meters callmeter.Meters
	calls  sync.WaitGroup

	mu    sync.Mutex
	limit callmeter.Limit
}

func start(concurrency int, share float64, slots bool) *process {
	p := &process{limit: callmeter.Limit{Share: share, Slots: slots}}
	p.meters = callmeter.Meters{callmeter.New(concurrency, func() callmeter.Limit {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.limit
	})}
	return p
}

// call starts a call that has its tokens after a wait.
func (p *process) call(wait, takes time.Duration) {
	p.calls.Go(func() {
		p.meters.Open()
		time.Sleep(wait)
		p.mu.Lock()
		p.limit.Drawn++
		p.mu.Unlock()
		time.Sleep(takes)
		p.meters.Ran(takes)
		p.meters.Close()
	})
}

// run starts calls at a rate per second for a time. held says that somebody always waits.
func (p *process) run(t *testing.T, lasts time.Duration, rate float64, wait, takes time.Duration, held bool) {
	t.Helper()
	every := time.Duration(float64(time.Second) / rate)
	for began := time.Now(); time.Since(began) < lasts; time.Sleep(every) {
		p.call(wait, takes)
		if held {
			p.mu.Lock()
			p.limit.Held += every
			p.mu.Unlock()
		}
	}
}

func (p *process) wanted(t *testing.T, want float64) {
	t.Helper()
	pods, ok := p.meters[0].Wanted()
	require.True(t, ok)
	require.InEpsilon(t, 1+want, 1+pods, 0.03)
}

func (p *process) unknown(t *testing.T) {
	t.Helper()
	pods, ok := p.meters[0].Wanted()
	require.False(t, ok, "wanted %v", pods)
}

func TestWanted(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		name        string
		concurrency int
		share       float64
		slots       bool
		rate        float64
		wait, takes time.Duration
		held        bool
		want        float64
	}{
		{"the limit holds it back: 50 a second of 4 s in 200 places", 400, 50, false, 50, 4 * second, 4 * second, true, 0.5},
		{"full, and not held back: its share of 50 a second needs 2 pods", 100, 50, false, 25, 0, 4 * second, false, 2},
		{"held back below its share, as by a hard limit: more pods would not help", 100, 50, false, 25, 0, 4 * second, true, 1},
		{"full, and its share is small", 100, 25, false, 25, 0, 4 * second, false, 1},
		{"little to do", 100, 50, false, 5, 0, 4 * second, false, 20.0 / 70},
		{"most places in use, but not full", 100, 50, false, 15, 0, 4 * second, false, 60.0 / 70},
		{"full, and slots are free", 100, 300, true, 25, 0, 4 * second, false, 3},
		{"slots hold it back", 100, 50, true, 12.5, 4 * second, 4 * second, true, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(c.concurrency, c.share, c.slots)
				defer p.calls.Wait()
				p.run(t, 3*time.Minute, c.rate, c.wait, c.takes, c.held)
				p.wanted(t, c.want)
			})
		})
	}
}

func TestWantedIsUnknownOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(10, 50, false)
		p.unknown(t)
		p.call(0, 10*time.Minute)
		for range 19 {
			time.Sleep(30 * time.Second)
			p.unknown(t) // no call has ended yet
		}
		p.calls.Wait()
		p.wanted(t, 1/7.0) // a call of ten minutes has ended in this minute: it was one at a time
		for range 4 {
			time.Sleep(30 * time.Second)
			_, _ = p.meters[0].Wanted()
		}
		p.wanted(t, 0)

		for range 10 { // the pool is frozen, paused or without its store: messages wait, and nothing ends
			p.call(10*time.Minute, time.Second)
		}
		for range 4 {
			time.Sleep(30 * time.Second)
			_, _ = p.meters[0].Wanted()
		}
		time.Sleep(time.Second)
		p.unknown(t)
		p.calls.Wait()
		time.Sleep(5 * time.Minute)
		_, _ = p.meters[0].Wanted()
		time.Sleep(time.Second)
		p.wanted(t, 0)
	})
}

// Without a share, as while the store is away with onStoreLoss stop, nothing is known, even if calls of before end.
func TestWantedWithoutAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(10, 0, false)
		defer p.calls.Wait()
		p.run(t, time.Minute, 10, 0, time.Second, false)
		p.unknown(t)
	})
}

// A meter may be used from any goroutine; what it counts is what happened.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(1000, 1e6, false)
		for range 50 {
			p.calls.Go(func() {
				for range 1200 {
					p.meters.Open()
					time.Sleep(100 * time.Millisecond)
					p.meters.Ran(100 * time.Millisecond)
					p.meters.Close()
					_, _ = p.meters[0].Wanted()
				}
			})
		}
		time.Sleep(119 * time.Second)
		p.wanted(t, 50/700.0)
		p.calls.Wait()
	})
}

func BenchmarkCall(b *testing.B) {
	p := start(1000, 50, false)
	for b.Loop() {
		p.meters.Open()
		began := time.Now()
		p.meters.Ran(time.Since(began))
		p.meters.Close()
	}
}

func BenchmarkNoMeter(b *testing.B) {
	var none callmeter.Meters
	for b.Loop() {
		none.Open()
		none.Close()
	}
}
