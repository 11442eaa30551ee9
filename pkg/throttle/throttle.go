package throttle

import (
	"context"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/internal/sharing"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// A Throttle grants tokens at one processor's share of a limit. It is a Limiter.
// All methods may be called from any number of goroutines at once.
type Throttle struct {
	rateLimiter
	quotas *Quotas // of the configuration; nil: there are none
	tags   *tagSet // nil: there are no quotas
}

var _ Limiter = (*Throttle)(nil)

// New returns a Throttle for a limit. A limit with Max 0 never refuses and never
// waits. The error names every field of the limit that is out of bounds.
func New(limit Limit, opts ...Option) (*Throttle, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	s := newSettings(opts)
	t := &Throttle{quotas: s.quotas}
	t.options, t.limit = s.options, limit.withDefaults()
	if err := t.checkQuotas(); err != nil {
		return nil, err
	}
	if err := t.begin(t, t.pausesChanged); err != nil {
		return nil, err
	}
	if limit.Max == 0 {
		return t, nil
	}
	if t.quotas != nil {
		t.tags = newTagSet(&t.rateLimiter, t.quotas)
		t.reserver = t.tags
	}
	t.measure(t.metered)
	switch s := t.sharer.(type) {
	case nil:
		t.fixed(wholeShare)
	case *static:
		t.fixed(s.share)
	default:
		s.Attach(rateHolder{t})
	}
	return t, nil
}

// Limit returns the limit with its defaults filled in.
func (t *Throttle) Limit() Limit { return t.limit }

// Unlimited reports whether the Throttle has no limit at all.
func (t *Throttle) Unlimited() bool { return t.limit.Max == 0 }

// TryAcquire takes n tokens if they are at hand and nobody waits. It never waits;
// when it succeeds it takes no lock, and allocates nothing but a page of half a
// kilobyte for every 4,096 tokens.
func (t *Throttle) TryAcquire(n int) (Permit, bool) {
	if t.tags != nil {
		return t.tags.other.TryAcquire(n)
	}
	if n <= 0 || t.limit.Max == 0 {
		return t.tryNone(n)
	}
	var now int64 // as Gate.Now has it, which is not inlined either
	if t.gate.Clock == nil {
		now = int64(time.Since(t.gate.Base))
	} else {
		now = t.gate.Now()
	}
	if n <= t.bucket.Largest { // as draw has it, which the compiler does not inline
		if pos, ok := t.bucket.Draw(int64(n)<<(t.bucket.Shift&63), now); ok {
			return Permit{n: n, pos: pos, by: t.cell(pos)}, true
		}
	}
	return t.denyNow(n, now)
}

// Acquire waits until n tokens are granted; see Limiter. Without a share it waits for one. A draw larger than the bucket is granted when
// all its tokens have accrued, and nothing else is granted meanwhile. With a hard limit it waits for a share whose bucket holds it,
// and others pass it.
//
// Errors:
//   - *Error with [ReasonTooLarge] when n is above Max and above Burst, or with a hard limit above Burst
//   - [ErrThrottled] at once when the deadline is too near
//   - an error that is both [ErrThrottled] and context.DeadlineExceeded when the deadline passed in the queue
//   - [ErrClosed] after Close
//   - the cause of ctx when it was cancelled
func (t *Throttle) Acquire(ctx context.Context, n int) (Permit, error) {
	// The usual case has a path of its own with a small frame. It often runs on the small stack of a new goroutine, for one message, and
	// growing that stack takes many times as long as the draw.
	if t.tags != nil {
		return t.tags.other.Acquire(ctx, n)
	}
	if n > 0 && n <= t.bucket.Largest && ctx.Err() == nil { // without a limit the largest is 0
		if pos, ok := t.bucket.Draw(t.bucket.Units(n), t.gate.Now()); ok {
			return Permit{n: n, pos: pos, by: t.cell(pos)}, nil
		}
	}
	return t.acquire(ctx, n, false)
}

// AcquireUpTo waits until at least one token is granted and takes as many as are at hand, at most n; see Limiter. Errors are as for
// Acquire.
func (t *Throttle) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	if t.tags != nil {
		return t.tags.other.AcquireUpTo(ctx, n)
	}
	return t.acquire(ctx, n, true)
}

