package numathrottle_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func ExampleOpen() {
	ctx := context.Background()
	limiter, err := numathrottle.Open(ctx, numathrottle.Config{
		Limit: throttle.Limit{Max: 600, Per: time.Minute},
		Store: "memory://", // redis://host:6379 or nats://host:4222 to share the limit over pods
		Pool:  "geocoder",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close() // leaves the pool

	permit, err := limiter.Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err) // says why, and when to try again
		return
	}
	fmt.Println("tokens:", permit.N())
	// Output: tokens: 1
}

func ExampleOpen_faults() {
	_, err := numathrottle.Open(context.Background(), numathrottle.Config{
		Limit: throttle.Limit{Max: -1},
		Store: "redis://user:secret@host:port",
		Lease: time.Hour,
	})
	fmt.Println(err)
	// Output:
	// numathrottle: max is "-1", allowed: a whole number, 0 to 1000000000
	// numathrottle: lease is "1h", allowed: a duration in whole milliseconds, `3s` to `10s`
	// numathrottle: store has a port that is not a number from 1 to 65535 (host 1), allowed: redis://HOST:PORT/DB; a user name and password go before an @
}

func ExampleFromEnv() {
	os.Setenv("NUMATHROTTLE_MAX", "100")
	os.Setenv("NUMATHROTTLE_STORE", "static://?replicas=4")
	defer os.Unsetenv("NUMATHROTTLE_MAX")
	defer os.Unsetenv("NUMATHROTTLE_STORE")

	limiter, err := numathrottle.FromEnv(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	fmt.Printf("%d per %s over the pool, %.0f here\n", limiter.Limit().Max, limiter.Limit().Per, limiter.Status().Rate)
	// Output: 100 per 1s over the pool, 25 here
}

func ExampleLoad() {
	os.Setenv("NUMATHROTTLE_MAX", "100")
	os.Setenv("NUMATHROTTLE_STORE", "nats://user:secret@nats:4222")
	os.Setenv("NUMATHROTTLE_POOL", "geocoder")
	os.Setenv("NUMATHROTTLE_ID", "pod-0")
	defer os.Unsetenv("NUMATHROTTLE_MAX")
	defer os.Unsetenv("NUMATHROTTLE_STORE")
	defer os.Unsetenv("NUMATHROTTLE_POOL")
	defer os.Unsetenv("NUMATHROTTLE_ID")

	c, err := numathrottle.Load()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c)
	// Output: {max: 100, store: nats://nats:4222, pool: geocoder, id: pod-0, storeUsername: user, storePassword: (set, not shown)}
}
