package consensus_test

import (
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/world/pools"
)

// TestScenarios plays the scenarios in testdata: pools of real members and limiters. Package pools has their language.
func TestScenarios(t *testing.T) { pools.Play(t, "testdata/*.txt") }
