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
// whose ID it has in a field such as id: Numaflow's, or one in a field of the same name of the record. Else it belongs to the message that its
// field index names. Only if no result has any of these, it belongs to the message of its place, if there is one for each.
//
// An unknown word, a failure of an unknown message or a result that is left out never makes a message count as stored.

// A record is what an answer says about one message.
type record struct {
	told, failed bool
	graded       bool // by a status, a word or success; not only by a field such as error
	status       int  // 0: it has none
	body         []byte
}

var (
	errNoResults   = errors.New("the answer does not say which messages are stored")
	errLongResults = errors.New("the answer is longer than maxResponse, or broke off: it is unknown which messages are stored")
)

// each answers the messages of a group by what the answer says about them; see results.rest for those that it doesn't tell about.
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
	a, table := httpthrottle.Answer{Status: r.status, Body: r.body}, c.table
	if a.Status < http.StatusMultipleChoices { // not the status of a failure
		a.Status, table = http.StatusBadRequest, statusTable{}
	}
	if one.class = table.Of(a); one.class == classEach {
		one.class = classFail
	}
	if after, _, ok := a.RetryAfter(); ok {
		one.retryAfter = after
	}
	return one
}

// knownIDs returns the messages of a group by their IDs, and by each field of their records that is one, with its name; -1 for several. What
// all messages have is no ID.
func knownIDs(g group) map[string]int {
	known, count := map[string]int{}, map[string]int{}
	note := func(key string, at int) {
		if before, is := known[key]; is && before != at {
			at = -1
		}
		known[key] = at
		count[key]++
	}
	for i, a := range g.Items {
		note(a.id, i)
		for name, value := range objectIn(g.Records[i]) {
			if id := scalarIn(value); id != "" && idName.MatchString(plainName(name)) {
				note(plainName(name)+"="+id, i)
			}
		}
	}
	maps.DeleteFunc(known, func(key string, _ int) bool { return len(g.Items) > 1 && count[key] >= len(g.Items) })
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
		r.list("", values, false, 0)
	case o != nil:
		r.object(o, false, 0)
		if one := judgeResult(values[0]); n == 1 && one.told && (one.failed || !r.open && r.failures == 0) {
			r.note(0, one)
		}
	case listIn(values[0]) != nil:
		r.list("", listIn(values[0]), false, 0)
	default:
		text := scalarIn(values[0])
		r.open = text != "" && !goodWord.MatchString(plainName(text)) || string(values[0]) == "false"
	}
	rest := r.rest(res.status)
	if !rest && !slices.ContainsFunc(r.records, func(one record) bool { return one.told }) {
		return nil, errNoResults
	}
	for i := range r.records {
		r.records[i].told = r.records[i].told || rest
	}
	return r.records, nil
}

