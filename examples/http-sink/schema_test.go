package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
)

// The chart refuses settings that there are not, and values that have not their form.
func TestChartSchema(t *testing.T) {
	const name = "../../charts/numathrottle/values.schema.json"
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	want, err := config.ReplaceDefinition(content, "httpSinkConfig", config.SchemaOf(opening.ProgramFields(fields, poolOf)))
	require.NoError(t, err)
	if *scenario.Update {
		require.NoError(t, os.WriteFile(name, want, 0o644))
		return
	}
	require.JSONEq(t, string(want), string(content), "run: go test ./examples/http-sink -run TestChartSchema -update")
}
