package announce

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// header makes a header of lines such as "limit-tokens: 5"; x-ratelimit- is put before names that begin with limit, remaining or reset.
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		for _, subject := range [...]string{"limit-", "remaining-", "reset-"} {
			if strings.HasPrefix(name, subject) {
				name = "x-ratelimit-" + name
			}
		}
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return h
}

// three are the headers of one limit with OpenAI's names.
func three(name, limit, remaining, reset string) []string {
	return []string{"limit-" + name + ": " + limit, "remaining-" + name + ": " + remaining, "reset-" + name + ": " + reset}
}

// of returns a figure with a remainder.
func of(kind Kind, per time.Duration, limit, remaining int64, reset time.Duration) Figure {
	return Figure{Kind: kind, Per: per, Limit: limit, Remaining: remaining, HasRemaining: true, Reset: reset}
}

// bare returns a figure of which only the limit is known.
func bare(kind Kind, per time.Duration, limit int64) Figure {
	return Figure{Kind: kind, Per: per, Limit: limit}
}

func TestTheTableOfDialects(t *testing.T) {
	for name, test := range map[string]struct {
		dialect Dialect
		lines   []string
		want    []Figure
	}{
		"row 15": {OpenAI, three("requests", "10000", "9999", "8.64s"), []Figure{of(Requests, day, 10000, 9999, 8640*time.Millisecond)}},
		"row 16": {
			OpenAI, append(three("requests", "60", "59", "1s"), three("tokens", "200000", "199971", "8ms")...),
			[]Figure{of(Requests, time.Minute, 60, 59, time.Second), of(Tokens, time.Minute, 200000, 199971, 8*time.Millisecond)},
		},
		"row 17": {
			Groq, append(three("requests", "14400", "14370", "2m59.56s"), three("tokens", "18000", "17997", "7.66s")...),
			[]Figure{of(Requests, day, 14400, 14370, 179560*time.Millisecond), of(Tokens, time.Minute, 18000, 17997, 7660*time.Millisecond)},
		},
		"row 18": {Azure, []string{"limit-requests: 20", "limit-tokens: -1"}, []Figure{bare(Requests, 0, 20)}},
		"row 19": {
			Anthropic,
			[]string{
				"anthropic-ratelimit-tokens-limit: 480000", "anthropic-ratelimit-input-tokens-limit: 400000",
				"anthropic-ratelimit-output-tokens-limit: 80000",
			},
			[]Figure{bare(Input, time.Minute, 400000), bare(Output, time.Minute, 80000)},
		},
		"Groq's requests are for a day also when the limit is full": {
			Groq, three("requests", "1000", "1000", "0s"), []Figure{of(Requests, day, 1000, 1000, 0)},
		},
		"OpenAI's tokens of a project are fewer": {
			OpenAI, append(three("tokens", "2000000", "1500000", "15s"), three("project-tokens", "900000", "899000", "66ms")...),
			[]Figure{of(Tokens, time.Minute, 900000, 899000, 15*time.Second)},
		},
		"OpenAI's tokens of a project are more, but nearly used up": {
			OpenAI, append(three("tokens", "200000", "199000", "300ms"), three("project-tokens", "900000", "7", "59.9s")...),
			[]Figure{of(Tokens, time.Minute, 200000, 7, 59900*time.Millisecond)},
		},
		"OpenAI tells only what remains to the project": {
			OpenAI,
			[]string{"limit-tokens: 200000", "limit-project-tokens: 900000", "remaining-project-tokens: 7"},
			[]Figure{of(Tokens, time.Minute, 200000, 7, 0)},
		},
		"OpenAI's tokens of a project alone": {OpenAI, []string{"limit-project-tokens: 40000"}, []Figure{bare(Tokens, time.Minute, 40000)}},
		"Azure with whole seconds": {
			Azure, append(three("requests", "30", "29", "10"), three("tokens", "120000", "118500", "60")...),
			[]Figure{of(Requests, 0, 30, 29, 10*time.Second), of(Tokens, time.Minute, 120000, 118500, time.Minute)},
		},
		"Azure says nothing":             {Azure, append(three("requests", "-1", "-1", "0"), three("tokens", "0", "0", "0")...), nil},
		"Azure's remainder says nothing": {Azure, []string{"limit-tokens: 5000", "remaining-tokens: -1"}, []Figure{bare(Tokens, time.Minute, 5000)}},
		"Anthropic's sum alone, beside tiers of their own": {
			Anthropic,
			[]string{
				"anthropic-ratelimit-requests-limit: 50", "anthropic-ratelimit-requests-remaining: 49",
				"anthropic-ratelimit-requests-reset: 2026-11-29T12:00:01Z",
				"anthropic-ratelimit-tokens-limit: 30000", "anthropic-ratelimit-tokens-remaining: 28000",
				"anthropic-ratelimit-tokens-reset: 2026-11-29T14:00:04.25+02:00",
				"anthropic-fast-input-tokens-limit: 7", "anthropic-priority-output-tokens-limit: 7",
			},
			[]Figure{of(Requests, time.Minute, 50, 49, time.Second), of(Tokens, time.Minute, 30000, 28000, 4250*time.Millisecond)},
		},
		"Anthropic's sum beside an input that says nothing": {
			Anthropic, []string{"anthropic-ratelimit-tokens-limit: 30000", "anthropic-ratelimit-input-tokens-limit: 0"}, nil,
		},
		"Mistral": {
			Mistral,
			[]string{
				"limit-req-minute: 720", "remaining-req-minute: 717", "limit-tokens-minute: 5000000", "remaining-tokens-minute: 4999911",
				"limit-tokens-5-minute: 9000000", "remaining-tokens-5-minute: 8999911", "limit-tokens-month: 1000000000",
			},
			[]Figure{
				of(Requests, time.Minute, 720, 717, 0), of(Tokens, time.Minute, 5000000, 4999911, 0), of(Tokens, 5*time.Minute, 9000000, 8999911, 0),
			},
		},
		"Mistral's older names": {
			Mistral,
			[]string{
				"ratelimitbysize-limit: 500000", "ratelimitbysize-remaining: 499900", "ratelimitbysize-reset: 28",
				"x-ratelimitbysize-limit-minute: 400000", "x-ratelimitbysize-remaining-minute: 399968", "x-ratelimitbysize-limit-month: 1000000000",
			},
			[]Figure{of(Tokens, time.Minute, 400000, 399968, 28*time.Second)},
		},
		"Mistral's plan without a model": {Mistral, []string{"limit-req-minute: 0"}, nil},
		"Cerebras": {
			Cerebras, append(three("requests-day", "14400", "14399", "33011.382867"), three("tokens-minute", "60000", "59000", "11.4")...),
			[]Figure{of(Requests, day, 14400, 14399, 33011382867*time.Microsecond), of(Tokens, time.Minute, 60000, 59000, 11400*time.Millisecond)},
		},
		"Cerebras with all of its limits": {
			Cerebras,
			[]string{
				"limit-tokens-day: 6", "limit-tokens-hour: 5", "limit-tokens-minute: 4", "limit-requests-day: 3", "limit-requests-hour: 2",
				"limit-requests-minute: 1",
			},
			[]Figure{
				bare(Requests, time.Minute, 1), bare(Requests, time.Hour, 2), bare(Requests, day, 3),
				bare(Tokens, time.Minute, 4), bare(Tokens, time.Hour, 5), bare(Tokens, day, 6),
			},
		},
		"Qianfan": {
			Qianfan,
			[]string{
				"limit-requests: 300", "remaining-requests: 299", "limit-input-tokens: 300000", "remaining-input-tokens: 299000",
				"limit-output-tokens: 60000", "remaining-output-tokens: 59000",
			},
			[]Figure{of(Requests, time.Minute, 300, 299, 0), of(Input, time.Minute, 300000, 299000, 0), of(Output, time.Minute, 60000, 59000, 0)},
		},
		"names of another provider": {
			Anthropic, append(three("requests", "60", "59", "1s"), "limit-tokens-minute: 5", "ratelimitbysize-limit: 5"), nil,
		},
		"a gateway without limits": {"", append(three("requests", "60", "59", "1s"), "anthropic-ratelimit-requests-limit: 5", ": 5"), nil},
		"an unknown dialect":       {"gemini", three("requests", "60", "59", "1s"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Read(test.dialect, header(test.lines...), noon))
		})
	}
}

