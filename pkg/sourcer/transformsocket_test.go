package sourcer_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func dialTransform(tb testing.TB, server *sdkserver.Server) *dataplane.Transform {
	tb.Helper()
	m, err := dataplane.DialTransform(testContext(tb), server.Socket)
	require.NoError(tb, err)
	tb.Cleanup(m.Abort)
	return m
}

// echo forwards its input; it drops "drop" and panics on "panic".
func echo(_ context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
	switch string(d.Value()) {
	case "drop":
		return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
	case "panic":
		panic("sibling")
	default:
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), d.EventTime()).WithKeys(keys))
	}
}

func transformAll(tb testing.TB, m *dataplane.Transform, n int) <-chan error {
	tb.Helper()
	ctx, errs := testContext(tb), make(chan error, n)
	for i := range n {
		go func() {
			_, err := m.Do(ctx, dataplane.Message{Value: []byte(strconv.Itoa(i)), EventTime: eventTime})
			errs <- err
		}()
	}
	return errs
}

func TestSocketOneTransformationForEachToken(t *testing.T) {
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	m := dialTransform(t, sdkserver.Start(t, sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), l)))
	const n = 30
	errs := transformAll(t, m, n)
	for passed := range n {
		eventually(t, func() bool { return l.Waiting() == n-passed }, "the others wait")
		require.Equal(t, passed, m.Stats().Answered)
		tokens <- struct{}{}
		require.NoError(t, <-errs)
	}
	require.NoError(t, m.Close())
}

func TestSocketWhatIsDeniedReachesThePlatform(t *testing.T) {
	own := func(_ context.Context, _ []string, d transformsdk.Datum, why *throttle.Error) transformsdk.Messages {
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage([]byte(why.Reason), d.EventTime()))
	}
	for _, c := range []struct {
		action sourcer.Action
		check  func(r dataplane.Result) bool
	}{
		{sourcer.Drop(), func(r dataplane.Result) bool { return r.Drop }},
		{sourcer.Nack(), func(r dataplane.Result) bool {
			return r.Nack && !r.Drop && r.NackOptions.Delay >= 100*time.Millisecond
		}},
		{sourcer.Forward("x", "y"), func(r dataplane.Result) bool {
			return !r.Nack && !r.Drop && strings.Join(r.Tags, "") == "xy" && string(r.Value) == "v" && r.Keys[0] == "k"
		}},
		{sourcer.DenyFunc(own), func(r dataplane.Result) bool { return string(r.Value) == string(throttle.ReasonLimit) }},
	} {
		t.Run(c.action.String(), func(t *testing.T) {
			l := throttletest.New(throttletest.Deny(nil))
			m := dialTransform(t, sdkserver.Start(t, sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), l,
				sourcer.WithMaxWait(time.Second), sourcer.OnDenied(c.action))))
			got, err := m.Do(testContext(t), dataplane.Message{Keys: []string{"k"}, Value: []byte("v"), EventTime: eventTime})
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.True(t, c.check(got[0]), "%+v", got[0])
			require.True(t, eventTime.Equal(got[0].EventTime))
			require.NoError(t, m.Close())
		})
	}
}

func TestSocketALostConnectionEndsTheTransformersWaitAndTheServerGoesOn(t *testing.T) {
	const n = 50
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	server := sdkserver.Start(t, sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), l))
	m := dialTransform(t, server)
	lost := transformAll(t, m, n)
	eventually(t, func() bool { return l.Waiting() == n }, "all wait")
	m.Abort()
	for range n {
		require.ErrorIs(t, <-lost, dataplane.ErrBroken)
	}
	eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
	require.Zero(t, l.Used())

	again := dialTransform(t, server)
	redelivered := transformAll(t, again, n)
	close(tokens)
	for range n {
		require.NoError(t, <-redelivered)
	}
	require.NoError(t, again.Close())
	select {
	case <-server.Ended():
		require.Fail(t, "the server ended")
	default:
	}
}

