package httpthrottle

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// This file finds refusals that only the body or a header tells, whatever the status. Only fields for programs count, where services have
// them. Prose doesn't: it may quote the request.

// faultWords returns the words for the fault of an answer: codes, types and statuses. passedOn are those of the service behind a gateway.
func (a Answer) faultWords(body []byte) (words, passedOn []string) {
	f := faultReader{texts: a.Status >= http.StatusInternalServerError}
	for _, name := range [...]string{"X-Amzn-Errortype", "X-Amzn-Query-Error", "X-Ms-Error-Code"} {
		f.word(a.Header.Get(name))
	}
	switch a.Header.Get("Grpc-Status") {
	case "8", "14":
		f.word(grpcNames[a.Header.Get("Grpc-Status")])
	}
	switch {
	case len(body) == 0:
	case body[0] == '<':
		f.xml(body)
	case body[0] == '{' || body[0] == '[':
		if !json.Valid(body) {
			body = completed(body)
		}
		f.json(body, 0, false)
	default: // server-sent events
		for line := range bytes.Lines(body) {
			if data, is := bytes.CutPrefix(line, []byte("data:")); is {
				f.json(data, 0, false)
			}
		}
	}
	return f.words, f.passedOn
}

// completed returns a JSON text that was cut off with its ends: what came whole is in it. A text that is nested deeply has nothing to say.
func completed(cut []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(cut))
	var open, ends []byte // the ends of what is open now, and after the last value
	whole := int64(0)     // the end of that value
	for key := false; len(open) <= deepest; {
		token, err := d.Token()
		if _, number := token.(float64); err != nil || number && int(d.InputOffset()) == len(cut) { // digits may be missing
			break
		}
		switch token {
		case json.Delim('{'):
			open, key = append(open, '}'), false
		case json.Delim('['):
			open = append(open, ']')
		case json.Delim('}'), json.Delim(']'):
			open, key = open[:len(open)-1], false
		default:
			if key = !key && len(open) > 0 && open[len(open)-1] == '}'; key {
				continue // its value comes
			}
		}
		whole, ends = d.InputOffset(), append(ends[:0], open...)
	}
	slices.Reverse(ends)
	return append(bytes.Clone(cut[:whole]), ends...)
}

// A faultReader collects words, mostRemarks at most.
type faultReader struct {
	words    []string
	passedOn []string // those of answers in the texts of this one
	texts    bool     // any text of an error may hold such an answer: the service itself has failed, so it doesn't quote the request
	nested   int      // of such an answer: how deep
}

func (f *faultReader) word(word string) {
	if word != "" && len(word) <= longestValue && len(f.words) < mostRemarks {
		f.words = append(f.words, word)
	}
}

// The fields of an object about a fault, in the spelling of plain: those with a word, and those with objects.
var (
	faultCodes = map[string]bool{
		"code": true, "type": true, "status": true, "reason": true, "errorcode": true, "errortype": true, "errcode": true, "errorname": true,
		"statuscode": true, "httpstatus": true, "limitsource": true,
	}
	errorNames = map[string]bool{"error": true, "errors": true, "fault": true}
	faultParts = map[string]bool{
		"error": true, "errors": true, "fault": true, "detail": true, "details": true, "innererror": true, "extensions": true,
	}
)

// grpcNames are the names of the codes of gRPC that are refusals.
var grpcNames = map[string]string{"8": "RESOURCE_EXHAUSTED", "14": "UNAVAILABLE"}

// deepestFault is how deep the words can be: {"error":{"errors":[{"reason"}]}}.
const deepestFault = 3

// json reads an object about a fault, or a list of them. Metadata counts only inside an error: elsewhere it may be the caller's.
func (f *faultReader) json(raw []byte, depth int, inError bool) {
	var list []json.RawMessage
	var o map[string]json.RawMessage
	if depth > deepestFault {
		return
	}
	if json.Unmarshal(raw, &list) == nil {
		for _, item := range list[:min(len(list), mostRemarks)] {
			f.json(item, depth+1, inError)
		}
		return
	}
	if json.Unmarshal(raw, &o) != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(o)) { // of several words for a refusal the first is its code
		name, value := strings.TrimLeft(plain(key), "@$"), o[key]
		switch text := scalarOf(value); {
		case name == "code" && o["message"] != nil && o["details"] != nil && grpcNames[text] != "": // google.rpc.Status
			f.word(grpcNames[text])
		case faultCodes[name]:
			f.word(text)
		case name == "error" && !strings.Contains(text, " "): // else a sentence
			f.word(text)
			f.json(value, depth+1, true)
		case faultParts[name] || inError && name == "metadata":
			f.json(value, depth+1, inError || errorNames[name])
		case f.quotes(name, inError):
			f.another(text)
		case name == "documentationurl" && strings.Contains(text, "rate-limit"): // GitHub
			f.word("rate_limited")
		}
	}
}

