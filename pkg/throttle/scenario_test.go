package throttle

import (
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/testkit/scenario"
)

// TestScenarios plays the scenarios in testdata; see package scenario. Indented lines are quotas: one quota of a limit each.
//
// The commands are in scenario_words_test.go. A limiter is a name of limit, slots or all, or a tag of the first limit: a, a+b for both, -
// for none. tpm:a is a tag of the limit tpm. At the end the invariants of all limits are checked.
func TestScenarios(t *testing.T) {
	scenario.Play(t, "testdata/*.txt", func(t *testing.T, _ string) scenario.World {
		return &play{
			t: t, limits: map[string]Limiter{}, sharers: map[string]*script{}, draws: map[string][]*drawing{}, services: map[string]*service{},
			crews: map[string]*crew{},
		}
	})
}
