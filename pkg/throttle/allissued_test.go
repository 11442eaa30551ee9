package throttle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Several tokens that are issued one by one come at different moments, and are void soon; slots in flight come
// back at others. A draw that needs several of both has them at one moment all the same, whoever wants slots too.
func TestAllOfIssuedTokensAndSlotsDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, _ := issued(t, Limit{Max: 5, Strict: true}) // valid for 250 ms
		slots := flight(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() { // one slot is in use most of the time
			for ctx.Err() == nil {
				if p, err := slots.Acquire(ctx, 1); err == nil {
					time.Sleep(600 * time.Millisecond)
					p.Settle(1)
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
		time.Sleep(time.Second)
		for range 5 {
			within, done := context.WithTimeout(t.Context(), 10*time.Second)
			p, err := All(tokens, slots).Acquire(within, 3)
			require.NoError(t, err)
			p.Settle(3)
			done()
		}
		sound(t, tokens)
	})
}
