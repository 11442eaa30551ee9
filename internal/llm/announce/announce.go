// Package announce reads the limits that LLM services announce in the headers of their answers, and compares them with what is configured.
package announce

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Kind is what a limit counts.
type Kind string

// The kinds of limits. Tokens are those of prompts and answers together.
const (
	Requests Kind = "requests"
	Input    Kind = "input"
	Output   Kind = "output"
	Tokens   Kind = "tokens"
)

// A Figure is a limit that a service announces.
type Figure struct {
	Kind Kind
	Per  time.Duration // 1 s to 24 h; 0: a slice of a minute whose length the service doesn't say (Azure's requests)

	Limit        int64 // 1 to 1e12
	Remaining    int64 // at most Limit
	HasRemaining bool
	Reset        time.Duration // until the limit is full again; 0: unknown, or it is full
}

const (
	longestNumber = 20                  // in bytes
	longestReset  = 40                  // in bytes: a time with nanoseconds and a zone has 35
	farthestReset = 31 * 24 * time.Hour // a later one says nothing
	mostLimit     = 1e12
)

// Read returns what an answer with headers h announces, in the order of the dialect's table. There is at most one figure for each Kind and
// Per: where several limits apply, the lowest limit and the lowest remainder. now is when the answer came.
func Read(d Dialect, h http.Header, now time.Time) (all []Figure) {
	for _, f := range dialects[d] {
		if f.unless != "" && len(h.Values(f.unless)) > 0 {
			continue
		}
		limits, remaining, resets := h.Values(f.limit), h.Values(f.remaining), h.Values(f.reset)
		for i := range limits {
			// Lines belong together by their order. Where some are missing nobody knows which.
			pair := func(lines []string) string {
				if len(lines) != len(limits) {
					return ""
				}
				return lines[i]
			}
			if found, ok := f.figure(limits[i], pair(remaining), pair(resets), now); ok {
				all = add(all, found)
			}
		}
	}
	return all
}

// figure returns what the values of a field's headers say.
func (f field) figure(limit, remaining, resets string, now time.Time) (found Figure, ok bool) {
	found = Figure{Kind: f.kind, Per: f.per, Reset: reset(resets, now)}
	if found.Limit, ok = number(limit); !ok || found.Limit == 0 {
		return Figure{}, false
	}
	if left, has := number(remaining); has {
		found.Remaining, found.HasRemaining = min(left, found.Limit), true
	}
	if f.per == inferred {
		found.Per, ok = found.period()
	}
	return found, ok
}

// add puts f into all. Of two figures for the same Kind and Per both limits apply.
func add(all []Figure, f Figure) []Figure {
	for i := range all {
		a := &all[i]
		if a.Kind != f.Kind || a.Per != f.Per {
			continue
		}
		switch {
		case !a.HasRemaining:
			a.Remaining, a.HasRemaining = f.Remaining, f.HasRemaining
		case f.HasRemaining:
			a.Remaining = min(a.Remaining, f.Remaining)
		}
		a.Limit = min(a.Limit, f.Limit)
		a.Remaining = min(a.Remaining, a.Limit)
		a.Reset = max(a.Reset, f.Reset)
		return all
	}
	return append(all, f)
}

// number reads a whole number from 0 to mostLimit: digits alone.
func number(text string) (n int64, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) > longestNumber {
		return 0, false
	}
	u, err := strconv.ParseUint(text, 10, 63)
	return int64(u), err == nil && u <= mostLimit
}

// reset reads 2m59.56s, seconds or a time of RFC 3339, and returns the time until then; 0 if it is unknown.
func reset(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if len(text) > longestReset {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil {
		t, invalid := time.Parse(time.RFC3339, text)
		d, err = t.Sub(now), invalid
	}
	if err != nil || d > farthestReset {
		return 0
	}
	return max(d, 0)
}

// period infers the period of a limit that refills continuously, from the time in which the used part comes back.
func (f Figure) period() (time.Duration, bool) {
	used := f.Limit - f.Remaining
	if !f.HasRemaining || used == 0 || f.Reset < time.Millisecond {
		return 0, false
	}
	whole := float64(f.Reset) * float64(f.Limit) / float64(used)
	for _, per := range [...]time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour, day} {
		// At most one is so near: they are more than a factor of four apart.
		if ratio := whole / float64(per); ratio >= 0.5 && ratio <= 2 {
			return per, true
		}
	}
	return 0, false
}
