package cli

import (
	"context"
	"fmt"
	"slices"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/operate"
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
		Action:       c.onPool(quotaSpent),
		Commands:     []*ucli.Command{c.quotaSpentSetCommand()},
	}
}

func quotaSpent(cmd *ucli.Command) (act, error) {
	asked := cmd.Args().Slice()
	return func(ctx context.Context, s *access) (reply, error) {
		_, q, err := s.read(ctx, asked)
		if err != nil {
			return reply{}, err
		}
		tags, err := s.Spent(ctx, q)
		tags = slices.DeleteFunc(tags, func(t operate.Spent) bool {
			return len(asked) > 0 && (t.Hash != "" || !slices.Contains(asked, t.Tag))
		})
		var lines []string
		for i := range tags {
			lines = append(lines, spentLines(&tags[i])...)
		}
		if len(tags) == 0 {
			lines = []string{empty + ": nothing is spent of a budget"}
		}
		return reply{json: struct {
			Pool string          `json:"pool"`
			Tags []operate.Spent `json:"tags"`
		}{s.Name, tags}, lines: lines}, err
	}, nil
}

// spentLines returns a line for each window.
func spentLines(t *operate.Spent) (lines []string) {
	name := tagText(t.Tag)
	if t.Hash != "" {
		name = "tag #" + t.Hash
	}
	for _, w := range t.Windows {
		of := ""
		if w.Amount > 0 {
			of = fmt.Sprintf(" of %d", w.Amount)
		}
		lines = append(lines, fmt.Sprintf("%s %d%s tokens from %s to %s", name, w.Tokens, of, timeText(w.Start), timeText(w.End)))
	}
	return lines
}
