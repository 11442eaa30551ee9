package permits

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/admission"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A desk hands out permits and takes them back.
type desk struct {
	apiConfig

	token  listen.Token
	pauser listen.Token
	closed chan struct{}

	mu   sync.Mutex
	book *book
}

func newDesk(c apiConfig) *desk {
	least := listen.LeastToken(c.Listen)
	d := &desk{apiConfig: c, token: listen.TokenIn(c.TokenFile, c.Token, least, c.Logger), closed: make(chan struct{})}
	if d.pauser = d.token; c.PauseToken != "" || c.PauseTokenFile != "" {
		d.pauser = listen.TokenIn(c.PauseTokenFile, c.PauseToken, least, c.Logger)
	}
	each := c.MaxPermitsPerCaller
	if each == 0 {
		each = max(c.MaxPermits/2, 1)
	}
	d.book = newBook(c.MaxPermits, each)
	return d
}

// sweepInterval bounds how late a permit's expiry is found.
const sweepInterval = 250 * time.Millisecond

// sweepUntil settles expired permits until the desk is closed. Then it closes the channel.
func (d *desk) sweepUntil(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(sweepInterval)
		defer tick.Stop()
		for {
			select {
			case <-d.closed:
				return
			case now := <-tick.C:
				if n := d.locked(func(b *book) int { return b.sweep(now) }); n > 0 {
					d.Logger.WarnContext(ctx, "permits were neither settled nor cancelled within their lease; they count as drawn", "permits", n)
				}
			}
		}
	}()
	return done
}

func (d *desk) locked(f func(b *book) int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f(d.book)
}

// busy reports whether clients hold permits.
func (d *desk) busy() bool {
	now := time.Now()
	return d.locked(func(b *book) int { b.sweep(now); return b.open }) > 0
}

// close settles all open permits.
func (d *desk) close() {
	close(d.closed)
	if n := d.locked(func(b *book) int { return b.settleAll(time.Now()) }); n > 0 {
		d.Logger.Warn("permits were open at the end; they count as drawn", "permits", n)
	}
}

// limiterFor returns the limiter of a tag.
func (d *desk) limiterFor(tag string) throttle.Limiter {
	if t, ok := d.Limiter.(throttle.Tagger); ok && tag != "" {
		return t.ForTag(tag)
	}
	return d.Limiter
}

// A grant is a permit that was entered into the book.
type grant struct {
	id     string
	tokens int
	lease  time.Duration
}

// acquire waits for a permit and enters it. Errors: *proxy.Error if too many are open; those of the limiter.
func (d *desk) acquire(ctx context.Context, r *acquireRequest) (g grant, err error) {
	caller := callerOf(ctx)
	d.mu.Lock()
	full := d.book.reserve(caller.name, d.MaxPermitsPerCaller > 0 || !caller.local)
	d.mu.Unlock()
	if full != "" {
		return grant{}, tooMany(full)
	}
	entered := false
	defer func() {
		if !entered {
			d.locked(func(b *book) int { b.release(caller.name); return 0 })
		}
	}()
	p, err := d.draw(ctx, r)
	if err != nil {
		return grant{}, err
	}
	if err := ctx.Err(); err != nil { // the client has gone and will not use it
		p.Cancel()
		return grant{}, err
	}
	g = grant{id: rand.Text(), tokens: r.tokens(), lease: r.lease(d.Lease)}
	if r.UpTo {
		g.tokens = p.N()
	}
	if entered = d.enter(&g, p, caller.name, r.Tag); !entered {
		p.Cancel()
		return grant{}, tooMany("as many permits of no tokens are open as may be: " + strconv.Itoa(max(d.MaxPermits/freePart, 1)))
	}
	return g, nil
}

// enter enters a permit. One without cost is valid for a short time, and their number is bounded: enter returns false if it is reached.
func (d *desk) enter(g *grant, p throttle.Permit, caller, tag string) bool {
	l := d.limiterFor(tag)
	e := &entry{id: g.id, permit: p, tokens: g.tokens, caller: caller, charge: func(tokens int) {
		if err := throttle.Charge(l, tokens); errors.Is(err, throttle.ErrNotCharged) {
			d.Logger.Warn("what was used above a permit could not be charged", "error", err, "tokens", tokens)
		}
	}}
	if g.tokens == 0 {
		g.lease = min(g.lease, freeLease)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if g.tokens == 0 && !d.book.roomForFree() {
		return false
	}
	e.until = time.Now().Add(g.lease)
	d.book.add(e)
	return true
}

func tooMany(full string) error {
	e := proxy.NewError(http.StatusServiceUnavailable, proxy.TooMany, full)
	e.RetryAfterSeconds = 1
	return e
}

func (d *desk) draw(ctx context.Context, r *acquireRequest) (throttle.Permit, error) {
	l := d.limiterFor(r.Tag)
	if throttle.Unlimited(l) {
		return throttle.NewPermit(r.tokens(), nil), nil
	}
	return admission.DrawFor(ctx, l, r.tokens(), r.UpTo, r.wait(d.MaxWait))
}

// finish ends a permit. It returns the permit's previous state.
func (d *desk) finish(id string, as state, used int) (before state, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	e := d.book.find(id, now)
	if e == nil {
		return "", false
	}
	before = e.state
	switch {
	case before == open:
		if as == cancelled {
			e.permit.Cancel()
		} else {
			e.permit.Settle(used)
		}
		d.book.end(e, as, now)
	case before == expired && as == settled && used > e.tokens && e.charge != nil:
		e.charge(used - e.tokens)
		e.charge = nil
	}
	return before, true
}

// report reports an outcome to the limiter, once for each permit. It returns false for an unknown permit.
func (d *desk) report(id string, o throttle.Outcome) (already, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.book.find(id, time.Now())
	if e == nil {
		return false, false
	}
	already, e.reported = e.reported, true
	if !already {
		e.permit.Report(o)
	}
	return already, true
}
