package admission_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// noShare is a sharer that never leases anything.
type noShare struct{}

func (noShare) Attach(sharing.Holder) {}
func (noShare) Poke()                 {}

func newThrottle(tb testing.TB, limit throttle.Limit, opts ...throttle.Option) *throttle.Throttle {
	tb.Helper()
	l, err := throttle.New(limit, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, l.Close()) })
	return l
}

// denied returns err as a *Denied.
func denied(tb testing.TB, err error) *admission.Denied {
	tb.Helper()
	var d *admission.Denied
	require.ErrorAs(tb, err, &d)
	require.NotNil(tb, d.Err)
	require.ErrorIs(tb, err, throttle.ErrThrottled)
	return d
}

func requireDenied(tb testing.TB, err error) {
	tb.Helper()
	require.NotNil(tb, denied(tb, err))
}

func TestMaxWait(t *testing.T) {
	const maxWait = 5 * time.Second
	for name, c := range map[string]struct {
		after time.Duration // the tokens come
		ok    bool
	}{
		"tokens at hand":             {0, true},
		"tokens just before the end": {maxWait - 1, true},
		"tokens just after the end":  {maxWait + 1, false},
		"no tokens":                  {time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens := make(chan struct{})
				timer := time.AfterFunc(c.after, func() { close(tokens) })
				defer timer.Stop()
				l := throttletest.New(throttletest.GrantOn(tokens))
				g := admission.Admitter{Limiter: l, MaxWait: maxWait}
				began := time.Now()
				p, err := g.Admit(t.Context(), "tag", 2)
				require.Equal(t, min(c.after, maxWait), time.Since(began))
				if c.ok {
					require.NoError(t, err)
					require.Equal(t, 2, p.N())
					return
				}
				d := denied(t, err)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, &throttle.Error{
					Reason: throttle.ReasonLimit, Tag: "tag", Cost: 2, Cause: context.DeadlineExceeded,
				}, d.Err)
				require.Equal(t, throttle.Permit{}, p)
				require.Zero(t, l.Used())
			})
		})
	}
}

func TestWithoutAShareTheLimiterSaysWhyAfterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newThrottle(t, throttle.Limit{Max: 100}, throttle.WithSharer(noShare{}))
		g := admission.Admitter{Limiter: l, MaxWait: time.Second}
		began := time.Now()
		_, err := g.Admit(t.Context(), "", 1)
		require.Equal(t, time.Second, time.Since(began))
		d := denied(t, err)
		require.Equal(t, throttle.ReasonNoShare, d.Err.Reason)
		require.Zero(t, d.Err.RetryAfter)
	})
}

func TestWhatTheLimiterRefusesBecauseOfTheLimitIsADenial(t *testing.T) {
	own := &throttle.Error{Reason: throttle.ReasonStoreLost, Cost: 1, RetryAfter: time.Second}
	g := admission.Admitter{Limiter: throttletest.New(throttletest.Deny(own)), MaxWait: time.Second}
	_, err := g.Admit(t.Context(), "", 1)
	require.Same(t, own, denied(t, err).Err, "the limiter's own")

	g.Limiter = throttletest.New(throttletest.Deny(throttle.ErrThrottled)) // of a limiter that has no more to say
	_, err = g.Admit(t.Context(), "a", 7)
	require.Equal(t, &throttle.Error{Reason: throttle.ReasonLimit, Tag: "a", Cost: 7, Cause: throttle.ErrThrottled}, denied(t, err).Err)
}

// A cost that can never be granted is a denial, with MaxWait and without, in a batch and out of it. It takes no turn of others, and is told
// once a minute.
func TestACostThatCanNeverBeGrantedIsADenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 10, Burst: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		var log bytes.Buffer
		for _, maxWait := range []time.Duration{0, time.Second} {
			log.Reset()
			g := &admission.Admitter{Limiter: l, MaxWait: maxWait, Log: slog.New(slog.NewTextHandler(&log, nil))}
			for _, cost := range []int{11, 5000, 1e12, math.MaxInt} {
				for _, budget := range []time.Duration{0, time.Second} {
					_, err := g.Batch(budget).Admit(t.Context(), "", cost)
					d := denied(t, err)
					require.True(t, d.TooLarge())
					require.Equal(t, throttle.ReasonTooLarge, d.Err.Reason)
					require.Equal(t, 10, d.Err.Largest)
					require.Equal(t, "throttled (too_large)", d.Why())
					require.InDelta(t, 67.5, d.RetryAfter().Seconds(), 7.5, "not again and again")
				}
			}
			require.Equal(t, 1, strings.Count(log.String(), "can never be granted; told once"), log.String())
			require.Contains(t, log.String(), "a cost of 11 can never be granted, allowed: at most 10")
			_, err = g.Admit(t.Context(), "", 1)
			require.NoError(t, err, "the tokens are there for others")
			time.Sleep(time.Minute)
			_, err = g.Admit(t.Context(), "", 12)
			_ = denied(t, err)
			require.Contains(t, log.String(), "messages=8")
		}
	})
}

// A message that costs nothing, or less, waits for what holds others of its tag.
func TestAMessageThatCostsNothingIsHeldLikeOthers(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 100}, throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{"blocked": {Blocked: true}, "free": {}},
	}))
	require.NoError(t, err)
	g := &admission.Admitter{Limiter: th, MaxWait: 50 * time.Millisecond}
	for _, cost := range []int{1, 0, -3} {
		_, err = g.Admit(t.Context(), "blocked", cost)
		var denied *admission.Denied
		require.ErrorAs(t, err, &denied)
		_, err = g.Admit(t.Context(), "free", cost)
		require.NoError(t, err)
	}
}
