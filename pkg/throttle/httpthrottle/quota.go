package httpthrottle

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// exhausted returns when the limits that an answer calls used up are there again, and which of them is the last.
func exhausted(h http.Header, c clock) (hint, bool) {
	if found, ok := exhaustedItems(h.Values("Ratelimit"), c); ok {
		return found, true
	}
	var last hint
	ok := false
	for name, values := range h {
		f, is := remainingField(strings.ToLower(name))
		if !is {
			continue
		}
		v, valid := f.reset(h, c, strings.Join(values, ","))
		// The header is a map: of two that last as long the first by name counts.
		if valid && (!ok || v.delay > last.delay || v.delay == last.delay && v.dimension < last.dimension) {
			last, ok = v, true
		}
	}
	last.dimension = clean(last.dimension)
	return last, ok
}

// families are how headers about limits begin, with the longer of two first.
var families = [...]string{
	"anthropic-ratelimit",
	"x-ratelimitbysize", "ratelimitbysize", // Mistral
	"x-rate-limit", "rate-limit", // Okta, Twitter
	"x-ratelimit", "ratelimit",
}

// A limitField is a header about the rest of a limit. The limit's name stands behind the subject of the header
// (x-ratelimit-remaining-tokens), or before it (anthropic-ratelimit-tokens-remaining).
type limitField struct {
	family, before, behind string
}

// remainingField reports whether a header, in lower case, is about the rest of a limit.
func remainingField(name string) (limitField, bool) {
	const remaining = "-remaining"
	for _, family := range families {
		rest, is := strings.CutPrefix(name, family)
		if !is {
			continue
		}
		if behind, is := strings.CutPrefix(rest, remaining); is && (behind == "" || behind[0] == '-') {
			return limitField{family: family, behind: behind}, true
		}
		if before, is := strings.CutSuffix(rest, remaining); is && before != "" && before[0] == '-' {
			return limitField{family: family, before: before}, true
		}
	}
	return limitField{}, false
}

// resets are the names of headers that say when a limit is there again, with the unit of a plain number. Names that need no clock come
// first.
var resets = [...]struct {
	name string
	unit time.Duration
}{
	{"-reset-after", time.Second}, // Discord
	{"-reset-ms", time.Millisecond},
	{"-reset", time.Second},
}

// reset returns when the limit is there again, if remaining says that it is used up.
func (f limitField) reset(h http.Header, c clock, remaining string) (hint, bool) {
	used := usedUp(remaining)
	if used == nil {
		return hint{}, false
	}
	for _, r := range resets {
		name := http.CanonicalHeaderKey(f.family + f.before + r.name + f.behind)
		value := strings.Join(h[name], ",")
		if value == "" {
			continue
		}
		if d, ok := c.resetOf(value, r.unit, used); ok {
			return hint{delay: d, dimension: strings.TrimPrefix(f.before+f.behind, "-"), raw: name + ": " + value}, true
		}
	}
	return hint{}, false
}

// usedUp returns which items of a list of remainders say that not even one call is left; nil for none. A remainder of -1 says that there is
// no figure.
func usedUp(remaining string) []bool {
	if len(remaining) > longestValue {
		return nil
	}
	items := strings.Split(remaining, ",")
	used, some := make([]bool, len(items)), false
	for i, item := range items {
		value, _, _ := strings.Cut(item, ";") // 0;w=60
		n, ok := decimal(unquote(strings.TrimSpace(value)))
		used[i] = ok && n.Cmp(one) < 0
		some = some || used[i]
	}
	if !some {
		return nil
	}
	return used
}

var one = power(0)

// resetOf reads a reset. In a list as long as that of the remainders, only the resets of used-up items count.
func (c clock) resetOf(value string, unit time.Duration, used []bool) (latest time.Duration, ok bool) {
	items := strings.Split(value, ",")
	if len(value) > longestValue || len(items) == 1 || len(items) != len(used) {
		item, _, _ := strings.Cut(value, ";")
		return c.list(item, unit)
	}
	for i, item := range items {
		if !used[i] {
			continue
		}
		item, _, _ = strings.Cut(item, ";")
		d, valid := c.when(item, unit)
		if !valid {
			return 0, false
		}
		latest, ok = max(latest, d), true
	}
	return latest, ok
}

// exhaustedItems reads the field RateLimit of draft-ietf-httpapi-ratelimit-headers. It is a list of limits with r, the remainder, and t,
// the seconds until more is there. In draft 7 it is the same of one limit, as remaining and reset. The field is structured (RFC 9651), so
// it is ignored as a whole when it is malformed.
func exhaustedItems(values []string, c clock) (last hint, ok bool) {
	raw := strings.Join(values, ", ")
	if len(raw) > 4*longestValue {
		return hint{}, false
	}
	raw = "RateLimit: " + raw
	if limit, err := httpsfv.UnmarshalDictionary(values); err == nil {
		r, hasR := figure(limit.Get("remaining"))
		t, hasT := figure(limit.Get("reset"))
		if hasR && hasT && r >= 0 && r < 1 && t >= 0 {
			return hint{delay: c.seconds(t), raw: raw}, true
		}
	}
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		return hint{}, false
	}
	for _, member := range list {
		item, is := member.(httpsfv.Item)
		if !is || item.Params == nil {
			continue
		}
		r, hasR := figure(item.Params.Get("r"))
		t, hasT := figure(item.Params.Get("t"))
		if !hasR || !hasT || r < 0 || r >= 1 || t < 0 {
			continue
		}
		if d := c.seconds(t); !ok || d > last.delay {
			last, ok = hint{delay: d, dimension: itemName(item), raw: raw}, true
		}
	}
	return last, ok
}

// seconds reads a number of seconds of a structured field, which has at most twelve digits and three
// behind the point.
func (c clock) seconds(n float64) time.Duration {
	d, _ := c.when(strconv.FormatFloat(n, 'f', -1, 64), time.Second)
	return d
}

// figure returns a number of a structured field.
func figure(v any, found bool) (float64, bool) {
	if item, is := v.(httpsfv.Item); is {
		v = item.Value
	}
	switch n := v.(type) {
	case int64:
		return float64(n), found
	case float64:
		return n, found
	}
	return 0, false
}

func itemName(item httpsfv.Item) string {
	switch name := item.Value.(type) {
	case string:
		return clean(name)
	case httpsfv.Token:
		return clean(string(name))
	}
	return ""
}

// clean returns a name that a service gave if it is fit for errors and labels; else nothing.
func clean(name string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	if len(name) > 64 || strings.Trim(name, allowed) != "" {
		return ""
	}
	return name
}
