package account_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// What a service announces shows in metrics, in the unit of the limit with that name, and a limit that is too high is warned of once.
func TestAnnouncedLimits(t *testing.T) {
	for _, tc := range []struct {
		name     string
		config   account.Config
		headers  map[string]string
		lines    []string
		warnings []string // of each line a part
	}{
		{
			"OpenAI: requests of a day, tokens of a minute",
			account.Config{Provider: profile.OpenAI, TokensPerMinute: 250_000},
			map[string]string{
				"X-Ratelimit-Limit-Requests": "10000", "X-Ratelimit-Remaining-Requests": "9999", "X-Ratelimit-Reset-Requests": "8.64s",
				"X-Ratelimit-Limit-Tokens": "200000", "X-Ratelimit-Remaining-Tokens": "199971", "X-Ratelimit-Reset-Tokens": "8ms",
			},
			[]string{
				`numathrottle_announced_limit{limit="acct/requests-day"} 10000`, `numathrottle_announced_remaining{limit="acct/requests-day"} 9999`,
				`numathrottle_announced_limit{limit="acct/tokens"} 200000`, `numathrottle_announced_remaining{limit="acct/tokens"} 199971`,
			},
			[]string{"acct/tokens"},
		},
		{
			"OpenAI: two requests a second",
			account.Config{Provider: profile.OpenAI, RequestsPerMinute: 120},
			map[string]string{"X-Ratelimit-Limit-Requests": "2", "X-Ratelimit-Remaining-Requests": "1", "X-Ratelimit-Reset-Requests": "500ms"},
			[]string{`numathrottle_announced_limit{limit="acct/requests"} 120`, `numathrottle_announced_remaining{limit="acct/requests"} 60`},
			nil,
		},
		{
			"Anthropic: both kinds of tokens, and not their sum",
			account.Config{Provider: profile.Anthropic, InputTokensPerMinute: 400_000, OutputTokensPerMinute: 30_000},
			map[string]string{
				"Anthropic-Ratelimit-Tokens-Limit": "480000", "Anthropic-Ratelimit-Input-Tokens-Limit": "400000",
				"Anthropic-Ratelimit-Output-Tokens-Limit": "80000",
			},
			[]string{`numathrottle_announced_limit{limit="acct/input"} 400000`, `numathrottle_announced_limit{limit="acct/output"} 80000`},
			[]string{"acct/output"},
		},
		{
			"Azure: slices, and no figure",
			account.Config{Provider: profile.Azure, RequestsPerMinute: 120},
			map[string]string{"X-Ratelimit-Limit-Requests": "20", "X-Ratelimit-Limit-Tokens": "-1"},
			nil, nil,
		},
		{
			"a gateway's headers",
			account.Config{Provider: profile.OpenRouter, TokensPerMinute: 5000},
			map[string]string{"X-Ratelimit-Limit-Tokens": "200000"},
			nil, nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/bad" { // only answers announce limits
					w.Header().Set("X-Ratelimit-Limit-Tokens", "7")
					w.Header().Set("Anthropic-Ratelimit-Input-Tokens-Limit", "7")
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				for name, value := range tc.headers {
					w.Header().Set(name, value)
				}
			}))
			defer s.Close()
			var log bytes.Buffer
			at := testenv.ClosedPort(t)
			tc.config.Pool.Store, tc.config.Pool.Pool, tc.config.Pool.ID, tc.config.Pool.HealthAddr = "memory://announced", "acct", "one", at
			l, err := account.Open(t.Context(), tc.config, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			log.Reset()
			tr := l.Transport(nil)
			for range 3 {
				post(t, tr, s.URL, `{"max_tokens":1}`)
			}
			post(t, tr, s.URL+"/bad", `{"max_tokens":1}`)
			metrics := string(get(t, "http://"+at+"/metrics"))
			for _, line := range tc.lines {
				require.Contains(t, metrics, line+"\n")
			}
			require.Equal(t, len(tc.lines), strings.Count(metrics, "\nnumathrottle_announced_"), metrics)
			require.Equal(t, len(tc.warnings), strings.Count(log.String(), "announces"), log.String())
			for _, of := range tc.warnings {
				require.Contains(t, log.String(), of)
			}
		})
	}
}

func get(t testing.TB, url string) []byte {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return text
}
