package driver

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The shortest forms of a TagBucket and of a Spent.
const (
	minTagBucketBytes = 12
	minSpentBytes     = 3
)

// tagBuckets begin with their number. A tag bucket begins with its key, and one more than its version, or 0 if that is the one of the tag bucket before.
// Paid relative to the clock, Full relative to Paid, and the windows relative to the wall clock follow.
func (c *coder) tagBuckets(r *Record, most int, tagBuckets *[]TagBucket) {
	some := func(n int) {
		if n == 0 || n > most {
			c.failf("%d tag buckets, allowed: 1 to %d if the flags say so", n, most)
		}
	}
	var version Version
	list(c, "tag buckets", minTagBucketBytes, some, tagBuckets, func(t *TagBucket) {
		c.uint64(&t.Key)
		version = c.version(version, t)
		c.after("what is given out of a tag bucket", r.Clock, &t.Paid)
		ahead(c, "when a tag bucket is full", t.Paid, &t.Full)
		few := func(n int) {
			if n > maxWindows {
				c.failf("%d windows of a tag bucket, allowed: at most %d", n, maxWindows)
			}
		}
		list(c, "windows", minSpentBytes, few, &t.Spent, func(s *Spent) {
			c.before("the beginning of a window", r.Wall, &s.Start)
			ahead(c, "the length of a window", s.Start, &s.End)
			num(c, "what is spent", &s.Tokens)
		})
	})
}

// version is that of a tag bucket; last is the one of the tag bucket before.
func (c *coder) version(last Version, t *TagBucket) Version {
	var more Version
	if t.Version != last {
		more = t.Version + 1
	}
	num(c, "the version of a tag bucket", &more)
	switch {
	case c.writes:
	case more == 0:
		t.Version = last
	case more-1 == last:
		c.failf("the version of a tag bucket is written out though it is that of the one before")
	default:
		t.Version = more - 1
	}
	return t.Version
}

// names are whether there are tag buckets, the tag buckets, the number of cells, and the cells. A cell has the distance of its index from the one
// before, its end in minutes, and its value, in milliseconds if it is a time. Times are relative to their clock.
func (c *coder) names(r *Record) {
	n := &r.Names
	has := len(n.TagBuckets) > 0
	if c.bool("whether names have tag buckets", &has); has {
		c.tagBuckets(r, wire.MaxNames, &n.TagBuckets)
	}
	last := -1
	list(c, "cells", minSpentBytes, nil, &n.Cells, func(cell *Cell) {
		ahead(c, "the index of a cell", last+1, &cell.Index)
		if gap := uint64(cell.Index - last - 1); gap >= wire.MaxCells {
			c.failf("a cell is %d from the one before, allowed: below %d", gap, wire.MaxCells)
		}
		last = cell.Index
		if cell.Index < wire.FirstPaid {
			c.rounded("the end of a cell", "minutes", minute, r.Wall, &cell.End)
			num(c, "what is spent", &cell.Value)
		} else {
			c.rounded("the end of a cell", "minutes", minute, r.Clock, &cell.End)
			c.rounded("what is given out", "ms", millisecond, r.Clock, &cell.Value)
		}
	})
	if c.err == nil && n.isZero() {
		c.failf("there are no names, though the flags say so")
	}
}

// CheckTagBuckets returns an error for the first tag bucket that no store writes, or that is not above the one before it. A store that keeps tag buckets in
// a form of its own calls it after reading them. [CheckNames] is the same for the tag buckets of names that go by a pattern.
func CheckTagBuckets(tagBuckets []TagBucket) error {
	return checkTagBuckets(tagBuckets, wire.MaxTagBuckets)
}

// CheckNames is [CheckTagBuckets] for [Names.TagBuckets].
func CheckNames(tagBuckets []TagBucket) error { return checkTagBuckets(tagBuckets, wire.MaxNames) }

func checkTagBuckets(tagBuckets []TagBucket, most int) error {
	if err := within("the number of tag buckets", len(tagBuckets), 0, most); err != nil {
		return err
	}
	for i := range tagBuckets {
		if err := tagBuckets[i].check(); err != nil {
			return fmt.Errorf("tag bucket %d: %w", i, err)
		}
		if i > 0 && tagBuckets[i-1].Key >= tagBuckets[i].Key {
			return fmt.Errorf("tag bucket %d: not above the one before it", i)
		}
	}
	return nil
}

func (t *TagBucket) check() error {
	if err := within("the version", t.Version, 0, wire.MaxVersion); err != nil {
		return err
	}
	if t.Paid < 0 || t.Full < t.Paid || t.Full > wire.MaxMicros {
		return outside("what is given out, and when it is full,", fmt.Sprint(t.Paid, "us, ", t.Full, "us"), "0 or more, and not falling")
	}
	if err := within("the number of windows", len(t.Spent), 0, maxWindows); err != nil {
		return err
	}
	for i, s := range t.Spent {
		if s.Start < -wire.MaxMicros || s.End <= s.Start || s.End > wire.MaxMicros || i > 0 && t.Spent[i-1].Start >= s.Start {
			return outside("a window", fmt.Sprint(s.Start, "us to ", s.End, "us"), "an end after its beginning, and windows by rising beginning")
		}
		if err := within("what is spent", s.Tokens, 0, maxSpent); err != nil {
			return err
		}
	}
	return nil
}
