package throttle

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A herd is callers that came one after the other, each for one call, and what became of them.
type herd struct {
	mu      sync.Mutex
	granted []grantedCall
	failed  []failedCall
}

type grantedCall struct {
	who, n int
	at     time.Time
}

type failedCall struct {
	who int
	at  time.Time
	err error
}

// gather lets n callers come to a limiter. Each draws by acquire, and says what the service makes of its call.
func gather(ctx context.Context, n int, s *service, acquire func(ctx context.Context, who int) (Permit, error)) *herd {
	h := &herd{}
	for who := range n {
		go func() {
			p, err := acquire(ctx, who)
			h.mu.Lock()
			defer h.mu.Unlock()
			if err != nil {
				h.failed = append(h.failed, failedCall{who, time.Now(), err})
				return
			}
			h.granted = append(h.granted, grantedCall{who, p.N(), time.Now()})
			p.Report(s.take())
			p.Settle(p.N())
		}()
		synctest.Wait()
	}
	return h
}

// done is how many callers got through, and how many did not.
func (h *herd) done() (granted, failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.granted), len(h.failed)
}

// tokens is how many tokens were granted.
func (h *herd) tokens() (sum int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.granted {
		sum += c.n
	}
	return sum
}

// requireOrder checks that nobody got through before someone who had come before.
func (h *herd) requireOrder(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	last, sofar := -1, -1 // of those before this moment, and with it
	for i, c := range h.granted {
		if i > 0 && c.at.After(h.granted[i-1].at) {
			last = sofar
		}
		require.Greater(t, c.who, last, "call %d", i)
		sofar = max(sofar, c.who)
	}
}

// requireBound watches the herd until all are through or d is over, and checks that in no second more get through than the bound of the
// tag and what it saves up, once it is slow. It returns how many got through after that.
func (h *herd) requireBound(t *testing.T, th *Throttle, tag string, n int, d time.Duration) (through int) {
	t.Helper()
	const step = 10 * time.Millisecond
	g := viewOf(th.ForTag(tag)).first()
	bound := func() float64 {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.tagBucket.Bound()
	}
	for bound() == 0 { // it is everybody's business yet
		require.Positive(t, d, "the tag is not slow")
		time.Sleep(time.Millisecond)
		d -= time.Millisecond
		synctest.Wait()
	}
	first, _ := h.done()
	counts, allowed := []int{h.tokens()}, []float64{0}
	for was := bound(); d > 0; d -= step {
		time.Sleep(step)
		synctest.Wait()
		granted, failed := h.done()
		is := bound()
		if is == 0 || granted+failed == n {
			return granted - first
		}
		counts, allowed = append(counts, h.tokens()), append(allowed, max(was, is)*step.Seconds())
		was = is
		from := max(len(counts)-1-int(time.Second/step), 0)
		sum := max(slices.Max(allowed[from:])/step.Seconds()*0.1, 1) + 1 // what is saved up, and a call that is under way
		for _, a := range allowed[from+1:] {
			sum += a
		}
		require.LessOrEqual(t, float64(counts[len(counts)-1]-counts[from]), sum, "in the last second, at a bound of %.1f", is)
	}
	granted, _ := h.done()
	return granted - first
}
