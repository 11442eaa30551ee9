package httpthrottle

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// farthest is the longest delay that is told apart from longer ones: about ten
// years.
const farthest = 10 * 365 * 24 * time.Hour

// RetryAfter returns how long the service asks to wait, counted from a.At, and which limit
// is used up if it says so. ok is false when it says nothing that can be understood.
// Looked at in this order, the first that is well-formed counts:
//
//  1. Retry-After-Ms, then X-Ms-Retry-After-Ms: milliseconds
//  2. Retry-After: seconds, or a date in one of the three forms of HTTP
//  3. google.rpc.RetryInfo in the body
//  4. the items of RateLimit that have r=0 and a t, in seconds
//  5. the reset of each limit whose remaining is 0: RateLimit-Remaining and -Reset, X-Ratelimit-Remaining and
//     -Reset, with or without a limit's name behind, and Anthropic-Ratelimit-*-Remaining and -Reset
//
// Numbers may have a fraction. A reset is a number of seconds, a duration such as 6m0s, a
// date of RFC 3339, or seconds since 1970. Dates count against the Date of the answer, so
// that the clocks need not agree. Where several limits are used up, the latest counts. A
// limit of which something remains says nothing about this refusal, so its reset does not
// count.
func (a Answer) RetryAfter() (d time.Duration, dimension string, ok bool) {
	date := a.date()
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d, ok := latest(a.Header.Values(name), parseMillis); ok {
			return d, "", true
		}
	}
	parse := func(s string) (time.Duration, bool) { return parseRetryAfter(s, date) }
	if d, ok := latest(a.Header.Values("Retry-After"), parse); ok {
		return d, "", true
	}
	if d, ok := readProblem(a.Body).retryInfo(); ok {
		return d, "", true
	}
	return exhausted(a.Header, date)
}

// date returns the service's time: the Date of the answer, or the local time.
func (a Answer) date() time.Time {
	if t, err := http.ParseTime(a.Header.Get("Date")); err == nil {
		return t
	}
	return a.At
}

// latest returns the longest delay of those values that are well-formed.
func latest(values []string, parse func(string) (time.Duration, bool)) (longest time.Duration, ok bool) {
	for _, v := range values {
		if d, valid := parse(strings.TrimSpace(v)); valid {
			longest, ok = max(longest, d), true
		}
	}
	return longest, ok
}

func parseMillis(s string) (time.Duration, bool) { return parseNumber(s, time.Millisecond) }

// parseRetryAfter reads the value of a Retry-After: a number of seconds or a date.
func parseRetryAfter(s string, date time.Time) (time.Duration, bool) {
	if d, ok := parseNumber(s, time.Second); ok {
		return d, true
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return 0, false
	}
	return between(date, t), true
}

// sinceEpoch is what tells a time in seconds since 1970 from a number of seconds to
// wait: nobody waits for thirty years.
const sinceEpoch = 1e9

// parseReset reads when a limit is there again.
func parseReset(s string, date time.Time) (time.Duration, bool) {
	if n, ok := decimal(s); ok {
		switch {
		case n < sinceEpoch:
			return span(n, time.Second), true
		case n >= 1000*sinceEpoch: // milliseconds since 1970
			n /= 1000
		}
		return between(date, time.Unix(int64(min(n, 100*sinceEpoch)), 0)), true
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return between(date, t), true
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return min(d, farthest), true
	}
	return 0, false
}

// parseNumber reads a number of units.
func parseNumber(s string, unit time.Duration) (time.Duration, bool) {
	n, ok := decimal(s)
	return span(n, unit), ok
}

// decimal reads digits with or without a fraction: no sign, no exponent.
func decimal(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 || strings.Trim(s, ".") == "" {
		return 0, false
	}
	n, _ := strconv.ParseFloat(s, 64) // what is out of range is infinite
	return n, true
}

// span returns n units, farthest at most.
func span(n float64, unit time.Duration) time.Duration {
	return time.Duration(min(n*float64(unit), float64(farthest)))
}

// between returns the time from a date to a later one: 0 to farthest.
func between(from, to time.Time) time.Duration { return min(max(to.Sub(from), 0), farthest) }
