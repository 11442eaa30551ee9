package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestAheadIsAMillisecondsWorth(t *testing.T) {
	limiter := func(l throttle.Limit) *throttle.Throttle {
		th, err := throttle.New(l)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, th.Close()) })
		return th
	}
	for _, tc := range []struct {
		name string
		l    throttle.Limiter
		want int
	}{
		{"less than one", limiter(throttle.Limit{Max: 999}), 0},
		{"one", limiter(throttle.Limit{Max: 1000}), 1},
		{"some", limiter(throttle.Limit{Max: 12_100}), 12},
		{"by the period", limiter(throttle.Limit{Max: 121_000, Per: 10e9}), 12},
		{"the most", limiter(throttle.Limit{Max: 1_000_000}), 64},
		{"a hard limit", limiter(throttle.Limit{Max: 1_000_000, Hard: true}), 0},
		{"a strict limit", limiter(throttle.Limit{Max: 1_000_000, Strict: true}), 0},
		{"several limits", throttle.All(limiter(throttle.Limit{Max: 1_000_000}), limiter(throttle.Limit{Max: 1_000_000})), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var p Pace
			g := &Admitter{Limiter: tc.l}
			require.Zero(t, g.Ahead(&p), "the handler's pace is not known")
			p.Note(500, time.Millisecond)
			require.Equal(t, tc.want, g.Ahead(&p))
		})
	}
}

func TestAheadIsTenMillisecondsOfTheHandler(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 1_000_000})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	g := &Admitter{Limiter: th}
	for each, want := range map[time.Duration]int{
		0: 64, 100 * time.Microsecond: 64, 200 * time.Microsecond: 50, time.Millisecond: 10, 10 * time.Millisecond: 1, 11 * time.Millisecond: 0,
		time.Second: 0,
	} {
		var p Pace
		p.Note(20, 20*each)
		p.Note(0, time.Hour) // an empty batch tells nothing
		require.Equal(t, want, g.Ahead(&p), each)
	}
}

func TestNothingIsAheadWithoutAShare(t *testing.T) {
	th, err := throttle.New(throttle.Limit{Max: 1_000_000}, throttle.WithSharer(nobody{}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, th.Close()) })
	var p Pace
	p.Note(500, time.Millisecond)
	require.Zero(t, (&Admitter{Limiter: th}).Ahead(&p))
}

// nobody gives no share.
type nobody struct{}

func (nobody) Attach(sharing.Holder) {}
func (nobody) Poke()                 {}
