package pooldoc

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// number is a document that holds a number.
var number = Doc[int]{
	Name:  "number",
	Body:  func(n int) ([]byte, error) { return strconv.AppendInt(nil, int64(n), 10), nil },
	Parse: func(body []byte) (int, error) { return strconv.Atoi(string(body)) },
}

// A store of one pool. before is called before each change, as by somebody who is quicker.
type store struct {
	driver.Store

	record driver.Record
	before func(r *driver.Record)
	saves  int
}

// newStore returns a store with a pool that a processor has been in.
func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{}
	req := driver.Request{
		Pool: "pool", ID: "a", Incarnation: "1", Seq: 1, Nonce: 1, Lease: driver.DefaultLease,
	}
	_, changed := s.record.Sync(&req, driver.At{Now: time.Now().UnixMicro()})
	require.True(t, changed)
	return s
}

func (s *store) Load(context.Context, string) ([]driver.Document, []driver.RosterRow, error) {
	return s.record.Load()
}

func (s *store) Save(_ context.Context, _ string, d driver.DocumentReport) (driver.Version, error) {
	s.saves++
	if s.before != nil {
		s.before(&s.record)
	}
	v, _, err := s.record.Save(&d, driver.At{})
	return v, err
}

// add returns a change that adds to the number.
func add(n int) func(Recorded[int]) (int, bool, error) {
	return func(r Recorded[int]) (int, bool, error) { return r.Value + n, n != 0, r.Err }
}

// A change is made again from what is on record where somebody else was first, and not for ever.
func TestChange(t *testing.T) {
	s := newStore(t)
	first, err := number.Change(t.Context(), s, "pool", add(1))
	require.NoError(t, err)
	require.NotZero(t, first)

	quicker := 2
	s.before = func(r *driver.Record) {
		if quicker--; quicker >= 0 {
			doc := number.In(r.Documents)
			_, _, err := r.Save(&driver.DocumentReport{
				Name: "number", Version: driver.NextVersion(doc.Version, 1), Base: doc.Version, Body: []byte("1" + string(doc.Body)),
			}, driver.At{})
			require.NoError(t, err)
		}
	}
	_, err = number.Change(t.Context(), s, "pool", add(1))
	require.NoError(t, err)
	value, err := number.Read(number.In(s.record.Documents))
	require.NoError(t, err)
	require.Equal(t, 112, value)

	quicker, s.saves = 100, 0
	conflict := (*driver.ConflictError)(nil)
	_, err = number.Change(t.Context(), s, "pool", add(1))
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, attempts, s.saves)
}

// What is not to change is not saved, and other errors than conflicts end a change at once.
func TestChangeEnds(t *testing.T) {
	s := newStore(t)
	version, err := number.Change(t.Context(), s, "pool", add(0))
	require.NoError(t, err)
	require.Zero(t, version)
	require.Zero(t, s.saves)

	_, _, err = s.record.Save(&driver.DocumentReport{Name: "number", Version: 7, Body: []byte("?")}, driver.At{})
	require.NoError(t, err)
	_, err = number.Change(t.Context(), s, "pool", add(1))
	require.ErrorIs(t, err, strconv.ErrSyntax)

	bad := errors.New("bad")
	calls := 0
	require.ErrorIs(t, Retry(func() error { calls++; return bad }), bad)
	require.Equal(t, 1, calls)

	_, err = number.Change(t.Context(), &store{}, "pool", add(1))
	require.ErrorIs(t, err, driver.ErrNoPool)
}

// A change by somebody who may know nothing outlives what was made before, by the seconds since 1970.
func TestLateChange(t *testing.T) {
	late := number
	late.Late = true
	version, err := late.Change(t.Context(), newStore(t), "pool", add(1))
	require.NoError(t, err)
	require.GreaterOrEqual(t, int64(version>>16), time.Now().Unix()-60)
}

// A proposal is a change of what is held. What the store has lost is given back with it: whatever is on record
// by now, or only in the place of what was seen there.
func TestPropose(t *testing.T) {
	held := Held{Document: driver.Document{Name: "number", Version: 3 << 16, Body: []byte("3")}}
	r, ok := number.Propose(held, 4, 9)
	require.True(t, ok)
	require.Equal(t, driver.DocumentReport{Name: "number", Version: 4<<16 | 9, Base: 3 << 16, Body: []byte("4")}, r)

	held.Lost, held.Seen = true, driver.Document{Name: "number", Version: 1 << 16, Body: []byte("1")}
	r, _ = number.Propose(held, 4, 9)
	require.Equal(t, r.Version, r.Base)
	merges := number
	merges.Merges = true
	r, _ = merges.Propose(held, 4, 9)
	require.Equal(t, driver.Version(1<<16), r.Base)

	full := number
	full.Body = func(int) ([]byte, error) { return nil, errors.New("too large") }
	_, ok = full.Propose(held, 4, 9)
	require.False(t, ok)
}
