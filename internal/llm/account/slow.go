package account

import (
	"fmt"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// This file lowers the rate of calls after a refusal because they grow too fast. Their limits are kept then, so waiting alone would be followed
// by the same refusal.

// growth are the codes of such refusals; see httpthrottle.OpenAI.
var growth = map[string]bool{"slow_down": true, "limit_burst_rate": true, "acceleration_limit": true}

const (
	// slowed is the part of the rate before the refusal that calls begin with, and slowFor is how long they take to reach that rate again.
	slowed  = 0.6
	slowFor = time.Minute
	// window is the time over which the rate is measured, in parts of a tenth.
	window = 20 * time.Second
	parts  = 10
)

// A slowdown measures the rate of calls, and holds it back for a while. The zero slowdown holds nothing back. It is safe for concurrent use.
type slowdown struct {
	mu    sync.Mutex
	calls [parts]int // by part of the window, the last one at index last
	last  int
	until time.Time // the end of the last part

	rate float64   // calls a minute, as measured when the refusal came
	from time.Time // when calls go on; more slowly, for slowFor
	ramp throttle.Limiter
}

// roll moves the window to now.
func (s *slowdown) roll(now time.Time) {
	const part = window / parts
	if now.Sub(s.until) > window {
		s.calls, s.until = [parts]int{}, now.Add(part)
	}
	for !now.Before(s.until) {
		s.last = (s.last + 1) % parts
		s.calls[s.last] = 0
		s.until = s.until.Add(part)
	}
}

// count counts a call.
func (s *slowdown) count(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roll(now)
	s.calls[s.last]++
}

// refused takes a refusal: calls go on after a while, and more slowly. It returns the rate before, in calls a minute, for the first of several.
func (s *slowdown) refused(now time.Time, after time.Duration) (rate float64, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.from) { // of a call from before
		if from := now.Add(after); from.After(s.from) {
			s.from = from
		}
		return s.rate, false
	}
	least := 1.0
	if now.Sub(s.from) < slowFor { // the window may be that of a pause
		least = s.rate * slowed
	}
	s.roll(now)
	sum := 0
	for _, n := range s.calls {
		sum += n
	}
	s.rate, s.from, s.ramp = max(float64(sum)*float64(time.Minute/window), least), now.Add(after), nil
	return s.rate, true
}

// limiter returns what calls draw one token each from besides their limits; nil for nothing.
func (s *slowdown) limiter(now time.Time) throttle.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d := now.Sub(s.from); {
	case d < 0 || d > slowFor:
		s.ramp = nil // nobody closes it: callers may wait there
		return nil
	case s.ramp == nil:
		most := max(int(s.rate), 2)
		th, err := throttle.New(throttle.Limit{
			Max: most, Per: time.Minute, Min: max(int(s.rate*slowed), 1), RampUpDuration: slowFor, Mode: throttle.RampScheduled{}, Burst: 1,
		}, throttle.WithName("slow down"))
		if err != nil { // its numbers are within bounds
			return nil
		}
		s.ramp = th
	}
	return s.ramp
}

// slowing returns a classifier that also lowers the rate of calls after a refusal because they grow too fast.
func (l *Limits) slowing(classify httpthrottle.Classifier) httpthrottle.Classifier {
	return func(a httpthrottle.Answer) (httpthrottle.Refusal, bool) {
		r, refused := classify(a)
		if refused && growth[r.Code] {
			if rate, first := l.slow.refused(a.At, r.RetryAfter); first {
				l.log.Warn("the service refuses calls because they grow too fast: they go on more slowly for a while", "code", r.Code,
					"before", fmt.Sprintf("%.0f a minute", rate))
			}
		}
		return r, refused
	}
}
