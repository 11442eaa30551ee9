package httpthrottle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// remarks holds the content of the body of a refusal, in any form: values of fields with certain names, at any place. A body that is cut
// off or breaks in the middle still counts up to there.
type remarks struct {
	code, kind    string   // code and type of the object "error", where the service has one
	loose         string   // the first code or type that stands elsewhere
	words         []string // codes, types and the like
	texts         []string // for people
	quotas        []string // Google's quotaId
	faults        []string // words for the fault, only from where services have them; see faultWords
	passedOn      []string // such words of the service behind a gateway
	info, pauses  []pause  // google.rpc.RetryInfo; other fields that say when to come back
	values, depth int
}

// A pause is a value that says when to come back.
type pause struct {
	key, value string
	unit       time.Duration
}

// Bounds of the content of a body; the rest is left out.
const (
	mostValues  = 100_000
	mostRemarks = 64
	deepest     = 32
	mostNested  = 3 // texts that hold JSON, one in another
)

// read returns the remarks in the body of an answer.
func (a Answer) read() *remarks {
	r := &remarks{}
	body := readable(a.Body, a.Header)
	r.faults, r.passedOn = a.faultWords(body)
	switch {
	case len(body) == 0:
	case body[0] == '{' || body[0] == '[' || body[0] == '"':
		if ok := r.json(body, 0); !ok && len(r.words) == 0 && len(r.texts) == 0 {
			r.text(string(body), mostNested) // such as a dictionary of Python
		}
	default:
		if !r.events(body) {
			r.text(string(body), 0)
		}
	}
	return r
}

// events reads server-sent events. It returns false if there are none.
func (r *remarks) events(body []byte) (some bool) {
	var data []byte
	for line := range bytes.Lines(body) {
		line = bytes.TrimRight(line, "\r\n")
		if more, is := bytes.CutPrefix(line, []byte("data:")); is {
			some = true
			data = append(append(data, more...), '\n')
		} else if len(line) == 0 {
			r.json(data, 0)
			data = data[:0]
		}
	}
	r.json(data, 0)
	return some
}

// json reads JSON texts, as far as they are well-formed. It returns false if something is no JSON; a text that is cut off is JSON.
func (r *remarks) json(data []byte, nested int) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for r.value(d, "", "", nested) {
	}
	_, err := d.Token()
	_, wrong := errors.AsType[*json.SyntaxError](err)
	return !wrong
}

// value reads a value that stands at a key of an object that itself stands at outer. It returns false when
// there is no more to read.
func (r *remarks) value(d *json.Decoder, outer, key string, nested int) bool {
	token, err := d.Token()
	if err != nil || r.values >= mostValues {
		return false
	}
	r.values++
	switch v := token.(type) {
	case json.Delim:
		if r.depth >= deepest {
			return false
		}
		r.depth++
		defer func() { r.depth-- }()
		if v == '{' {
			return r.object(d, key, nested)
		}
		for d.More() {
			if !r.value(d, outer, key, nested) {
				return false
			}
		}
		_, err = d.Token()
		return err == nil
	case string:
		r.scalar(outer, key, v, true, nested)
	case json.Number:
		r.scalar(outer, key, v.String(), false, nested)
	}
	return true
}

// object reads an object that stands at a key.
func (r *remarks) object(d *json.Decoder, at string, nested int) (more bool) {
	var kind, delay string
	defer func() { // also where the object is cut off
		switch {
		case delay == "" || len(r.info) >= mostRemarks:
		case strings.HasSuffix(kind, "google.rpc.RetryInfo"):
			r.info = append(r.info, pause{key: "RetryInfo", value: delay})
		case kind == "":
			r.info = append(r.info, pause{key: "retryDelay", value: delay})
		}
	}()
	for d.More() {
		token, err := d.Token()
		key, is := token.(string)
		if err != nil || !is {
			return false
		}
		switch key {
		case "@type", "retryDelay":
			var raw json.RawMessage
			if d.Decode(&raw) != nil {
				return false
			}
			if key == "@type" {
				_ = json.Unmarshal(raw, &kind)
			} else {
				delay = delayOf(raw)
			}
		default:
			if !r.value(d, at, key, nested) {
				return false
			}
		}
	}
	_, err := d.Token()
	return err == nil
}

// delayOf returns a google.protobuf.Duration as ProtoJSON writes it: as it came, or converted from a number or an object of other encoders.
// Empty: it is none.
func delayOf(raw json.RawMessage) (delay string) {
	var parts struct {
		Seconds json.Number `json:"seconds"`
		Nanos   uint32      `json:"nanos"`
	}
	var number json.Number
	switch {
	case json.Unmarshal(raw, &delay) == nil:
		return delay
	case json.Unmarshal(raw, &number) == nil:
		return number.String() + "s"
	case json.Unmarshal(raw, &parts) == nil && parts.Nanos < 1e9:
		return fmt.Sprintf("%s.%09ds", parts.Seconds, parts.Nanos)
	}
	return ""
}

