package fairtags_test

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The scenarios of GlobalTagThrottling are those of FoundationDB's tests of that name, with its numbers: servers take
// capacity pages a second, a tag has a total and perhaps something reserved, clients make calls of so many pages. The
// limit is what all servers could do when they are well.
var globalTagThrottling = []scenario{
	{
		name: "Simple", says: "a total of 100, 5 calls of 6: target 16.7 calls", fdb: "24 s",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 5, 6}},
		stages: []stage{{reached: both(target(0, 16.7), nobodyWaits)}},
	},
	{
		name: "WriteThrottling", says: "5 writes of 6, which cost four times as much: target 4.17", fdb: "25 s",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 5, 4 * 6}},
		stages: []stage{{reached: both(target(0, 4.17), uses(0, 100))}},
	},
	{
		name: "MultiTagThrottling", says: "two tags as in Simple: 16.7 each", fdb: "24 s",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100), quota(0, 100)}, clients: []client{{0, 0, 5, 6}, {0, 1, 5, 6}},
		stages: []stage{{reached: both(target(0, 16.7), target(1, 16.7), nobodyWaits)}},
	},
	{
		name: "AttemptWorkloadAboveQuota", says: "20 calls of 10 with a total of 100: 10 calls", fdb: "23 s",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 20, 10}},
		stages: []stage{{reached: both(target(0, 10), uses(0, 100))}},
	},
	{
		name: "MultiClientThrottling", says: "two clients of 5 calls of 6 below a total of 100: nobody is held back", fdb: "29 s",
		limit: 1000, processors: 2, tags: []fairtags.Terms{quota(0, 100)}, clients: everywhere(2, 0, 5, 6),
		stages: []stage{{
			reached: both(target(0, 16.7), usesAt(0, 0, 30), usesAt(0, 1, 30), nobodyWaits),
		}},
	},
	{
		name: "MultiClientThrottling2", says: "two clients of 20 calls of 10: 5 calls each", fdb: "49 s",
		limit: 1000, processors: 2, tags: []fairtags.Terms{quota(0, 100)}, clients: everywhere(2, 0, 20, 10),
		stages: []stage{{reached: both(target(0, 10), usesAt(0, 0, 50), usesAt(0, 1, 50))}},
	},
	{
		name: "SkewedMultiClientThrottling", says: "5 and 25 calls of 5 with a total of 100: 5 and 15 calls", fdb: "53 s",
		limit: 1000, processors: 2, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 5, 5}, {1, 0, 25, 5}},
		stages: []stage{{reached: both(target(0, 20), usesAt(0, 0, 25), usesAt(0, 1, 75))}},
	},
	{
		name: "UpdateQuota", says: "a total of 100, then of 50: 16.7, then 8.33", fdb: "24 + 24 s",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 5, 6}},
		stages: []stage{
			{reached: target(0, 16.7)},
			{change: total(0, 50), reached: both(target(0, 8.33), nobodyWaits)},
		},
	},
	{
		name: "RemoveQuota", says: "a total of 100, then none: no bound but the limit", fdb: "24 + 1 s",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 5, 6}},
		stages: []stage{
			{reached: target(0, 16.7)},
			{change: total(0, inf), reached: both(target(0, 1000./6), nobodyWaits)},
		},
	},
	{
		name: "ActiveThrottling", says: "servers that take 50 in all, and a total of 100: the servers' 8.33 calls", fdb: "23 s",
		limit: 1000, zones: same(10, 5), tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 10, 6}},
		stages: []stage{{reached: both(target(0, 8.33), uses(0, 50), busy(1))}},
	},
	{
		name: "MultiTagActiveThrottling1", says: "two tags with totals of 50 and 100 on those: 8.33 calls together", fdb: "26 s",
		limit: 1000, zones: same(10, 5), tags: []fairtags.Terms{quota(0, 50), quota(0, 100)}, clients: []client{{0, 0, 10, 6}, {0, 1, 10, 6}},
		stages: []stage{{reached: both(targets(8.33), busy(2))}},
	},
	{
		name: "MultiTagActiveThrottling2", says: "two tags that share one of three servers of 50: 16.7 calls together", fdb: "23 s",
		limit: 1000, zones: same(3, 50), tags: []fairtags.Terms{quota(0, 100), quota(0, 100)}, on: [][]int{{0, 1}, {1, 2}},
		clients: []client{{0, 0, 10, 6}, {0, 1, 10, 6}},
		stages:  []stage{{reached: both(targets(16.7), busy(2))}},
	},
	{
		name: "MultiTagActiveThrottling3", says: "a tag on one server of 50, another on two: 8.33, and 16.7 of its total", fdb: "23 s",
		limit: 1000, zones: same(3, 50), tags: []fairtags.Terms{quota(0, 100), quota(0, 100)}, on: [][]int{{0}, {1, 2}},
		clients: []client{{0, 0, 10, 6}, {0, 1, 10, 6}},
		stages:  []stage{{reached: both(target(0, 8.33), target(1, 16.7), uses(1, 60), busy(1))}},
	},
	{
		name: "ReservedQuota", says: "70 reserved where the servers take 50: 11.7 calls", fdb: "13 s",
		limit: 1000, zones: same(10, 5), tags: []fairtags.Terms{quota(70, 100)}, clients: []client{{0, 0, 10, 6}},
		stages: []stage{{reached: both(target(0, 11.7), uses(0, 60), nobodyWaits)}},
	},
	{
		name: "ExpireTags", says: "a tag that asks for nothing any more is not in the plan", fdb: "after 240 s",
		limit: 1000, zones: same(10, 5), tags: []fairtags.Terms{quota(0, inf)}, clients: []client{{0, 0, 10, 6}},
		stages: []stage{{reached: tracked(1)}, {change: calls(0, 0), reached: tracked(0)}},
	},
	{
		name: "TagLimit", says: "20 names without a quota are one tag beside a known one; it keeps half", fdb: "10 of them have no limit",
		limit: 60, tags: []fairtags.Terms{quota(0, inf)}, clients: append(names(20, 10, 6), client{0, 0, 10, 6}),
		stages: []stage{{reached: both(tracked(2), uses(0, 30))}},
	},
	{
		name: "IgnoreWorstZone", says: "one of ten servers in a bad state, then two: 16.7, then 1.67 calls", fdb: "24 + 65 s",
		limit: 1000, zones: same(10, 100), tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 5, 6}},
		stages: []stage{
			{change: capacity(0, 1), reached: both(target(0, 16.7), nobodyWaits)},
			{change: capacity(1, 1), reached: both(target(0, 1.67), uses(0, 10))},
		},
	},
}

