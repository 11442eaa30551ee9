package throttle

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/waitqueue"
)

// All returns a Limiter that draws from all of limiters at once: requests, tokens and
// slots of one service; the limit of an account and that of a destination.
//
// A draw of n takes n tokens from every one of them or from none; Weigh and PerCall
// change what it takes from one. A limiter that is named twice is drawn from
// twice. One settlement settles all: Settle(used) settles each with what used costs
// there, and Cancel gives everything back. AcquireUpTo takes the same number from all,
// at most what all have.
//
// No draw holds tokens of one limiter while it waits for another: callers wait for
// the scarcest, and take from all when all have what they need. So two Alls over the
// same limiters, in whatever order, never wait for each other. Callers that need the
// same are served in the order in which they came, a large draw is not overtaken for
// ever by small ones, and a deadline that is too near is told at once. The error is
// that of the scarcest limiter.
//
// That holds among *Throttle and *InFlight. Any other Limiter is drawn from last, by
// TryAcquire; when it refuses, everything goes back and the caller waits in its
// Acquire, which may come round several times. What its permits give back when
// they are cancelled is up to it; its wait is not known in advance, nor its order
// kept.
//
// Alls within All become one. A nil Limiter and one that is Unlimited are left out: All
// of nothing is unlimited, and All of one is that one. The Limiter is a Tagger when one
// of limiters is, and has the method Throttled, which tells of the one that
// holds callers back longest. It has nothing to close. A draw fails with ErrClosed once
// one of limiters is closed, and a caller that waits does so at once; for a Limiter that is
// not of this package and shows none (by embedding it, or by a method `Unwrap() Limiter`), within a second.
func All(limiters ...Limiter) Limiter {
	var children []child
	for _, l := range limiters {
		children = flatten(children, l, nil)
	}
	return join(children)
}

// Weigh returns a Limiter that takes cost(n) tokens of l for a draw of n, and settles
// what was used as cost(used). It is made for All, where the limiters count
// different things:
//
//	throttle.All(tokens, throttle.PerCall(requests), throttle.Weigh(bytes, func(n int) int { return 4 * n }))
//
// cost must depend on n alone and must not fall when n rises. It may be called any number
// of times, from any goroutine, while limiters are locked: it must ask none of them. A
// cost of zero or less draws nothing. Permit.N is n.
func Weigh(l Limiter, cost func(n int) int) Limiter {
	return join(flatten(nil, l, cost))
}

// PerCall returns a Limiter that takes one token of l for each draw, whatever its size:
// a limit on requests, or on calls in flight, beside one on what they cost. Only Cancel
// and Settle(0) give it back.
func PerCall(l Limiter) Limiter {
	return Weigh(l, func(n int) int { return min(n, 1) })
}

// A child is one limiter of an All.
type child struct {
	limiter Limiter
	native  native // the same, when it is of this package
	costs   []func(int) int
	// attached: it comes with a child before it, of the same limiter.
	attached bool
}

// price is what n tokens cost here.
func (p child) price(n int) int {
	if len(p.costs) == 0 {
		return n
	}
	sum := 0
	for _, cost := range p.costs {
		c := max(cost(n), 0)
		if sum > math.MaxInt-c {
			return math.MaxInt
		}
		sum += c
	}
	return sum
}

// within returns the child as it is within a Weigh.
func (p child) within(outer func(int) int) child {
	if outer == nil {
		return p
	}
	inner := p.price
	p.costs = []func(int) int{func(n int) int { return inner(max(outer(n), 0)) }}
	return p
}

// ofTag tells whether the child is what ForTag returned.
func (p child) ofTag() bool {
	_, ok := p.limiter.(*tagView)
	return ok
}

// flatten adds the children of l, of which a draw of n takes what cost says.
func flatten(children []child, l Limiter, cost func(int) int) []child {
	if Unlimited(l) {
		return children
	}
	var of []child
	switch l := l.(type) {
	case *multi:
		of = l.children
	case *tagged:
		of = l.children
	case *Throttle: // a type that embeds one may have methods of its own
		of = []child{{limiter: l, native: rateChild{l}}}
		if l.tags != nil {
			of = l.tags.other.parts()
			for i := range of {
				of[i].limiter = l
			}
		}
	case *tagView:
		of = l.live().parts()
	case *InFlight:
		of = []child{{limiter: l, native: slotChild{l}}}
	default:
		of = []child{{limiter: l}}
	}
	for _, p := range of {
		children = add(children, p.within(cost))
	}
	return children
}

// add adds a child. A limiter of this package that is there already is drawn from once, for both.
func add(children []child, p child) []child {
	for i := range children {
		if q := &children[i]; p.native != nil && q.native != nil && q.native.position() == p.native.position() {
			q.costs = []func(int) int{q.within(nil).price, p.price}
			return children
		}
	}
	return append(children, p)
}

