package open_test

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/open"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func ExampleOpen() {
	ctx := context.Background()
	limiter, err := open.Open(ctx, open.Config{
		Limit: throttle.Limit{Max: 600, Per: time.Minute},
		Store: "memory://example", // with an import of pkg/open/redis also redis://host:6379
		Pool:  "geocoder",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close() // leaves the pool; after the server has stopped

	permit, err := limiter.Acquire(ctx, 1)
	fmt.Println("tokens:", permit.N(), err)
	// Output: tokens: 1 <nil>
}

func ExampleInFlight() {
	ctx := context.Background()
	slots, err := open.InFlight(ctx, 32, open.Config{Store: "memory://example", Pool: "geocoder/in-flight"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer slots.Close()

	permit, err := slots.Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer permit.Cancel() // the call has ended
	fmt.Println("calls in flight:", permit.N())
	// Output: calls in flight: 1
}
