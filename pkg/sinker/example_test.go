package sinker_test

import (
	"context"
	"fmt"
	"sort"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// post is a sink that calls a service for each message.
func post(_ context.Context, data <-chan sinksdk.Datum) sinksdk.Responses {
	responses := sinksdk.ResponsesBuilder()
	for d := range data {
		responses = responses.Append(sinksdk.ResponseOK(d.ID())) // the call goes here
	}
	return responses
}

func ExampleWrap() {
	limiter, err := throttle.New(throttle.Limit{Max: 50}) // 50 calls a second
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	handler := sinker.Wrap(sinksdk.SinkerFunc(post), limiter)

	// A program hands it to the server: sinksdk.NewServer(handler).Start(ctx).
	for _, r := range handler.Sink(context.Background(), batchOf("a", "b")) {
		fmt.Println(r.ID, r.Success)
	}
	// Output:
	// a true
	// b true
}

// One program for all three sinks of a vertex: numaflow-go listens on the socket of
// the container that it runs in, and the wrapper does not care.
func ExampleWrap_fallbackAndOnSuccessSink() {
	limiter, err := throttle.New(throttle.Limit{Max: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	// sink.sock, fb-sink.sock or ons-sink.sock, as NUMAFLOW_UD_CONTAINER_TYPE says.
	server := sinksdk.NewServer(sinker.Wrap(sinksdk.SinkerFunc(post), limiter))
	fmt.Println(server != nil)
	// Output: true
}

// A batch never waits longer than eight seconds for tokens, so that it ends within
// the grace of a pod that is stopped; the rest comes again.
func ExampleWithBatchBudget() {
	limiter, err := throttle.New(throttle.Limit{Max: 50})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	handler := sinker.Wrap(sinksdk.SinkerFunc(post), limiter,
		sinker.WithBatchBudget(8*time.Second), sinker.OnDenied(sinker.Nack()))
	fmt.Println(len(handler.Sink(context.Background(), batchOf("a", "b", "c"))))
	// Output: 3
}

func ExampleOnDenied() {
	limiter := throttletest.New(throttletest.Grant(), throttletest.Deny(nil)) // one token, and no more

	handler := sinker.Wrap(sinksdk.SinkerFunc(post), limiter,
		sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Fallback()))
	for _, r := range handler.Sink(context.Background(), batchOf("a", "b")) {
		fmt.Println(r.ID, "success:", r.Success, "fallback:", r.Fallback)
	}
	// Output:
	// a success: true fallback: false
	// b success: false fallback: true
}

func ExampleDenyFunc() {
	limiter := throttletest.New(throttletest.Deny(nil))

	deny := func(d sinksdk.Datum, why *throttle.Error) sinksdk.Response {
		if d.Headers()["priority"] == "low" {
			return sinksdk.ResponseOK(d.ID()) // dropped
		}
		return sinksdk.ResponseFailure(d.ID(), "no tokens: "+string(why.Reason))
	}
	handler := sinker.Wrap(sinksdk.SinkerFunc(post), limiter,
		sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.DenyFunc(deny)))
	for _, r := range handler.Sink(context.Background(), batchOf("a")) {
		fmt.Println(r.ID, r.Err)
	}
	// Output: a no tokens: limit
}

// Tenants share a limit; a tenant that is short of tokens holds up nobody else.
func ExampleWithTag() {
	limiter := throttletest.New()

	handler := sinker.Wrap(sinksdk.SinkerFunc(post), limiter,
		sinker.WithTag(sinker.TagFromHeader("tenant")), sinker.WithCost(sinker.CostBytes(1024)))
	responses := handler.Sink(context.Background(), batchOf("a", "b"))
	sort.Slice(responses, func(i, j int) bool { return responses[i].ID < responses[j].ID })
	fmt.Println(responses[0].ID, responses[1].ID)
	// Output: a b
}

// The real cost is known only after the call: here one token for each byte stored.
func ExampleWithSettle() {
	limiter := throttletest.New()

	handler := sinker.Wrap(sinksdk.SinkerFunc(post), limiter,
		sinker.WithCost(func(sinksdk.Datum) int { return 100 }), // an estimate
		sinker.WithSettle(func(d sinksdk.Datum, r sinksdk.Response) int {
			if !r.Success {
				return 1
			}
			return len(d.Value())
		}))
	handler.Sink(context.Background(), batchOf("seventeen letters"))
	fmt.Println(limiter.Used())
	// Output: 17
}
