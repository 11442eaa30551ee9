package driver

import (
	"fmt"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The shortest forms of a Till and of a Spent.
const (
	minTillBytes  = 12
	minSpentBytes = 3
)

// tills begin with their number. A till begins with its key, and one more than its version, or 0 if that is the one of the till before.
// Paid relative to the clock, Full relative to Paid, and the windows relative to the wall clock follow.
func (c *coder) tills(r *Record, most int, tills *[]Till) {
	some := func(n int) {
		if n == 0 || n > most {
			c.failf("%d tills, allowed: 1 to %d if the flags say so", n, most)
		}
	}
	var version Version
	list(c, "tills", minTillBytes, some, tills, func(t *Till) {
		c.uint64(&t.Key)
		version = c.version(version, t)
		c.after("what is given out of a till", r.Clock, &t.Paid)
		ahead(c, "when a till is full", t.Paid, &t.Full)
		few := func(n int) {
			if n > maxWindows {
				c.failf("%d windows of a till, allowed: at most %d", n, maxWindows)
			}
		}
		list(c, "windows", minSpentBytes, few, &t.Spent, func(s *Spent) {
			c.before("the beginning of a window", r.Wall, &s.Start)
			ahead(c, "the length of a window", s.Start, &s.End)
			num(c, "what is spent", &s.Tokens)
		})
	})
}

// version is that of a till; last is the one of the till before.
func (c *coder) version(last Version, t *Till) Version {
	var more Version
	if t.Version != last {
		more = t.Version + 1
	}
	num(c, "the version of a till", &more)
	switch {
	case c.writes:
	case more == 0:
		t.Version = last
	case more-1 == last:
		c.failf("the version of a till is written out though it is that of the one before")
	default:
		t.Version = more - 1
	}
	return t.Version
}

// names are whether there are tills, the tills, the number of cells, and the cells. A cell has the distance of its index from the one
// before, its end in minutes, and its value, in milliseconds if it is a time. Times are relative to their clock.
func (c *coder) names(r *Record) {
	n := &r.Names
	has := len(n.Tills) > 0
	if c.bool("whether names have tills", &has); has {
		c.tills(r, wire.MaxNames, &n.Tills)
	}
	last := -1
	list(c, "cells", minSpentBytes, nil, &n.Cells, func(cell *Cell) {
		ahead(c, "the index of a cell", last+1, &cell.Index)
		if gap := uint64(cell.Index - last - 1); gap >= wire.MaxCells {
			c.failf("a cell is %d from the one before, allowed: below %d", gap, wire.MaxCells)
		}
		last = cell.Index
		clock := r.Wall
		if cell.Index >= wire.FirstPaid {
			clock = r.Clock
		}
		c.rounded("the end of a cell", "minutes", minute, clock, &cell.End)
		if cell.Index < wire.FirstPaid {
			num(c, "what is spent", &cell.Value)
		} else {
			c.rounded("what is given out", "ms", millisecond, clock, &cell.Value)
		}
	})
	if c.err == nil && n.isZero() {
		c.failf("there are no names, though the flags say so")
	}
}

// CheckTills returns an error for the first till that no store writes, or that is not above the one before it. A store that keeps tills in
// a form of its own calls it after reading them. CheckNames is the same for the tills of names that go by a pattern.
func CheckTills(tills []Till) error { return checkTills(tills, wire.MaxTills) }

// CheckNames is CheckTills for Names.Tills.
func CheckNames(tills []Till) error { return checkTills(tills, wire.MaxNames) }

func checkTills(tills []Till, most int) error {
	if err := within("the number of tills", len(tills), 0, most); err != nil {
		return err
	}
	for i := range tills {
		if err := tills[i].check(); err != nil {
			return fmt.Errorf("till %d: %w", i, err)
		}
		if i > 0 && tills[i-1].Key >= tills[i].Key {
			return fmt.Errorf("till %d: not above the till before it", i)
		}
	}
	return nil
}

func (t *Till) check() error {
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
