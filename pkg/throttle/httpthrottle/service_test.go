package httpthrottle_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A service is a base transport that answers by a script, in the order in which the
// attempts come; the last answer goes on for ever.
type service struct {
	mu      sync.Mutex
	script  []answer
	started time.Time
	seen    []attempt
}

// An answer is what a service does with one attempt.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
	takes  time.Duration // until the head of the answer
}

// An attempt is what a service saw of one.
type attempt struct {
	at     time.Duration // since the service was made
	header http.Header
	body   string
	answer *trackedBody
}

// A trackedBody knows what was done with it.
type trackedBody struct {
	*strings.Reader

	closed bool
}

func (b *trackedBody) Close() error {
	b.closed = true
	return nil
}

func serve(script ...answer) *service { return &service{script: script, started: time.Now()} }

// RoundTrip reads the request's body to its end and closes it, as the contract has it.
func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	a := s.script[0]
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	seen := attempt{at: time.Since(s.started), header: req.Header.Clone()}
	s.mu.Unlock()
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		seen.body = string(data)
	}
	if a.takes > 0 {
		select {
		case <-time.After(a.takes):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	seen.answer = &trackedBody{Reader: strings.NewReader(a.body)}
	s.mu.Lock()
	s.seen = append(s.seen, seen)
	s.mu.Unlock()
	if a.err != nil {
		return nil, a.err
	}
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: seen.answer, Request: req}, nil
}

// times returns when the attempts came.
func (s *service) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := make([]time.Duration, len(s.seen))
	for i, a := range s.seen {
		times[i] = a.at
	}
	return times
}

// ok is an answer of 200.
var ok = answer{status: http.StatusOK, body: "fine"}

// refuse is an answer with one header.
func refuse(status int, header ...string) answer {
	a := answer{status: status, header: http.Header{}, body: `{"error":{"message":"slow down"}}`}
	for i := 0; i+1 < len(header); i += 2 {
		a.header.Set(header[i], header[i+1])
	}
	return a
}

// request makes a request; a body that is not empty has GetBody.
func request(t *testing.T, method, body string) *http.Request {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = bytes.NewBufferString(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://service.test/v1/chat?key=sesame", reader)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer sesame")
	return req
}

// read returns the body of a response, and closes it.
func read(t *testing.T, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return string(data)
}

// within asserts that d is at least least, and at most most.
func within(t *testing.T, least, most, d time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, d, least)
	require.LessOrEqual(t, d, most)
}
