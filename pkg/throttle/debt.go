package throttle

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// An owed counts the dropped and forgiven debt of a Throttle, in tokens. Its zero value is ready for use.
type owed struct {
	dropped, forgiven atomic.Int64
	reportedAt        atomic.Int64 // when dropped debt was last logged; 0: never
}

// tellDropped is the minimum time between two logs of dropped debt.
const tellDropped = int64(time.Minute)

// WithLogger sets the limiter's logger. It logs dropped debt ([Limit.MaxDebt]), at most once a minute, and forgiven debt. Defaults to
// slog.Default(), also for nil.
func WithLogger(log *slog.Logger) Option { return func(o *settings) { o.log = log } }

func (o *options) logger() *slog.Logger {
	if o.log == nil {
		return slog.Default()
	}
	return o.log
}

// noteDropped counts n tokens of debt that were not booked. The lock is not held.
func (t *rateLimiter) noteDropped(tag string, n int) {
	if n <= 0 {
		return
	}
	total := t.owed.dropped.Add(int64(n))
	now := max(t.gate.Now(), 1)
	if last := t.owed.reportedAt.Load(); last > 0 && now-last < tellDropped || !t.owed.reportedAt.CompareAndSwap(last, now) {
		return
	}
	t.logger().Warn("calls used more above their cost than may be owed, and the excess is dropped: are the costs that they report right?",
		"limit", t.name, "tag", tag, "tokens", n, "tokens_in_all", total, "max_debt", t.limit.maxDebt())
}

// owe books n tokens used above the cost of a permit, and returns how many it drops. The lock is held.
func (t *rateLimiter) owe(now int64, n int) (dropped int) {
	t.level(now)
	dropped = t.bucket.Owe(now, n)
	t.retime(now)
	t.serve(now)
	return dropped
}

// level brings the bucket up to now before debt is booked, so that overflow pays no debt. The lock is held.
func (t *rateLimiter) level(now int64) {
	if t.issuing() {
		t.releaseDue(now)
		return
	}
	room := t.bucket.Law().Capacity
	if !t.bucket.Law().Valid(now) {
		room = 0
	}
	t.bucket.Trim(now, room)
}

// forgive ends the debt, and returns how many tokens it was.
func (t *rateLimiter) forgive() (tokens float64) {
	if t.limit.Max == 0 {
		return 0
	}
	t.gate.Lock()
	defer t.gate.Unlock()
	now := t.gate.Now()
	if t.issuing() {
		t.releaseDue(now)
	}
	tokens = t.bucket.Forgive(now)
	t.owed.forgiven.Add(int64(tokens))
	t.publish()
	t.retime(now)
	t.serve(now)
	return tokens
}
