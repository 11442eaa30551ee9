package handlerproxy_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/handlerproxy"
)

var update = flag.Bool("update", false, "write the table of settings into the page anew")

func TestSettingsPage(t *testing.T) {
	const page = "../../docs/any-language.md"
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	want, err := config.ReplaceTable(string(content), "settings", config.Table(handlerproxy.Fields()))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./internal/handlerproxy -run TestSettingsPage -update")
}
