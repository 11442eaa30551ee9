package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// This file reads answers that say for each message of a request whether it is stored, as bulk APIs do: with 207, or with 200.
//
// A list of results is an array of objects, at the top or in an object there, or objects one after the other. A result belongs to the message
// whose ID it has in a field such as id: Numaflow's, or one in a field of the same name of the record. Else it belongs to the message of its
// place, if there is one for each, else to the one that its field index names.

// A record is what an answer says about one message.
type record struct {
	told, failed bool
	status       int // 0: it has none
	body         []byte
}

var (
	errNoResults   = errors.New("the answer does not say which messages are stored")
	errLongResults = errors.New("the answer is longer than maxResponse, or broke off: it is unknown which messages are stored")
)

// each answers the messages of a group by what the answer says about them. Those that it doesn't tell about count as stored if it lists failures
// only, or has another status of success than 207; else as not stored.
func (b *batch) each(g group, res result) {
	records, err := readRecords(res, knownIDs(g), len(g.Items))
	for i, a := range g.Items {
		one := result{class: classRetry, status: res.status, err: err, retryAfter: res.retryAfter}
		if err == nil {
			one = b.client.resultOf(records[i], res)
		}
		b.answer(a, one, nil, func() (time.Duration, bool) { return b.comesAgain(1, one, nil) })
	}
}

// resultOf returns the result of one record.
func (c *client) resultOf(r record, res result) result {
	one := result{class: classOK, status: res.status, body: r.body, complete: true, retryAfter: res.retryAfter}
	if r.status != 0 {
		one.status = r.status
	}
	switch {
	case !r.told:
		return result{class: classRetry, status: res.status, err: errNoResults, retryAfter: res.retryAfter}
	case !r.failed:
		return one
	}
	a := httpthrottle.Answer{Status: max(r.status, http.StatusBadRequest), Body: r.body}
	if one.class = c.table.Of(a); one.class == classEach || one.class == classOK && r.status == 0 {
		one.class = classFail
	}
	if after, _, ok := a.RetryAfter(); ok {
		one.retryAfter = after
	}
	return one
}

// knownIDs returns the messages of a group by their IDs, and by each field of their records that is one, with its name; -1 for several.
func knownIDs(g group) map[string]int {
	known := map[string]int{}
	note := func(key string, at int) {
		if before, is := known[key]; is && before != at {
			at = -1
		}
		known[key] = at
	}
	for i, a := range g.Items {
		note(a.id, i)
		for name, value := range objectIn(g.Records[i]) {
			if id := scalarIn(value); id != "" && idName.MatchString(plainName(name)) {
				note(name+"="+id, i)
			}
		}
	}
	return known
}

// scalarIn returns a text or a number; empty for others.
func scalarIn(raw json.RawMessage) string {
	var text string
	var number json.Number
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &number) == nil {
		text = number.String()
	}
	return text
}

// readRecords returns a record for each of n messages with these IDs.
func readRecords(res result, ids map[string]int, n int) ([]record, error) {
	if !res.complete {
		return nil, errLongResults
	}
	values, err := readValues(res.body)
	if err != nil || len(values) == 0 {
		return nil, errNoResults
	}
	r := results{ids: ids, records: make([]record, n)}
	switch o := objectIn(values[0]); {
	case len(values) > 1:
		r.list("", values)
	case o == nil:
		r.list("", listIn(values[0]))
	default:
		r.object(o, 0)
		if _, told := judgeResult(values[0]); n == 1 && told {
			r.note(0, values[0], false)
		}
	}
	told, stored := false, false
	for _, one := range r.records {
		told, stored = told || one.told, stored || one.told && !one.failed
	}
	rest := r.noneFailed || res.status != http.StatusMultiStatus || told && !stored
	if !told && !rest {
		return nil, errNoResults
	}
	for i := range r.records {
		r.records[i].told = r.records[i].told || rest
	}
	return r.records, nil
}

// readValues returns the JSON values of a body.
func readValues(body []byte) (values []json.RawMessage, err error) {
	for d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff")))); ; {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, err
		}
		values = append(values, value)
	}
}

// results collects what an answer says.
type results struct {
	ids        map[string]int // see knownIDs
	records    []record
	noneFailed bool // it says so
}

type fieldsOf = map[string]json.RawMessage

func objectIn(raw json.RawMessage) (o fieldsOf) {
	_ = json.Unmarshal(raw, &o) // nil if it is none
	return o
}

func listIn(raw json.RawMessage) (list []json.RawMessage) {
	_ = json.Unmarshal(raw, &list) // nil if it is none
	return list
}

