package testkit

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// A Request is one that a service has got.
type Request struct {
	*http.Request

	// Path is the target of the request as it came. Body has been read.
	Path, Body string
}

// A Service is an HTTP service that keeps its requests.
type Service struct {
	*httptest.Server

	mu   sync.Mutex
	seen []Request
}

// NewService returns a service that is not started. It answers as the function does, which is given the number of the request, from 1; nil:
// with a status of 200.
func NewService(answer func(w http.ResponseWriter, r Request, n int)) *Service {
	s := &Service{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := Request{r, r.RequestURI, string(body)}
		s.mu.Lock()
		s.seen = append(s.seen, request)
		n := len(s.seen)
		s.mu.Unlock()
		if answer != nil {
			answer(w, request, n)
		}
	}))
	return s
}

// StartService starts a service that ends with the test.
func StartService(tb testing.TB, answer func(w http.ResponseWriter, r Request, n int)) *Service {
	tb.Helper()
	s := NewService(answer)
	s.Start()
	tb.Cleanup(s.Close)
	return s
}

// Requests returns all requests so far.
func (s *Service) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Bodies returns those of all requests so far.
func (s *Service) Bodies() (all []string) {
	for _, r := range s.Requests() {
		all = append(all, r.Body)
	}
	return all
}

// Forget drops the requests so far.
func (s *Service) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = nil
}