// delays are the fields that say when to come back, in lower case and without _ and -, with the unit of a
// plain number.
var delays = map[string]time.Duration{
	"retryafter": time.Second, "retryafterseconds": time.Second, "retryaftersecs": time.Second, "retryaftersec": time.Second, "retryafters": time.Second,
	"retryafterms": time.Millisecond, "retryaftermillis": time.Millisecond, "retryaftermilliseconds": time.Millisecond,
}

// codes and texts are the fields that describe the fault to programs and to people.
var (
	codes = map[string]bool{
		"code": true, "type": true, "status": true, "reason": true, "kind": true, "name": true, "errorcode": true, "errortype": true,
		"errcode": true, "error": true, "detail": true, "statuscode": true, "errorname": true, "errorstatus": true,
	}
	texts = map[string]bool{
		"message": true, "msg": true, "error": true, "errors": true, "detail": true, "details": true, "title": true, "description": true,
		"errordescription": true, "errormessage": true, "errormsg": true, "reason": true, "raw": true, // of OpenRouter: its provider's answer
	}
)

// scalar takes a text or a number at a key of an object at outer.
func (r *remarks) scalar(outer, key, value string, isText bool, nested int) {
	name := plain(key)
	if unit, is := delays[name]; is && len(r.pauses) < mostRemarks {
		r.pauses = append(r.pauses, pause{key, value, unit})
		return
	}
	if (name == "quotaid" || name == "quotalimit") && len(r.quotas) < mostRemarks {
		r.quotas = append(r.quotas, value)
	}
	if codes[name] || strings.HasSuffix(name, "type") {
		r.word(outer, name, value, isText)
	}
	if isText && (texts[name] || key == "") {
		r.text(value, nested)
	}
}

// word takes a code.
func (r *remarks) word(outer, name, value string, isText bool) {
	if len(value) > longestValue || len(r.words) >= mostRemarks {
		return
	}
	r.words = append(r.words, value)
	if !isText {
		return // Google's code repeats the status
	}
	switch {
	case outer == "error" && name == "code" && r.code == "":
		r.code = value
	case outer == "error" && name == "type" && r.kind == "":
		r.kind = value
	case (name == "code" || name == "errorcode" || name == "type") && r.loose == "" && !strings.EqualFold(value, "error"):
		r.loose = value
	}
}

// text takes a text for people, and also reads the JSON within it, if any.
func (r *remarks) text(value string, nested int) {
	if len(r.texts) < mostRemarks {
		r.texts = append(r.texts, value)
	}
	if nested >= mostNested {
		return
	}
	at := strings.IndexByte(value, '{')
	if strings.HasPrefix(strings.TrimSpace(value), "[{") {
		at = 0
	}
	if at >= 0 {
		r.json([]byte(value[at:]), nested+1)
	}
}

// plain returns a name in lower case, without the characters that join its words.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// name returns the service's word for the fault; empty when it has none.
func (r *remarks) name() string {
	for _, word := range [...]string{r.code, r.kind, r.loose} {
		if word != "" {
			return clean(word)
		}
	}
	return ""
}

// delay returns when to come back according to the fields of the body; of several the latest.
func (r *remarks) delay(c clock) (found hint, ok bool) {
	for _, p := range r.info {
		// Seconds with an s behind, as every duration of ProtoJSON.
		number, seconds := strings.CutSuffix(p.value, "s")
		n, valid := decimal(number)
		if seconds && valid && len(number) <= longestValue {
			if d := c.rest(span(n, time.Second)); !ok || d > found.delay {
				found, ok = hint{delay: d, raw: p.key + ": " + p.value}, true
			}
		}
	}
	if ok {
		return found, true
	}
	for _, p := range r.pauses {
		if d, valid := c.field(p.value, p.unit); valid && (!ok || d > found.delay) {
			found, ok = hint{delay: d, raw: p.key + ": " + p.value}, true
		}
	}
	return found, ok
}

// field reads a field of the body, which may be a number with an exponent.
func (c clock) field(value string, unit time.Duration) (time.Duration, bool) {
	if d, ok := c.when(value, unit); ok {
		return d, true
	}
	n, err := strconv.ParseFloat(value, 64)
	if exact := new(big.Rat).SetFloat64(n); err == nil && exact != nil && n >= 0 {
		return c.number(exact, unit), true
	}
	return 0, false
}

// advice returns when to come back according to the texts for people; of several the latest.
func (r *remarks) advice(c clock) (found hint, ok bool) {
	for _, text := range r.texts {
		if d, words, valid := c.inText(text); valid && (!ok || d > found.delay) {
			found, ok = hint{delay: d, raw: words}, true
		}
	}
	return found, ok
}
