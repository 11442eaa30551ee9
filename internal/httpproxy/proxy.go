package httpproxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/apierror"
	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/proxyconf"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A proxy is the handler of the server.
type proxy struct {
	*Config

	limiter  throttle.Limiter
	token    listen.Token
	names    listen.Names
	upstream *url.URL // nil: no reverse proxy
	forward  hosts
	allow    dialguard.Addresses // beside those that upstream and forward name
	cost     costRule
	tag      tagRule
	meter    meterRule
	places   chan struct{} // one for each request that may be under way
	reverse  *httputil.ReverseProxy

	ended context.Context //nolint:containedctx // that of all requests and tunnels, which close ends
	end   context.CancelFunc
	open  sync.WaitGroup // tunnels
}

func newProxy(c *Config, l throttle.Limiter, token string) *proxy {
	addrs, _ := listen.Parse(c.Serving.Listen)
	p := &proxy{Config: c, token: listen.TokenIn(c.Serving.TokenFile, token, listen.LeastToken(addrs), c.Logger), names: c.Serving.Names()}
	p.places = make(chan struct{}, c.MaxRequests)
	p.limiter = withPatience(proxyconf.BoundTags(l, c.MaxRequests), c.MaxWait)
	p.ended, p.end = context.WithCancel(context.Background())
	if c.Upstream != "" {
		p.upstream, _ = url.Parse(c.Upstream) // which Validate has looked at
	}
	if c.Forward != "" {
		p.forward, _ = parseHosts(c.Forward)
	}
	p.allow, _ = dialguard.ParseAddresses(c.AllowAddresses)
	p.cost, _ = parseCost(c.Cost)
	p.tag, _ = parseTag(c.Tag)
	p.meter, _ = parseSettle(c.Settle)
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.transport(),
		FlushInterval:  -1, // events are passed on as they come
		ModifyResponse: p.watchAnswer,
		ErrorHandler:   p.failed,
		ErrorLog:       slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	return p
}

// transport draws for each request, and heeds what the service says.
func (p *proxy) transport() http.RoundTripper {
	base := httpthrottle.NewBase()
	base.Proxy = nil // HTTP_PROXY may name this very proxy
	base.DialContext = p.dialChecked
	base.MaxIdleConnsPerHost = 256
	base.MaxIdleConns = 1024
	base.ResponseHeaderTimeout = p.AnswerTimeout
	base.DisableCompression = true // what the client asked for is passed on
	base.MaxResponseHeaderBytes = 256 << 10
	opts := []httpthrottle.Option{
		httpthrottle.WithCost(func(r *http.Request) int { return callOf(r.Context()).cost }),
		httpthrottle.WithClassifier(classifiers[p.Provider]),
		httpthrottle.WithMaxAttempts(p.MaxAttempts),
		httpthrottle.WithMaxWait(p.MaxWait),
		httpthrottle.WithLogger(p.Logger),
		httpthrottle.WithBodyBuffer(0), // the handler has read what is to be kept
	}
	if p.tag != nil {
		opts = append(opts, httpthrottle.WithTag(func(r *http.Request) string { return callOf(r.Context()).tag }))
	}
	if p.meter != nil {
		opts = append(opts, httpthrottle.WithMeter(p.meter))
	}
	if p.RetryFailures {
		opts = append(opts, httpthrottle.RetryFailures())
	}
	return httpthrottle.NewTransport(base, p.limiter, opts...)
}

// close ends the tunnels that are still open.
func (p *proxy) close() {
	p.end()
	p.open.Wait()
}

// A call is what is known of a request when it is sent.
type call struct {
	cost int
	tag  string
}

type callKey struct{}

func callOf(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A deadline of an earlier request on the same connection is over.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	forward := r.Method == http.MethodConnect || r.URL.IsAbs()
	if err := p.admit(w, r, forward); err != nil {
		err.Write(w)
		return
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		e := apierror.New(http.StatusServiceUnavailable, apierror.TooMany, "as many requests are under way as may be (maxRequests)")
		e.RetryAfterSeconds = 1
		e.Write(w)
		return
	}
	if r.Method == http.MethodConnect {
		p.connect(w, r)
		return
	}
	body, err := p.readBody(w, r)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	c, err := p.judge(&message{req: r, host: p.hostOf(r), body: body.kept, whole: body.whole})
	if err != nil {
		p.failed(w, r, err)
		return
	}
	out := r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	body.attach(out)
	p.reverse.ServeHTTP(&timedWriter{ResponseWriter: w, control: http.NewResponseController(w), idle: p.IdleTimeout}, out)
}

// hostOf returns the host that a request goes to.
func (p *proxy) hostOf(r *http.Request) string {
	if r.URL.Host != "" || p.upstream == nil {
		return r.URL.Host
	}
	return p.upstream.Host
}

// judge finds what a request draws, and for whom.
func (p *proxy) judge(m *message) (c call, err error) {
	if c.cost, err = p.cost(m); err != nil {
		return c, err
	}
	if p.tag != nil {
		c.tag = p.tag(m)
		err = checkTag(c.tag)
	}
	return c, err
}

// rewrite says where a request goes.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	if !r.In.URL.IsAbs() {
		r.SetURL(p.upstream)
	}
	if p.meter != nil {
		r.Out.Header.Set("Accept-Encoding", "identity") // a usage that is packed cannot be read
	}
	if _, ok := r.In.Header["User-Agent"]; !ok {
		r.Out.Header.Set("User-Agent", "") // not that of net/http
	}
}
