package httpproxy

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
)

// errSettled ends a body whose request has been settled: nothing passes without payment.
var errSettled = errors.New("httpproxy: the answer was complete before the body of its request")

// A sending measures the bytes that pass of a body not read before its request left, or of a tunnel.
type sending struct {
	rule costRule
	m    *message

	mu     sync.Mutex
	passed int64
	over   bool
}

type sendingKey struct{}

// with returns the context of a request that s measures.
func (s *sending) with(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, sendingKey{}, s)
	if s.rule.passed == nil {
		return ctx
	}
	return costrule.WithPassed(ctx, s.cost)
}

func sendingOf(ctx context.Context) *sending {
	s, _ := ctx.Value(sendingKey{}).(*sending)
	return s
}

// pass counts bytes before they are sent. With an error they must not be sent.
func (s *sending) pass(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errSettled
	}
	s.passed += int64(len(p))
	if s.m.whole || !s.rule.estimates && len(s.m.paths) == 0 {
		return nil // no rule reads what a tunnel carries
	}
	f := s.m.facts()
	f.feed(p)
	if f.prompt != nil {
		if fault := llmFault(f.prompt, &f.scanner); fault != nil {
			return fault.answer
		}
	}
	for _, place := range f.places { // of the tag: a cost there needs the whole body
		if _, _, fault := place.Found(&f.scanner); fault != "" {
			return notJSON("tag", "json "+strings.Join(place.Path, "."), fault)
		}
	}
	return nil
}

// cost returns the cost of the request by all passed bytes, and lets no more pass.
func (s *sending) cost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.rule.passed(s.m, s.passed)
}

// size returns the size of a request to an LLM by all passed bytes, and lets no more pass.
func (s *sending) size() prompt.Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.m.facts().prompt.Size(0)
}

// reopen lets bytes pass again, for another attempt of the request, which has drawn its own permit.
func (s *sending) reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over, s.passed = false, 0
}

// A sentBody is a body while it is sent.
type sentBody struct {
	io.ReadCloser

	sent *sending
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if passed := b.sent.pass(p[:n]); passed != nil {
		return 0, passed
	}
	return n, err
}
