//go:build numathrottle_mutants

package driver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// TestEveryTagBucketScheduleNeedsItsRule plays each schedule of TestTagBucketSchedules without its rule.
func TestEveryTagBucketScheduleNeedsItsRule(t *testing.T) {
	played := map[string]bool{}
	for _, s := range tagBucketSchedules {
		played[s.rule] = true
		t.Run(s.name, func(t *testing.T) {
			mutants.LeaveOut(t, s.rule)
			require.NotEmpty(t, s.play(newTagBucketTrial()), "the schedule does not need the rule")
		})
	}
	for _, r := range mutants.Rules("driver") {
		if strings.HasPrefix(r.Name, "tagbucket-") {
			require.True(t, played[r.Name], "no schedule needs the rule %q", r.Name)
		}
	}
}
