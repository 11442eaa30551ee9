package why

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A total that is lowered for a while refuses larger calls for as long, and not for good. The explanation names it, and how to end it.
func TestALoweredTotalIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		quotas := &throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {}}}
		n := startNode(t, store, "a", throttle.Limit{Max: 1000, Per: time.Second}, quotas)
		time.Sleep(20 * time.Second)
		change := protocol.QuotaOrder{Until: time.Now().Add(time.Minute), By: "ann"}
		require.NoError(t, protocol.SaveQuotaFor(t.Context(), store, "p", "acme", &throttle.Quota{Total: 5, Per: time.Minute}, change, false))
		time.Sleep(5 * time.Second)
		draw := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := n.th.ForTag("acme").Acquire(ctx, 40)
			return err
		}
		for range 10 {
			var e *throttle.Error
			require.ErrorAs(t, draw(), &e)
			require.Equal(t, throttle.ReasonQuota, e.Reason)
			require.LessOrEqual(t, e.RetryAfter, 8*time.Minute+2*time.Second)
			time.Sleep(time.Second)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = n.th.ForTag("acme").Acquire(ctx, 40) }()
		time.Sleep(3 * time.Second)
		require.Regexp(t, `^acme is held at its rate cap.*, a change by ann until .*numathrottle quota clear acme --pool p$`, n.says().Sentence)
		cancel()
		time.Sleep(time.Minute)
		require.NoError(t, draw())
	})
}