// ForTag returns the Limiter for draws with this tag: a tenant, a model, a key. With [WithQuotas] a draw of n takes n tokens of the tag's
// quota and n of the limit, in one step: both or neither. A caller whose tag has no tokens waits for these alone, and holds up nobody of
// another tag. Where the limit is not enough for all, the tags are served by their quotas. A pause of the tag holds these draws. Tags
// without a quota of their own count together, for [Quotas.Other]; so do names above 64 bytes, with control characters or with invalid UTF-8.
//
// Without quotas it is the Throttle itself. It is cheap enough to be called for each message: a known tag takes no allocation. The memory
// for tags is bounded, however many names there are.
func (t *Throttle) ForTag(tag string) Limiter {
	if t.tags == nil {
		return t
	}
	return t.tags.forTag(tag)
}

// ForTags is ForTag for draws with several tags, such as a tenant and a model. A draw of n takes n tokens of the quota of each, and n of
// the limit once: all or nothing. The first tag decides whose turn it is where the limit is not enough for all. It also stands in errors
// unless another has held the draw back. Without tags it is the Throttle itself.
func (t *Throttle) ForTags(tags ...string) Limiter {
	switch {
	case t.tags == nil || len(tags) == 0:
		return t
	case len(tags) == 1:
		return t.tags.forTag(tags[0])
	}
	return t.tags.forTags(tags, false)
}

// Report is [Permit.Report] for a call whose permit is not at hand, such as one of a handler behind a wrapper. The n tokens were granted at
// granted; the zero Time is now. Do not report a call both here and by its permit. With quotas it is a call without a tag; see ReportFor.
func (t *Throttle) Report(n int, granted time.Time, o Outcome) {
	if t.tags != nil {
		t.tags.report(n, o, t.grantedAt(granted), t.tags.other.tags)
		return
	}
	t.report(n, o, t.grantedAt(granted))
}

// ReportFor is Report for a call whose tokens were drawn for these tags, in the order of [ForTags]. Without quotas it is
// Report.
func (t *Throttle) ReportFor(n int, granted time.Time, o Outcome, tags ...string) {
	if l, ok := t.ForTags(tags...).(*tagView); ok {
		t.tags.report(n, o, t.grantedAt(granted), l.tags)
		return
	}
	t.Report(n, granted, o)
}

// A Status describes a Throttle at one moment.
type Status struct {
	// Name is the limit's name, Limit the limit with its defaults filled in.
	Name  string
	Limit Limit
	// Lease is the share in force. Rate is its rate in tokens per second: less than its part of Max with a hard limit, and 0 while tokens
	// are issued.
	Lease limit.Lease
	Rate  float64
	// Tokens is the number of tokens at hand; below 0 it is debt.
	Tokens float64
	// Waiting counts the callers in the queue, and those held back before they draw.
	Waiting int
	// Issued describes tokens that are issued one by one; it is the zero value while Lease.Issuing is false.
	Issued struct {
		// Issuing says that tokens are issued at present.
		Issuing bool
		// Spacing is the distance between two tokens in the whole pool.
		Spacing time.Duration
		// Next is the least time until the next token is at hand; 0: one is.
		Next time.Duration
		// Reserved counts the slots that this processor has reserved and that are still to come.
		Reserved int
	}
	// Granted, Returned and Refused count tokens since the Throttle was made. A draw that can never be granted is no demand, and does not
	// count as refused.
	Granted, Returned, Refused int64
	// DebtDropped counts tokens that calls used beyond their draws and that nobody pays for, because more would be owed than Limit.MaxDebt
	// allows. DebtForgiven counts tokens of debt that ForgiveDebt cancelled.
	DebtDropped, DebtForgiven int64
	// Backoff is the state of an adaptive limit.
	Backoff Backoff
	// Paused is the pause in force, with the time at which it ends here; nil: there is none. Pauses counts the pauses so far.
	Paused *Paused
	Pauses int64
	// Tags lists the tags that have been in use, with quotas: "" first, then by name, then tags shared by several names. nil without
	// quotas. At most 12,352 of them are not named in the configuration.
	Tags []TagStatus
	// TagsGone counts the tokens used and refused of tags that are not among Tags any more: they matched a pattern and made way for others.
	TagsGone struct{ Used, Refused int64 }
	// Closed is true when nothing is granted any more.
	Closed bool
}

