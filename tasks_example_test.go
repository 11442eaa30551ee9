package numathrottle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A webhook that bans callers above 1000 requests an hour: in no window of an hour are there more.
func Example_webhook() {
	limiter, err := numathrottle.Open(context.Background(), numathrottle.Config{
		Limit: throttle.Limit{Max: 1000, Per: time.Hour, Hard: true},
		Store: "memory://webhook", Pool: "webhook", // redis:// or nats:// to share the limit over pods
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()
	fmt.Println("hard:", limiter.Limit().Hard, "max:", limiter.Limit().Max)
	// Output: hard: true max: 1000
}

// One noisy tenant: acme gets 200 of 1000 whenever it asks, and noisy never more than 300.
func Example_noisyTenant() {
	ctx := context.Background()
	limiter, err := numathrottle.Open(ctx, numathrottle.Config{
		Limit: throttle.Limit{Max: 1000},
		Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{
			"acme":  {Reserved: 200},
			"noisy": {Total: 300},
		}},
		Store: "memory://tenants", Pool: "tenants",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	permit, err := limiter.ForTag("acme").Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tokens of acme:", permit.N())
	// Output: tokens of acme: 1
}
