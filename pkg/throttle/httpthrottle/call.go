package httpthrottle

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/redact"
	"github.com/numaproj-contrib/numathrottle/internal/tagname"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A call is one request with all its attempts.
type call struct {
	*transport

	ctx     context.Context //nolint:containedctx // the request's own, which outlives the call
	req     *http.Request
	body    payload
	key     string // Idempotency-Key to send; empty for none
	tag     string // for the limiter
	name    string // the same for pauses and errors; see quota.ShortName
	cost    int
	passed  func() int // its cost by its body so far; nil: the tokens drawn for it
	began   time.Time
	attempt int // how many were made
	repeats int // how often the base was about to repeat it
}

// An outcome is the result of an attempt.
type outcome struct {
	// again means that another attempt follows after wait; res is of no more use then.
	again bool
	wait  time.Duration
	// refused means that the service asks for the wait.
	refused bool
	res     *http.Response
	err     error
	// open means that the permit is settled at the end of the body of res, with the cost from meter.
	open  bool
	meter Meter
}

// begin prepares a call. An error leaves the request's body closed.
func (t *transport) begin(req *http.Request) (*call, error) {
	c := &call{transport: t, ctx: tracked(req.Context()), req: req, cost: 1, began: time.Now()}
	c.passed = costrule.Passed(req.Context())
	c.body.first = req.Body
	begun := false
	defer func() {
		if !begun { // also when a function of the user panics
			c.body.close()
		}
	}()
	if t.cost != nil {
		c.cost = max(t.cost(req), 0)
	}
	if t.tag != nil {
		c.tag = t.tag(req)
		c.name = tagname.Short(c.tag)
	}
	if t.key != nil && !idempotent(req) {
		c.key = t.key(req)
		if err := checkKey(c.key); err != nil {
			return nil, err
		}
	}
	begun = true // newPayload closes what it takes over
	var err error
	if c.body, err = t.newPayload(req); err != nil {
		return nil, err
	}
	return c, nil
}

