//go:build numathrottle_mutants

package fairtags_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/fairtags"
)

// Leaving out any rule breaks what it is for.
func TestMutants(t *testing.T) {
	require.Len(t, promises, len(fairtags.Rules.Names()))
	for _, name := range fairtags.Rules.Names() {
		t.Run(name, func(t *testing.T) {
			restore, err := fairtags.Rules.LeaveOut(name)
			require.NoError(t, err)
			defer restore()
			broken := promises[name]()
			require.Error(t, broken)
			t.Log(broken)
		})
	}
}

// So does some scenario.
func TestScenariosMutants(t *testing.T) {
	for _, name := range fairtags.Rules.Names() {
		t.Run(name, func(t *testing.T) {
			restore, err := fairtags.Rules.LeaveOut(name)
			require.NoError(t, err)
			defer restore()
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
