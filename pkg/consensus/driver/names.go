package driver

import (
	"fmt"
	"slices"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// Names are a record's tag buckets and cells of the tags that go by a pattern: any number of names, in bounded space. Tags with a quota by name
// have none of their tag buckets among these, and nothing here touches theirs.
type Names struct {
	// TagBuckets is sorted by key: at most 4,096.
	TagBuckets []TagBucket
	// Cells stand for dropped tag buckets: two sketches, by rising index.
	Cells []Cell
}

// A Cell is one number of a sketch. Each name has two cells for the tokens given out of its total, and two for each budget window. A
// dropped tag bucket raises its cells to the amounts that it has given and spent; a new one begins with the least of them. So a name never has
// more than its quota, and less only where others were dropped that fell on both cells.
type Cell struct {
	// Index is the place: 0 to 32,767. The first half is for budgets.
	Index int
	// End is when the cell ceases to count, rounded up to whole minutes, in microseconds. For budgets that is the end of the window on the
	// store's own clock, else the logical time at which the tag bucket would have been full.
	End int64
	// Value is how many tokens are spent, 0 to 4e15, or the logical time up to which they are given out: microseconds in whole ms.
	Value int64
}

// Units of names, in microseconds.
const (
	minute      = 60_000_000
	millisecond = 1000
)

func (n *Names) isZero() bool { return len(n.TagBuckets) == 0 && len(n.Cells) == 0 }

// Clone returns a copy that shares nothing that a step changes.
func (n *Names) Clone() Names { return Names{slices.Clone(n.TagBuckets), slices.Clone(n.Cells)} }

// spentCells returns the indexes of a name's cells for the window that begins at start, paidCells those for its total. A key is a hash: all
// of its bits are equally good.
func spentCells(key uint64, start int64) [2]int {
	shift := uint64(start / (15 * minute))
	return [2]int{int((key + shift) % wire.SketchCols), wire.SketchCols + int((key/wire.SketchCols+shift)%wire.SketchCols)}
}

func paidCells(key uint64) [2]int {
	at := spentCells(key, 0)
	return [2]int{wire.FirstPaid + at[0], wire.FirstPaid + at[1]}
}

// dead reports whether a cell no longer counts.
func (t *granter) dead(c *Cell) bool {
	if c.Index < wire.FirstPaid {
		return c.End+keepWindow <= t.at.Now // the clock may be set back
	}
	return c.End <= t.clock
}

// least returns the lesser value of two cells: 0 unless both count.
func (t *granter) least(cells [2]int) int64 {
	least := int64(wire.MaxMicros)
	for _, index := range cells {
		i, ok := t.rec.Names.cell(index)
		if !ok || t.dead(&t.rec.Names.Cells[i]) {
			return 0
		}
		least = min(least, t.rec.Names.Cells[i].Value)
	}
	return least
}

// cell returns the place of the cell with an index, or where it belongs.
func (n *Names) cell(index int) (int, bool) {
	return slices.BinarySearchFunc(n.Cells, index, func(c Cell, index int) int { return c.Index - index })
}

// name makes the tag bucket of a name, as it would be if it had always been there; nil if there is no room.
func (t *granter) name(key uint64) *TagBucket {
	n := &t.rec.Names
	for ; len(n.TagBuckets) >= wire.MaxNames && t.swept < 2; t.swept++ {
		t.sweep(t.swept == 1)
	}
	if len(n.TagBuckets) >= wire.MaxNames {
		return nil
	}
	paid := t.least(paidCells(key))
	i, _ := findTagBucket(n.TagBuckets, key)
	n.TagBuckets = slices.Insert(n.TagBuckets, i, TagBucket{Key: key, Paid: paid, Full: paid})
	return &n.TagBuckets[i]
}

// sweep drops the full tag buckets of names, or all with others, but none that the request draws from.
func (t *granter) sweep(others bool) {
	n := &t.rec.Names
	drawn := make(map[uint64]bool, len(t.req.Draws))
	for i := range t.req.Draws {
		drawn[t.req.Draws[i].Key] = true
	}
	raised := map[int]Cell{}
	n.TagBuckets = slices.DeleteFunc(n.TagBuckets, func(tagBucket TagBucket) bool {
		if drawn[tagBucket.Key] || tagBucket.Full > t.clock && !others {
			return false
		}
		t.keep(raised, &tagBucket)
		return true
	})
	n.Cells = slices.DeleteFunc(n.Cells, func(c Cell) bool { return t.dead(&c) })
	n.raise(raised)
}

// keep notes the cells of a tag bucket that is dropped.
func (t *granter) keep(raised map[int]Cell, tagBucket *TagBucket) {
	raise := func(cells [2]int, end, value int64) {
		for _, index := range cells {
			c := Cell{index, (end + minute - 1) / minute * minute, value}
			if !t.dead(&c) {
				raised[index] = Cell{index, max(raised[index].End, c.End), max(raised[index].Value, value)}
			}
		}
	}
	if tagBucket.Full > t.clock {
		raise(paidCells(tagBucket.Key), tagBucket.Full, (tagBucket.Paid+millisecond-1)/millisecond*millisecond)
	}
	for _, s := range tagBucket.Spent {
		if s.Tokens > 0 {
			raise(spentCells(tagBucket.Key, s.Start), s.End, s.Tokens)
		}
	}
}

// raise raises cells. None of the present ones is dead.
func (n *Names) raise(raised map[int]Cell) {
	for i := range n.Cells {
		c := &n.Cells[i]
		if with, ok := raised[c.Index]; ok {
			c.End, c.Value = max(c.End, with.End), max(c.Value, with.Value)
			delete(raised, c.Index)
		}
	}
	for _, c := range raised {
		n.Cells = append(n.Cells, c)
	}
	slices.SortFunc(n.Cells, func(a, b Cell) int { return a.Index - b.Index })
}

func (n *Names) check() error {
	if err := CheckNames(n.TagBuckets); err != nil {
		return err
	}
	for i, c := range n.Cells {
		if c.Index < 0 || c.Index >= wire.MaxCells || i > 0 && n.Cells[i-1].Index >= c.Index {
			return outside("the index of a cell", fmt.Sprint(c.Index), fmt.Sprint("0 to ", wire.MaxCells-1, ", rising"))
		}
		most, unit := int64(maxSpent), int64(1)
		if c.Index >= wire.FirstPaid {
			most, unit = wire.MaxMicros, millisecond
		}
		if c.End < -wire.MaxMicros || c.End > wire.MaxMicros || c.End%minute != 0 || c.Value < 0 || c.Value > most || c.Value%unit != 0 {
			return outside("a cell", fmt.Sprint(c.Value, " until ", c.End, "us"), "0 to 4e15 tokens or whole milliseconds, until a whole minute")
		}
	}
	return nil
}
