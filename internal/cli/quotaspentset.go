package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The flags of quota spent set.
const (
	amountName = "amount"
	zoneName   = "zone"
)

// mostSpent is the most that a store counts.
const mostSpent = 4_000_000_000_000_000

func (c *CLI) quotaSpentSetCommand() *ucli.Command {
	return &ucli.Command{
		Name: "set", Usage: "set what is spent of a budget in its present window", ArgsUsage: "TAG",
		Description: "It takes the place of what the store has counted: after the store and all pods have lost it, or because a bill says " +
			"otherwise. What is drawn from then on counts on top. Budgets whose windows begin at the same time are one number. Less than was counted is " +
			"refused while the pool is frozen.",
		Flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: perName, Usage: "the window: hour, day or month (required)"},
			&ucli.StringFlag{Name: amountName, Usage: "the tokens that are spent since it began, 0 to 4e15 (required)"},
			&ucli.StringFlag{
				Name: zoneName, Usage: "the time zone in which the window begins",
				DefaultText: "that of the budget in the command's own setting quotas or in what quota set has changed, or UTC",
			},
			reasonFlag("why; pods log it"), byFlag(),
			&ucli.BoolFlag{Name: otherName, Usage: "in the place of TAG: all tags without a quota of their own"},
		}, outputFlags("a line of JSON")...),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // tagOf looks at them
		Action:       c.quotaSpentSet,
	}
}

func (c *CLI) quotaSpentSet(ctx context.Context, cmd *ucli.Command) error {
	tag, err := c.tagOf(cmd)
	if err != nil {
		return err
	}
	per, tokens, err := spentFlags(cmd)
	if err != nil {
		return err
	}
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		changes, err := consensus.LoadQuotas(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		quotas := s.inForce(&changes, []string{tag})
		budget, err := budgetOf(cmd, &quotas, tag, per)
		if err != nil {
			return err
		}
		start, end := budget.Window(time.Now())
		change := consensus.SpentChange{Tag: tag, Start: start, End: end, Tokens: tokens, By: c.author(cmd), Reason: cmd.String(reasonName)}
		if err := consensus.SetSpent(ctx, s.store, s.pool, change); err != nil {
			return err
		}
		window := consensus.SpentWindow{Start: start.UTC(), End: end.UTC(), Tokens: tokens}
		is := spentOf(&consensus.TagSpent{Tag: tag, Windows: []consensus.SpentWindow{window}}, &quotas)
		if asJSON {
			return writeJSON(c.Out, struct {
				Pool string `json:"pool"`
				tagSpent
			}{s.pool, is})
		}
		return c.printSpent(s.pool, []tagSpent{is})
	})
}

// spentFlags reads the window and the number of tokens.
func spentFlags(cmd *ucli.Command) (per limit.Period, tokens int64, err error) {
	fault := func(flag, allowed string) error {
		is := "missing"
		if cmd.IsSet(flag) {
			is = fmt.Sprintf("%.40q", cmd.String(flag))
		}
		return &kindError{fmt.Errorf("%s: --%s is %s, allowed: %s", cmd.FullName(), flag, is, allowed), errUsage}
	}
	if per = limit.Period(cmd.String(perName)); !slices.Contains([]limit.Period{limit.Hour, limit.Day, limit.Month}, per) {
		return "", 0, fault(perName, "hour, day or month")
	}
	n, err := strconv.ParseFloat(cmd.String(amountName), 64) // exact up to 9e15, and 5e6 is one
	if err != nil || !(n >= 0 && n <= mostSpent) || n != math.Trunc(n) {
		return "", 0, fault(amountName, "a whole number from 0 to 4e15")
	}
	return per, int64(n), nil
}

// budgetOf is the budget of a tag whose window is meant: that of the quotas in force, or one in the zone that is given.
func budgetOf(cmd *ucli.Command, quotas *throttle.Quotas, tag string, per limit.Period) (throttle.Budget, error) {
	budget := throttle.Budget{Per: per, Zone: "UTC"}
	_, own := quotas.Find(tag)
	for _, b := range own.Budgets {
		if b.Per == per && b.Zone != "" {
			budget.Zone = b.Zone
		}
	}
	if cmd.IsSet(zoneName) {
		budget.Zone = cmd.String(zoneName)
	}
	if _, err := time.LoadLocation(budget.Zone); err != nil || budget.Zone == "" {
		return budget, &kindError{
			fmt.Errorf("%s: --%s is %.60q, allowed: a time zone such as Europe/Berlin", cmd.FullName(), zoneName, budget.Zone), errUsage,
		}
	}
	return budget, nil
}
