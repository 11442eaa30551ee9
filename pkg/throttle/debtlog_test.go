package throttle

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// The log has the debt that was forgiven, and nothing if none was.
func TestForgivenDebtIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		th := full(t, 10, WithName("llm"), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.Zero(t, th.ForgiveDebt())
		require.Empty(t, log.String())
		require.NoError(t, Charge(th, 15))
		require.InDelta(t, 5, th.ForgiveDebt(), 1e-3)
		require.Contains(t, log.String(), "limit=llm tokens=5")
	})
}
