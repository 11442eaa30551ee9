package dataplane

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
)

func dialStreamed(t *testing.T, socket string, opts ...Option) *MapStream {
	t.Helper()
	return dialled[*MapStream](t)(DialMapStream(testContext(t), socket, opts...))
}

func TestMapStreamCallerMayLeaveAmongTheResults(t *testing.T) {
	gate := make(chan struct{})
	ctx, cancel := context.WithCancel(testContext(t))
	m := dialStreamed(t, Serve(t, mapstreamsdk.MapStreamerFunc(
		func(_ context.Context, _ []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
			defer close(out)
			out <- mapstreamsdk.NewMessage(d.Value())
			if string(d.Value()) == "wait" {
				cancel()
				<-gate
			}
		})).Socket, WithConcurrency(1))
	_, err := m.Do(ctx, Message{Value: []byte("wait")})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"0-1"}, m.Outstanding())
	close(gate)
	got, err := m.Do(testContext(t), Message{Value: []byte("n")})
	require.NoError(t, err)
	require.Equal(t, []Result{{Value: []byte("n")}}, got, "nothing of the message before")
	require.Equal(t, Stats{Sent: 2, Answered: 2, Late: 1}, m.Stats())
	require.NoError(t, m.Close())
}
