package httpthrottle

import (
	"net/http"
	"regexp"
)

// statusOverloaded is what Anthropic and others answer when they are overloaded, whoever
// asks.
const statusOverloaded = 529

// Generic is the Classifier for any service: 429 is Wait, 503 and 529 are
// Overload. A 429 or 529 is taken for not processed, a 503 only if it says when to
// come back: proxies also answer 503 when a call broke off in the middle.
func Generic(a Answer) (Refusal, bool) {
	var r Refusal
	switch a.Status {
	case http.StatusTooManyRequests:
		r.Class = Wait
	case http.StatusServiceUnavailable, statusOverloaded:
		r.Class = Overload
	default:
		return Refusal{}, false
	}
	var told bool
	r.RetryAfter, r.Dimension, told = a.RetryAfter()
	r.Code = readProblem(a.Body).code()
	r.NotProcessed = told || a.Status != http.StatusServiceUnavailable
	return r, true
}

// generation is Generic for services that generate text: a 503 may be repeated as
// well, because a call leaves nothing behind but its cost.
func generation(a Answer) (Refusal, bool) {
	r, refused := Generic(a)
	r.NotProcessed = refused
	return r, refused
}

// spentCodes are OpenAI's codes and types of a 429 that no wait cures.
var spentCodes = map[string]bool{
	"insufficient_quota":         true,
	"credit_balance_exhausted":   true,
	"billing_hard_limit_reached": true,
	"billing_not_active":         true,
	"access_terminated":          true,
}

// OpenAI is the Classifier for the OpenAI API and those that follow it, such as
// vLLM: as Generic, but a 429 for a quota or budget that is spent is Stop. A call that was
// refused may be repeated in any case.
func OpenAI(a Answer) (Refusal, bool) {
	r, refused := generation(a)
	p := readProblem(a.Body)
	if r.Class == Wait && (spentCodes[r.Code] || spentCodes[p.Type]) {
		r.Class = Stop
	}
	return r, refused
}

// Azure is the Classifier for Azure OpenAI: as OpenAI. Its delays come in Retry-After-Ms
// or Retry-After; remainders of -1, which it sends for some models, do not count.
func Azure(a Answer) (Refusal, bool) { return OpenAI(a) }

// Anthropic is the Classifier for the Anthropic API: as Generic, but a 429 is Stop when
// it says that a spend limit is reached, and when it does not say at all when to come back,
// which those for rates always do. A call that was refused may be repeated in any case.
func Anthropic(a Answer) (Refusal, bool) {
	r, refused := generation(a)
	if r.Class != Wait {
		return r, refused
	}
	if _, _, told := a.RetryAfter(); !told || readProblem(a.Body).spent() {
		r.Class = Stop
	}
	return r, refused
}

// Gemini is the Classifier for the Gemini API and Vertex AI: as Generic, but a 429 is
// Stop when a limit is 0, which means never, and when the quota of a day is used up,
// for which the service tells a delay of seconds that does not help. A call that was
// refused may be repeated in any case.
func Gemini(a Answer) (Refusal, bool) {
	r, refused := generation(a)
	if r.Class != Wait {
		return r, refused
	}
	p := readProblem(a.Body)
	if p.daily() || limitIsZero(p.Message) {
		r.Class = Stop
	}
	return r, refused
}

// zeroLimit finds "limit: 0", and not 0.5 or 07.
var zeroLimit = regexp.MustCompile(`\blimit: 0\.?([^.0-9]|$)`)

// limitIsZero tells whether a message of Gemini says that a limit is 0.
func limitIsZero(message string) bool { return zeroLimit.MatchString(message) }
