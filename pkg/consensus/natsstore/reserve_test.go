package natsstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// issuing returns a store and a pool in it that issues permits.
func issuing(t *testing.T) (*Store, driver.Reserve) {
	t.Helper()
	s := open(t, current(t), WithLongestLease(longest))
	req := request("p", "a", 1)
	req.Lease, req.Spacing, req.Strict = longest, wire.MinSpacing, true
	want := driver.Reserve{Pool: "p", Count: 1, Ahead: 10, Spacing: wire.MinSpacing, Lease: longest}
	require.Eventually(t, func() bool {
		ans := mustSync(t, s, req)
		req = follow(req, ans)
		res, err := s.Reserve(t.Context(), want)
		return err == nil && res.Count == 1
	}, patience, longest/40)
	return s, want
}

// TestReserveOnWhatWasReadBack: a Store that is alone writes upon what it has seen, and
// one that is not notices, and loses nothing by it.
func TestReserveOnWhatWasReadBack(t *testing.T) {
	s, want := issuing(t)
	other, err := New(s.nc, WithBucket(s.opts.bucket), WithLongestLease(longest), WithLogger(silent))
	require.NoError(t, err)
	tries := 0
	s.tried = func(int) { tries++ }
	last := int64(0)
	reserve := func(s *Store) {
		res, err := s.Reserve(t.Context(), want)
		require.NoError(t, err)
		require.Equal(t, 1, res.Count)
		at := res.Time*1000 + int64(res.Wait)
		require.GreaterOrEqual(t, at-last, int64(wire.MinSpacing))
		last = at
	}
	reserve(s)
	tries = 0
	before := s.nc.Stats().OutMsgs
	reserve(s)
	require.Equal(t, 1, tries)
	require.Equal(t, uint64(3), s.nc.Stats().OutMsgs-before, "a write, and two questions at once")
	reserve(other)
	tries = 0
	reserve(s)
	require.Equal(t, 2, tries)
}

// TestReserveUnderAnotherLeader: what a leader has granted that leads no more is lost.
func TestReserveUnderAnotherLeader(t *testing.T) {
	s, want := issuing(t)
	l, subject := line{s, s.nc}, s.prefix+keyOf(want.Pool)
	seen, err := l.look(t.Context(), subject)
	require.NoError(t, err)
	rec, at, err := s.moment(seen, subject)
	require.NoError(t, err)
	_, _, err = l.readBack(t.Context(), subject, &want, at.Identity+" another", rec.Revision)
	require.ErrorIs(t, err, errLeaderChanged)
	_, _, err = l.readBack(t.Context(), subject, &want, at.Identity, rec.Revision)
	require.NoError(t, err)
}
