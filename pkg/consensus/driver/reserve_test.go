package driver

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// issuing returns a record at t0 that issues permits of the given spacing, with rows
// that hold nothing unless they are given.
func issuing(spacing time.Duration, rows ...Row) *Record {
	r := standing(rows...)
	r.Permits = Permits{Issuing: true, Spacing: spacing, SpacingUntil: t0 + micros(time.Hour), StrictUntil: t0 + micros(time.Hour)}
	return r
}

// slot asks for slots of a spacing of 100 ms.
func slot(count, ahead int) Reserve {
	return Reserve{Pool: "pool", Count: count, Ahead: ahead, Spacing: 100 * time.Millisecond, Revision: 50, Lease: longest}
}

func TestReserve(t *testing.T) {
	const ms = time.Millisecond
	type ask struct {
		after time.Duration
		req   Reserve
		count int
		wait  time.Duration
		retry time.Duration
	}
	for name, asks := range map[string][]ask{
		"a slot that is due, then none for a spacing": {
			{0, slot(1, 0), 1, 0, 0},
			{0, slot(1, 0), 0, 0, 100 * ms},
			{99 * ms, slot(1, 0), 0, 0, 1 * ms},
			{100 * ms, slot(1, 0), 1, 0, 0},
		},
		"nothing is saved up": {
			{0, slot(1, 0), 1, 0, 0},
			{2000 * ms, slot(3, 0), 1, 0, 0},
			{2000 * ms, slot(1, 0), 0, 0, 100 * ms},
		},
		"as many ahead as are allowed": {
			{0, slot(64, 3), 4, 0, 0},
			{0, slot(1, 3), 0, 0, 100 * ms},
			{150 * ms, slot(64, 3), 1, 250 * ms, 0},
			{150 * ms, slot(64, 5), 2, 350 * ms, 0},
			{150 * ms, slot(64, 0), 0, 0, 550 * ms},
		},
		"the largest spacing counts": {
			{0, Reserve{Count: 1, Spacing: 10 * ms, Revision: 50, Lease: longest}, 1, 0, 0},
			{99 * ms, Reserve{Count: 1, Spacing: 10 * ms, Revision: 50, Lease: longest}, 0, 0, 1 * ms},
			{100 * ms, Reserve{Count: 1, Spacing: 300 * ms, Revision: 50, Lease: longest}, 0, 0, 200 * ms},
			{300 * ms, Reserve{Count: 1, Spacing: 300 * ms, Revision: 50, Lease: longest}, 1, 0, 0},
			{400 * ms, slot(1, 0), 1, 0, 0},
		},
		"no further ahead by a larger spacing than by that of the request": {
			{0, Reserve{Count: 9, Ahead: 12, Spacing: 10 * ms, Revision: 50, Lease: longest}, 2, 0, 0},
			{0, Reserve{Count: 1, Ahead: 12, Spacing: 10 * ms, Revision: 50, Lease: longest}, 0, 0, 80 * ms},
			{80 * ms, Reserve{Count: 1, Ahead: 12, Spacing: 10 * ms, Revision: 50, Lease: longest}, 1, 120 * ms, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := issuing(100 * ms)
			for i, a := range asks {
				a.req.Pool = "pool"
				require.NoError(t, a.req.Validate())
				before := *r
				res, changed := r.Reserve(&a.req, after(a.after))
				require.Equal(t, a.count, res.Count, "step %d: %+v", i, res)
				require.Equal(t, a.wait, res.Wait, "step %d", i)
				require.Equal(t, a.retry, res.Retry, "step %d", i)
				require.Equal(t, a.count > 0, changed, "step %d", i)
				if !changed {
					require.Equal(t, before, *r)
				}
			}
		})
	}
}

// The Throttle that grants permits goes by the same figures.
func TestValidity(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, wire.Validity(time.Microsecond))
	require.Equal(t, 250*time.Millisecond, wire.Validity(2500*time.Millisecond))
	require.Equal(t, time.Second, wire.Validity(10*time.Second))
	require.Equal(t, 2500*time.Millisecond, wire.Validity(time.Minute))
}

// A third of a second is no whole number of microseconds: slots do not drift.
func TestReserveKeepsFractions(t *testing.T) {
	r := issuing(333_333_334)
	req := Reserve{Pool: "pool", Count: 64, Ahead: 1000, Spacing: 333_333_334, Revision: 50, Lease: longest}
	n := int64(0)
	for {
		res, _ := r.Reserve(&req, after(0))
		if res.Count == 0 {
			break
		}
		require.Equal(t, n*333_333_334, int64(res.Wait))
		n += int64(res.Count)
	}
	require.EqualValues(t, 1001, n)
}

