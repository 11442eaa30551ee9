package consensus_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/world"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Of an answer for slots that no store gives nothing is believed: not the revision either, which would freeze the pool.
func TestNothingOfAWrongAnswerForSlotsIsBelieved(t *testing.T) {
	for name, lie := range map[string]func(*driver.Reserved){
		"too many":             func(r *driver.Reserved) { r.Count = 65 },
		"fewer than none":      func(r *driver.Reserved) { r.Count = -1 },
		"a wait below 0":       func(r *driver.Reserved) { r.Wait = -1 },
		"an endless wait":      func(r *driver.Reserved) { r.Count, r.Wait = 1, math.MaxInt64 },
		"a spacing below 0":    func(r *driver.Reserved) { r.Spacing = -1 },
		"an endless spacing":   func(r *driver.Reserved) { r.Count, r.Spacing = 1, math.MaxInt64 },
		"a retry below 0":      func(r *driver.Reserved) { r.Count, r.Retry = 0, -1 },
		"an endless retry":     func(r *driver.Reserved) { r.Count, r.Retry = 0, math.MaxInt64 },
		"a name below 0":       func(r *driver.Reserved) { r.Last = -1 },
		"a time below 0":       func(r *driver.Reserved) { r.Time = -1 },
		"a far time":           func(r *driver.Reserved) { r.Time = math.MaxInt64 },
		"too far a revision":   func(r *driver.Reserved) { r.Revision = math.MaxUint64 },
		"a freeze below 0":     func(r *driver.Reserved) { r.Frozen = -1 },
		"more than was wanted": func(r *driver.Reserved) { r.Count = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := world.NewLink(memstore.New())
				m, th := attach(t, s, "a", throttle.Limit{Max: 1, Per: 5 * time.Second, Strict: true})
				defer func() { _ = m.Leave(context.Background()) }()
				time.Sleep(3 * time.Second)
				s.OnReserve(func(r *driver.Reserved, _ error) { r.Revision = 1 << 40; lie(r) })
				ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
				defer cancel()
				_, err := th.Acquire(ctx, 1)
				require.ErrorIs(t, err, throttle.ErrThrottled)
				require.Positive(t, s.Reserves.Load())
				require.LessOrEqual(t, s.Reserves.Load(), int64(40), "it does not ask without a pause")
				s.OnReserve(nil)
				_, err = th.Acquire(t.Context(), 1)
				require.NoError(t, err)
				require.Zero(t, m.View().Frozen, "the pool is not frozen")
				require.Zero(t, s.Malformed.Load())
				require.Less(t, s.Revision.Load(), uint64(1000), "no request reports the wrong revision")
			})
		})
	}
}

