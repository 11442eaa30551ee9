package httpthrottle

import (
	"net/http"
)

// statusOverloaded is the status of Anthropic and others when they are overloaded, for any caller.
const statusOverloaded = 529

// Generic is the Classifier for any service: 429 is Wait, 503 and 529 are
// Overload. A 429 or 529 is taken for not processed, a 503 only if it says when to
// come back: proxies also answer 503 when a call broke off in the middle.
func Generic(a Answer) (Refusal, bool) {
	r, _, refused := generic(a)
	return r, refused
}

// generic is Generic, with the remarks in the body of a refusal.
func generic(a Answer) (r Refusal, said *remarks, refused bool) {
	switch a.Status {
	case http.StatusTooManyRequests:
		r.Class = Wait
	case http.StatusServiceUnavailable, statusOverloaded:
		r.Class = Overload
	default:
		return Refusal{}, nil, false
	}
	said = a.read()
	h, told := a.hint(said)
	r.RetryAfter, r.Dimension = h.delay, h.dimension
	r.Code = said.name()
	r.NotProcessed = told || a.Status != http.StatusServiceUnavailable
	return r, said, true
}

// generation is Generic for services that generate text. A 503 may be repeated as
// well, because a call leaves nothing behind but its cost. A 402, and a 429 that says
// that a budget is spent, is Stop.
func generation(a Answer) (r Refusal, said *remarks, refused bool) {
	r, said, refused = generic(a)
	if a.Status == http.StatusPaymentRequired {
		said = a.read()
		r, refused = Refusal{Class: Stop, Code: said.name()}, true
	}
	r.NotProcessed = refused
	if r.Class == Overload || !refused {
		return r, said, refused
	}
	if code, spent := said.spent(); spent {
		r.Class = Stop
		if code != "" && (r.Code == "" || !said.specific(r.Code)) {
			r.Code = code
		}
	}
	return r, said, refused
}

// OpenAI is the Classifier for the OpenAI API and APIs that follow it, such as vLLM, OpenRouter and LiteLLM. It is as Generic, but 402, and
// a 429 for a quota or budget that is spent, is Stop, wherever the body says so. A refused call may be repeated in any case. services.md
// lists the refusals that are taken for spent.
func OpenAI(a Answer) (Refusal, bool) {
	r, _, refused := generation(a)
	return r, refused
}

// Azure is the Classifier for Azure OpenAI: as OpenAI. Its delays come in Retry-After-Ms
// or Retry-After; remainders of -1, which it sends for some models, do not count.
func Azure(a Answer) (Refusal, bool) { return OpenAI(a) }

// Anthropic is the Classifier for the Anthropic API: as OpenAI, and a 429 is Stop as well when it says that a spend limit is reached. It is
// also Stop when it does not say at all when to come back, which refusals for rates always do.
func Anthropic(a Answer) (Refusal, bool) {
	r, said, refused := generation(a)
	if r.Class != Wait {
		return r, refused
	}
	if _, told := a.hint(said); !told {
		r.Class = Stop
	}
	return r, refused
}

// Gemini is the Classifier for the Gemini API and Vertex AI: as OpenAI, and a 429 is Stop as well when a limit is 0, which means never. It
// is also Stop when the quota of a day is used up, for which the service gives a delay of seconds that does not help.
func Gemini(a Answer) (Refusal, bool) {
	r, said, refused := generation(a)
	if r.Class == Wait && (said.daily() || said.never()) {
		r.Class = Stop
	}
	return r, refused
}
