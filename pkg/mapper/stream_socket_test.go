package mapper_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// echoStream panics on "panic"; else it writes one output and waits for the context.
var echoStream = mapstreamsdk.MapStreamerFunc(
	func(ctx context.Context, _ []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
		defer close(to)
		if string(d.Value()) == "panic" {
			panic("mine")
		}
		select { // numaflow-go does not read any more when the context has ended
		case to <- mapstreamsdk.NewMessage(nil):
		case <-ctx.Done():
		}
		<-ctx.Done()
	})

// streamFails has a handler panic while others wait for their context, all of which
// close their channels in a deferred function, and returns how many were answered
// nevertheless.
func streamFails(t *testing.T, wrap func(mapstreamsdk.MapStreamer, throttle.Limiter) mapstreamsdk.MapStreamer) (answered int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := dataplane.DialMapStream(ctx, dataplane.Serve(t, wrap(echoStream, throttletest.New())).Socket)
	require.NoError(t, err)
	defer m.Abort()
	const waiters = 20
	errs := make(chan error, waiters)
	for range waiters {
		go func() {
			_, err := m.Do(ctx, dataplane.Message{Value: []byte("wait")})
			errs <- err
		}()
	}
	require.Eventually(t, func() bool { return m.Stats().Sent == waiters }, 20*time.Second, time.Millisecond)
	if _, err := m.Do(ctx, dataplane.Message{Value: []byte("panic")}); err == nil {
		answered++
	}
	for range waiters {
		if <-errs == nil {
			answered++
		}
	}
	return answered
}

func TestSocketStreamNoAnswerEndsByAPanic(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	for name, opts := range map[string][]mapper.StreamOption{"per message": nil, "per output": {mapper.PerOutput()}} {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				t.Run(fmt.Sprint(round), func(t *testing.T) {
					require.Zero(t, streamFails(t, func(next mapstreamsdk.MapStreamer, l throttle.Limiter) mapstreamsdk.MapStreamer {
						return mapper.WrapStream(next, l, opts...)
					}))
				})
			}
		})
	}
	// The same without the wrapper: it shows that the rounds above can fail.
	t.Run("control", func(t *testing.T) {
		for round, made := 0, 0; made == 0; round++ {
			require.Less(t, round, 10*rounds, "the bare handler never ended an answer by its panic")
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				made = streamFails(t, func(next mapstreamsdk.MapStreamer, _ throttle.Limiter) mapstreamsdk.MapStreamer { return next })
			})
		}
	})
}
