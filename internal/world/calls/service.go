package calls

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A service is a base transport that gives its answers in turn, to attempts in the order in which they come. The last answer goes on.
type service struct {
	mu     sync.Mutex
	script []*answer
	began  time.Time
	seen   []*attempt
	calls  map[string]*call // by the header callHeader
}

// An answer is the reaction to an attempt.
type answer struct {
	host   string // it is only for attempts to this one; empty: for all
	status int    // 0: the connection breaks
	header http.Header
	text   string
	takes  time.Duration // until the head of the answer
	every  time.Duration // a byte of the body
	end    error         // of the body; errNever: it has none
	kind   string        // of the body: nobody, nil, both (a connection)
}

// An attempt is a request that came to the service.
type attempt struct {
	of     *call         // nil: none of a client
	at     time.Duration // since the service began
	method string
	host   string
	path   string // and the query
	header http.Header
	body   string
	broken bool // the body could not be read to its end
	again  bool // the base could send it again
	given  *answer
	answer *body // nil: none with a text
}

// field returns what an attempt came with: at, method, host, path, body, or a header.
func (a *attempt) field(what string) string {
	switch what {
	case "at":
		return a.at.String()
	case "method":
		return a.method
	case "host":
		return a.host
	case "path":
		return a.path
	case "body":
		return a.body
	case "again":
		return strconv.FormatBool(a.again)
	}
	return a.header.Get(what)
}

var (
	errReset  = errors.New("connection reset")
	errBroken = errors.New("broken")
	errGone   = errors.New("gone")
	errNever  = errors.New("it never ends")
)

// begin forgets the script and the attempts.
func (s *service) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.seen, s.began = nil, nil, time.Now()
}

// know makes a call known by its header.
func (s *service) know(header string, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]*call{}
	}
	s.calls[header] = c
}

// attempts returns those so far.
func (s *service) attempts() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*attempt(nil), s.seen...)
}

func (s *service) next(req *http.Request) (*attempt, *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host := cmp.Or(req.Host, req.URL.Host)
	fits := func(a *answer) bool { return a.host == "" || a.host == host }
	i := slices.IndexFunc(s.script, fits)
	a := s.script[i]
	if slices.ContainsFunc(s.script[i+1:], fits) {
		s.script = slices.Delete(s.script, i, i+1)
	}
	of, ok := req.Context().Value(callKey{}).(*call)
	if !ok {
		of = s.calls[req.Header.Get(callHeader)]
	}
	seen := &attempt{
		of: of, given: a, at: time.Since(s.began), method: req.Method, host: host, path: req.URL.RequestURI(),
		header: req.Header.Clone(), again: req.GetBody != nil,
	}
	s.seen = append(s.seen, seen)
	return seen, a
}

// RoundTrip reads the request's body to its end and closes it, as the contract has it.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	seen, a := s.next(req)
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		err = errors.Join(err, req.Body.Close())
		s.mu.Lock()
		seen.body, seen.broken = string(data), err != nil
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	if a.takes > 0 {
		select {
		case <-time.After(a.takes):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	if a.status == 0 {
		return nil, errReset
	}
	res := &http.Response{StatusCode: a.status, Header: a.header.Clone(), Request: req}
	switch a.kind {
	case "nil", "nobody":
		res.Body = a.bodiless()
	case "both":
		seen.answer = newBody(req.Context(), a)
		res.Body = connection{seen.answer}
	default:
		seen.answer = newBody(req.Context(), a)
		res.Body = seen.answer
	}
	return res, nil
}

// bodiless is the body of an answer without one.
func (a *answer) bodiless() io.ReadCloser {
	if a.kind == "nil" {
		return nil
	}
	return http.NoBody
}

// A body is that of an answer.
type body struct {
	*answer

	ctx     context.Context //nolint:containedctx // that of its request
	mu      sync.Mutex
	left    string
	over    bool // its end was read
	closed  bool
	closing chan struct{}
	written string // to a connection
}

func newBody(ctx context.Context, a *answer) *body {
	return &body{answer: a, ctx: ctx, left: a.text, closing: make(chan struct{})}
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	ended := b.left == ""
	b.mu.Unlock()
	wait := b.every
	switch {
	case ended && b.end == errNever: //nolint:errorlint // the same one
		wait = 24 * time.Hour
	case ended:
		wait = 0
	}
	if wait > 0 {
		p = p[:min(1, len(p))]
		select {
		case <-b.closing:
			return 0, errors.New("closed")
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		case <-time.After(wait):
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over = ended; ended {
		return 0, b.end
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		close(b.closing)
	}
	b.closed = true
	return nil
}

// state says what became of a body.
func (b *body) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.closed:
		return "open"
	case !b.over:
		return "cut"
	}
	return "whole"
}

// A connection is the body of an answer that switches protocols.
type connection struct{ *body }

func (c connection) Write(p []byte) (int, error) {
	c.written += string(p)
	return len(p), nil
}

// A source is the body of a request.
type source struct {
	io.Reader

	every  time.Duration // a byte
	mu     sync.Mutex
	closed int
}

func (s *source) Read(p []byte) (int, error) {
	if s.every > 0 {
		time.Sleep(s.every)
		p = p[:min(1, len(p))]
	}
	return s.Reader.Read(p)
}

func (s *source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *source) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed > 0
}
