package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSettingsOfAProxy(t *testing.T) {
	tm := newTerminal(nil, "NUMATHROTTLE_PROXY_KIND=map", "NUMATHROTTLE_PROXY_COST=bytes/1000", "NUMATHROTTLE_MAX=5",
		"NUMATHROTTLE_STORE_PASSWORD="+canary, "NUMATHROTTLE_ID=i")
	_, err := tm.run(t, "proxy", "handler", "--check", "--max", "20", "--per=1m", "--pool=p", "--store=redis://u:"+canary+"@h",
		"--on-denied=nack", "--max-wait=8s")
	require.ErrorContains(t, err, "storePassword")
	require.ErrorContains(t, err, "which all users of the machine would see")
	out, err := tm.run(t, "proxy", "handler", "--check", "--max", "20", "--per=1m", "--pool=p", "--store=redis://h", "--on-denied=nack", "--max-wait=8s")
	require.NoError(t, err)
	for _, line := range []string{
		`kind: "map"`, `cost: "bytes/1000"`, `onDenied: "nack"`, `maxWait: "8s"`, `max: "20"`, `per: "1m"`, `pool: "p"`, `store: "redis://h"`,
		"storePassword: (set, not shown)",
	} {
		require.Contains(t, out, line+"  # ")
	}
}

func TestAProxyWithWrongSettings(t *testing.T) {
	for want, args := range map[string][]string{
		"kind is not set, allowed: one of map, batchmap": {"--max=1"},
		`kind is "reduce"`:                       {"--kind=reduce"},
		`cost is "free"`:                         {"--kind=map", "--cost=free"},
		`max is "-1"`:                            {"--kind=map", "--max=-1"},
		"--maxx is no flag; did you mean --max?": {"--maxx=1"},
		"is no command or argument":              {"map"},
	} {
		_, err := newTerminal(nil).run(t, append([]string{"proxy", "handler"}, args...)...)
		require.ErrorContains(t, err, want)
	}
	_, err := newTerminal(nil, "NUMATHROTTLE_PROXY_KNID=map").run(t, "proxy", "handler")
	require.ErrorContains(t, err, "did you mean NUMATHROTTLE_PROXY_KIND?")
}

// The HTTP proxy takes max as a number, or as the limits that the service announces, from a flag, a variable and a file.
func TestTheAnnouncedLimitsOfAProxy(t *testing.T) {
	run := func(args ...string) (string, error) {
		return newTerminal(nil).run(t, append([]string{"proxy", "http", "--check", "--upstream=http://h", "--store=memory://x"}, args...)...)
	}
	out, err := run("--provider=openai", "--max=announced", "--requests-per-minute=60")
	require.NoError(t, err)
	require.Contains(t, out, `max: "announced"  # `)
	_, err = run("--provider=openai", "--max=announced")
	require.NoError(t, err, "no other limit is needed")
	out, err = run("--max=20")
	require.NoError(t, err)
	require.Contains(t, out, `max: "20"  # `)
	out, err = newTerminal(nil, "NUMATHROTTLE_MAX=announced").run(t, "proxy", "http", "--check", "--upstream=http://h", "--store=memory://x", "--max=20")
	require.NoError(t, err, "the flag replaces the variable")
	require.Contains(t, out, `max: "20"  # `)
	for want, args := range map[string][]string{
		"max is announced, but openrouter announces no limits (--max), allowed: with `openai`": {"--provider=openrouter", "--max=announced"},
		"max is announced, but self-hosted announces no limits":                                {"--max=announced", "--tokens-per-minute=5"},
		"max is announced, beside per or another setting":                                      {"--provider=openai", "--max=announced", "--per=1m"},
		"max is announced, but the store is static": {
			"--provider=groq", "--max=announced", "--store=static://?replicas=2",
		},
		"max is \"announce\" (--max), allowed: a whole number, 0 to 1000000000, or `announced`": {"--provider=openai", "--max=announce"},
	} {
		_, err := run(args...)
		require.ErrorContains(t, err, want)
	}
}

// Quotas of proxies name limits that are set, and nothing else.
func TestTheQuotasOfAProxy(t *testing.T) {
	run := func(kind, quotas string, args ...string) (string, error) {
		args = append([]string{"proxy", kind, "--check", "--store=memory://x", "--quotas=" + quotas}, args...)
		if kind == "http" {
			args = append(args, "--upstream=http://h")
		}
		return newTerminal(nil).run(t, args...)
	}
	const requests = "{tags: {acme: {requestsPerMinute: 50}}}"
	for _, kind := range []string{"http", "permits"} {
		out, err := run(kind, requests, "--requests-per-minute=600", "--max=5")
		require.NoError(t, err)
		require.Contains(t, out, "requestsPerMinute: 50")
		out, err = run(kind, "{tags: {acme: {reserved: 2}}}", "--max=5")
		require.NoError(t, err)
		require.Contains(t, out, `acme`)
		_, err = run(kind, requests, "--max=5")
		require.ErrorContains(t, err, "quotas name requestsPerMinute, but there is no such limit")
		_, err = run(kind, "{tags: {acme: {requestsPerMinute: {reserved: 700}}}}", "--requests-per-minute=600")
		require.ErrorContains(t, err, "quotas of requestsPerMinute cannot be kept: quotas reserve 11.6667 tokens per second together")
		_, err = run(kind, requests, "--requests-per-minute=600", "--policy=even")
		require.ErrorContains(t, err, "policy is even")
	}
	_, err := run("permits", "{tags: {acme: {tokensPerMinute: 50}}}", "--max=5")
	require.ErrorContains(t, err, "quotas.tags.acme.tokensPerMinute is not a setting")
	llm := []string{"--provider=openai", "--tokens-per-minute=5000", "--requests-per-minute=600"}
	_, err = run("http", "{tags: {acme: {requestsPerMinute: 50, tokensPerMinute: {total: 800}}}, other: {tokensPerMinute: 500}}", llm...)
	require.NoError(t, err)
	_, err = run("http", "{tags: {acme: {budget: {amount: 25, per: day}}}}", llm...)
	require.ErrorContains(t, err, "quotas name budget, without prices")
	_, err = run("http", "{tags: {acme: {budget: {amount: 0}}}}", append(llm, "--prices={m: {output: 1}}")...)
	require.ErrorContains(t, err, "quotas.tags.acme.budget.amount is not above 0")
	_, err = run("http", "{tags: {acme: {budget: {amount: 2.5}}}}", append(llm, "--prices={m: {output: 1}}")...)
	require.NoError(t, err)
}

func TestAProxyWithoutAHandler(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	_, err := newTerminal(nil).run(t, "proxy", "handler", "--kind=sink", "--max=5", "--handler-wait=1s", "--state-dir=none",
		"--socket="+filepath.Join(dir, "p"), "--server-info="+filepath.Join(dir, "pi"),
		"--handler-socket="+filepath.Join(dir, "h"), "--handler-server-info="+filepath.Join(dir, "hi"))
	require.ErrorContains(t, err, "the handler is not up after 1s")
	require.Less(t, time.Since(began), 8*time.Second)
}
