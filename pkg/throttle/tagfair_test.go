package throttle

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A load is callers of one tag: so many at a time that wait again and again, or so many calls per second.
type load struct {
	tag     string
	callers int
	rate    int
	n       int
	granted atomic.Int64

	mu    sync.Mutex
	waits []time.Duration
}

// waited notes a wait.
func (l *load) waited(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, d)
}

// forget forgets the waits so far.
func (l *load) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = nil
}

// p99 is the wait that one of a hundred is longer than; without any it has no end.
func (l *load) p99() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waits) == 0 {
		return time.Duration(never)
	}
	slices.Sort(l.waits)
	return l.waits[len(l.waits)*99/100]
}

func (l *load) run(ctx context.Context, th Tagger) {
	call := func() {
		began := time.Now()
		if p, err := th.ForTag(l.tag).Acquire(ctx, max(l.n, 1)); err == nil {
			l.granted.Add(int64(p.N()))
			l.waited(time.Since(began))
		}
	}
	for range l.callers {
		go func() {
			for ctx.Err() == nil {
				if _, err := th.ForTag(l.tag).Acquire(ctx, max(l.n, 1)); err == nil {
					l.granted.Add(int64(max(l.n, 1)))
				}
			}
		}()
	}
	if l.rate > 0 {
		go func() {
			for ctx.Err() == nil {
				call()
				time.Sleep(time.Second / time.Duration(l.rate))
			}
		}()
	}
}

// Draws on several limits with quotas, of several tags, in whatever order, never wait for each other for ever.
func TestDrawsOnSeveralLimitsWithQuotasAllEnd(t *testing.T) {
	for seed := range uint64(testkit.Fewer(100)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			names := []string{"a", "b", "c", "", "x"}
			quotas := func() Quotas {
				q := Quotas{Tags: map[string]Quota{}}
				for _, name := range []string{"a", "b", "c"} {
					q.Tags[name] = Quota{Weight: 1 + r.IntN(5), Reserved: r.IntN(10)}
					if r.IntN(2) == 0 {
						q.Tags[name] = Quota{Total: 20 + r.IntN(30), Burst: 1 + r.IntN(20), Reserved: r.IntN(10)}
					}
				}
				return q
			}
			var limits []Tagger
			for range 3 {
				limit := Limit{Max: 50 + r.IntN(100), Burst: 1 + r.IntN(30)}
				if r.IntN(4) == 0 {
					th := whole(t, limit)
					limits = append(limits, th)
					defer th.Close()
					continue
				}
				limits = append(limits, quotaed(t, limit, quotas()))
			}
			slots := flight(t, 3)
			var served atomic.Int64
			calls := 60
			for range calls {
				var of []Limiter
				for _, i := range r.Perm(3)[:1+r.IntN(3)] {
					of = append(of, limits[i].ForTag(names[r.IntN(len(names))]))
				}
				if r.IntN(3) == 0 {
					of = append(of, slots)
				}
				n, wait := 1+r.IntN(12), time.Duration(r.IntN(500))*time.Millisecond
				upTo, used := r.IntN(4) == 0, r.IntN(15)
				go func() {
					time.Sleep(wait)
					l := All(of...)
					draw := l.Acquire
					if upTo {
						draw = l.AcquireUpTo
					}
					p, err := draw(context.Background(), min(n, 3+n*min(len(of), 1)))
					if err == nil || reasonOf(err) == ReasonTooLarge {
						served.Add(1)
						time.Sleep(20 * time.Millisecond)
						p.Settle(used)
					}
				}()
			}
			time.Sleep(5 * time.Minute)
			require.EqualValues(t, calls, served.Load(), "seed %d", seed)
		})
	}
}
