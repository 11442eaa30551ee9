//go:build numathrottle_mutants

package throttle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Leaving out any rule of hard limits lets some pool exceed Max.
func TestHardMutants(t *testing.T) {
	for _, name := range RuleNames() {
		if !strings.HasPrefix(name, "hard-") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			restore, err := LeaveOut(name)
			require.NoError(t, err)
			defer restore()
			for seed := range uint64(500) {
				if _, _, wrong := tryHardPool(t, seed); wrong != "" {
					t.Log(wrong)
					return
				}
			}
			require.Fail(t, "no pool needs the rule")
		})
	}
}