// quotes reports whether a field of an error may hold the answer of another service; raw is OpenRouter's, in metadata.
func (f *faultReader) quotes(name string, inError bool) bool {
	return inError && (name == "raw" || name == "message" && f.texts)
}

// another reads the answer of another service that a text holds.
func (f *faultReader) another(text string) {
	var raw json.RawMessage
	at := strings.IndexByte(text, '{')
	if at < 0 || f.nested >= mostNested || json.NewDecoder(strings.NewReader(text[at:])).Decode(&raw) != nil {
		return
	}
	behind := faultReader{texts: f.texts, nested: f.nested + 1}
	behind.json(raw, 0, false)
	found := slices.Concat(behind.words, behind.passedOn)
	f.passedOn = append(f.passedOn, found[:min(len(found), mostRemarks-len(f.passedOn))]...)
}

// scalarOf returns a text, or the digits of a number; empty for others.
func scalarOf(raw json.RawMessage) string {
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &number) == nil:
		return number.String()
	}
	return ""
}

// xml reads the elements Code of elements Error, as AWS and Azure have them.
func (f *faultReader) xml(body []byte) {
	d := xml.NewDecoder(bytes.NewReader(body))
	var path []string
	for {
		token, err := d.Token()
		if err != nil {
			return
		}
		switch t := token.(type) {
		case xml.StartElement:
			if path = append(path, t.Name.Local); len(path) > deepest {
				return
			}
		case xml.EndElement:
			path = path[:max(len(path)-1, 0)]
		case xml.CharData:
			if n := len(path); n >= 2 && path[n-2] == "Error" && path[n-1] == "Code" {
				f.word(strings.TrimSpace(string(t)))
			}
		}
	}
}

// Words for a refusal, in the spelling of plain.
var (
	rateWord = regexp.MustCompile(`^(?:429` +
		`|.*ratelimit(?:ed|error|exceeded|exceedederror|exceededexception|exception|reached|reachederror|violation)?` +
		`|.*throttl(?:ed|ing)(?:exception|error)?|toomanyrequests(?:exception|error)?|toomanytokensexception|provisionedthroughputexceeded(?:exception)?` +
		`|(?:requests?|bandwidth)limitexceeded|limitexceededexception|slowdown|spikearrestviolation|resourceexhausted` +
		`|priorrequestnotcomplete|transactioninprogressexception)$`)
	overloadWord = regexp.MustCompile(`^(?:503|529|.*overloaded(?:error|exception)?|capacityexceeded|serverbusy|modelnotreadyexception` +
		`|(?:service)?unavailable(?:exception|error)?)$`)
)

// deaf reports whether no word makes an answer with a status a refusal: the same call gets it again, however long it waits.
func deaf(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusRequestHeaderFieldsTooLarge, http.StatusUnavailableForLegalReasons:
		return true
	}
	return false
}

// refusal returns the class that the words of an answer tell, and the word; empty if they tell none. A rate counts before an overload. With a
// status below 500 only the exceptions of AWS are an overload: other words may be about what the caller asked for.
func (r *remarks) refusal(status int) (class Class, word string) {
	if deaf(status) {
		return "", ""
	}
	for _, said := range r.faults {
		for _, part := range partsOf(said) {
			switch name := plain(part); {
			case rateWord.MatchString(name):
				return Wait, part
			case class == "" && overloadWord.MatchString(name) && (status >= http.StatusInternalServerError || strings.HasSuffix(name, "exception")):
				class, word = Overload, part
			}
		}
	}
	return class, word
}

// partsOf splits a word that has a name in front or behind: com.amazon.coral.service#ThrottlingException:http://... or Throttling.User. Of a
// URL, as in RFC 9457, the last part counts.
func partsOf(word string) []string {
	switch at := strings.IndexAny(word, ":;,"); {
	case at > 0 && strings.HasPrefix(word[at:], "://"):
		word = word[strings.LastIndexByte(word, '/')+1:]
	case at > 0:
		word = word[:at]
	}
	word = word[strings.LastIndexByte(word, '#')+1:]
	return strings.Split(word, ".")
}

// says reports whether one of the words of an answer is name.
func (r *remarks) says(name string) bool { return slices.Contains(r.faults, name) }

// announcesRefusal reports whether a header says when to come back, or that nothing is left of a limit.
func (a Answer) announcesRefusal() bool {
	if _, reported := a.hint(&remarks{}); reported {
		return true
	}
	for name, values := range a.Header {
		if _, is := remainingField(strings.ToLower(name)); is && usedUp(strings.Join(values, ",")) != nil {
			return true
		}
	}
	return false
}
