package account

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Call is one request of a caller, with all its attempts. Its exported fields do not change once it is in use.
type Call struct {
	// Size is what the request asks for, and Model the model, for its price.
	Size  prompt.Size
	Model string
	// Tag is the tenant whose quota it draws from, unless the limiter is that of a tag; empty for none.
	Tag string
	// Passed, if not nil, returns the size of a request that was not read before it was sent. It is called when an attempt has ended.
	Passed func() prompt.Size

	mu        sync.Mutex
	attempt   *attempt                          // the last one
	estimates map[profile.Rule]profile.Estimate // as they were first made
}

type callKey struct{}

// WithCall returns a context whose draws are those of c.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// CallOf returns the call of a context; nil for none.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

func (c *Call) last() *attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.attempt
}

// An attempt is a draw for a call, with the draw of each part and its count in the end.
type attempt struct {
	limits *Limits
	call   *Call
	drawn  []int // by part
	alone  int   // the only part besides budgets, whose limiter is used directly; -1: there are more

	mu      sync.Mutex
	charged []int  // nil: as drawn
	price   *money // by the usage; nil: as charged
	noMoney bool   // it cost none
}

// cost returns the count of a part. It is called while limiters are locked.
func (a *attempt) cost(i int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.noMoney && a.limits.parts[i].kind == moneyKind:
		return 0
	case a.charged != nil:
		return a.charged[i]
	}
	return a.drawn[i]
}

// settle fixes what the parts count, before the permit is settled, and returns what to settle it with. A negative used means that the call was
// not made.
func (a *attempt) settle(used int) int {
	if used < 0 {
		return used
	}
	a.passed()
	for i := range a.limits.parts {
		p, n := &a.limits.parts[i], a.cost(i)
		if p.kind == moneyKind {
			a.limits.config.Purse.note(a.call.Model, a.spent(n))
		}
		if p.pool != "" {
			a.limits.counters.settled(p.pool, n)
		}
	}
	if a.alone >= 0 {
		return a.cost(a.alone)
	}
	return 1
}

// spent returns what the call has cost exactly, which is n in millionths.
func (a *attempt) spent(n int) money {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.price != nil && !a.noMoney {
		return *a.price
	}
	return money{whole: int64(n)}
}

// free says that the call costs no money.
func (a *attempt) free() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noMoney = true
}

func (a *attempt) isFree() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.noMoney
}

// passed raises the count to the size of the request as it was sent.
func (a *attempt) passed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.charged == nil {
		_, a.charged = a.sent()
	}
}

// sent returns the call as it was sent, and what each part counts for it without a usage.
func (a *attempt) sent() (*Call, []int) {
	charged := slices.Clone(a.drawn)
	if a.call.Passed == nil {
		return a.call, charged
	}
	c := &Call{Size: a.call.Passed(), Model: a.call.Model}
	for i := range charged {
		charged[i] = max(charged[i], a.limits.parts[i].amount(a.limits, c))
	}
	return c, charged
}

