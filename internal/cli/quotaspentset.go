package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The flags of quota spent set.
const (
	amountName = "amount"
	zoneName   = "zone"
)

// mostSpent is the largest count of a store.
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
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // tagOf checks them
		Action:       c.onPool(c.quotaSpentSet),
	}
}

func (c *CLI) quotaSpentSet(cmd *ucli.Command) (act, error) {
	tag, err := c.tagOf(cmd)
	if err != nil {
		return nil, err
	}
	budget, tokens, err := spentFlags(cmd)
	return func(ctx context.Context, s *access) (reply, error) {
		if err := s.noPattern(cmd, "TAG", tag); err != nil {
			return reply{}, err
		}
		_, q, err := s.read(ctx, []string{tag})
		if err != nil {
			return reply{}, err
		}
		is, err := s.SetSpent(ctx, q, budget, protocol.SpentChange{Tag: tag, Tokens: tokens, By: c.author(cmd), Reason: cmd.String(reasonName)})
		return reply{json: struct {
			Pool string `json:"pool"`
			operate.Spent
		}{s.Name, is}, lines: spentLines(&is)}, err
	}, err
}

// spentFlags reads the window and the number of tokens.
func spentFlags(cmd *ucli.Command) (budget throttle.Budget, tokens int64, err error) {
	fault := func(flag, allowed string) (throttle.Budget, int64, error) {
		is := "missing"
		if cmd.IsSet(flag) {
			is = fmt.Sprintf("%.60q", cmd.String(flag))
		}
		return budget, 0, wrongArguments("%s: --%s is %s, allowed: %s", cmd.FullName(), flag, is, allowed)
	}
	budget = throttle.Budget{Per: limit.Period(cmd.String(perName)), Zone: cmd.String(zoneName)}
	if !slices.Contains([]limit.Period{limit.PeriodHour, limit.PeriodDay, limit.PeriodMonth}, budget.Per) {
		return fault(perName, "hour, day or month")
	}
	n, err := strconv.ParseFloat(cmd.String(amountName), 64) // exact up to 9e15, and accepts 5e6
	if err != nil || !(n >= 0 && n <= mostSpent) || n != math.Trunc(n) {
		return fault(amountName, "a whole number from 0 to 4e15")
	}
	if _, err := time.LoadLocation(budget.Zone); cmd.IsSet(zoneName) && (err != nil || budget.Zone == "" || budget.Zone == "Local") {
		return fault(zoneName, "a time zone such as Europe/Berlin")
	}
	return budget, int64(n), nil
}
