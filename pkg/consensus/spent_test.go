package consensus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// Keys are told by the names that are given, and those of no name come last.
func TestLoadSpent(t *testing.T) {
	now := time.Date(2026, 3, 4, 10, 30, 0, 0, time.UTC)
	day, hour := now.Truncate(24*time.Hour), now.Truncate(time.Hour)
	store := memstore.New(memstore.WithClock(func() time.Time { return now }))
	daily := driver.BudgetDraw{Amount: 1000, Start: day.UnixMicro(), End: day.Add(24 * time.Hour).UnixMicro(), Seen: 70}
	hourly := driver.BudgetDraw{Amount: 100, Start: hour.UnixMicro(), End: hour.Add(time.Hour).UnixMicro()}
	draw := func(key uint64, ask int64, budgets ...driver.BudgetDraw) driver.Draw {
		return driver.Draw{Key: key, Ask: ask, Budgets: budgets}
	}
	_, err := store.Sync(t.Context(), driver.Request{
		Pool: "p", ID: "a", Incarnation: "1", Seq: 1, Nonce: 1, Lease: driver.DefaultLease, Report: driver.Report{PoolSize: 1},
		Draws: []driver.Draw{
			draw(1<<64-1, 1, daily), draw(tagname.OtherKey, 2, hourly), draw(tagname.Key("zeta"), 3, hourly),
			draw(5, 4, hourly), draw(tagname.Key("delta"), 6, hourly),
			draw(tagname.Key("acme"), 5, hourly, daily),
			{Key: tagname.Key("total"), Total: 10, Per: time.Second, Burst: 1, Ask: 1},
		},
	})
	require.NoError(t, err)

	inDay := func(tokens int64) protocol.SpentWindow {
		return protocol.SpentWindow{Start: day, End: day.Add(24 * time.Hour), Tokens: tokens}
	}
	inHour := func(tokens int64) []protocol.SpentWindow {
		return []protocol.SpentWindow{{Start: hour, End: hour.Add(time.Hour), Tokens: tokens}}
	}
	spent, err := protocol.LoadSpent(t.Context(), store, "p", []string{"zeta", "delta", "unused", "acme", "total", ""})
	require.NoError(t, err)
	require.Equal(t, []protocol.TagSpent{
		{Tag: "acme", Key: tagname.Key("acme"), Windows: append([]protocol.SpentWindow{inDay(75)}, inHour(5)...)},
		{Tag: "delta", Key: tagname.Key("delta"), Windows: inHour(6)}, // whose key is above the next one's
		{Tag: "zeta", Key: tagname.Key("zeta"), Windows: inHour(3)},
		{Key: tagname.OtherKey, Windows: inHour(2)},
		{Key: 5, Unnamed: true, Windows: inHour(4)},
		{Key: 1<<64 - 1, Unnamed: true, Windows: []protocol.SpentWindow{inDay(71)}},
	}, spent)
	spent, err = protocol.LoadSpent(t.Context(), store, "p", nil)
	require.NoError(t, err)
	require.Len(t, spent, 6)
	require.Equal(t, protocol.TagSpent{Key: tagname.OtherKey, Windows: inHour(2)}, spent[0], "this one is always known")
}

func TestLoadSpentFaults(t *testing.T) {
	store := memstore.New()
	_, err := protocol.LoadSpent(t.Context(), store, "p", nil)
	require.ErrorIs(t, err, driver.ErrNoPool)
	require.ErrorContains(t, err, `pool "p"`)
	var bad *driver.RequestError
	_, err = protocol.LoadSpent(t.Context(), store, "", nil)
	require.ErrorAs(t, err, &bad)
	_, err = protocol.LoadSpent(t.Context(), struct{ driver.Store }{store}, "p", nil)
	require.ErrorIs(t, err, driver.ErrNoTagBuckets)
}
