package admission_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The pattern of a MonoVertex that reads one batch at a time is told once, with the
// settings; others are not.
func TestIdleBetweenBatchesIsToldOnce(t *testing.T) {
	batches := func(n, size int, idle time.Duration) func(context.Context, *admission.Admitter) {
		return func(ctx context.Context, g *admission.Admitter) {
			for range n {
				var batch sync.WaitGroup
				for range size {
					batch.Go(func() { _, _ = g.Admit(ctx, "", 1) })
				}
				batch.Wait()
				time.Sleep(idle) // virtual
			}
		}
	}
	for name, c := range map[string]struct {
		mono     bool
		do       func(ctx context.Context, g *admission.Admitter)
		reported int
	}{
		"a MonoVertex, a batch at a time":    {true, batches(40, 40, 400*time.Millisecond), 1},
		"too few":                            {true, batches(9, 40, 400*time.Millisecond), 0},
		"a pipeline":                         {false, batches(40, 40, 400*time.Millisecond), 0},
		"without idling":                     {true, batches(40, 40, 50*time.Millisecond), 0},
		"tokens are at hand":                 {true, batches(40, 2, 400*time.Millisecond), 0},
		"now and then there is work":         {true, batches(40, 40, 10*time.Second), 0},
		"batches so large that it is little": {true, batches(20, 500, 400*time.Millisecond), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.mono {
				t.Setenv("NUMAFLOW_MONO_VERTEX_NAME", "mv")
			}
			var out bytes.Buffer
			before := slog.Default()
			slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
			defer slog.SetDefault(before)
			synctest.Test(t, func(t *testing.T) {
				l, err := throttle.New(throttle.Limit{Max: 25})
				require.NoError(t, err)
				defer l.Close()
				c.do(t.Context(), &admission.Admitter{Limiter: l})
			})
			require.Equal(t, c.reported, bytes.Count(out.Bytes(), []byte("NUMAFLOW_READ_AHEAD")), out.String())
		})
	}
}
