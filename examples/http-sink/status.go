package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// A class is the treatment of a status.
type class string

// The classes.
const (
	// classOK: the service has the message.
	classOK class = "ok"
	// classRetry: the request is sent again, within the limit; then the message counts as one that the service could not accept for now.
	classRetry class = "retry"
	// classEach: the answer says for each message of the request whether the service has it.
	classEach class = "each"
	// classWait: like Retry, and everything to the same destination waits as long as the service says.
	classWait class = "wait"
	// classDrop: the message is acknowledged, and not stored.
	classDrop class = "drop"
	// classFallback: the message goes to the fallback sink.
	classFallback class = "fallback"
	// classFail: the message is answered with a failure. The platform offers it again, according to its retryStrategy.
	classFail class = "fail"
)

var classes = []class{classOK, classEach, classRetry, classWait, classDrop, classFallback, classFail}

const (
	leastStatus, mostStatus = 100, 599
	overloaded              = 529 // sent by some services instead of 503
)

// A statusTable maps each status to its class. The zero statusTable is the default. It is safe for concurrent use, once it is parsed.
type statusTable struct{ changed map[int]class }

// allowedStatuses describes the input of parseStatuses.
const allowedStatuses = "entries such as 404=drop 409=ok 5xx=retry 410-412=fallback"

// parseStatuses parses changes of the default: entries of a status, a range or 1xx to 5xx, "=" and a class, separated by spaces or commas. The
// later of two entries for one status counts.
func parseStatuses(text string) (statusTable, error) {
	t := statusTable{changed: map[int]class{}}
	for _, entry := range strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' || c == '\n' }) {
		statuses, name, _ := strings.Cut(entry, "=")
		from, to, ok := statusSpan(statuses)
		class, known := findClass(name)
		if !ok || !known {
			return statusTable{}, fmt.Errorf("has the entry %q, allowed: %s", entry, allowedStatuses)
		}
		for status := from; status <= to; status++ {
			t.changed[status] = class
		}
	}
	return t, nil
}

func findClass(name string) (class, bool) {
	for _, c := range classes {
		if string(c) == name {
			return c, true
		}
	}
	return "", false
}

// statusSpan parses 404, 410-412 or 5xx.
func statusSpan(text string) (from, to int, ok bool) {
	if hundreds, found := strings.CutSuffix(text, "xx"); found {
		n, err := strconv.Atoi(hundreds)
		return n * 100, n*100 + 99, err == nil && n >= 1 && n <= 5
	}
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	return from, to, err == nil && err2 == nil && from >= leastStatus && from <= to && to <= mostStatus
}

// Has reports whether a changed status has the class.
func (t statusTable) Has(class class) bool {
	for _, c := range t.changed {
		if c == class {
			return true
		}
	}
	return false
}

// Of returns the class of a response: that of its status, but a refusal is classWait with each status that is not changed.
func (t statusTable) Of(a httpthrottle.Answer) class {
	if _, changed := t.changed[a.Status]; !changed {
		if _, refused := httpthrottle.Generic(a); refused {
			return classWait
		}
	}
	return t.Class(a.Status)
}

// Class returns the class of a status.
func (t statusTable) Class(status int) class {
	if c, ok := t.changed[status]; ok {
		return c
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, overloaded:
		return classWait
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return classRetry
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return classFail
	}
	switch {
	case isPartial(status):
		return classEach
	case status >= 200 && status < 300:
		return classOK
	case status >= 500:
		return classRetry
	}
	return classFail
}
