package admission_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestRetryAfterIsNeverTooEarlyAndSpread(t *testing.T) {
	for _, c := range []struct{ reported, least time.Duration }{
		{0, 100 * time.Millisecond}, // not known
		{time.Millisecond, 100 * time.Millisecond},
		{100 * time.Millisecond, 100 * time.Millisecond},
		{time.Second, time.Second},
		{31 * 24 * time.Hour, 31 * 24 * time.Hour},
	} {
		d := admission.Denied{Err: &throttle.Error{RetryAfter: c.reported}}
		earliest, latest := d.RetryAfter(), d.RetryAfter()
		for range 1000 {
			after := d.RetryAfter()
			require.GreaterOrEqual(t, after, c.least)
			require.LessOrEqual(t, after, c.least+c.least/4)
			earliest, latest = min(earliest, after), max(latest, after)
		}
		require.Greater(t, latest-earliest, c.least/5, "spread over nearly a quarter of %s", c.least)
	}
}

func TestDeniedSaysWhatTheLimiterSaid(t *testing.T) {
	d := &admission.Denied{Err: &throttle.Error{Reason: throttle.ReasonNoShare, Limit: "calls", Tag: "tenant", Cost: 3}}
	require.ErrorIs(t, d, throttle.ErrThrottled)
	require.ErrorContains(t, d, `limit "calls": tag "tenant": 3 tokens cannot be had in time (no_share)`)
}

// nacks has n messages denied by a gate, and returns when each is to come again.
func nacks(t *testing.T, g *admission.Admitter, tag string, n int) (after []time.Duration) {
	t.Helper()
	for range n {
		_, err := g.Admit(t.Context(), tag, 1)
		var d *admission.Denied
		require.ErrorAs(t, err, &d)
		after = append(after, d.RetryAfter())
	}
	return after
}

func TestNacksOfAThrottleHaveATurnEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 10, Per: 10 * time.Second, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		g := &admission.Admitter{Limiter: l, MaxWait: 200 * time.Millisecond}
		for i, after := range nacks(t, g, "", 100) {
			turn := time.Duration(i+1) * time.Second
			require.GreaterOrEqual(t, after, turn-g.MaxWait/2)
			require.LessOrEqual(t, after, turn+time.Second, "and jitter of less than a turn")
		}
		require.GreaterOrEqual(t, nacks(t, g, "any", 1)[0], 100*time.Second, "a limiter without tags has one line")
	})
}

// Of several limits it is the one that denied whose pace counts, and what the message costs there.
func TestNacksOfSeveralLimitsHaveTheTurnsOfTheOneThatDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var each []throttle.Limiter // none has a name
		for _, per := range []time.Duration{3 * time.Second, 10 * time.Second} {
			l, err := throttle.New(throttle.Limit{Max: 10, Per: per, Burst: 2})
			require.NoError(t, err)
			defer l.Close()
			each = append(each, l)
		}
		twice := func(n int) int { return 2 * n }
		g := &admission.Admitter{Limiter: throttle.All(each[0], throttle.Weigh(each[1], twice)), MaxWait: 200 * time.Millisecond}
		for i, after := range nacks(t, g, "any", 100) {
			turn := time.Duration(i+1) * 2 * time.Second
			require.GreaterOrEqual(t, after, turn-g.MaxWait/2)
			require.LessOrEqual(t, after, turn+2*time.Second, "and jitter of less than a turn")
		}
		g.Limiter = each[0]
		require.Less(t, nacks(t, g, "", 1)[0], time.Second, "the other has a line of its own")
	})
}

// tenants has a limit for each tag.
type tenants struct {
	throttle.Limiter

	of map[string]*throttle.Throttle
}

func (l tenants) ForTag(tag string) throttle.Limiter { return l.of[tag] }

func TestNacksOfATagHaveALineOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := tenants{of: map[string]*throttle.Throttle{}}
		for tag, per := range map[string]time.Duration{"slow": time.Hour, "fast": time.Minute} {
			th, err := throttle.New(throttle.Limit{Max: 10, Per: per, Burst: 1})
			require.NoError(t, err)
			defer th.Close()
			l.of[tag] = th
		}
		g := &admission.Admitter{Limiter: l, MaxWait: time.Second}
		slow, fast := nacks(t, g, "slow", 2), nacks(t, g, "fast", 2)
		require.Greater(t, slow[1], 11*time.Minute)
		require.Less(t, fast[1], 20*time.Second)
	})
}

func TestNacksOfALimiterWithoutARateComeAsItSays(t *testing.T) {
	denies := throttletest.Deny(&throttle.Error{Reason: throttle.ReasonLimit, RetryAfter: time.Second})
	g := &admission.Admitter{Limiter: throttletest.New(denies), MaxWait: time.Second}
	require.InDelta(t, 1.125, nacks(t, g, "", 1)[0].Seconds(), 0.126)
}

func TestNacksAreToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		l, err := throttle.New(throttle.Limit{Max: 1, Per: time.Second, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		g := &admission.Admitter{Limiter: l, MaxWait: time.Millisecond, Log: slog.New(slog.NewTextHandler(&buf, nil))}
		for range 150 { // seconds
			nacks(t, g, "", 100)
			permit, err := l.Acquire(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, 1, permit.N())
		}
		lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
		require.Len(t, lines, 3, "at once, and after one and two minutes")
		require.Contains(t, lines[0], "messages=1 ")
		require.Contains(t, lines[1], "messages=6000 ")
	})
}

// perTag is a limiter of somebody else's, which says no more than that it refuses.
type perTag struct{ throttle.Limiter }

func (p perTag) ForTag(string) throttle.Limiter { return p.Limiter }

// Whatever a message makes of its tag, the error and its texts stay short and valid.
func TestTheErrorOfAForeignLimiterHasAShortTag(t *testing.T) {
	for tag, want := range map[string]string{
		"acme": `throttled (limit, tag "acme")`, "": "throttled (limit)",
		strings.Repeat("x", 100_000): `throttled (limit, tag "` + tagname.Short(strings.Repeat("x", 100_000)) + `")`,
		"\xff":                       `throttled (limit, tag "` + tagname.Short("\xff") + `")`,
	} {
		g := admission.Admitter{Limiter: perTag{throttletest.New(throttletest.Deny(throttle.ErrThrottled))}, MaxWait: time.Second}
		_, err := g.Admit(t.Context(), tag, 1)
		d := denied(t, err)
		require.Equal(t, want, d.Why())
		require.LessOrEqual(t, len(d.Error()), 200)
		require.Positive(t, d.RetryAfter())
	}
}
