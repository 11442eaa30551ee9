package telemetry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The page names settings that disagree, and which of them count.
func TestPoolNamesSettingsThatDisagree(t *testing.T) {
	v := consensus.View{Roster: []driver.RosterRow{{ID: "a", Note: "1 0 600 60000000 0 0"}, {ID: "b", Note: "1 1 900 60000000 0 0"}}}
	require.Equal(t, "600 per 1m (a) counts; 900 per 1m, hard (b)", poolOf(&v).Disagree)
	v.Override.Max = 3
	require.Equal(t, "600 per 1m (a); 900 per 1m, hard (b) caps the override for these", poolOf(&v).Disagree)
	v.Roster[1].Note = v.Roster[0].Note
	require.Empty(t, poolOf(&v).Disagree)
	v.Roster[1].Busy = "\x02\x00\x00\x00\x00\x00\xab\xcd\x00\x12\x00\x00\x00"
	require.Equal(t, "600 per 1m, no quotas (a); 600 per 1m, quotas abcd0012 (b); each goes by its own quotas", poolOf(&v).Disagree)
}

func TestPauseSaysWho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l health.Limit
		addPause(&l, &throttle.Paused{Tag: "gpt", Reason: "night", By: "ann", Until: time.Now().Add(time.Hour)})
		require.Equal(t, &health.Paused{Tag: "gpt", Reason: "night", By: "ann", For: "1h"}, l.Paused)
	})
}

// The page tells how long a pause still lasts, and whom it has held back for how long.
func TestThePageTellsHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1000})
		require.NoError(t, err)
		defer func() { require.NoError(t, th.Close()) }()
		_, err = th.Pause(t.Context(), time.Now().Add(time.Hour), "night")
		require.NoError(t, err)
		for range 2 {
			_, ok := th.TryAcquire(1)
			require.False(t, ok)
		}
		go func() { _, _ = th.Acquire(context.Background(), 1) }()
		time.Sleep(20 * time.Minute)
		l := limitOf(otelthrottle.Watched{Throttle: th}, "static://")
		require.Regexp(t, `^40m(0.\d+s)?$`, l.Paused.For, "each processor ends it a little later")
		require.Equal(t, &health.Throttled{Reason: "pause", RetryAfter: l.Paused.For}, l.Throttled)
		require.Equal(t, []health.HeldBack{{Reason: "pause", Waits: 1, Refusals: 2, Time: health.Duration(20 * time.Minute)}}, l.HeldBack)
	})
}

// The page shows the pods that the limit needs, once that is known.
func TestThePageShowsThePodsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metered := hook.WithMeter(10).(throttle.Option) //nolint:errcheck,forcetypeassert // as documented
		th, err := throttle.New(throttle.Limit{Max: 1000}, metered)
		require.NoError(t, err)
		slots, err := throttle.NewInFlight(5, metered)
		require.NoError(t, err)
		for l, w := range map[throttle.Limiter]otelthrottle.Watched{th: {Throttle: th}, slots: {InFlight: slots}} {
			require.Nil(t, limitOf(w, "static://").PodsWanted)
			meters := hook.Meters(l)
			meters.Open()
			time.Sleep(7 * time.Second)
			meters.Ran(7 * time.Second)
			meters.Close()
			require.InDelta(t, 1/7.0, *limitOf(w, "static://").PodsWanted, 0.001)
		}
	})
}

// The busiest tags are shown, and how many are not.
func TestTagsOfAPage(t *testing.T) {
	var tags []throttle.TagStatus
	for i := range health.MaxTags + 3 {
		tags = append(tags, throttle.TagStatus{Tag: fmt.Sprint(i), Used: int64(i), Refused: 1, Target: 5, By: "limiting", Limiting: 4, Cost: 2})
	}
	var l health.Limit
	addTags(&l, tags)
	require.Len(t, l.Tags, health.MaxTags)
	require.Equal(t, 3, l.MoreTags)
	require.Equal(t, health.Tag{Tag: "102", Used: 102, Refused: 1, Target: 5, By: "limiting", Limiting: 4, Cost: 2}, l.Tags[0])
	require.Equal(t, "0", tags[0].Tag, "what was given stays as it is")
}

// The page has the sentence of the command, of a limit on a rate and of one on calls in flight.
func TestThePageSaysWhy(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithName("l"), throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{"acme": {Blocked: true}},
	}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	says := func(w otelthrottle.Watched) []string {
		l := limitOf(w, "static://")
		return []string{l.Why, l.Cause, l.Level}
	}
	require.Equal(t, []string{"nothing holds callers back", "none", "usual"}, says(otelthrottle.Watched{Throttle: th}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = th.ForTag("acme").Acquire(ctx, 1) }()
	require.Eventually(t, func() bool { return says(otelthrottle.Watched{Throttle: th})[1] == "quota" }, 10*time.Second, time.Millisecond)
	require.Regexp(t, "^acme is blocked by a total of 0; 1 caller waits", says(otelthrottle.Watched{Throttle: th})[0])

	calls, err := throttle.NewInFlight(1)
	require.NoError(t, err)
	t.Cleanup(func() { _ = calls.Close() })
	_, ok := calls.TryAcquire(1)
	require.True(t, ok)
	go func() { _, _ = calls.Acquire(ctx, 1) }()
	require.Eventually(t, func() bool {
		return says(otelthrottle.Watched{InFlight: calls})[0] == "all 1 calls in flight are taken; 1 caller waits"
	}, 10*time.Second, time.Millisecond)

	tags, err := throttle.NewInFlight(9, throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 2}}}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = tags.Close() })
	_, ok = tags.ForTag("acme").TryAcquire(2)
	require.True(t, ok)
	go func() { _, _ = tags.ForTag("acme").Acquire(ctx, 1) }()
	require.Eventually(t, func() bool {
		return strings.HasPrefix(says(otelthrottle.Watched{InFlight: tags})[0], "acme has 2 of 2 calls in flight; 1 caller waits")
	}, 10*time.Second, time.Millisecond)
	of := limitOf(otelthrottle.Watched{InFlight: tags}, "static://").InFlight.Tags
	require.Equal(t, "acme", of[0].Tag)
	require.Equal(t, 2, *of[0].Allowed)
}