// run makes attempts until one has an answer or an error to return.
func (c *call) run() (*http.Response, error) {
	for {
		o := c.try()
		if !o.again {
			return o.res, o.err
		}
		if err := c.rest(o); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt. When it returns, the permit is settled or in the hands of
// the response's body: nothing is held while a call waits for its next attempt.
func (c *call) try() (o outcome) {
	permit, err := c.admit(c.attempt > 0)
	if err != nil {
		return outcome{err: err}
	}
	c.attempt++
	g := c.newGuard(permit)
	defer func() { // also when something panics
		if !o.open {
			g.settle() // an attempt that was made counts
		}
		switch {
		case o.again:
			waited := time.Now()
			discard(o.res)
			o.wait = max(o.wait-time.Since(waited), 0)
			g.release()
		case o.res == nil:
			g.release()
		default:
			settleWith(o.res, g, o.meter)
		}
	}()
	req, err := c.request(g.ctx)
	if err != nil {
		permit.Cancel()
		return outcome{err: err}
	}
	res, err := c.base.RoundTrip(req) //nolint:bodyclose // the outcome has it
	if why := g.leave(); err != nil {
		if why != nil && c.ctx.Err() == nil {
			return c.stopped(why)
		}
		return c.failed(nil, err)
	}
	sent := res.Request // with what a transport below has logged in with
	if sent == nil {
		sent = req
	}
	res.Request = c.req
	return c.answered(g, res, sent)
}

// answered decides what becomes of an attempt that has an answer. sent is the request as it was sent.
func (c *call) answered(g *guard, res *http.Response, sent *http.Request) outcome {
	a, r, refused, end := c.judge(res)
	defer end()
	if refused {
		r.Status, r.Sent, r.At = a.Status, g.sent, a.At
		r.Tag, r.Cost, r.Attempt = c.name, c.cost, c.attempt
		secrets := redact.Request(sent)
		r.Code, r.Dimension = secrets.Word(r.Code), secrets.Word(r.Dimension)
		c.warn(a, r, secrets)
		c.feedback.Refused(c.ctx, r)
		if o, ok := r.outcome(); ok {
			g.permit.Report(o)
		}
		if r.Class == Wait && r.RetryAfter > c.briefly {
			if l := c.listenerOf(c.tag); l != nil {
				l.RetryAfter(r.At.Add(min(r.RetryAfter, c.maxPause)), r.reason())
			}
		}
		return c.refused(res, r)
	}
	if failure(a.Status) {
		if o := c.failed(res, nil); o.again {
			return o
		}
	}
	if a.Status < http.StatusInternalServerError {
		g.permit.Report(throttle.OutcomeAccepted)
		c.feedback.Accepted(c.ctx, Acceptance{Status: a.Status, Sent: g.sent, At: a.At, Tag: c.name, Cost: c.cost})
	}
	o := outcome{res: res, open: true}
	if c.meter != nil {
		o.meter = c.meter(res)
	}
	return o
}

// request returns the request of the next attempt, with its context. The caller's own stays as it is.
func (c *call) request(ctx context.Context) (*http.Request, error) {
	body, err := c.body.next(c.attempt)
	if err != nil {
		return nil, err
	}
	req := c.req.WithContext(ctx)
	req.Body = body
	if body != nil && c.body.again != nil {
		req.GetBody = c.body.again // for a connection that turns out to be closed before anything was sent
	}
	if c.key != "" {
		req.Header = req.Header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set(keyHeader, c.key)
	}
	return req, nil
}

// refused decides what becomes of a call that the service refused.
func (c *call) refused(res *http.Response, r Refusal) outcome {
	d := backoff(c.attempt-1, min(r.MaxBackoff, c.maxWait))
	wait, fits := late(d, d/2, c.left())
	if r.RetryAfter > 0 {
		// Its answer came a while ago, if its body came slowly.
		wait, fits = late(max(r.RetryAfter-time.Since(r.At), 0), spread(r.RetryAfter), c.left())
	}
	switch {
	case r.Class != Stop && r.RetryAfter <= c.maxWait && c.repeatable(r.NotProcessed) && fits:
		return outcome{again: true, wait: wait, refused: true, res: res}
	case c.asErrors:
		discard(res)
		return outcome{err: c.refusalError(r)}
	}
	return outcome{res: res}
}

// failed decides what becomes of a call that failed for another reason than a refusal.
func (c *call) failed(res *http.Response, err error) outcome {
	d := backoff(c.attempt-1, 0)
	wait, fits := late(d, d/2, c.left())
	again := c.failures && c.ctx.Err() == nil && c.repeatable(false) && fits
	return outcome{again: again, wait: wait, res: res, err: err}
}

// repeatable reports whether the request may and can be sent again.
func (c *call) repeatable(notProcessed bool) bool {
	return c.attempt < c.attempts && c.body.again != nil && (notProcessed || c.key != "" || idempotent(c.req))
}

// left returns the time in which another attempt may begin.
func (c *call) left() time.Duration { return min(left(c.ctx), c.maxElapsed-time.Since(c.began)) }

// left returns the time until the deadline of ctx.
func left(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return math.MaxInt64
	}
	return time.Until(deadline)
}

// failure reports whether a status says that the call failed, and might not the next time.
func failure(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// keyHeader is the header of draft-ietf-httpapi-idempotency-key-header.
const keyHeader = "Idempotency-Key"

// idempotent reports whether it makes no difference to the service how often it gets a request, by the same criteria as net/http's own
// transport.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get(keyHeader) != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// checkKey returns an error for an invalid key, without repeating the key.
func checkKey(key string) error {
	const longest = 255
	if len(key) > longest {
		return fmt.Errorf("httpthrottle: %s has %d characters, allowed: at most %d", keyHeader, len(key), longest)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fmt.Errorf("httpthrottle: %s has the byte %#02x at %d, allowed: visible ASCII", keyHeader, key[i], i)
		}
	}
	return nil
}
