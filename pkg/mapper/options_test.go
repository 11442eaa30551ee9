package mapper_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

var noStream = mapstreamsdk.MapStreamerFunc(func(context.Context, []string, mapstreamsdk.Datum, chan<- mapstreamsdk.Message) {})

func TestWrongOptionsWithPerOutput(t *testing.T) {
	require.NoError(t, mapper.CheckStream(mapper.PerOutput(), mapper.ExemptDropped(), nil))
	require.NoError(t, mapper.CheckStream(mapper.PerOutput(), mapper.OnDenied(mapper.Wait())))
	err := mapper.CheckStream(mapper.PerOutput(), mapper.WithMaxWait(time.Second))
	require.ErrorContains(t, err, "WithMaxWait is 1s, allowed: 0 with PerOutput")
	err = mapper.CheckStream(mapper.OnDenied(mapper.Drop()), mapper.WithMaxWait(time.Second), mapper.PerOutput())
	require.ErrorContains(t, err, "OnDenied is Drop, allowed: Wait with PerOutput")
	require.PanicsWithError(t, err.Error(), func() {
		mapper.WrapStream(noStream, throttletest.New(), mapper.OnDenied(mapper.Drop()), mapper.WithMaxWait(time.Second), mapper.PerOutput())
	})
}

func TestWrongOptionsWithDirect(t *testing.T) {
	require.NoError(t, mapper.CheckStream(mapper.Direct(), mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Drop())))
	err := mapper.CheckStream(mapper.Direct(), mapper.PerOutput(), mapper.ExemptDropped())
	require.ErrorContains(t, err, "Direct is set, allowed: not with PerOutput")
	require.ErrorContains(t, err, "Direct is set, allowed: not with ExemptDropped")
	require.PanicsWithError(t, err.Error(), func() {
		mapper.WrapStream(noStream, nil, mapper.Direct(), mapper.PerOutput(), mapper.ExemptDropped())
	})
}