// tracked: so many tags ask for something, all without a quota as one.
func tracked(tags int) func(w *world) error {
	return func(w *world) error {
		n := 0
		for _, t := range w.processors[0].plan.Targets {
			if t.Demand > 0 {
				n++
			}
		}
		return exactly("tags that are tracked", tags, n)
	}
}

// names are clients of tags without a quota.
func names(n int, calls, cost float64) (clients []client) {
	for i := range n {
		clients = append(clients, client{0, -1 - i, calls, cost})
	}
	return clients
}

// Those of GrvProxyTagThrottler are of one proxy, or of several clients of one.
var grvProxyTagThrottler = []scenario{
	{
		name: "Simple", says: "a total of 10, 20 calls a second for a minute: 600",
		limit: 1000, tags: []fairtags.Terms{quota(0, 10)}, clients: []client{{0, 0, 20, 1}},
		stages: []stage{{lasts: 60, reached: granted(0, 60, 600)}},
	},
	{
		name: "MultiClient", says: "a total of 30, ten clients of 10 calls a second for a minute: 1,800",
		limit: 1000, processors: 10, tags: []fairtags.Terms{quota(0, 30)}, clients: everywhere(10, 0, 10, 1),
		stages: []stage{{lasts: 60, reached: granted(0, 60, 1800)}},
	},
	{
		name: "MultiTag", says: "two tags with a total of 10, 20 calls a second each for a minute: 600 each",
		limit: 1000, tags: []fairtags.Terms{quota(0, 10), quota(0, 10)}, clients: []client{{0, 0, 20, 1}, {0, 1, 20, 1}},
		stages: []stage{{lasts: 60, reached: both(granted(0, 60, 600), granted(1, 60, 600))}},
	},
	{
		name: "Batch", says: "the same with 4 draws of 5 a second",
		limit: 1000, tags: []fairtags.Terms{quota(0, 10), quota(0, 10)}, clients: []client{{0, 0, 4, 5}, {0, 1, 4, 5}},
		stages: []stage{{lasts: 60, reached: both(granted(0, 60, 600), granted(1, 60, 600))}},
	},
	{
		name: "Cleanup1", says: "1,100 tags one after the other, each with a total: one or two in the plan, at most 2,048 tag buckets",
		limit: 1000, tags: slices.Repeat([]fairtags.Terms{quota(0, 100)}, 1100), clients: []client{{0, 0, 1, 6}},
		stages: []stage{{lasts: 1100, during: func(w *world) { w.clients[0].tag = w.looks }, always: func(w *world) error {
			if tagBuckets := len(w.record.TagBuckets); tagBuckets > wire.MaxTagBuckets {
				return fmt.Errorf("%d tills", tagBuckets)
			}
			if w.looks > 1 && tracked(1)(w) != nil {
				return tracked(2)(w)
			}
			return nil
		}}},
	},
	{
		name: "Cleanup2", says: "a tag above its total is in the plan until it asks for nothing",
		limit: 1000, tags: []fairtags.Terms{quota(0, 10)}, clients: []client{{0, 0, 20, 1}},
		stages: []stage{{reached: both(tracked(1), uses(0, 10))}, {change: calls(0, 0), reached: tracked(0)}},
	},
	{
		name: "Fifo", says: "2,000 calls a second of two tags below the limit: none waits, so that they stay in order",
		limit: 4000, tags: []fairtags.Terms{quota(0, inf), quota(0, inf)}, clients: []client{{0, 0, 1000, 1}, {0, 1, 1000, 1}},
		stages: []stage{{reached: nobodyWaits}},
	},
	{
		name: "LimitedIdleBudget", says: "a total of 100, a minute of nothing, then 200 a second for a minute: 6,000",
		limit: 1000, tags: []fairtags.Terms{quota(0, 100)}, clients: []client{{0, 0, 0, 1}},
		stages: []stage{{lasts: 60}, {change: calls(0, 200), lasts: 60, reached: granted(0, 60, 6000)}},
	},
}
