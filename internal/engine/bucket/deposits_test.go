package bucket

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
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

// A depositsTwin is deposits without any order of their own.
type depositsTwin struct{ pending, ripe []Deposit }

// latest returns the n deposits that are void last; all if there are not so many.
func latest(list []Deposit, n int) []Deposit {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b Deposit) int { return cmp.Compare(b.Until, a.Until) })
	return list[:min(max(n, 0), len(list))]
}

func (d *depositsTwin) turn(now int64, held, room int) (gained int) {
	d.ripe = latest(d.ripe, held)
	for _, p := range d.pending {
		if p.At <= now && p.Until > now {
			d.ripe = append(d.ripe, p)
			gained++
		}
	}
	d.pending = slices.DeleteFunc(d.pending, func(p Deposit) bool { return p.At <= now })
	d.ripe = slices.DeleteFunc(latest(d.ripe, held+gained), func(p Deposit) bool { return p.Until <= now })
	d.ripe = latest(d.ripe, room)
	return gained
}

// last returns the deposit that comes last; of those at one moment, the one that was booked last.
func (d *depositsTwin) last() (at int) {
	for i, p := range d.pending {
		if p.At >= d.pending[at].At {
			at = i
		}
	}
	return at
}

func TestDepositsMatchTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const ms = int64(time.Millisecond)
	for range testkit.Fewer(5000) {
		var d Deposits
		var twin depositsTwin
		now, name := int64(0), int64(0)
		for range 30 {
			now += r.Int64N(4) * 50 * ms
			switch r.IntN(4) {
			case 0:
				s := sharing.Slots{
					Count: r.IntN(4), Wait: time.Duration(r.Int64N(10) * 50 * ms), Spacing: time.Duration((1 + r.Int64N(8)) * 50 * ms),
				}
				if r.IntN(4) > 0 {
					name++
					s.Last = name
				}
				sent := now - r.Int64N(8)*50*ms
				d.Add(sent, now, s)
				for i := range s.Count {
					slot := int64(s.Wait) + int64(i)*int64(s.Spacing)
					twin.pending = append(twin.pending, Deposit{At: now + slot, Until: sent + slot + 250*ms, Name: s.Last})
				}
			case 1:
				of, n := d.Withdraw(r.IntN(4))
				for range n {
					at := twin.last()
					require.Equal(t, of, twin.pending[at].Name)
					twin.pending = slices.Delete(twin.pending, at, at+1)
				}
			case 2:
				old := r.Int64N(name + 1)
				d.Rename(old, name+1)
				for i := range twin.pending {
					if twin.pending[i].Name == old {
						twin.pending[i].Name = name + 1
					}
				}
				name++
			default:
				changes := slices.ContainsFunc(d.Pending, func(p Deposit) bool { return p.At <= now }) ||
					slices.ContainsFunc(d.Ripe, func(p Deposit) bool { return p.Until <= now })
				require.Equal(t, changes, d.Stirs(now))
				held, room := r.IntN(len(d.Ripe)+2)-1, 1+r.IntN(3)
				require.Equal(t, twin.turn(now, held, room), d.Turn(now, held, room))
			}
			require.ElementsMatch(t, twin.pending, d.Pending)
			untils := func(list []Deposit) (all []int64) {
				for _, p := range list {
					all = append(all, p.Until)
				}
				return all
			}
			require.ElementsMatch(t, untils(twin.ripe), untils(d.Ripe), "of two that are void at one moment, either")
		}
	}
}
