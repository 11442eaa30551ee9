package dataplane

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
)

func dialBatch(t *testing.T, socket string, opts ...Option) *BatchMap {
	t.Helper()
	return dialled[*BatchMap](t)(DialBatchMap(testContext(t), socket, opts...))
}

// reverse answers the messages of a batch in reverse order, each with its value:
// "drop" is dropped, "nack" refused, "none" is answered with nothing.
func reverse(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
	out := batchmapsdk.BatchResponsesBuilder()
	for d := range in {
		r := batchmapsdk.NewBatchResponse(d.Id())
		switch string(d.Value()) {
		case "drop":
			r = r.Append(batchmapsdk.MessageToDrop())
		case "nack":
			delay := uint64(250)
			r = r.Append(batchmapsdk.MessageToNack(&batchmapsdk.NackOptions{Delay: &delay}))
		case "none":
		default:
			r = r.Append(batchmapsdk.NewMessage(d.Value()).WithKeys(d.Keys()))
		}
		out = append(batchmapsdk.BatchResponses{r}, out...)
	}
	return out
}

func TestBatchMapAnswersEveryMessageInItsPlace(t *testing.T) {
	m := dialBatch(t, sdkserver.Start(t, batchmapsdk.BatchMapperFunc(reverse)).Socket)
	got, err := m.Do(testContext(t), messages("a", "drop", "nack", "none", "e"))
	require.NoError(t, err)
	require.Equal(t, [][]Result{
		{{Value: []byte("a")}},
		{{Tags: []string{batchmapsdk.DROP}, Drop: true}},
		{{Tags: []string{batchmapsdk.NACK}, Nack: true, NackOptions: &NackOptions{Delay: 250 * time.Millisecond}}},
		nil,
		{{Value: []byte("e")}},
	}, got)
	got, err = m.Do(testContext(t), nil)
	require.NoError(t, err)
	require.Nil(t, got)
	require.NoError(t, m.Close())
	require.Equal(t, Stats{Sent: 5, Answered: 5}, m.Stats())
	_, err = m.Do(testContext(t), messages("late"))
	require.ErrorIs(t, err, ErrClosed)
}

func TestBatchesGoOneAfterTheOther(t *testing.T) {
	const callers, each = 8, 20
	var mu sync.Mutex
	running, most := 0, 0
	m := dialBatch(t, sdkserver.Start(t, batchmapsdk.BatchMapperFunc(
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
	m := dialBatch(t, sdkserver.Start(t, batchmapsdk.BatchMapperFunc(
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

func TestBatchMapCloseNamesWhatWasNotAnswered(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	m := dialBatch(t, sdkserver.Start(t, batchmapsdk.BatchMapperFunc(
		func(ctx context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			select {
			case <-never:
			case <-ctx.Done():
			}
			return nil
		})).Socket, WithDrainTimeout(30*time.Millisecond))
	failed := make(chan error, 1)
	go func() {
		_, err := m.Do(testContext(t), messages("a"))
		failed <- err
	}()
	eventually(t, func() bool { return m.Stats().Sent == 1 }, "in flight")
	require.ErrorContains(t, m.Close(), `"1-0"`)
	require.ErrorIs(t, <-failed, ErrBroken)
	require.Equal(t, Stats{Sent: 1, Failed: 1}, m.Stats())
}

// eotOf is the mark that ends a batch.
func eotOf(id string) *mappb.MapResponse {
	return &mappb.MapResponse{Id: id, Status: &mappb.TransmissionStatus{Eot: true}}
}

func TestBatchMapFaultsBreakTheStreamAndNameTheID(t *testing.T) {
	for name, c := range map[string]struct {
		// atEnd is what the server sends when the batch of two is there.
		atEnd func(send func(*mappb.MapResponse)) (goOn bool)
		fault Fault
		ids   []string
	}{
		"duplicate": {func(send func(*mappb.MapResponse)) bool { send(reply("1-1")); send(reply("1-1")); return true }, FaultDuplicateID, []string{"1-1"}},
		"unknown":   {func(send func(*mappb.MapResponse)) bool { send(reply("1-2")); return true }, FaultUnknownID, []string{"1-2"}},
		"missing: all": {
			func(send func(*mappb.MapResponse)) bool { send(eotOf("")); return true },
			FaultMissingID,
			[]string{"1-0", "1-1"},
		},
		"missing: one": {
			func(send func(*mappb.MapResponse)) bool { send(reply("1-0")); send(eotOf("")); return true },
			FaultMissingID,
			[]string{"1-1"},
		},
		"stream ends in the batch": {func(send func(*mappb.MapResponse)) bool { send(reply("1-0")); return false }, FaultMissingID, []string{"1-1"}},
		"stream ends without the mark": {
			func(send func(*mappb.MapResponse)) bool { send(reply("1-0")); send(reply("1-1")); return false },
			FaultMissingEOT,
			[]string{"1-0", "1-1"},
		},
		"mark with an ID": {func(send func(*mappb.MapResponse)) bool { send(eotOf("1-0")); return true }, FaultStatus, []string{"1-0"}},
		"second handshake": {
			func(send func(*mappb.MapResponse)) bool {
				send(&mappb.MapResponse{Handshake: &mappb.Handshake{Sot: true}})
				return true
			}, FaultHandshake, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeMap{}
			f.answer = func(req *mappb.MapRequest, send func(*mappb.MapResponse)) bool {
				return !req.GetStatus().GetEot() || c.atEnd(send)
			}
			m := dialBatch(t, startScripted(t, f))
			_, err := m.Do(testContext(t), messages("a", "b"))
			requireFault(t, err, c.fault, c.ids...)
			require.Equal(t, Stats{Sent: 2, Failed: 2}, m.Stats())
			require.ErrorIs(t, m.Close(), ErrBroken)
		})
	}
}

func TestBatchMapWhatComesAfterTheEndBreaksTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		extra *mappb.MapResponse
		fault Fault
		ids   []string
	}{
		"a result":     {reply("1-0"), FaultAfterEOT, []string{"1-0"}},
		"another mark": {eotOf(""), FaultUnexpectedEOT, nil},
		"an unknown":   {reply("9-0"), FaultUnknownID, []string{"9-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeMap{}
			f.answer = func(req *mappb.MapRequest, send func(*mappb.MapResponse)) bool {
				if !req.GetStatus().GetEot() {
					send(reply(req.GetId()))
					return true
				}
				send(eotOf(""))
				send(c.extra)
				return true
			}
			m := dialBatch(t, startScripted(t, f))
			_, err := m.Do(testContext(t), messages("a"))
			require.NoError(t, err)
			awaitBroken(t, m.Broken())
			require.Equal(t, Stats{Sent: 1, Answered: 1}, m.Stats())
			requireFault(t, m.Close(), c.fault, c.ids...)
		})
	}
}
