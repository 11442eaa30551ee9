package driver

import (
	"cmp"
	"fmt"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/wire"
)

// The flags of Permits, and the bounds of its fields.
const (
	flagIssuing = 1 << 0
	flagPending = 1 << 1

	minSlotsBytes = 5

	// Far enough below 1<<63 that a spacing added to it does not overflow.
	maxNanos = 8_900_000_000_000_000_000
	// The longest time that slots can lie apart, and ahead.
	maxStep = 3 * wire.MaxSpacing
	maxSpan = wire.MaxReach
)

// permits are one byte of flags, and numbers.
func (c *coder) permits(is *Permits) {
	var flags byte
	if is.Issuing {
		flags |= flagIssuing
	}
	if is.Pending != (pendingReservation{}) {
		flags |= flagPending
	}
	if c.byte(&flags); flags&^(flagIssuing|flagPending) != 0 {
		c.failf("the flags of the permits are %d", flags)
	}
	if !c.writes {
		is.Issuing = flags&flagIssuing != 0
	}
	for _, t := range is.times() {
		c.after("a time of the permits", 0, t)
	}
	num(c, "a spacing", &is.Spacing)
	num(c, "a spacing", &is.Step)
	num(c, "the number of slots", &is.Count)
	num(c, "the newest reservation", &is.Serial)
	if flags&flagPending != 0 {
		num(c, "the number of pending slots", &is.Pending.Count)
		num(c, "the pending spacing", &is.Pending.Step)
		num(c, "the pending window", &is.Pending.Window)
		if is.Pending == (pendingReservation{}) {
			c.failf("an empty reservation is pending")
		}
	}
	list(c, "recent reservations", minSlotsBytes, nil, &is.Recent, func(s *reservation) {
		num(c, "the revision", &s.Revision)
		c.after("a time", 0, &s.Time)
		num(c, "the number of slots", &s.Count)
		num(c, "a wait", &s.Wait)
		num(c, "a spacing", &s.Step)
	})
	if c.err == nil && is.isZero() {
		c.failf("there are no permits, though the flags say so")
	}
}

func (is *Permits) isZero() bool {
	for _, t := range is.times() {
		if *t != 0 {
			return false
		}
	}
	return !is.Issuing && is.Spacing == 0 && is.Step == 0 && is.Count == 0 && is.Serial == 0 &&
		is.Pending == (pendingReservation{}) && len(is.Recent) == 0
}

func (is *Permits) times() []*int64 {
	return []*int64{&is.SpacingUntil, &is.StrictUntil, &is.SharesUntil, &is.Last, &is.Hold, &is.Held}
}

// check returns an error for the first field that no store writes.
func (is *Permits) check() error {
	pending := checkSlots(is.Pending.Count, is.Pending.Step)
	if pending != nil {
		pending = fmt.Errorf("pending: %w", pending)
	}
	if err := cmp.Or(
		within("spacing-until", is.SpacingUntil, 0, wire.MaxMicros), within("strict-until", is.StrictUntil, 0, wire.MaxMicros),
		within("shares-until", is.SharesUntil, 0, wire.MaxMicros), within("the newest slot", is.Last, 0, maxNanos),
		within("the end of the hold", is.Hold, 0, wire.MaxMicros), within("the freeze held for", is.Held, 0, wire.MaxMicros),
		within("the pool's spacing", is.Spacing, 0, wire.MaxSpacing), checkSlots(is.Count, is.Step),
		within("the newest reservation", is.Serial, 0, maxRevision), pending,
		within("the pending window", is.Pending.Window, 0, maxSpan), within("the number of recent reservations", len(is.Recent), 0, maxRecent),
	); err != nil {
		return err
	}
	for i, s := range is.Recent {
		if err := cmp.Or(
			within("the revision", s.Revision, 0, maxRevision), within("the time in us", s.Time, 0, wire.MaxMicros),
			within("the wait", s.Wait, 0, maxSpan), checkSlots(s.Count, s.Step),
		); err != nil {
			return fmt.Errorf("recent reservation %d: %w", i, err)
		}
	}
	return nil
}

func checkSlots(count int, step time.Duration) error {
	return cmp.Or(within("the number of slots", count, 0, wire.MaxSlots), within("the spacing", step, 0, maxStep))
}
