package chat

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// ReadError reads the body of an answer that is none by its status. Its kind is always Provider; what the body does
// not say is empty.
func ReadError(body []byte) *Fault {
	f := &Fault{Kind: Provider}
	raw, _ := firstValue(plain(body))
	if o := objectOf(unlisted(raw)); o != nil {
		if p := problemOf(o); p != nil {
			return p
		}
	}
	return f
}

// problemOf returns the error that an object without an answer holds, wrapped in "error" or not; nil for none.
func problemOf(o object) *Fault {
	if p := inError(o["error"], 0); p != nil {
		return p
	}
	if base := objectOf(o["base_resp"]); !isNothing(first(base, "status_code")) {
		return fault(object{"code": base["status_code"], "message": base["status_msg"]})
	}
	if isNothing(first(o, "message", "detail", "errors", "error_msg", "msg")) && isNothing(o["code"]) {
		return nil
	}
	inner := maps.Clone(o)
	inner["message"] = first(o, "message", "detail", "errors", "error_msg", "msg")
	return fault(inner)
}

// inError reads the value of a key "error": a text, an object, one within another, or a list of them. nil for one that
// says nothing.
func inError(raw json.RawMessage, depth int) *Fault {
	const deepest = 3
	raw = unlisted(raw)
	if isNothing(raw) || depth > deepest {
		return nil
	}
	o := objectOf(raw)
	if o == nil {
		return fault(object{"message": raw})
	}
	if isNothing(first(o, "message", "code", "type")) {
		if f := inError(o["error"], depth+1); f != nil {
			return f
		}
	}
	for _, value := range o {
		if !isNothing(value) {
			return fault(o)
		}
	}
	return nil
}

// unlisted returns the first element of a list, and anything else as it is.
func unlisted(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return raw
}

// fault returns what an error object says.
func fault(o object) *Fault {
	f := &Fault{Kind: Provider, Status: statusIn(o), Words: messageIn(o)}
	var code string
	for _, raw := range []json.RawMessage{o["code"], o["type"], o["error_type"], o["status"]} {
		if json.Unmarshal(raw, &code) == nil && isWord(code) { // a number repeats the status
			f.Code = code
			break
		}
	}
	if f.Status == 0 {
		f.Status = statusOf(f.Code)
	}
	if f.Status == 0 {
		f.Status = statusOf(textOf(o["type"]))
	}
	if param := textOf(o["param"]); isWord(param) {
		f.Param = param
	}
	if encoded, err := json.Marshal(map[string]any{"error": o}); err == nil {
		f.Body = encoded
	}
	return f
}

// messageIn returns what an error object says to people.
func messageIn(o object) string {
	raw := first(o, "message", "msg", "detail")
	text := textOf(raw)
	if text == "" && !isNothing(raw) {
		text = string(raw) // a list of what is wrong, as web frameworks have it
	}
	if upstream := textOf(first(objectOf(o["metadata"]), "raw")); upstream != "" { // of a gateway
		text += ": " + upstream
	}
	return text
}

// statusIn returns the HTTP status that an error object names; 0 for none.
func statusIn(o object) int {
	for _, key := range []string{"code", "status", "status_code", "http_code"} {
		if n := whole(o[key]); n >= http.StatusBadRequest && n <= 599 {
			return n
		}
	}
	return 0
}

// statuses are words that providers use in an answer whose own status says that all is well, and the status that they
// stand for. The first that is part of a code counts.
var statuses = []struct {
	word   string
	status int
}{
	{"insufficient_balance", http.StatusPaymentRequired},
	{"payment_required", http.StatusPaymentRequired},
	{"quota", http.StatusTooManyRequests},
	{"billing", http.StatusTooManyRequests},
	{"budget", http.StatusTooManyRequests},
	{"rate_limit", http.StatusTooManyRequests},
	{"ratelimit", http.StatusTooManyRequests},
	{"too_many_requests", http.StatusTooManyRequests},
	{"resource_exhausted", http.StatusTooManyRequests},
	{"throttl", http.StatusTooManyRequests},
	{"overload", http.StatusServiceUnavailable},
	{"unavailable", http.StatusServiceUnavailable},
	{"authentication", http.StatusUnauthorized},
	{"unauth", http.StatusUnauthorized},
	{"invalid_api_key", http.StatusUnauthorized},
	{"permission", http.StatusForbidden},
	{"forbidden", http.StatusForbidden},
	{"not_found", http.StatusNotFound},
	{"notfound", http.StatusNotFound},
	{"timeout", http.StatusGatewayTimeout},
	{"invalid_request", http.StatusBadRequest},
	{"invalid_argument", http.StatusBadRequest},
	{"bad_request", http.StatusBadRequest},
	{"badrequest", http.StatusBadRequest},
	{"context_length", http.StatusBadRequest},
	{"unsupported", http.StatusBadRequest},
	{"content_filter", http.StatusBadRequest},
	{"content_policy", http.StatusBadRequest},
	{"moderation", http.StatusBadRequest},
	{"validation", http.StatusBadRequest},
}

func statusOf(word string) int {
	word = strings.ToLower(word)
	for _, s := range statuses {
		if strings.Contains(word, s.word) {
			return s.status
		}
	}
	return 0
}
