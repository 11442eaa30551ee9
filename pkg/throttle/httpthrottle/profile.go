package httpthrottle

import "net/http"

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
	if a.Status < http.StatusBadRequest {
		return Refusal{}, false
	}
	return general(a, a.read())
}

// general is Generic for a status from 400 on, with the remarks in the body of an answer.
func general(a Answer, said *remarks) (r Refusal, refused bool) {
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
		return Refusal{}, false
	}
	h, reported := a.hint(said)
	r.RetryAfter, r.Dimension = h.delay, h.dimension
	switch a.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout: // it may have acted before it failed
	default:
		r.NotProcessed = reported || r.Class == Wait || a.Status == statusOverloaded
	}
	return r, true
}
