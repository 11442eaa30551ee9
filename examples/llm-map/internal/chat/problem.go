package chat

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// ReadError parses the body of a response with an error status. Its kind is always Provider; fields that the body does not give are empty.
func ReadError(body []byte) *Fault {
	body = plain(body)
	var r reading
	found, rest, _ := values(body)
	switch {
	case isEvents(body):
		r.events(body)
	case !r.objects(found, rest):
		return &Fault{Kind: Provider}
	}
	if r.problem == nil && r.object != nil {
		r.problem = problemOf(r.object)
	}
	if r.problem == nil {
		return &Fault{Kind: Provider}
	}
	r.problem.Answer = r.known
	return r.problem
}

// errorIn returns the error in an object of an answer; nil for none. Beside a choice, only fields that have no other meaning count.
func errorIn(o object, besideChoice bool) *Fault {
	if !isNothing(o["error"]) {
		if f := inError(o["error"], 0); f != nil {
			return withRest(f, lowered(o))
		}
	}
	if f := inBase(o); f != nil {
		return f
	}
	if !besideChoice && saysError(o) {
		return problemOf(o)
	}
	return nil
}

// saysError reports whether an object is an error, as opposed to one that merely lacks a choice.
func saysError(o object) bool {
	for _, key := range []string{"object", "type", "status"} {
		if word := strings.ToLower(textOf(o[key])); word == "error" || word == "failed" || word == "fail" {
			return true
		}
	}
	return string(o["success"]) == "false" || statusIn(o) != 0
}

// words are the fields with texts for people, of an unwrapped error and of a wrapped one.
var words = []string{"message", "faultstring", "detail", "errors", "error_msg", "msg", "error_message", "errormessage", "errmsg", "title", "reason"}

// problemOf returns the error in an object without an answer, wrapped in "error" or not; nil for none.
func problemOf(o object) *Fault {
	o = lowered(o)
	if f := inError(o["error"], 0); f != nil {
		return withRest(f, o)
	}
	if f := inBase(o); f != nil {
		return f
	}
	if f := inError(o["fault"], 0); f != nil { // Apigee
		return f
	}
	if list := listOf(o["errors"]); len(list) > 0 && objectOf(list[0]) != nil && isNothing(o["message"]) {
		return inError(list[0], 0)
	}
	if isNothing(first(o, words...)) && isNothing(o["code"]) {
		if saysError(o) {
			return fault(o)
		}
		return nil
	}
	return fault(o)
}

// lowered returns an object with its keys also in lower case, unless they conflict with others.
func lowered(o object) object {
	all := maps.Clone(o)
	for key, value := range o {
		name := strings.ToLower(key)
		if _, is := o[name]; !is {
			all[name] = value
		}
	}
	return all
}

// inBase returns the error of MiniMax, which may be beside an answer; nil if there is none.
func inBase(o object) *Fault {
	base := objectOf(o["base_resp"])
	if code := textOf(base["status_code"]); code == "" || code == "0" {
		return nil
	}
	f := fault(object{"code": base["status_code"], "message": base["status_msg"]})
	if status := ofMiniMax[whole(base["status_code"])]; status != 0 {
		f.Status = status
	}
	return f
}

// withRest adds the fields beside an error: they may include the status, and when to retry.
func withRest(f *Fault, o object) *Fault {
	if string(o["error"]) == "true" { // the error is the object
		rest := maps.Clone(o)
		delete(rest, "error")
		f = fault(rest)
	} else if f.Code == "" {
		if more := messageIn(o); objectOf(o["error"]) == nil && more != "" && more != f.Words { // as {"error":"Too Many Requests","message":"..."}
			f.Words += ": " + more
		}
		f.Code = codeIn(object{"code": o["code"], "error_type": o["error_type"]})
	}
	if f.Status == 0 || f.guessed {
		if status := max(statusIn(o), StatusOf(f.Code)); status != 0 {
			f.Status, f.guessed = status, false
		}
	}
	said := object{}
	for key, value := range o {
		if key != "choices" && key != "usage" && !isNothing(value) {
			said[key] = value
		}
	}
	if encoded, err := json.Marshal(said); err == nil {
		f.Body = encoded
	}
	return f
}

// inError parses the value of a key "error": a text, an object, one within another, or a list of them. It returns nil for an empty one.
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
	o = lowered(o)
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

// unlisted returns the first element of a list, and anything else unchanged.
func unlisted(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return raw
}

// textFault returns an error for a text.
func textFault(text string) *Fault {
	return fault(object{"message": quoted(text)})
}

// fault returns the fault in an error object.
func fault(o object) *Fault {
	f := &Fault{Kind: Provider, Status: statusIn(o), Code: codeIn(o), Words: messageIn(o)}
	for _, code := range []string{f.Code, textOf(o["type"])} {
		if f.Status == 0 {
			f.Status = StatusOf(code)
		}
	}
	if f.Status == 0 {
		f.Status = statusOfWords(f.Words)
		f.guessed = f.Status != 0
	}
	if param := textOf(o["param"]); isWord(param) {
		f.Param = param
	}
	if encoded, err := json.Marshal(map[string]any{"error": o}); err == nil {
		f.Body = encoded
	}
	return f
}

// codeIn returns the error code of an error object; empty for none. A number repeats the status.
func codeIn(o object) string {
	for _, raw := range []json.RawMessage{o["code"], o["type"], o["error_type"], o["status"], o["__type"], objectOf(o["detail"])["errorcode"]} {
		var code string
		if json.Unmarshal(raw, &code) != nil {
			continue
		}
		code = code[strings.LastIndexByte(code, '#')+1:] // of AWS: the name follows that of the service
		if isWord(code) && !strings.EqualFold(code, "error") {
			return code
		}
	}
	return ""
}

// messageIn returns the text for people in an error object.
func messageIn(o object) string {
	raw := first(o, words...)
	text := textOf(raw)
	if text == "" && !isNothing(raw) {
		text = string(raw) // a list of faults, as in web frameworks
	}
	if upstream := textOf(first(objectOf(o["metadata"]), "raw")); upstream != "" { // of a gateway
		text += ": " + upstream
	}
	return text
}

// statusIn returns the HTTP status that an error object names; 0 for none.
func statusIn(o object) int {
	for _, key := range []string{"code", "status", "status_code", "statuscode", "http_code", "error_code", "errorcode", "errcode", "http_status"} {
		if n := whole(o[key]); n >= http.StatusBadRequest && n <= 599 {
			return n
		}
	}
	return 0
}
