package fakellm

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// describe sets the headers with the state of the limits. s.mu is held.
func (s *Server) describe(h http.Header, now time.Time) {
	switch s.config.Provider {
	case OpenAI:
		s.describeLikeOpenAI(h, []Limit{RequestsDay, Requests, Tokens})
	case Azure:
		s.describeLikeOpenAI(h, []Limit{Requests, Tokens})
	case Groq: // its requests are those of a day
		s.describeLikeOpenAI(h, []Limit{RequestsDay, Tokens})
	case Anthropic:
		s.describeLikeAnthropic(h, now)
	default: // tells nothing
	}
}

// describeLikeOpenAI sets the headers of some limits; a later one replaces one of the same unit.
func (s *Server) describeLikeOpenAI(h http.Header, limits []Limit) {
	for _, l := range limits {
		for _, g := range s.guards {
			if g.limit != l {
				continue
			}
			limit, reset := g.amount, g.bucket.full().Round(time.Millisecond).String()
			if s.config.Provider == Azure {
				reset = strconv.Itoa(int(math.Ceil(g.bucket.full().Seconds())))
				if l == Requests { // those of a slice
					limit = int(math.Ceil(g.bucket.capacity))
				}
			}
			h.Set("X-Ratelimit-Limit-"+l.unit(), strconv.Itoa(limit))
			h.Set("X-Ratelimit-Remaining-"+l.unit(), strconv.Itoa(g.bucket.remaining()))
			h.Set("X-Ratelimit-Reset-"+l.unit(), reset)
		}
	}
}

// describeLikeAnthropic sets the headers of the limits per minute. Tokens remain in thousands, and those of input and output are also
// told together.
func (s *Server) describeLikeAnthropic(h http.Header, now time.Time) {
	set := func(name string, limit, remaining int, full time.Duration) {
		h.Set("Anthropic-Ratelimit-"+name+"-Limit", strconv.Itoa(limit))
		h.Set("Anthropic-Ratelimit-"+name+"-Remaining", strconv.Itoa(remaining))
		h.Set("Anthropic-Ratelimit-"+name+"-Reset", now.Add(full).UTC().Format(time.RFC3339))
	}
	var limit, remaining, parts int
	var full time.Duration
	for _, g := range s.guards {
		left := g.bucket.remaining()
		if g.limit != Requests {
			left = (left + 500) / 1000 * 1000
		}
		switch g.limit {
		case Requests:
			set("requests", g.amount, left, g.bucket.full())
		case Tokens:
			set("tokens", g.amount, left, g.bucket.full())
		case InputTokens, OutputTokens:
			set(string(g.limit)+"-tokens", g.amount, left, g.bucket.full())
			limit, remaining, full, parts = limit+g.amount, remaining+left, max(full, g.bucket.full()), parts+1
		default: // those of a day are not told
		}
	}
	if parts == 2 && h.Get("Anthropic-Ratelimit-Tokens-Limit") == "" {
		set("tokens", limit, remaining, full)
	}
}
