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
	reported, failed bool
	graded           bool // by a status, a word or success; not only by a field such as error
	status           int  // 0: it has none
	body             []byte
}

var (
	errNoResults   = errors.New("the answer does not say which messages are stored")
	errLongResults = errors.New("the answer is longer than maxResponse, or broke off: it is unknown which messages are stored")
)

// each answers the messages of a group by what the answer says about them; see results.rest for those that it doesn't tell about.
func (b *batch) each(g group, res result) {
	records, err := readRecords(res, knownIDs(g), g.Records)
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
	case !r.reported:
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

// readRecords returns a record for each of the sent messages, which have these IDs.
func readRecords(res result, ids map[string]int, sent [][]byte) ([]record, error) {
	n := len(sent)
	if !res.complete {
		return nil, errLongResults
	}
	values, err := readValues(res.body)
	if err != nil {
		return nil, errNoResults
	}
	if len(values) == 0 {
		values = []json.RawMessage{[]byte("{}")} // it tells nothing
	}
	r := results{ids: ids, sent: sent, records: make([]record, n)}
	switch o := objectIn(values[0]); {
	case len(values) > 1:
		r.list("", values, false, 0)
	case o != nil:
		r.object(o, false, 0)
		if one := judgeResult(values[0], r.sentAs(0)); n == 1 && one.reported && (one.failed || !r.open && r.failures == 0) {
			r.note(0, one)
		}
	case listIn(values[0]) != nil:
		r.list("", listIn(values[0]), false, 0)
	default:
		text := scalarIn(values[0])
		r.open = text != "" && !goodWord.MatchString(plainName(text)) || string(values[0]) == "false"
	}
	for _, value := range values {
		r.mentioned(value, "", r.single(), 0)
	}
	rest := r.rest(res.status)
	if !rest && !slices.ContainsFunc(r.records, func(one record) bool { return one.reported }) {
		return nil, errNoResults
	}
	for i := range r.records {
		r.records[i].reported = r.records[i].reported || rest
	}
	return r.records, nil
}

// rest reports whether messages count as stored that the answer doesn't tell about: if it has no list of results, and says that none failed,
// lists the failures, or has another 2xx than 206 and 207. It must have told the messages of all the failures that it knows of.
func (r *results) rest(status int) bool {
	failed := 0
	for _, one := range r.records {
		if one.failed {
			failed++
		}
	}
	if r.parts != nil {
		sum := 0
		_, found := r.parts["matched"]
		for name, part := range r.parts {
			if !found || !ofMatched[name] {
				sum += part
			}
		}
		r.failures = max(r.failures, len(r.records)-sum)
	}
	return !r.open && !r.listed && failed >= r.failures && (r.noneFailed || failed > 0 || status < http.StatusMultipleChoices && !isPartial(status))
}

// isPartial reports whether a status says that only a part may be stored.
func isPartial(status int) bool {
	return status == http.StatusMultiStatus || status == http.StatusPartialContent
}

// single returns the messages by what only one of them has as an ID.
func (r *results) single() map[string]int {
	of := map[string]int{}
	for key, at := range r.ids {
		id := key
		if _, value, is := strings.Cut(key, "="); is {
			id = value
		}
		if before, is := of[id]; is && before != at {
			at = -1
		}
		of[id] = at
	}
	maps.DeleteFunc(of, func(_ string, at int) bool { return at < 0 })
	return of
}

// mentioned looks for the IDs of messages anywhere in an answer. An answer that names a message says something about it. If that wasn't
// understood it may be a refusal, and then messages that it doesn't name don't count as stored. An echo of a record has no such meaning.
func (r *results) mentioned(value json.RawMessage, name string, of map[string]int, depth int) {
	note := func(id string) {
		at, is := of[id]
		r.open = r.open || is && !r.records[at].reported
	}
	if o := objectIn(value); o != nil && depth <= deepestResult {
		if r.isEcho(value, o) {
			return
		}
		for name, value := range o {
			note(name)
			r.mentioned(value, name, of, depth+1)
		}
		return
	}
	if list := listIn(value); list != nil && depth <= deepestResult {
		for _, item := range list {
			r.mentioned(item, "", of, depth+1)
		}
		return
	}
	var text string
	if json.Unmarshal(value, &text) == nil || name == "" || idName.MatchString(plainName(name)) { // other numbers are no IDs
		note(scalarIn(value))
	}
}

// isEcho reports whether an object is the record of the message whose ID it has, or has all of at least two fields of it.
func (r *results) isEcho(value json.RawMessage, o fieldsOf) bool {
	at, is := r.messageOf(value, 0)
	if !is || at < 0 {
		return false
	}
	sent := objectIn(r.sent[at])
	for name, value := range o {
		if _, was := sent[name]; !was && reasonName.MatchString(plainName(name)) && !isNothing(value) && !goodWord.MatchString(plainName(scalarIn(value))) {
			return false
		}
	}
	for name, value := range sent {
		if !sameJSON(o[name], value) {
			return false
		}
	}
	return len(sent) >= 2 || len(sent) == len(o) && len(sent) > 0
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
	sent       [][]byte
	records    []record
	listed     bool           // it has a list of results that isn't one of failures
	noneFailed bool           // it says so
	failures   int            // so many messages failed, at least
	parts      map[string]int // of the messages: so many are new, changed and the like
	open       bool           // a failure's message is unknown
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

// ofMatched are parts of those that were found.
var ofMatched = map[string]bool{"updated": true, "modified": true, "replaced": true, "unchanged": true}

const countEnd = `(?:counts?|records|items|rows|documents|docs|messages|events|total)?$`

// The names of fields and words, as of plainName.
var (
	failureName = regexp.MustCompile(`fail|^err|error|reject|invalid|unprocessed|exception|denied|refused|throttl|dropped|discard|abort|skipped` +
		`|conflict|notstored`)
	noneName    = regexp.MustCompile(`fail|error|reject|unprocessed`) // of a field that is empty if all is stored
	faultName   = regexp.MustCompile(`^(?:code|message|msg|type|status|reason|title|details?|description|count|total)$`)
	statusName  = regexp.MustCompile(`^(?:http)?(?:status|statuscode|(?:response|result|return|ret)?code)$|^(?:result|outcome|state)$`)
	wordsName   = regexp.MustCompile(`^$|status|code|result|response|outcome`) // of a list of words or statuses
	successName = regexp.MustCompile(`^(?:success|successful|succeeded|ok|stored|accepted|ack|acked|acknowledged|written|delivered|processed)$`)
	// Of a field that says how many messages are stored. Those of partName are added up.
	countName = regexp.MustCompile(`^(?:success|successful|succeeded|ok|stored|saved|accepted|ack(?:ed|nowledged)?|processed|written|delivered|done|completed` +
		`|ingested|indexed|published|added|queued|affected)` + countEnd)
	partName   = regexp.MustCompile(`^(created|inserted|updated|upserted|modified|replaced|unchanged|deleted|matched)` + countEnd)
	reasonName = regexp.MustCompile(`^(?:reason|message|msg|details?|description|cause|why|title|notes?|warnings?|retry.*)$`) // of a refusal
	idName     = regexp.MustCompile(`id$`)
	// indexName does not match _index.
	indexName = regexp.MustCompile(`(?i)^(?:(?:item|record|row|event|message|entry|request|batch|failed)[_-]?)?(?:index|position|elementnumber)$`)
	goodWord  = regexp.MustCompile(`^(?:0+|true|yes|ok|okay|noerrors?|noop|nochange|(?:un|not)modified|unchanged|successful(?:ly)?|success|succeeded` +
		`|(?:creat|updat|replac|sav|delet|complet|queu|enqueu|deliver|stor|persist|insert|upsert|modifi|accept|process|publish|index` +
		`|ingest|append|add|commit|acknowledg|ack)ed|written|sent|done|complete|ack)$`)
	goodList = regexp.MustCompile(`^(?:success|succeed|stored|saved|accepted|created|updated|inserted|upserted|processed|written|delivered|done|completed` +
		`|ingested|indexed|published|added|queued)`)
	failedWord = regexp.MustCompile(`^(?:false|.*(?:error|fail|reject|invalid|denied|throttl|refused|forbidden|unauthori[sz]ed|timeout|unavailable` +
		`|exceeded|limited).*)$`)
)

var separators = strings.NewReplacer("_", "", "-", "", " ", "")

func plainName(name string) string {
	return strings.ToLower(separators.Replace(name))
}

// isNothing reports whether a value is one for "no failure": null, false, 0, or an empty text, a list of null or nothing, or an object of such
// values.
func isNothing(raw json.RawMessage) bool {
	for _, value := range objectIn(raw) {
		if !isNothing(value) {
			return false
		}
	}
	for _, item := range listIn(raw) {
		if string(item) != "null" {
			return false
		}
	}
	if objectIn(raw) != nil || listIn(raw) != nil {
		return true
	}
	switch string(bytes.Join(bytes.Fields(raw), nil)) {
	case "", "null", "false", "0", "0.0", `""`, `"0"`:
		return true
	}
	return false
}
