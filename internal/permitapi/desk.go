package permitapi

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/apierror"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A desk hands out permits and takes them back.
type desk struct {
	Config

	token  listen.Token
	closed chan struct{}

	mu   sync.Mutex
	book *book
}

func newDesk(c Config) *desk {
	token := listen.TokenIn(c.TokenFile, c.Token, listen.LeastToken(c.Listen), c.Logger)
	return &desk{Config: c, token: token, closed: make(chan struct{}), book: newBook(c.MaxPermits)}
}

// sweepInterval is how late a permit may be found expired.
const sweepInterval = 250 * time.Millisecond

// sweepUntil settles expired permits until the desk is closed. The channel is closed then.
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

// busy tells whether clients hold permits.
func (d *desk) busy() bool {
	now := time.Now()
	return d.locked(func(b *book) int { b.sweep(now); return b.open }) > 0
}

// close settles what is still open.
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

// acquire waits for a permit and enters it. Errors: *apierror.Error when too many are open; those of the limiter.
func (d *desk) acquire(ctx context.Context, r *acquireRequest) (g grant, err error) {
	d.mu.Lock()
	room := d.book.reserve()
	d.mu.Unlock()
	if !room {
		e := apierror.New(http.StatusServiceUnavailable, apierror.TooMany,
			"as many permits are open or waited for as may be: "+strconv.Itoa(d.MaxPermits))
		e.RetryAfterSeconds = 1
		return grant{}, e
	}
	entered := false
	defer func() {
		if !entered {
			d.locked(func(b *book) int { b.release(); return 0 })
		}
	}()
	p, err := d.draw(ctx, r)
	if err != nil {
		return grant{}, err
	}
	if err := ctx.Err(); err != nil { // the client has gone, and will never use it
		p.Cancel()
		return grant{}, err
	}
	g = grant{id: rand.Text(), tokens: r.tokens(), lease: r.lease(d.Lease)}
	if r.UpTo {
		g.tokens = p.N()
	}
	until := time.Now().Add(g.lease)
	d.locked(func(b *book) int { b.add(g.id, p, g.tokens, until); return 0 })
	entered = true
	return g, nil
}

// atOnce is the wait of a call that does not want to wait: long enough to be told why not.
const atOnce = time.Millisecond

func (d *desk) draw(ctx context.Context, r *acquireRequest) (throttle.Permit, error) {
	l := d.limiterFor(r.Tag)
	if throttle.Unlimited(l) {
		return throttle.NewPermit(r.tokens(), nil), nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(r.wait(d.MaxWait), atOnce))
	defer cancel()
	if r.UpTo {
		return l.AcquireUpTo(ctx, r.tokens())
	}
	return l.Acquire(ctx, r.tokens())
}

// finish ends a permit. It returns the state that the permit had before.
func (d *desk) finish(id string, as state, used int) (before state, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	e := d.book.find(id, now)
	if e == nil {
		return "", false
	}
	before = e.state
	if before == open {
		e.permit.Settle(used)
		d.book.end(e, as, now)
	}
	return before, true
}

// report tells the limiter of an outcome, once for each permit. It returns false for a permit that is not known.
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
