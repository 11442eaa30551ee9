package permits

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestBook(t *testing.T) {
	b := newBook(2, 2)
	now := time.Unix(1000, 0)
	var used []int
	enter := func(id string, lease time.Duration) {
		t.Helper()
		require.Empty(t, b.reserve("", true))
		b.add(&entry{id: id, permit: throttle.NewPermit(5, func(u int) { used = append(used, u) }), tokens: 5, until: now.Add(lease)})
	}
	enter("a", time.Second)
	enter("b", time.Minute)
	require.NotEmpty(t, b.reserve("", true), "as many as there may be")

	require.Nil(t, b.find("c", now))
	require.Equal(t, open, b.find("a", now).state)
	now = now.Add(time.Second)
	require.Equal(t, expired, b.find("a", now).state, "the lease is over though nobody has swept")
	require.Equal(t, []int{5}, used, "as drawn")
	require.Zero(t, b.sweep(now))

	require.Empty(t, b.reserve("", true))
	require.NotEmpty(t, b.reserve("", true), "what is waited for counts")
	b.release("")

	now = now.Add(time.Minute)
	require.Equal(t, 1, b.sweep(now))
	require.Equal(t, []int{5, 5}, used)
	require.Equal(t, expired, b.find("b", now).state)
	now = now.Add(remember)
	b.sweep(now)
	require.Empty(t, b.entries, "what ended long ago is forgotten")
	require.Empty(t, b.ended)
}

func TestTheBookIsBounded(t *testing.T) {
	b := newBook(3, 3)
	now := time.Unix(1000, 0)
	for i := range 100 {
		require.Empty(t, b.reserve("", true))
		b.add(&entry{id: strconv.Itoa(i), tokens: 1, until: now.Add(time.Second)})
		b.end(b.find(strconv.Itoa(i), now), settled, now)
	}
	require.Len(t, b.entries, 3)
	require.Nil(t, b.find("96", now))
	require.Equal(t, settled, b.find("97", now).state)
	require.Empty(t, b.reserve("", true))
	b.add(&entry{id: "x", tokens: 1, until: now.Add(time.Second)})
	require.Equal(t, 1, b.settleAll(now))
	require.Zero(t, b.settleAll(now))
}
