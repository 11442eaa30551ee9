package httpthrottle

import (
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// exhausted returns when the limits are there again that an answer says are used
// up, and which of them is the last.
func exhausted(h http.Header, date time.Time) (d time.Duration, dimension string, ok bool) {
	if d, dimension, ok = exhaustedItems(h.Values("Ratelimit")); ok {
		return d, dimension, true
	}
	for name, values := range h {
		reset, dim, is := resetField(strings.ToLower(name))
		if !is || len(values) == 0 || strings.TrimSpace(values[0]) != "0" {
			continue
		}
		v, valid := parseReset(strings.TrimSpace(h.Get(reset)), date)
		// The header is a map: of two that last as long the first by name counts.
		if valid && (!ok || v > d || v == d && dim < dimension) {
			d, dimension, ok = v, dim, true
		}
	}
	return d, clean(dimension), ok
}

// resetField tells whether a header, in lower case, is about what remains of a limit,
// and if so which header tells when that is there again, and the limit's name.
func resetField(name string) (reset, dimension string, ok bool) {
	const anthropic, remaining = "anthropic-ratelimit-", "-remaining"
	if rest, is := strings.CutPrefix(name, anthropic); is {
		dimension, ok = strings.CutSuffix(rest, remaining)
		return anthropic + dimension + "-reset", dimension, ok
	}
	for _, prefix := range [...]string{"x-ratelimit", "ratelimit"} {
		rest, is := strings.CutPrefix(name, prefix+remaining)
		if is && (rest == "" || rest[0] == '-') {
			return prefix + "-reset" + rest, strings.TrimPrefix(rest, "-"), true
		}
	}
	return "", "", false
}

// exhaustedItems reads the field RateLimit of draft-ietf-httpapi-ratelimit-headers: a list
// of limits with r, what remains, and t, the seconds until more is there. The field is a
// structured one (RFC 9651), so it is ignored as a whole when it is malformed.
func exhaustedItems(values []string) (d time.Duration, dimension string, ok bool) {
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		return 0, "", false
	}
	for _, member := range list {
		item, is := member.(httpsfv.Item)
		if !is || item.Params == nil {
			continue
		}
		r, hasR := parameter(item, "r")
		t, hasT := parameter(item, "t")
		if !hasR || !hasT || r != 0 || t < 0 {
			continue
		}
		if v := span(float64(t), time.Second); !ok || v > d {
			d, dimension, ok = v, itemName(item), true
		}
	}
	return d, dimension, ok
}

func parameter(item httpsfv.Item, name string) (int64, bool) {
	v, ok := item.Params.Get(name)
	if !ok {
		return 0, false
	}
	n, ok := v.(int64)
	return n, ok
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

// clean returns a name that a service gave if it is fit for errors and labels; else
// nothing.
func clean(name string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
	if len(name) > 64 || strings.Trim(name, allowed) != "" {
		return ""
	}
	return name
}
