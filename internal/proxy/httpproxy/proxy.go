package httpproxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A handler serves the requests of clients.
type handler struct {
	*Config

	limiter  throttle.Limiter
	account  *account.Limits // nil: requests are none to an LLM
	token    listen.Token
	names    listen.Names
	upstream *url.URL // nil: no reverse proxy
	forward  hosts
	allow    dialguard.Addresses // besides those that upstream and forward name
	cost     costRule
	tags     []tagRule // of each level; none: no tag
	meter    meterRule
	egress   egress        // nil: none
	places   chan struct{} // one for each concurrent request

	readsUsage bool // from answers
	unreadable costrule.Complaint
	reverse    *httputil.ReverseProxy

	ended context.Context //nolint:containedctx // that of all requests and tunnels, which close ends
	end   context.CancelFunc
	open  sync.WaitGroup // tunnels
}

func newHandler(c *Config, l limits, token string, out egress) *handler {
	addrs, _ := listen.Parse(c.Serving.Listen)
	p := &handler{Config: c, account: l.account, egress: out, names: c.Serving.Names()}
	p.token = listen.TokenIn(c.Serving.TokenFile, token, listen.LeastToken(addrs), c.Logger)
	p.places = make(chan struct{}, c.MaxRequests)
	p.ended, p.end = context.WithCancel(context.Background())
	if c.Upstream != "" {
		p.upstream, _ = url.Parse(c.Upstream) // valid, as Validate has checked
	}
	if c.Forward != "" {
		p.forward, _ = parseHosts(c.Forward)
	}
	p.allow, _ = dialguard.ParseAddresses(c.AllowAddresses)
	p.cost, _ = parseCost(c.Cost)
	p.tags, _ = taglevel.Rules(c.Tag, parseTag)
	p.limiter = p.drawing(l.limiter)
	p.meter, _ = parseSettle(c.Settle, c.Logger)
	p.readsUsage = c.Settle == settleUsage
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.transport(p.base()),
		FlushInterval:  -1, // events are streamed
		ModifyResponse: p.watchAnswer,
		ErrorHandler:   p.failed,
		ErrorLog:       slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return p
}

// base makes the connections to services.
func (p *handler) base() *http.Transport {
	base := httpthrottle.NewBase()
	// A dead connection is noticed before its first request has timed out.
	ping := httpthrottle.PingTime(p.AnswerTimeout)
	base.HTTP2.SendPingTimeout, base.HTTP2.PingTimeout = min(base.HTTP2.SendPingTimeout, ping), min(base.HTTP2.PingTimeout, ping)
	base.Proxy = p.egress.forRequest // nil: HTTP_PROXY may name this very proxy
	base.DialContext = p.dialChecked
	base.MaxIdleConnsPerHost = 256
	base.MaxIdleConns = 1024
	base.ResponseHeaderTimeout = p.AnswerTimeout
	base.DisableCompression = true // the encoding that the client requested is passed on
	base.MaxResponseHeaderBytes = 256 << 10
	return base
}

// transport draws for each request that base sends, and obeys the service's responses.
func (p *handler) transport(base http.RoundTripper) http.RoundTripper {
	opts := []httpthrottle.Option{
		httpthrottle.WithCost(func(r *http.Request) int { return callOf(r.Context()).cost }),
		httpthrottle.WithClassifier(classifier(p.Provider)),
		httpthrottle.WithMaxAttempts(p.MaxAttempts),
		httpthrottle.WithMaxWait(p.MaxWait),
		httpthrottle.WithLogger(p.Logger),
		httpthrottle.WithBodyBuffer(0), // the handler has read the part to keep
	}
	if len(p.tags) > 0 && p.account == nil { // the refusals of an LLM concern its account, whoever is refused
		opts = append(opts, httpthrottle.WithTag(func(r *http.Request) string { return p.refusedTag(callOf(r.Context()).tag) }))
	}
	switch {
	case p.account != nil:
		opts = append(opts, p.llmOptions()...)
		base = p.account.Watch(base)
	case p.meter != nil:
		opts = append(opts, httpthrottle.WithMeter(p.meter))
	}
	if p.RetryFailures {
		opts = append(opts, httpthrottle.RetryFailures())
	}
	return httpthrottle.NewTransport(base, p.limiter, opts...)
}

