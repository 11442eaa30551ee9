//go:build numathrottle_faults

package overload

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recovery is the time in which the limit must be in use again.
const recovery = 20 * time.Second

// A store that has 0.6 or 0.8 of the processor time that the pool needs, for 20 s, is asked for at most 1.2 times as much
// as before, and the limit is in use 20 s after it.
func TestOverload(t *testing.T) {
	for _, kind := range list("STORES", "redis,nats") {
		for _, size := range list("SIZES", "100") {
			n, err := strconv.Atoi(size)
			require.NoError(t, err)
			for _, part := range []float64{0.6, 0.8} {
				t.Run(fmt.Sprintf("%s/%d/%v", kind, n, part), func(t *testing.T) {
					b, p := start(t, kind, n)
					cpu := b.processorTime(t)
					steady := p.watch(5 * time.Second)
					busy := (b.processorTime(t) - cpu).Seconds() / 5
					t.Logf("steady:   %v; the store took %.3f of a processor", steady, busy)
					end := b.slice(t, part*busy)
					judge(t, p, steady, end)
				})
			}
		}
	}
}

// The same with a store that is stopped for three seconds of each six.
func TestFlapping(t *testing.T) {
	for _, kind := range list("STORES", "redis,nats") {
		t.Run(kind, func(t *testing.T) {
			b, p := start(t, kind, 100)
			steady := p.watch(5 * time.Second)
			t.Logf("steady:   %v", steady)
			judge(t, p, steady, b.stopAndGo(t, 6*time.Second, 0.5))
		})
	}
}

// judge watches a pool for 20 s, ends what slows its store, and watches it recover.
func judge(t *testing.T, p *pool, steady span, end func()) {
	t.Helper()
	slowed := p.watch(20 * time.Second)
	end()
	after := p.watch(recovery + 5*time.Second)
	t.Logf("slowed:   %v", slowed)
	t.Logf("after it: %v", after)
	if steady.use < full || steady.failed > steady.asked/20 {
		t.Skip("syncs failed, or the limit was not in use, before the store was slowed: this machine is too small for the pool")
	}
	assert.LessOrEqual(t, slowed.asked, 1.2*p.steady(), "syncs per second")
	assert.LessOrEqual(t, after.asked, 1.2*p.steady(), "syncs per second")
	assert.True(t, after.full >= 0 && after.full <= recovery, "full after %v", after.full)
}

// A thousand join a pool within a second. Nobody who was there loses a lease, and soon all have a share.
func TestJoinStorm(t *testing.T) {
	for _, kind := range list("STORES", "redis") {
		t.Run(kind, func(t *testing.T) {
			b, p := start(t, kind, 50)
			before := p.lapses(50)
			p.join(t, b.stores, 1000, time.Second)
			storm := p.watch(40 * time.Second)
			t.Logf("while they join: %v", storm)
			assert.Equal(t, before, p.lapses(50), "leases lost")
			assert.Equal(t, 1050, storm.holding)
		})
	}
}

// start starts a store with a pool whose limit is in use, or that has had a minute for it.
func start(t *testing.T, kind string, n int) (backend, *pool) {
	t.Helper()
	b := map[string]func(*testing.T, int) backend{"redis": startRedis, "nats": startNATS}[kind](t, n)
	p := &pool{}
	t.Cleanup(p.leave)
	p.join(t, b.stores, n, time.Second)
	p.settle(t, time.Minute)
	return b, p
}

func list(name, unset string) []string {
	if v := os.Getenv("NUMATHROTTLE_OVERLOAD_" + name); v != "" {
		unset = v
	}
	return strings.Split(unset, ",")
}

// slice lets the store's process run for a part of each tenth of a second, until end is called.
func (b backend) slice(t *testing.T, part float64) (end func()) {
	t.Helper()
	require.Less(t, part, 1.0, "the store must need less than a processor")
	return b.stopAndGo(t, 100*time.Millisecond, part)
}

// stopAndGo stops the store's process for the rest of each such time, after it has run for a part of it.
func (b backend) stopAndGo(t *testing.T, each time.Duration, part float64) (end func()) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = syscall.Kill(b.pid, syscall.SIGCONT) }()
		wait := func(until time.Time) (more bool) {
			select {
			case <-time.After(time.Until(until)):
				return true
			case <-quit:
				return false
			}
		}
		for next := time.Now(); ; next = next.Add(each) {
			_ = syscall.Kill(b.pid, syscall.SIGCONT)
			if !wait(next.Add(time.Duration(part * float64(each)))) {
				return
			}
			_ = syscall.Kill(b.pid, syscall.SIGSTOP)
			if !wait(next.Add(each)) {
				return
			}
		}
	}()
	ended := false
	end = func() {
		if !ended {
			ended = true
			close(quit)
			<-done
		}
	}
	t.Cleanup(end)
	return end
}
