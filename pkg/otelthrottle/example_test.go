package otelthrottle_test

import (
	"context"
	"log"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/otelthrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A limit that is put together by hand is watched in three places: its waits, its pool's
// syncs, and its totals.
func Example() {
	ctx := context.Background()
	telemetry, err := otelthrottle.New() // on the global providers
	if err != nil {
		log.Fatal(err)
	}
	member, err := consensus.Join(ctx, memstore.New(), "llm", consensus.WithOnSync(telemetry.OnSync("llm", "memory")))
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithName("llm"),
		throttle.WithSharer(member), throttle.OnClose(member.Leave), throttle.WithObserver(telemetry))
	if err != nil {
		log.Fatal(err)
	}
	stop, err := telemetry.Watch(otelthrottle.Watched{Throttle: limiter, Member: member})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		_ = limiter.Close()
		_ = stop()
	}()
	// Output:
}
