package throttle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// shapes calls a function of each shape, which does body.
var shapes = map[string]func(l throttle.Limiter, ctx context.Context, body func() error) error{
	"Func": func(l throttle.Limiter, ctx context.Context, body func() error) error {
		got, err := throttle.Func(l, func(_ context.Context, n int) (string, error) { return "x", body() })(ctx, 1)
		if err == nil && got != "x" {
			return errors.New("result lost")
		}
		return err
	},
}

func TestFunc(t *testing.T) {
	mine := errors.New("mine")
	for name, call := range shapes {
		t.Run(name, func(t *testing.T) {
			slots, err := throttle.NewInFlight(1)
			require.NoError(t, err)
			l := throttletest.New()
			both := throttle.All(slots, l)
			inUse := 0
			body := func() error { inUse = slots.Status().InUse; return nil }
			require.NoError(t, call(both, t.Context(), body))
			require.Equal(t, 1, inUse, "the slot is held for the call")
			require.Equal(t, mine, call(both, t.Context(), func() error { return mine }))
			require.Panics(t, func() { _ = call(both, t.Context(), func() error { panic("mine") }) })
			require.Zero(t, slots.Status().InUse)
			require.Equal(t, 3, l.Used(), "a call that was made counts, however it ended")

			denied := throttletest.New(throttletest.Deny(mine))
			require.Equal(t, mine, call(denied, t.Context(), func() error { t.Error("called"); return nil }))

			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(mine)
			late := throttletest.New() // grants although the context has ended
			require.Equal(t, mine, call(late, ctx, func() error { t.Error("called"); return nil }))
			require.Zero(t, late.Used(), "a call that was not made is given back")

			calls := 0
			require.NoError(t, call(nil, ctx, func() error { calls++; return nil }))
			require.Equal(t, 1, calls, "without a limit the function is called as it is")
		})
	}
}