// The names of fields, in lower case and without _ and -.
var (
	failureName = regexp.MustCompile(`fail|error|reject|invalid|unprocessed|exception`)
	statusName  = regexp.MustCompile(`^(?:http)?(?:status|statuscode|responsecode|code)$`)
	successName = regexp.MustCompile(`^(?:success|successful|succeeded|ok|stored|accepted)$`)
	idName      = regexp.MustCompile(`id$`)
	failedWord  = regexp.MustCompile(`(?i)error|fail|reject|invalid|denied|throttl|refused|forbidden|unauthori[sz]ed|timeout|unavailable|exceeded`)
	goodCode    = regexp.MustCompile(`(?i)^(?:|ok|success|none|created|accepted|updated)$`)
)

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// isNothing reports whether a value is one for "no failure": null, false, 0, or an empty text, list or object.
func isNothing(raw json.RawMessage) bool {
	switch string(bytes.Join(bytes.Fields(raw), nil)) {
	case "", "null", "false", "0", `""`, `"0"`, "[]", "{}":
		return true
	}
	return false
}

// object looks for lists in an object, and in objects in it.
func (r *results) object(o fieldsOf, depth int) {
	const deepest = 2
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value := o[name]
		if failureName.MatchString(plainName(name)) && isNothing(value) && string(value) != "null" && string(value) != `""` {
			r.noneFailed = true
		}
		if list := listIn(value); list != nil {
			r.list(name, list)
		} else if inner := objectIn(value); inner != nil && depth < deepest {
			r.object(inner, depth+1)
		}
	}
}

// list takes a list of results, if it is one.
func (r *results) list(name string, list []json.RawMessage) {
	failures := failureName.MatchString(plainName(name))
	inOrder := len(list) == len(r.records) && slices.ContainsFunc(list, func(item json.RawMessage) bool {
		_, told := judgeResult(item)
		return told || failures
	})
	for at, item := range list {
		if objectIn(item) == nil {
			continue
		}
		of := r.messageOf(item)
		if of < 0 && inOrder {
			of = at
		}
		if of < 0 {
			of = r.indexIn(item)
		}
		if of >= 0 {
			r.note(of, item, failures)
		}
	}
}

// note notes what a result says about a message; a failure counts more than a success.
func (r *results) note(of int, item json.RawMessage, failure bool) {
	is, _ := judgeResult(item)
	is.told, is.failed = true, is.failed || failure
	if before := r.records[of]; !before.told || is.failed && !before.failed {
		r.records[of] = is
	}
}

// messageOf returns the message whose ID is in a result; -1 for none.
func (r *results) messageOf(item json.RawMessage) int {
	for name, value := range objectIn(unwrapped(item)) {
		id := scalarIn(value)
		if id == "" || !idName.MatchString(plainName(name)) {
			continue
		}
		for _, key := range [...]string{id, name + "=" + id} {
			if at, is := r.ids[key]; is && at >= 0 {
				return at
			}
		}
	}
	return -1
}

// indexIn returns the message that a field index names; -1 for none.
func (r *results) indexIn(item json.RawMessage) int {
	for name, value := range objectIn(item) {
		if plainName(name) == "index" {
			if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 && n < len(r.records) {
				return n
			}
		}
	}
	return -1
}

// unwrapped returns the object in an object that has nothing else, as in {"create":{...}}.
func unwrapped(item json.RawMessage) json.RawMessage {
	o := objectIn(item)
	for name, value := range o {
		if len(o) == 1 && !failureName.MatchString(plainName(name)) && objectIn(value) != nil {
			return value
		}
	}
	return item
}

// judgeResult returns what a result says. told is false if it has neither a status nor a failure.
func judgeResult(item json.RawMessage) (r record, told bool) {
	item = unwrapped(item)
	r.body = item
	for name, value := range objectIn(item) {
		name = plainName(name)
		var word string
		isWord := json.Unmarshal(value, &word) == nil
		status := statusIn(value)
		switch {
		case statusName.MatchString(name) && status != 0:
			r.status = max(r.status, status)
			r.failed = r.failed || status >= http.StatusBadRequest
			told = true
		case name == "code" && isWord:
			r.failed = r.failed || !goodCode.MatchString(word)
			told = true
		case name == "status" && isWord || name == "result" && isWord:
			r.failed = r.failed || failedWord.MatchString(word)
			told = true
		case successName.MatchString(name) && (string(value) == "true" || string(value) == "false"):
			r.failed = r.failed || string(value) == "false"
			told = true
		case failureName.MatchString(name) && !isNothing(value):
			r.failed, told = true, true
		}
	}
	return r, told
}

// statusIn returns an HTTP status: a number, or a text such as HTTP/1.1 201 Created; 0 for none.
func statusIn(raw json.RawMessage) int {
	text := strings.Trim(string(raw), `"`)
	if fields := strings.Fields(text); len(fields) > 1 && strings.HasPrefix(fields[0], "HTTP/") {
		text = fields[1]
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 100 || n > mostStatus {
		return 0
	}
	return n
}
