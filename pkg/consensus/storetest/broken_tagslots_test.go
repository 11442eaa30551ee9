package storetest_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// eachSlots is a fault in how slots of tags are understood.
func eachSlots(spoil func(*driver.TagSlots)) func(*driver.Request) {
	return func(r *driver.Request) {
		r.TagSlots = slices.Clone(r.TagSlots)
		for i := range r.TagSlots {
			spoil(&r.TagSlots[i])
		}
	}
}

// eachGrant is a fault in what is granted.
func eachGrant(spoil func(ans *driver.Answer, s driver.TagSlots, g *driver.TagGrant)) func(driver.Request, *driver.Answer) {
	return func(r driver.Request, ans *driver.Answer) {
		for i := range ans.TagSlots {
			spoil(ans, r.TagSlots[i], &ans.TagSlots[i])
		}
	}
}

// eachTagClaim spoils the slots on record after every step.
func eachTagClaim(spoil func(*driver.Row, *driver.TagClaim)) func(*driver.Record, driver.At) {
	return eachRow(func(w *driver.Row) {
		w.TagClaims = slices.Clone(w.TagClaims)
		for i := range w.TagClaims {
			spoil(w, &w.TagClaims[i])
		}
	})
}

// keepsTags puts the slots of tags that a row had before back into it.
func keepsTags() func(*driver.Record, driver.At) {
	before := map[driver.RowKey][]driver.TagClaim{}
	return eachRow(func(w *driver.Row) {
		claims := slices.Clone(w.TagClaims)
		for _, c := range before[w.RowKey] {
			if !slices.ContainsFunc(claims, func(now driver.TagClaim) bool { return now.Key == c.Key }) {
				claims = append(claims, c)
			}
		}
		slices.SortFunc(claims, func(a, b driver.TagClaim) int { return cmp.Compare(a.Key, b.Key) })
		w.TagClaims, before[w.RowKey] = claims, claims
	})
}

// slotFaults break rules of the slots of tags.
var slotFaults = map[string]fault{
	"slots of tags are ignored": {
		found:   "slots of a tag that are granted leave no room for others",
		request: func(r *driver.Request) { r.TagSlots = nil },
	},
	"slots granted are no claim": {
		found:  "slots of a tag that are granted leave no room for others",
		record: eachTagClaim(func(_ *driver.Row, c *driver.TagClaim) { c.Granted = 0 }),
	},
	"slots are free when fewer are wanted": {
		found:   "slots of a tag are free only once fewer are in use",
		request: eachSlots(func(s *driver.TagSlots) { s.InUse = min(s.InUse, s.Wanted) }),
	},
	"slots in use beyond the total are granted": {
		found: "slots in use count, and are given up by who uses too many",
		answer: eachGrant(func(_ *driver.Answer, s driver.TagSlots, g *driver.TagGrant) {
			g.Granted = max(g.Granted, min(s.InUse, s.Wanted))
		}),
	},
	"slots of tags are kept until they are named again": {
		found:  "slots of a tag that is not named any more are free",
		record: keepsTags(),
	},
	"a tag without a total has no slots": {
		found:   "each tag has its own slots, and none are bounded without a total",
		request: eachSlots(func(s *driver.TagSlots) { s.Total = max(s.Total, 1) }),
	},
	"slots of closed rows are free": {
		found: "slots of who leaves are free, and of who is replaced only after the removal time",
		record: eachRow(func(w *driver.Row) {
			if w.State != driver.RowLive {
				w.TagClaims = nil
			}
		}),
	},
	"slots of clones are free": {
		found: "slots of the dead are free, and not those of a clone",
		record: eachRow(func(w *driver.Row) {
			if w.State == driver.RowCloned {
				w.TagClaims = nil
			}
		}),
	},
	"a repeat is granted other slots": {
		found: "a repeat is granted the same slots",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			ans, err := s.Sync(ctx, req)
			for i := range ans.TagSlots {
				ans.TagSlots[i].Granted -= min(ans.TagSlots[i].Granted, int64(ans.Live-1))
			}
			return ans, err
		},
	},
	"keys are floats": {
		found:   "slots of many tags are kept exactly, and shown to all",
		request: eachSlots(func(s *driver.TagSlots) { s.Key &^= 1 }),
		answer:  eachGrant(func(_ *driver.Answer, s driver.TagSlots, g *driver.TagGrant) { g.Key = s.Key }),
	},
	"slots grow in a frozen pool": {
		found: "an older record lets no slots grow, and counts those in use beside its own",
		answer: eachGrant(func(ans *driver.Answer, s driver.TagSlots, g *driver.TagGrant) {
			if ans.Frozen > 0 {
				g.Granted = s.Wanted
			}
		}),
	},
	"slots that a store has forgotten don't count": {
		found: "an older record lets no slots grow, and counts those in use beside its own",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			s.mu.Lock()
			if e := s.pools[req.Pool]; e != nil && req.Validate() == nil {
				if ans, _ := e.clone().rec.Sync(&req, s.at(e)); ans.Status == driver.Behind {
					req.TagSlots = nil
				}
			}
			s.mu.Unlock()
			return s.Sync(ctx, req)
		},
	},
	"old totals count": {
		found:   "slots of a tag grow only by the newest totals",
		request: func(r *driver.Request) { r.TagSlotsBy = "" },
	},
	"bad slots pass": {
		found: "malformed slots are a RequestError and change nothing",
		sync: func(ctx context.Context, s *server, req driver.Request) (driver.Answer, error) {
			eachSlots(func(s *driver.TagSlots) { s.Wanted = min(max(s.Wanted, 0), wire.MaxTokens) })(&req)
			return s.Sync(ctx, req)
		},
	},
	"steps with slots are not atomic": {found: "many processors at once never use more slots of a tag than its total", sync: syncInTwo},
}
