package consensus_test

import (
	"context"
	"fmt"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Two processes share a limit of 100 tokens per second; here they are in one program, with a store in memory.
func ExampleJoin() {
	store := memstore.New()
	for _, id := range []string{"a", "b"} {
		member, err := consensus.Join(context.Background(), store, "geocoder", consensus.WithID(id), consensus.WithFailFast())
		if err != nil {
			fmt.Println(err)
			return
		}
		limiter, err := throttle.New(throttle.Limit{Max: 100}, throttle.WithSharer(member), throttle.OnClose(member.Leave))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer limiter.Close() //nolint:revive // both until the end
		view := member.View()
		fmt.Println(view.ID, view.State, view.Live)
	}
	// Output:
	// a holding 1
	// b holding 2
}
