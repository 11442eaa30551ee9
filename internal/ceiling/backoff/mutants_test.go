//go:build numathrottle_mutants

package backoff

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Leaving out any rule breaks what it is for.
func TestMutants(t *testing.T) {
	for _, name := range RuleNames() {
		t.Run(name, func(t *testing.T) {
			restore, err := LeaveOut(name)
			require.NoError(t, err)
			defer restore()
			broken := promises[name]()
			require.Error(t, broken)
			t.Log(broken)
		})
	}
}
