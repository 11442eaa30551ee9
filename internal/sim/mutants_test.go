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

	"github.com/numaproj-contrib/numathrottle/internal/mutants"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
)

// TestMutants leaves out each rule of the protocol and counts the seeds until a
// promise breaks. The rules that random schedules need too rarely have a directed
// one; see TestMutantsDirected.
func TestMutants(t *testing.T) {
	list := rules()
	if only := os.Getenv("NUMATHROTTLE_SIM_RULE"); only != "" {
		list = slices.DeleteFunc(mutants.Rules(books...), func(r mutants.Rule) bool { return !slices.Contains(strings.Fields(only), r.Name) })
		require.NotEmpty(t, list, "NUMATHROTTLE_SIM_RULE is %q, allowed: names in internal/mutants/rules", only)
	}
	caught := 0
	var table strings.Builder
	tab := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "rule\tseeds to catch\tfirst violation")
	for _, rule := range list {
		name := rule.Name
		t.Run(name, func(t *testing.T) {
			defer func() {
				if !t.Failed() {
					caught++
				}
			}()
			if slices.ContainsFunc(schedules, func(s directed) bool { return s.rule == name }) {
				fmt.Fprintf(tab, "%s\tdirected\t\n", name)
				_, by := playWithout(t, name)
				require.NotEmpty(t, by, "the schedule does not need the rule")
				return
			}
			mutants.LeaveOut(t, name)
			if strings.HasPrefix(name, "tagbucket-") {
				sum := Sweep(Config{}, FirstTagged, int(setting(t, "SEEDS", 400)), 1)
				require.NotEmpty(t, sum.Violations, "none of %d seeds with tags needs the rule", sum.Counters.Runs)
				v := sum.Violations[0]
				t.Log(v.Violation)
				fmt.Fprintf(tab, "%s\t%d with tags\t%v %s\n", name, v.Seed-FirstTagged+1, v.Violation.At, v.Violation.Kind)
				return
			}
			first := max(1, late[name])
			sum := Sweep(Config{}, first, int(setting(t, "SEEDS", 400))-int(first)+1, 1)
			require.NotEmpty(t, sum.Violations, "none of %d seeds needs the rule, and no directed schedule", sum.Counters.Runs)
			v := sum.Violations[0]
			t.Log(v.Violation)
			fmt.Fprintf(tab, "%s\t%d\t%v %s\n", name, v.Seed, v.Violation.At, v.Violation.Kind)
		})
	}
	proof.Record(t, "mutants", fmt.Sprintf("%d of %d rules caught", caught, len(list)))
	require.NoError(t, tab.Flush())
	t.Logf("\n%s", &table)
}

// late are the seeds that catch rules which few seeds need, so that not all before them are run
// at each change. Where another plan has made them others, the sweep goes on from them.
var late = map[string]uint64{
	"give-back": 63, "hard-clocks": 41, "hard-override": 24, "hard-whole": 117, "permit-end": 18,
	"lease-from-send": 17, "ramp-resume": 147, "repeat": 17,
}

// books are those of the rules of the pool; other packages test the rest.
var books = []string{"driver", "consensus", "ceiling", "pooldoc", "throttle"}

// rules lists the rules that the simulation needs.
func rules() []mutants.Rule {
	// The other rules of tag buckets have schedules in packages driver and consensus: each rests on two things that happen within one or
	// two intervals, a loss of the store or a message that comes twice, of which the bounds of whole windows see too little; and
	// nobody changes the quotas here.
	return slices.DeleteFunc(mutants.Rules(books...), func(r mutants.Rule) bool {
		return strings.HasPrefix(r.Name, "tagbucket-") && r.Name != "tagbucket-void" && r.Name != "tagbucket-given-up"
	})
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
	mutants.LeaveOut(t, rule)
	i := slices.IndexFunc(schedules, func(s directed) bool { return s.rule == rule })
	w := schedules[i].play(t)
	if w.violation == nil {
		return schedules[i].name, ""
	}
	return schedules[i].name, w.violation.Kind.String()
}
