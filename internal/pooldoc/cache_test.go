package pooldoc

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// A cache against a record: what one of them loses the other gives back.
func TestCache(t *testing.T) {
	var c Cache
	doc := func(name string, count uint64) driver.Document {
		return driver.Document{Name: name, Version: driver.Version(count << 16), Body: fmt.Append(nil, name, count)}
	}
	require.Empty(t, c.Reports())
	require.Equal(t, []string{"limit", "zeal"}, c.Take(nil, []driver.Document{doc("limit", 3), doc("zeal", 1)}))
	require.Equal(t, []driver.DocumentReport{{Name: "limit", Version: 3 << 16}, {Name: "zeal", Version: 1 << 16}}, c.Reports())
	require.Empty(t, c.Take(c.Reports(), nil), "all is well")
	require.False(t, c.Lost())

	// The store has an older one, and not the other.
	require.Empty(t, c.Take(c.Reports(), []driver.Document{doc("limit", 2), {Name: "zeal"}}))
	require.True(t, c.Lost())
	back := c.Reports()
	require.Equal(t, []driver.DocumentReport{
		{Name: "limit", Version: 3 << 16, Base: 3 << 16, Body: []byte("limit3")}, {Name: "zeal", Version: 1 << 16, Base: 1 << 16, Body: []byte("zeal1")},
	}, back)
	c.Take(back, []driver.Document{{Name: "zeal"}})
	require.Equal(t, []driver.DocumentReport{{Name: "limit", Version: 3 << 16}, back[1]}, c.Reports(), "one was taken")
	c.Take(c.Reports(), nil)
	require.False(t, c.Lost())

	// A change that was taken, and one for which somebody else was first.
	change := []driver.DocumentReport{{Name: "limit", Version: 4<<16 | 1, Base: 3 << 16, Body: []byte("mine")}}
	require.Equal(t, []string{"limit"}, c.Take(change, nil))
	require.Equal(t, "mine", string(c.Find("limit").Body))
	change = []driver.DocumentReport{{Name: "limit", Version: 5<<16 | 1, Base: 4<<16 | 1, Body: []byte("mine")}}
	require.Equal(t, []string{"limit"}, c.Take(change, []driver.Document{doc("limit", 5)}))
	require.Equal(t, "limit5", string(c.Find("limit").Body))

	// More than a pool can have are not kept.
	for i := range wire.MaxDocuments + 3 {
		c.Take(nil, []driver.Document{doc(fmt.Sprint("more", i), 1)})
	}
	require.Len(t, c.Reports(), wire.MaxDocuments)
	req := driver.Request{
		Pool: "pool", ID: "a", Incarnation: "1", Seq: 1, Lease: driver.DefaultLease, Documents: c.Reports(),
	}
	require.NoError(t, req.Validate())
}

// A copy of a cache keeps what it had.
func TestCacheIsAValue(t *testing.T) {
	var c Cache
	c.Put(driver.Document{Name: "limit", Version: 1, Body: []byte("old")})
	before := c
	c.Put(driver.Document{Name: "limit", Version: 2, Body: []byte("new")})
	c.Put(driver.Document{Name: "a", Version: 1, Body: []byte("a")})
	require.Equal(t, "old", string(before.Find("limit").Body))
	require.Zero(t, before.Find("a").Version)
	require.Equal(t, "new", string(c.Find("limit").Body))
}

// A full list takes no other document, but a newer form of one that is in it.
func TestReport(t *testing.T) {
	var list []driver.DocumentReport
	for i := range wire.MaxDocuments {
		list = Report(list, driver.DocumentReport{Name: fmt.Sprint("d", i)})
	}
	list = Report(list, driver.DocumentReport{Name: "more"})
	list = Report(list, driver.DocumentReport{Name: "d3", Version: 7})
	require.Len(t, list, wire.MaxDocuments)
	require.Equal(t, driver.Version(7), list[3].Version)
}
