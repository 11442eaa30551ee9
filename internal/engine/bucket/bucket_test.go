package bucket

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A draw whose swap failed goes on at once, unless another one failed within 100 µs.
func TestStandBack(t *testing.T) {
	b := &Bucket{}
	now, reads := int64(time.Hour), 0
	b.Begin(Config{Max: 1, Per: time.Second, Burst: 1}, func() int64 { reads++; return now })
	for _, tc := range []struct {
		later time.Duration
		waits bool
	}{{time.Hour, false}, {101 * time.Microsecond, false}, {99 * time.Microsecond, true}, {0, true}, {time.Millisecond, false}} {
		now += int64(tc.later)
		reads = 0
		require.Equal(t, now, b.standBack())
		require.Equal(t, tc.waits, reads > 100, "%d readings of the clock after %s", reads, tc.later)
		require.Positive(t, reads)
	}
}

// However much more is owed, repaid or credited, nothing overflows.
func TestHugeDebt(t *testing.T) {
	for _, most := range []int{0, 1 << 50, math.MaxInt} {
		b := made(Config{Max: 1000, Debt: most})
		put(b, limit.WholeShare)
		owable := maxDebt >> b.Shift
		require.Equal(t, math.MaxInt-owable, b.Owe(0, math.MaxInt))
		require.Equal(t, 5, b.Charge(0, 5), "no more can be owed")
		require.Equal(t, -owable, b.WholeTokens(0))
		require.Equal(t, owable, b.Repay(0, math.MaxInt))
		require.Zero(t, b.Level(0))
		b.Credit(0, math.MaxInt)
		require.Equal(t, b.Law().Capacity, b.Level(0))
	}
}

// put puts a share in force, for an hour.
func put(b *Bucket, share int64) {
	c := b.Replace(0, int64(time.Hour), limit.Lease{Share: share})
	b.Cut(0, c)
	b.Seal(c)
}

// At most a period's worth can be granted before a permit is given back, itself included.
func TestGivenBackLate(t *testing.T) {
	for others, credited := range map[int64]bool{15: true, 16: false} {
		b := made(Config{Max: 16, Per: 16 * token, Burst: 1})
		put(b, limit.WholeShare)
		pos := b.Take(token)
		b.Deposit(others * token)
		b.Take(others * token)
		require.Equal(t, credited, b.Refund(token, pos, 1, 0), "%d tokens were granted since", others)
	}
}

// After a share has fallen, what it earned in a period at its lowest can still be given back of what was drawn before, to the unit.
func TestGivenBackAfterAFall(t *testing.T) {
	for units, gone := range map[int64]bool{8*token + 2: false, 8*token + 1: true} { // with two fences
		b := made(Config{Max: 16, Per: 16 * token, Burst: 1})
		put(b, limit.WholeShare)
		b.Deposit(8 * token)
		pos := b.Take(token)
		b.Take(8 * token)
		put(b, (units*limit.WholeShare+16*token-1)/(16*token))
		put(b, limit.WholeShare)
		require.Equal(t, gone, b.Gone(pos+token))
		require.NotEqual(t, gone, b.Refund(token, pos, 1, 0))
	}
}

// A shut bucket has the segment that is in force behind it, and the pause of the last Shut. Shutting it again as it is takes no memory.
func TestShutAgain(t *testing.T) {
	b := made(Config{Max: 1000})
	shut := func(paused int64) {
		b.Shut(paused)
		require.Same(t, b.Law(), b.Current().Behind)
		require.Equal(t, paused, b.Current().Paused)
		require.Zero(t, testing.AllocsPerRun(10, func() { b.Shut(paused) }))
	}
	shut(0)
	shut(5)
	b.Replace(1, int64(time.Hour), limit.Lease{Share: limit.WholeShare})
	shut(5)
	shut(0)
	b.Open(b.Law())
	shut(0)
}
