package protocol

import (
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Forever is a local time that never comes.
const Forever = time.Duration(math.MaxInt64)

// A LocalPause is one pause on the processor's own clock.
type LocalPause struct {
	Tag, Reason, By string
	End             time.Duration // local time; Forever: until somebody resumes
	Until           time.Time     // see entry
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
		return Forever
	}
	var passed int64
	if e.at > 0 { // without a logical time, none has passed
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
		return Forever
	}
	return m.now + e.left
}

// sleptThrough reports whether the pool has started over since the pause was written, after a
// silence that the logical clock does not count.
func (e *entry) sleptThrough(m moment) bool { return e.at > 0 && e.at < m.began && m.slept > m.clamp }

// entry returns the stop as it is written at m.
func (s *LocalPause) entry(m moment) entry {
	e := entry{tag: s.Tag, reason: s.Reason, by: s.By, at: m.logical, until: s.Until}
	if s.End != Forever {
		e.left = max(s.End-m.now, time.Microsecond)
	}
	return e
}

// later adds a stop to a list in which each tag stands once: the later end wins.
func later(list []LocalPause, s LocalPause) []LocalPause {
	for i := range list {
		if list[i].Tag == s.Tag {
			if s.End > list[i].End {
				list[i] = s
			}
			return list
		}
	}
	return append(list, s)
}

// paused converts stops to the pauses of a limiter. base is the origin of local time.
func paused(stops []LocalPause, base time.Time) (list []limit.Paused) {
	for _, s := range stops {
		o := limit.Paused{Tag: s.Tag, Reason: s.Reason, By: s.By}
		if s.End != Forever {
			o.Until = base.Add(s.End)
		}
		list = append(list, o)
	}
	return list
}

// PausesInForce returns the pauses in force, with their ends on the clock that read base when the local time was 0.
func (p *Processor) PausesInForce(now time.Duration, base time.Time) []limit.Paused {
	return paused(p.Pauses.inForce(now), base)
}
