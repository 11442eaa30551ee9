package opening

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// On an empty server, where the pool is frozen at first and the tokens of a low limit are issued one by one, each message waits
// for the freeze and MaxWait at most, and those that cannot have a place by then are denied early.
func TestMaxWaitOnAnEmptyServer(t *testing.T) {
	t.Parallel()
	const maxWait, calls = 4 * time.Second, 40
	const lease = 4 * time.Second
	for name, strict := range map[string]bool{"low": false, "strict": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Config{
				Limit: throttle.Limit{Max: 1, Per: 2500 * time.Millisecond, Strict: strict}, Store: testenv.NATS(t).URL(), Pool: "p", ID: "a",
				Lease: lease, Logger: quiet(),
			}
			began := time.Now()
			l := mustOpen(t, c)
			g := admission.Admitter{Limiter: l, MaxWait: maxWait}
			var granted, early atomic.Int64
			var all sync.WaitGroup
			for range calls {
				all.Go(func() {
					_, err := g.Admit(t.Context(), "", 1)
					var d *admission.Denied
					switch {
					case err == nil:
						granted.Add(1)
					case errors.As(err, &d) && time.Since(began) < wire.Removal(lease)-time.Second:
						early.Add(1)
					case errors.As(err, &d):
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			took := time.Since(began)
			require.Less(t, took, wire.Removal(lease)+maxWait+2*time.Second)
			require.GreaterOrEqual(t, took, wire.Removal(lease)-time.Second, "there was a freeze")
			require.GreaterOrEqual(t, granted.Load(), int64(1))
			require.LessOrEqual(t, granted.Load(), int64(3))
			require.GreaterOrEqual(t, early.Load(), int64(calls-4), "denied before the freeze was over")
		})
	}
}