// rest reports whether messages count as stored that the answer doesn't tell about: if it has no list of results, and says that none failed,
// lists the failures, or has another status than 207. It must have told the messages of all the failures that it knows of.
func (r *results) rest(status int) bool {
	failed := 0
	for _, one := range r.records {
		if one.failed {
			failed++
		}
	}
	return !r.open && !r.listed && failed >= r.failures && (r.noneFailed || failed > 0 || status != http.StatusMultiStatus)
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
	listed     bool // it has a list of results that isn't one of failures
	noneFailed bool // it says so
	failures   int  // so many messages failed, at least
	open       bool // a failure's message is unknown
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

// The names of fields and words, as of plainName.
var (
	failureName = regexp.MustCompile(`fail|error|reject|invalid|unprocessed|exception|denied|refused|throttl|dropped|discard|abort|skipped|conflict|notstored`)
	noneName    = regexp.MustCompile(`fail|error|reject|unprocessed`) // of a field that is empty if all is stored
	faultName   = regexp.MustCompile(`^(?:code|message|msg|type|status|reason|title|details?|description|count|total)$`)
	statusName  = regexp.MustCompile(`^(?:http)?(?:status|statuscode|responsecode|code)$|^(?:result|outcome|state)$`)
	wordsName   = regexp.MustCompile(`^$|status|code|result|response|outcome`) // of a list of words or statuses
	successName = regexp.MustCompile(`^(?:success|successful|succeeded|ok|stored|accepted)$`)
	idName      = regexp.MustCompile(`id$`)
	indexName   = regexp.MustCompile(`(?i)^(?:(?:item|record|row|event|message|entry|request)[_-]?)?(?:index|position)$`) // not _index
	goodWord    = regexp.MustCompile(`^(?:0+|true|yes|ok|okay|noerrors?|noop|nochange|(?:un|not)modified|unchanged|successful(?:ly)?|success|succeeded` +
		`|(?:creat|updat|replac|sav|delet|complet|queu|enqueu|deliver|stor|persist|insert|upsert|modifi|accept|process|publish|index` +
		`|ingest|append|add|commit|acknowledg|ack)ed|written|sent|done|complete|ack)$`)
	goodList = regexp.MustCompile(`^(?:success|succeed|stored|saved|accepted|created|updated|inserted|upserted|processed|written|delivered|done|completed` +
		`|ingested|indexed|published|added|queued)`)
	failedWord = regexp.MustCompile(`^(?:false|.*(?:error|fail|reject|invalid|denied|throttl|refused|forbidden|unauthori[sz]ed|timeout|unavailable|exceeded|limited).*)$`)
)

var separators = strings.NewReplacer("_", "", "-", "", " ", "")

func plainName(name string) string {
	return strings.ToLower(separators.Replace(name))
}

// isNothing reports whether a value is one for "no failure": null, false, 0, or an empty text, list or object.
func isNothing(raw json.RawMessage) bool {
	switch string(bytes.Join(bytes.Fields(raw), nil)) {
	case "", "null", "false", "0", `""`, `"0"`, "[]", "{}":
		return true
	}
	return false
}

const deepestResult = 4 // what is below is unknown

// object looks for results in an object, and in objects in it; failures if all in it are.
func (r *results) object(o fieldsOf, failures bool, depth int) {
	if r.open = r.open || depth > deepestResult; depth > deepestResult {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		value, plain := o[name], plainName(name)
		list, inner, failing := listIn(value), objectIn(value), failures || failureName.MatchString(plain)
		of, _ := r.named(name)
		one := judgeResult(value)
		one.failed = one.failed || failing
		switch {
		case failing && isNothing(value):
			r.noneFailed = r.noneFailed || noneName.MatchString(plain) && string(value) != "null" && string(value) != `""`
		case list != nil:
			r.list(name, list, failing, depth)
		case of >= 0 && (one.told || failing): // {"a":{"status":201}}
			r.listed = r.listed || !failures
			r.note(of, one)
		case failures && !faultName.MatchString(plain): // {"errors":{"a":"x"}} with another ID
			r.open = true
		case inner != nil:
			r.object(inner, failing, depth+1)
		default:
			r.flag(plain, value, depth == 0)
		}
		if failing && !isNothing(value) {
			r.failures = max(r.failures, 1)
		}
	}
}

// flag notes what a field says about all messages: {"success":false}, or, at the top, how many failed or are stored.
func (r *results) flag(name string, value json.RawMessage, top bool) {
	count, err := strconv.Atoi(scalarIn(value))
	isCount := top && err == nil && count >= 0 && count <= len(r.records)
	var one record
	one.field(name, value)
	switch {
	case isCount && successName.MatchString(name):
		r.failures = max(r.failures, len(r.records)-count)
	case isCount && failureName.MatchString(name):
		r.failures = max(r.failures, count)
	case one.failed:
		r.failures = max(r.failures, 1)
	}
}

// list takes a list of results, if it is one.
func (r *results) list(name string, items []json.RawMessage, failures bool, depth int) {
	if r.open = r.open || depth > deepestResult; depth > deepestResult {
		return
	}
	plain := plainName(name)
	records, told, graded := make([]record, len(items)), goodList.MatchString(plain), false
	for i, item := range items {
		if records[i] = judgeResult(item); objectIn(item) == nil && wordsName.MatchString(plain) {
			records[i].word(item)
		}
		told, graded = told || records[i].told, graded || records[i].graded
	}
	for i, of := range r.messagesOf(items) {
		one, o := records[i], objectIn(items[i])
		one.failed = one.failed || failures
		one.told = one.told || failures || told && !graded // where others have an error, or in a list such as stored
		r.listed = r.listed || one.told && !failures
		switch {
		case string(items[i]) == "null": // no failure
		case of >= 0 && one.told:
			r.note(of, one)
		case one.failed:
			r.open = true
		case o != nil:
			r.object(o, false, depth+1)
		default:
			r.list(name, listIn(items[i]), false, depth+1)
		}
	}
}

// note notes what a result says about a message; a failure counts more than a success.
func (r *results) note(of int, one record) {
	one.told = true
	if before := r.records[of]; !before.told || one.failed && !before.failed {
		r.records[of] = one
	}
}

// messagesOf returns the message of each result in a list; -1 for unknown.
func (r *results) messagesOf(items []json.RawMessage) []int {
	of := make([]int, len(items))
	byName, byIndex, outside := false, make([]bool, len(items)), false
	for i, item := range items {
		var is bool
		if of[i], is = r.messageOf(item, 0); !is {
			of[i], byIndex[i] = r.indexIn(item)
			outside = outside || byIndex[i] && of[i] < 0
		}
		byName = byName || is || byIndex[i]
	}
	for i := range of {
		switch {
		case !byName && len(of) == len(r.records):
			of[i] = i
		case byIndex[i] && outside: // they seem to count from another number than 0
			of[i] = -1
		}
	}
	return of
}

// messageOf returns the message whose ID is in a result, and whether one is; -1 if it isn't the ID of one message.
func (r *results) messageOf(item json.RawMessage, depth int) (of int, is bool) {
	of = -1
	add := func(at int, known bool) {
		switch {
		case !known || is && at < 0:
		case of >= 0 && at != of:
			of = len(r.records)
		default:
			of, is = at, true
		}
	}
	o := objectIn(item)
	if o == nil {
		if n, err := strconv.Atoi(string(item)); err == nil && n < len(r.records) {
			return -1, false // it may be an index
		}
		return r.named(scalarIn(item))
	}
	for name, value := range o {
		if id := scalarIn(value); id != "" && idName.MatchString(plainName(name)) {
			at, known := r.ids[id]
			add(at, known)
			at, known = r.ids[plainName(name)+"="+id]
			add(at, known)
		}
	}
	const deepest = 2
	if direct := is; !direct && depth < deepest {
		for _, value := range o {
			if objectIn(value) != nil {
				add(r.messageOf(value, depth+1))
			}
		}
	}
	if of == len(r.records) {
		of = -1
	}
	return of, is
}

// named returns the message with an ID, whatever the field, and whether it is one; -1 if several have it.
func (r *results) named(id string) (of int, is bool) {
	of = -1
	for key, at := range r.ids {
		if _, value, _ := strings.Cut(key, "="); id == "" || key != id && value != id {
			continue
		}
		if is && at != of {
			return -1, true
		}
		of, is = at, true
	}
	return of, is
}

// indexIn returns the message that a field index names, and whether there is one; -1 for none of the group.
func (r *results) indexIn(item json.RawMessage) (of int, is bool) {
	for _, o := range [...]fieldsOf{objectIn(item), objectIn(unwrapped(item))} {
		for name, value := range o {
			if text := scalarIn(value); text != "" && indexName.MatchString(name) {
				if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < len(r.records) {
					return n, true
				}
				is = true
			}
		}
	}
	return -1, is
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

// judgeResult returns what a result says: with its fields, else with those of the objects in it.
func judgeResult(item json.RawMessage) record {
	r := record{body: unwrapped(item)}
	o := objectIn(r.body)
	for name, value := range o {
		r.field(plainName(name), value)
	}
	if r.told {
		return r
	}
	for _, value := range o {
		for name, value := range objectIn(value) {
			r.field(plainName(name), value)
		}
	}
	return r
}

// field adds what a field of a result says.
func (r *record) field(name string, value json.RawMessage) {
	text := scalarIn(value)
	number, err := strconv.Atoi(text)
	isNumber := err == nil
	status := statusIn(value)
	isFlag := string(value) == "true" || string(value) == "false"
	good := string(value) == "true" || goodWord.MatchString(plainName(text))
	switch {
	case failureName.MatchString(name):
		if !isNothing(value) {
			r.told, r.failed = true, true
		}
		return
	case name == "code" && (string(value) == `""` || strings.EqualFold(text, "none")):
		good = true
	case text == "" && !isFlag:
		return
	case successName.MatchString(name):
		good = good && !isNumber || number == 1
	case !statusName.MatchString(name) || status == http.StatusMultiStatus: // that says nothing about one message
		return
	case status != 0:
		r.status = max(r.status, status)
		good = status >= http.StatusOK && status < http.StatusMultipleChoices
	case strings.Contains(name, "status"): // 0 isn't one of success
		good = good && !isNumber
	}
	r.told, r.graded, r.failed = true, true, r.failed || !good
}

// word adds what a text, a number or a boolean in a list says.
func (r *record) word(value json.RawMessage) {
	text := plainName(strings.Trim(string(value), `"`))
	if statusIn(value) != 0 || goodWord.MatchString(text) || failedWord.MatchString(text) {
		r.field("status", value)
	}
}

// statusIn returns an HTTP status: a number, or a text such as 201 Created or HTTP/1.1 201 Created; 0 for none.
func statusIn(raw json.RawMessage) int {
	fields := strings.Fields(scalarIn(raw))
	if len(fields) > 1 && strings.HasPrefix(fields[0], "HTTP/") {
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.Atoi(fields[0])
	if err != nil || n < leastStatus || n > mostStatus {
		return 0
	}
	return n
}
