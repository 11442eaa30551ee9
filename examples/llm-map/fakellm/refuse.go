package fakellm

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A why is a reason to refuse a call.
type why string

const (
	whyRequests why = "requests"
	whyTokens   why = "tokens"
	whyOverload why = "overload"
	whyQuota    why = "quota"
)

// A refusal is the reason for refusing a call, and when it would be accepted.
type refusal struct {
	why          why
	after        time.Duration
	never        bool
	limit, asked int
}

// statusOverloaded is Anthropic's status for an overload.
const statusOverloaded = 529

// refuse answers like the provider.
func (s *Server) refuse(w http.ResponseWriter, r refusal) {
	switch {
	case r.why == whyOverload && s.config.Provider == Anthropic:
		s.fail(w, statusOverloaded, "overloaded_error", "", "Overloaded")
	case r.why == whyOverload:
		s.fail(w, http.StatusServiceUnavailable, "server_error", "", "That model is currently overloaded with other requests.")
	case r.why == whyQuota && s.config.Provider == Anthropic: // only the missing retry-after distinguishes it
		s.fail(w, http.StatusTooManyRequests, "rate_limit_error", "", "You have reached your specified API usage limits.")
	case r.why == whyQuota:
		s.fail(w, http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota",
			"You exceeded your current quota, please check your plan and billing details.")
	default:
		s.tooMany(w, r)
	}
}

// tooMany refuses a call that comes too early.
func (s *Server) tooMany(w http.ResponseWriter, r refusal) {
	seconds := strconv.Itoa(int(math.Ceil(r.after.Seconds())))
	if r.after > 0 && s.config.Provider != SelfHosted {
		w.Header().Set("Retry-After", seconds)
	}
	if r.after > 0 && (s.config.Provider == OpenAI || s.config.Provider == Azure) {
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(int64(math.Ceil(r.after.Seconds()*1000)), 10))
	}
	switch s.config.Provider {
	case Azure:
		s.fail(w, http.StatusTooManyRequests, "", "429",
			fmt.Sprintf("Requests to this deployment have exceeded its %s rate limit. Please retry after %s seconds.", r.why, seconds))
	case Anthropic:
		s.fail(w, http.StatusTooManyRequests, "rate_limit_error", "",
			fmt.Sprintf("This request would exceed your organization's rate limit of %d %s per minute.", r.limit, r.why))
	case SelfHosted:
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	default:
		s.fail(w, http.StatusTooManyRequests, string(r.why), "rate_limit_exceeded",
			fmt.Sprintf("Rate limit reached on %s per min: Limit %d, Requested %d. Please try again in %s.",
				r.why, r.limit, r.asked, r.after.Round(time.Millisecond)))
	}
}

// fail sends an error in the form of the OpenAI API, like every compatible endpoint.
func (s *Server) fail(w http.ResponseWriter, status int, kind, code, message string) {
	body := struct {
		Message string  `json:"message"`
		Type    string  `json:"type,omitempty"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}{Message: message, Type: kind}
	if code != "" {
		body.Code = &code
	}
	writeJSON(w, status, map[string]any{"error": body})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}

// describe sets the headers with the state of the limits. s.mu is held.
func (s *Server) describe(h http.Header, now time.Time) {
	for _, l := range []struct {
		name  string
		limit int
		b     *bucket
	}{
		{"requests", s.config.RequestsPerMinute, &s.requests},
		{"tokens", s.config.TokensPerMinute, &s.tokens},
	} {
		if l.b.unlimited() {
			continue
		}
		limit, remaining, full := strconv.Itoa(l.limit), strconv.Itoa(l.b.remaining()), l.b.full()
		switch s.config.Provider {
		case OpenAI:
			h.Set("X-Ratelimit-Limit-"+l.name, limit)
			h.Set("X-Ratelimit-Remaining-"+l.name, remaining)
			h.Set("X-Ratelimit-Reset-"+l.name, full.Round(time.Millisecond).String())
		case Azure:
			h.Set("X-Ratelimit-Limit-"+l.name, limit)
			h.Set("X-Ratelimit-Remaining-"+l.name, remaining)
			h.Set("X-Ratelimit-Reset-"+l.name, strconv.Itoa(int(math.Ceil(full.Seconds()))))
		case Anthropic:
			h.Set("Anthropic-Ratelimit-"+l.name+"-Limit", limit)
			h.Set("Anthropic-Ratelimit-"+l.name+"-Remaining", remaining)
			h.Set("Anthropic-Ratelimit-"+l.name+"-Reset", now.Add(full).UTC().Format(time.RFC3339))
		default: // tells nothing
		}
	}
}
