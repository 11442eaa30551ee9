//go:build numathrottle_mutants

package throttle

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// TestHardMutants: without any one of the rules of hard limits some pool exceeds Max.
func TestHardMutants(t *testing.T) {
	for _, r := range mutants.Rules("throttle") {
		if !strings.HasPrefix(r.Name, "hard-") {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			mutants.LeaveOut(t, r.Name)
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

// TestLineMutants: some case needs each rule of a tag's line.
func TestLineMutants(t *testing.T) {
	for rule, cases := range map[string][]lineCase{"line-whole": wholeCalls, "line-delayed": delayedCalls, "line-even": delayedCalls} {
		t.Run(rule, func(t *testing.T) {
			mutants.LeaveOut(t, rule)
			require.True(t, slices.ContainsFunc(cases, func(c lineCase) bool { return c.wrong(t) != "" }), "no case needs the rule")
		})
	}
}
