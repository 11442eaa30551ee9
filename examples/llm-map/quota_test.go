package main

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/health"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// A tenant's quota from the file or the environment bounds it, wherever the tag stands in a message; a nack says which tenant, why and
// when, and /statusz has a row for each.
func TestQuotasOfTenants(t *testing.T) {
	// A call draws some 50 tokens, and twice that is more than the budget.
	const quotas = "{tags: {acme: {budgets: [{amount: 80, per: month}]}, beta: {}}}"
	for rule, sources := range map[string][]string{"header tenant": {"file"}, "key 1": {"file"}, "json user.tenant": {"file", "variable"}} {
		for _, from := range sources {
			t.Run(rule+" "+from, func(t *testing.T) {
				clearEnv(t)
				at := testenv.ClosedPort(t)
				for name, value := range map[string]string{
					"LLM_MAP_PROVIDER": "self-hosted", "LLM_MAP_BASE_URL": "http://endpoint.invalid/v1", "LLM_MAP_MODEL": "m", "LLM_MAP_MAX_TOKENS": "40",
					"LLM_MAP_TAG": rule, "LLM_MAP_TOKENS_PER_MINUTE": "100000000", "LLM_MAP_MAX_WAIT": "15s", "LLM_MAP_ON_DENIED": "nack",
					"NUMATHROTTLE_STORE": "memory://" + rand.Text(), "NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_ID": "a", "NUMATHROTTLE_HEALTH_ADDR": at,
				} {
					t.Setenv(name, value)
				}
				if from == "file" {
					path := filepath.Join(t.TempDir(), "c.yaml")
					require.NoError(t, os.WriteFile(path, []byte("quotas: "+quotas+"\n"), 0o600))
					t.Setenv("NUMATHROTTLE_CONFIG", path)
				} else {
					t.Setenv("LLM_MAP_QUOTAS", quotas)
				}
				s, err := loadSettings()
				require.NoError(t, err)
				e := answers(refuses(200, "", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)) // without a usage: as drawn
				h := handlerOf(t, opened(t, s), e, nil)
				passed := map[string]int{}
				for range 3 {
					for _, tenant := range []string{"acme", "beta"} {
						out := h.Map(t.Context(), []string{"k", tenant}, datum{
							value: `{"user":{"tenant":"` + tenant + `"}}`, headers: map[string]string{"tenant": tenant},
						}).Items()
						require.Len(t, out, 1)
						nack := out[0].NackOptions()
						if nack == nil {
							passed[tenant]++
							continue
						}
						require.Contains(t, *nack.Reason, `tag "acme"`)
						require.Contains(t, *nack.Reason, "(budget)")
						require.Positive(t, *nack.Delay)
					}
				}
				require.Equal(t, map[string]int{"acme": 1, "beta": 3}, passed)
				require.Equal(t, 4, e.count())
				rows := tagsAt(t, at)
				require.Positive(t, rows["acme"].Used)
				require.LessOrEqual(t, rows["acme"].Used, int64(80))
				require.EqualValues(t, 80, rows["acme"].Budget)
				require.GreaterOrEqual(t, rows["acme"].Spent, rows["acme"].Used, "with what it has in hand")
				require.NotEmpty(t, rows["acme"].By)
				require.Greater(t, rows["beta"].Used, int64(80))
			})
		}
	}
}

// tagsAt returns the tags that a health server shows.
func tagsAt(t *testing.T, at string) map[string]health.Tag {
	t.Helper()
	res, err := http.Get("http://" + at + "/statusz?format=json")
	require.NoError(t, err)
	defer res.Body.Close()
	var status health.Status
	require.NoError(t, json.NewDecoder(res.Body).Decode(&status))
	rows := map[string]health.Tag{}
	for i := range status.Limits {
		for _, tag := range status.Limits[i].Tags {
			rows[tag.Tag] = tag
		}
	}
	return rows
}
