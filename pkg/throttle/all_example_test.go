package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// answer stands for a call of a model: its text and the tokens that it cost.
func answer(context.Context, string) (text string, used int, err error) { return "hello", 800, nil }

// A service allows so many requests and so many tokens per minute, and so many calls at
// once. Each call draws one request, one slot, and the tokens that it may cost.
func ExampleAll() {
	requests, err := throttle.New(throttle.Limit{Max: 60_000, Per: time.Minute}, throttle.WithName("requests"))
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := throttle.New(throttle.Limit{Max: 6_000_000, Per: time.Minute}, throttle.WithName("tokens"))
	if err != nil {
		fmt.Println(err)
		return
	}
	slots, err := throttle.NewInFlight(8, throttle.WithName("slots"))
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := throttle.All(tokens, throttle.PerCall(requests), throttle.PerCall(slots))

	permit, err := limiter.Acquire(context.Background(), 1200)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("drawn:", tokens.Status().Granted, "tokens,", requests.Status().Granted, "request,", slots.Status().InUse, "slot")
	_, used, err := answer(context.Background(), "hi")
	permit.Settle(used) // one settlement for all three
	fmt.Println("in use:", slots.Status().InUse, err)

	// A deadline that is too near is told at once, by the limit that is the scarcest.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = limiter.Acquire(ctx, 6_000_000)
	if refused, ok := errors.AsType[*throttle.Error](err); ok {
		fmt.Println("refused:", refused.Limit, refused.RetryAfter > 50*time.Second)
	}
	// Output:
	// drawn: 1200 tokens, 1 request, 1 slot
	// in use: 0 <nil>
	// refused: tokens true
}

func ExampleWeigh() {
	bytes, err := throttle.New(throttle.Limit{Max: 1_000_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := throttle.New(throttle.Limit{Max: 1_000_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := throttle.All(tokens, throttle.Weigh(bytes, func(n int) int { return 4 * n }))
	permit, err := limiter.Acquire(context.Background(), 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(permit.N(), tokens.Status().Granted, bytes.Status().Granted)
	// Output: 10 10 40
}

func ExampleFunc() {
	limiter, err := throttle.New(throttle.Limit{Max: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	length := func(_ context.Context, s string) (int, error) { return len(s), nil }
	length = throttle.Func(limiter, length) // a thousand calls per second
	n, err := length(context.Background(), "four")
	fmt.Println(n, err, limiter.Status().Granted)
	// Output: 4 <nil> 1
}

func ExampleInFlight() {
	limiter, err := throttle.NewInFlight(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _ := limiter.TryAcquire(1)
	_, second := limiter.TryAcquire(1)
	_, third := limiter.TryAcquire(1)
	first.Settle(1) // the call is over
	_, fourth := limiter.TryAcquire(1)
	fmt.Println(second, third, fourth)
	// Output: true false true
}

// The cost of a call is known only afterwards: draw what the last ones cost on average.
func ExampleEstimator() {
	limiter, err := throttle.New(throttle.Limit{Max: 1_000_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	costs, err := throttle.NewEstimator(1200, 8000)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		permit, err := limiter.Acquire(context.Background(), costs.Estimate())
		if err != nil {
			fmt.Println(err)
			return
		}
		_, used, err := answer(context.Background(), "hi")
		if err != nil {
			permit.Cancel() // nothing was called
			return
		}
		permit.Settle(used)
		costs.Observe(used)
		fmt.Println("drawn", permit.N(), "used", used)
	}
	// Output:
	// drawn 1200 used 800
	// drawn 1162 used 800
	// drawn 1127 used 800
}
