package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"text/tabwriter"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// topTags is how many tags are shown unless --all says otherwise.
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
		Action:       c.top,
	}
}

// A tagUse is what --json prints of a tag. Rates are in tokens per second.
type tagUse struct {
	Tag     string  `json:"tag"`            // empty: all without a quota of their own
	Hash    string  `json:"hash,omitempty"` // of a name that is not known
	Unnamed bool    `json:"unnamed,omitempty"`
	Pattern bool    `json:"pattern,omitempty"` // tag is one: all tags that go by it
	Demand  float64 `json:"demand"`
	Used    float64 `json:"used"`   // of the demand
	Target  float64 `json:"target"` // 0: not known
	By      string  `json:"by,omitempty"`
	Pods    int     `json:"pods"`
}

func (c *CLI) top(ctx context.Context, cmd *ucli.Command) error {
	out, err := c.newPager(cmd)
	if err != nil {
		return err
	}
	s, err := c.connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.store.Close() }() // nothing was changed
	return out.run(ctx, func(ctx context.Context) error {
		err := s.call(ctx, func(ctx context.Context) error { return s.showTop(ctx, out, cmd.Args().Slice(), cmd.Bool(allName)) })
		return s.suggest(ctx, cmd.FullName(), s.pool, err)
	})
}

// showTop prints the busiest tags once. names are those to look for beside the known ones.
func (s *access) showTop(ctx context.Context, out *pager, names []string, all bool) error {
	changes, err := consensus.LoadQuotas(ctx, s.store, s.pool)
	if err != nil {
		return err
	}
	o, err := consensus.LoadOverview(ctx, s.store, s.pool)
	if err != nil {
		return err
	}
	uses := tagUses(&o, s.inForce(&changes, names))
	more := 0
	if !all && len(uses) > topTags {
		uses, more = uses[:topTags], len(uses)-topTags
	}
	var page bytes.Buffer
	if out.json {
		err = writeJSON(&page, struct {
			Pool     string        `json:"pool"`
			Reserved *reservedJSON `json:"reserved"`
			Tags     []tagUse      `json:"tags"`
			More     int           `json:"more"`
		}{s.pool, s.reservedOf(&o).json(), uses, more})
	} else {
		writeTop(&page, s.pool, s.reservedOf(&o), uses, more)
	}
	return errors.Join(err, out.print(page.String()))
}

// inForce are the quotas that processors with the command's settings go by, and names without a quota of their own.
func (s *access) inForce(changes *consensus.QuotaChanges, names []string) throttle.Quotas {
	q := s.quotas
	if q.Tags = maps.Clone(q.Tags); q.Tags == nil {
		q.Tags = map[string]throttle.Quota{}
	}
	maps.Copy(q.Tags, changes.Tags)
	if changes.Other != nil {
		q.Other = *changes.Other
	}
	for _, name := range names {
		if _, known := q.Tags[name]; !known && name != "" {
			_, q.Tags[name] = s.quotas.Find(name)
		}
	}
	return q
}

// tagUses are the tags of a pool, the busiest first.
func tagUses(o *consensus.Overview, q throttle.Quotas) []tagUse {
	uses := []tagUse{}
	limit := 0.0 // that the processors divide
	if o.Per > 0 {
		limit = float64(o.Max) / o.Per.Seconds()
	}
	roster := make([]consensus.RosterRow, len(o.Processors))
	for i := range roster {
		roster[i] = o.Processors[i].RosterRow
	}
	for _, u := range consensus.PlanTags(roster, q.WithDefaults(o.Per), limit) {
		use := tagUse{
			Tag: u.Tag, Unnamed: u.Unnamed, Pattern: u.Pattern, Demand: u.Demand, Used: u.Used, Target: u.Target, By: u.By, Pods: u.Processors,
		}
		if u.Tag == "" && u.Key != 0 {
			use.Hash = fmt.Sprintf("%010x", u.Key)
		}
		uses = append(uses, use)
	}
	return uses
}

func writeTop(out io.Writer, pool string, r reserved, uses []tagUse, more int) {
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
		target, by := "-", "-"
		if u.By != "" {
			by = u.By
		}
		if u.Target > 0 {
			target = fmt.Sprintf("%.4g/s", u.Target)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.4g/s\t%.3g/s\t%s\t%s\t%d\n", name, u.Demand, u.Used, target, by, u.Pods)
	}
	_ = table.Flush()
	if more > 0 {
		_, _ = fmt.Fprintf(out, "and %d more; see --%s\n", more, allName)
	}
}
