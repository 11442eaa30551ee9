package sourcer_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// busy is a core whose batches of 50 take a second when they are not full.
var busy = core{batch: 50, permits: 1, timeout: time.Second, write: 3 * time.Millisecond}

// readBusy reads w a few times as busy does, and returns at the end of a Read, after
// which the platform is away.
func readBusy(t *testing.T, w sourcesdk.Sourcer) {
	t.Helper()
	for range 3 {
		<-read(t.Context(), w, 50, time.Second)
		time.Sleep(time.Second) // virtual
	}
	<-read(t.Context(), w, 50, time.Second)
}

// What is kept for the next Read is void when the share it was granted under is, or
// when a pause was between, and is no more than the share in force would have earned.
func TestWhatIsKeptIsVoidWithItsShare(t *testing.T) {
	lease := func(o *observer, share int64) { o.h.Lease(limit.Lease{Share: share}) }
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, l *throttle.Throttle, o *observer)
		most      int // messages of the next Read
	}{
		"nothing happens": {func(*testing.T, *throttle.Throttle, *observer) {}, 20},
		"a pause has begun": {func(t *testing.T, l *throttle.Throttle, _ *observer) {
			_, err := l.Pause(t.Context(), time.Now().Add(time.Hour), "maintenance")
			require.NoError(t, err)
		}, 0},
		"a pause was between": {func(t *testing.T, l *throttle.Throttle, _ *observer) {
			_, err := l.Pause(t.Context(), time.Now().Add(100*time.Millisecond), "maintenance")
			require.NoError(t, err)
			time.Sleep(150 * time.Millisecond) // virtual
		}, 4},
		"the share is lost": {func(_ *testing.T, _ *throttle.Throttle, o *observer) { lease(o, 0) }, 0},
		"the lease was over for a while": {func(_ *testing.T, _ *throttle.Throttle, o *observer) {
			time.Sleep(10 * time.Second) // virtual: longer than the lease
			lease(o, limit.WholeShare)
		}, 1},
		"a tenth of the share":      {func(_ *testing.T, _ *throttle.Throttle, o *observer) { lease(o, limit.WholeShare/10) }, 4},
		"an override has raised it": {func(_ *testing.T, _ *throttle.Throttle, o *observer) { lease(o, 4*limit.WholeShare) }, 50},
		"the limiter is closed":     {func(t *testing.T, l *throttle.Throttle, _ *observer) { require.NoError(t, l.Close()) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &observer{}
				l, err := throttle.New(throttle.Limit{Max: 20}, throttle.WithSharer(o))
				require.NoError(t, err)
				defer l.Close()
				o.h.Lease(limit.Lease{Share: limit.WholeShare, Until: time.Now().Add(10 * time.Second)})
				w := sourcer.Wrap(&source{}, l)
				readBusy(t, w)
				time.Sleep(900 * time.Millisecond) // virtual
				c.meanwhile(t, l, o)
				got := len((<-read(t.Context(), w, 50, 100*time.Millisecond)).values)
				require.LessOrEqual(t, got, c.most)
				if name == "nothing happens" {
					require.GreaterOrEqual(t, got, 17)
				}
			})
		})
	}
}

// A Read that is collecting a batch when a pause begins, or the share is lost, reads nothing.
func TestAPauseIsForTheTokensThatAReadIsCollecting(t *testing.T) {
	for name, end := range map[string]func(l *throttle.Throttle, o *observer){
		"pause": func(l *throttle.Throttle, _ *observer) {
			_, _ = l.Pause(context.Background(), time.Now().Add(time.Hour), "maintenance")
		},
		"pause that is over": func(l *throttle.Throttle, _ *observer) {
			_, _ = l.Pause(context.Background(), time.Now().Add(10*time.Millisecond), "maintenance")
		},
		"share": func(_ *throttle.Throttle, o *observer) { o.h.Lease(limit.Lease{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &observer{}
				l, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(o))
				require.NoError(t, err)
				defer l.Close()
				s := &source{}
				done := read(t.Context(), sourcer.Wrap(s, l), 50, time.Second)
				time.Sleep(300 * time.Millisecond) // virtual
				require.Greater(t, l.Status().Granted, int64(20), "it collects")
				end(l, o)
				require.Empty(t, (<-done).values)
				require.Empty(t, s.asked)
			})
		})
	}
}