// join returns the Limiter for children.
func join(children []child) Limiter {
	switch {
	case len(children) == 0:
		return unlimited{}
	case single(children):
		return children[0].limiter
	}
	j := multiOf(children)
	keep(j)
	for _, p := range children {
		if TellsTags(p.limiter) {
			return &tagged{multi: j}
		}
	}
	return j
}

// single tells whether the children are one limiter as it is.
func single(children []child) bool {
	for i, p := range children {
		if len(p.costs) > 0 || p.attached != (i > 0) {
			return false
		}
	}
	return true
}

// multiOf returns the multi that draws from children.
func multiOf(children []child) *multi {
	slices.SortStableFunc(children, func(p, q child) int { // the order of locks, then the others
		switch {
		case p.native != nil && q.native != nil && p.native.position() < q.native.position(), p.native != nil && q.native == nil:
			return -1
		case p.native == nil && q.native == nil:
			return 0
		}
		return 1
	})
	j := &multi{children: children}
	for len(j.natives) < len(children) && children[len(j.natives)].native != nil {
		p := children[len(j.natives)]
		child := waitqueue.Part[Permit]{Child: p.native}
		if len(p.costs) > 0 {
			child.Price = p.price
		}
		j.natives = append(j.natives, child)
	}
	return j
}

// A multi draws from several limiters at once; see All.
type multi struct {
	children []child                  // those of this package first, in the order of locks
	natives  []waitqueue.Part[Permit] // these
}

// natives is how many of the children are of this package.

// neverGrants tells whether a draw of n tokens is refused for good.
func neverGrants(l native, n int) bool {
	_, never := l.Impossible(n)
	return never
}

// A tagged is a multi with a limiter that tells tags apart.
type tagged struct {
	*multi
	known sync.Map // of knownTag by tag, where it does not change but with quotas
	count atomic.Int64
	seen  atomic.Int64 // the newest era that it was asked in
}

var (
	_ Limiter = (*multi)(nil)
	_ Tagger  = (*tagged)(nil)
)

// ForTag returns the same limits for what has this tag.
func (t *tagged) ForTag(tag string) Limiter {
	era := t.era()
	if t.seen.Swap(era) != era { // nothing of it counts any more, and it keeps tags from making way
		t.known.Clear()
		t.count.Store(0)
	}
	known, old := t.known.Load(tag)
	if old {
		if k := known.(knownTag); k.era == era { //nolint:forcetypeassert,errcheck // nothing else is in it
			return k.limiter
		}
	}
	fixed := true
	var children []child
	for _, p := range t.children {
		if p.attached {
			continue // comes with the tag's own
		}
		l := p.limiter
		if tags, ok := l.(Tagger); ok {
			l = tags.ForTag(tag)
			own, ok := l.(*tagView)
			_, plain := l.(*Throttle)
			fixed = fixed && (plain || ok && own.name == tag)
		}
		var cost func(int) int
		if len(p.costs) > 0 {
			cost = p.price
		}
		children = flatten(children, l, cost)
	}
	l := join(children)
	switch {
	case old:
		t.known.Store(strings.Clone(tag), knownTag{l, era})
	case fixed && t.count.Load() < maxNames:
		t.count.Add(1)
		t.known.Store(strings.Clone(tag), knownTag{l, era})
	}
	return l
}

// A knownTag is what ForTag returned in an era of quotas.
type knownTag struct {
	limiter Limiter
	era     int64
}

// era counts the changes of quotas at all children.
func (t *tagged) era() (sum int64) {
	for i := range t.children {
		if own, ok := t.children[i].limiter.(*Throttle); ok && own.tags != nil {
			sum += own.tags.era.Load()
		}
	}
	return sum
}

// ForTags returns the same limits for what has these tags.
func (t *tagged) ForTags(tags ...string) Limiter {
	var children []child
	for _, p := range t.children {
		if p.attached {
			continue // comes with the tags' own
		}
		var cost func(int) int
		if len(p.costs) > 0 {
			cost = p.price
		}
		children = flatten(children, ForTags(p.limiter, tags...), cost)
	}
	return join(children)
}

// TryAcquire takes n tokens from each limiter if all have them. With a *Throttle for
// each it takes no lock, and one allocation.
func (j *multi) TryAcquire(n int) (Permit, bool) {
	if n <= 0 { // refused only when one is closed
		for _, p := range j.children {
			if _, ok := p.limiter.TryAcquire(min(n, 0)); !ok {
				return Permit{}, false
			}
		}
		return Permit{}, true
	}
	p, lacks := j.try(n)
	if lacks == nil {
		return p, true
	}
	if p := j.never(n); p != nil { // no demand on any of them
		p.native.CountRefusal(p.native.why(p.price(n)))
		return Permit{}, false
	}
	if lacks.native != nil {
		lacks.native.NoteRefused(lacks.price(n))
		lacks.native.ask(lacks.price(n))
		lacks.native.CountRefusal(lacks.native.why(lacks.price(n)))
	}
	return Permit{}, false
}

