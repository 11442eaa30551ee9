package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func (c *CLI) quotaSpentCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "spent",
		Usage:     "print what is spent of budgets",
		ArgsUsage: "[TAG ...]",
		Description: "The store keeps hashes of tags, and no names. Those of the command's own setting quotas and of what quota set has changed are " +
			"known; others show as hashes. With TAGs it prints those alone: so name what only a pattern matches. Windows are by the store's clock.",
		Flags:        outputFlags("a line of JSON"),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // tags
		Action:       c.quotaSpent,
		Commands:     []*ucli.Command{c.quotaSpentSetCommand()},
	}
}

// A tagSpent is what --json prints of a tag.
type tagSpent struct {
	Tag     string        `json:"tag"`            // empty: all without a quota of their own
	Hash    string        `json:"hash,omitempty"` // of a name that is not known
	Windows []spentWindow `json:"windows"`
}

type spentWindow struct {
	Start  string `json:"start"`
	End    string `json:"end"`
	Tokens int64  `json:"tokens"`
	Amount int64  `json:"amount,omitempty"` // of the budget; without: the command knows none
}

func (c *CLI) quotaSpent(ctx context.Context, cmd *ucli.Command) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		changes, err := consensus.LoadQuotas(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		asked := cmd.Args().Slice()
		quotas := s.inForce(&changes, asked)
		all, err := consensus.LoadSpent(ctx, s.store, s.pool, slices.Collect(maps.Keys(quotas.Tags)))
		if err != nil {
			return err
		}
		tags := []tagSpent{}
		for i := range all {
			if t := &all[i]; len(asked) == 0 || !t.Unnamed && slices.Contains(asked, t.Tag) {
				tags = append(tags, spentOf(t, &quotas))
			}
		}
		if asJSON {
			return writeJSON(c.Out, struct {
				Pool string     `json:"pool"`
				Tags []tagSpent `json:"tags"`
			}{s.pool, tags})
		}
		return c.printSpent(s.pool, tags)
	})
}

// spentOf is what is printed of a tag.
func spentOf(t *consensus.TagSpent, quotas *throttle.Quotas) tagSpent {
	_, own := quotas.Find(t.Tag)
	out := tagSpent{Tag: t.Tag}
	if t.Unnamed {
		own, out.Hash = throttle.Quota{}, fmt.Sprintf("%016x", t.Key)
	}
	for _, w := range t.Windows {
		out.Windows = append(out.Windows, spentWindow{timeText(w.Start), timeText(w.End), w.Tokens, amountOf(own.Budgets, w)})
	}
	return out
}

// amountOf is the amount of the budget whose window that is; 0: there is none.
func amountOf(budgets []throttle.Budget, w consensus.SpentWindow) int64 {
	for _, b := range budgets {
		if start, end := b.Window(w.Start); start.Equal(w.Start) && end.Equal(w.End) {
			return b.Amount
		}
	}
	return 0
}

// printSpent prints a line for each window.
func (c *CLI) printSpent(pool string, tags []tagSpent) error {
	var errs []error
	for i := range tags {
		name := tagText(tags[i].Tag)
		if tags[i].Hash != "" {
			name = "tag #" + tags[i].Hash
		}
		for _, w := range tags[i].Windows {
			of := ""
			if w.Amount > 0 {
				of = fmt.Sprintf(" of %d", w.Amount)
			}
			_, err := fmt.Fprintf(c.Out, "%s: %s %d%s tokens from %s to %s\n", printable(pool), name, w.Tokens, of, w.Start, w.End)
			errs = append(errs, err)
		}
	}
	if len(tags) == 0 {
		_, err := fmt.Fprintf(c.Out, "%s: %s: nothing is spent of a budget\n", printable(pool), empty)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
