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

	"github.com/numaproj-contrib/numathrottle/internal/ceiling"
	"github.com/numaproj-contrib/numathrottle/internal/pooldoc"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// TestMutants leaves out each rule of the protocol and counts the seeds until a
// promise breaks. The rules that random schedules need too rarely have a directed
// one; see TestMutantsDirected.
func TestMutants(t *testing.T) {
	names := ruleNames()
	if only := os.Getenv("NUMATHROTTLE_SIM_RULE"); only != "" {
		names = strings.Fields(only)
	}
	var found []proof.Mutant
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "rule\tseeds to catch\tfirst violation")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			m := proof.Mutant{Rule: name, Says: says(t, name)}
			defer func() { found = append(found, m) }() // also what was not caught
			if slices.ContainsFunc(schedules, func(s directed) bool { return s.rule == name }) {
				fmt.Fprintf(tab, "%s\tdirected\t\n", name)
				m.Directed, m.Caught = playWithout(t, name)
				require.NotEmpty(t, m.Caught, "the schedule does not need the rule")
				return
			}
			defer leaveOut(t, name)()
			if strings.HasPrefix(name, "till-") {
				sum := Sweep(Config{}, FirstTagged, int(setting(t, "SEEDS", 400)), 1)
				require.NotEmpty(t, sum.Violations, "none of %d seeds with tags needs the rule", sum.Counters.Runs)
				v := sum.Violations[0]
				t.Log(v.Violation)
				m.Seeds, m.Caught = int(v.Seed-FirstTagged)+1, v.Violation.Kind.String()
				fmt.Fprintf(tab, "%s\t%d with tags\t%v %s\n", name, m.Seeds, v.Violation.At, v.Violation.Kind)
				return
			}
			first := uint64(1)
			if os.Getenv(proof.Folder) == "" {
				first = max(first, late[name]) // else the figures are to tell how many it takes
			}
			sum := Sweep(Config{}, first, int(setting(t, "SEEDS", 400))-int(first)+1, 1)
			require.NotEmpty(t, sum.Violations, "none of %d seeds needs the rule, and no directed schedule", sum.Counters.Runs)
			v := sum.Violations[0]
			t.Log(v.Violation)
			fmt.Fprintf(tab, "%s\t%d\t%v %s\n", name, v.Seed, v.Violation.At, v.Violation.Kind)
			m.Seeds, m.Caught = int(v.Seed), v.Violation.Kind.String()
		})
	}
	proof.Record(t, "mutants", found)
	require.NoError(t, tab.Flush())
	t.Logf("\n%s", &table)
}

// late are the seeds that catch rules which few seeds need, so that not all before them are run
// at each change. Where another plan has made them others, the sweep goes on from them.
var late = map[string]uint64{
	"give-back": 63, "hard-clocks": 41, "hard-override": 24, "hard-whole": 117, "permit-end": 18,
	"lease-from-send": 17, "ramp-resume": 147, "repeat": 17,
}

// A ruleBook is the rules of one package that a test can leave out.
type ruleBook struct {
	names    func() []string
	says     func(name string) string
	leaveOut func(name string) (restore func(), err error)
}

var ruleBooks = []ruleBook{
	{driver.RuleNames, driver.RuleSays, driver.LeaveOut},
	{consensus.RuleNames, consensus.RuleSays, consensus.LeaveOut},
	{ceiling.RuleNames, ceiling.RuleSays, ceiling.LeaveOut},
	{pooldoc.RuleNames, pooldoc.RuleSays, pooldoc.LeaveOut},
	{throttle.RuleNames, throttle.RuleSays, throttle.LeaveOut},
}

// ruleNames lists the rules of all packages.
func ruleNames() (names []string) {
	for _, b := range ruleBooks {
		names = append(names, b.names()...)
	}
	// The other rules of tills have schedules in packages driver and consensus: each rests on two things that happen within one or
	// two intervals, a loss of the store or a message that comes twice, of which the bounds of whole windows see too little; and
	// nobody changes the quotas here.
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "till-") && name != "till-void" && name != "till-given-up"
	})
}

// bookOf returns the rules among which one is.
func bookOf(t *testing.T, name string) ruleBook {
	t.Helper()
	i := slices.IndexFunc(ruleBooks, func(b ruleBook) bool { return slices.Contains(b.names(), name) })
	require.GreaterOrEqual(t, i, 0, "rule %q, allowed: %q", name, ruleNames())
	return ruleBooks[i]
}

// leaveOut leaves a rule of the protocol or of the engine out.
func leaveOut(t *testing.T, name string) (restore func()) {
	t.Helper()
	restore, err := bookOf(t, name).leaveOut(name)
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
			_, caught := playWithout(t, s.rule)
			require.NotEmpty(t, caught, "the schedule does not need the rule")
			t.Log(caught)
		})
	}
}

// playWithout plays the directed schedule of a rule without it, and returns the
// schedule's name and the check that failed, if one did.
func playWithout(t *testing.T, rule string) (name, caught string) {
	t.Helper()
	defer leaveOut(t, rule)()
	i := slices.IndexFunc(schedules, func(s directed) bool { return s.rule == rule })
	w := schedules[i].play(t)
	if w.violation == nil {
		return schedules[i].name, ""
	}
	return schedules[i].name, w.violation.Kind.String()
}

// says tells what a rule says.
func says(t *testing.T, name string) string {
	t.Helper()
	text := bookOf(t, name).says(name)
	require.NotEmpty(t, text, name)
	return text
}
