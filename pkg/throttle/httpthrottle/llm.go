package httpthrottle

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file has the classifiers for LLMs. They judge alike, because a gateway or a mirror passes on the answers of any provider.

// OpenAI is the Classifier for LLMs, for the OpenAI API and APIs that follow it, such as vLLM, Groq, OpenRouter and LiteLLM. It is as Generic,
// with these differences:
//
//   - 498 is Overload.
//   - 402 is Stop. But it is Wait for money in flight, and no refusal if it concerns this call alone (OpenRouter).
//   - A quota or budget that is spent is Stop, with any status for a code, with 429 also for a sentence.
//   - A limit of 0 is Stop.
//   - Google's quota of a day is Stop, until midnight in the Pacific time zone if that is known. The shorter time that the service gives
//     does not help.
//   - A wait of more than [WithMaxPause] is Stop, until its end. Outside of a transport it's one of more than an hour.
//   - A request that is larger than the limit is no refusal: it would get the same again.
//   - Google's limit on spending in 10 minutes has such a MaxBackoff.
//   - A refusal because calls grow too fast has the Code slow_down, limit_burst_rate or acceleration_limit.
//   - An answer of the service behind a gateway counts in metadata.raw, and with 5xx in the text of an error.
//
// A refused call may be repeated in any case, because it leaves nothing behind but its cost. services.md lists refusals with their classes.
func OpenAI(a Answer) (Refusal, bool) {
	if a.Status < http.StatusBadRequest {
		return Refusal{}, false
	}
	said := a.read()
	said.faults = append(said.faults, said.passedOn...)
	r, refused := general(a, said)
	switch {
	case a.Status == http.StatusPaymentRequired && said.tooDear():
		return Refusal{}, false
	case a.Status == http.StatusPaymentRequired && said.inFlight():
		h, _ := a.hint(said)
		r, refused = Refusal{Class: Wait, RetryAfter: h.delay, Code: said.name()}, true
	case a.Status == http.StatusPaymentRequired:
		r, refused = Refusal{Class: Stop, Code: said.name()}, true
		said.spend(&r)
	case a.Status == statusNoCapacity && !refused:
		h, _ := a.hint(said)
		r, refused = Refusal{Class: Overload, RetryAfter: h.delay, Code: said.name()}, true
	default:
		refused = said.spend(&r) || refused
	}
	if r.Class == Wait && said.tooLarge() {
		return Refusal{}, false
	}
	if refused {
		r.NotProcessed = true
		said.grow(&r)
		said.last(a, &r)
	}
	return r, refused
}

// Azure is OpenAI, the Classifier for LLMs, under the name of Azure OpenAI.
func Azure(a Answer) (Refusal, bool) { return OpenAI(a) }

// Anthropic is OpenAI, the Classifier for LLMs, under the name of the Anthropic API.
func Anthropic(a Answer) (Refusal, bool) { return OpenAI(a) }

// Gemini is OpenAI, the Classifier for LLMs, under the name of the Gemini API and Vertex AI.
func Gemini(a Answer) (Refusal, bool) { return OpenAI(a) }

// spend makes the refusal a Stop if a quota or budget is spent, and reports whether it is. A sentence doesn't count for an Overload, nor if
// there was no refusal.
func (r *remarks) spend(f *Refusal) bool {
	code, spent := r.spentByCode()
	if !spent && (f.Class == Wait || f.Class == Stop) {
		code, spent = r.spent()
	}
	if !spent {
		return false
	}
	f.Class = Stop
	if code != "" && (f.Code == "" || !r.specific(f.Code)) {
		f.Code = code
	}
	return true
}

// grow gives a refusal because calls grow too fast its code. It is a Wait, with any status.
func (r *remarks) grow(f *Refusal) {
	if code := r.growth(); code != "" && f.Class != Stop {
		f.Class, f.Code = Wait, code
	}
}

const (
	// longestWait is the longest wait that is no Stop, outside of a transport.
	longestWait = time.Hour
	// spendWindow is the time in which Google limits spending.
	spendWindow = 10 * time.Minute
)

// last makes a Wait that lasts too long a Stop.
func (r *remarks) last(a Answer, f *Refusal) {
	if f.Class != Wait {
		return
	}
	if r.anyText(spendRate) {
		f.MaxBackoff = spendWindow
	}
	zone, err := time.LoadLocation("America/Los_Angeles")
	switch {
	case r.daily():
		f.Class = Stop
		if err == nil {
			year, month, day := a.At.In(zone).Date()
			f.RetryAfter = time.Date(year, month, day+1, 0, 0, 0, 0, zone).Sub(a.At)
		}
	case r.anyText(zeroLimit): // whatever time it says
		f.Class, f.RetryAfter = Stop, 0
	case f.RetryAfter > cmp.Or(a.longest, longestWait):
		f.Class = Stop
	}
}

// Signs of refusals in texts. Those with a field are there because gateways turn the answer of a service into a text, as JSON or as Python
// writes it.
var (
	tooDear   = regexp.MustCompile(`\breason\W{1,16}weight_exceeds_budget\b`)
	inFlight  = regexp.MustCompile(`\blimit_source\W{1,16}openrouter_in_flight_budget\b`)
	dayQuota  = regexp.MustCompile(`\b(?:quotaId|quota_id|quota_limit)\W{1,16}\w*PerDay`)
	zeroLimit = regexp.MustCompile(`\blimit: 0\.?([^.0-9]|$)`) // and not 0.5 or 07
	spendRate = regexp.MustCompile(`(?i)\bspend[- ]based rate limit`)
	codeField = regexp.MustCompile(`\b(?:code|type)\W{1,16}([\w.]+)`)
	// growthRate finds Anthropic's limit, which has no code.
	growthRate = regexp.MustCompile(`(?i)\bacceleration limit|\busage increase rate\b`)
)

// anyText reports whether a text for people has a sign.
func (r *remarks) anyText(sign *regexp.Regexp) bool {
	return slices.ContainsFunc(r.texts, sign.MatchString)
}

// tooDear reports whether OpenRouter says that this call is too expensive, whatever the others cost.
func (r *remarks) tooDear() bool { return r.says("weight_exceeds_budget") || r.anyText(tooDear) }

// inFlight reports whether OpenRouter says that money is only reserved for calls in flight.
func (r *remarks) inFlight() bool {
	return r.says("openrouter_in_flight_budget") || r.anyText(inFlight)
}

// daily reports whether one of Google's violated quotas is for a day.
func (r *remarks) daily() bool {
	return slices.ContainsFunc(r.quotas, func(id string) bool { return strings.Contains(id, "PerDay") }) || r.anyText(dayQuota)
}

// growthCodes are the codes of limits on how fast calls may grow, in the spelling of plain, with the code that a refusal gets.
var growthCodes = map[string]string{
	"slowdown": "slow_down", "limitburstrate": "limit_burst_rate", "burstrate": "limit_burst_rate", "requestbursttoofast": "limit_burst_rate",
}

// growth returns the code of a limit on how fast calls may grow; empty for others.
func (r *remarks) growth() string {
	words := slices.Concat(r.words, r.faults)
	for _, text := range r.texts {
		for _, field := range codeField.FindAllStringSubmatch(text[:min(len(text), longestText)], mostRemarks) {
			words = append(words, field[1])
		}
	}
	for _, word := range words {
		for _, part := range partsOf(word) {
			if code := growthCodes[plain(part)]; code != "" && !strings.Contains(part, " ") { // a sentence
				return code
			}
		}
	}
	if r.anyText(growthRate) {
		return "acceleration_limit"
	}
	return ""
}
