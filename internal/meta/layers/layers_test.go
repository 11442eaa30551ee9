package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

const (
	root = "../../.."
	page = root + "/internal/meta/layers/README.md"
)

func TestNoImportPointsUpwards(t *testing.T) {
	testkit.SkipShort(t, "it runs the go command")
	all, err := load(t.Context(), root)
	require.NoError(t, err)
	require.Greater(t, len(all), 40)
	require.Empty(t, check(all))

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want, err := withMap(string(text), all)
	require.NoError(t, err)
	require.Equal(t, want, string(text), "make map writes the page")
}

func TestCheckFindsFaults(t *testing.T) {
	faults := check([]pkg{
		{path: "pkg/limit", layer: layerOf("pkg/limit"), imports: []string{"pkg/throttle"}},
		{path: "pkg/throttle", layer: layerOf("pkg/throttle"), imports: []string{"internal/between"}},
		{path: "internal/between", layer: layerOf("internal/between"), imports: []string{"pkg/consensus"}},
		{path: "pkg/consensus", layer: layerOf("pkg/consensus")},
	})
	require.Len(t, faults, 3)
	require.Contains(t, faults[0], "pkg/limit (words and tools) imports pkg/throttle (limiters and pools), which is above it")
	require.Contains(t, faults[1], "internal/between is in no layer")
	require.Contains(t, faults[2], "pkg/throttle must not import pkg/consensus: pkg/throttle imports internal/between imports pkg/consensus")
}

// A mapper that opens one store carries that store's client, and no exporter; a client over HTTP carries no gRPC. The limits leave some room
// for new versions.
func TestSmallBinaries(t *testing.T) {
	testkit.SkipShort(t, "it runs the go command")
	for _, tc := range []struct {
		imports []string
		most    int      // packages outside of the standard library
		without []string // what must not be among them
	}{
		{[]string{"pkg/mapper", "pkg/open"}, 190, []string{"github.com/redis", "github.com/nats-io", "go.opentelemetry.io/otel/sdk", "github.com/prometheus"}},
		{[]string{"pkg/mapper", "pkg/open", "pkg/open/redis"}, 210, []string{"github.com/nats-io", "go.opentelemetry.io/otel/sdk", "github.com/prometheus"}},
		{[]string{"pkg/mapper", "pkg/open", "pkg/open/nats"}, 210, []string{"github.com/redis", "go.opentelemetry.io/otel/sdk", "github.com/prometheus"}},
		{[]string{"pkg/throttle/httpthrottle", "pkg/open", "pkg/open/redis", "pkg/open/nats"}, 125, []string{"google.golang.org/grpc"}},
	} {
		args := []string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}
		for _, path := range tc.imports {
			args = append(args, module+"/"+path)
		}
		out, err := exec.CommandContext(t.Context(), "go", args...).Output()
		require.NoError(t, err)
		packages := strings.Fields(string(out))
		require.LessOrEqual(t, len(packages), tc.most, tc.imports)
		for _, path := range packages {
			for _, unwanted := range append(tc.without, "testing", "github.com/stretchr", "github.com/nats-io/nats-server") {
				require.False(t, path == unwanted || strings.HasPrefix(path, unwanted+"/"), "%v bring %s", tc.imports, path)
			}
		}
	}
}
