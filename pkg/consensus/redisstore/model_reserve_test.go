package redisstore

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// TestScriptsKnowWhenTheLastSlotIsVoid: when a pool that has issued slots issues none any more,
// no share grows before.
func TestScriptsKnowWhenTheLastSlotIsVoid(t *testing.T) {
	c := client(t, ClientOptions(testenv.Redis(t).Addr()))
	for spacing, lasts := range map[time.Duration]time.Duration{
		2 * time.Second: 250 * time.Millisecond, 20 * time.Second: 2 * time.Second, 40 * time.Second: 2500 * time.Millisecond,
	} {
		m := newModel(t, c, 0)
		require.NoError(t, c.Del(t.Context(), m.key).Err())
		m.at.Remembers = math.MaxInt64
		req := driver.Request{ID: "a", Incarnation: "1", Seq: 1, Lease: 10 * time.Second, Report: driver.Report{Wanted: driver.Whole}}
		strict := req
		strict.Spacing, strict.Strict = spacing, true
		m.sync(strict)
		for range 2 {
			m.reserve(driver.Reserve{Pool: m.pool, Count: 1, Ahead: 1, Spacing: spacing, Lease: req.Lease, Revision: m.record.Revision})
		}
		void := m.record.Permits.Last + int64(lasts)
		for m.record.Claims() == 0 {
			m.at.Now += 100_000
			req.Seq, req.LastSeq = req.Seq+1, req.Seq
			m.sync(req)
		}
		// Whoever is strict is believed for a removal time.
		require.Equal(t, max(void, 1000*m.record.Permits.StrictUntil), 1000*m.record.Clock, spacing)
	}
}

// spacing is mostly that of the model's limit: none at all, high or low.
func (m *model) spacing() time.Duration {
	if m.rnd.IntN(30) == 0 {
		return pick(m, 0, wire.MinSpacing, wire.MaxSpacing, 333_333_334)
	}
	of := []time.Duration{0, 100 * time.Millisecond, 333_333_334, time.Second, 400_000_001, 40 * time.Second, wire.MaxSpacing}
	return of[m.kind%len(of)]
}

// reservation returns mostly what a processor would send.
func (m *model) reservation() driver.Reserve {
	req := driver.Reserve{
		Pool: m.pool, Count: pick(m, 0, 1, 1, 1, 2, 7, 64), Spacing: m.spacing(), Ahead: pick(m, 0, 0, 1, 5, 100, 1000),
		Revision: m.record.Revision - min(m.record.Revision, pick[uint64](m, 0, 1, 5)), Lease: 10 * time.Second,
	}
	if req.Spacing == 0 {
		req.Spacing = pick(m, wire.MinSpacing, time.Millisecond, 1_234_567)
	}
	if m.rnd.IntN(60) == 0 {
		req.Revision += pick[uint64](m, 1, 100)
	}
	if n := len(m.reserved); n > 0 && m.rnd.IntN(3) == 0 {
		req.Return = m.reserved[max(0, n-pick(m, 1, 1, 1, 2, 5))].Last
		req.Unused = pick(m, 0, 0, 1, 2, 7, 64)
	}
	return req
}

func (m *model) reserve(req driver.Reserve) {
	m.setEnvironment()
	require.NoError(m.t, req.Validate())
	before := m.record
	want, changed := m.record.Reserve(&req, m.at)
	reply, err := scriptedReserve.Run(m.t.Context(), m.client, []string{m.key, "marker"}, reserveArgs(&req, m.at.Longest, "", 0)...).Result()
	require.NoError(m.t, err)
	got, err := parseReserve(reply, &req)
	require.NoError(m.t, err)
	require.Equal(m.t, want, got, "answer to %+v on %+v", req, before)
	require.Equal(m.t, sorted(m.record), m.stored(), "on record after %+v", req)
	if !changed {
		require.Equal(m.t, before, m.record)
	}
	if want.Last != 0 {
		m.reserved = append(m.reserved, want)
	}
	m.noteReserve(&req, &want, &before)
}

// noteReserve counts what a reservation came to, and requires what holds for every one.
func (m *model) noteReserve(req *driver.Reserve, res *driver.Reserved, before *driver.Record) {
	is := &m.record.Permits
	switch {
	case res.Count == 0 && req.Count > 0 && res.Issuing && res.Spacing > 0:
		m.seen["no slots"]++
	case res.Count > 0 && res.Count == req.Count:
		m.seen["slots"]++
	case res.Count > 0:
		m.seen["fewer slots"]++
	}
	if is.Hold > before.Permits.Hold {
		m.seen["held"]++
	}
	if req.Return != 0 && req.Return == int64(before.Permits.Serial) && max(req.Unused, 1) <= before.Permits.Count {
		m.seen["given back"]++
	}
	if res.Count == 0 {
		return
	}
	require.True(m.t, before.Permits.Issuing)
	if m.record.Claims() > 0 {
		m.seen["shares and slots"]++
		require.Greater(m.t, res.Spacing, req.Spacing)
	}
	first := res.Time*1000 + int64(res.Wait)
	if last := before.Permits.Last; last > 0 && req.Return == 0 {
		require.GreaterOrEqual(m.t, first-last, int64(res.Spacing))
	}
	require.Equal(m.t, first+int64(res.Count-1)*int64(res.Spacing), is.Last)
}
