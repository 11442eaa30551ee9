package cli

import (
	"context"

	ucli "github.com/urfave/cli/v3"
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
			Action: c.onPool(c.debtForgive),
		}},
	}
}

func (c *CLI) debtForgive(cmd *ucli.Command) (act, error) {
	return func(ctx context.Context, s *access) (reply, error) {
		if err := s.mustBeNamed(ctx, cmd); err != nil {
			return reply{}, err
		}
		return say("debt is forgiven, with the next sync of each pod"), s.ForgiveDebt(ctx, cmd.String(reasonName), c.author(cmd))
	}, nil
}
