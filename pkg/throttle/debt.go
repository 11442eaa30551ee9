package throttle

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// An owed counts the dropped and forgiven debt of a Throttle, in tokens. Its zero value is ready for use.
type owed struct {
	dropped, forgiven atomic.Int64
	toldAt            atomic.Int64 // when dropped debt was last logged; 0: never
}

// tellDropped is the minimum time between two logs of dropped debt.
const tellDropped = int64(time.Minute)

// WithLogger sets the limiter's logger. It logs dropped debt (Limit.MaxDebt), at most once a minute, and forgiven debt. Defaults to
// slog.Default(), also for nil.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

func (o *options) logger() *slog.Logger {
	if o.log == nil {
		return slog.Default()
	}
	return o.log
}

// noteDropped counts n tokens of debt that were not booked. The lock is not held.
func (t *Throttle) noteDropped(tag string, n int) {
	if n <= 0 {
		return
	}
	total := t.owed.dropped.Add(int64(n))
	now := max(t.gate.Now(), 1)
	if last := t.owed.toldAt.Load(); last > 0 && now-last < tellDropped || !t.owed.toldAt.CompareAndSwap(last, now) {
		return
	}
	t.logger().Warn("calls used more above their cost than may be owed, and the excess is dropped: are the costs that they report right?",
		"limit", t.name, "tag", tag, "tokens", n, "tokens_in_all", total, "max_debt", t.limit.maxDebt())
}

// owe books n tokens used above the cost of a permit, and returns how many it drops. The lock is held.
func (t *Throttle) owe(now int64, n int) (dropped int) {
	t.level(now)
	dropped = t.bucket.Owe(now, n)
	t.retime(now)
	t.serve(now)
	return dropped
}

// level brings the bucket up to now before debt is booked, so that overflow pays no debt. The lock is held.
func (t *Throttle) level(now int64) {
	if t.issuing() {
		t.ripen(now)
		return
	}
	room := t.bucket.Law().Capacity
	if !t.bucket.Law().Valid(now) {
		room = 0
	}
	t.bucket.Trim(now, room)
}

// ForgiveDebt ends the debt of this process: tokens that calls used above their draws, and that are not paid yet. It returns how many
// tokens that were. It also ends, but does not count, the debt of quotas not kept in a pool. The other processors of a pool keep theirs;
// consensus.ForgiveDebt asks all of them. It does nothing if nothing is owed. A tag's debt to a pool's quota stays until it is paid.
func (t *Throttle) ForgiveDebt() (tokens float64) {
	if t.limit.Max == 0 {
		return 0
	}
	t.gate.Lock()
	now := t.gate.Now()
	if t.issuing() {
		t.ripen(now)
	}
	if tokens = t.bucket.Forgive(now); tokens > 0 {
		t.owed.forgiven.Add(int64(tokens))
		t.publish()
		t.retime(now)
		t.serve(now)
	}
	t.gate.Unlock()
	if t.tags != nil {
		for _, g := range t.tags.all() {
			g.mu.Lock()
			g.stock.Forgive(now)
			g.changed(now)
			g.mu.Unlock()
		}
	}
	if tokens > 0 {
		t.logger().Warn("debt was forgiven", "limit", t.name, "tokens", int64(tokens))
	}
	return tokens
}