// So it is with the answer to a sync.
func TestNothingOfAWrongAnswerIsBelieved(t *testing.T) {
	for name, lie := range map[string]func(*driver.Answer){
		"a share below 0":     func(a *driver.Answer) { a.Share = -1 },
		"too large a share":   func(a *driver.Answer) { a.Share = driver.Whole + 1 },
		"status below":        func(a *driver.Answer) { a.Status = -1 },
		"a far status":        func(a *driver.Answer) { a.Status = 99 },
		"no lease":            func(a *driver.Answer) { a.Lease = 0 },
		"an endless lease":    func(a *driver.Answer) { a.Lease = math.MaxInt64 },
		"a time below 0":      func(a *driver.Answer) { a.Time = -1 },
		"a far time":          func(a *driver.Answer) { a.Time = math.MaxInt64 },
		"too far a revision":  func(a *driver.Answer) { a.Revision = math.MaxUint64 },
		"a freeze below 0":    func(a *driver.Answer) { a.Frozen = -1 },
		"an endless freeze":   func(a *driver.Answer) { a.Frozen = math.MaxInt64 },
		"a beginning below 0": func(a *driver.Answer) { a.Epoch = -1 },
		"a silence below 0":   func(a *driver.Answer) { a.Silence = -1 },
		"fewer than none":     func(a *driver.Answer) { a.Live = -1 },
		"a pool size below 0": func(a *driver.Answer) { a.PoolSize = -1 },
		"a claim below 0":     func(a *driver.Answer) { a.Roster[0].Claim = -1 },
		"too large a demand":  func(a *driver.Answer) { a.Roster[0].Demand = driver.Whole + 1 },
		"a row of nobody":     func(a *driver.Answer) { a.Roster[0].ID = "" },
		"an odd document": func(a *driver.Answer) {
			a.Documents = []driver.Document{{Name: "A", Version: 1, Body: []byte("x")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := world.NewLink(memstore.New())
				m, th := attach(t, s, "a", throttle.Limit{Max: 100})
				defer func() { _ = m.Leave(context.Background()) }()
				time.Sleep(3 * time.Second)
				s.OnSync(func(a *driver.Answer, _ error) {
					if a.Status == driver.Granted {
						a.Revision, a.Time = 1<<40, a.Time+1<<40
						lie(a)
					}
				})
				time.Sleep(3 * time.Second)
				require.ErrorIs(t, m.View().LastError, driver.ErrWrongAnswer)
				_, ok := th.TryAcquire(1)
				require.True(t, ok, "it goes on with what it had")
				s.OnSync(nil)
				time.Sleep(5 * time.Second)
				require.NoError(t, m.View().LastError)
				require.Zero(t, m.View().Frozen)
				require.Zero(t, s.Malformed.Load())
				require.Less(t, s.Revision.Load(), uint64(1000))
			})
		})
	}
}

// Nor is what operators load.
func TestNothingOfAWrongRecordIsShown(t *testing.T) {
	s := world.NewLink(memstore.New())
	m, err := consensus.Join(t.Context(), s, "p", consensus.WithFailFast())
	require.NoError(t, err)
	defer func() { _ = m.Leave(t.Context()) }()
	for name, lie := range map[string]func(*[]driver.Document, *[]driver.RosterRow){
		"a far version": func(d *[]driver.Document, _ *[]driver.RosterRow) {
			*d = []driver.Document{{Name: "limit", Version: math.MaxUint64, Body: []byte("x")}}
		},
		"an odd name": func(d *[]driver.Document, _ *[]driver.RosterRow) {
			*d = []driver.Document{{Name: "Ä", Version: 1, Body: []byte("x")}}
		},
		"no body": func(d *[]driver.Document, _ *[]driver.RosterRow) {
			*d = []driver.Document{{Name: "limit", Version: 1, Body: nil}}
		},
		"a claim below 0": func(_ *[]driver.Document, r *[]driver.RosterRow) { (*r)[0].Claim = -1 },
		"a far pool size": func(_ *[]driver.Document, r *[]driver.RosterRow) { (*r)[0].PoolSize = math.MaxInt },
	} {
		s.OnLoad(lie)
		_, err := protocol.LoadOverview(t.Context(), s, "p")
		require.ErrorIs(t, err, driver.ErrWrongAnswer, name)
		_, err = protocol.LoadOverride(t.Context(), s, "p")
		require.ErrorIs(t, err, driver.ErrWrongAnswer, name)
		require.ErrorIs(t, protocol.SaveOverride(t.Context(), s, "p", protocol.Override{Max: 5, Per: time.Second}), driver.ErrWrongAnswer, name)
		_, err = protocol.LoadPauses(t.Context(), s, "p")
		require.ErrorIs(t, err, driver.ErrWrongAnswer, name)
	}
}

// A limiter may be attached while its Member leaves.
func TestAttachWhileLeaving(t *testing.T) {
	for i := range 1000 {
		m, err := consensus.Join(t.Context(), memstore.New(), "p")
		require.NoError(t, err)
		var attached sync.WaitGroup
		attached.Go(func() {
			time.Sleep(time.Duration(i%100) * time.Microsecond)
			th, err := throttle.New(throttle.Limit{Max: 10}, throttle.WithSharer(m))
			if err == nil {
				_ = th.Close()
			}
		})
		require.NoError(t, m.Leave(t.Context()))
		attached.Wait()
	}
}