func TestSocketACostThatCanNeverBeGrantedIsNacked(t *testing.T) {
	l, err := throttle.New(throttle.Limit{Max: 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	server := sdkserver.Start(t, sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), l,
		sourcer.WithCost(func(_ []string, d transformsdk.Datum) int {
			if string(d.Value()) == "large" {
				return 1e12
			}
			return 1
		})))
	m := dialTransform(t, server)
	out, err := m.Do(testContext(t), dataplane.Message{Value: []byte("large")})
	require.NoError(t, err)
	require.True(t, out[0].Nack)
	out, err = m.Do(testContext(t), dataplane.Message{Value: []byte("small")})
	require.NoError(t, err, "the stream goes on")
	require.False(t, out[0].Nack)
	require.NoError(t, m.Close())
}

// Only while numaflow-go is sending large answers it has a chance to send what the
// waiting transformers return after a sibling panicked.
const (
	slowAnswers = 4
	slowSize    = 1 << 20
	waiters     = 20
)

// siblingPanics lets a transformer panic while others wait for tokens and answers are
// being sent, and returns how many of those that waited were answered, be it with
// nothing, which breaks the stream.
func siblingPanics(t *testing.T, wrap func(transformsdk.SourceTransformer, throttle.Limiter) transformsdk.SourceTransformer) (answered int) {
	t.Helper()
	gate, arrived := make(chan struct{}), make(chan struct{}, slowAnswers)
	slow := strings.Repeat("x", slowSize)
	l := throttletest.New(throttletest.Block())
	throttled := wrap(transformsdk.SourceTransformFunc(echo), l)
	m := dialTransform(t, sdkserver.Start(t, transformsdk.SourceTransformFunc(
		func(ctx context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
			switch string(d.Value()) {
			case "slow":
				arrived <- struct{}{}
				<-gate
				return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage([]byte(slow), d.EventTime()))
			case "panic":
				return echo(ctx, keys, d)
			default:
				return throttled.Transform(ctx, keys, d)
			}
		})))
	ctx := testContext(t)
	do := func(value string) error {
		_, err := m.Do(ctx, dataplane.Message{Value: []byte(value), EventTime: eventTime})
		return err
	}
	errs := transformAll(t, m, waiters)
	eventually(t, func() bool { return l.Waiting() == waiters }, "all wait")
	slowErrs := make(chan error, slowAnswers)
	for range slowAnswers {
		go func() { slowErrs <- do("slow") }()
		<-arrived
	}
	close(gate)
	require.NoError(t, <-slowErrs)
	require.ErrorIs(t, do("panic"), dataplane.ErrBroken)
	for range waiters {
		if err := <-errs; err == nil || strings.Contains(err.Error(), string(dataplane.FaultEmpty)) {
			answered++
		}
	}
	m.Abort()
	return answered
}

func TestSocketASiblingsPanicYieldsNoMadeUpAnswers(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		t.Run(fmt.Sprint("wrapped ", round), func(t *testing.T) {
			require.Zero(t, siblingPanics(t, func(next transformsdk.SourceTransformer, l throttle.Limiter) transformsdk.SourceTransformer {
				return sourcer.WrapTransformer(next, l)
			}))
		})
	}
	// The same with a wrapper that returns when its wait ends: it shows that the rounds
	// above can fail.
	for round, made := 0, 0; made == 0; round++ {
		require.Less(t, round, 20*rounds, "the control never sent a made-up answer")
		t.Run(fmt.Sprint("control ", round), func(t *testing.T) {
			made = siblingPanics(t, func(next transformsdk.SourceTransformer, l throttle.Limiter) transformsdk.SourceTransformer {
				return transformsdk.SourceTransformFunc(func(ctx context.Context, keys []string, d transformsdk.Datum) transformsdk.Messages {
					if _, err := l.Acquire(ctx, 1); err != nil {
						return transformsdk.MessagesBuilder().Append(transformsdk.MessageToDrop(d.EventTime()))
					}
					return next.Transform(ctx, keys, d)
				})
			})
		})
	}
}
