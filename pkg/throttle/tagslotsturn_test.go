package throttle

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Slots that a tag used while nobody waited, or long ago, are not held against it: two tags with callers enough soon have the same.
func TestPastUseIsForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		other  string
		behind float64 // the tag may be by so many slot-seconds
	}{"nobody waited": {"", 10}, "others waited": {"c", 45}} {
		other := tc.other
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := taggedFlight(t, 4, Quotas{Tags: map[string]Quota{"a": {}, "b": {}, "c": {}}})
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				past, stop := context.WithCancel(ctx)
				if other != "" {
					calls(past, &all, f.ForTag("a"), 3, time.Hour)
					time.Sleep(time.Second)
					calls(past, &all, f.ForTag(other), 3, time.Second)
				} else {
					calls(past, &all, f.ForTag("a"), 3, time.Second)
				}
				time.Sleep(time.Hour - time.Second)
				stop()
				calls(ctx, &all, f.ForTag("b"), 10, time.Second)
				time.Sleep(2*time.Second + time.Millisecond)
				calls(ctx, &all, f.ForTag("a"), 10, time.Second)
				a, b := 0, 0
				for range 60 {
					time.Sleep(990 * time.Millisecond)
					synctest.Wait()
					a, b = a+tagStatus(f, "a").InUse, b+tagStatus(f, "b").InUse
				}
				cancel()
				all.Wait()
				require.InDelta(t, b, a, tc.behind, "a has %d, b %d", a, b)
			})
		})
	}
}

// A name that looks like the key of two levels is one without a quota, and not a way to the tags of others.
func TestANameIsNoKeyOfLevels(t *testing.T) {
	f := taggedFlight(t, 4, Quotas{Tags: map[string]Quota{"team": {Total: 1}, "key": {Total: 1}}})
	for _, l := range []Limiter{f.ForTags("team", "key"), forLevels(f, "team", "key")} {
		p, ok := l.TryAcquire(1)
		require.True(t, ok)
		p.Cancel()
	}
	for _, name := range []string{"team" + asLevels + "key", "team" + asLevels + "key" + asLevels, "team" + asLevels} {
		p, ok := f.ForTag(name).TryAcquire(1)
		require.True(t, ok, "%q", name)
		require.Zero(t, tagStatus(f, "team").InUse, "%q", name)
		require.Zero(t, tagStatus(f, "key").InUse, "%q", name)
		p.Cancel()
	}
}

// A view finds its tag again that was forgotten, for another one may have taken its name.
func TestAForgottenTagKeepsToItsTotal(t *testing.T) {
	f := taggedFlight(t, 8, Quotas{Match: []QuotaPattern{{Tag: "inv-*", Quota: Quota{Total: 1}}}})
	view := f.ForTag("inv-x")
	p, ok := view.TryAcquire(1)
	require.True(t, ok)
	p.Settle(1)
	for i := range tagsKept + 1 {
		p, ok := f.ForTag(fmt.Sprint("inv-", i)).TryAcquire(1)
		require.True(t, ok)
		p.Settle(1)
	}
	_, ok = f.ForTags("inv-x", "inv-y").TryAcquire(1)
	require.True(t, ok)
	_, ok = view.TryAcquire(1)
	require.False(t, ok, "one call of its total of one is in flight")
}
