package limit

import (
	"sync"
	"time"
)

// Window returns the calendar window of the budget that contains now: start is inside it, end is the start of the next one. Days and months
// begin at midnight in the budget's zone, so a day may have 23 or 25 hours. If a change of the clock skips midnight, the day begins at that
// change. Hours begin when the zone's clock shows a full hour. An unknown zone counts as UTC, and an unknown period as an hour.
func (b Budget) Window(now time.Time) (start, end time.Time) {
	loc, err := zone(b.Zone)
	if err != nil {
		loc = time.UTC
	}
	local := now.In(loc)
	switch b.Per {
	case PeriodDay:
		start, end = between(now, func(i int) time.Time { return midnight(local.Year(), local.Month(), local.Day()+i, loc) })
	case PeriodMonth:
		start, end = between(now, func(i int) time.Time { return midnight(local.Year(), local.Month()+time.Month(i), 1, loc) })
	default:
		start, end = hour(local)
	}
	return start, end
}

// between returns the two neighbours of now among the rising times at(-1), at(0), ... When clocks go back over midnight, the date of now
// may be one that is already over.
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

// midnight returns when a day begins: the first moment that shows its midnight or, if no clock shows it, the moment at which the clock
// jumps over it. As in time.Date, month and day may be out of range.
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

// hour returns the hour of a local time. A change of the clock by a fraction of an hour begins a new one.
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

// changes reports whether clocks show another time after a bound of a zone. A bound may change only the zone's name.
func changes(bound time.Time) bool {
	_, before := bound.Add(-1).Zone()
	_, after := bound.Zone()
	return before != after
}

// zones caches loaded zones: reading one takes a file.
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
