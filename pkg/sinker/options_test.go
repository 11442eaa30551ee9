package sinker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestCheck(t *testing.T) {
	const (
		noWait  = "sinker: OnDenied is Wait, allowed with WithMaxWait or WithBatchBudget: Nack, Fallback, Fail, Drop or DenyFunc"
		noBound = "sinker: OnDenied is Nack, allowed without WithMaxWait or WithBatchBudget: Wait"
	)
	for name, c := range map[string]struct {
		opts []sinker.Option
		want string // empty: no fault
	}{
		"none":             {nil, ""},
		"nil":              {[]sinker.Option{nil}, ""},
		"wait":             {[]sinker.Option{sinker.OnDenied(sinker.Wait())}, ""},
		"zero action":      {[]sinker.Option{sinker.OnDenied(sinker.Action{})}, ""},
		"zeroes":           {[]sinker.Option{sinker.WithMaxWait(0), sinker.WithBatchBudget(0)}, ""},
		"nils":             {[]sinker.Option{sinker.WithCost(nil), sinker.WithTag(nil), sinker.WithSettle(nil), sinker.WithLogger(nil)}, ""},
		"maxWait":          {[]sinker.Option{sinker.WithMaxWait(1), sinker.OnDenied(sinker.Nack())}, ""},
		"budget":           {[]sinker.Option{sinker.OnDenied(sinker.Fallback()), sinker.WithBatchBudget(1)}, ""},
		"both":             {[]sinker.Option{sinker.OnDenied(sinker.Drop()), sinker.WithBatchBudget(1), sinker.WithMaxWait(2)}, ""},
		"wait, maxWait":    {[]sinker.Option{sinker.WithMaxWait(1)}, noWait},
		"wait, budget":     {[]sinker.Option{sinker.WithBatchBudget(1), sinker.OnDenied(sinker.Wait())}, noWait},
		"nack, no bound":   {[]sinker.Option{sinker.OnDenied(sinker.Nack())}, noBound},
		"nack, bound is 0": {[]sinker.Option{sinker.WithMaxWait(0), sinker.OnDenied(sinker.Nack())}, noBound},
		"negative maxWait": {
			[]sinker.Option{sinker.WithMaxWait(-time.Second), sinker.OnDenied(sinker.Fail())},
			"sinker: WithMaxWait is -1s, allowed: 0 (no limit) or more",
		},
		"negative budget": {
			[]sinker.Option{sinker.WithBatchBudget(-time.Second), sinker.OnDenied(sinker.Fail())},
			"sinker: WithBatchBudget is -1s, allowed: 0 (no limit) or more",
		},
		"no function": {
			[]sinker.Option{sinker.WithMaxWait(1), sinker.OnDenied(sinker.DenyFunc(nil))},
			"sinker: function of DenyFunc is nil, allowed: a function",
		},
		"all at once": {
			[]sinker.Option{sinker.WithMaxWait(-1), sinker.WithBatchBudget(-2)},
			"sinker: WithMaxWait is -1ns, allowed: 0 (no limit) or more\nsinker: WithBatchBudget is -2ns, allowed: 0 (no limit) or more\n" + noWait,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := sinker.Check(c.opts...)
			if c.want == "" {
				require.NoError(t, err)
				require.NotPanics(t, func() { sinker.Wrap(&handler{}, throttletest.New(), c.opts...) })
				return
			}
			require.EqualError(t, err, c.want)
			require.PanicsWithError(t, c.want, func() { sinker.Wrap(&handler{}, throttletest.New(), c.opts...) })
			require.PanicsWithError(t, c.want, func() { sinker.Wrap(&handler{}, nil, c.opts...) }, "also without a limit")
		})
	}
}

func TestFallbackIsRefusedWhereThePlatformTakesNone(t *testing.T) {
	fallback := []sinker.Option{sinker.WithMaxWait(1), sinker.OnDenied(sinker.Fallback())}
	for which, refused := range map[string]bool{"": false, "udsink": false, "fb-udsink": true, "ons-udsink": true} {
		t.Setenv("NUMAFLOW_UD_CONTAINER_TYPE", which)
		err := sinker.Check(fallback...)
		if refused {
			require.EqualError(t, err,
				"sinker: OnDenied is Fallback, allowed in a container of type "+which+": Wait, Nack, Fail, Drop or DenyFunc")
		} else {
			require.NoError(t, err)
		}
		for _, a := range []sinker.Action{sinker.Nack(), sinker.Fail(), sinker.Drop(), denyAll()} {
			require.NoError(t, sinker.Check(sinker.WithMaxWait(1), sinker.OnDenied(a)))
		}
	}
}

func denyAll() sinker.Action {
	return sinker.DenyFunc(func(sinksdk.Datum, *throttle.Error) sinksdk.Response { return sinksdk.Response{} })
}
