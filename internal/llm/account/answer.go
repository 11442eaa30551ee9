package account

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/usage"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// classifiers are those of providers with their own.
var classifiers = map[profile.Name]httpthrottle.Classifier{
	profile.Azure: httpthrottle.Azure, profile.Anthropic: httpthrottle.Anthropic, profile.Gemini: httpthrottle.Gemini,
}

// Classifier returns how the provider's refusals are read.
func Classifier(name profile.Name) httpthrottle.Classifier {
	if c, ok := classifiers[name]; ok {
		return c
	}
	return httpthrottle.OpenAI
}

// Options returns what an httpthrottle transport over [Limits.Limiter] and [Limits.Watch] needs.
func (l *Limits) Options() []httpthrottle.Option {
	return []httpthrottle.Option{
		httpthrottle.WithCost(func(*http.Request) int { return 1 }), // the call says it; see Limiter
		httpthrottle.WithClassifier(l.slowing(Classifier(l.config.Provider))),
		httpthrottle.WithMeter(l.meter),
		httpthrottle.WithLogger(l.log),
	}
}

// A meter gives the usage of an answer to the draw for it.
type meter struct {
	*usage.Meter

	limits *Limits
	call   *Call    // nil: not known
	at     *attempt // nil: nothing was drawn
}

func (l *Limits) meter(res *http.Response) httpthrottle.Meter {
	m := &meter{Meter: usage.NewMeter(res, nil), limits: l}
	if m.call = CallOf(res.Request.Context()); m.call != nil {
		m.at = m.call.last()
	}
	if !l.config.AnyType && !ReportsUsage(res.Header.Get("Content-Type")) {
		return headOnly{m} // a file or a page, which may hold anything
	}
	return m
}

// Reported returns a function for httpthrottle.WithMeter, for services whose answers say in their head how many tokens they cost. Only limits
// on prompts and answers together count them; cost returns false for an answer that does not say it.
func (l *Limits) Reported(cost func(*http.Response) (int, bool)) func(*http.Response) httpthrottle.Meter {
	return func(res *http.Response) httpthrottle.Meter {
		if n, ok := cost(res); ok {
			if c := CallOf(res.Request.Context()); c != nil && c.last() != nil {
				c.last().report(n)
			}
		}
		return nil
	}
}

// headOnly is a meter that reads only the head of the answer.
type headOnly struct{ *meter }

// Write implements io.Writer.
func (headOnly) Write(p []byte) (int, error) { return len(p), nil }

// UsedUntil implements httpthrottle.EndMeter.
func (m *meter) UsedUntil(complete bool) (tokens int, final bool) {
	u, found, final := m.End(complete)
	return m.use(u, found, final)
}

func (m *meter) use(u usage.Usage, found, final bool) (int, bool) {
	if found {
		m.limits.counters.used(m.limits.config.Name, u)
		switch {
		case m.at != nil:
			m.at.use(u, final)
		case m.call != nil && m.call.Passed == nil && final:
			m.limits.learn(m.call, u) // there is no limit
		}
	}
	return 1, true
}

// UsedUntil implements httpthrottle.EndMeter.
func (h headOnly) UsedUntil(complete bool) (tokens int, final bool) {
	u, found, _ := h.End(complete)
	return h.use(u, found, complete)
}

// ReportsUsage reports whether an answer of a type can be that of an LLM: JSON, lines of it, or events.
func ReportsUsage(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
	case "application/json", "text/json", "application/x-json", "text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson",
		"application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-lines":
		return true
	}
	return strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// Watch returns a transport to the service below that of httpthrottle, from which the account learns how the service answers.
func (l *Limits) Watch(base http.RoundTripper) http.RoundTripper { return &watched{base, l} }

type watched struct {
	http.RoundTripper

	limits *Limits
}

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	w.limits.slow.count(time.Now())
	res, err := w.RoundTripper.RoundTrip(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" { // nothing was sent
		if c := CallOf(req.Context()); c != nil {
			c.last().free()
		}
	}
	if err == nil {
		if c := CallOf(req.Context()); c != nil && isFree(res.StatusCode) {
			c.last().free()
		}
		if res.StatusCode/100 == 2 {
			w.limits.announced(res.Header, time.Now())
		}
	}
	return res, err
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the base.
func (w *watched) CloseIdleConnections() {
	if c, ok := w.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// isFree reports whether a call with such an answer costs no money. One that broke off may have cost some.
func isFree(status int) bool {
	return status >= http.StatusBadRequest && status != http.StatusInternalServerError && status != http.StatusBadGateway && status != http.StatusGatewayTimeout
}
