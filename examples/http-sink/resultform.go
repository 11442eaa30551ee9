package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// This file finds the results in an answer, and judges one.

const deepestResult = 4 // what is below is unknown

// object looks for results in an object, and in objects in it; failures if all in it are.
func (r *results) object(o fieldsOf, failures bool, depth int) {
	if r.open = r.open || depth > deepestResult; depth > deepestResult {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		r.member(name, o[name], failures, depth)
	}
}

// member looks for results in a field of an object.
func (r *results) member(name string, value json.RawMessage, failures bool, depth int) {
	plain := plainName(name)
	list, inner, failing := listIn(value), objectIn(value), failures || failureName.MatchString(plain)
	of, _ := r.named(name)
	one := judgeMember(value, r.sentAs(of), of >= 0)
	one.failed = one.failed || failing
	switch {
	case failing && noFailure(plain, value):
		r.noneFailed = r.noneFailed || noneName.MatchString(plain) && string(value) != "null" && string(value) != `""`
	case list != nil:
		r.list(name, list, failing, depth)
	case of >= 0 && (one.reported || failing): // {"a":{"status":201}}
		r.listed = r.listed || !failures
		r.note(of, one)
	case failures && !faultName.MatchString(plain): // {"errors":{"a":"x"}} with another ID
		r.open = true
	case inner != nil:
		r.open = r.open || hasRefusal(plain, inner)
		r.object(inner, failing, depth+1)
	default:
		r.flag(plain, value)
	}
	if failing && !noFailure(plain, value) {
		r.failures = max(r.failures, 1)
	}
}

// judgeMember returns what a field says; with an ID for its name a scalar does, too: {"a":"ok"}.
func judgeMember(value json.RawMessage, sent fieldsOf, isID bool) record {
	one := judgeResult(value, sent)
	if isID && objectIn(value) == nil && listIn(value) == nil {
		one.field("status", value)
	}
	return one
}

// hasRefusal reports whether results by unknown names have a word for a failure: {"results":{"0":"ok","1":"rejected"}}.
func hasRefusal(of string, results fieldsOf) bool {
	if of == "" || !wordsName.MatchString(of) {
		return false
	}
	for name, value := range results {
		plain, text := plainName(name), ""
		known := failureName.MatchString(plain) || reasonName.MatchString(plain)
		if !known && json.Unmarshal(value, &text) == nil && failedWord.MatchString(plainName(text)) {
			return true
		}
	}
	return false
}

