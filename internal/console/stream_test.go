package console

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestPoolsAtAGlance(t *testing.T) {
	store := newCounted()
	join(t, store, "a", "x", "1 0 600 60000000 0 0 w:3 u:500", driver.Whole/2)
	join(t, store, "a", "y", "1 0 900 60000000 0 0", driver.Whole/2)
	join(t, store, "calls", "x", "1 n:30 w:2 u:1000 why:in_flight", driver.Whole)
	require.NoError(t, protocol.SavePause(t.Context(), store, "a", throttle.Paused{Reason: "r"}))
	_, c := serve(t, store, "")
	var got poll
	follow(t, c, "/api/pools", func(g poll) bool { got = g; return true })
	require.Empty(t, got.Failure)
	require.Equal(t, []summary{
		{
			Pool: "a", Known: true, Limit: "600 per 1m", Use: 0.5, Waiting: 3, Processors: 2, Paused: true, Disagree: true,
			Why: "paused (r); 3 callers wait: numathrottle resume --pool a", Level: why.Broken,
		},
		{
			Pool: "calls", Known: true, Limit: "30 calls in flight", Use: 1, Waiting: 2, Processors: 1,
			Why: "all 30 calls in flight are taken; 2 callers wait", Level: why.Held,
		},
	}, got.Pools)
	store.away.Store(true)
	follow(t, c, "/api/pools", func(g poll) bool { return !g.Pools[0].Known })
}

// What an operator should look at comes first, whatever its name.
func TestPoolsAreSortedByState(t *testing.T) {
	list := []summary{
		{Pool: "a-nobody", Level: why.Nobody},
		{Pool: "b-usual", Level: why.Usual, Waiting: 0},
		{Pool: "c-held", Level: why.Held, Waiting: 2},
		{Pool: "d-held", Level: why.Held, Waiting: 14},
		{Pool: "e-unknown"},
		{Pool: "f-broken", Level: why.Broken},
		{Pool: "a-usual", Level: why.Usual},
	}
	sortByState(list)
	var names []string
	for i := range list {
		names = append(names, list[i].Pool)
	}
	require.Equal(t, []string{"f-broken", "d-held", "c-held", "a-usual", "b-usual", "a-nobody", "e-unknown"}, names)
}

// A pool whose pods have died without a word is one that nobody is in, whatever they told last.
func TestAPoolWhosePodsHaveDied(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", "1 0 400 1000000 0 0 w:14 u:996 why:limit h:14", driver.Whole)
	_, c := serve(t, store, "")
	follow(t, c, "/api/pools", func(g poll) bool { return g.Pools[0].Level == why.Held })
	store.age.Store(int64(time.Minute))
	var got summary
	follow(t, c, "/api/pools", func(g poll) bool { got = g.Pools[0]; return got.Level == why.Nobody })
	require.Equal(t, "no pod has asked the store for 60 s: they have ended, or cannot reach it", got.Why)
}

// The page says of a pool, and of a store that is away, what the command says.
func TestThePageSaysWhy(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", "1 0 400 1000000 0 0 w:12 u:400 why:quota tag:acme h:12.3200..60000", driver.Whole)
	_, c := serve(t, store, "")
	var got update
	follow(t, c, "/api/pool?name=p", func(u update) bool { got = u; return u.Pool != nil })
	require.Equal(t, "acme is held at its rate cap of 60/s; 12 callers wait, the longest for 3.2 s", got.Why)
	require.Equal(t, why.Held, got.Level)
	require.Equal(t, []any{400, 1.0}, []any{got.Pool.Max, got.Pool.Per}, "what the form of the limit begins with")
	store.away.Store(true)
	follow(t, c, "/api/pool?name=p", func(u update) bool { got = u; return u.Failure != "" })
	require.Regexp(t, "^the store cannot be reached: ", got.Why)
	require.Equal(t, why.Broken, got.Level)
	follow(t, c, "/api/pool?name=q", func(u update) bool { got = u; return u.Missing || u.Failure != "" })
}

// plain is a store that cannot list pools.
type plain struct{ driver.Store }

func TestAStoreThatCannotList(t *testing.T) {
	_, c := serve(t, plain{newCounted()}, "")
	follow(t, c, "/api/pools", func(g poll) bool { return g.Failure != "" })
}

