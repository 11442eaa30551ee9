package throttle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A processor reserves no more slots than its part, and asks the store only when it may have more.
func TestReservationIsOfOnesPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Strict: true, MaxReserved: 3})
		c.mint.live = 2
		for range 10 {
			begin(th, 1, 0)
		}
		most := 0
		for range 900 {
			time.Sleep(10 * time.Millisecond)
			most = max(most, th.Status().Issued.Reserved)
		}
		require.Equal(t, 2, most)
		require.Len(t, c.mint.issued(), 10)
		require.LessOrEqual(t, c.mint.asked(), 22)
		require.NoError(t, th.Close())
	})
}

// A reserved slot is the next one, also when others have those after it.
func TestReservationComesBeforeOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Strict: true, MaxReserved: 3})
		c.mint.live = 2
		for range 3 {
			begin(th, 1, 0)
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, 2, th.Status().Issued.Reserved)
		c.mint.set(func(m *mint) { m.next = m.next.Add(2 * time.Second) })
		begin(th, 1, 0)
		time.Sleep(1300 * time.Millisecond)
		st := th.Status().Issued
		require.Equal(t, 1, st.Reserved)
		require.Equal(t, 697*time.Millisecond, st.Next)
		require.NoError(t, th.Close())
	})
}

// A look for a token finds one that is at hand, and asks for no other.
func TestReservationIsNotAskedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, c := issued(t, Limit{Max: 1, Strict: true})
		c.up = 10 * time.Millisecond
		deny(t, th, 1)
		time.Sleep(100 * time.Millisecond)
		require.True(t, th.looksAgain(1, th.gate.Now()))
		take(t, th, 1)
		c.h.Lease(limit.Lease{Issuing: true}) // the limiter looks at what is lacking
		time.Sleep(10 * time.Second)
		require.Equal(t, 1, c.mint.asked())
	})
}
