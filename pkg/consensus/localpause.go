package consensus

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// forever is a local time that never comes.
const forever = time.Duration(math.MaxInt64)

// A stop is one pause on the processor's own clock.
type stop struct {
	tag, reason, by string
	end             time.Duration // local time; forever: until somebody resumes
	until           time.Time     // see entry
}

// A moment is the present as a processor knows it: on its own clock, and on the pool's.
type moment struct {
	now time.Duration
	// logical is the logical time, 0 before the first answer. began and slept are as in
	// the last one. clamp is the longest gap that the logical clock counts.
	logical, began int64
	slept, clamp   time.Duration
}

// ends returns the local time at which a pause ends. It is never too early by more than the
// logical clock is fast. The logical clock stood still if the pool has slept since it was written.
func (e *entry) ends(m moment) time.Duration {
	if e.left == 0 {
		return forever
	}
	var passed int64
	if e.at > 0 && m.logical > 0 {
		passed = max(m.logical-e.at, 0)
		if e.sleptThrough(m) {
			passed += m.slept.Microseconds()
		}
	}
	return m.now + time.Duration(max(e.left.Microseconds()-passed, 0))*time.Microsecond
}

// endsFromNow is ends for a notification. It comes at once, or counts until the next answer at
// most. It may use the clock of a store that lost its record, which the processor does not know
// yet. By another clock a pause may look as if it were over.
func (e *entry) endsFromNow(m moment) time.Duration {
	if e.left == 0 {
		return forever
	}
	return m.now + e.left
}

// sleptThrough reports whether the pool has started over since the pause was written, after a
// silence that the logical clock does not count.
func (e *entry) sleptThrough(m moment) bool { return e.at > 0 && e.at < m.began && m.slept > m.clamp }

// entry returns the stop as it is written at m.
func (s *stop) entry(m moment) entry {
	e := entry{tag: s.tag, reason: s.reason, by: s.by, at: m.logical, until: s.until}
	if s.end != forever {
		e.left = max(s.end-m.now, time.Microsecond)
	}
	return e
}

// later adds a stop to a list in which each tag stands once: the later end wins.
func later(list []stop, s stop) []stop {
	for i := range list {
		if list[i].tag == s.tag {
			if s.end > list[i].end {
				list[i] = s
			}
			return list
		}
	}
	return append(list, s)
}

// paused converts stops to the pauses of a limiter. base is the origin of local time.
func paused(stops []stop, base time.Time) (list []limit.Paused) {
	for _, s := range stops {
		o := limit.Paused{Tag: s.tag, Reason: s.reason, By: s.by}
		if s.end != forever {
			o.Until = base.Add(s.end)
		}
		list = append(list, o)
	}
	return list
}
