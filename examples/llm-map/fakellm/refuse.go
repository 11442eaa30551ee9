package fakellm

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A fault is an error that is answered.
type fault struct {
	status              int
	kind, code, message string
	refusal             refusal // zero for the caller's faults
}

// statusOverloaded is Anthropic's status for an overload.
const statusOverloaded = 529

// refuse answers like the provider.
func (s *Server) refuse(w http.ResponseWriter, d *dialect, r refusal) {
	f := fault{status: http.StatusTooManyRequests, kind: "rate_limit_error", refusal: r}
	switch {
	case r.why == Overload && s.config.Provider == Anthropic:
		f.status, f.kind, f.message = statusOverloaded, "overloaded_error", "Overloaded"
	case r.why == Overload:
		f.status, f.kind, f.message = http.StatusServiceUnavailable, "server_error", "That model is currently overloaded with other requests."
	case r.why == Quota && s.config.Provider == Anthropic: // only the missing retry-after distinguishes it
		f.message = "You have reached your specified API usage limits."
	case r.why == Quota && s.config.Provider == Gemini:
		f.status, f.message = http.StatusPaymentRequired, "Your prepayment credits are depleted."
	case r.why == Quota:
		f.kind, f.code = "insufficient_quota", "insufficient_quota"
		f.message = "You exceeded your current quota, please check your plan and billing details."
	default:
		f = s.tooMany(w.Header(), r)
	}
	if f.message == "" {
		http.Error(w, "too many requests", f.status)
		return
	}
	s.fail(w, d, f)
}

// tooMany refuses a call that comes too early. Without a message the body says nothing.
func (s *Server) tooMany(h http.Header, r refusal) fault {
	seconds := strconv.Itoa(int(math.Ceil(r.after.Seconds())))
	f := fault{status: http.StatusTooManyRequests, kind: "rate_limit_error", refusal: r}
	per := "minute"
	if r.why == RequestsDay || r.why == TokensDay {
		per = "day"
	}
	tell := r.after > 0
	switch s.config.Provider {
	case OpenAI, Azure:
		if tell {
			h.Set("Retry-After-Ms", strconv.FormatInt(int64(math.Ceil(r.after.Seconds()*1000)), 10))
		}
	case Anthropic, Groq:
	default:
		tell = false
	}
	if tell {
		h.Set("Retry-After", seconds)
	}
	what := r.why.unit()
	switch s.config.Provider {
	case SelfHosted:
	case Azure:
		f.kind, f.code = "", "429"
		f.message = fmt.Sprintf("Requests to this deployment have exceeded its %s rate limit. Please retry after %s seconds.", what, seconds)
	case Anthropic:
		f.message = fmt.Sprintf("This request would exceed your organization's rate limit of %d %s per %s.", r.limit, what, per)
	case Bedrock:
		f.message = fmt.Sprintf("Too many %s, please wait before trying again.", what)
		if per == "day" {
			f.message = fmt.Sprintf("Too many %s per day, please wait before trying again.", what)
		}
	case Gemini:
		f.message = fmt.Sprintf("You exceeded your current quota, please check your plan and billing details. Limit: %d %s per %s.", r.limit, what, per)
	default:
		f.kind, f.code = what, "rate_limit_exceeded"
		f.message = fmt.Sprintf("Rate limit reached on %s per %s: Limit %d, Requested %d. Please try again in %s.",
			what, strings.TrimSuffix(per, "ute"), r.limit, r.asked, r.after.Round(time.Millisecond))
	}
	return f
}

// unit returns what a limit counts, as providers call it.
func (l Limit) unit() string {
	switch l {
	case InputTokens:
		return "input tokens"
	case OutputTokens:
		return "output tokens"
	case Requests, RequestsDay:
		return "requests"
	default:
		return "tokens"
	}
}

// fail sends an error in the form of the dialect; Gemini and Bedrock have theirs at all endpoints.
func (s *Server) fail(w http.ResponseWriter, d *dialect, f fault) {
	switch s.config.Provider {
	case Gemini:
		failGemini(w, f)
	case Bedrock:
		failBedrock(w, f)
	default:
		d.fail(w, f)
	}
}

// failOpenAI sends an error in the form of the OpenAI API, like every compatible endpoint.
func failOpenAI(w http.ResponseWriter, f fault) {
	body := object{"message": f.message, "param": nil, "code": nil}
	if f.kind != "" {
		body["type"] = f.kind
	}
	if f.code != "" {
		body["code"] = f.code
	}
	writeJSON(w, f.status, object{"error": body})
}

// failMessages sends an error in the form of Anthropic's own endpoint.
func failMessages(w http.ResponseWriter, f fault) {
	kind, ok := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusTooManyRequests: "rate_limit_error", http.StatusServiceUnavailable: "api_error",
	}[f.status]
	if !ok {
		kind = f.kind
	}
	writeJSON(w, f.status, object{"type": "error", "error": object{"type": kind, "message": f.message}, "request_id": "req_fake"})
}

// failGemini sends an error in the form of Google's APIs, with the quota of a limit and a delay.
func failGemini(w http.ResponseWriter, f fault) {
	status := map[int]string{
		http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusNotFound: "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED",
		http.StatusServiceUnavailable: "UNAVAILABLE", http.StatusPaymentRequired: "FAILED_PRECONDITION", http.StatusBadRequest: "INVALID_ARGUMENT",
	}[f.status]
	body := object{"code": f.status, "message": f.message, "status": status}
	if quota := geminiQuotas[f.refusal.why]; quota != "" {
		body["details"] = []object{
			{
				"@type": "type.googleapis.com/google.rpc.QuotaFailure",
				"violations": []object{{
					"quotaMetric": "generativelanguage.googleapis.com/" + string(f.refusal.why), "quotaId": quota,
					"quotaValue": strconv.Itoa(f.refusal.limit),
				}},
			},
			{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%.0fs", math.Ceil(f.refusal.after.Seconds()))},
		}
	}
	writeJSON(w, f.status, object{"error": body})
}

var geminiQuotas = map[Limit]string{
	Requests: "GenerateRequestsPerMinutePerProjectPerModel", RequestsDay: "GenerateRequestsPerDayPerProjectPerModel",
	InputTokens: "GenerateContentInputTokensPerModelPerMinute", Tokens: "GenerateContentInputTokensPerModelPerMinute",
	OutputTokens: "GenerateContentOutputTokensPerModelPerMinute",
}

// failBedrock sends an error in the form of AWS.
func failBedrock(w http.ResponseWriter, f fault) {
	kind := map[int]string{
		http.StatusUnauthorized: "AccessDeniedException", http.StatusNotFound: "ResourceNotFoundException",
		http.StatusTooManyRequests: "ThrottlingException", http.StatusServiceUnavailable: "ServiceUnavailableException",
	}[f.status]
	if kind == "" {
		kind = "ValidationException"
	}
	w.Header().Set("X-Amzn-Errortype", kind)
	writeJSON(w, f.status, object{"message": f.message})
}
