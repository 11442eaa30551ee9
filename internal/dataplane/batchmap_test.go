package dataplane

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
)

func dialBatch(t *testing.T, socket string, opts ...Option) *BatchMap {
	t.Helper()
	return dialled[*BatchMap](t)(DialBatchMap(testContext(t), socket, opts...))
}

// reverse answers the messages of a batch in reverse order, each with its value.
func reverse(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		out = append(batchmapsdk.BatchResponses{batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.NewMessage(d.Value()))}, out...)
	}
	return out
}

func TestBatchesGoOneAfterTheOther(t *testing.T) {
	const callers, each = 8, 20
	var mu sync.Mutex
	running, most := 0, 0
	m := dialBatch(t, Serve(t, batchmapsdk.BatchMapperFunc(
		func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			first, ok := <-in
			if !ok {
				return nil
			}
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			out := reverse(ctx, in).Append(batchmapsdk.NewBatchResponse(first.Id()))
			mu.Lock()
			running--
			mu.Unlock()
			return out
		})).Socket)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				value := strconv.Itoa(c*each + i)
				got, err := m.Do(testContext(t), messages("first", value))
				if err != nil || len(got) != 2 || len(got[1]) != 1 || string(got[1][0].Value) != value {
					t.Errorf("batch %s: %v, %v", value, got, err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, m.Close())
	require.Equal(t, 1, most)
	require.Equal(t, Stats{Sent: 2 * callers * each, Answered: 2 * callers * each}, m.Stats())
}

func TestBatchMapCallerMayLeaveAndTheBatchStaysInFlight(t *testing.T) {
	gate := make(chan struct{})
	m := dialBatch(t, Serve(t, batchmapsdk.BatchMapperFunc(
		func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			<-gate
			return reverse(ctx, in)
		})).Socket)
	ctx, cancel := context.WithTimeout(testContext(t), 30*time.Millisecond)
	defer cancel()
	_, err := m.Do(ctx, messages("a", "b"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "1-0")
	require.Equal(t, []string{"1-0", "1-1"}, m.Outstanding())
	_, err = m.Do(ctx, messages("held up"))
	require.ErrorContains(t, err, "not sent")
	close(gate)
	got, err := m.Do(testContext(t), messages("next"))
	require.NoError(t, err)
	require.Equal(t, [][]Result{{{Value: []byte("next")}}}, got)
	require.NoError(t, m.Close())
	require.Equal(t, Stats{Sent: 3, Answered: 3, Late: 2}, m.Stats())
}
