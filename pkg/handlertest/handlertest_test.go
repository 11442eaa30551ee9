package handlertest

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"
	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	os.Exit(m.Run())
}

// within is a context that ends a test which hangs.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func values(texts ...string) []Message {
	msgs := make([]Message, len(texts))
	for i, text := range texts {
		msgs[i] = Message{Value: []byte(text)}
	}
	return msgs
}

var upper = mapsdk.MapperFunc(func(_ context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	switch string(d.Value()) {
	case "drop":
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	case "nothing":
		return mapsdk.MessagesBuilder()
	case "panic":
		panic("no such thing")
	case "nack":
		delay, most, reason := uint64(1500), uint32(3), "later"
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToNack(&mapsdk.NackOptions{Delay: &delay, MaxDeliveries: &most, Reason: &reason}))
	}
	text := strings.ToUpper(string(d.Value())) + d.Headers()["h"] + d.EventTime().UTC().Format("2006") + d.Watermark().UTC().Format("2006")
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage([]byte(text)).WithKeys(keys).WithTags([]string{"t"}))
})

// Answers are in the order of the messages, and are what the handler has set.
func TestMap(t *testing.T) {
	h := Start(t, upper)
	results, err := h.Map(within(t), append(values("drop", "nothing", "nack"), Message{
		Value: []byte("a"), Keys: []string{"k"}, Headers: map[string]string{"h": "!"},
		EventTime: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Watermark: time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC),
	}, Message{})...)
	require.NoError(t, err)
	require.Len(t, results, 5)
	require.True(t, results[0][0].Drop)
	require.Empty(t, results[1])
	require.True(t, results[2][0].Nack)
	require.Equal(t, NackOptions{Delay: 1500 * time.Millisecond, MaxDeliveries: 3, Reason: "later"}, results[2][0].NackOptions)
	require.Equal(t, []Result{{Keys: []string{"k"}, Value: []byte("A!20242023"), Tags: []string{"t"}}}, results[3])
	require.Equal(t, "19701970", string(results[4][0].Value))
	none, err := h.Map(within(t))
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestMapStream(t *testing.T) {
	h := Start(t, mapstreamsdk.MapStreamerFunc(func(_ context.Context, _ []string, d mapstreamsdk.Datum, out chan<- mapstreamsdk.Message) {
		for word := range strings.FieldsSeq(string(d.Value())) {
			out <- mapstreamsdk.NewMessage([]byte(word))
		}
		close(out)
	}))
	results, err := h.MapStream(within(t), values("a b", "", "c")...)
	require.NoError(t, err)
	require.Equal(t, "[[a b] [] [c]]", texts(results))
}

func TestBatchMap(t *testing.T) {
	h := Start(t, batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		all := batchmapsdk.BatchResponsesBuilder()
		for d := range in {
			r := batchmapsdk.NewBatchResponse(d.Id())
			all = all.Append(r.Append(batchmapsdk.NewMessage(d.Value())).Append(batchmapsdk.NewMessage([]byte("+"))))
		}
		return all
	}))
	for range 2 {
		results, err := h.BatchMap(within(t), values("a", "b")...)
		require.NoError(t, err)
		require.Equal(t, "[[a +] [b +]]", texts(results))
	}
}

func TestTransform(t *testing.T) {
	when := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	h := Start(t, transformsdk.SourceTransformFunc(func(_ context.Context, _ []string, d transformsdk.Datum) transformsdk.Messages {
		if string(d.Value()) == "empty" {
			return transformsdk.MessagesBuilder()
		}
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage(d.Value(), when))
	}))
	results, err := h.Transform(within(t), values("a")...)
	require.NoError(t, err)
	require.Equal(t, when, results[0][0].EventTime)
	require.Equal(t, "[[a]]", texts(results))
	_, err = h.Transform(within(t), values("empty")...)
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, "msgs[0] of 1: the handler broke the protocol: ")
	require.ErrorContains(t, err, "empty result: nothing in the answer to")
	require.ErrorIs(t, h.Close(), ErrProtocol)
}

