//go:build numathrottle_mutants

package sim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestMutants leaves out each rule of the protocol and counts the seeds until a
// promise breaks. The rules that random schedules need too rarely have a directed
// one; see TestMutantsDirected.
func TestMutants(t *testing.T) {
	names := slices.Concat(consensus.RuleNames(), throttle.RuleNames())
	if only := os.Getenv("NUMATHROTTLE_SIM_RULE"); only != "" {
		names = strings.Fields(only)
	}
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "rule\tseeds to catch\tfirst violation")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if slices.ContainsFunc(schedules, func(s directed) bool { return s.rule == name }) {
				fmt.Fprintf(tab, "%s\tdirected\t\n", name)
				return
			}
			defer leaveOut(t, name)()
			sum := Sweep(Config{}, 1, int(setting(t, "SEEDS", 400)), 1)
			require.NotEmpty(t, sum.Violations, "none of %d seeds needs the rule, and no directed schedule", sum.Counters.Runs)
			v := sum.Violations[0]
			fmt.Fprintf(tab, "%s\t%d\t%v %s\n", name, v.Seed, v.Violation.At, v.Violation.Kind)
		})
	}
	require.NoError(t, tab.Flush())
	t.Logf("\n%s", &table)
}

// leaveOut leaves a rule of the protocol or of the engine out.
func leaveOut(t *testing.T, name string) (restore func()) {
	t.Helper()
	if slices.Contains(throttle.RuleNames(), name) {
		restore, err := throttle.LeaveOut(name)
		require.NoError(t, err)
		return restore
	}
	restore, err := consensus.LeaveOut(name)
	require.NoError(t, err)
	return restore
}

// TestMutantsDirected plays each directed schedule without its rule.
func TestMutantsDirected(t *testing.T) {
	for _, s := range schedules {
		if s.rule == "" {
			continue
		}
		t.Run(s.rule, func(t *testing.T) {
			defer leaveOut(t, s.rule)()
			w := s.play(t)
			require.NotNil(t, w.violation, "the schedule does not need the rule")
			t.Log(w.violation)
		})
	}
}
