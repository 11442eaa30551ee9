package mapper_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func dialBatch(tb testing.TB, server *sdkserver.Server) *dataplane.BatchMap {
	tb.Helper()
	m, err := dataplane.DialBatchMap(testContext(tb), server.Socket)
	require.NoError(tb, err)
	tb.Cleanup(m.Abort)
	return m
}

// doBatch sends a batch of messages with these values.
func doBatch(tb testing.TB, m *dataplane.BatchMap, values string) ([][]dataplane.Result, error) {
	tb.Helper()
	var msgs []dataplane.Message
	for v := range strings.FieldsSeq(values) {
		msgs = append(msgs, dataplane.Message{Value: []byte(v), Keys: []string{v}})
	}
	return m.Do(testContext(tb), msgs)
}

// goBatch is doBatch in a goroutine.
func goBatch(tb testing.TB, m *dataplane.BatchMap, values string) <-chan error {
	tb.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := doBatch(tb, m, values)
		done <- err
	}()
	return done
}

// upper answers each message with its payload in upper case, and panics on "panic".
var upper = batchmapsdk.BatchMapperFunc(func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	h := batchHandler{on: func(string) {}}
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		if string(d.Value()) == "panic" {
			panic("mine")
		}
		one := make(chan batchmapsdk.Datum, 1)
		one <- d
		close(one)
		out = append(out, h.BatchMap(ctx, one)...)
	}
	return out
})

func TestSocketBatchOneMessagePassesForEachToken(t *testing.T) {
	tokens := make(chan struct{})
	l := throttletest.New(throttletest.GrantOn(tokens))
	m := dialBatch(t, sdkserver.Start(t, mapper.WrapBatch(upper, l)))
	for _, batch := range []string{"a b c d", "e", "f g h"} {
		n := len(strings.Fields(batch))
		done := goBatch(t, m, batch)
		for range n {
			eventually(t, func() bool { return l.Waiting() == 1 }, "the next one waits")
			require.Empty(t, done)
			tokens <- struct{}{}
		}
		require.NoError(t, <-done)
	}
	require.NoError(t, m.Close())
	require.Equal(t, dataplane.Stats{Sent: 8, Answered: 8}, m.Stats())
}

func TestSocketBatchDeniedMessagesAreAnsweredInTheirPlace(t *testing.T) {
	deny, grant := throttletest.Deny(throttled()), throttletest.Grant()
	l := throttletest.New(grant, deny, grant)
	m := dialBatch(t, sdkserver.Start(t, mapper.WrapBatch(upper, l, mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Nack()))))
	got, err := doBatch(t, m, "a b c")
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, "A", string(got[0][0].Value))
	require.True(t, got[1][0].Nack)
	require.Equal(t, "C", string(got[2][0].Value))
	require.NoError(t, m.Close())
}

func TestSocketBatchALostConnectionEndsTheWaitAndTheServerGoesOn(t *testing.T) {
	tokens := make(chan struct{}, 1)
	l := throttletest.New(throttletest.GrantOn(tokens))
	server := sdkserver.Start(t, mapper.WrapBatch(upper, l))
	m := dialBatch(t, server)
	lost := goBatch(t, m, "a b c")
	tokens <- struct{}{}
	eventually(t, func() bool { return l.Used() == 1 && l.Waiting() == 1 }, "the second waits")
	m.Abort()
	require.ErrorIs(t, <-lost, dataplane.ErrBroken)
	eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")

	again := dialBatch(t, server)
	redelivered := goBatch(t, again, "a b c")
	eventually(t, func() bool { return l.Waiting() == 1 }, "delivered again")
	close(tokens)
	require.NoError(t, <-redelivered)
	require.NoError(t, again.Close())
	select {
	case <-server.Ended():
		require.Fail(t, "the server ended")
	default:
	}
}

// What a handler does wrong fails the stream with a reason, and no message of the
// batch is answered.
func TestSocketBatchAHandlerThatMisbehavesFailsTheStreamWithTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		handler batchmapsdk.BatchMapperFunc
		cause   string
	}{
		"panics": {upper, "mine"},
		"forgets a message": {func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			for range in {
				continue
			}
			return batchmapsdk.BatchResponsesBuilder()
		}, "4 not answered"},
		// Without the wrapper this one blocks the stream for ever.
		"returns early": {func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			d, ok := <-in
			if !ok {
				return nil
			}
			return respond(nil, d.Id())
		}, "returned before it had read the whole batch"},
	} {
		t.Run(name, func(t *testing.T) {
			server := sdkserver.Start(t, mapper.WrapBatch(c.handler, throttletest.New()))
			m := dialBatch(t, server)
			_, err := doBatch(t, m, "a b panic c")
			require.ErrorIs(t, err, dataplane.ErrBroken)
			require.ErrorContains(t, err, c.cause)
			require.Equal(t, dataplane.Stats{Sent: 4, Failed: 4}, m.Stats())
			select {
			case <-server.Ended(): // the process ends, and is started anew
			case <-testContext(t).Done():
				require.Fail(t, "the server goes on")
			}
		})
	}
}
