package fakellm

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Server answers POST at the endpoints of the dialects, under any path before them, and GET /stats. It is an http.Handler; all its
// methods are safe for concurrent use.
type Server struct {
	config Config

	mu       sync.Mutex
	guards   []*guard
	inFlight int
	stats    Stats
	accounts map[string]account // by the key of their calls
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
	return &Server{config: c, guards: newGuards(c, time.Now()), accounts: map[string]account{}}, nil
}

// maxBody is the maximum size of a request, in bytes.
const maxBody = 16 << 20

// ServeHTTP answers one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/stats" {
		writeJSON(w, http.StatusOK, s.Stats())
		return
	}
	c, fault := s.read(w, r)
	if fault.status != 0 {
		s.fail(w, c.dialect, fault)
		return
	}
	known := s.config.foresee(&c, r.Header)
	if fault := s.tooLarge(&c, known.estimate); fault.status != 0 {
		s.fail(w, c.dialect, fault)
		return
	}
	arrived := s.config.atArrival(&c, known)
	if refused, ok := s.admit(arrived, func(now time.Time) { s.describe(w.Header(), now) }); !ok {
		s.refuse(w, c.dialect, refused)
		return
	}
	served := wait(r.Context(), s.config.Latency+time.Duration(known.used.Output)*s.config.PerToken)
	used := s.end(c.key, arrived, known.used, served)
	if !served { // nobody reads the answer
		return
	}
	a := newAnswer(&c, used)
	a.whole = a.whole && used.Output == known.used.Output
	form := s.form()
	switch {
	case c.stream && c.dialect.stream != nil:
		c.dialect.stream(w, a)
	case form != Plain && c.dialect == dialects[0]:
		writeForm(w, a, form)
	default:
		c.dialect.write(w, a)
	}
}

// read reads a request, or returns the caller's fault.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (call, fault) {
	d, model := dialectOf(r.URL.Path)
	if r.Method != http.MethodPost || d == nil {
		return call{dialect: dialects[0]}, fault{http.StatusNotFound, "invalid_request_error", "unknown_url", "There is no such endpoint.", refusal{}}
	}
	key := s.key(r)
	if s.config.APIKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.config.APIKey)) != 1 {
		return call{dialect: d}, fault{http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.", refusal{}}
	}
	var body map[string]any
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil || !d.isRequest(body) {
		return call{dialect: d}, badRequest("", "The request is no JSON, or has no "+strings.Join(d.prompts, " or ")+".")
	}
	_, _ = io.Copy(io.Discard, r.Body)
	c := readCall(d, model, body, strings.Contains(r.URL.Path, ":stream") || strings.HasSuffix(r.URL.Path, "-stream"))
	c.key = key
	if c.longest == 0 && d.needsLongest {
		return c, badRequest("", "max_tokens: Field required")
	}
	c.longest = cmp.Or(c.longest, s.config.DefaultMaxTokens)
	if d.embeds {
		c.longest = 0
	}
	return c, fault{}
}

func badRequest(code, message string) fault {
	return fault{http.StatusBadRequest, "invalid_request_error", code, message, refusal{}}
}

// tooLarge returns the fault of a call that is above the largest prompt or call.
func (s *Server) tooLarge(c *call, estimate Usage) fault {
	if most := s.config.ContextTokens; most > 0 && estimate.Prompt() > most {
		return badRequest("context_length_exceeded", "The prompt is longer than the model's context.")
	}
	p := profiles[s.config.Provider]
	if !c.dialect.embeds {
		return fault{}
	}
	if p.maxInputs > 0 && len(c.inputs) > p.maxInputs {
		return badRequest("", "The input has too many elements.")
	}
	if p.maxCallTokens > 0 && estimate.Prompt() > p.maxCallTokens {
		return badRequest("max_tokens_per_request", "The request has more tokens than one may have.")
	}
	for _, input := range c.inputs {
		if p.maxInputTokens > 0 && tokensOf(float64(len(input))*s.config.TokensPerByte) > p.maxInputTokens {
			return badRequest("context_length_exceeded", "An input is longer than the model's context.")
		}
	}
	return fault{}
}

// key returns the key that a call shows.
func (s *Server) key(r *http.Request) string {
	if s.config.Provider == Azure {
		return r.Header.Get("Api-Key")
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	return cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.Header.Get("X-Api-Key"), r.URL.Query().Get("key"), bearer)
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