func TestThePeriodOfRequestsIsInferred(t *testing.T) {
	for _, test := range []struct {
		limit, remaining int64
		reset            string
		want             time.Duration // 0: no figure
	}{
		{60, 59, "1s", time.Minute},
		{500, 499, "120ms", time.Minute},
		{3500, 3499, "17ms", time.Minute},
		{10000, 9999, "6ms", time.Minute},
		{30000, 29999, "2ms", time.Minute},
		{5000, 4000, "12s", time.Minute},
		{100, 0, "1m0s", time.Minute},
		{60, 59, "1", time.Minute},
		{10000, 9999, "8.64s", day},
		{200, 199, "7m12s", day},
		{10000, 9990, "1m26.4s", day},
		{200, 0, "24h0m0s", day},
		{3, 2, "8h0m0s", day},
		{3600, 3599, "1s", time.Hour},
		{1000, 900, "6m0s", time.Hour},
		{20, 19, "500ms", 10 * time.Second},
		{20, 10, "5s", 10 * time.Second},
		{50, 49, "20ms", time.Second},
		{2, 1, "500ms", time.Second},
		// The borders: twice and half of each period.
		{10, 9, "12s", time.Minute},
		{10, 9, "12001ms", 0},
		{10, 9, "3s", time.Minute},
		{10, 9, "2999ms", 0},
		{10, 9, "2s", 10 * time.Second},
		{10, 9, "2001ms", 0},
		{10, 9, "500ms", 10 * time.Second},
		{10, 9, "499ms", 0},
		{10, 9, "200ms", time.Second},
		{10, 9, "201ms", 0},
		{10, 9, "50ms", time.Second},
		{10, 9, "49ms", 0},
		{10, 9, "12m", time.Hour},
		{10, 9, "12m1s", 0},
		{10, 9, "3m", time.Hour},
		{10, 9, "2m59s", 0},
		{10, 9, "4h48m", day},
		{10, 9, "4h48m1s", 0},
		{10, 9, "1h12m", day},
		{10, 9, "1h11m59s", 0},
		// Nothing to infer it from.
		{60, 60, "1s", 0},
		{60, 61, "1s", 0},
		{60, -1, "1s", 0},
		{60, 59, "", 0},
		{60, 59, "0s", 0},
		{60, 59, "-1s", 0},
		{60, 59, "soon", 0},
		{1000, 999, "1ms", time.Second},
		{1000, 999, "999us", 0},
		{100000, 99990, "1ms", 10 * time.Second},
		{100000, 99990, "999us", 0},
		{1e12, 1e12 - 1, "8.64s", 0},
		{1e12, 0, "24h", day},
	} {
		h := header(three("requests", fmt.Sprint(test.limit), fmt.Sprint(test.remaining), test.reset)...)
		got := Read(OpenAI, h, noon)
		if test.want == 0 {
			require.Empty(t, got, "%+v", test)
			continue
		}
		require.Len(t, got, 1, "%+v", test)
		require.Equal(t, test.want, got[0].Per, "%+v", test)
		require.Equal(t, test.limit, got[0].Limit)
		require.Equal(t, test.remaining, got[0].Remaining)
	}
	require.Empty(t, Read(OpenAI, header("limit-requests: 60", "reset-requests: 1s"), noon), "without a remainder")
	require.Empty(t, Read(OpenAI, header("limit-requests: 60", "remaining-requests: 59"), noon), "without a reset")
}

