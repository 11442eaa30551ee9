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
	type reported struct {
		d         time.Duration
		dimension string
		ok        bool
	}
	says := func(d time.Duration) reported { return reported{d: d, ok: true} }
	silent, long := reported{}, strings.Repeat("a", 65)
	retryInfo := `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.Help"},
		{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"10.689924287s"}]}}`
	for _, tc := range []struct {
		name, header, body string
		want               reported
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
		{"a list", "Retry-After: 5, 30", "", says(30 * time.Second)},
		{"a list with something malformed", "Retry-After: 5, soon", "", silent},
		{"a list that ends in nothing", "Retry-After: 5,", "", silent},
		{"a date that is cut off", "Retry-After: Sun, 22", "", silent},
		{"a list of dates", "Retry-After: Sun, 22 Nov 2026 10:02:00 GMT, Sun, 22 Nov 2026 10:01:00 GMT", "", says(2 * time.Minute)},
		{"empty", "Retry-After: ", "", silent},
		{"quotes", `Retry-After: "7"`, "", says(7 * time.Second)},
		{"too long", "Retry-After: " + strings.Repeat("1", 1025), "", silent},
		{"less than a nanosecond", "Retry-After: 0.0000000001", "", says(1)},

		{"an epoch", "Retry-After: 1795341603", "", says(3 * time.Second)},
		{"an epoch with a fraction", "Retry-After: 1795341603.25", "", says(3250 * time.Millisecond)},
		{"an epoch that a float cannot hold", "Retry-After: 1795341603.0000000001", "", says(3*time.Second + 1)},
		{"an epoch in milliseconds", "Retry-After: 1795341603000", "", says(3 * time.Second)},
		{"an epoch in milliseconds with a fraction", "Retry-After: 1795341603000.5", "", says(3*time.Second + 500*time.Microsecond)},
		{"an epoch in microseconds", "Retry-After: 1795341603000001", "", says(3*time.Second + time.Microsecond)},
		{"an epoch in nanoseconds", "Retry-After: 1795341603000000001", "", says(3*time.Second + 1)},
		{"an epoch that is past", "Retry-After: 1764089000", "", says(0)},
		{"an epoch in the field for milliseconds", "Retry-After-Ms: 1795341603", "", says(3 * time.Second)},
		{"an epoch of milliseconds there", "Retry-After-Ms: 1795341603000", "", says(3 * time.Second)},
		{"an epoch against Date", "Date: " + dateHeader + "\nRetry-After: 1795341663", "", says(3 * time.Second)},
		{"the longest that is no epoch", "Retry-After: 999999999", "", says(farthest)},

		{"RFC 3339", "Retry-After: 2026-11-22T10:00:03.5Z", "", says(3500 * time.Millisecond)},
		{"RFC 3339 in a zone", "Retry-After: 2026-11-22T11:00:03+01:00", "", says(3 * time.Second)},
		{"RFC 3339 without a zone", "Retry-After: 2026-11-22T10:00:03", "", says(3 * time.Second)},
		{"with a blank", "Retry-After: 2026-11-22 10:00:03.25", "", says(3250 * time.Millisecond)},
		{"a date with a numeric zone", "Retry-After: Sun, 22 Nov 2026 11:00:03 +0100", "", says(3 * time.Second)},
		{"a duration", "Retry-After: 1m30s", "", says(90 * time.Second)},
		{"a duration in words", "Retry-After: 20 seconds", "", says(20 * time.Second)},
		{"a duration of an unknown unit", "Retry-After: 20 parsecs", "", silent},
		{"ISO 8601", "Retry-After: PT1M20.5S", "", says(80500 * time.Millisecond)},
		{"ISO 8601 in days", "Retry-After: P1DT1H", "", says(25 * time.Hour)},
		{"ISO 8601 of nothing", "Retry-After: PT", "", silent},
		{"a negative duration", "Retry-After: -20s", "", silent},
		{"a duration out of range", "Retry-After: 99999999999999999999h", "", says(farthest)},

		{"Age", "Age: 20\nRetry-After: 60", "", says(40 * time.Second)},
		{"Age beyond", "Age: 200\nRetry-After: 60", "", says(0)},
		{"Age that is malformed", "Age: -20\nRetry-After: 60", "", says(time.Minute)},
		{"Age with a date", "Date: Sun, 22 Nov 2026 09:59:40 GMT\nAge: 20\nRetry-After: Sun, 22 Nov 2026 10:00:30 GMT", "", says(30 * time.Second)},
		{
			"Age with Date that a cache made anew",
			"Date: Sun, 22 Nov 2026 10:00:00 GMT\nAge: 86400\nRetry-After: Sun, 22 Nov 2026 10:00:30 GMT", "", says(30 * time.Second),
		},
		{"Age with a body", "Age: 5", `{"retry_after":7.5}`, says(2500 * time.Millisecond)},
		{"Date of 1970", "Date: Thu, 01 Jan 1970 00:00:00 GMT\nRetry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"Date that is local time", "Date: Sun, 22 Nov 2026 09:00:00 GMT\nRetry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"Date of the future", "Date: Fri, 31 Dec 9999 23:59:59 GMT\nRetry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"a malformed one beside another", "Retry-After: soon\nRetry-After: 3", "", says(3 * time.Second)},

		{"IMF-fixdate against the local clock", "Retry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"IMF-fixdate against Date", "Date: " + dateHeader + "\nRetry-After: Sun, 22 Nov 2026 10:02:00 GMT", "", says(time.Minute)},
		{"RFC 850", "Date: " + dateHeader + "\nRetry-After: Sunday, 22-Nov-26 10:01:30 GMT", "", says(30 * time.Second)},
		{"asctime", "Date: " + dateHeader + "\nRetry-After: Sun Nov 22 10:01:45 2026", "", says(45 * time.Second)},
		{"a day of one digit", "Date: Sun, 1 Nov 2026 10:00:00 GMT\nRetry-After: Tue, 1 Dec 2026 10:00:00 GMT", "", says(9 * 24 * time.Hour)},
		{"a day of one digit against Date", "Date: " + dateHeader + "\nRetry-After: Sun, 6 Dec 2026 10:01:00 GMT", "", says(14 * 24 * time.Hour)},
		{"RFC 850 with one digit", "Retry-After: Sunday, 6-Dec-26 10:00:00 GMT", "", says(14 * 24 * time.Hour)},
		{"dashes", "Retry-After: Sun, 6-Dec-2026 10:00:00 GMT", "", says(14 * 24 * time.Hour)},
		{"without a day of the week", "Retry-After: 6 Dec 2026 10:00:00 +0000", "", says(14 * 24 * time.Hour)},
		{"another case", "Retry-After: sun, 22 nov 2026 10:02:00 gmt", "", says(2 * time.Minute)},
		{"a whole day of the week", "Retry-After: Sunday, 22 Nov 2026 10:02:00 UT", "", says(2 * time.Minute)},
		{"a list of days of one digit", "Retry-After: Sun, 6 Dec 2026 10:00:00 GMT, 5", "", says(14 * 24 * time.Hour)},
		{"RFC 3339 in lower case", "Retry-After: 2026-11-22t10:00:03.5z", "", says(3500 * time.Millisecond)},
		{"RFC 3339 in lower case in a zone", "Retry-After: 2026-11-22t11:00:03+01:00", "", says(3 * time.Second)},
		{"RFC 3339 without seconds", "Retry-After: 2026-11-22T10:02Z", "", says(2 * time.Minute)},
		{"a blank, without seconds", "Retry-After: 2026-11-22 10:02", "", says(2 * time.Minute)},
		{"a blank, without a zone's colon", "Retry-After: 2026-11-22 11:02:00+0100", "", says(2 * time.Minute)},
		{"a whole month", "Retry-After: Sun, 22 November 2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"a whole month and dashes", "Retry-After: Sunday, 22-NOVEMBER-2026 10:02:00 GMT", "", says(2 * time.Minute)},
		{"RFC 822", "Retry-After: Sun, 22 Nov 26 10:02:00 GMT", "", says(2 * time.Minute)},
		{"RFC 822 without seconds", "Retry-After: 22 Nov 26 11:02 +0100", "", says(2 * time.Minute)},
		{"IMF-fixdate without seconds", "Retry-After: Sun, 22 Nov 2026 10:02 GMT", "", says(2 * time.Minute)},
		{"RFC 850 without seconds", "Retry-After: Sunday, 22-Nov-26 10:02 GMT", "", says(2 * time.Minute)},
		{"a list of whole months", "Retry-After: 22 November 2026 10:02:00 GMT, 5", "", says(2 * time.Minute)},
		{"the month as a number", "Retry-After: 22/11/2026 10:02:00 GMT", "", silent},
		{"the month first", "Retry-After: 11-22-26 10:02:00 GMT", "", silent},
		{"a year of two digits first", "Retry-After: 26-11-22T10:02:00Z", "", silent},
		{"half a month", "Retry-After: Sun, 22 Novem 2026 10:02:00 GMT", "", silent},
		{"no time of day", "Retry-After: Sun, 22 Nov 2026", "", silent},
		{"a day that is none", "Retry-After: Sun, 32 Nov 2026 10:02:00 GMT", "", silent},
		{"a zone that nobody knows", "Retry-After: Sun, 6 Dec 2026 10:02:00 XYZ", "", silent},
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

		{"RateLimit", `RateLimit: "default";r=0;t=30`, "", reported{30 * time.Second, "default", true}},
		{"RateLimit, a token", `RateLimit: burst;r=0;t=2`, "", reported{2 * time.Second, "burst", true}},
		{"RateLimit, the latest of those used up", `RateLimit: "a";r=0;t=3, "b";r=0;t=9, "c";r=5;t=60`, "", reported{9 * time.Second, "b", true}},
		{"RateLimit, two lines", "RateLimit: \"a\";r=0;t=3\nRateLimit: \"b\";r=0;t=4", "", reported{4 * time.Second, "b", true}},
		{"RateLimit, a limit that is a number", `RateLimit: 100;r=0;t=2, (a b);r=0;t=9`, "", says(2 * time.Second)},
		{"RateLimit with something left", `RateLimit: "default";r=1;t=30`, "", silent},
		{"RateLimit without a time", `RateLimit: "default";r=0`, "", silent},
		{"RateLimit with a negative time", `RateLimit: "default";r=0;t=-1`, "", silent},
		{"RateLimit, malformed", `RateLimit: "default;r=0;t=30`, "", silent},
		{"RateLimit of draft 7", `RateLimit: limit=100, remaining=0, reset=50`, "", says(50 * time.Second)},
		{"RateLimit of draft 7 with something left", `RateLimit: limit=100, remaining=1, reset=50`, "", silent},
		{"RateLimit of draft 7 with an epoch", `RateLimit: limit=100, remaining=0, reset=1795341603`, "", says(3 * time.Second)},
		{"RateLimit with decimals", `RateLimit: "default";r=0.0;t=2.5`, "", reported{2500 * time.Millisecond, "default", true}},
		{
			"RateLimit before X-RateLimit", `
				RateLimit: "default";r=0;t=3
				X-RateLimit-Remaining: 0
				X-RateLimit-Reset: 9`, "", reported{3 * time.Second, "default", true},
		},

		{
			"OpenAI, tokens used up", `
				x-ratelimit-limit-requests: 5000
				x-ratelimit-remaining-requests: 4999
				x-ratelimit-reset-requests: 12ms
				x-ratelimit-limit-tokens: 160000
				x-ratelimit-remaining-tokens: 0
				x-ratelimit-reset-tokens: 6m0s`, "", reported{6 * time.Minute, "tokens", true},
		},
		{
			"OpenAI, both used up", `
				x-ratelimit-remaining-requests: 0
				x-ratelimit-reset-requests: 8.64s
				x-ratelimit-remaining-tokens: 0
				x-ratelimit-reset-tokens: 120ms`, "", reported{8640 * time.Millisecond, "requests", true},
		},
		{
			"two that last as long", `
				x-ratelimit-remaining-tokens: 0
				x-ratelimit-reset-tokens: 1s
				x-ratelimit-remaining-requests: 0
				x-ratelimit-reset-requests: 1s`, "", reported{time.Second, "requests", true},
		},
		{"OpenAI, nothing used up", "x-ratelimit-remaining-tokens: 3\nx-ratelimit-reset-tokens: 6m0s", "", silent},
		{"Azure, whole seconds", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 55", "", reported{55 * time.Second, "tokens", true}},
		{"Azure, no figures", "x-ratelimit-limit-tokens: -1\nx-ratelimit-remaining-tokens: -1\nx-ratelimit-reset-tokens: 0", "", silent},
		{
			"Anthropic", `
				Date: ` + dateHeader + `
				anthropic-ratelimit-requests-remaining: 12
				anthropic-ratelimit-requests-reset: 2026-11-22T10:05:00Z
				anthropic-ratelimit-input-tokens-remaining: 0
				anthropic-ratelimit-input-tokens-reset: 2026-11-22T10:01:17Z`, "", reported{17 * time.Second, "input-tokens", true},
		},
		{"GitHub, seconds since 1970", "Date: " + dateHeader + "\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1795341700", "", says(40 * time.Second)},
		{"milliseconds since 1970", "Date: " + dateHeader + "\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1795341700000", "", says(40 * time.Second)},
		{"far beyond", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 99999999999999999999", "", reported{farthest, "", true}},
		{"a fraction of an epoch", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1795341603.2", "", says(3200 * time.Millisecond)},
		{"Reddit", "x-ratelimit-remaining: 0.0\nx-ratelimit-used: 100\nx-ratelimit-reset: 57", "", says(57 * time.Second)},
		{"less than one left", "x-ratelimit-remaining: 0.9\nx-ratelimit-reset: 57", "", says(57 * time.Second)},
		{"one left", "x-ratelimit-remaining: 1.0\nx-ratelimit-reset: 57", "", silent},
		{"Okta", "X-Rate-Limit-Limit: 600\nX-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 1795341603", "", says(3 * time.Second)},
		{"a window behind", "RateLimit-Remaining: 0;w=1\nRateLimit-Reset: 1;w=1", "", says(time.Second)},
		{"two windows used up", "X-RateLimit-Remaining: 0, 0\nX-RateLimit-Reset: 1, 60", "", says(time.Minute)},
		{"one of two windows used up", "X-RateLimit-Remaining: 0, 57\nX-RateLimit-Reset: 1, 60", "", says(time.Second)},
		{"two lines", "X-RateLimit-Remaining: 57\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\nX-RateLimit-Reset: 60", "", says(time.Minute)},
		{"two windows and one reset", "X-RateLimit-Remaining: 57, 0\nX-RateLimit-Reset: 60", "", says(time.Minute)},
		{"Discord", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795349999.5\nX-RateLimit-Reset-After: 1.5", "", says(1500 * time.Millisecond)},
		{"milliseconds to the reset", "X-RateLimit-Remaining: 0\nX-RateLimit-Reset-Ms: 1500", "", says(1500 * time.Millisecond)},
		{"Linear", "X-RateLimit-Requests-Remaining: 0\nX-RateLimit-Requests-Reset: 1795341603000", "", reported{3 * time.Second, "requests", true}},
		{"Mistral", "ratelimitbysize-remaining: 0\nratelimitbysize-reset: 28", "", says(28 * time.Second)},

		{"Discord's body", "", `{"message":"You are being rate limited.","retry_after":64.57,"global":false}`, says(64570 * time.Millisecond)},
		{"milliseconds in the body", "", `{"error":{"retry_after_ms":1500}}`, says(1500 * time.Millisecond)},
		{"a text in the body", "", `{"retryAfter":"PT20S"}`, says(20 * time.Second)},
		{"an exponent in the body", "", `{"retry_after":1.5e1}`, says(15 * time.Second)},
		{"an exponent out of range", "", `{"retry_after":1e999}`, silent},
		{"an epoch in the body", "", `{"parameters":{"retry_after":1795341603}}`, says(3 * time.Second)},
		{"null in the body", "", `{"retry_after":null}`, silent},
		{"negative in the body", "", `{"retry_after":-1}`, silent},
		{
			"RetryInfo elsewhere",
			"", `{"message":"quota","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"22s"}]}`, says(22 * time.Second),
		},
		{"retryDelay without its type", "", `{"error":{"status":"RESOURCE_EXHAUSTED","retryDelay":"3.5s"}}`, says(3500 * time.Millisecond)},
		{
			"retryDelay as an object",
			"", `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":{"seconds":"3","nanos":500000000}}]}}`, says(3500 * time.Millisecond),
		},
		{
			"RetryInfo in an event",
			"", "event: error\r\ndata: " + `{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"9s"}]}}` + "\r\n\r\n", says(9 * time.Second),
		},
		{"RetryInfo in a text", "", `{"error":{"message":"GeminiException - {\"error\":{\"details\":[{\"retryDelay\":\"22s\"}]}}"}}`, says(22 * time.Second)},
		{"a body that is cut off", "", `{"error":{"details":[{"retryDelay":"22s"}],"message":"` + strings.Repeat("x", 100), says(22 * time.Second)},

		{
			"OpenAI's text",
			"", `{"error":{"message":"Rate limit reached for gpt-4o (TPM): Limit 30000, Used 30000. Please try again in 6m0s. Visit"}}`, says(6 * time.Minute),
		},
		{"OpenAI's text in milliseconds", "", `{"error":{"message":"Please try again in 120ms."}}`, says(120 * time.Millisecond)},
		{"Groq's text", "", `{"error":{"message":"Please try again in 7m12.48s. Need more tokens?"}}`, says(7*time.Minute + 12480*time.Millisecond)},
		{"Azure's text", "", `{"error":{"code":"429","message":"Please retry after 45 seconds."}}`, says(45 * time.Second)},
		{"API Management's text", "", `{"statusCode":429,"message":"Rate limit is exceeded. Try again in 42 seconds."}`, says(42 * time.Second)},
		{"Gemini's text", "", `{"error":{"message":"Quota exceeded, limit: 15\nPlease retry in 10.6s."}}`, says(10600 * time.Millisecond)},
		{"a text that is no JSON", "", "Too many requests, please try again in 1 minute and 20 seconds.", says(80 * time.Second)},
		{"a text without a unit", "", `{"message":"try again in 20"}`, silent},
		{"a text with another unit", "", `{"message":"try again in 20 parsecs"}`, silent},
		{"a text about something else", "", `{"message":"20 requests in 20 seconds are allowed"}`, silent},
		{"a text that is no message", "", `{"input":"try again in 20s"}`, silent},
		{"a reset before a text", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 5", `{"message":"try again in 20s"}`, says(5 * time.Second)},
		{"a text beyond what is looked at", "", strings.Repeat("x", 4090) + " try again in 20s", silent},
		{"a text that is cut within its time", "", strings.Repeat("x", 4078) + " try again in 2m30s", silent},

		{"without X", "RateLimit-Remaining: 0\nRateLimit-Reset: 50", "", reported{50 * time.Second, "", true}},
		{"another header with that beginning", "x-ratelimit-remainings: 0\nx-ratelimit-resets: 50", "", silent},
		{"a name that is too long for a label", "x-ratelimit-remaining-" + long + ": 0\nx-ratelimit-reset-" + long + ": 2", "", says(2 * time.Second)},
		{"no reset", "x-ratelimit-remaining-tokens: 0", "", silent},
		{"a malformed reset", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: -6m0s", "", silent},
		{"a name that is not fit for a label", "x-ratelimit-remaining-a!b: 0\nx-ratelimit-reset-a!b: 2", "", reported{2 * time.Second, "", true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := httpthrottle.Answer{Status: http.StatusTooManyRequests, Header: header(tc.header), Body: []byte(tc.body), At: came}
			d, dimension, ok := a.RetryAfter()
			require.Equal(t, tc.want, reported{d, dimension, ok})
		})
	}
}
