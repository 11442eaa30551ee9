package throttle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A call that somebody else holds back shows in everything in which a wait of the limiter's own does.
func TestHoldBackShowsAsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{}
		th := whole(t, Limit{Max: 1, Burst: 1}, WithName("llm"), WithTag("gold"), WithObserver(w))
		slots := flight(t, 1, WithName("calls"), WithObserver(w))
		for _, tc := range []struct {
			on interface {
				Limiter
				WaitStats() []WaitStats
			}
			waiting  func() int
			reported Wait
		}{
			{th, func() int { return th.Status().Waiting }, Wait{Limit: "llm", Tag: "gold", Reason: ReasonPause, Cost: 3}},
			{slots, func() int { return slots.Status().Waiting }, Wait{Limit: "calls", Reason: ReasonPause, Cost: 3}},
		} {
			w.reported = nil
			first := externalWait(t.Context(), tc.on, "", 3)
			time.Sleep(time.Second)
			second := externalWait(t.Context(), tc.on, "", 3)
			require.Equal(t, 2, tc.waiting())
			time.Sleep(time.Second)
			require.Equal(t, []WaitStats{{Reason: ReasonPause, Waits: 2, Time: 2 * time.Second}}, tc.on.WaitStats(), "while they wait")
			first(nil)
			time.Sleep(time.Second)
			second(errors.New("mine"))
			time.Sleep(time.Minute)
			require.Zero(t, tc.waiting())
			require.Equal(t, []WaitStats{{Reason: ReasonPause, Waits: 2, Time: 3 * time.Second}}, tc.on.WaitStats())
			require.Equal(t, []any{tc.reported, tc.reported, Waited{For: 2 * time.Second}, Waited{For: 2 * time.Second, Err: errors.New("mine")}}, w.reported)
		}
		require.Zero(t, th.Status().Refused, "it is no demand")
	})
}

// While somebody waits for tokens as well, the time counts for that reason, and goes on counting afterwards.
func TestHoldBackBesideAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 2, Burst: 2})
		drain(th)
		over := externalWait(t.Context(), th, "", 1)
		c := begin(th, 2, 0)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.end(t).err)
		over(nil)
		require.InDelta(t, 1, heldFor(th, ReasonLimit).Time.Seconds(), 1e-6)
		require.InDelta(t, 4, heldFor(th, ReasonPause).Time.Seconds(), 1e-6)
	})
}

// Only a call that its deadline ends is refused, and one that Refuse has counted does not count twice.
func TestHeldBackCallThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1}, WithName("llm"), WithTag("gold"))
		end := func(ctx context.Context, err func() error) {
			over := externalWait(ctx, th, "", 1)
			<-ctx.Done()
			over(err())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		end(ctx, func() error { return ctx.Err() })
		require.Zero(t, heldFor(th, ReasonPause).Refusals, "cancelled")
		ctx = timeout(t, time.Second)
		end(ctx, func() error { return ctx.Err() })
		require.Equal(t, int64(1), heldFor(th, ReasonPause).Refusals)
		end(ctx, func() error { return refuse(th, Error{Reason: ReasonPause}) })
		require.Equal(t, int64(2), heldFor(th, ReasonPause).Refusals)

		e := refuse(th, Error{Reason: ReasonPause, Cost: 2, RetryAfter: time.Second})
		require.Equal(t, &Error{Reason: ReasonPause, Limit: "llm", Tag: "gold", Cost: 2, RetryAfter: time.Second, by: th}, e)
		require.Equal(t, "mine", refuse(th, Error{Reason: "foreign", Tag: "mine"}).Tag)
		require.Equal(t, []WaitStats{{Reason: ReasonPause, Waits: 3, Refusals: 3, Time: time.Second}}, th.WaitStats())
	})
}

// Of an All it is the limiter made first that the draw costs something at, with what it costs there.
func TestWhoHoldsBackOfAnAll(t *testing.T) {
	first, second := whole(t, Limit{Max: 1}, WithName("first")), whole(t, Limit{Max: 1}, WithName("second"), WithTag("gold"))
	foreign := struct{ Limiter }{whole(t, Limit{Max: 1}, WithName("foreign"))}
	embedded := upTo{whole(t, Limit{Max: 1}, WithName("embedded"))}
	free := func(l Limiter) Limiter { return Weigh(l, func(int) int { return 0 }) }
	for name, tc := range map[string]struct {
		l    Limiter
		want Error
	}{
		"alone":         {second, Error{Limit: "second", Tag: "gold", Cost: 7}},
		"first":         {All(second, first), Error{Limit: "first", Cost: 7}},
		"its own price": {All(second, PerCall(first)), Error{Limit: "first", Cost: 1}},
		"free":          {All(second, free(first)), Error{Limit: "second", Tag: "gold", Cost: 7}},
		"all free":      {All(free(second), free(first)), Error{Limit: "first"}},
		"with tags":     {All(second, struct{ Tagger }{tagger{first}}), Error{Limit: "second", Tag: "gold", Cost: 7}},
		"embedded":      {embedded, Error{Limit: "embedded", Cost: 7}},
		"wrapped":       {wrapped{All(foreign, PerCall(wrapped{second}))}, Error{Limit: "second", Tag: "gold", Cost: 1}},
		"foreign":       {foreign, Error{Cost: 7}},
		"unlimited":     {whole(t, Limit{}, WithName("none")), Error{Cost: 7}},
		"none":          {nil, Error{Cost: 7}},
	} {
		tc.want.Reason = ReasonPause
		e := refuse(tc.l, Error{Reason: ReasonPause, Cost: 7})
		require.Equal(t, tc.want.Limit != "", e.By() != nil, name)
		e.by = nil
		require.Equal(t, &tc.want, e, name)
	}
}

type wrapped struct{ Limiter }

func (w wrapped) Unwrap() Limiter { return w.Limiter }

type tagger struct{ Limiter }

func (t tagger) ForTag(string) Limiter { return t }

// Blame knows of the wait, whatever limiter it is told to.
func TestHoldBackIsBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := whole(t, Limit{Max: 1}, WithName("llm"))
		for limit, l := range map[string]Limiter{"llm": th, "": struct{ Limiter }{th}} {
			ctx := trackIn(timeout(t, 10*time.Second))
			over := externalWait(ctx, l, "gold", 1)
			time.Sleep(9 * time.Second)
			over(nil)
			<-ctx.Done()
			require.Equal(t, &Error{Reason: ReasonPause, Limit: limit, Tag: "gold", Cost: 1, Cause: ctx.Err()}, blame(ctx, ctx.Err()))
		}
	})
}

// Calls that are held back before they draw wait for the end of a pause.
func TestExternalWaitsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := full(t, 100)
		over := externalWait(t.Context(), th, "", 1)
		r := rateHolder{th}.Report(time.Second)
		require.Equal(t, []any{ReasonPause, 1}, []any{r.Throttled, r.Hold.Callers})
		over(nil)
	})
}
