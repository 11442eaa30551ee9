package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	ucli "github.com/urfave/cli/v3"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/httpproxy"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/permits"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// podsFile is a file of pods that run a proxy, with a quota of each limit and one that names no limit.
const podsFile = `
store: redis://h
pool: llm
upstream: https://api.example.com
provider: openai
model: some
tokensPerMinute: 60000
requestsPerMinute: 600
inFlight: 8
prices: {m: {input: 1, output: 2}}
tag: header x-team
quotas:
  tags:
    acme: {tokensPerMinute: {reserved: 20000}, requestsPerMinute: 300, inFlight: {reserved: 4, total: 6}, budget: {amount: 25, per: day}}
    beta: {total: 7}
`

// Commands that look at pools take the file and the variables of the pods, whatever program they run, and the quotas of each pool.
func TestCommandsTakeThePodsSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pods.yaml")
	require.NoError(t, os.WriteFile(path, []byte(podsFile), 0o600))
	environ := []string{"NUMATHROTTLE_PROXY_UPSTREAM=https://other", "NUMATHROTTLE_PROXY_IN_FLIGHT=8", "NUMATHROTTLE_CONFIG=" + path}
	tm := newTerminal(nil, environ...)
	conf, quotas, err := tm.load(&ucli.Command{})
	require.NoError(t, err)
	require.Equal(t, "llm", conf.Pool)
	for pool, want := range map[string]struct{ reserved, total int }{
		"llm/tokens": {20000, 0}, "llm/requests": {0, 300}, "llm/in-flight": {4, 6}, "llm/money": {}, "llm": {}, "tokens": {}, "llm/input": {},
	} {
		acme := quotas(pool).Tags["acme"]
		require.Equal(t, want.reserved, acme.Reserved, pool)
		require.Equal(t, want.total, acme.Total, pool)
		require.Equal(t, pool == "llm/money", len(acme.Budgets) == 1, pool)
		main := pool == "llm" || pool == "tokens" || pool == "llm/input"
		require.Equal(t, main, quotas(pool).Tags["beta"].Total == 7, pool)
	}
	store := memstore.New()
	join(store, "llm/in-flight", "a", "", driver.Whole, 1).sync(t)
	for _, args := range [][]string{{"pools"}, {"status", "llm/in-flight"}, {"--pool", "llm/in-flight", "top"}, {"why", "llm/in-flight"}} {
		_, err := newTerminal(store, environ...).run(t, args...)
		require.NoError(t, err, args)
	}
	_, err = newTerminal(nil, environ...).run(t, "check")
	require.ErrorContains(t, err, "upstream is not a setting", "it reads what FromEnv reads")
}

// What can hardly be anything but a misspelt setting of the store or the pool is a fault; no setting of another program is one.
func TestMisspeltSettingsOfTheStore(t *testing.T) {
	for name, environ := range map[string][]string{
		"stoer is not a setting; did you mean store?": nil, "NUMATHROTTLE_STOER": {"NUMATHROTTLE_STOER=redis://h"},
		"NUMATHROTTLE_POOLS": {"NUMATHROTTLE_POOLS=p"},
	} {
		if environ == nil {
			path := filepath.Join(t.TempDir(), "pods.yaml")
			require.NoError(t, os.WriteFile(path, []byte("stoer: redis://h\n"), 0o600))
			environ = []string{"NUMATHROTTLE_CONFIG=" + path}
		}
		_, _, err := newTerminal(nil, environ...).load(&ucli.Command{})
		require.ErrorContains(t, err, name)
	}
	var others []string
	for _, f := range httpproxy.Fields() {
		others = append(others, f.Key)
	}
	for _, f := range permits.Fields() {
		others = append(others, f.Key)
	}
	for _, program := range []string{"llm-map", "http-sink"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "examples", program, "README.md"))
		require.NoError(t, err)
		settings := regexp.MustCompile("(?m)^\\| `(\\w+)`<br>`(\\w+)`").FindAllSubmatch(page, -1)
		require.NotEmpty(t, settings, program)
		for _, name := range settings {
			others = append(others, string(name[1]))
		}
	}
	known := opening.Fields()
	for _, key := range others {
		if slices.ContainsFunc(known, func(f config.Field[*opening.Config]) bool { return f.Key == key }) {
			continue
		}
		path := filepath.Join(t.TempDir(), "pods.yaml")
		require.NoError(t, os.WriteFile(path, []byte(key+": [1]\nstore: redis://h\n"), 0o600))
		_, _, err := newTerminal(nil, "NUMATHROTTLE_CONFIG="+path).load(&ucli.Command{})
		require.NoError(t, err, key)
	}
}