// looked is a limiter that counts how often it was looked at and drawn from.
type looked struct {
	*throttle.Throttle
	n atomic.Int64
}

func (l *looked) Status() throttle.Status {
	l.n.Add(1)
	return l.Throttle.Status()
}

// A platform that does not come back leaves a source that holds a batch at most, and
// looks at its limiter no more. The limiter is not closed: nothing may be running.
func TestASourceThatIsNotReadAnyMoreDrawsABatchAtMost(t *testing.T) {
	for _, limit := range []throttle.Limit{{Max: 20}, {Max: 10_000}, {Max: 1, Per: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			l, err := throttle.New(limit)
			require.NoError(t, err)
			see := &looked{Throttle: l}
			w := sourcer.Wrap(&source{}, see)
			readBusy(t, w)
			granted, before := l.Status().Granted, see.n.Load()
			time.Sleep(2 * time.Minute) // virtual
			require.LessOrEqual(t, l.Status().Granted, granted+50)
			require.LessOrEqual(t, see.n.Load(), before+300, "four looks a second for a minute, and some draws")
			before = see.n.Load()
			time.Sleep(time.Hour) // virtual
			require.Equal(t, before, see.n.Load())
		})
	}
}

// What is earned while the source fetches is not lost either.
func TestASourceThatTakesLongToFetchDeliversItsLimit(t *testing.T) {
	for _, fetch := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond} {
		for name, c := range map[string]core{"slow": busy, "fast": busy.fast()} {
			for _, limit := range []int{20, 60} {
				t.Run(fmt.Sprintf("%s, %s, %d a second", fetch, name, limit), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l, err := throttle.New(throttle.Limit{Max: limit})
						require.NoError(t, err)
						defer l.Close()
						var got arrivals
						platform := c
						platform.slow = true // the fetch may take longer than the time that is left for it
						platform.run(t, sourcer.Wrap(&backlog{fetch: fetch}, l), 65*time.Second, time.Now(), &got)
						require.InEpsilon(t, limit, float64(got.between(25*time.Second, 65*time.Second))/40, 0.03)
					})
				})
			}
		}
	}
}

// After a long absence there is one batch on top of what the limit lets through, and no more.
func TestAfterALongAbsenceThereIsOneBatchOnTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 20})
		require.NoError(t, err)
		defer l.Close()
		w := sourcer.Wrap(&source{}, l)
		readBusy(t, w)
		time.Sleep(30 * time.Second) // virtual
		var got arrivals
		fast := core{batch: 50, permits: 1, write: time.Millisecond}
		fast.run(t, w, 3*time.Second, time.Now(), &got)
		require.GreaterOrEqual(t, got.worst(20*time.Millisecond), 50, "that batch")
		require.LessOrEqual(t, got.between(0, time.Second), 20+2+1+50)
	})
}

// A look counts for as long as the Read before it does: several Reads at once share what
// is kept, and have no more than the limit between them.
func TestReadsAtOnceShareWhatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 40})
		require.NoError(t, err)
		defer l.Close()
		w := sourcer.Wrap(&quiet{}, l)
		var got arrivals
		var running sync.WaitGroup
		began := time.Now()
		for range 4 {
			running.Go(func() { busy.run(t, w, 30*time.Second, began, &got) })
		}
		running.Wait()
		sum := got.between(0, time.Minute)
		require.GreaterOrEqual(t, sum, 1164)
		require.LessOrEqual(t, sum, 1200+4+1+50)
	})
}

// quiet is a source for several Reads at once, which does not record them.
type quiet struct{ source }

func (q *quiet) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	send(out, int(r.Count()))
}

// A steady source gets its messages one after the other, and hands over what is there.
type steady struct {
	source
	perSecond int
	began     time.Time
	sent      int
}

func (p *steady) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	there := func() int { return int(time.Since(p.began).Seconds()*float64(p.perSecond)) - p.sent }
	for end := time.Now().Add(r.TimeOut()); there() == 0 && time.Now().Before(end); {
		time.Sleep(min(time.Until(end), 5*time.Millisecond)) // virtual
	}
	n := min(there(), int(r.Count()))
	send(out, n)
	p.sent += n
}

