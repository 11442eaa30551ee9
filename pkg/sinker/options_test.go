package sinker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestCheck(t *testing.T) {
	type options = []sinker.Option
	for want, opts := range map[string]options{
		"": {
			nil, sinker.WithCost(nil), sinker.WithTag(nil), sinker.WithSettle(nil), sinker.WithLogger(nil),
			sinker.OnDenied(sinker.Wait()), sinker.WithBatchBudget(0),
		},
		"sinker: WithBatchBudget is -1s, allowed: 0 (no limit) or more": {
			sinker.WithBatchBudget(-time.Second), sinker.OnDenied(sinker.Fail()),
		},
	} {
		if err := sinker.Check(opts...); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
	require.NoError(t, sinker.Check(sinker.WithBatchBudget(1), sinker.WithMaxWait(2), sinker.OnDenied(sinker.Drop())))
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
