package httpthrottle_test

import (
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/world/calls"
)

// TestScenarios plays the scenarios in testdata: calls of a service that follows a script. Package calls has their language.
func TestScenarios(t *testing.T) { calls.Play(t, "testdata/*.txt", nil) }
