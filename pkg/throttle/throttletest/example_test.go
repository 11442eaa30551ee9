package throttletest_test

import (
	"context"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// call is the code under test: it gives its tokens back when it had nothing to do.
func call(ctx context.Context, l throttle.Limiter, work bool) error {
	permit, err := l.Acquire(ctx, 2)
	if err != nil {
		return err
	}
	if !work {
		permit.Cancel()
	}
	return nil
}

func Example() {
	l := throttletest.New(throttletest.Grant(), throttletest.Grant(), throttletest.Deny(nil))
	for _, work := range []bool{true, false, true} {
		if err := call(context.Background(), l, work); err != nil {
			fmt.Println("refused:", err)
		}
	}
	for _, d := range l.Draws() {
		fmt.Println(d.Method, d.Cost, "granted", d.Granted, "used", d.Used)
	}
	// Output:
	// refused: numathrottle: 2 tokens cannot be had in time (limit)
	// Acquire 2 granted 2 used 2
	// Acquire 2 granted 2 used 0
	// Acquire 2 granted 0 used 0
}
