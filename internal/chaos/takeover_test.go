//go:build numathrottle_faults

package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// wholeAgain is how much of the limit a pool uses again, two intervals after the next process has begun.
const wholeAgain = 0.97

// TestAProcessThatIsKilledIsTakenOver kills processes that draw, with no chance to say a word, and starts others in
// their place, as a container is started again. With the state folder, which the lock of the dead process is in, the pool is
// whole two intervals after the next process has begun; without it a claim stays for 1.5 leases.
func TestAProcessThatIsKilledIsTakenOver(t *testing.T) {
	t.Parallel()
	for store, url := range map[string]func() string{
		"redis": func() string { return "redis://" + testenv.Redis(t).Addr() },
		"nats":  func() string { return testenv.NATS(t).URL() },
	} {
		url := url()
		for _, c := range []struct {
			workers int
			without bool
		}{{workers: 1}, {workers: 2}, {workers: 4}, {workers: 2, without: true}} {
			t.Run(fmt.Sprintf("%s, %d, without %v", store, c.workers, c.without), func(t *testing.T) {
				inTurn(t)
				g := newLedger(t, "R12", "processes of this module on "+store)
				l := newLane(t, g, poolConfig{
					Stores: everyone(url)[:c.workers], Max: 200, Defaults: true, Full: wholeAgain, StateDir: t.TempDir(),
					Pool: t.Name(),
				})
				kills := 3
				if c.without {
					kills = 1
				}
				l.pool.bound.Processors += kills // that have held a share, too
				l.start()
				for range kills {
					l.killAndStart(c.without)
				}
			})
		}
	}
}

// killAndStart kills one process, starts another in its place, and judges.
func (l *lane) killAndStart(without bool) {
	f := fault{
		name: "process killed, and another started in its place", allowed: 2 * wire.Interval(l.pool.Lease, len(l.pool.workers)),
		inject: func(l *lane) {
			i := l.rng.IntN(len(l.pool.workers))
			l.pool.workers[i].kill()
			l.pass(l.between(100*time.Millisecond, 1500*time.Millisecond))
			if without {
				l.pool.workers[i].job.StateDir = l.TempDir()
			}
			l.pool.workers[i] = startWorker(l, l.pool.workers[i].job)
		},
	}
	if !without {
		require.True(l, l.suffer(f))
		return
	}
	took, ok := l.once(f)
	require.True(l, ok)
	require.Greater(l, took, 10*time.Second, "a claim of which nobody knows whether it is used stays")
}

// kill ends the process as the kernel does when there is no memory left.
func (w *worker) kill() {
	w.killed = true
	w.Kill()
}