// use takes the usage of the answer. That of an answer that is not whole only raises the count.
func (a *attempt) use(u usage.Usage, whole bool) {
	call, charged := a.sent()
	if whole {
		a.limits.learn(call, u)
	}
	var price *money
	for i := range charged {
		p := &a.limits.parts[i]
		switch {
		case p.kind == moneyKind:
			if exact := a.limits.price(call, u); !a.isFree() && (whole || exact.up() > int64(charged[i])) {
				charged[i], price = a.limits.config.Purse.sum(exact), &exact
			}
		case p.charge == nil:
		default:
			n := p.charge(a.limits, call, u)
			if !whole {
				n = max(n, charged[i])
			}
			charged[i] = n
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.charged, a.price = charged, price
}

// report takes what the service says that the call has cost.
func (a *attempt) report(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.charged = slices.Clone(a.drawn)
	for i := range a.charged {
		switch a.limits.parts[i].kind {
		case "", profile.Tokens, profile.TokensDay:
			a.charged[i] = n
		default:
		}
	}
}

// A limiter draws for the calls of contexts, for one tag or none.
type limiter struct {
	*Limits

	first, tag string           // the tag, and the first of two levels; empty for one
	all        throttle.Limiter // those of the tag but for budgets, for their state
}

// A tagLimiter is a limiter of limits with quotas.
type tagLimiter struct{ *limiter }

var _ throttle.Tagger = (*tagLimiter)(nil)

// Limiter returns a limiter whose Acquire draws for the call in its context ([WithCall]); without one it draws so many tokens of each limit. With
// quotas it is a throttle.Tagger.
func (l *Limits) Limiter() throttle.Limiter {
	of := &limiter{Limits: l, all: l.static}
	ofTags := func(p part) bool { return len(p.quotas.Tags)+len(p.quotas.Match) > 0 }
	if hook.TellsTags(l.static) || slices.ContainsFunc(l.parts, ofTags) {
		return &tagLimiter{of}
	}
	return of
}

// Acquire implements throttle.Limiter.
func (l *limiter) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	c := CallOf(ctx)
	if c == nil {
		c = &Call{Size: prompt.Size{Tokens: int64(n), Silent: true}}
	}
	a := &attempt{limits: l.Limits, call: c, drawn: make([]int, len(l.parts)), alone: -1}
	var budgets, rest []throttle.Limiter
	for i := range l.parts {
		p := &l.parts[i]
		a.drawn[i] = l.drawn(p, c)
		weighed := throttle.Weigh(l.of(p), func(int) int { return a.cost(i) })
		if p.isBudget {
			budgets = append(budgets, weighed)
			continue
		}
		rest, a.alone = append(rest, weighed), i
	}
	ramp := l.slow.limiter(time.Now())
	n = 1
	if len(rest) == 1 && ramp == nil {
		rest[0], n = l.of(&l.parts[a.alone]), a.drawn[a.alone] // as if it were used directly
	} else {
		a.alone = -1
	}
	if ramp != nil {
		rest = append(rest, throttle.PerCall(ramp))
	}
	if !a.give() {
		waits, end := context.WithCancel(ctx)
		defer end()
		go a.giveLater(waits)
	}
	permit, paid, err := l.acquire(ctx, throttle.All(budgets...), throttle.All(rest...), n)
	if err != nil {
		return throttle.Permit{}, err
	}
	c.mu.Lock()
	c.attempt = a
	c.mu.Unlock()
	permit, _ = hook.OnSettle(permit, func(used int) int {
		if used = a.settle(used); used < 0 {
			paid.Cancel()
		} else {
			paid.Settle(1) // with what each counts
		}
		return used
	}).(throttle.Permit)
	return permit, nil
}

// of returns the limiter of a part for the tag. In a budget of the account, which is the quota of other tags, all draw together.
func (l *limiter) of(p *part) throttle.Limiter {
	switch {
	case l.tag == "" || !hook.TellsTags(p.limiter):
		return p.limiter
	case p.isShared() && l.first != "":
		return throttle.ForTags(p.limiter, l.first, l.tag, "")
	case p.isShared():
		return throttle.ForTags(p.limiter, l.tag, "")
	}
	return l.tagged(p.limiter)
}

// tagged returns the limiter of one of the limits for the tag, or for both levels.
func (l *limiter) tagged(of throttle.Limiter) throttle.Limiter {
	if l.first != "" {
		both, _ := hook.ForLevels(of, l.first, l.tag).(throttle.Limiter)
		return both
	}
	if t, ok := of.(throttle.Tagger); ok && l.tag != "" {
		return t.ForTag(l.tag)
	}
	return of
}

// isShared reports whether the part is a budget of the account.
func (p *part) isShared() bool { return p.isBudget && p.max > 0 }

// AcquireUpTo implements throttle.Limiter. A call cannot be made in part.
func (l *limiter) AcquireUpTo(ctx context.Context, n int) (throttle.Permit, error) {
	return l.Acquire(ctx, n)
}

// TryAcquire implements throttle.Limiter, for no call.
func (l *limiter) TryAcquire(n int) (throttle.Permit, bool) { return l.all.TryAcquire(n) }

// ForTag implements throttle.Tagger.
func (l *tagLimiter) ForTag(tag string) throttle.Limiter { return l.ForLevels("", tag) }

// ForLevels returns the limiter for a tag of two levels, the first and the whole; see hook.ForLevels.
func (l *tagLimiter) ForLevels(first, tag string) throttle.Limiter {
	of := &limiter{Limits: l.Limits, first: first, tag: tag}
	of.all = of.tagged(l.static)
	return &tagLimiter{of}
}

// Acquire implements throttle.Limiter.
func (l *tagLimiter) Acquire(ctx context.Context, n int) (throttle.Permit, error) {
	if c := CallOf(ctx); c != nil && c.Tag != "" && l.tag == "" {
		return l.ForTag(c.Tag).Acquire(ctx, n)
	}
	return l.limiter.Acquire(ctx, n)
}

// QuotaTag returns the tag whose quota it draws from; empty for tags without one of their own.
func (l *tagLimiter) QuotaTag() string {
	if of, ok := l.all.(interface{ QuotaTag() string }); ok {
		return of.QuotaTag()
	}
	return ""
}

// Throttled describes the limit that holds callers back; see throttle.Throttle.
func (l *limiter) Throttled() (throttle.Throttling, bool) {
	if of, ok := l.all.(interface {
		Throttled() (throttle.Throttling, bool)
	}); ok {
		return of.Throttled()
	}
	return throttle.Throttling{}, false
}

// Unlimited reports whether there is no limit, and nothing to count.
func (l *limiter) Unlimited() bool {
	return !slices.ContainsFunc(l.parts, func(p part) bool { return p.kind == moneyKind || !throttle.Unlimited(p.limiter) })
}

// Unwrap exposes the limits to package throttle.
func (l *limiter) Unwrap() throttle.Limiter { return l.all }

// RetryAfter passes on a service's request to be left alone.
func (l *limiter) RetryAfter(until time.Time, reason string) {
	if to, ok := l.all.(interface {
		RetryAfter(until time.Time, reason string)
	}); ok {
		to.RetryAfter(until, reason)
	}
}
