//go:build numathrottle_mutants

package backoff

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// Leaving out any rule breaks what it is for.
func TestMutants(t *testing.T) {
	for _, r := range mutants.Rules("backoff") {
		t.Run(r.Name, func(t *testing.T) {
			mutants.LeaveOut(t, r.Name)
			broken := promises[r.Name]()
			require.Error(t, broken)
			t.Log(broken)
		})
	}
}