// A document that is saved on a Deferred store takes the place of the entry whose time tells the slots
// of the last step: they stay what they were told to be, whether they are read back before or after it.
func TestASavedDocumentMovesNoSlots(t *testing.T) {
	for name, leap := range map[string]time.Duration{"the clock goes on": 0, "it is set forward": time.Hour, "it is set back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			const spacing = 100 * time.Millisecond
			r := issuing(spacing)
			at := after(time.Second) // when the last step was written
			at.Deferred = true
			req := slot(1, 5)
			res, _ := r.Reserve(&req, at)
			at.Now += micros(300 * time.Millisecond) // when that was
			first := r.ReadReservation(&req, res.Revision, at)
			require.Equal(t, 1, first.Count)

			_, changed, err := r.Save(&DocumentReport{"limit", 1, 0, []byte("x")}, at)
			require.NoError(t, err)
			require.True(t, changed)
			at.Now += micros(leap + 200*time.Millisecond) // when the document was written
			again := r.ReadReservation(&req, res.Revision, at)
			require.Equal(t, 1, again.Count)
			require.Equal(t, first.Time*1000+int64(first.Wait), again.Time*1000+int64(again.Wait))

			res, _ = r.Reserve(&req, at)
			at.Now += micros(time.Millisecond)
			next := r.ReadReservation(&req, res.Revision, at)
			require.Equal(t, 1, next.Count)
			require.GreaterOrEqual(t, next.Time*1000+int64(next.Wait)-first.Time*1000-int64(first.Wait), int64(spacing))
		})
	}
}

// A Deferred store learns only afterwards when a freeze began, and the hold moves with it.
func TestReserveHoldsOnADeferredStore(t *testing.T) {
	r := issuing(100 * time.Millisecond)
	req := slot(1, 4)
	at := after(0)
	at.Deferred, at.Identity = true, "another server"
	_, changed := r.Reserve(&req, at)
	require.True(t, changed)
	at.Now = t0 + micros(70*time.Millisecond) // when that was written
	res := r.ReadReservation(&req, r.Revision, at)
	require.Zero(t, res.Count)
	require.Equal(t, FreezeIdentity, res.FrozenBy)
	require.Equal(t, wire.Removal(longest), res.Frozen)
	sync := follow(Report{})
	sync.ID, sync.Seq, sync.LastSeq, sync.Spacing = "b", 1, 0, 100*time.Millisecond
	r.Sync(&sync, at)
	require.Equal(t, at.Now+micros(wire.Removal(longest)), r.FrozenUntil)
	require.Equal(t, r.FrozenUntil+micros(100*time.Millisecond), r.Permits.Hold)
}

// Whatever a record that can be read says, a reservation leaves one that can be written, and does not panic.
func FuzzReserve(f *testing.F) {
	f.Add(written(f, fullRecord()), uint64(1), int64(0))
	f.Add(written(f, smallRecord()), uint64(2), t0)
	f.Add(written(f, issuing(wire.MaxSpacing, holder("a", "1", half))), uint64(3), t0+1)
	f.Fuzz(func(t *testing.T, b []byte, seed uint64, now int64) {
		r, err := ParseRecord(b)
		if err != nil || r.Clock > lastNanos/1000 || r.FrozenUntil > lastNanos/1000 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		req := Reserve{
			Pool: "p", Count: rng.IntN(wire.MaxSlots + 1), Ahead: rng.IntN(wire.MaxAhead + 1), Lease: longest,
			Spacing: wire.MinSpacing + time.Duration(rng.Int64N(int64(wire.MaxSpacing-wire.MinSpacing))),
			Return:  int64(r.Permits.Serial), Unused: rng.IntN(wire.MaxSlots),
		}
		at := At{Now: max(min(now, lastNanos/1000), 0), Identity: r.Store, Deferred: rng.IntN(2) == 0}
		require.NoError(t, req.Validate())
		res, changed := r.Reserve(&req, at)
		if changed {
			written(t, r)
			if at.Deferred {
				res = r.ReadReservation(&req, res.Revision, at)
			}
		}
		require.GreaterOrEqual(t, min(res.Wait, res.Spacing, res.Retry, res.Frozen), time.Duration(0))
		require.LessOrEqual(t, res.Count, req.Count)
	})
}

func TestTheFirstSlot(t *testing.T) {
	for want, is := range map[int64]Permits{5000: {}, 5100: {Last: 5000}, 7000: {Hold: 7}} {
		require.Equal(t, want, is.first(5000, 100))
	}
	require.Equal(t, int64(5), (&Permits{}).first(5, 100), "no slot is reserved")
}
