package throttle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

// inBubble runs a test in virtual time, whose calls end with it.
func inBubble(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer func() {
			cancel()
			time.Sleep(time.Minute) // for the calls under way
		}()
		test(t, ctx)
	})
}

// Draws, reports, plans and grants of many goroutines at once.
func TestTagsReportAtOnce(t *testing.T) {
	th, s := scripted(t, Limit{Max: 1_000_000, Adaptive: true}, 1, WithQuotas(tagsOf(map[string]Quota{"a": {}, "b": {Reserved: 10}, "c": {}})))
	names := [][]string{{"a"}, {"b"}, {"a", "c"}, {""}}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 2000 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				if p, err := th.ForTags(names[(i+k)%len(names)]...).Acquire(ctx, 1); err == nil {
					p.Report(Outcome(k % 7 % 3 * (i % 2)))
				}
				cancel()
				switch k % 100 {
				case 0:
					_, _ = th.Status(), s.h.ReportTags(time.Second)
				case 50:
					th.tags.plan.turn()
				case 75:
					s.h.GrantTags([]sharing.TagGrant{{Tag: "a", Rate: 100}, {Tag: "b", Rate: 10, Reserved: 5}})
				}
			}
		})
	}
	wg.Wait()
	require.NotZero(t, th.Status().Backoff.Refused)
	for _, st := range th.Status().Tags {
		require.Zero(t, st.Waiting)
	}
	sound(t, th)
}
