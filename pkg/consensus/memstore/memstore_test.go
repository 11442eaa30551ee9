package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/storetest"
)

func TestConformance(t *testing.T) {
	store := memstore.New()
	storetest.Run(t, storetest.Harness{
		Permits: 100_000,
		New:     func(testing.TB) driver.Store { return store },
		Memory:  true,
		Longest: 400 * time.Millisecond,
	})
}

// request is the first request of a processor that wants the whole limit.
func request(id string) driver.Request {
	return driver.Request{
		Pool: "pool", ID: id, Incarnation: "1", Seq: 1, Nonce: 1, Lease: driver.DefaultLease,
		Report: driver.Report{Wanted: driver.Whole, Demand: driver.Whole},
	}
}

func TestTimeIsThatOfTheClock(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	store := memstore.New(memstore.WithClock(func() time.Time { return now }))
	_, err := store.Sync(t.Context(), request("silent"))
	require.NoError(t, err)

	// Another one looks every second until the claim of the first is removed.
	start := now
	waiting := request("waiting")
	for {
		now = now.Add(time.Second)
		ans, err := store.Sync(t.Context(), waiting)
		require.NoError(t, err)
		require.Equal(t, now.UnixMicro(), ans.Time)
		if ans.Share > 0 {
			break
		}
		waiting.LastSeq, waiting.LastNonce, waiting.LastTime = ans.Seq, ans.Nonce, ans.Time
		waiting.Seq++
	}
	require.Equal(t, wire.Removal(driver.DefaultLease)+time.Second, now.Sub(start))
}

func TestStoresKnowNothingOfEachOther(t *testing.T) {
	for range 2 {
		ans, err := memstore.New().Sync(t.Context(), request("a"))
		require.NoError(t, err)
		require.Equal(t, driver.Whole, ans.Share)
	}
}

// Two processors of one pool: the second gets what the first leaves.
func ExampleNew() {
	store := memstore.New()
	for _, id := range []string{"first", "second"} {
		ans, err := store.Sync(context.Background(), driver.Request{
			Pool: "llm", ID: id, Incarnation: "1", Seq: 1, Lease: driver.DefaultLease,
			Report: driver.Report{Wanted: driver.Whole * 3 / 4},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id, ans.Share)
	}
	// Output:
	// first 75%
	// second 25%
}
