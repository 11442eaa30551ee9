package fakellm

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A Server answers POST .../chat/completions under any path. It is an http.Handler; all its methods are safe for concurrent use.
type Server struct {
	config Config

	mu       sync.Mutex
	requests bucket
	tokens   bucket
	inFlight int
	stats    Stats
	charges  []Charge
	answers  int // answers with a form so far
}

// New returns a Server whose buckets are full. The error names every field of the Config
// that is out of bounds.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	now := time.Now()
	return &Server{
		config:   c,
		requests: newBucket(c.RequestsPerMinute, c.Slice, now),
		tokens:   newBucket(c.TokensPerMinute, c.Slice, now),
	}, nil
}

// maxBody is the maximum size of a request, in bytes.
const maxBody = 16 << 20

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		s.fail(w, http.StatusNotFound, "invalid_request_error", "unknown_url", "There is no such endpoint.")
		return
	}
	if !s.authorized(r) {
		s.fail(w, http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")
		return
	}
	var call request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&call); err != nil || len(call.Messages) == 0 {
		s.fail(w, http.StatusBadRequest, "invalid_request_error", "", "The request is no JSON, or has no messages.")
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if most := s.config.ContextTokens; most > 0 && call.promptTokens() > most {
		s.fail(w, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "The prompt is longer than the model's context.")
		return
	}

	charged := s.config.charge(call.promptTokens(), call.maxTokens(s.config.DefaultMaxTokens))
	if refused, ok := s.admit(w.Header(), charged); !ok {
		s.refuse(w, refused)
		return
	}
	reply, used := s.answer(&call)
	served := wait(r.Context(), s.config.Latency+time.Duration(used.Completion)*s.config.PerToken)
	s.end(charged, used, served)
	switch {
	case !served: // nobody reads the answer
	case call.Stream:
		reply.stream(w, call.StreamOptions.IncludeUsage)
	default:
		reply.write(w, s.form())
	}
}

func (s *Server) authorized(r *http.Request) bool {
	if s.config.APIKey == "" {
		return true
	}
	shown := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.config.Provider == Azure {
		shown = r.Header.Get("Api-Key")
	}
	return subtle.ConstantTimeCompare([]byte(shown), []byte(s.config.APIKey)) == 1
}

// wait waits for d; false if ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// admit charges a call, or returns its refusal, and sets the headers for either.
func (s *Server) admit(h http.Header, charged int) (refusal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // under the lock, so that the times of the log rise
	s.requests.advance(now)
	s.tokens.advance(now)
	refused := s.judge(charged)
	switch refused.why {
	case "":
		s.requests.take(1)
		s.tokens.take(float64(charged))
		s.inFlight++
		s.stats.Served++
		s.stats.MostInFlight = max(s.stats.MostInFlight, s.inFlight)
		s.charges = append(s.charges, Charge{At: now, Requests: 1, Tokens: charged})
	default:
		if s.config.Provider == OpenAI {
			s.requests.take(1)
		}
		s.countRefusal(refused.why)
	}
	s.describe(h, now)
	return refused, refused.why == ""
}

// judge returns the refusal of a call; zero if it is served. s.mu is held.
func (s *Server) judge(charged int) refusal {
	switch {
	case s.config.Quota > 0 && s.stats.Used >= s.config.Quota:
		return refusal{why: whyQuota}
	case s.config.InFlight > 0 && s.inFlight >= s.config.InFlight:
		return refusal{why: whyOverload}
	case !s.requests.has(1):
		after, _ := s.requests.wait(1)
		return refusal{why: whyRequests, after: after, limit: s.config.RequestsPerMinute, asked: 1}
	case !s.tokens.has(float64(charged)):
		after, ok := s.tokens.wait(float64(charged))
		return refusal{why: whyTokens, after: after, never: !ok, limit: s.config.TokensPerMinute, asked: charged}
	}
	return refusal{}
}

// end books the end of a call.
func (s *Server) end(charged int, used usage, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if !served {
		s.stats.Abandoned++
		used = usage{Prompt: used.Prompt, Total: used.Prompt}
	}
	s.stats.Used += used.Total
	if !s.config.corrects() {
		return
	}
	now := time.Now()
	s.tokens.advance(now)
	if used.Total > charged {
		s.tokens.take(float64(used.Total - charged))
	} else {
		s.tokens.give(float64(charged - used.Total))
	}
	s.charges = append(s.charges, Charge{At: now, Tokens: used.Total - charged})
}

// tokensOf returns the estimated tokens of a text: a quarter of its characters.
func tokensOf(characters int) int { return (characters + 3) / 4 }

func characters(text string) int { return utf8.RuneCountInString(text) }
