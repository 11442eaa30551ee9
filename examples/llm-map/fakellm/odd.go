package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Form is the form of a served answer. All forms cost the same.
type Form string

// The forms. From Refusal on they contain no answer, though their status is 200.
const (
	Plain      Form = "plain"
	Parts      Form = "parts"      // the content is a list
	Completion Form = "completion" // choices[].text
	OddTypes   Form = "odd-types"  // numbers as texts, texts as numbers, unknown fields
	Marked     Form = "marked"     // a byte-order mark before it, and some text after it
	Events     Form = "events"     // unrequested server-sent events
	Refusal    Form = "refusal"
	Filtered   Form = "filtered"
	Error      Form = "error" // an error object
	Failed     Form = "failed"
	Nothing    Form = "nothing" // a choice with an empty content
	NoChoices  Form = "no-choices"
	NoBody     Form = "no-body"
	Page       Form = "page" // HTML
	Half       Form = "half" // it ends in the middle
)

// Forms lists all forms.
var Forms = []Form{Plain, Parts, Completion, OddTypes, Marked, Events, Refusal, Filtered, Error, Failed, Nothing, NoChoices, NoBody, Page, Half}

// form returns the form of the next answer.
func (s *Server) form() Form {
	if len(s.config.Forms) == 0 {
		return Plain
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	return s.config.Forms[(s.answers-1)%len(s.config.Forms)]
}

// writeForm sends an answer of the chat endpoint in a form.
func writeForm(w http.ResponseWriter, a *answer, form Form) {
	quoted, err := json.Marshal(a.text)
	if err != nil {
		http.Error(w, "cannot encode the answer", http.StatusInternalServerError)
		return
	}
	choice := func(message, finish string) string {
		return fmt.Sprintf(`{"id":%q,"model":%q,"choices":[{"index":0,"message":%s,"finish_reason":%q}],`+
			`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
			"chatcmpl-"+a.id, a.call.model, message, finish, a.used.Prompt(), a.used.Output, a.used.Total())
	}
	said := func(content string) string { return `{"role":"assistant","content":` + content + `}` }
	body, kind := choice(said(string(quoted)), "stop"), "application/json"
	switch form {
	case Plain:
		writeChat(w, a)
		return
	case Parts:
		body = choice(said(`[{"type":"text","text":`+string(quoted)+`}]`), "stop")
	case Completion:
		body = fmt.Sprintf(`{"choices":[{"text":%s,"finish_reason":"stop"}],"usage":{"total_tokens":%d}}`, quoted, a.used.Total())
	case OddTypes:
		body = fmt.Sprintf(`{"id":7,"created":"now","system_fingerprint":{},"choices":[{"index":"0","message":%s,"finish_reason":null}],`+
			`"usage":{"prompt_tokens":"%d","completion_tokens":%d.0,"total_tokens":null}}`, said(string(quoted)), a.used.Prompt(), a.used.Output)
	case Marked:
		body = "\xef\xbb\xbf" + body + "\n<!-- proxy -->"
	case Events:
		a.call.usage = true
		streamChat(w, a)
		return
	case Refusal:
		body = choice(`{"role":"assistant","content":null,"refusal":"I cannot help with that."}`, "stop")
	case Filtered:
		body = choice(said(`""`), "content_filter")
	case Error:
		body = `{"error":{"code":502,"message":"The upstream is gone."}}`
	case Failed:
		body = choice(said(string(quoted)), "error")
	case Nothing:
		body = choice(said(`null`), "stop")
	case NoChoices:
		body = `{"choices":[]}`
	case NoBody:
		body = ""
	case Page:
		body, kind = "<!DOCTYPE html><title>Sign in</title>", "text/html"
	case Half:
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(body))
}

// ParseForms parses the names of forms, separated by commas; the error names an unknown one.
func ParseForms(names string) ([]Form, error) {
	var forms []Form
	for name := range strings.SplitSeq(names, ",") {
		f := Form(strings.TrimSpace(name))
		if f == "" {
			continue
		}
		if !slices.Contains(Forms, f) {
			return nil, fmt.Errorf("fakellm: the form of an answer is %.40q, allowed: %v", f, Forms)
		}
		forms = append(forms, f)
	}
	return forms, nil
}
