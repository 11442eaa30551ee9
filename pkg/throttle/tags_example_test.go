package throttle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A tenant has 30 of 100 tokens per second for itself, another one at most 20, and all others share 10.
func ExampleWithQuotas() {
	limiter, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithQuotas(throttle.Quotas{
		Tags:  map[string]throttle.Quota{"acme": {Reserved: 30}, "globex": {Total: 20}},
		Other: throttle.Quota{Total: 10, Burst: 1},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	for _, tag := range []string{"acme", "unknown"} {
		permit, err := limiter.ForTag(tag).Acquire(context.Background(), 1)
		fmt.Println(tag, permit.N(), err)
	}
	// Output:
	// acme 1 <nil>
	// unknown 1 <nil>
}

// A call for a tenant and a model draws from both quotas, and once from the limit.
func ExampleForTags() {
	limiter, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{"acme": {Total: 50}, "large-model": {Total: 5, Burst: 1}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	both := throttle.ForTags(limiter, "acme", "large-model")
	permit, err := both.Acquire(context.Background(), 1)
	fmt.Println(permit.N(), err)
	// Output:
	// 1 <nil>
}

// Tokens and requests of one service: a draw of 1,200 takes 1,200 tokens and one request.
func ExamplePerCall() {
	tokens, err := throttle.New(throttle.Limit{Max: 200_000, Per: time.Minute, Burst: 200_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tokens.Close()
	requests, err := throttle.New(throttle.Limit{Max: 500, Per: time.Minute, Burst: 500})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer requests.Close()
	permit, err := throttle.All(tokens, throttle.PerCall(requests)).Acquire(context.Background(), 1200)
	fmt.Println(permit.N(), requests.Status().Granted, err)
	permit.Settle(900) // the answer used less
	fmt.Println(tokens.Status().Returned)
	// Output:
	// 1200 1 <nil>
	// 300
}

// Everybody stops until the service is well again.
func ExampleThrottle_Pause() {
	limiter, err := throttle.New(throttle.Limit{Max: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	_, err = limiter.Pause(context.Background(), time.Time{}, "the service is down")
	held, paused := limiter.Throttled()
	fmt.Println(paused, held.Reason, held.Paused.Reason, err)
	fmt.Println(limiter.Resume(context.Background()))
	// Output:
	// true pause the service is down <nil>
	// <nil>
}
