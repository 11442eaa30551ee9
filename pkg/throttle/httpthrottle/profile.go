package httpthrottle

import (
	"net/http"
	"time"
)

const (
	// statusCalm is the status of some services instead of 429.
	statusCalm = 420
	// statusNoCapacity is the status of Groq when it has no capacity for the flexible tier.
	statusNoCapacity = 498
	// statusOverloaded is the status of Anthropic and others when they are overloaded, for any caller.
	statusOverloaded = 529
)

// Generic is the Classifier for any service: 429 and 420 are Wait, 503 and 529 are Overload. Any status from 400 on is a refusal with a code
// such as ThrottlingException or rate_limit_exceeded, in JSON, XML or AWS's header. A 403 is one with Retry-After, or when nothing remains of
// a limit. A refusal for a rate is taken for not processed. An overload is only if it's a 529 or says
// when to come back: proxies also answer 503 when a call broke off in the middle. A 500, 502 or 504 never is. A status that any repetition
// would get again, such as 404 or 413, is no refusal, whatever its code.
func Generic(a Answer) (Refusal, bool) {
	r, _, refused := generic(a)
	return r, refused
}

// generic is Generic, with the remarks in the body of an answer with a status from 400 on.
func generic(a Answer) (r Refusal, said *remarks, refused bool) {
	if a.Status < http.StatusBadRequest {
		return Refusal{}, &remarks{}, false
	}
	said = a.read()
	switch a.Status {
	case http.StatusTooManyRequests, statusCalm:
		r.Class = Wait
	case http.StatusServiceUnavailable, statusOverloaded:
		r.Class = Overload
	case http.StatusForbidden:
		if a.announcesRefusal() {
			r.Class = Wait
		}
	}
	r.Code = said.name()
	if class, word := said.refusal(a.Status); class != "" && r.Class != Wait && r.Class != class {
		r.Class, r.Code = class, clean(word)
	}
	if r.Class == "" {
		return Refusal{}, said, false
	}
	h, reported := a.hint(said)
	r.RetryAfter, r.Dimension = h.delay, h.dimension
	switch a.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout: // it may have acted before it failed
	default:
		r.NotProcessed = reported || r.Class == Wait || a.Status == statusOverloaded
	}
	return r, said, true
}

// generation is Generic for services that generate text. Any refusal may be repeated, because a call leaves nothing behind but its cost. A
// 402 is Stop, and so is a code for a spent budget with any status, or a sentence for it with 429. A call that is larger than the limit itself
// is not refused for a while: it never passes.
func generation(a Answer) (r Refusal, said *remarks, refused bool) {
	r, said, refused = generic(a)
	switch {
	case a.Status == http.StatusPaymentRequired && said.says("weightexceedsbudget"): // OpenRouter: this call is too expensive
		return Refusal{}, said, false
	case a.Status == http.StatusPaymentRequired && said.says("openrouterinflightbudget"):
		h, _ := a.hint(said)
		return Refusal{Class: Wait, RetryAfter: h.delay, Code: said.name(), NotProcessed: true}, said, true // whatever its sentence says
	case a.Status == http.StatusPaymentRequired:
		r, refused = Refusal{Class: Stop, Code: said.name()}, true
	case a.Status == statusNoCapacity && !refused:
		h, _ := a.hint(said)
		r, refused = Refusal{Class: Overload, RetryAfter: h.delay, Code: said.name()}, true
	}
	r.NotProcessed = refused
	code, spent := said.spentByCode()
	if !spent && refused && r.Class != Overload {
		code, spent = said.spent()
	}
	if spent {
		r.Class, r.NotProcessed = Stop, true
		if code != "" && (r.Code == "" || !said.specific(r.Code)) {
			r.Code = code
		}
	}
	if r.Class == Wait && said.tooLarge() {
		return Refusal{}, said, false
	}
	return r, said, refused || spent
}

// OpenAI is the Classifier for the OpenAI API and APIs that follow it, such as vLLM, Groq, OpenRouter and LiteLLM. It is as Generic, but 498
// is Overload, and Stop are 402 and a quota or budget that is spent, wherever the body says so. A 402 is Wait for money in flight, and no
// refusal if it concerns this call alone (OpenRouter). A 429 is no refusal either if the body says that the request is larger than a limit:
// it would get the same again. A refused call may be repeated in any case. services.md lists refusals with their classes.
func OpenAI(a Answer) (Refusal, bool) {
	r, _, refused := generation(a)
	return r, refused
}

// Azure is the Classifier for Azure OpenAI: as OpenAI, and a wait of more than an hour is Stop. Its delays come in Retry-After-Ms or
// Retry-After; remainders of -1, which it sends for some models, do not count.
func Azure(a Answer) (Refusal, bool) {
	r, refused := OpenAI(a)
	if r.Class == Wait && r.RetryAfter > time.Hour {
		r.Class = Stop
	}
	return r, refused
}

// Anthropic is the Classifier for the Anthropic API: as OpenAI. A 429 is Stop when it says that a spend limit is reached.
func Anthropic(a Answer) (Refusal, bool) { return OpenAI(a) }

// Gemini is the Classifier for the Gemini API and Vertex AI: as OpenAI, and a 429 is Stop as well when a limit is 0, which means never. It
// is also Stop when the quota of a day is used up, for which the service gives a delay of seconds that does not help: RetryAfter is then the
// time until midnight in the Pacific time zone, if that is known: then such quotas begin again.
func Gemini(a Answer) (Refusal, bool) {
	r, said, refused := generation(a)
	if r.Class != Wait {
		return r, refused
	}
	if said.daily() {
		r.Class = Stop
		if zone, err := time.LoadLocation("America/Los_Angeles"); err == nil {
			year, month, day := a.At.In(zone).Date()
			r.RetryAfter = time.Date(year, month, day+1, 0, 0, 0, 0, zone).Sub(a.At)
		}
	}
	if said.never() {
		r.Class = Stop
	}
	return r, refused
}