// Ceiling returns how many tokens per second the whole pool may use at present: [Limit.Rate], unless the limit ramps up or an override is in
// force. 0: no limit.
func (s *Status) Ceiling() float64 {
	if s.Lease.Ceiling <= 0 || s.Limit.Max == 0 {
		return s.Limit.Rate()
	}
	return s.Limit.Rate() * s.Lease.Ceiling / float64(s.Limit.Max)
}

// Status returns the present state of the Throttle.
func (t *Throttle) Status() Status { return t.tags.statusOf(&t.rateLimiter) }

// Throttled reports whether a draw of one token would have to wait, and why.
func (t *Throttle) Throttled() (Throttling, bool) {
	return t.throttled(&waiter{Age: waitqueue.Latest})
}

// HoldUp returns what holds callers back now; ok is false if nothing does. Unlike Throttled it covers all tags: if the limit has tokens and
// a tag has used its total, it reports the tag.
func (t *Throttle) HoldUp() (h Throttling, ok bool) {
	worst, some := t.tags.worst()
	own, held, passed := t.holdUp()
	if !some || !t.tags.holds(worst, own, held && !passed) {
		return own, held
	}
	reported := worst.reported(t.gate.Now(), t.waiting())
	return Throttling{
		Reason: worst.reason, Limit: t.name, OfTag: true, Tag: worst.name, Tags: reported.Tags, Waiting: reported.Callers, RetryAfter: worst.retry,
		Longest: reported.Longest, Rate: reported.Rate, Blocked: reported.Blocked,
	}, true
}

// ForgiveDebt ends the debt of this process: tokens that calls used above their draws, and that are not paid yet. It returns how many
// tokens that were. It also ends, but does not count, the debt of quotas not kept in a pool. The other processors of a pool keep theirs;
// operate.Pool.ForgiveDebt asks all of them. It does nothing if nothing is owed. A tag's debt to a pool's quota stays until it is paid.
func (t *Throttle) ForgiveDebt() (tokens float64) {
	tokens = t.forgive()
	t.tags.forgive()
	if tokens > 0 {
		t.logger().Warn("debt was forgiven", "limit", t.name, "tokens", int64(tokens))
	}
	return tokens
}

// Close stops granting, fails all waiting callers with [ErrClosed], and then runs the functions that [OnClose] added, for at most five seconds.
// Call it when nothing draws any more: after the server has stopped. Calling it again does nothing.
func (t *Throttle) Close() error {
	return t.gate.Close(func() {
		t.tags.stop()
		t.stop()
	})
}

// pausesChanged puts the pauses of the gate in force. The lock is held.
func (t *Throttle) pausesChanged(now int64) {
	t.tags.pausesChanged()
	t.rateLimiter.pausesChanged(now)
}

// A rateHolder is a Throttle as its sharer sees it.
type rateHolder struct{ *Throttle }

var _ sharing.Holder = rateHolder{}

// Terms implements Holder.
func (t rateHolder) Terms() sharing.Terms {
	return sharing.Terms{Ceiling: t.limit.ceilingConfig(), Spacing: t.limit.spacing(), Strict: t.limit.Strict, Quotas: t.quotas}
}

// Report implements Holder.
func (t rateHolder) Report(window time.Duration) sharing.Report {
	if window == 0 {
		r, _ := t.activity(0, false)
		return r
	}
	worst, some := t.tags.worst()
	r, passed := t.activity(window, worst.refused > 0)
	switch own := (Throttling{Reason: r.Throttled, Waiting: r.Hold.Callers}); {
	case some && t.tags.holds(worst, own, r.Throttled != "" && !passed):
		r.Throttled, r.OfTag, r.Tag, r.Hold = worst.reason, true, worst.name, worst.reported(t.gate.Now(), r.Waiting)
	case r.Throttled == "" && r.Waiting > 0: // they are held back before they draw
		r.Throttled, r.Hold = ReasonPause, sharing.Hold{Callers: r.Waiting}
	}
	return r
}

// Lease implements Holder.
func (t rateHolder) Lease(l limit.Lease) { t.setLease(l) }

// SetPauses implements Holder.
func (t rateHolder) SetPauses(list []Paused) { t.gate.SetPauses(list) }
