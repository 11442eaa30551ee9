package driver

import (
	"fmt"
	"time"
)

// The flags of Permits, and the bounds of its fields.
const (
	flagIssuing = 1 << 0
	flagPending = 1 << 1

	minSlotsBytes = 5

	// Far enough below 1<<63 that a spacing added to it does not overflow.
	maxNanos = 8_900_000_000_000_000_000
	// The longest time that slots can lie apart, and ahead.
	maxStep = 3 * MaxSpacing
	maxSpan = MaxReach
)

// permits are one byte of flags, and numbers.
func (c *coder) permits(is *Permits) {
	var flags byte
	if is.Issuing {
		flags |= flagIssuing
	}
	if is.Pending != (PendingReservation{}) {
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
		if is.Pending == (PendingReservation{}) {
			c.failf("an empty reservation is pending")
		}
	}
	list(c, "recent reservations", minSlotsBytes, nil, &is.Recent, func(s *Reservation) {
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
		is.Pending == (PendingReservation{}) && len(is.Recent) == 0
}

func (is *Permits) times() []*int64 {
	return []*int64{&is.SpacingUntil, &is.StrictUntil, &is.SharesUntil, &is.Last, &is.Hold, &is.Held}
}

// check returns an error for the first field that no store writes.
func (is *Permits) check() error {
	for _, t := range []struct {
		name string
		t    int64
		most int64
	}{
		{"spacing-until", is.SpacingUntil, MaxMicros},
		{"strict-until", is.StrictUntil, MaxMicros},
		{"shares-until", is.SharesUntil, MaxMicros},
		{"the newest slot", is.Last, maxNanos},
		{"the end of the hold", is.Hold, MaxMicros},
		{"the freeze held for", is.Held, MaxMicros},
	} {
		if t.t < 0 || t.t > t.most {
			return outside(t.name, fmt.Sprint(t.t), fmt.Sprint("0 to ", t.most))
		}
	}
	if err := checkSpan("the pool's spacing", is.Spacing, MaxSpacing); err != nil {
		return err
	}
	if err := checkSlots(is.Count, is.Step); err != nil {
		return err
	}
	if is.Serial > maxRevision {
		return outside("the newest reservation", fmt.Sprint(is.Serial), fmt.Sprint("0 to ", int64(maxRevision)))
	}
	if err := checkSlots(is.Pending.Count, is.Pending.Step); err != nil {
		return fmt.Errorf("pending: %w", err)
	}
	if err := checkSpan("the pending window", is.Pending.Window, maxSpan); err != nil {
		return err
	}
	if len(is.Recent) > maxRecent {
		return outside("the number of recent reservations", fmt.Sprint(len(is.Recent)), fmt.Sprint("at most ", maxRecent))
	}
	for i, s := range is.Recent {
		if err := s.check(); err != nil {
			return fmt.Errorf("recent reservation %d: %w", i, err)
		}
	}
	return nil
}

func (s *Reservation) check() error {
	if s.Revision > maxRevision {
		return outside("the revision", fmt.Sprint(s.Revision), fmt.Sprint("0 to ", int64(maxRevision)))
	}
	if s.Time < 0 || s.Time > MaxMicros {
		return outside("the time", fmt.Sprint(s.Time, "us"), fmt.Sprint("0 to ", int64(MaxMicros)))
	}
	if err := checkSpan("the wait", s.Wait, maxSpan); err != nil {
		return err
	}
	return checkSlots(s.Count, s.Step)
}

func checkSlots(count int, step time.Duration) error {
	if count < 0 || count > MaxSlots {
		return outside("the number of slots", fmt.Sprint(count), fmt.Sprint("0 to ", MaxSlots))
	}
	return checkSpan("the spacing", step, maxStep)
}

func checkSpan(name string, d, most time.Duration) error {
	if d < 0 || d > most {
		return outside(name, d.String(), fmt.Sprint("0 to ", most))
	}
	return nil
}