// never returns the first child that will never grant what n tokens cost there; nil: each may.
func (j *multi) never(n int) *child {
	for i := range j.natives {
		if p := &j.children[i]; neverGrants(p.native, p.price(n)) {
			return p
		}
	}
	return nil
}

// try takes n tokens from each limiter, or returns the one that refused.
func (j *multi) try(n int) (Permit, *child) {
	for i := range j.natives {
		p := &j.children[i]
		if price := p.price(n); price > 0 && !p.native.peek(price) || neverGrants(p.native, 0) {
			return Permit{}, p
		}
	}
	g := newBundle(j.children)
	for i := range j.children {
		p := &j.children[i]
		price := p.price(n)
		if price <= 0 {
			g.permits = append(g.permits, Permit{})
			continue
		}
		var permit Permit
		var ok bool
		if p.native != nil {
			permit, ok = p.native.take(price)
		} else {
			permit, ok = p.limiter.TryAcquire(price)
		}
		if !ok {
			g.untake()
			return Permit{}, p
		}
		g.permits = append(g.permits, permit)
	}
	return Permit{n: n, by: g}, nil
}

// Acquire waits until n tokens of each limiter are granted; see Limiter and All.
func (j *multi) Acquire(ctx context.Context, n int) (Permit, error) { return j.acquire(ctx, n, false) }

// AcquireUpTo waits until one token of each limiter is granted, and takes as many
// as all have, at most n; see Limiter and All.
func (j *multi) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return j.acquire(ctx, n, true)
}

func (j *multi) acquire(ctx context.Context, n int, upTo bool) (Permit, error) {
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	if n <= 0 { // refused only when one is closed
		for _, p := range j.children {
			if _, err := p.limiter.Acquire(ctx, min(n, 0)); err != nil {
				return Permit{}, err
			}
		}
		return Permit{}, nil
	}
	if !upTo {
		if p, lacks := j.try(n); lacks == nil {
			return p, nil
		}
	}
	return j.wait(ctx, n, upTo, 0)
}

// Throttled tells whether a limiter holds callers back, as far as it can tell, and
// which one does so for longest. One that cannot say how long comes first.
func (j *multi) Throttled() (Throttling, bool) { return worstOf(j.children) }

// worstOf returns what holds callers back for longest.
func worstOf(children []child) (worst Throttling, held bool) {
	weight := func(t Throttling) time.Duration {
		switch {
		case t.Reason == ReasonClosed:
			return never
		case t.RetryAfter == 0:
			return never - 1
		}
		return t.RetryAfter
	}
	for _, p := range children {
		l, ok := look[interface{ Throttled() (Throttling, bool) }](p.limiter)
		if !ok {
			continue
		}
		if t, ok := l.Throttled(); ok && (!held || weight(t) > weight(worst)) {
			worst, held = t, true
		}
	}
	return worst, held
}

// A bundle is what one draw took from each limiter.
type bundle struct {
	done     atomic.Bool
	children []child
	permits  []Permit
	room     [4]Permit // for most, without an allocation of its own
}

func newBundle(children []child) *bundle {
	g := &bundle{children: children}
	g.permits = g.room[:0]
	return g
}

// settle settles each permit with what used costs there.
func (g *bundle) settle(_ int64, n, used int) {
	if !g.done.CompareAndSwap(false, true) {
		return
	}
	for i, p := range g.permits {
		switch used {
		case 0:
			p.Cancel()
		case n:
			p.Settle(p.n)
		default:
			p.Settle(g.children[i].price(used))
		}
	}
}

// untake gives back what try has taken so far.
func (g *bundle) untake() {
	for i, permit := range g.permits {
		switch p := &g.children[i]; {
		case p.native == nil:
			permit.Cancel()
		case permit.n > 0:
			p.native.untake(permit)
		}
	}
}

// unlimited is All of nothing.
type unlimited struct{}

func (unlimited) Unlimited() bool { return true }

func (unlimited) TryAcquire(n int) (Permit, bool) { return Permit{n: max(n, 0)}, true }

func (u unlimited) AcquireUpTo(ctx context.Context, n int) (Permit, error) {
	return u.Acquire(ctx, n)
}

func (unlimited) Acquire(ctx context.Context, n int) (Permit, error) {
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	return Permit{n: max(n, 0)}, nil
}
