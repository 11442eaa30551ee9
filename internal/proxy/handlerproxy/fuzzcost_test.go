package handlerproxy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/costrule"
)

// fuzzCost reads a rule, and has it look at a message.
func fuzzCost(t *testing.T, rule string, payload []byte, header string) {
	t.Helper()
	cost, ok := parseCost(rule)
	if !ok || cost == nil {
		return
	}
	unreadable := func(string, string) int { return costrule.Ungrantable }
	n := cost(func() []byte { return payload }, func() map[string]string { return map[string]string{"X-Cost": header} }, unreadable)
	require.GreaterOrEqual(t, n, 0)
}

// Whatever a rule and a payload are, there is a cost, or a refusal.
func FuzzCosts(f *testing.F) {
	for _, rule := range []string{"", "1", "5", "bytes/10", "header X-Cost", "json a.b", "json items.0.size"} {
		f.Add(rule, []byte(`{"a":{"b":1e2},"items":[{"size":-4.2}]}`), "99999999999")
	}
	f.Add("json a", []byte(`{"a":"NaN"}`), "5e2")
	f.Fuzz(func(t *testing.T, rule string, payload []byte, header string) { fuzzCost(t, rule, payload, header) })
}