// close ends the open tunnels.
func (p *handler) close() {
	p.end()
	p.open.Wait()
}

// A call holds the facts about a request when it is sent.
type call struct {
	cost int
	llm  *account.Call // nil: it is none to an LLM
	tag  string
	body *timedBody // nil for none
}

// isLate reports whether a request failed because its body did not come. The server has then cancelled its context, which can also be the
// error.
func (c call) isLate(err error) bool {
	return errors.Is(err, errLate) || c.body != nil && c.body.late.Load()
}

type callKey struct{}

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// ServeHTTP implements http.Handler.
func (p *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Remove the deadline of an earlier request on the same connection.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	forward := r.Method == http.MethodConnect || r.URL.IsAbs()
	in := p.bodyOf(w, r)
	if err := p.admit(w, r, forward); err != nil {
		closeUnread(w, in)
		err.Write(w)
		return
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		e := proxy.NewError(http.StatusServiceUnavailable, proxy.TooMany, "as many requests are under way as may be (maxRequests)")
		e.RetryAfterSeconds = 1
		closeUnread(w, in)
		e.Write(w)
		return
	}
	dropHops(r)
	if r.Method == http.MethodConnect {
		closeUnread(w, in) // it has none, and further bytes are for the other side
		p.connect(w, r)
		return
	}
	body, err := p.readBody(r, in)
	if err != nil {
		p.failedCall(w, r, call{body: in}, err)
		return
	}
	m := p.messageOf(r, body)
	c, err := p.judge(m)
	c.body = in
	if err != nil {
		p.failedCall(w, r, c, err)
		return
	}
	ctx := context.WithValue(r.Context(), callKey{}, c)
	if !body.whole && (p.cost.passed != nil || len(m.paths) > 0) || p.cost.tunnels && isHandshake(r) {
		sent := &sending{rule: p.cost, m: m}
		if ctx = sent.with(ctx); !body.whole {
			body.rest = &sentBody{body.rest, sent}
			if c.llm != nil {
				c.llm.Passed = sent.size
			}
		}
	}
	if c.llm != nil {
		ctx = account.WithCall(ctx, c.llm)
	}
	if !body.whole && r.Trailer == nil {
		r.Trailer = http.Header{} // receives trailers that were not announced
	}
	out := r.WithContext(ctx)
	body.attach(out)
	p.reverse.ServeHTTP(&timedWriter{ResponseWriter: w, control: http.NewResponseController(w), idle: p.IdleTimeout}, out)
}

// defaultPorts are the ports of schemes.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// messageOf returns a request as a message for the rules.
func (p *handler) messageOf(r *http.Request, b *body) *message {
	to := r.URL
	if to.Host == "" && p.upstream != nil {
		to = p.upstream
	}
	m := &message{req: r, host: to.Host, port: defaultPorts[to.Scheme], body: b.kept, whole: b.whole, estimates: p.cost.estimates, media: p.LLM.Media}
	if p.cost.path != nil {
		m.paths = append(m.paths, p.cost.path)
	}
	for _, rule := range p.tags {
		if rule.path != nil {
			m.paths = append(m.paths, rule.path)
		}
	}
	return m
}

// judge determines the cost and the tag of a request.
func (p *handler) judge(m *message) (c call, err error) {
	if err := m.checkPacked(); err != nil {
		return c, err
	}
	c.cost, err = p.cost.draw(m)
	if err == nil && p.account != nil {
		c.llm, err = llmCall(m)
	}
	if e, ok := errors.AsType[*unreadableError](err); ok {
		p.unreadable.Tell(p.Logger, e.place, "not shown", "the request is refused with status 400")
		return c, e.answer
	}
	if err != nil {
		return c, err
	}
	c.tag, err = p.tagOf(m)
	return c, err
}
