package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func ExampleThrottle() {
	// A thousand tokens per second, of which ten can be saved up.
	limiter, err := throttle.New(throttle.Limit{Max: 1000, Burst: 10}, throttle.WithName("llm"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limiter.Close() }()

	// A call that may cost up to eight tokens waits for them, and settles what it
	// really cost. Without a call of Settle it would count as eight.
	permit, err := limiter.Acquire(context.Background(), 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("granted:", permit.N())
	permit.Settle(3)

	// A deadline that is too near is told at once.
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err = limiter.Acquire(ctx, 1000)
	if refused, ok := errors.AsType[*throttle.Error](err); ok {
		fmt.Println("refused:", refused.Reason, errors.Is(err, throttle.ErrThrottled), refused.RetryAfter > 500*time.Millisecond)
	}
	// Output:
	// granted: 8
	// refused: limit true true
}

func ExampleThrottle_AcquireUpTo() {
	limiter, err := throttle.New(throttle.Limit{Max: 10_000, Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limiter.Close() }()

	// A batch of twelve goes out in parts, each as large as there are tokens.
	for left := 12; left > 0; {
		permit, err := limiter.AcquireUpTo(context.Background(), left)
		if err != nil {
			fmt.Println(err)
			return
		}
		left -= permit.N()
	}
	fmt.Println("sent:", limiter.Status().Granted)
	// Output: sent: 12
}

func ExampleNewPermit() {
	permit := throttle.NewPermit(8, func(used int) { fmt.Println("settled:", used) })
	defer permit.Cancel() // does nothing: the permit is settled by then
	permit.Settle(3)
	// Output: settled: 3
}

func ExampleLimit_strict() {
	// At most one call every 20 ms, and no saved-up bursts. Here within one process; with
	// throttle.WithSharer and a *consensus.Member over all processors of a pool.
	limiter, err := throttle.New(throttle.Limit{Max: 1, Per: 20 * time.Millisecond, Strict: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limiter.Close() }()
	ping := throttle.Func(limiter, func(_ context.Context, _ string) (time.Time, error) { return time.Now(), nil })

	var last time.Time
	for range 3 {
		at, err := ping(context.Background(), "host")
		fmt.Println("a slot later:", at.Sub(last) > 10*time.Millisecond, err)
		last = at
	}
	// Output:
	// a slot later: true <nil>
	// a slot later: true <nil>
	// a slot later: true <nil>
}

func ExamplePermit_Report() {
	limiter, err := throttle.New(throttle.Limit{Max: 100, Adaptive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limiter.Close() }()
	for _, outcome := range []throttle.Outcome{throttle.OutcomeAccepted, throttle.OutcomeRefused} {
		permit, err := limiter.Acquire(context.Background(), 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		permit.Report(outcome) // as the called service has it
		status := limiter.Status()
		fmt.Printf("%.0f of 100 per second\n", status.Ceiling())
	}
	// Output:
	// 100 of 100 per second
	// 49 of 100 per second
}
