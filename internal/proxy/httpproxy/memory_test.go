package httpproxy

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// As many requests as there may be at once, each with a body as long as is kept, fit into the memory that the overlay gives the proxy. A body
// that grows while it is read takes up to twice its length; 756 MiB were measured, beside which the process needs some itself.
func TestTheOverlayHasTheMemoryForTheDefaults(t *testing.T) {
	text, err := os.ReadFile("../../../manifests/overlays/pipeline-http-proxy/pipeline.yaml")
	require.NoError(t, err)
	last := regexp.MustCompile(`(?s)- name: http-proxy\n.*?limits: \{memory: (\d+)Mi\}`).FindSubmatch(text)
	mebibytes, err := strconv.Atoi(string(last[1]))
	require.NoError(t, err)
	require.GreaterOrEqual(t, mebibytes<<20, 2*defaultMaxRequests*defaultBuffer+128<<20)
}