// One page sees what happens to a pool, and another one that comes later sees what has happened.
func TestPoolAsItMoves(t *testing.T) {
	store := newCounted()
	a := join(t, store, "p", "a", "1 0 600 60000000 0 0 w:3 u:500 why:limit", driver.Whole/2)
	k, c := serve(t, store, "")
	var last *snapshot
	var seen []string
	samples := 0
	until := func(want string, act func()) {
		t.Helper()
		follow(t, c, "/api/pool?name=p", func(u update) bool {
			if last, samples = u.Pool, samples+len(u.Samples); last != nil && act != nil {
				act()
				act = nil
			}
			for _, e := range u.Events {
				if strings.HasSuffix(e.Text, want) {
					seen = append(seen, e.Kind)
					return true
				}
			}
			return want == "" && last != nil
		})
	}
	until("", nil)
	require.InDelta(t, 10, last.PerSecond, 1e-9)
	require.InDelta(t, 0.5, last.Use, 1e-9)
	require.Equal(t, processor{
		ID: "a", Share: 0.5, Demand: 0.5, Use: 0.5, Waiting: 3, Throttled: "limit", Configured: "600 per 1m", Left: 15000,
	}, last.Processors[0])
	var b *member
	until("b joined", func() { b = join(t, store, "p", "b", "1 0 600 60000000 0 0", driver.Whole/4) })
	until("b left", func() { b.leave(t) })
	until("paused: everything by ann: night", func() {
		require.NoError(t, protocol.SavePause(t.Context(), store, "p", throttle.Paused{Reason: "night", By: "ann"}))
	})
	require.Equal(t, []order{{What: "everything", By: "ann", Reason: "night"}}, last.Pauses)
	until("no longer paused: everything", func() { require.NoError(t, protocol.ClearPause(t.Context(), store, "p", "")) })
	until("override: 300 per 1m by ann: r", func() {
		require.NoError(t, protocol.SaveOverride(t.Context(), store, "p", protocol.Override{Max: 300, Reason: "r", By: "ann"}))
	})
	require.InDelta(t, 1, last.Use, 1e-9, "half of what it is configured with is all of that")
	until("the override is over; the limit is 600 per 1m", func() { require.NoError(t, protocol.ClearOverride(t.Context(), store, "p")) })
	until("frozen: no share grows: the store has lost what it promised to a pod", func() { a.req.Note += " f:lost_row.9000"; a.sync(t) })
	until("no longer frozen", func() { a.req.Note = "1 0 600 60000000 0 0"; a.sync(t) })
	until("settings disagree: 600 per 1m (a) counts; 900 per 1m (b2)", func() { join(t, store, "p", "b2", "1 0 900 60000000 0 0", 0) })
	until("settings disagree: 600 per 1m, no quotas (a) counts; 600 per 1m, quotas abcd0012 (c) counts; "+
		"900 per 1m, no quotas (b2); each goes by its own quotas",
		func() {
			c := join(t, store, "p", "c", "1 0 600 60000000 0 0", 0)
			c.req.Busy = "\x02\x00\x00\x00\x00\x00\xab\xcd\x00\x12\x00\x00\x00"
			c.sync(t)
		})
	until("no such day", func() { store.away.Store(true) })
	until("the store answers again", func() { store.away.Store(false) })
	require.Len(t, seen, 12)
	require.Greater(t, samples, 10)

	f, _, stop := k.hub.look(k.ctx, "p")
	defer stop()
	var at position
	all := f.news(&at, time.Now())
	require.GreaterOrEqual(t, len(all.Events), len(seen))
	require.Empty(t, f.news(&at, time.Now()).Events, "what was read is not news")
}

// Whoever looks at a pool, it is asked for by one.
func TestOnePollerForAll(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	h := &hub{store: store, every: time.Hour, feeds: map[string]*feed{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 20 {
		_, _, stop := h.look(ctx, "p")
		t.Cleanup(stop)
	}
	require.Eventually(t, func() bool { return store.asked("p") > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, store.asked("p"))
	require.Eventually(t, func() bool { return h.recent("p") != nil }, 10*time.Second, time.Millisecond)
	(&lister{hub: h}).pools(ctx)
	require.Equal(t, 1, store.asked("p"), "nor does the list ask again")
}

// What is kept is bounded, and who has read some of it misses nothing that is kept.
func TestThePastIsBounded(t *testing.T) {
	f := &feed{}
	var reader position
	read := 0
	for i := range 3 * mostSamples {
		o := protocol.Overview{Pool: "p", Slots: i + 1}
		f.take(&o, nil, nil, time.UnixMilli(int64(i)), true)
		if i%100 == 0 {
			read += len(f.news(&reader, time.Now()).Samples)
		}
	}
	read += len(f.news(&reader, time.Now()).Samples)
	require.Equal(t, 3*mostSamples, read)
	var late position
	all := f.news(&late, time.Now())
	require.Len(t, all.Samples, mostSamples)
	require.Len(t, all.Events, mostEvents)
	require.InDelta(t, float64(3*mostSamples), all.Samples[mostSamples-1].Limit, 0)
}

func TestStreamsAreBounded(t *testing.T) {
	k, c := serve(t, newCounted(), "")
	for range mostStreams {
		k.streams <- struct{}{}
	}
	resp, text := c.get(t, "/api/pool?name=p")
	require.Equal(t, 503, resp.StatusCode, text)
	<-k.streams
	follow(t, c, "/api/pool?name=p", func(u update) bool { return u.Failure == "the store has no record of this pool" })
	require.Eventually(t, func() bool { return len(k.streams) == mostStreams-1 }, 10*time.Second, time.Millisecond, "its place is free again")
	for _, name := range []string{"", fmt.Sprintf("%0300d", 1)} {
		resp, _ = c.get(t, "/api/pool?name="+name)
		require.Equal(t, 400, resp.StatusCode)
	}
}

// Who looks is told no more when the session has ended.
func TestAStreamEndsWithItsSession(t *testing.T) {
	store := newCounted()
	join(t, store, "p", "a", "1 0 600 60000000 0 0", driver.Whole)
	k, c := serve(t, store, token)
	c.login(t)
	for _, path := range []string{"/api/pool?name=p", "/api/pools"} {
		resp := c.open(t, path)
		var err error
		k.sessions.mu.Lock()
		was := k.sessions.open
		k.sessions.open = map[[32]byte]session{}
		k.sessions.mu.Unlock()
		buf := make([]byte, 1<<16)
		for err == nil {
			_, err = resp.Body.Read(buf)
		}
		require.ErrorIs(t, err, io.EOF, "it has ended, and was not given up")
		require.NoError(t, resp.Body.Close())
		k.sessions.mu.Lock()
		k.sessions.open = was
		k.sessions.mu.Unlock()
	}
}
