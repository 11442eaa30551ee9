package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// A member is a processor as the store knows it: by the requests that it sends.
type member struct {
	store driver.Store
	pool  string
	req   driver.Request
}

func join(store driver.Store, pool, id, note string, share driver.Share, poolSize int) *member {
	return &member{store, pool, driver.Request{
		Pool: pool, ID: id, Incarnation: "1", Nonce: 1, Lease: driver.DefaultLease,
		Report: driver.Report{Wanted: share, Demand: share, PoolSize: poolSize, Note: note},
	}}
}

func (m *member) sync(t *testing.T, docs ...driver.DocumentReport) {
	t.Helper()
	m.req.Seq++
	m.req.Documents = docs
	ans, err := m.store.Sync(t.Context(), m.req)
	require.NoError(t, err)
	require.Equal(t, driver.Granted, ans.Status)
	m.req.LastSeq, m.req.LastNonce, m.req.LastTime, m.req.Revision = ans.Seq, ans.Nonce, ans.Time, ans.Revision
	m.req.InUse = ans.Share
}

// show runs the command in virtual time, on the pool "orders/pipeline/enrich".
func show(t *testing.T, fill func(store driver.Store, pool string), args ...string) string {
	t.Helper()
	var out string
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(store, "orders/pipeline/enrich")
		var err error
		out, err = newTerminal(store, "NUMATHROTTLE_POOL=orders/pipeline/enrich").run(t, args...)
		require.NoError(t, err)
	})
	return out
}

// busy is a pool with an override, a ramp, a document that no release knows, and a
// processor that has not been heard for a while.
func busy(t *testing.T) func(store driver.Store, pool string) {
	t.Helper()
	return func(store driver.Store, pool string) {
		a := join(store, pool, "enrich-0-abcde", "1 0 600 60000000 0 0 w:12 u:250 why:limit", driver.Whole/2, 3)
		b := join(store, pool, "enrich-1-fghij", "1 1 900 60000000 0 0 u:83 f:lost_row.9000", driver.Whole/4, 3)
		c := join(store, pool, "enrich-2\x1b[2J", "2 of a later version", driver.Whole/5, 2)
		for _, m := range []*member{a, b, c} {
			m.sync(t)
		}
		a.sync(t,
			driver.DocumentReport{Name: "limit", Version: 1 << 16, Body: []byte(`{"max":300,"per":"1m0s"}`)},
			driver.DocumentReport{Name: "ramp", Version: 1 << 16, Body: []byte("1 7 2000000 2000000 3000000 3000000 3000000 0 0 0 10 20 1000000 60000000")},
			driver.DocumentReport{Name: "other", Version: 5, Body: []byte("x")},
			driver.DocumentReport{Name: "pause", Version: 1 << 16, Body: []byte(`{"pauses":[{"tag":"gpt-4","left_us":600000000,` +
				`"until":"2000-01-01T00:10:00Z","reason":"maintenance","by":"ann@desk"},` +
				`{"tag":"over","left_us":1000000,"until":"1999-12-31T00:00:00Z"}]}`)},
		)
		time.Sleep(1250 * time.Millisecond)
		b.sync(t)
		a.sync(t)
	}
}

func TestStatusTable(t *testing.T) {
	out := show(t, busy(t), "status")
	requireGolden(t, "status.golden", out)
	// The same stands in the documentation.
	const file = "../../docs/cli.md"
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := config.ReplaceTable(string(page), "status", "```console\n$ numathrottle status --pool orders/pipeline/enrich\n"+out+"```\n")
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run: go test ./internal/cli -run TestStatusTable -update")
}

func TestStatusJSON(t *testing.T) {
	out := show(t, busy(t), "status", "--json")
	requireGolden(t, "status-json.golden", out)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, 1, strings.Count(out, "\n"), "a line for each pool")
}

// A pool of processors that tell no limit of tokens, such as one of calls in flight, and one
// that all have left.
func TestStatusOfSeveralPools(t *testing.T) {
	out := show(t, func(store driver.Store, pool string) {
		join(store, pool+"/in-flight", "a", "1 n:30 w:2 u:1000 why:in_flight", driver.Whole, 1).sync(t)
		join(store, pool+"/silent", "a", "", driver.Whole, 1).sync(t)
		gone := join(store, pool+"/gone", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
		gone.sync(t)
		require.NoError(t, store.Leave(t.Context(), driver.Leave{Pool: gone.pool, ID: "a", Incarnation: "1", Seq: 2, LastSeq: 1, LastNonce: 1}))
	}, "status", "orders/pipeline/enrich/in-flight", "orders/pipeline/enrich/silent", "orders/pipeline/enrich/gone")
	requireGolden(t, "status-pools.golden", out)
}

// One pool that cannot be shown does not hide the others.
func TestStatusShowsWhatItCan(t *testing.T) {
	store := memstore.New()
	join(store, "good", "a", "", driver.Whole, 1).sync(t)
	out, err := newTerminal(store).run(t, "status", "missing", "good")
	require.ErrorIs(t, err, driver.ErrNoPool)
	require.ErrorContains(t, err, "the store has good")
	require.Equal(t, ExitNotFound, ExitCode(err))
	require.Contains(t, out, "good")
}

// A watch goes on until it is interrupted, also through an outage, and tells when nobody syncs.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: memstore.New()}
		m := join(store.Store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1)
		m.sync(t)
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tm.Run(ctx, []string{"status", "--watch", "--every=1s"}) }()
		time.Sleep(500 * time.Millisecond)
		require.Contains(t, tm.out.String(), "600 per 1m")
		require.NotContains(t, tm.out.String(), "still")
		time.Sleep(3 * time.Second)
		require.Contains(t, tm.out.String(), "still  nothing has changed for 3s: nobody syncs")

		tm.out.Reset()
		m.req.Demand = 0
		m.sync(t)
		store.down.Store(true)
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, strings.Count(tm.errOut.String(), "store is down"))
		require.Empty(t, tm.out.String())
		store.down.Store(false)
		time.Sleep(time.Second)
		require.Contains(t, tm.out.String(), "600 per 1m")
		require.NotContains(t, tm.out.String(), "still", "the processor has synced meanwhile")
		interrupt()
		require.NoError(t, <-ended)
	})
}

// An outage is a store that can be down.
type outage struct {
	driver.Store

	down atomic.Bool
}

func (s *outage) Load(ctx context.Context, pool string) ([]driver.Document, []driver.RosterRow, error) {
	if s.down.Load() {
		return nil, nil, errors.New("store is down")
	}
	return s.Store.Load(ctx, pool)
}

// On a terminal a watch draws in the place of what was there, below a clock.
func TestWatchRedraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
		for terminal, want := range map[bool]int{true: 3, false: 0} {
			tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
			tm.terminal = terminal
			ctx, interrupt := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			require.NoError(t, tm.Run(ctx, []string{"status", "--watch", "--every=1s"}))
			interrupt()
			out := tm.out.String()
			require.Equal(t, want, strings.Count(out, clearScreen+"2000-01-01T00:00:0"))
			require.Equal(t, want, strings.Count(out, "\x1b[2J"))
			require.Equal(t, 3, strings.Count(out, ", every 1s\n\n"))
		}
		tm := newTerminal(store, "NUMATHROTTLE_POOL=p")
		tm.terminal = true
		out, err := tm.run(t, "status")
		require.NoError(t, err)
		require.NotContains(t, out, "every")
		require.NotContains(t, out, "\x1b")
	})
}
