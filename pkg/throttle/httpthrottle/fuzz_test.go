package httpthrottle_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// name is what a service's names may look like.
var name = regexp.MustCompile(`^[A-Za-z0-9_.-]{0,64}$`)

// Whatever the headers and the body say, and whatever the headers are called, a delay is a time to wait, malformed
// fields change nothing, and what comes first comes before all else.
func FuzzRetryAfterHeaders(f *testing.F) {
	f.Add("20", "", "", "Sun, 22 Nov 2026 10:00:00 GMT", `"a";r=0;t=3`, "0", "6m0s", "Tokens", "X-Ratelimit-Remaining", "", "")
	f.Add("1.5", "1250", "", dateHeader, `limit=100, remaining=0, reset=50`, "0", "2026-11-22T10:05:00Z", "Input-Tokens",
		"Ratelimit-Remaining-Requests", "7", "")
	f.Add("Sunday, 22-Nov-26 10:01:30 GMT", "-1", "0.5", "", "a;r=0;t=99999999999999", "-1", "1795341700", "",
		"Anthropic-Ratelimit-Remaining", "", "try again in 20s")
	f.Add("Sun Nov 22 10:01:45 2026", "1e9", "", "?", "(a b);r=0;t=1", "0", "99999999999999999999999", "Ω \"", "x-ratelimit-remaining-tokens", "-1", "")
	f.Add("1795341603.25", "", "", dateHeader, "", "0.0", "2026-11-22T10:00:03.5+01:00", "tokens-remaining",
		"X-Rate-Limit-Remaining", "99999999999", `{"retry_after":1e400}`)
	f.Add("1795341603000", "1795341603", "", "Thu, 01 Jan 1970 00:00:00 GMT", "", "0, 57", "1, 60", "Requests",
		"Ratelimit-Remainings", "", `[{"error":{"details":[{"retryDelay":"3.5s"}]}}]`)
	f.Add("PT1M20.5S", "", "", "", "", "0;w=1", "9999-12-31T23:59:59Z", "Requests", "Ratelimit-Remainings", "", "data: {\"retryAfter\":\"PT\"}")
	f.Add("5, 30", "", "", dateHeader, "", "0", "1795341700123", strings.Repeat("a", 65), "X-Ratelimit-Remaining-", "",
		"please wait 5 parsecs, retry in 1 minute and 2 seconds")
	f.Add("Sun, 22 Nov 2026 10:02:00 GMT, Sun, 22 Nov", "NaN", "+Inf", dateHeader, "", "0", "1795341700123456789", "", "Age", "", `{"retry_after":`)
	f.Fuzz(func(t *testing.T, after, millis, azure, date, items, remaining, reset, dimension, field, age, body string) {
		h := http.Header{}
		for _, v := range [][2]string{
			{"Retry-After", after},
			{"Retry-After-Ms", millis},
			{"X-Ms-Retry-After-Ms", azure},
			{"Date", date},
			{"Age", age},
			{"Ratelimit", items},
			{"X-Ratelimit-Remaining-" + dimension, remaining},
			{"X-Ratelimit-Reset-" + dimension, reset},
			{"Anthropic-Ratelimit-" + dimension + "-Remaining", remaining},
			{"Anthropic-Ratelimit-" + dimension + "-Reset", reset},
			{"X-Rate-Limit-Reset", reset},
			{"Ratelimit-Reset", reset},
			{field, remaining},
		} {
			if key := http.CanonicalHeaderKey(v[0]); v[1] != "" && h[key] == nil {
				h[key] = []string{v[1]}
			}
		}
		a := httpthrottle.Answer{Status: 429, Header: h, Body: []byte(body), At: came}
		d, limit, ok := a.RetryAfter()
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, farthest)
		require.Regexp(t, name, limit)
		if !ok {
			require.Zero(t, d)
			require.Empty(t, limit)
		}
		for _, key := range []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
			h.Add(key, "?")
		}
		again, limitAgain, _ := a.RetryAfter()
		require.Equal(t, d, again, "a malformed field counts")
		require.Equal(t, limit, limitAgain)
		h.Del("Retry-After-Ms")
		h.Del("Age")
		for _, v := range []struct {
			key, value string
			want       time.Duration
		}{{"X-Ms-Retry-After-Ms", "1250", 1250 * time.Millisecond}, {"Retry-After-Ms", "0750.5", 750500 * time.Microsecond}} {
			h.Set(v.key, v.value)
			d, limit, ok = a.RetryAfter()
			require.True(t, ok)
			require.Empty(t, limit)
			require.Equal(t, v.want, d, "%s comes before all that is said elsewhere", v.key)
		}
	})
}

