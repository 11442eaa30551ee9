package why_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// cappedPool runs five pods whose callers draw for tags, three callers a tag and pod, and returns the state of the pool at moments.
func cappedPool(t *testing.T, q throttle.Quotas, tags []string, look func(s why.State)) {
	t.Helper()
	s := memstore.New()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 5 {
		m, err := consensus.Join(ctx, s, "p", consensus.WithID(fmt.Sprint("pod-", i)), consensus.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		th, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(m), throttle.WithQuotas(q), throttle.OnClose(m.Leave))
		require.NoError(t, err)
		defer func() { _ = th.Close() }() //nolint:revive // there are five
		for _, tag := range tags {
			for range 3 {
				go func() {
					for ctx.Err() == nil {
						_, _ = th.ForTag(tag).Acquire(ctx, 1)
					}
				}()
			}
		}
	}
	time.Sleep(20 * time.Second)
	for range 40 {
		time.Sleep(260 * time.Millisecond)
		o, err := protocol.LoadOverview(t.Context(), s, "p")
		require.NoError(t, err)
		look(why.Pool(&o, time.Now()))
	}
	cancel()
}

// Tokens of tags come in batches with syncs, and their callers then wait for the limit for a moment. That does not make it the cause. Each
// caller counts once, wherever it stands.
func TestSeveralTagsAtTheirRateCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Tags: map[string]throttle.Quota{}}
		tags := []string{"a", "b", "c", "d", "e"}
		for i, tag := range tags {
			q.Tags[tag] = throttle.Quota{Total: 6 + i}
		}
		cappedPool(t, q, tags, func(s why.State) {
			a := why.Explain(s)
			require.Equal(t, "quota", a.Cause)
			require.Regexp(t, "^5 tags, such as [a-e], are held at their rate caps; (6[0-9]|7[0-5]) callers wait, the longest for [0-9.]+ s$", a.Sentence)
		})
	})
}

// Operators may not see the names of a pattern, but the pattern.
func TestTagsOfAPatternAtTheirRateCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := throttle.Quotas{Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 6}}}}
		cappedPool(t, q, []string{"free/1"}, func(s why.State) {
			require.Regexp(t, `^a tag of free/\* is held at its rate cap of 6/s; 1[0-5] callers wait, the longest for `, why.Explain(s).Sentence)
		})
		cappedPool(t, q, []string{"free/1", "free/2"}, func(s why.State) {
			require.Regexp(t, `^2 tags, such as a tag of free/\*, are held at their rate caps; (2[0-9]|30) callers wait`, why.Explain(s).Sentence)
		})
	})
}
