package storetest_test

import (
	"context"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// eachDraw is a fault in how draws are understood.
func eachDraw(spoil func(*driver.Draw)) func(*driver.Request) {
	return func(r *driver.Request) {
		r.Draws = slices.Clone(r.Draws)
		for i := range r.Draws {
			r.Draws[i].Budgets = slices.Clone(r.Draws[i].Budgets)
			spoil(&r.Draws[i])
		}
	}
}

// tagBucketFaults break rules of tag buckets.
var tagBucketFaults = map[string]fault{
	"draws are ignored": {found: "a tag bucket gives what its total earns, whoever draws", request: func(r *driver.Request) { r.Draws = nil }},
	"everybody has tag buckets of their own": {
		found: "a tag bucket gives what its total earns, whoever draws",
		request: func(r *driver.Request) {
			key := uint64(r.ID[0])
			eachDraw(func(d *driver.Draw) { d.Key ^= key << 32 })(r)
		},
		answer: func(r driver.Request, ans *driver.Answer) {
			for i := range ans.Draws {
				ans.Draws[i].Key = r.Draws[i].Key
			}
		},
	},
	"all is saved up": {found: "no more is saved up than the burst", request: eachDraw(func(d *driver.Draw) { d.Burst = wire.MaxTokens })},
	"what is reserved is given on credit": {
		found: "what is larger than an interval earns is reserved",
		answer: func(_ driver.Request, ans *driver.Answer) {
			for i := range ans.Draws {
				ans.Draws[i].From = 0
			}
		},
	},
	"what is given back to tag buckets is lost": {
		found:   "what is given back can be drawn again",
		request: eachDraw(func(d *driver.Draw) { d.Back = 0 }),
	},
	"whatever is given back to tag buckets counts": {
		found: "what is given back counts only once",
		request: func(r *driver.Request) {
			if n := len(r.Unanswered); n > 0 && len(r.Draws) > 0 {
				r.LastSeq, r.LastNonce = r.Unanswered[n-1].Seq, r.Unanswered[n-1].Nonce
			}
		},
	},
	"what is owed is forgiven": {found: "what is owed counts", request: eachDraw(func(d *driver.Draw) { d.Owed = 0 })},
	"versions of quotas are ignored": {
		found:   "who has an older version of the quotas draws nothing",
		request: eachDraw(func(d *driver.Draw) { d.Version = 0 }),
	},
	"a full table forgets budgets": {
		found: "a full table drops tag buckets that are full",
		record: func(r *driver.Record, _ driver.At) {
			if len(r.TagBuckets) == wire.MaxTagBuckets {
				r.TagBuckets = slices.Clone(r.TagBuckets[1:])
			}
		},
	},
	"names are tags like others": {
		found:   "names that go by a pattern make way for each other, and for nobody else",
		request: eachDraw(func(d *driver.Draw) { d.Pattern = false }),
	},
	"what dropped names have spent is forgotten": {
		found:  "what names have spent counts when their tag buckets are dropped",
		record: func(r *driver.Record, _ driver.At) { r.Names.Cells = nil },
	},
	"dropped names have their burst again": {
		found: "names that go by a pattern make way for each other, and for nobody else",
		record: func(r *driver.Record, _ driver.At) {
			r.Names.Cells = slices.DeleteFunc(slices.Clone(r.Names.Cells), func(c driver.Cell) bool { return c.Index >= wire.MaxCells/2 })
		},
	},
	"who has a quota by name starts anew": {
		found:  "a name that gets a quota of its own keeps what it has spent",
		record: func(r *driver.Record, _ driver.At) { r.Names.TagBuckets = nil },
	},
	"budgets are ignored": {
		found: "a budget is for all together",
		request: eachDraw(func(d *driver.Draw) {
			for i := range d.Budgets {
				d.Budgets[i].Amount = wire.MaxAmount
			}
		}),
	},
	"a budget is for all times": {
		found: "a budget is for all together",
		request: eachDraw(func(d *driver.Draw) {
			for i := range d.Budgets {
				d.Budgets[i].Start, d.Budgets[i].End = 0, 1<<52
			}
		}),
	},
	"tag buckets are not held after a freeze": {
		found: "a store that has forgotten gives nothing until what it gave is void",
		record: func(r *driver.Record, _ driver.At) {
			if r.FrozenUntil > 0 {
				r.FrozenUntil = 1
			}
		},
	},
	"what is seen spent adds up": {
		found: "what processors have seen spent counts once after a freeze",
		request: eachDraw(func(d *driver.Draw) {
			for i := range d.Budgets {
				d.Budgets[i].Seen *= 2
			}
		}),
	},
	"nobody is told what is busy": {
		found: "what is busy is shown to all",
		answer: func(_ driver.Request, ans *driver.Answer) {
			for i := range ans.Roster {
				ans.Roster[i].Busy = ""
			}
		},
	},
	"bad draws pass": {
		found: "a malformed draw is a RequestError and changes nothing",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			eachDraw(func(d *driver.Draw) { d.Owed = max(d.Owed, 0) })(&req)
			return s.Sync(ctx, req)
		},
	},
	"the clock is not told": {found: "the store tells its own clock", answer: func(_ driver.Request, ans *driver.Answer) { ans.Wall = 0 }},
}
