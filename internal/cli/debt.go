package cli

import (
	"context"
	"fmt"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

func (c *CLI) debtCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "debt",
		Usage: "forgive what the pods of a pool owe",
		Description: "Calls that use more than they drew leave debt, which later calls wait for. The metric numathrottle.tokens.available is below 0 then. " +
			"One that is forgiven is gone; debt that comes later counts.",
		Commands: []*ucli.Command{{
			Name: "forgive", Usage: "end the debt of all pods of a pool that is named and that somebody is in",
			Flags:  []ucli.Flag{reasonFlag("why: whoever looks at the pool's records is told"), byFlag()},
			Action: c.debtForgive,
		}},
	}
}

func (c *CLI) debtForgive(ctx context.Context, cmd *ucli.Command) error {
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		if err := s.changeable(ctx, cmd); err != nil {
			return err
		}
		if err := consensus.ForgiveDebt(ctx, s.store, s.pool, cmd.String(reasonName), c.author(cmd)); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.Out, "%s: debt is forgiven, with the next sync of each pod\n", printable(s.pool))
		return err
	})
}