// More of a number is never less of a wait, read as the same kind of number, and nobody comes back early.
func FuzzNumbers(f *testing.F) {
	f.Add(uint64(0), uint64(1), uint32(0))
	f.Add(uint64(999_999_999), uint64(999_999_998), uint32(500_000_000))
	f.Add(uint64(1795341603), uint64(1795341604), uint32(1))
	f.Add(uint64(1795341603000), uint64(1795341603001), uint32(999_999_999))
	f.Add(uint64(1795341603000000), uint64(1<<63), uint32(0))
	f.Fuzz(func(t *testing.T, x, y uint64, fraction uint32) {
		x, y = min(x, y), max(x, y)
		read := func(header, value string) time.Duration {
			d, _, ok := httpthrottle.Answer{Status: 429, Header: http.Header{header: {value}}, At: came}.RetryAfter()
			require.True(t, ok)
			return d
		}
		kind := func(n uint64) (kinds int) {
			for _, from := range []uint64{1e9, 1e11, 1e14, 1e17} {
				if n >= from {
					kinds++
				}
			}
			return kinds
		}
		for _, header := range []string{"Retry-After", "Retry-After-Ms"} {
			low, high := read(header, fmt.Sprint(x)), read(header, fmt.Sprint(y))
			more := read(header, fmt.Sprintf("%d.%09d", x, fraction))
			require.GreaterOrEqual(t, more, low, "cut off")
			if kind(x) == kind(y) {
				require.GreaterOrEqual(t, high, low)
			}
			if x != y && kind(x) == kind(x+1) {
				require.LessOrEqual(t, more, read(header, fmt.Sprint(x+1)))
			}
		}
		if kind(x) == 1 { // seconds since 1970
			want := time.Unix(int64(x), int64(fraction%1e9)).Sub(came)
			require.Equal(t, min(max(want, 0), farthest), read("Retry-After", fmt.Sprintf("%d.%09d", x, fraction%1e9)))
		}
	})
}

// Whatever the body of a refusal is, packed or not, it stays a refusal of a known class, and only names
// are taken over.
func FuzzRefusalBody(f *testing.F) {
	f.Add([]byte(`{"error":{"code":"insufficient_quota","type":"x","message":"m"}}`), 429, "gzip")
	f.Add([]byte(`[{"error":{"code":429,"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"3.5s"},{"violations":[{"quotaId":"PerDay"}]}]}}]`), 429, "")
	f.Add([]byte(`{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`), 529, "deflate")
	f.Add([]byte(`{"error":{"message":"limit: 0, limit: 0."}}`), 503, "gzip, gzip")
	f.Add([]byte(`{"error":"busy"}`), 500, "br")
	f.Add([]byte(`"{\"error\":\"{\\\"code\\\":1113}\"}"`), 402, "")
	f.Add([]byte("\xff\xfe{\x00}\x00"), 429, "")
	f.Add(packed("gzip", `{"detail":"insufficient_quota"}`), 429, "gzip")
	f.Add(packed("deflate", `{"detail":"insufficient_quota"}`)[:20], 429, "deflate")
	f.Add([]byte(strings.Repeat(`{"a":[`, 100)), 429, "")
	classifiers := []httpthrottle.Classifier{
		httpthrottle.Generic, httpthrottle.OpenAI, httpthrottle.Azure, httpthrottle.Anthropic, httpthrottle.Gemini,
	}
	f.Fuzz(func(t *testing.T, body []byte, status int, coding string) {
		for i, classify := range classifiers {
			header := http.Header{"Content-Encoding": {coding}}
			r, refused := classify(httpthrottle.Answer{Status: status, Header: header, Body: body, At: came})
			reported := status == 429 || status == 420 || status == 503 || status == 529 || status == 498 && i > 0
			require.False(t, reported && !refused, "a status alone is enough")
			require.False(t, refused && status < 400)
			if !refused {
				require.Zero(t, r)
				continue
			}
			require.Contains(t, []httpthrottle.Class{httpthrottle.Wait, httpthrottle.Overload, httpthrottle.Stop}, r.Class)
			require.False(t, r.Class == httpthrottle.Overload && status == 429)
			require.False(t, r.Class == httpthrottle.Stop && i == 0, "Generic has no such class")
			require.GreaterOrEqual(t, r.RetryAfter, time.Duration(0))
			require.LessOrEqual(t, r.RetryAfter, farthest)
			require.Regexp(t, name, r.Code)
			require.Regexp(t, name, r.Dimension)
		}
	})
}

// packed returns a text in a compression.
func packed(coding, text string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	switch coding {
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw deflate":
		w, _ = flate.NewWriter(&b, flate.BestSpeed)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}
