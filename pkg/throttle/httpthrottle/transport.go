package httpthrottle

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/hook"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// NewTransport returns an http.RoundTripper that draws from l for each request that it sends through base. It waits and tries again as the
// service's refusals ask for; see the package documentation. A nil base is one of [NewBase], which notices dead connections and which all such
// transports share; it's http.DefaultTransport if that is no *http.Transport. If l is [throttle.Unlimited], which includes nil, nothing is
// drawn, and refusals are still obeyed. The outcome of each attempt is reported to l ([throttle.Permit.Report]), so that an adaptive limit follows the service.
//
// RoundTrip may be called from any number of goroutines at once, if base may. It blocks until the tokens are there and an attempt has its
// answer, or the request's context ends. Errors of l are *throttle.Error or the cause of the context. When a pause lasts longer than the
// context or [WithMaxWait] allows, the error is a *throttle.Error with [throttle.ReasonPause]. Other errors are those of [RefusalsAsErrors], of
// base, and of the request's body or GetBody. Every *throttle.Error names the limit of l. A context.DeadlineExceeded of base, too, becomes
// one when the call spent more than 80 % of its time waiting; see internal/hook. That includes waits for tokens, in a pause, and for the
// next attempt after a refusal. http.Client wraps all errors in a *url.Error. No error made here holds the request's URL or any of its
// headers; the *url.Error does hold the URL, so a key belongs in a header.
//
// No request leaves without a permit of its own, also when base would send one again by itself; see the package documentation. That is seen
// through httptrace. So base must pass the values of the request's context on to the *http.Transport, or to anything else that makes the
// connections. Every base does so that clones a request, or derives its context from the request's. Requests that a base sends with a
// context of another origin, such as context.Background, cannot be seen. Such a call draws once, and net/http may send it again. Copies of
// a request that a base sends at once are ended, for only one has a permit: such a base belongs above this transport.
//
// The body of every response must be read to its end or closed, as net/http asks for; after a switch of protocols it must be closed. The
// permit is settled then, and with it the slot of a [throttle.InFlight] comes back.
//
// NewTransport panics when an option is wrong. A program whose options come from a configuration calls Check first.
func NewTransport(base http.RoundTripper, l throttle.Limiter, opts ...Option) http.RoundTripper {
	if base == nil {
		base = sharedBase()
	}
	t := &transport{settings: newSettings(opts), base: base}
	if !throttle.Unlimited(l) {
		t.limiter = l
	}
	if t.feedback == nil {
		adaptive := hook.Adaptive(l)
		t.feedback = &Pause{ToldOnly: adaptive, Max: t.maxPause}
		t.tells = true
		if adaptive {
			t.briefly = brief
		}
	}
	if err := t.faults(); err != nil {
		panic(err) //nolint:forbidigo // a mistake in the program, told when it starts
	}
	t.pauser, _ = t.feedback.(Pauser)
	return t
}

// transport is the http.RoundTripper of NewTransport.
type transport struct {
	settings

	base    http.RoundTripper
	limiter throttle.Limiter // nil: unlimited
	pauser  Pauser           // nil when the feedback holds nobody back
	tells   bool             // the limiter learns when the service wants to be left alone
	briefly time.Duration    // but not for so long or less
	judging judging
	warned  atomic.Int64 // when it was last logged that a service asks for too long a pause; nanoseconds since 1970
}

// A listener is a limiter that decides whether all should wait because one caller has to: *throttle.Throttle, *throttle.InFlight, and an
// All with one of them.
type listener interface {
	RetryAfter(until time.Time, reason string)
}

// listenerOf returns the receiver for a refusal of a call with a tag: the limiter, or that of the tag; nil for nobody.
func (t *transport) listenerOf(tag string) listener {
	if !t.tells {
		return nil
	}
	l := t.limiter
	if tag != "" {
		tagger, ok := l.(throttle.Tagger)
		if !ok || !hook.TellsTags(l) {
			return nil
		}
		l = tagger.ForTag(tag)
	}
	reported, _ := l.(listener)
	return reported
}

// RoundTrip implements http.RoundTripper; see NewTransport.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := t.begin(req)
	if err != nil {
		return nil, err
	}
	defer c.body.close() // unless an attempt has it
	res, err := c.run()
	return res, hook.Blame(c.ctx, err)
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the base transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
