package opening

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Quotas stand in the file or in a variable, and are shown in one line.
func TestQuotasAreRead(t *testing.T) {
	want := throttle.Quotas{
		Tags:  map[string]throttle.Quota{"acme": {Reserved: 200, Total: 400, Budgets: []throttle.Budget{{Amount: 5e6, Per: "day"}}}},
		Match: []throttle.QuotaPattern{{Tag: "free/*", Quota: throttle.Quota{Total: 10, Per: time.Minute, Class: throttle.ClassBatch}}},
		Other: throttle.Quota{Total: 50},
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`max: 1000
quotas:
  tags:
    acme: {reserved: 200, total: 400, budgets: [{amount: 5e6, per: day}]}
  match: [{tag: "free/*", total: 10, per: 1m, class: batch}]
  other: {total: 50}
`), 0o600))
	t.Setenv("NUMATHROTTLE_CONFIG", path)
	c, err := Load()
	require.NoError(t, err)
	require.Equal(t, want, c.Quotas)
	shown := showQuotas(c.Quotas)
	require.JSONEq(t, `{"tags":{"acme":{"reserved":200,"total":400,"budgets":[{"amount":5000000,"per":"day"}]}},
		"match":[{"tag":"free/*","total":10,"per":"1m0s","class":"batch"}],"other":{"total":50}}`, shown)
	require.NotContains(t, shown, "\n")

	t.Setenv("NUMATHROTTLE_QUOTAS", "tags: {beta: {total: 7}}")
	c, err = Load()
	require.NoError(t, err)
	require.Equal(t, throttle.Quotas{Tags: map[string]throttle.Quota{"beta": {Total: 7}}}, c.Quotas)
}

func TestQuotasThatCannotBe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	for name, test := range map[string]struct{ file, want string }{
		"an unknown key": {
			"max: 10\nquotas:\n  tags:\n    acme: {resrved: 1}\n",
			"quotas.tags.acme.resrved is not a setting; did you mean reserved? (FILE:4), allowed: one of ",
		},
		"too much": {"max: 10\nquotas: {tags: {acme: {reserved: 11}}}\n", "quotas reserve 11 tokens per second together, allowed: at most the limit"},
		"too much of a hard limit": {
			"max: 100\nhard: true\nquotas: {tags: {acme: {reserved: 90}}}\n",
			"quotas reserve 90 tokens per second together, allowed: at most what the hard limit grants in the long run, which is 84",
		},
		"out of bounds":   {"max: 10\nquotas: {tags: {acme: {reserved: -1}}}\n", "quotas.tags.acme.reserved is -1, allowed: 0 to the limit"},
		"no limit":        {"quotas: {other: {total: 1}}\n", "quotas are set, but there is no limit, allowed: a limit with quotas: max of 1 or more"},
		"no limit at all": {"quotas: {}\n", "quotas are set, but there is no limit"},
		"even":            {"max: 10\npolicy: even\nquotas: {}\n", "policy is even, but quotas divide the limit by what tags ask for"},
		"static": {
			"max: 10\nstore: static://?replicas=2\nquotas: {}\n",
			"quotas are set, but the store is static (FILE:3; store: FILE:2), allowed: none with static://",
		},
		"empty": {"max: 10\nquotas:\n", "quotas is empty (FILE:2)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(test.file), 0o600))
			t.Setenv("NUMATHROTTLE_CONFIG", path)
			_, err := Load()
			require.Error(t, err)
			require.Contains(t, strings.ReplaceAll(err.Error(), path, "FILE"), test.want)
			require.Len(t, strings.Split(err.Error(), "\n"), 1)
		})
	}
	_, err := InFlight(t.Context(), 5, Config{Policy: PolicyEven, Quotas: throttle.Quotas{Other: throttle.Quota{Total: 7, Reserved: 6}}})
	require.EqualError(t, err, "numathrottle: quotas reserve 6 calls in flight together, allowed: at most the limit, which is 5\n"+
		"numathrottle: policy is even, but quotas divide the limit by what tags ask for, allowed: `fair` with quotas")
}

// What is configured holds for what draws.
func TestQuotasHold(t *testing.T) {
	th, err := Open(t.Context(), Config{
		Limit: throttle.Limit{Max: 1_000_000, Burst: 1_000_000}, Store: "memory://quotas", Pool: "p", ID: "i",
		Quotas: throttle.Quotas{Tags: map[string]throttle.Quota{"acme": {Total: 100}}},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, th.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	acme := th.ForTag("acme")
	_, err = acme.Acquire(ctx, 1)
	require.NoError(t, err)
	_, ok := acme.TryAcquire(100_000)
	require.False(t, ok, "a hundred a second")
	_, err = th.Acquire(ctx, 100_000)
	require.NoError(t, err, "others have no total")
}
