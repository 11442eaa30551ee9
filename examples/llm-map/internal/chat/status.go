package chat

import (
	"net/http"
	"regexp"
	"strings"
)

// statuses are words that providers use in a response with a success status, and the statuses that they imply. The first one contained in a
// code counts. 422 blames the content of the message. 400 blames nothing, because many errors have a type such as invalid_request_error.
var statuses = []struct {
	word   string
	status int
}{
	{"insufficient_balance", http.StatusPaymentRequired},
	{"payment_required", http.StatusPaymentRequired},
	{"arrearage", http.StatusPaymentRequired},
	{"quota", http.StatusTooManyRequests},
	{"billing", http.StatusTooManyRequests},
	{"budget", http.StatusTooManyRequests},
	{"rate_limit", http.StatusTooManyRequests},
	{"ratelimit", http.StatusTooManyRequests},
	{"rate-limit", http.StatusTooManyRequests},
	{"too_many_requests", http.StatusTooManyRequests},
	{"toomanyrequests", http.StatusTooManyRequests},
	{"resource_exhausted", http.StatusTooManyRequests},
	{"throttl", http.StatusTooManyRequests},
	{"overload", http.StatusServiceUnavailable},
	{"unavailable", http.StatusServiceUnavailable},
	{"authentication", http.StatusUnauthorized},
	{"unauth", http.StatusUnauthorized},
	{"invalid_api_key", http.StatusUnauthorized},
	{"invalidapikey", http.StatusUnauthorized},
	{"permission", http.StatusForbidden},
	{"forbidden", http.StatusForbidden},
	{"access_denied", http.StatusForbidden},
	{"accessdenied", http.StatusForbidden},
	{"not_found", http.StatusNotFound},
	{"notfound", http.StatusNotFound},
	{"timeout", http.StatusGatewayTimeout},
	{"invalid_request", http.StatusBadRequest},
	{"invalid_argument", http.StatusBadRequest},
	{"invalid_parameter", http.StatusBadRequest},
	{"invalidparameter", http.StatusBadRequest},
	{"bad_request", http.StatusBadRequest},
	{"badrequest", http.StatusBadRequest},
	{"invalid_prompt", http.StatusUnprocessableEntity},
	{"context_length", http.StatusUnprocessableEntity},
	{"unsupported", http.StatusBadRequest},
	{"content_filter", http.StatusUnprocessableEntity},
	{"content_policy", http.StatusUnprocessableEntity},
	{"moderation", http.StatusUnprocessableEntity},
	{"validation", http.StatusBadRequest},
}

// StatusOf returns the status that a code implies; 0 for none.
func StatusOf(word string) int {
	word = strings.ToLower(word)
	for _, s := range statuses {
		if strings.Contains(word, s.word) {
			return s.status
		}
	}
	return 0
}

// phrases match errors with neither a status nor a code, and give the implied status. The first match counts: a phrase that asks for less
// precedes one that asks to wait.
var phrases = []struct {
	status   int
	patterns []string
}{
	{http.StatusBadRequest, []string{
		`context (?:length|window|size)`, `maximum context`, `prompt is too long`, `(?:input|prompt|request) (?:is )?too (?:long|large)`,
	}},
	{http.StatusPaymentRequired, []string{
		`insufficient (?:account )?(?:balance|credits?|funds?)`, `balance is insufficient`, `out of credits`, `payment required`, `in arrears`,
	}},
	{http.StatusTooManyRequests, []string{
		`rate.?limit`, `too many (?:requests|tokens)`, `throttl`, `quota`, `(?:requests?|calls?|qps|rpm|tpm) limit`,
		`(?:requests|tokens|calls) per (?:second|minute|hour|day)`, `slow down`,
	}},
	{http.StatusServiceUnavailable, []string{
		`over.?load`, `(?:at|over|exceeded) capacity`, `unavailable`, `(?:is|currently|still) loading`,
		`(?:server|service|model|engine|system) (?:is )?(?:currently |too )?busy`,
	}},
	{http.StatusUnauthorized, []string{
		`(?:invalid|incorrect|missing|wrong|expired|no|bad) (?:api|access|auth\w*)[ -]?(?:key|token|credentials?)`,
		`api[ -]?key (?:is |was )?(?:invalid|incorrect|missing|expired|wrong|required|not )`,
		`un-?authori[sz]ed`, `unauthenticated`, `not authenticated`, `authentication`, `invalid credentials`,
	}},
	{http.StatusForbidden, []string{`permission`, `forbidden`, `access denied`, `not authori[sz]ed`}},
	{http.StatusNotFound, []string{
		`model\b[^.]{0,120}(?:not found|not exist|unknown)`, `(?:no such|unknown|invalid) model`,
	}},
	{http.StatusBadRequest, []string{
		`(?:invalid|malformed|bad|unsupported|unknown|missing) (?:request|input|param\w*|argument|value|json|type|message|body|field|schema)`,
		`(?:is|are) (?:not supported|required|invalid)`, `must be`, `field required`, `content policy`,
	}},
	{http.StatusGatewayTimeout, []string{`time[ds]?[ -]?out`}},
}

// phrase matches each of the phrases.
var phrase = func() (all []*regexp.Regexp) {
	for _, p := range phrases {
		all = append(all, regexp.MustCompile(`(?i)\b(?:`+strings.Join(p.patterns, "|")+`)`))
	}
	return all
}()

// statusOfWords returns the status that a text for people implies; 0 for none.
func statusOfWords(text string) int {
	const longest = 1000 // the rest may repeat the prompt
	text = text[:min(len(text), longest)]
	if strings.EqualFold(strings.Trim(text, " ."), "not found") {
		return http.StatusNotFound
	}
	for i, p := range phrases {
		if phrase[i].MatchString(text) {
			return p.status
		}
	}
	return 0
}

// ofMiniMax maps the codes of MiniMax's base_resp to statuses, according to its page of error codes. Codes for faults of its own servers
// are omitted: any other code means that.
var ofMiniMax = map[int]int{
	1001: http.StatusGatewayTimeout,
	1002: http.StatusTooManyRequests,
	1004: http.StatusUnauthorized,
	1008: http.StatusPaymentRequired,
	1026: http.StatusBadRequest,      // the input is sensitive
	1027: http.StatusBadRequest,      // the output is sensitive
	1039: http.StatusTooManyRequests, // tokens
	1041: http.StatusTooManyRequests, // connections
	1042: http.StatusBadRequest,      // invisible characters
	2013: http.StatusBadRequest,
	2045: http.StatusTooManyRequests, // the rate grows too fast
	2049: http.StatusUnauthorized,
	2056: http.StatusTooManyRequests, // of a plan
}
