package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// topTags is how many tags are shown without --all.
const topTags = 16

const allName = "all"

func (c *CLI) topCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "top",
		Usage:     "show the busiest tags of a pool, and what limits them",
		ArgsUsage: "[TAG ...]",
		Description: "Pods tell hashes of tags, and no names. Those of the command's own setting quotas, of what quota set has changed, and TAGs " +
			"are known; others show as hashes. So give it the file of the pods with --config. Tags that go by a pattern are one line. " +
			"Targets are those of the same quotas.",
		Flags: append(append(outputFlags("a line of JSON"), watchFlags()...),
			&ucli.BoolFlag{Name: allName, Usage: fmt.Sprintf("all of them, not only the %d busiest", topTags)}),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // tags
		Action:       c.onPool(top),
	}
}

func top(cmd *ucli.Command) (act, error) {
	return func(ctx context.Context, s *access) (reply, error) {
		o, q, err := s.read(ctx, cmd.Args().Slice())
		if err != nil {
			return reply{}, err
		}
		spent, err := s.Spent(ctx, q)
		if err != nil && !errors.Is(err, driver.ErrNoTagBuckets) { // then there are no budgets
			return reply{}, err
		}
		uses, more := operate.Tags(&o, q, spent), 0
		if !cmd.Bool(allName) && len(uses) > topTags {
			uses, more = uses[:topTags], len(uses)-topTags
		}
		r := s.Reserved(&o)
		var page strings.Builder
		unit := "/s"
		if o.Slots > 0 {
			unit = ""
		}
		writeTop(&page, s.Name, r, uses, more, unit)
		return reply{text: page.String(), json: struct {
			Pool     string            `json:"pool"`
			Reserved *operate.Reserved `json:"reserved"`
			Tags     []operate.Tag     `json:"tags"`
			More     int               `json:"more"`
		}{s.Name, r, uses, more}}, nil
	}, nil
}

// read returns the pool, the quotas in force for pods with the command's settings, and names without a quota of their own.
func (s *access) read(ctx context.Context, names []string) (o protocol.Overview, q throttle.Quotas, err error) {
	if o, err = s.Overview(ctx); err == nil {
		q, err = s.InForce(&o, names...)
	}
	return o, q, err
}

// writeTop writes the table of tags. unit is that of rates; empty for calls in flight.
func writeTop(out io.Writer, pool string, r *operate.Reserved, uses []operate.Tag, more int, unit string) {
	_, _ = fmt.Fprintf(out, "%s: %s\n", printable(pool), r)
	if len(uses) == 0 {
		_, _ = fmt.Fprintln(out, "no tag asks for anything")
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nTAG\tDEMAND\tUSED\tTARGET\tLIMITED BY\tPODS")
	for i := range uses {
		u := &uses[i]
		name := printable(u.Tag)
		switch {
		case u.Unnamed:
			name = "(not told by name)"
		case u.Hash != "":
			name = "#" + u.Hash
		case u.Pattern:
			name += " (pattern)"
		case u.Tag == "":
			name = "(all others)"
		}
		demand, target, by := fmt.Sprintf("%.4g%s", u.Demand, unit), "-", "-"
		if u.Demand == 0 && u.Pods > 0 && u.By == string(throttle.ReasonBudget) {
			demand = "refused" // pods do not count these calls
		}
		if u.By != "" {
			by = poolview.Word(u.By)
		}
		if u.Target > 0 || throttle.Reason(u.By).Listed() {
			target = fmt.Sprintf("%.4g%s", u.Target, unit)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%.3g%s\t%s\t%s\t%d\n", name, demand, u.Used, unit, target, by, u.Pods)
	}
	_ = table.Flush()
	if more > 0 {
		_, _ = fmt.Fprintf(out, "and %d more; see --%s\n", more, allName)
	}
}
