package join

import (
	"context"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/engine/waitqueue"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// An All draws from several limiters at once.
type All[P Permit] struct {
	Children []Child[P]          // those with a Source first, in the order of locks
	Parts    []waitqueue.Part[P] // the children with a Source
	host     Host[P]
}

// New returns the All that draws from children, which it sorts.
func New[P Permit](host Host[P], children []Child[P]) *All[P] {
	sort(children)
	j := &All[P]{Children: children, host: host}
	for len(j.Parts) < len(children) && children[len(j.Parts)].Seat != nil {
		p := children[len(j.Parts)]
		part := p.Seat.Source.Part()
		if p.Weighed() || p.countsCalls() {
			part.Price = p.draws
		}
		j.Parts = append(j.Parts, part)
	}
	return j
}

// A Bundle holds the permits of one draw of N tokens, one from each limiter.
type Bundle[P Permit] struct {
	N        int
	Done     atomic.Bool // it is settled
	Children []Child[P]
	Permits  []P
	room     [4]P // saves most draws an allocation
}

func (j *All[P]) bundle(n int) *Bundle[P] {
	g := &Bundle[P]{N: n, Children: j.Children}
	g.Permits = g.room[:0]
	return g
}

// TryAcquire takes n tokens from each limiter if all have them, and returns nil otherwise.
func (j *All[P]) TryAcquire(n int) *Bundle[P] {
	if n < 0 {
		return nil
	}
	g, lacks := j.try(n)
	if lacks == nil {
		return g
	}
	if p := j.never(n); p != nil { // this is no demand on any of them
		p.Seat.Owner.CountRefusal(p.Seat.Why(p.Asks(n)))
		return nil
	}
	if s := lacks.Seat; s != nil {
		s.Source.NoteRefused(lacks.Asks(n), false)
		s.Owner.CountRefusal(s.Why(lacks.Asks(n)))
	}
	return nil
}

// never returns the first child that can never grant the cost of n tokens; nil if each may.
func (j *All[P]) never(n int) *Child[P] {
	for i := range j.Parts {
		p := &j.Children[i]
		if _, never := j.Parts[i].Impossible(p.Asks(n)); never {
			return p
		}
	}
	return nil
}

// try takes n tokens from each limiter, or returns the one that refused.
func (j *All[P]) try(n int) (*Bundle[P], *Child[P]) {
	for i := range j.Parts {
		p := &j.Children[i]
		if !p.Seat.Source.Peek(p.Asks(n)) || p.Seat.Gate.IsClosed() {
			return nil, p
		}
	}
	g := j.bundle(n)
	for i := range j.Children {
		p := &j.Children[i]
		price := p.draws(n)
		var permit P
		if price <= 0 {
			g.Permits = append(g.Permits, permit)
			continue
		}
		var ok bool
		if p.Seat != nil {
			permit, ok = p.Seat.Source.Draw(price)
		} else {
			permit, ok = p.Limiter.TryAcquire(price)
		}
		if !ok {
			g.untake()
			return nil, p
		}
		g.Permits = append(g.Permits, permit)
	}
	return g, nil
}

// untake gives back what try has taken so far.
func (g *Bundle[P]) untake() {
	for i, permit := range g.Permits {
		switch p := &g.Children[i]; {
		case p.Seat == nil:
			permit.Cancel()
		case p.draws(g.N) > 0:
			p.Seat.Untake(permit)
		}
	}
}

// Acquire waits until n tokens of each limiter are granted, or with upTo at least one and as many as all have.
func (j *All[P]) Acquire(ctx context.Context, n int, upTo bool) (*Bundle[P], error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !upTo {
		if g, lacks := j.try(n); lacks == nil {
			return g, nil
		}
	}
	return j.Wait(ctx, n, upTo, 0)
}

// WinNow is TryAcquire under the locks of all limiters, each of which has a Source. It looks again at what comes by time, and notes no refusal.
func (j *All[P]) WinNow(n int) *Bundle[P] {
	a := waitqueue.NewAttempt(context.Background(), j.Parts)
	if !a.WinNow(n) {
		return nil
	}
	g := j.bundle(n)
	g.Permits = append(g.Permits, a.Permits()...)
	return g
}

// An Alone draws from one limiter, at least one token each time.
type Alone[P Permit] struct{ all All[P] }

// NewAlone returns the Alone of the limiter with this seat.
func NewAlone[P Permit](s *Seat[P]) *Alone[P] {
	return &Alone[P]{All[P]{Children: []Child[P]{{Seat: s}}, Parts: []waitqueue.Part[P]{s.Source.Part()}}}
}

// Acquire waits until n tokens are granted, or with upTo at least one.
func (j *Alone[P]) Acquire(ctx context.Context, n int, upTo bool) (P, error) {
	a := waitqueue.NewAttempt(ctx, j.all.Parts)
	_, err := j.all.win(ctx, a, n, upTo)
	return a.Permits()[0], err
}

// win waits until the attempt has drawn n tokens of each part, or with upTo as many as all have.
func (j *All[P]) win(ctx context.Context, a *waitqueue.Attempt[P], n int, upTo bool) (int, error) {
	over := noWait
	counted := false // a call waits once, at however many limiters
	a.Waits = func(at int, r limit.Reason, n int) {
		over(0, nil)
		s := j.Children[at].Seat
		if !counted {
			s.Owner.CountWait(r)
			counted = true
		}
		a.Aside.Store(s.Aside)
		over = s.Owner.Watch(ctx, r, n)
	}
	k, failed := a.Win(ctx, n, upTo)
	var err error
	if failed != nil {
		err = j.Children[failed.At].Seat.failed(ctx, failed)
	}
	over(k, err)
	return k, err
}

func noWait(int, error) {}
