package sourcer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A backlog is a source that always has more, with a time that it takes to fetch a
// batch.
type backlog struct {
	source
	fetch time.Duration
}

func (b *backlog) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	time.Sleep(b.fetch) // virtual
	b.source.Read(ctx, r, out)
}

// drained is what a platform got out of a source.
type drained struct {
	messages, reads, empty int
	longest                time.Duration // Read
	worst                  int           // messages in one second, beginning at any Read
}

// drain plays the platform for d of virtual time: it reads, is busy with the batch for a while, and reads again.
func drain(t *testing.T, s sourcesdk.Sourcer, d, busy time.Duration) drained {
	t.Helper()
	var got arrivals
	core{batch: 500, write: busy, slow: true}.run(t, s, d, time.Now(), &got)
	return drained{got.between(0, 2*d), got.reads, got.empty, got.longest, got.worst(time.Second)}
}

func TestASourceDeliversItsLimitWithoutSpinning(t *testing.T) {
	for _, c := range testkit.Some([]struct {
		max         int
		per         time.Duration
		burst       int
		replicas    int
		busy, fetch time.Duration
	}{
		{max: 6, per: time.Minute},
		{max: 24, per: time.Minute},
		{max: 63, per: time.Minute}, // a token comes late in the time of a Read
		{max: 72, per: time.Minute},
		{max: 79, per: time.Minute},
		{max: 7, per: time.Second},
		{max: 50, per: time.Second},
		{max: 50, per: time.Second, replicas: 16},
		{max: 1000, per: time.Second},
		{max: 1000, per: time.Second, replicas: 3},
		{max: 1000, per: time.Second, busy: 50 * time.Millisecond, fetch: 20 * time.Millisecond},
		{max: 1000, per: time.Second, burst: 1000, busy: 300 * time.Millisecond, fetch: 100 * time.Millisecond},
		{max: 20_000, per: time.Second},
	}) {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				length := 5 * time.Minute
				if c.max >= 1000 { // as many messages come in less
					length = 30 * time.Second
				}
				share := 1 / float64(max(c.replicas, 1))
				static, err := throttle.Replicas(max(c.replicas, 1))
				require.NoError(t, err)
				l, err := throttle.New(throttle.Limit{Max: c.max, Per: c.per, Burst: c.burst}, throttle.WithSharer(static))
				require.NoError(t, err)
				defer l.Close()
				busy := max(c.busy, 2*time.Millisecond)

				got := drain(t, sourcer.Wrap(&backlog{fetch: c.fetch}, l), length, busy)

				perSecond := float64(c.max) / c.per.Seconds() * share
				whole := perSecond * length.Seconds()
				burst := max(1, float64(l.Limit().Burst)*share)
				t.Logf("%+v, %.4f of the limit, %.1f Reads a second", got,
					float64(got.messages)/whole, float64(got.reads)/length.Seconds())
				require.GreaterOrEqual(t, float64(got.messages), 0.99*whole-1)
				require.LessOrEqual(t, float64(got.messages), whole+burst+1)
				require.LessOrEqual(t, float64(got.worst), perSecond+burst+1+500, "in any second: a batch on top")
				require.LessOrEqual(t, got.longest, time.Second)
				// A batch holds up to 500; a limit of less than one per second has empty Reads.
				require.LessOrEqual(t, float64(got.reads)/length.Seconds(), max(25, perSecond/500*1.1))
				require.LessOrEqual(t, float64(got.empty)/length.Seconds(), 4.0/3)
			})
		})
	}
}

func TestWithoutAShareASourceIsReadNoMoreOftenThanItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(noShare{}))
		require.NoError(t, err)
		defer l.Close()
		got := drain(t, sourcer.Wrap(&backlog{}, l), time.Minute, 0)
		require.Equal(t, drained{reads: 60, empty: 60, longest: time.Second}, got)
	})
}

type noShare struct{}

func (noShare) Attach(h sharing.Holder) { h.Lease(limit.Lease{}) }
func (noShare) Poke()                   {}

// An observer is a Sharer that asks for the demand like a member of a pool.
type observer struct{ h sharing.Holder }

func (o *observer) Attach(h sharing.Holder) {
	o.h = h
	h.Lease(limit.Lease{Share: limit.WholeShare})
}
func (o *observer) Poke() {}

func (o *observer) demand() float64 {
	return float64(o.h.Report(2*time.Second).Demand) / float64(limit.WholeShare)
}

// A periodic source gets a number of messages at the beginning of each second.
type periodic struct {
	source
	perSecond int
	second    time.Time // that the messages came in last
	left      int
}

