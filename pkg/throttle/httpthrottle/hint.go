package httpthrottle

import (
	"strconv"
	"strings"
	"time"
)

// A hint is a service's statement of when to come back.
type hint struct {
	delay     time.Duration
	dimension string // the limit that is used up; empty when it does not say
	raw       string // where it says so, and in what words
}

// RetryAfter returns how long the service asks to wait, counted from a.At, and which limit is used up if it says so. The result ok is false
// if it says nothing intelligible. Of these places, in this order, the first well-formed one counts:
//
//  1. Retry-After-Ms, then X-Ms-Retry-After-Ms: milliseconds
//  2. Retry-After: seconds, a date or a duration
//  3. the body: google.rpc.RetryInfo, then fields such as retry_after
//  4. RateLimit: the items with r=0 and a t in seconds, or remaining=0 and reset
//  5. the reset of each limit whose remaining is below 1: X-RateLimit-*, X-Rate-Limit-*, RateLimit-* and
//     Anthropic-RateLimit-*, with or without the name of a limit
//  6. the text for people in the body: "try again in 20s"
//
// Numbers may have a fraction. A number from 1e9 is a time since 1970, in seconds, milliseconds, microseconds or nanoseconds, by its size.
// A duration is 6m0s, 20 seconds or PT20S; a date is one of HTTP or RFC 3339. All is rounded up, never down. Of lists, and of several
// limits that are used up, the latest counts. A limit with something left says nothing about this refusal, so its reset does not count.
// services.md has examples.
//
// Dates count against the Date of the answer, so that the clocks need not agree. If that is more than 15 minutes away from a.At, dates
// count against a.At. The Age of an answer from a cache is subtracted.
//
// d is 0 to ten years: RetryAfter returns what the service said, and bounds nothing. The transport does; see [WithMaxPause].
func (a Answer) RetryAfter() (d time.Duration, dimension string, ok bool) {
	h, ok := a.hint(nil)
	return h.delay, h.dimension, ok
}

// fields are the headers that say when to come back, with the unit of a plain number; the first counts.
var fields = [...]struct {
	name string
	unit time.Duration
}{
	{"Retry-After-Ms", time.Millisecond},
	{"X-Ms-Retry-After-Ms", time.Millisecond},
	{"Retry-After", time.Second},
}

// hint is RetryAfter with the source. said is the content of the body; nil if that is not known yet.
func (a Answer) hint(said *remarks) (hint, bool) {
	c := a.clock()
	for _, f := range fields {
		found, ok := hint{}, false
		for _, value := range a.Header.Values(f.name) {
			if d, valid := c.list(value, f.unit); valid && (!ok || d > found.delay) {
				found, ok = hint{delay: d, raw: f.name + ": " + strings.TrimSpace(value)}, true
			}
		}
		if ok {
			return found, true
		}
	}
	if said == nil {
		said = a.read()
	}
	if found, ok := said.delay(c); ok {
		return found, true
	}
	if found, ok := exhausted(a.Header, c); ok {
		return found, true
	}
	return said.advice(c)
}

// longestRaw is how much of a service's words is shown, in bytes.
const longestRaw = 128

// shown returns a service's words in a form fit for a log: not too long, and without control characters.
func shown(raw string) string {
	more := ""
	if len(raw) > longestRaw {
		raw, more = raw[:longestRaw], "..."
	}
	quoted := strconv.QuoteToASCII(raw)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + more
}
