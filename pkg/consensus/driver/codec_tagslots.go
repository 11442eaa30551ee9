package driver

import "slices"

const (
	tagKeyBytes = 8
	// The shortest form of a TagClaim.
	minTagClaimBytes = 4
)

// tagClaims are the keys of all tags that rows have slots of, and for each row its claims. A claim begins with the distance of its key's
// place from the one before.
func (c *coder) tagClaims(r *Record) {
	var keys []uint64
	if c.writes {
		keys = r.tagKeys()
	}
	list(c, "keys of tags", tagKeyBytes, nil, &keys, c.uint64)
	if c.err == nil && len(keys) == 0 {
		c.failf("no row has slots of a tag, though the flags say so")
	}
	for i := 1; i < len(keys); i++ {
		if keys[i-1] >= keys[i] {
			c.failf("the keys of tags are not rising")
		}
	}
	used := make([]bool, len(keys))
	for i := range r.Rows {
		next := 0
		list(c, "tags of a row", minTagClaimBytes, nil, &r.Rows[i].TagClaims, func(t *TagClaim) {
			place := next
			for c.writes && keys[place] != t.Key {
				place++
			}
			if ahead(c, "the place of a tag", next, &place); place < next || place >= len(keys) {
				c.failf("the place of a tag is %d of %d", place, len(keys))
				return
			}
			t.Key, used[place], next = keys[place], true, place+1
			num(c, "the slots in use", &t.InUse)
			num(c, "the slots granted", &t.Granted)
			num(c, "the demand for slots", &t.Demand)
		})
	}
	if c.err == nil && slices.Contains(used, false) {
		c.failf("there is a key of a tag that no row has slots of")
	}
}

// tagKeys returns the keys of all tags that rows have slots of.
func (r *Record) tagKeys() (keys []uint64) {
	seen := map[uint64]bool{} // there are far fewer keys than claims
	for i := range r.Rows {
		for _, c := range r.Rows[i].TagClaims {
			if !seen[c.Key] {
				seen[c.Key] = true
				keys = append(keys, c.Key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func (r *Record) anyTagClaims() bool {
	return slices.ContainsFunc(r.Rows, func(w Row) bool { return len(w.TagClaims) > 0 })
}
