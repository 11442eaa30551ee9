package sourcer

import (
	"context"
	"math"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// throttledFor is how long a source counts as throttled after a Read that had more to read than tokens. The autoscaler uses the mean of the
// last 120 s (lookbackSeconds): a single unclamped figure in it may outweigh all the others.
const throttledFor = 2 * time.Minute

// Pending implements sourcesdk.Sourcer. It returns next's report. While the source is throttled, it clamps that to the messages that the
// limit lets through in the platform's target time. The package documentation explains it. A figure of zero, or below (not known), is
// passed on unchanged.
func (s *source) Pending(ctx context.Context) int64 {
	pending := s.Sourcer.Pending(ctx)
	if pending <= 0 || !s.clamp || !s.throttled() {
		return pending
	}
	if most, ok := s.most(); ok {
		return min(pending, most)
	}
	return pending
}

// throttled reports whether the source has been waiting for tokens lately.
func (s *source) throttled() bool {
	s.mu.Lock()
	shortAt := s.shortAt
	s.mu.Unlock()
	if !shortAt.IsZero() && time.Since(shortAt) < throttledFor {
		return true
	}
	l, ok := s.limiter.(interface {
		Throttled() (throttle.Throttling, bool)
	})
	if !ok {
		return false
	}
	_, throttled := l.Throttled()
	return throttled
}

// most returns how many messages the limit lets through in the target time; ok is false when the limiter does not report it.
func (s *source) most() (n int64, ok bool) {
	rate, ok := s.rate()
	if !ok {
		return 0, false
	}
	return int64(min(max(1, math.Round(rate*s.target.Seconds())), math.MaxInt64/2)), true
}

// rate returns how many messages per second the limit in force lets through over the whole pool.
func (s *source) rate() (perSecond float64, ok bool) {
	if s.vertexRate != nil {
		return *s.vertexRate, true
	}
	if s.status != nil { // it knows of overrides, ramps and an adaptive ceiling, too
		st := s.status.Status()
		perSecond = st.Ceiling()
	} else if l, ok := s.limiter.(interface{ Limit() throttle.Limit }); ok {
		perSecond = l.Limit().Rate()
	}
	if perSecond <= 0 {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return perSecond / s.each, true
}