func TestSink(t *testing.T) {
	h := Start(t, sinksdk.SinkerFunc(func(_ context.Context, in <-chan sinksdk.Datum) sinksdk.Responses {
		all := sinksdk.ResponsesBuilder()
		for d := range in {
			switch string(d.Value()) {
			case "ok":
				all = all.Append(sinksdk.ResponseOK(d.ID()))
			case "no":
				all = all.Append(sinksdk.ResponseFailure(d.ID(), "full"))
			case "serve":
				all = all.Append(sinksdk.ResponseServe(d.ID(), []byte("s")))
			case "on success":
				all = all.Append(sinksdk.ResponseOnSuccess(d.ID(), sinksdk.NewMessage([]byte("m")).WithKeys([]string{"k"})))
			case "nack":
				reason := "later"
				all = all.Append(sinksdk.ResponseNack(d.ID(), &sinksdk.NackOptions{Reason: &reason}))
			default:
				all = all.Append(sinksdk.ResponseFallback(d.ID()))
			}
		}
		return all
	}))
	responses, err := h.Sink(within(t), values("no", "ok", "serve", "on success", "nack", "?")...)
	require.NoError(t, err)
	require.Equal(t, []Response{
		{Status: "failure", Error: "full"},
		{Status: "success"},
		{Status: "serve", Serve: []byte("s")},
		{Status: "on success", OnSuccess: &Message{Value: []byte("m"), Keys: []string{"k"}}},
		{Status: "nack", NackOptions: NackOptions{Reason: "later"}},
		{Status: "fallback"},
	}, responses)
}

func TestSource(t *testing.T) {
	source := dataplane.NewQueue(10)
	h := Start(t, source)
	read, err := h.Read(within(t), 4, time.Second)
	require.NoError(t, err)
	require.Len(t, read, 4)
	require.Equal(t, Message{
		Value: []byte("0"), Keys: []string{"k"}, EventTime: time.Unix(1000, 0).UTC(), Offset: Offset{Value: []byte("0"), Partition: 3},
	}, read[0])
	require.NoError(t, h.Ack(within(t), read[0], read[1]))
	require.NoError(t, h.Nack(within(t), NackOptions{Reason: "why"}, read[2:]...))
	require.Equal(t, map[string]int{"0": 1, "1": 1}, source.Acked)
	require.Equal(t, "why", *source.Refused[0].NackOptions.Reason)
	pending, err := h.Pending(within(t))
	require.NoError(t, err)
	require.EqualValues(t, 8, pending)
	read, err = h.Read(within(t), 100, 100*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, read, 8)
	require.Equal(t, "2", string(read[6].Value))
	require.NoError(t, h.Ack(within(t), read...))
}

// One who calls by the wrong method is told which is right, before the handler sees anything; and of a server of another kind
// that it is one, at once.
func TestWrongKind(t *testing.T) {
	h := Start(t, upper)
	_, err := h.Sink(within(t), values("a")...)
	require.EqualError(t, err, "Sink: this handler is called by Map, and by no other kind of call")
	_, err = h.Pending(within(t))
	require.ErrorContains(t, err, "called by Map")
	dialled, err := Dial(within(t), h.socket)
	require.NoError(t, err)
	_, err = dialled.Sink(context.Background(), values("a")...)
	require.ErrorContains(t, err, "server is of another kind")
	results, err := dialled.Map(within(t), values("a")...)
	require.NoError(t, err, "the first call that got through decides")
	require.Equal(t, "[[A19701970]]", texts(results))
	require.NoError(t, dialled.Close())
	require.NoError(t, dialled.Close())
	_, err = dialled.Map(within(t), values("a")...)
	require.EqualError(t, err, "Map: the connection is closed")
}

// Dial waits for a handler that starts later, and says what it has waited for.
func TestDialWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "nobody listens on the socket "+path)
	time.AfterFunc(50*time.Millisecond, func() {
		listener, err := net.Listen("unix", path)
		if err == nil {
			t.Cleanup(func() { _ = listener.Close() })
		}
	})
	h, err := Dial(within(t), path)
	require.NoError(t, err)
	require.NoError(t, h.Close(), "no call, no stream")
}

// Many calls at once share one connection.
func TestCallsAtOnce(t *testing.T) {
	h := Start(t, upper)
	var all sync.WaitGroup
	failed := make(chan error, 20)
	for i := range 20 {
		all.Go(func() {
			results, err := h.Map(within(t), values(fmt.Sprint("a", i), fmt.Sprint("b", i))...)
			if want := fmt.Sprintf("[[A%d19701970] [B%d19701970]]", i, i); err == nil && texts(results) != want {
				err = fmt.Errorf("got %s, want %s", texts(results), want)
			}
			failed <- err
		})
	}
	all.Wait()
	for range 20 {
		require.NoError(t, <-failed)
	}
}

func texts(results [][]Result) string {
	all := make([][]string, len(results))
	for i, rs := range results {
		for _, r := range rs {
			all[i] = append(all[i], string(r.Value))
		}
	}
	return fmt.Sprint(all)
}
