// Package verdict maps an HTTP status to its meaning for a message.
package verdict

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// A Class is the treatment of a status.
type Class string

// The classes.
const (
	// OK: the service has the message.
	OK Class = "ok"
	// Retry: the request is sent again, within the limit; then the message counts as one that the service could not accept for now.
	Retry Class = "retry"
	// Wait: like Retry, and everything to the same destination waits as long as the service says.
	Wait Class = "wait"
	// Drop: the message is acknowledged, and not stored.
	Drop Class = "drop"
	// Fallback: the message goes to the fallback sink.
	Fallback Class = "fallback"
	// Fail: the message is answered with a failure. The platform offers it again, according to its retryStrategy.
	Fail Class = "fail"
)

var classes = []Class{OK, Retry, Wait, Drop, Fallback, Fail}

const (
	leastStatus, mostStatus = 100, 599
	overloaded              = 529 // sent by some services instead of 503
)

// A Table maps each status to its class. The zero Table is the default. It is safe for concurrent use, once it is parsed.
type Table struct{ changed map[int]Class }

// Allowed describes the input of Parse.
const Allowed = "entries such as 404=drop 409=ok 5xx=retry 410-412=fallback"

// Parse parses changes of the default: entries of a status, a range or 1xx to 5xx, "=" and a class, separated by spaces or commas. The
// later of two entries for one status counts.
func Parse(text string) (Table, error) {
	t := Table{changed: map[int]Class{}}
	for _, entry := range strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' || c == '\n' }) {
		statuses, name, _ := strings.Cut(entry, "=")
		from, to, ok := span(statuses)
		class, known := find(name)
		if !ok || !known {
			return Table{}, fmt.Errorf("has the entry %q, allowed: %s", entry, Allowed)
		}
		for status := from; status <= to; status++ {
			t.changed[status] = class
		}
	}
	return t, nil
}

func find(name string) (Class, bool) {
	for _, c := range classes {
		if string(c) == name {
			return c, true
		}
	}
	return "", false
}

// span parses 404, 410-412 or 5xx.
func span(text string) (from, to int, ok bool) {
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
func (t Table) Has(class Class) bool {
	for _, c := range t.changed {
		if c == class {
			return true
		}
	}
	return false
}

// Class returns the class of a status.
func (t Table) Class(status int) Class {
	if c, ok := t.changed[status]; ok {
		return c
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, overloaded:
		return Wait
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return Retry
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return Fail
	}
	switch {
	case status >= 200 && status < 300:
		return OK
	case status >= 500:
		return Retry
	}
	return Fail
}
