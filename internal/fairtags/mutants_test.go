//go:build numathrottle_mutants

package fairtags_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// TestScenariosMutants: without any one of the rules some scenario fails.
func TestScenariosMutants(t *testing.T) {
	for _, r := range mutants.Rules("fairtags") {
		t.Run(r.Name, func(t *testing.T) {
			mutants.LeaveOut(t, r.Name)
			for _, f := range slices.Backward(families) {
				for _, s := range f.scenarios {
					if _, err := s.play(); err != nil {
						t.Log(s.name, err)
						return
					}
				}
			}
			require.Fail(t, "no scenario notices")
		})
	}
}
