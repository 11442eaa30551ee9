package httpthrottle_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// came is when the answers of these tests came; their own Date is a minute ahead.
var came = time.Date(2026, time.November, 22, 10, 0, 0, 0, time.UTC)

const (
	dateHeader = "Sun, 22 Nov 2026 10:01:00 GMT"
	farthest   = 10 * 365 * 24 * time.Hour
)

// header parses lines as they stand in an answer.
func header(lines string) http.Header {
	h := http.Header{}
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			h.Add(name, strings.TrimSpace(value))
		}
	}
	return h
}

func TestRetryAfter(t *testing.T) {
	type told struct {
		d         time.Duration
		dimension string
		ok        bool
	}
	says := func(d time.Duration) told { return told{d: d, ok: true} }
	silent, long := told{}, strings.Repeat("a", 65)
	retryInfo := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help"},
		{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"10.689924287s"}]}}`
	for _, tc := range []struct {
		name, header, body string
		want               told
	}{
		{name: "nothing"},

		{"seconds", "Retry-After: 20", "", says(20 * time.Second)},
		{"a fraction", "Retry-After: 1.5", "", says(1500 * time.Millisecond)},
		{"a fraction without digits before it", "Retry-After: .5", "", says(500 * time.Millisecond)},
		{"at once", "Retry-After: 0", "", says(0)},
		{"blanks", "Retry-After:   7  ", "", says(7 * time.Second)},
		{"a century", "Retry-After: 3153600000", "", says(farthest)},
		{"out of range", "Retry-After: 1" + strings.Repeat("0", 400), "", says(farthest)},
		{"the latest of two", "Retry-After: 5\nRetry-After: 30", "", says(30 * time.Second)},
		{"negative", "Retry-After: -5", "", silent},
		{"signed", "Retry-After: +5", "", silent},
		{"exponent", "Retry-After: 1e3", "", silent},
		{"hexadecimal", "Retry-After: 0x10", "", silent},
		{"infinite", "Retry-After: inf", "", silent},
		{"no number", "Retry-After: NaN", "", silent},
		{"a dot", "Retry-After: .", "", silent},
		{"two dots", "Retry-After: 1.2.3", "", silent},
		{"a word", "Retry-After: soon", "", silent},
		{"a list", "Retry-After: 5, 30", "", silent},
		{"a malformed one beside another", "Retry-After: soon\nRetry-After: 3", "", says(3 * time.Second)},

		{"IMF-fixdate against the local clock", "Retry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"IMF-fixdate against Date", "Date: " + dateHeader + "\nRetry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(time.Minute)},
		{"RFC 850", "Date: " + dateHeader + "\nRetry-After: Sunday, 22-Nov-26 10:01:30 GMT", "", says(30 * time.Second)},
		{"asctime", "Date: " + dateHeader + "\nRetry-After: Sun Nov 22 10:01:45 2026", "", says(45 * time.Second)},
		{"a date that is past", "Date: " + dateHeader + "\nRetry-After: Sun, 22 Nov 2026 10:00:00 GMT", "", says(0)},
		{"a malformed Date", "Date: today\nRetry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"the year 9999", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", "", says(farthest)},

		{"milliseconds", "retry-after-ms: 1250", "", says(1250 * time.Millisecond)},
		{"Azure's milliseconds", "x-ms-retry-after-ms: 42", "", says(42 * time.Millisecond)},
		{"milliseconds before seconds", "Retry-After: 2\nretry-after-ms: 1250", "", says(1250 * time.Millisecond)},
		{"one before the other", "x-ms-retry-after-ms: 42\nretry-after-ms: 1250", "", says(1250 * time.Millisecond)},
		{"malformed milliseconds", "Retry-After: 2\nretry-after-ms: 1s", "", says(2 * time.Second)},

		{"RetryInfo", "", retryInfo, says(10689924287)},
		{"RetryInfo in a stream", "", "[" + retryInfo + "\n]", says(10689924287)},
		{"Retry-After before RetryInfo", "Retry-After: 4", retryInfo, says(4 * time.Second)},
		{"RetryInfo before limits", `RateLimit: "day";r=0;t=3600`, retryInfo, says(10689924287)},
		{"malformed RetryInfo", "", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-3s"}]}}`, silent},
		{"RetryInfo in minutes", "", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"3m"}]}}`, silent},
		{"another detail", "", `{"error":{"details":[{"@type":"google.rpc.Help","retryDelay":"3s"}]}}`, silent},
		{"no JSON", "", "<html>", silent},

		{"RateLimit", `RateLimit: "default";r=0;t=30`, "", told{30 * time.Second, "default", true}},
		{"RateLimit, a token", `RateLimit: burst;r=0;t=2`, "", told{2 * time.Second, "burst", true}},
		{"RateLimit, the latest of those used up", `RateLimit: "a";r=0;t=3, "b";r=0;t=9, "c";r=5;t=60`, "", told{9 * time.Second, "b", true}},
		{"RateLimit, two lines", "RateLimit: \"a\";r=0;t=3\nRateLimit: \"b\";r=0;t=4", "", told{4 * time.Second, "b", true}},
		{"RateLimit, a limit that is a number", `RateLimit: 100;r=0;t=2, (a b);r=0;t=9`, "", says(2 * time.Second)},
		{"RateLimit with something left", `RateLimit: "default";r=1;t=30`, "", silent},
		{"RateLimit without a time", `RateLimit: "default";r=0`, "", silent},
		{"RateLimit with a negative time", `RateLimit: "default";r=0;t=-1`, "", silent},
		{"RateLimit, malformed", `RateLimit: "default;r=0;t=30`, "", silent},
		{"RateLimit of an older draft", `RateLimit: limit=100, remaining=0, reset=50`, "", silent},
		{
			"RateLimit before X-RateLimit", `
				RateLimit: "default";r=0;t=3
				X-RateLimit-Remaining: 0
				X-RateLimit-Reset: 9`, "", told{3 * time.Second, "default", true},
		},

		{
			"OpenAI, tokens used up", `
				x-ratelimit-limit-requests: 5000
				x-ratelimit-remaining-requests: 4999
				x-ratelimit-reset-requests: 12ms
				x-ratelimit-limit-tokens: 160000
				x-ratelimit-remaining-tokens: 0
				x-ratelimit-reset-tokens: 6m0s`, "", told{6 * time.Minute, "tokens", true},
		},
		{
			"OpenAI, both used up", `
				x-ratelimit-remaining-requests: 0
				x-ratelimit-reset-requests: 8.64s
				x-ratelimit-remaining-tokens: 0
				x-ratelimit-reset-tokens: 120ms`, "", told{8640 * time.Millisecond, "requests", true},
		},
		{
			"two that last as long", `
				x-ratelimit-remaining-tokens: 0
				x-ratelimit-reset-tokens: 1s
				x-ratelimit-remaining-requests: 0
				x-ratelimit-reset-requests: 1s`, "", told{time.Second, "requests", true},
		},
		{"OpenAI, nothing used up", "x-ratelimit-remaining-tokens: 3\nx-ratelimit-reset-tokens: 6m0s", "", silent},
		{"Azure, whole seconds", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 55", "", told{55 * time.Second, "tokens", true}},
		{"Azure, no figures", "x-ratelimit-limit-tokens: -1\nx-ratelimit-remaining-tokens: -1\nx-ratelimit-reset-tokens: 0", "", silent},
		{
			"Anthropic", `
				Date: ` + dateHeader + `
				anthropic-ratelimit-requests-remaining: 12
				anthropic-ratelimit-requests-reset: 2026-11-22T10:05:00Z
				anthropic-ratelimit-input-tokens-remaining: 0
				anthropic-ratelimit-input-tokens-reset: 2026-11-22T10:01:17Z`, "", told{17 * time.Second, "input-tokens", true},
		},
		{"GitHub, seconds since 1970", "Date: " + dateHeader + "\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1795341700", "", says(40 * time.Second)},
		{"milliseconds since 1970", "Date: " + dateHeader + "\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1795341700000", "", says(40 * time.Second)},
		{"far beyond", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 99999999999999999999", "", told{farthest, "", true}},
		{"without X", "RateLimit-Remaining: 0\nRateLimit-Reset: 50", "", told{50 * time.Second, "", true}},
		{"another header with that beginning", "x-ratelimit-remainings: 0\nx-ratelimit-resets: 50", "", silent},
		{"a name that is too long for a label", "x-ratelimit-remaining-" + long + ": 0\nx-ratelimit-reset-" + long + ": 2", "", says(2 * time.Second)},
		{"no reset", "x-ratelimit-remaining-tokens: 0", "", silent},
		{"a malformed reset", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: -6m0s", "", silent},
		{"a name that is not fit for a label", "x-ratelimit-remaining-a!b: 0\nx-ratelimit-reset-a!b: 2", "", told{2 * time.Second, "", true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := httpthrottle.Answer{Status: http.StatusTooManyRequests, Header: header(tc.header), Body: []byte(tc.body), At: came}
			d, dimension, ok := a.RetryAfter()
			require.Equal(t, tc.want, told{d, dimension, ok})
		})
	}
}