func TestWhatIsNoNumber(t *testing.T) {
	for _, value := range []string{
		"", " ", "0", "-0", "-1", "-9223372036854775808", "NaN", "Inf", "-Inf", "1e400", "1e6", "0x10", "1_000", "1,000", "60, 50", "60;w=1", `"60"`,
		"+60", "60.5", "60.", "ten", "٦٠", "６０", "60\x00", "6 0", "60s", "1000000000001", "9223372036854775807", "9223372036854775808",
		"18446744073709551617", "000000000000000000060", strings.Repeat("9", 1000), strings.Repeat("0", 1<<20),
	} {
		require.Empty(t, Read(Groq, header("limit-tokens: "+value), noon), "%.40q", value)
		remaining := Read(Groq, header("limit-tokens: 60", "remaining-tokens: "+value), noon)
		want := bare(Tokens, time.Minute, 60)
		want.HasRemaining = value == "0" // the limit is used up
		require.Equal(t, []Figure{want}, remaining, "%.40q", value)
	}
	for value, want := range map[string]int64{"1": 1, "1000000000000": 1e12, "00000000000000000060": 60} {
		require.Equal(t, []Figure{bare(Tokens, time.Minute, want)}, Read(Groq, header("limit-tokens: "+value), noon), value)
	}
	require.Equal(t, []Figure{bare(Tokens, time.Minute, 60)}, Read(Groq, header("limit-tokens:  60\t"), noon), "space around it")
	require.Equal(t, []Figure{of(Tokens, time.Minute, 60, 60, 0)}, Read(Groq, header("limit-tokens: 60", "remaining-tokens: 99"), noon),
		"no more remains than the limit")
}

