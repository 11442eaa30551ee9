package operate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// An operator looks at a pool of one pod, lowers its limit, changes a quota and pauses a tag. A program for a store that pods share opens it with
// numathrottle.OpenStore.
func Example() {
	ctx := context.Background()
	store := memstore.New()
	limits := throttle.Limit{Max: 600, Per: time.Minute}
	pod, err := consensus.Join(ctx, store, "orders", consensus.WithID("pod-0"))
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter, err := throttle.New(limits, throttle.WithSharer(pod), throttle.WithQuotas(throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 40}}}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limiter.Close()

	pool := operate.Pool{Store: store, Name: "orders"}
	var o operate.Overview
	for o.Max == 0 { // a pod tells its limit with its second sync
		time.Sleep(time.Millisecond)
		if o, err = pool.Overview(ctx); err != nil {
			continue // nobody has synced yet
		}
	}
	fmt.Println(len(o.Processors), "pod,", o.Max, "per", o.Per)

	saved, err := pool.SetLimit(ctx, operate.Override{Max: 300, Reason: "a sale", By: "ann"})
	fmt.Println(saved.Max, "per", saved.Per, err)
	acme, err := pool.Quota(ctx, "acme")
	acme.Quota.Total = 20
	fmt.Println(acme.Changed, err, pool.SetQuota(ctx, "acme", acme.Quota, false))
	fmt.Println(pool.Pause(ctx, throttle.Paused{Tag: "acme", Reason: "at night"}))
	ended, err := pool.Resume(ctx, "acme")
	fmt.Println(len(ended), "ended,", err)

	_, err = pool.SetLimit(ctx, operate.Override{Max: 100_000})
	fmt.Println(err)
	// Output:
	// 1 pod, 600 per 1m0s
	// 300 per 1m0s <nil>
	// false <nil> <nil>
	// <nil>
	// 1 ended, <nil>
	// consensus: Max per 1m is 100000, allowed: at most 64 times 600 per 1m, which pod "pod-0" is configured with
}