// flag notes what a field says about all messages: {"success":false}, or how many failed or are stored.
func (r *results) flag(name string, value json.RawMessage) {
	count, err := strconv.Atoi(scalarIn(value))
	isCount := err == nil && count >= 0 && count <= len(r.records)
	var one record
	one.field(name, value)
	switch {
	case isCount && partName.MatchString(name):
		if r.parts == nil {
			r.parts = map[string]int{}
		}
		part := partName.FindStringSubmatch(name)[1]
		r.parts[part] = max(r.parts[part], count)
	case isCount && countName.MatchString(name):
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
	messages := r.messagesOf(items)
	records, all := r.judgeItems(plainName(name), items, messages)
	for i, of := range messages {
		one, o := records[i], objectIn(items[i])
		one.failed = one.failed || failures
		one.reported = one.reported || failures || all.stores(o)
		r.listed = r.listed || one.reported && !failures
		switch {
		case string(items[i]) == "null": // no failure
		case of >= 0 && one.reported:
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

// sentAs returns the fields of a message's record; nil for -1.
func (r *results) sentAs(of int) fieldsOf {
	if of < 0 {
		return nil
	}
	return objectIn(r.sent[of])
}

// judgeItems judges each item of a list, and returns the kind of the list.
func (r *results) judgeItems(name string, items []json.RawMessage, messages []int) (records []record, all listKind) {
	records, all.good = make([]record, len(items)), goodList.MatchString(name)
	flags := all.good && areFlags(items)
	for i, item := range items {
		switch records[i] = judgeResult(item, r.sentAs(messages[i])); {
		case flags:
			records[i].field("success", item)
		case scalarIn(item) == "" && string(item) != "true" && string(item) != "false":
		case strings.Contains(name, "status"):
			records[i].field("status", item)
		case strings.Contains(name, "code"), strings.Contains(name, "outcome"):
			records[i].field("code", item)
		case all.good && !isIndex(item), wordsName.MatchString(name):
			records[i].word(item)
		}
		all.reported, all.graded = all.reported || records[i].reported, all.graded || records[i].graded
	}
	return records, all
}

// areFlags reports whether a list has 0 and 1, some of them twice, which are no indexes then: {"accepted":[1,0,1]}.
func areFlags(items []json.RawMessage) bool {
	ones := 0
	for _, item := range items {
		if string(item) != "0" && string(item) != "1" {
			return false
		}
		ones += int(item[0] - '0')
	}
	return ones > 1 || len(items)-ones > 1
}

// isIndex reports whether an item may be an index: a number that is no HTTP status.
func isIndex(item json.RawMessage) bool {
	_, err := strconv.Atoi(string(item))
	return err == nil && statusIn(item) == 0
}

// A listKind is what the results of a list have: a name such as stored, at least one that says something, or a grade.
type listKind struct{ good, reported, graded bool }

// stores reports whether a result that says nothing by itself counts as stored: where only others have an error, and in a list such as stored
// without a reason.
func (k listKind) stores(o fieldsOf) bool {
	return !k.graded && (k.reported || k.good && hasNoReason(o))
}

func hasNoReason(o fieldsOf) bool {
	for name, value := range o {
		if reasonName.MatchString(plainName(name)) && !isNothing(value) {
			return false
		}
	}
	return true
}

// note notes what a result says about a message; a failure counts more than a success.
func (r *results) note(of int, one record) {
	one.reported = true
	if before := r.records[of]; !before.reported || one.failed && !before.failed {
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
// A field that repeats one of the sent record says nothing.
func judgeResult(item json.RawMessage, sent fieldsOf) record {
	r := record{body: unwrapped(item)}
	judge := func(o fieldsOf) {
		for name, value := range o {
			if !sameJSON(sent[name], value) {
				r.field(plainName(name), value)
			}
		}
	}
	o := objectIn(r.body)
	if judge(o); r.reported {
		return r
	}
	for _, value := range o {
		judge(objectIn(value))
	}
	return r
}

// sameJSON reports whether two values are the same but for blanks.
func sameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(bytes.Join(bytes.Fields(a), nil), bytes.Join(bytes.Fields(b), nil))
}

// field adds what a field of a result says.
func (r *record) field(name string, value json.RawMessage) {
	if failureName.MatchString(name) {
		r.failure(name, value)
		return
	}
	text := scalarIn(value)
	number, err := strconv.Atoi(text)
	isNumber := err == nil
	status := statusIn(value)
	isFlag := string(value) == "true" || string(value) == "false"
	good := string(value) == "true" || goodWord.MatchString(plainName(text))
	switch {
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
	r.reported, r.graded, r.failed = true, true, r.failed || !good
}

// failure adds what a field such as error says.
func (r *record) failure(name string, value json.RawMessage) {
	status := statusIn(value)
	if noFailure(name, value) {
		r.reported = r.reported || status != 0
		return
	}
	if r.reported, r.failed = true, true; strings.HasSuffix(name, "code") {
		r.status = max(r.status, status)
	}
}

// noFailure reports whether the value of a field such as error says that there is none: also "OK", and a code such as 200.
func noFailure(name string, value json.RawMessage) bool {
	text, status := scalarIn(value), statusIn(value)
	_, err := strconv.Atoi(text)
	return isNothing(value) || err != nil && goodWord.MatchString(plainName(text)) ||
		strings.HasSuffix(name, "code") && status >= http.StatusOK && status < http.StatusMultipleChoices
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
