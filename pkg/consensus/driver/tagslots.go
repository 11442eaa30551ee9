package driver

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// TagSlots reports on the slots of one tag with a quota on calls in flight; see "Slots of tags" in the package documentation.
type TagSlots struct {
	// Key names the tag, as in Draw.
	Key uint64
	// InUse is how many slots the sender uses at most until it takes the answer: those of calls under way, and those in which it may still
	// begin a call. Wanted is how many its policy asks for in all, Demand how many it would use if it could. Each is 0 to 1e9; InUse and
	// Demand are not both 0.
	InUse, Wanted, Demand int64
	// Total is how many slots the tag may have over the whole pool: 0 to 1e9, 0 for no bound.
	Total int64
}

// A TagGrant is the answer to a TagSlots.
type TagGrant struct {
	Key uint64
	// Granted is how many slots the processor may use from now on. It may be below those that are in use: then the processor begins no call
	// of the tag until so many have ended.
	Granted int64
	// Claimed is what all other rows claim of the tag, and Demand what the live ones among them would use if they could.
	Claimed, Demand int64
}

// A TagClaim is what a row holds of one tag: InUse and Demand as its processor has reported, Granted as it was answered.
type TagClaim struct {
	Key                    uint64
	InUse, Granted, Demand int64
}

// Claim returns how many slots the store counts against the tag's total.
func (c *TagClaim) Claim() int64 { return max(c.InUse, c.Granted) }

// maxTagClaims is how many tags a row holds at most: those of two processes, see step.behind.
const maxTagClaims = 2 * wire.MaxTagSlots

// claimsOf returns the claims of a report before anything is granted.
func claimsOf(slots []TagSlots) []TagClaim {
	if len(slots) == 0 {
		return nil
	}
	claims := make([]TagClaim, len(slots))
	for i, s := range slots {
		claims[i] = TagClaim{Key: s.Key, InUse: s.InUse, Demand: s.Demand}
	}
	return claims
}

// withFacts returns the claims with what is reported in use counted beside them. New tags beyond the most that a row holds don't count: that
// takes three processes with hundreds of tags under one incarnation, and the pool is frozen until each has reported again.
func withFacts(claims []TagClaim, slots []TagSlots) []TagClaim {
	claims = slices.Clone(claims)
	for _, s := range slots {
		i, ok := findTagClaim(claims, s.Key)
		switch {
		case ok:
			claims[i].InUse = max(claims[i].InUse, s.InUse)
		case s.InUse > 0 && len(claims) < maxTagClaims:
			claims = slices.Insert(claims, i, TagClaim{Key: s.Key, InUse: s.InUse})
		}
	}
	return claims
}

func findTagClaim(claims []TagClaim, key uint64) (int, bool) {
	return slices.BinarySearchFunc(claims, key, func(c TagClaim, key uint64) int { return cmp.Compare(c.Key, key) })
}

// grantTags grants the slots of each tag that the request names as far as the claims of all other rows leave room under its total. The row's
// claims are those of claimsOf.
func (st *step) grantTags(row *Row, req *Request) {
	outdated := req.TagSlotsBy != "" && !st.newest(req, req.TagSlotsBy)
	for i, g := range st.rec.tagGrants(row, req.TagSlots) {
		s := &req.TagSlots[i]
		granted := st.allowed(s.InUse, s.Wanted)
		if outdated {
			granted = min(granted, s.InUse)
		}
		if s.Total > 0 {
			granted = min(granted, max(s.Total-g.Claimed, 0))
		}
		row.TagClaims[i].Granted = granted
	}
}

// tagGrants returns what a row is granted of the tags named, and what all others hold of them.
func (r *Record) tagGrants(row *Row, named []TagSlots) (grants []TagGrant) {
	for _, s := range named {
		grant := TagGrant{Key: s.Key}
		if i, ok := findTagClaim(row.TagClaims, s.Key); ok {
			grant.Granted = row.TagClaims[i].Granted
		}
		grants = append(grants, grant)
	}
	for i := range r.Rows {
		if other := &r.Rows[i]; other != row {
			other.addTo(grants)
		}
	}
	return grants
}

