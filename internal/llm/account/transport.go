package account

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// kept is how much of a body is read before its request is sent, unless it can be had again. Of a longer one the rest counts as text.
const kept = 1 << 20

// Transport returns a transport that sends through base, and draws for each request; nil is a base of its own. opts come after the account's.
func (l *Limits) Transport(base http.RoundTripper, opts ...httpthrottle.Option) http.RoundTripper {
	if base == nil {
		base = httpthrottle.NewBase()
	}
	return &transport{limits: l, next: httpthrottle.NewTransport(l.Watch(base), l.Limiter(), append(l.Options(), opts...)...)}
}

type transport struct {
	limits *Limits
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, req, err := measure(req, t.limits.config.Media)
	if err != nil {
		return nil, err
	}
	c.Model = ModelOf(req.URL, c.Size)
	if of := t.limits.config.Tag; of != nil {
		c.Tag = of(req)
	}
	return t.next.RoundTrip(req.WithContext(WithCall(req.Context(), c)))
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the base.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// measure returns the call of a request, and the request to send in its place: its body may have been read. An error leaves the body closed.
func measure(req *http.Request, media prompt.Media) (*Call, *http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return &Call{Size: prompt.NewReader(req, nil, &costrule.Scanner{}, media).Size(0)}, req, nil
	}
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			_ = req.Body.Close()
			return nil, req, err
		}
		defer body.Close()
		r, err := read(req, body, media)
		if err != nil {
			_ = req.Body.Close()
			return nil, req, err
		}
		return &Call{Size: r.Size(0)}, req, nil
	}
	head, err := io.ReadAll(io.LimitReader(req.Body, kept))
	if err != nil {
		_ = req.Body.Close()
		return nil, req, err
	}
	r, _ := read(req, bytes.NewReader(head), media) // memory does not fail
	c := &Call{Size: r.Size(max(req.ContentLength-int64(len(head)), 0))}
	rest := &counted{ReadCloser: req.Body}
	if len(head) == kept && req.ContentLength <= 0 {
		c.Passed = func() prompt.Size { return r.Size(rest.n.Load()) }
	}
	sent := req.WithContext(req.Context())
	sent.Body = &joined{io.MultiReader(bytes.NewReader(head), rest), rest}
	return c, sent, nil
}

// counted is the rest of a body, with how much of it was read.
type counted struct {
	io.ReadCloser

	n atomic.Int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// joined is a body whose beginning was read.
type joined struct {
	io.Reader
	io.Closer
}

// read reads a body, or its beginning.
func read(req *http.Request, body io.Reader, media prompt.Media) (*prompt.Reader, error) {
	const chunk = 32 << 10
	buffer := make([]byte, chunk)
	scanner := &costrule.Scanner{Keep: 2048}
	var r *prompt.Reader
	for {
		n, err := io.ReadFull(body, buffer)
		if r == nil {
			r = prompt.NewReader(req, buffer[:n], scanner, media)
			scanner.Value = r.Value
		}
		r.Feed(buffer[:n])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r, nil
		case err != nil:
			return nil, err
		}
	}
}

// ModelOf returns the model of a request: that of its body, else the one that its path names, as with Gemini, Amazon Bedrock and Azure.
func ModelOf(u *url.URL, s prompt.Size) string {
	if s.Model != "" {
		return strings.TrimPrefix(s.Model, "models/")
	}
	steps := strings.Split(u.Path, "/")
	for i, step := range steps[:len(steps)-1] {
		switch step {
		case "models", "model", "deployments":
			name, _, _ := strings.Cut(steps[i+1], ":generate")
			name, _, _ = strings.Cut(name, ":stream")
			name, _, _ = strings.Cut(name, ":embed")
			name, _, _ = strings.Cut(name, ":batch")
			return name
		}
	}
	return ""
}
