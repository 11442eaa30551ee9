//go:build numathrottle_mutants

package fairtags_test

import (
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