// A source without messages leaves the limit to others of its pool, which deliver all of
// it in the cadence that is slow.
func TestASourceWithoutMessagesLeavesTheLimitToOtherPods(t *testing.T) {
	for _, c := range []struct{ limit, perSecond int }{{50, 0}, {1000, 0}, {1000, 20}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiters := poolOf(t, 2, throttle.Limit{Max: c.limit})
				var idle, got arrivals
				var running sync.WaitGroup
				began := time.Now()
				running.Go(func() {
					busy.run(t, sourcer.Wrap(&steady{perSecond: c.perSecond}, limiters[0]), 40*time.Second, began, &idle)
				})
				running.Go(func() { busy.run(t, sourcer.Wrap(&source{}, limiters[1]), 40*time.Second, began, &got) })
				running.Wait()
				for _, l := range limiters {
					require.NoError(t, l.Close())
				}
				use := float64(got.between(10*time.Second, 40*time.Second)) / 30
				require.GreaterOrEqual(t, use, 0.97*float64(c.limit-c.perSecond))
			})
		})
	}
}

// Several limits at once are one bucket, the scarcest; a cost per message makes a batch
// worth more.
func TestLimitsAtOnceAndCostsInTheSlowCadence(t *testing.T) {
	limit := func(t *testing.T, l throttle.Limit) *throttle.Throttle {
		t.Helper()
		one, err := throttle.New(l)
		require.NoError(t, err)
		t.Cleanup(func() { _ = one.Close() })
		return one
	}
	for name, c := range map[string]struct {
		limiter func(t *testing.T) throttle.Limiter
		opts    []sourcer.Option
		want    float64 // messages per second
	}{
		"two limits": {func(t *testing.T) throttle.Limiter {
			t.Helper()
			return throttle.All(limit(t, throttle.Limit{Max: 40}), limit(t, throttle.Limit{Max: 9000, Per: time.Minute}))
		}, nil, 40},
		"two limits, faster": {func(t *testing.T) throttle.Limiter {
			t.Helper()
			return throttle.All(limit(t, throttle.Limit{Max: 400}), limit(t, throttle.Limit{Max: 500}))
		}, nil, 400},
		"a cost of three": {func(t *testing.T) throttle.Limiter {
			t.Helper()
			return limit(t, throttle.Limit{Max: 90})
		}, []sourcer.Option{sourcer.WithReadCost(func(sourcesdk.Message) int { return 3 })}, 30},
		"a limit of an hour": {func(t *testing.T) throttle.Limiter {
			t.Helper()
			return limit(t, throttle.Limit{Max: 36_000, Per: time.Hour})
		}, nil, 10},
		"a burst of one token": {func(t *testing.T) throttle.Limiter {
			t.Helper()
			return limit(t, throttle.Limit{Max: 40, Burst: 1})
		}, nil, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := sourcer.Wrap(&source{}, c.limiter(t), c.opts...)
				var got arrivals
				busy.run(t, w, 60*time.Second, time.Now(), &got)
				require.InEpsilon(t, c.want, float64(got.between(10*time.Second, 60*time.Second))/50, 0.03)
			})
		})
	}
}

// Nothing is kept under a hard limit: a token that was granted long ago would come on top. It
// takes a short readTimeout to get what it earns.
func TestAHardLimitKeepsNothing(t *testing.T) {
	for timeout, least := range map[time.Duration]float64{time.Second: 0.1, 100 * time.Millisecond: 0.97} {
		synctest.Test(t, func(t *testing.T) {
			l, err := throttle.New(throttle.Limit{Max: 50, Hard: true})
			require.NoError(t, err)
			defer l.Close()
			c := busy
			c.timeout = timeout
			var got arrivals
			c.run(t, sourcer.Wrap(&source{}, l), 60*time.Second, time.Now(), &got)
			t.Logf("%.2f of what it earns, with a readTimeout of %s", float64(got.between(0, time.Hour))/60/l.Status().Rate, timeout)
			require.LessOrEqual(t, got.worst(time.Second), 50)
			require.GreaterOrEqual(t, float64(got.between(0, time.Hour))/60/l.Status().Rate, least)
		})
	}
}
