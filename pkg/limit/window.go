package limit

import (
	"sync"
	"time"
)

// Window returns the calendar window of the budget that now is in: start is in it, end is the start of the next one. Days
// and months begin at midnight in the budget's zone, so that a day may have 23 or 25 hours; where a change of the clock leaves
// out midnight, the day begins at that change. Hours begin where the zone's clock shows a full hour. A
// zone that is not known counts as UTC, and a period that is not known as an hour.
func (b Budget) Window(now time.Time) (start, end time.Time) {
	loc, err := zone(b.Zone)
	if err != nil {
		loc = time.UTC
	}
	local := now.In(loc)
	switch b.Per {
	case Day:
		start, end = between(now, func(i int) time.Time { return midnight(local.Year(), local.Month(), local.Day()+i, loc) })
	case Month:
		start, end = between(now, func(i int) time.Time { return midnight(local.Year(), local.Month()+time.Month(i), 1, loc) })
	default:
		start, end = hour(local)
	}
	return start, end
}

// between returns the two neighbours among the rising times at(-1), at(0), ... between which now is. Where clocks go back over
// midnight the date of now may be one that is over already.
func between(now time.Time, at func(i int) time.Time) (start, end time.Time) {
	i := 0
	for i > -2 && at(i).After(now) {
		i--
	}
	for i < 2 && !at(i+1).After(now) {
		i++
	}
	return at(i), at(i + 1)
}

// midnight returns when a day begins: the first moment that shows its midnight, or where no clock shows it, the
// moment at which the clock jumps over it. month and day may be out of range, as time.Date takes them.
func midnight(year int, month time.Month, day int, loc *time.Location) time.Time {
	utc := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	before := utc.Add(-30 * time.Hour).In(loc)
	for {
		_, offset := before.Zone()
		at := utc.Add(-time.Duration(offset) * time.Second)
		_, change := before.ZoneBounds()
		if change.IsZero() || at.Before(change) {
			if at.Before(before) { // the clock jumped over it, and before is where it did
				at = before
			}
			return at.In(loc)
		}
		before = change.In(loc)
	}
}

// hour returns the hour of a local time. A change of the clock that is no whole number of hours begins another one.
func hour(local time.Time) (start, end time.Time) {
	start = local.Add(-time.Duration(local.Minute())*time.Minute - time.Duration(local.Second())*time.Second - time.Duration(local.Nanosecond()))
	end = start.Add(time.Hour)
	first, last := local.ZoneBounds()
	if first.After(start) && changes(first) {
		start = first
	}
	if !last.IsZero() && last.Before(end) && changes(last) {
		end = last
	}
	return start, end
}

// changes tells whether clocks show another time from a bound of a zone on: it may be another name of the zone alone.
func changes(bound time.Time) bool {
	_, before := bound.Add(-1).Zone()
	_, after := bound.Zone()
	return before != after
}

// zones keeps the zones that were loaded: reading one takes a file.
var zones sync.Map // of *time.Location by name

// zone returns a time zone by its IANA name; UTC for "".
func zone(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil //nolint:forcetypeassert,errcheck // nothing else is in it
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, loc)
	return loc, nil
}