func TestResets(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"6m0s": 6 * time.Minute, "120ms": 120 * time.Millisecond, "1s": time.Second, "23h59m59.5s": day - 500*time.Millisecond, "7": 7 * time.Second,
		"7.5": 7500 * time.Millisecond, " 7 ": 7 * time.Second, "744h": 31 * day, "2026-11-29T12:00:30Z": 30 * time.Second,
		"2026-11-29T13:00:30.000000001+01:00": 30*time.Second + 1, "2026-12-30T12:00:00Z": 31 * day,
		// Unknown, or full.
		"": 0, "0": 0, "0s": 0, "-1": 0, "-5s": 0, "NaN": 0, "Inf": 0, "1e400": 0, "1e3": 0, "７": 0, "745h": 0, "99999999999999999999h": 0,
		"2026-11-29T12:00:00Z": 0, "2026-11-29T11:59:59Z": 0, "2026-12-30T12:00:01Z": 0, "9999-12-31T23:59:59Z": 0, "2026-11-29": 0,
		"0000000000000000000000000000000000000007": 7 * time.Second, "00000000000000000000000000000000000000007": 0,
		strings.Repeat("1h", 1000): 0, "1s, 2s": 0,
	} {
		want := Figure{Kind: Tokens, Per: time.Minute, Limit: 60, Reset: want}
		require.Equal(t, []Figure{want}, Read(Groq, header("limit-tokens: 60", "reset-tokens: "+value), noon), "%.40q", value)
	}
}

func TestSeveralLinesOfOneHeader(t *testing.T) {
	for name, test := range map[string]struct {
		dialect Dialect
		lines   []string
		want    []Figure
	}{
		"the lower one": {Groq, []string{"limit-tokens: 60", "limit-tokens: 50", "limit-tokens: 70"}, []Figure{bare(Tokens, time.Minute, 50)}},
		"of those that are numbers": {
			Groq, []string{"limit-tokens: -1", "limit-tokens: 50", "limit-tokens: x"}, []Figure{bare(Tokens, time.Minute, 50)},
		},
		"in pairs": {
			Groq, append(three("tokens", "60", "30", "30s"), three("tokens", "50", "40", "10s")...),
			[]Figure{of(Tokens, time.Minute, 50, 30, 30*time.Second)},
		},
		"a remainder of which nobody knows whose it is": {
			Groq, append(three("tokens", "60", "30", "30s"), "limit-tokens: 50"), []Figure{bare(Tokens, time.Minute, 50)},
		},
		"a remainder of the higher one": {
			Groq,
			[]string{"limit-tokens: 60", "limit-tokens: 50", "remaining-tokens: 55", "remaining-tokens: -1"},
			[]Figure{of(Tokens, time.Minute, 50, 50, 0)},
		},
		"requests of a minute and a day": {
			OpenAI, append(three("requests", "60", "59", "1s"), three("requests", "10000", "9999", "8.64s")...),
			[]Figure{of(Requests, time.Minute, 60, 59, time.Second), of(Requests, day, 10000, 9999, 8640*time.Millisecond)},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, Read(test.dialect, header(test.lines...), noon)) })
	}
}

func FuzzRead(f *testing.F) {
	f.Add("60", "59", "1s", "50")
	f.Add("1e400", "-1", "2026-11-29T12:00:30Z", "NaN")
	f.Add("1000000000000", "999999999999", "8.64s", "٦")
	f.Fuzz(func(t *testing.T, limit, remaining, reset, second string) {
		for d, fields := range dialects {
			h := http.Header{}
			for _, field := range fields {
				h[field.limit] = []string{limit, second}
				h[field.remaining] = []string{remaining, limit}
				h[field.reset] = []string{reset, remaining}
			}
			all := Read(d, h, noon)
			require.Equal(t, all, Read(d, h, noon))
			seen := map[subject]bool{}
			for _, f := range all {
				require.Positive(t, f.Limit)
				require.LessOrEqual(t, f.Limit, int64(1e12))
				require.GreaterOrEqual(t, f.Remaining, int64(0))
				require.LessOrEqual(t, f.Remaining, f.Limit)
				require.True(t, f.HasRemaining || f.Remaining == 0)
				require.True(t, f.Reset >= 0 && f.Reset <= 31*day)
				require.True(t, f.Per >= 0 && f.Per <= day)
				require.False(t, seen[subject{f.Kind, f.Per}])
				seen[subject{f.Kind, f.Per}] = true
				new(Watch).Note("x", f, f.Limit, time.Minute)
			}
		}
	})
}
