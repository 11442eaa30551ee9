package mapper_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func ExampleWrap() {
	limiter, err := throttle.New(throttle.Limit{Max: 50}) // 50 tokens a second
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	callAPI := mapsdk.MapperFunc(func(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
		if len(d.Value()) == 0 {
			return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop()) // no call, no token
		}
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()))
	})
	handler := mapper.Wrap(callAPI, limiter, mapper.ExemptDropped())

	// A program hands it to the server: mapsdk.NewServer(handler).Start(ctx).
	d := mapsdk.NewHandlerDatum([]byte("hello"), time.Now(), time.Now(), nil, nil, nil)
	for _, m := range handler.Map(context.Background(), []string{"key"}, d) {
		fmt.Println(string(m.Value()))
	}
	// Output: hello
}

// Messages that would wait for longer than two seconds go along another edge.
func ExampleOnDenied() {
	limiter, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	callAPI := mapsdk.MapperFunc(func(_ context.Context, _ []string, d mapsdk.Datum) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(d.Value()))
	})
	handler := mapper.Wrap(callAPI, limiter,
		mapper.WithCost(mapper.CostBytes(1024)),
		mapper.WithTag(mapper.TagFromHeader("x-tenant")),
		mapper.WithMaxWait(2*time.Second),
		mapper.OnDenied(mapper.Forward("cheaper-model")))

	d := mapsdk.NewHandlerDatum([]byte("hello"), time.Now(), time.Now(), nil, nil, nil)
	for _, m := range handler.Map(context.Background(), []string{"key"}, d) {
		fmt.Println(string(m.Value()), m.Tags())
	}
	// Output: hello [cheaper-model]
}

// An answer of the user's own for what does not get its tokens in time.
func ExampleDenyFunc() {
	limiter, err := throttle.New(throttle.Limit{Max: 1, Per: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	fromCache := func(_ context.Context, keys []string, _ mapsdk.Datum, denied *throttle.Error) mapsdk.Messages {
		fmt.Println("denied:", denied.Reason)
		return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage([]byte("cached answer")).WithKeys(keys))
	}
	callAPI := mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages { return nil })
	handler := mapper.Wrap(callAPI, limiter, mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.DenyFunc(fromCache)))

	d := mapsdk.NewHandlerDatum([]byte("hello"), time.Now(), time.Now(), nil, nil, nil)
	for _, m := range handler.Map(context.Background(), []string{"key"}, d) {
		fmt.Println(string(m.Value()))
	}
	// Output:
	// denied: limit
	// cached answer
}

func ExampleCheck() {
	fmt.Println(mapper.Check(mapper.OnDenied(mapper.Nack())))
	// Output: mapper: OnDenied is Nack, allowed without WithMaxWait: Wait
}

func ExampleWrapBatch() {
	limiter, err := throttle.New(throttle.Limit{Max: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	handler := mapper.WrapBatch(batchmapsdk.BatchMapperFunc(
		func(_ context.Context, batch <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
			responses := batchmapsdk.BatchResponsesBuilder()
			for d := range batch { // each comes as soon as it has its token
				responses = responses.Append(batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.NewMessage(d.Value())))
			}
			return responses
		}), limiter)

	// A program hands it to the server: batchmapsdk.NewServer(handler).Start(ctx).
	batch := make(chan batchmapsdk.Datum, 2)
	batch <- batchmapsdk.NewHandlerDatum([]byte("hello"), time.Now(), time.Now(), nil, "1", nil)
	batch <- batchmapsdk.NewHandlerDatum([]byte("world"), time.Now(), time.Now(), nil, "2", nil)
	close(batch)
	for _, response := range handler.BatchMap(context.Background(), batch) {
		fmt.Println(response.Id(), string(response.Items()[0].Value()))
	}
	// Output:
	// 1 hello
	// 2 world
}

func ExampleWrapStream() {
	limiter, err := throttle.New(throttle.Limit{Max: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	handler := mapper.WrapStream(mapstreamsdk.MapStreamerFunc(
		func(_ context.Context, _ []string, d mapstreamsdk.Datum, outputs chan<- mapstreamsdk.Message) {
			defer close(outputs)
			for word := range strings.FieldsSeq(string(d.Value())) {
				outputs <- mapstreamsdk.NewMessage([]byte(word)) // blocks until the output before has its token
			}
		}), limiter, mapper.PerOutput())

	// A program hands it to the server: mapstreamsdk.NewServer(handler).Start(ctx).
	outputs := make(chan mapstreamsdk.Message, 10)
	d := mapstreamsdk.NewHandlerDatum([]byte("hello world"), time.Now(), time.Now(), nil)
	handler.MapStream(context.Background(), nil, d, outputs)
	for m := range outputs {
		fmt.Println(string(m.Value()))
	}
	// Output:
	// hello
	// world
}