func (p *periodic) Read(_ context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	for end, n := time.Now().Add(r.TimeOut()), int(r.Count()); n > 0; {
		if now := time.Now().Truncate(time.Second); now.After(p.second) {
			p.second, p.left = now, p.perSecond
		}
		sent := min(n, p.left)
		send(out, sent)
		n, p.left = n-sent, p.left-sent
		if n > 0 && !time.Now().Before(end) {
			return
		}
		if n > 0 {
			time.Sleep(min(time.Until(end), time.Until(p.second.Add(time.Second)))) // virtual
		}
	}
}

// A pool gives its limit to those who show demand: a source with few messages must
// not look as if it could use all of it, and one with a backlog must.
func TestTheDemandOfASource(t *testing.T) {
	for name, c := range map[string]struct {
		burst, perSecond int
		from, to         float64
	}{
		"without messages": {500, 0, 0, 0.005},
		"with a trickle":   {500, 1, 0.001, 0.001},
		"with a tenth":     {500, 100, 0.09, 0.2},
		"with bursts":      {20, 100, 0.09, 0.2},
		"with a backlog":   {500, 1 << 20, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &observer{}
				l, err := throttle.New(throttle.Limit{Max: 1000, Burst: c.burst}, throttle.WithSharer(o))
				require.NoError(t, err)
				defer l.Close()
				w := sourcer.Wrap(&periodic{perSecond: c.perSecond}, l)
				var demands []float64
				for range 60 {
					for began := time.Now(); time.Since(began) < time.Second; {
						<-read(t.Context(), w, 500, time.Second)
					}
					demands = append(demands, o.demand())
				}
				t.Log(demands)
				for _, d := range demands[5:] {
					require.GreaterOrEqual(t, d, c.from)
					require.LessOrEqual(t, d, c.to)
				}
			})
		})
	}
}

// Tokens that one source holds while it waits for messages are missing elsewhere.
func TestAnIdleSourceLeavesTheTokensToOthers(t *testing.T) {
	for _, c := range testkit.Some([]struct{ perMinute, perSecond int }{{60, 0}, {150, 0}, {150, 1}, {60_000, 0}, {60_000, 100}}) {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := throttle.New(throttle.Limit{Max: c.perMinute, Per: time.Minute})
				require.NoError(t, err)
				defer l.Close()
				idle := sourcer.Wrap(&periodic{perSecond: c.perSecond}, l)
				ctx, stop := context.WithCancel(t.Context())
				var other sync.WaitGroup
				other.Go(func() {
					for ctx.Err() == nil {
						<-read(ctx, idle, 500, time.Second)
					}
				})
				defer other.Wait()
				defer stop()
				got := drain(t, sourcer.Wrap(&backlog{}, l), 10*time.Minute, 2*time.Millisecond)
				require.GreaterOrEqual(t, float64(got.messages), 0.99*10*float64(c.perMinute-60*c.perSecond)-1)
			})
		})
	}
}

// withSpare wraps a source that has nothing to read, and reads it until it keeps a token.
func withSpare(t *testing.T, s *periodic, l throttle.Limiter) sourcesdk.Sourcer {
	t.Helper()
	w := sourcer.Wrap(s, l)
	for range 3 {
		<-read(t.Context(), w, 500, time.Second)
	}
	return w
}

// The token that a source keeps is void with its processor's share.
func TestASpareTokenIsNotUsedWithoutAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &observer{}
		l, err := throttle.New(throttle.Limit{Max: 10}, throttle.WithSharer(o))
		require.NoError(t, err)
		defer l.Close()
		s := &periodic{}
		w := withSpare(t, s, l)
		granted := l.Status().Granted
		<-read(t.Context(), w, 500, time.Second)
		require.Equal(t, granted, l.Status().Granted, "the token of the Read before was used")

		s.perSecond = 1000
		o.h.Lease(limit.Lease{})
		require.Empty(t, (<-read(t.Context(), w, 500, time.Second)).values)
		o.h.Lease(limit.Lease{Share: limit.WholeShare})
		require.Len(t, (<-read(t.Context(), w, 500, time.Second)).values, 1, "a new token")
	})
}

// What an idle source did not use long ago is nothing that a hard limit may grant: no minute has more than Max.
func TestAHardLimitHoldsForASourceThatWasIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 10, Per: time.Minute, Burst: 5, Hard: true})
		require.NoError(t, err)
		defer l.Close()
		s := &periodic{}
		w := sourcer.Wrap(s, l)
		for began := time.Now(); time.Since(began) < 10*time.Minute; {
			<-read(t.Context(), w, 500, time.Second)
		}
		s.perSecond = 1000
		var at []time.Time
		for began := time.Now(); time.Since(began) < 5*time.Minute; {
			for range (<-read(t.Context(), w, 500, time.Second)).values {
				at = append(at, time.Now())
			}
		}
		require.Greater(t, len(at), 20)
		for i := range at[:len(at)-10] {
			require.GreaterOrEqual(t, at[i+10].Sub(at[i]), time.Minute-2*time.Second, "eleven messages within a minute and a Read")
		}
	})
}
