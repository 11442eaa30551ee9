package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A changed file counts for all limits of an account and for its budget, without a restart, and calls are charged by its prices. What needs
// a restart is named. Neither the key of the endpoint nor that of another file is logged.
func TestChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(more string) {
		const always = "provider: openai\nmodel: gpt-4o\nstore: memory://llm-reload\npool: llm\n"
		require.NoError(t, os.WriteFile(path, []byte(always+more), 0o600))
	}
	write("requestsPerMinute: 500\ntokensPerMinute: 100000\napiKey: hunter2-canary\n" +
		"prices: {gpt-4o: {input: 2.5, output: 10}}\nbudget: {amount: 25}\nquotas: {tags: {acme: {tokensPerMinute: 5000}}}\n")
	t.Setenv("NUMATHROTTLE_CONFIG", path)
	t.Setenv("NUMATHROTTLE_ID", "a")
	synctest.Test(t, func(t *testing.T) {
		var out, logs testkit.Book
		p := llmMap
		p.Serve = func(ctx context.Context, s *settings, log *slog.Logger) error {
			targets, all, err := openTargets(ctx, s, log)
			require.NoError(t, err)
			defer func() { require.NoError(t, all.close()) }()
			require.Len(t, targets, 1)
			time.Sleep(30 * time.Second)
			write("requestsPerMinute: 200\ntokensPerMinute: 40000\napiKey: hunter2-canary-2\nmaxTokens: 100\n" +
				"prices: {gpt-4o: {input: 1, output: 4}}\nbudget: {amount: 10}\nquotas: {tags: {acme: {tokensPerMinute: 3000}}}\n")
			time.Sleep(15 * time.Second)
			return nil
		}
		require.NoError(t, p.Run(t.Context(), nil, &out, &logs))
		for _, want := range []string{
			`pool=llm/requests pod=a file=config.yaml@\w+ max=200 per=1m quotas=false`,
			`pool=llm/tokens pod=a file=config.yaml@\w+ max=40000 per=1m quotas=true`,
			`pool=llm/money pod=a file=config.yaml@\w+ max=1000000000 per=1s quotas=true`, "calls are charged by the prices of the changed settings file",
			`settings="apiKey, maxTokens"`,
		} {
			require.Regexp(t, want, logs.String())
		}
		require.NotContains(t, logs.String(), "canary")
	})
}
