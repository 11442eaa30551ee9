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
	for name, c := range map[string]struct {
		limit Limit // tokens are valid for 250 ms
		n     int
		holds time.Duration // the other's calls: as long as the tokens of a draw take, or longer
	}{
		"a few":                     {Limit{Max: 5, Strict: true}, 3, 600 * time.Millisecond},
		"more than one order takes": {Limit{Max: 100, Strict: true}, 100, 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tokens, _ := issued(t, c.limit)
				slots := flight(t, c.n)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				wg.Go(func() { // one slot is in use most of the time
					for ctx.Err() == nil {
						if p, err := slots.Acquire(ctx, 1); err == nil {
							time.Sleep(c.holds)
							p.Settle(1)
							time.Sleep(100 * time.Millisecond)
						}
					}
				})
				time.Sleep(time.Second)
				for range 5 {
					within, done := context.WithTimeout(t.Context(), 20*time.Second)
					p, err := All(tokens, slots).Acquire(within, c.n)
					require.NoError(t, err)
					p.Settle(c.n)
					done()
				}
				sound(t, tokens)
			})
		})
	}
}
