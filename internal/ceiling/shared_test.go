package ceiling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/ceiling/backoff"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/ramp"
	"github.com/numaproj-contrib/numathrottle/internal/ceiling/state"
)

// ramped is a limit that ramps up from 10 to 20 in a minute, with time.
var ramped = Config{
	Limit: Rate{20, time.Second}, Ramps: true,
	Ramp: ramp.Config{Min: 10, Max: 20, Per: time.Second, RampUpDuration: time.Minute, Mode: ramp.Scheduled, TTL: time.Hour},
}

// adaptive is a limit that follows the called service.
var adaptive = Config{Limit: Rate{100, time.Second}, Adapts: true, Reserved: 1}

const (
	began  = 1_700_000_000_000_000
	second = int64(1_000_000)
)

// refused is a step in which the called service refuses half of the calls.
func refused(at int64) backoff.Step {
	return backoff.Step{Now: at, Lag: second / 10, Processors: 1, Used: 1, Offered: 1, Reports: []backoff.Report{{Accepted: 1, Refused: 1}}}
}

// A state goes on in its epoch, begins anew with another, and keeps its ceiling on another clock.
func TestSettle(t *testing.T) {
	l := Law{Config: ramped}
	l.Settle(state.Present{Now: began, Epoch: began, Clamp: 2 * time.Second})
	require.True(t, l.Changed(), "the pool has no ramp yet")
	l.Ramp.Changed = false
	l.Ramp.State, _ = l.RampConfig().Next(l.Ramp.State, ramp.Step{Now: began + 30*second})
	now := began + 31*second
	require.InDelta(t, 15, l.At(began+30*second, began+30*second), 0.01)

	l.Settle(state.Present{Now: now, Epoch: began, Clamp: 2 * time.Second})
	require.False(t, l.Changed())
	_, due := l.NextRamp(ramp.Step{Now: now})
	require.True(t, due, "a second is over")

	other := l
	other.Settle(state.Present{Now: second, Clamp: 2 * time.Second})
	require.True(t, other.Changed(), "the clock of another store")
	require.InDelta(t, 15, other.At(second, second), 0.01)
	require.Equal(t, int64(began), other.Ramp.Epoch, "it is not known")

	l.Settle(state.Present{Now: now, Epoch: now, Silence: 5 * second, Clamp: 2 * time.Second})
	require.True(t, l.Changed(), "everybody had left")
	require.InDelta(t, 10, l.At(now, now), 0.01)
	require.Equal(t, now, l.Ramp.Epoch)
}

// A backoff is free in another epoch, and nobody needs to be told of one that was free before.
func TestSettleBackoff(t *testing.T) {
	l := Law{Config: adaptive}
	l.Settle(state.Present{Now: began, Epoch: began})
	require.False(t, l.Changed())
	next, due := l.NextBackoff(refused(began))
	require.True(t, due)
	require.Equal(t, int64(began), next.Epoch)
	l.Backoff = next
	require.InDelta(t, 49, l.At(began, began), 0.01)
	require.True(t, l.Refused(began))
	l.Settle(state.Present{Now: began + 2*second, Epoch: began + second})
	require.True(t, l.Changed())
	require.False(t, l.Refused(began+2*second))
}

// What is of another release moves nothing, and nothing takes its place.
func TestUnreadableStaysAsItIs(t *testing.T) {
	l := Law{Config: ramped}
	l.Adapts, l.Reserved = true, 1
	l.Ramp.Unreadable, l.Backoff.Unreadable = true, true
	l.Settle(state.Present{Now: began, Epoch: began})
	require.False(t, l.Changed())
	_, due := l.NextRamp(ramp.Step{Now: began})
	require.False(t, due)
	_, due = l.NextBackoff(refused(began))
	require.False(t, due)
	require.InDelta(t, 10, l.At(began, began), 0, "the ramp stands at min")
}
