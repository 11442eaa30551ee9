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

// A changed file counts for the limits over all requests without a restart. What needs one is named.
func TestChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(more string) {
		require.NoError(t, os.WriteFile(path, []byte("url: https://hooks.example.com/in\nstore: memory://sink-reload\npool: sink\n"+more), 0o600))
	}
	write("max: 50\nmaxRequests: 20\nunit: messages\ninFlight: 8\n")
	t.Setenv("NUMATHROTTLE_CONFIG", path)
	t.Setenv("NUMATHROTTLE_ID", "a")
	synctest.Test(t, func(t *testing.T) {
		var out, logs testkit.Book
		p := httpSink
		p.Serve = func(ctx context.Context, s *settings, log *slog.Logger) error {
			l, err := openLimits(ctx, s, log, func() {})
			require.NoError(t, err)
			defer func() { require.NoError(t, l.close()) }()
			time.Sleep(30 * time.Second)
			write("max: 600\nper: 1m\nmaxRequests: 90\nunit: messages\ninFlight: 4\n")
			time.Sleep(15 * time.Second)
			st := l.pools.rates[0].Status()
			require.InDelta(t, 10, st.Ceiling(), 1e-6)
			st = l.pools.rates[1].Status()
			require.InDelta(t, 1.5, st.Ceiling(), 1e-6)
			return nil
		}
		require.NoError(t, p.Run(t.Context(), nil, &out, &logs))
		require.Contains(t, logs.String(), "settings=inFlight")
	})
}
