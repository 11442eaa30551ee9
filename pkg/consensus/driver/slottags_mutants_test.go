//go:build numathrottle_mutants

package driver

import (
	"testing"

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
)

// TestMutantsOfSlotsOfTags: each rule of quotas of calls in flight makes a test fail when it is left out.
func TestMutantsOfSlotsOfTags(t *testing.T) { mutants.NeedTheirTests(t, "slottags") }
