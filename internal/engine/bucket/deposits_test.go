package bucket

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
)

func TestValidity(t *testing.T) {
	require.Equal(t, 250*time.Millisecond, Validity(time.Microsecond))
	require.Equal(t, 250*time.Millisecond, Validity(2500*time.Millisecond))
	require.Equal(t, 2500*time.Millisecond, Validity(time.Minute))
}

// Whatever the way of the order and of the answer takes, a slot's token is not granted
// before its slot, nor a validity after it.
func TestDepositsKeepToTheirSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var d Deposits
		sent := r.Int64N(1e9)
		step := sent + r.Int64N(3e8) // when the store took the step
		now := step + r.Int64N(3e8)
		s := sharing.Slots{Count: 1 + r.IntN(5), Wait: time.Duration(r.Int64N(1e9)), Spacing: time.Duration(1 + r.Int64N(5e9)), Last: 7}
		d.Add(sent, now, s)
		require.Len(t, d.Pending, s.Count)
		for i, p := range d.Pending {
			slot := step + int64(s.Wait) + int64(i)*int64(s.Spacing)
			require.GreaterOrEqual(t, p.At, slot)
			require.LessOrEqual(t, p.Until, slot+int64(Validity(s.Spacing)))
		}
		d.Add(sent, now+1e12, sharing.Slots{Count: 1, Spacing: 1, Last: 8})
		name, n := d.Withdraw(3)
		require.Equal(t, []int64{8, 1}, []int64{name, int64(n)}, "from one reservation at a time")
		name, n = d.Withdraw(2)
		require.Equal(t, []int64{7, int64(min(2, s.Count))}, []int64{name, int64(n)})
		require.Len(t, d.Pending, max(s.Count-2, 0))
	}
}

func TestDepositsTurn(t *testing.T) {
	d := func(at, until int64) Deposit { return Deposit{At: at, Until: until} }
	for _, tc := range []struct {
		name          string
		pending, ripe []Deposit
		now           int64
		held, room    int
		gained        int
		left          []Deposit // ripe afterwards
	}{
		{"nothing is due", []Deposit{d(5, 9)}, nil, 4, 0, 1, 0, nil},
		{"one is due", []Deposit{d(5, 9), d(6, 10)}, nil, 5, 0, 1, 1, []Deposit{d(5, 9)}},
		{"all are due, and there are callers", []Deposit{d(5, 9), d(6, 10)}, nil, 7, 0, 2, 2, []Deposit{d(5, 9), d(6, 10)}},
		{"nobody has a use for the older", []Deposit{d(5, 9), d(6, 10)}, nil, 7, 0, 1, 2, []Deposit{d(6, 10)}},
		{"one that came too late is void", []Deposit{d(5, 9), d(6, 10)}, nil, 9, 0, 2, 1, []Deposit{d(6, 10)}},
		{"one at hand is void", nil, []Deposit{d(5, 9), d(6, 10)}, 9, 2, 2, 0, []Deposit{d(6, 10)}},
		{"the older was granted", nil, []Deposit{d(5, 9), d(6, 10)}, 9, 1, 2, 0, []Deposit{d(6, 10)}},
		{"both were granted", nil, []Deposit{d(5, 9), d(6, 10)}, 8, 0, 2, 0, []Deposit{}},
		{"debt is paid first", []Deposit{d(5, 9), d(6, 10)}, nil, 7, -1, 2, 2, []Deposit{d(6, 10)}},
		{"all goes into debt", []Deposit{d(5, 9), d(6, 10)}, nil, 7, -5, 2, 2, []Deposit{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ds := Deposits{Pending: tc.pending, Ripe: tc.ripe}
			require.Equal(t, tc.gained, ds.Turn(tc.now, tc.held, tc.room))
			require.ElementsMatch(t, tc.left, ds.Ripe)
			require.False(t, ds.Stirs(tc.now), "a second turn changes nothing")
		})
	}
}
