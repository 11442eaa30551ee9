package bucket

import "github.com/numaproj-contrib/numathrottle/pkg/limit"

// A Change is a bucket's transition to another lease. The limiter calls Replace, then Cut, then opens or shuts the gate, then calls Seal.
// In this order no draw takes the old level by the new law.
type Change struct {
	room, back int64
	// Moved reports that the share is another one, or starts again, so that waits have changed.
	Moved bool
	// Emptied reports that the bucket starts empty, because its share had ended.
	Emptied bool
	// Issuing reports that tokens are issued one by one as before, so that nothing changes.
	Issuing bool
}

// Replace puts the law of a lease in force that ends at until.
func (b *Bucket) Replace(now, until int64, l limit.Lease) Change {
	old := b.seg
	b.seg = b.segment(l, now, until, old.By(now))
	room := min(old.Capacity, b.seg.Capacity) // what overflowed before is lost, though nobody looked
	c := Change{
		room: room, back: max(b.period(min(old.Lease.Share, l.Share)), room),
		Moved:   l.Share != old.Lease.Share || !old.Valid(now),
		Emptied: !old.Valid(now) || l.Share == 0 || old.Lease.Issuing,
		Issuing: l.Issuing && old.Lease.Issuing && old.Valid(now),
	}
	if c.Emptied {
		c.room, c.back = 0, 0 // a processor whose share had ended starts empty
	}
	return c
}

// Cut takes from the bucket the units that do not fit into the new share.
func (b *Bucket) Cut(now int64, c Change) {
	b.Trim(now, c.room)
}

// Seal makes every draw fail that went by the old law, and bounds later refunds.
func (b *Bucket) Seal(c Change) {
	b.Fence()
	if !b.config.Hard {
		b.kept = max(b.kept, b.granted.Load()-c.back)
	} else if c.Moved {
		b.kept = b.granted.Load()
	}
}

// period returns a share's earnings in one period, in units.
func (b *Bucket) period(share int64) int64 {
	return int64(float64(b.Units(b.config.Max)) * float64(share) / float64(limit.WholeShare))
}
