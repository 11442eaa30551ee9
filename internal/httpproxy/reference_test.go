package httpproxy_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/httpproxy"
)

var update = flag.Bool("update", false, "write the table of the page anew")

// The page has the settings that there are.
func TestReference(t *testing.T) {
	const page = "../../docs/http-proxy.md"
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	want, err := config.ReplaceTable(string(content), "http proxy", config.Table(httpproxy.Fields()))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(content), "run: go test ./internal/httpproxy -run TestReference -update")
}