// addTo adds what a row claims and could use of tags, which are in the same order.
func (w *Row) addTo(grants []TagGrant) {
	i := 0
	for k := range w.TagClaims {
		c := &w.TagClaims[k]
		for i < len(grants) && grants[i].Key < c.Key {
			i++
		}
		if i == len(grants) {
			return
		}
		if grants[i].Key != c.Key {
			continue
		}
		grants[i].Claimed += c.Claim()
		if w.State == RowLive {
			grants[i].Demand += c.Demand
		}
	}
}

// claims reports whether anything of the limit or of a tag counts as used.
func (e *Holding) claims() bool {
	return e.Claim > 0 || slices.ContainsFunc(e.TagClaims, func(c TagClaim) bool { return c.Claim() > 0 })
}

func (r *Request) validateTagSlots() error {
	t := &r.Report
	if by := r.TagSlotsBy; by != "" && !slices.ContainsFunc(r.Documents, func(d DocumentReport) bool { return d.Name == by }) {
		return &RequestError{"TagSlotsBy", fmt.Sprintf("%.40q", by), "empty, or the name of a document that is reported"}
	}
	if len(t.TagSlots) > wire.MaxTagSlots {
		return &RequestError{"TagSlots", fmt.Sprint(len(t.TagSlots), " tags"), fmt.Sprint("at most ", wire.MaxTagSlots)}
	}
	for i := range t.TagSlots {
		s := &t.TagSlots[i]
		if err := cmp.Or(
			askedWithin("TagSlots.InUse", s.InUse, 0, wire.MaxTokens), askedWithin("TagSlots.Wanted", s.Wanted, 0, wire.MaxTokens),
			askedWithin("TagSlots.Demand", s.Demand, 0, wire.MaxTokens), askedWithin("TagSlots.Total", s.Total, 0, wire.MaxTokens),
		); err != nil {
			return err
		}
		if s.InUse == 0 && s.Demand == 0 {
			return &RequestError{"TagSlots", fmt.Sprintf("the key %016x with nothing in use and no demand", s.Key), "tags with one of them"}
		}
		if i > 0 && t.TagSlots[i-1].Key >= s.Key {
			return &RequestError{"TagSlots", fmt.Sprintf("the key %016x out of order", s.Key), "rising keys, each once"}
		}
	}
	return nil
}

// CheckTagClaims returns an error for the first claim that no store writes, or that is not above the one before it.
func CheckTagClaims(claims []TagClaim) error {
	if err := within("the number of tags with slots", len(claims), 0, maxTagClaims); err != nil {
		return err
	}
	for i := range claims {
		c := &claims[i]
		if err := cmp.Or(
			within("the slots in use", c.InUse, 0, wire.MaxTokens), within("the slots granted", c.Granted, 0, wire.MaxTokens),
			within("the demand for slots", c.Demand, 0, wire.MaxTokens),
		); err != nil {
			return fmt.Errorf("tag %016x: %w", c.Key, err)
		}
		if c.InUse == 0 && c.Granted == 0 && c.Demand == 0 {
			return fmt.Errorf("tag %016x: there is nothing of it", c.Key)
		}
		if i > 0 && claims[i-1].Key >= c.Key {
			return fmt.Errorf("tag %016x: not above the one before it", c.Key)
		}
	}
	return nil
}

// checkTagGrants refuses grants that no store gives. What was asked for is unknown here.
func checkTagGrants(grants []TagGrant) error {
	if err := within("the number of tags granted slots", len(grants), 0, wire.MaxTagSlots); err != nil {
		return err
	}
	for _, g := range grants {
		if err := cmp.Or(
			within("the slots granted", g.Granted, 0, wire.MaxTokens), within("the slots that others claim", g.Claimed, 0, math.MaxInt64),
			within("the demand of others for slots", g.Demand, 0, math.MaxInt64),
		); err != nil {
			return err
		}
	}
	return nil
}
