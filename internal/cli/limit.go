package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// The flags of limit set.
const (
	maxName = "max"
	perName = "per"
)

func (c *CLI) limitCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "limit",
		Usage: "show or change the override of a pool's limit",
		Description: "An override is in force in place of what the processors are configured with, from their next sync on, until it is cleared. " +
			"The pool is that of the settings, or --pool.",
		Commands: []*ucli.Command{
			{
				Name: "show", Usage: "print the override and the limit in force",
				Flags:  []ucli.Flag{&ucli.BoolFlag{Name: jsonName, Usage: "print a line of JSON"}},
				Action: c.limitShow,
			},
			{
				Name: "set", Usage: "override the limit",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: maxName, Usage: "tokens per --per over the whole pool, 1 to 1000000000; required"},
					&ucli.StringFlag{Name: perName, Usage: "the period, 1ms to 744h", DefaultText: "the one that is configured"},
				},
				Action: c.limitSet,
			},
			{Name: "clear", Usage: "end the override", Action: c.limitClear},
		},
	}
}

// onPool runs one call on the pool of the settings.
func (c *CLI) onPool(ctx context.Context, cmd *ucli.Command, f func(ctx context.Context, s *access) error) error {
	s, err := c.connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.store.Close() }() // what was changed is on record
	return s.call(ctx, func(ctx context.Context) error { return f(ctx, s) })
}

func (c *CLI) limitShow(ctx context.Context, cmd *ucli.Command) error {
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		// By itself, because one that cannot be read is an error here, and none of an overview.
		override, err := consensus.LoadOverride(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		o, err := consensus.LoadOverview(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		if cmd.Bool(jsonName) {
			return writeJSON(c.Out, struct {
				Pool     string `json:"pool"`
				Limit    *rate  `json:"limit"`
				Override *rate  `json:"override"`
			}{s.pool, rateOf(o.Max, o.Per, false), rateOf(override.Max, override.Per, false)})
		}
		_, err = fmt.Fprintf(c.Out, "%s: %s\n", printable(s.pool), limitText(&o))
		return err
	})
}

// overrideFields are the flags of limit set as settings are read.
var overrideFields = []config.Field[consensus.Override]{
	config.NumberField(maxName, 1, 1_000_000_000, "", "", func(o *consensus.Override) *int { return &o.Max }),
	config.DurationField(perName, time.Millisecond, 744*time.Hour, "", "", func(o *consensus.Override) *time.Duration { return &o.Per }),
}

func (c *CLI) limitSet(ctx context.Context, cmd *ucli.Command) error {
	flags := map[string]string{}
	for _, flag := range []string{maxName, perName} {
		if cmd.IsSet(flag) {
			flags[flag] = cmd.String(flag)
		}
	}
	var o consensus.Override
	if err := config.Join(config.LoadFlags(overrideFields, flags, &o)); err != nil {
		return err
	}
	if o.Max == 0 {
		return fmt.Errorf("%s: --%s is %s, allowed: 1 to 1000000000; numathrottle limit clear ends an override",
			cmd.FullName(), maxName, map[bool]string{true: "0", false: "missing"}[cmd.IsSet(maxName)])
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		if err := consensus.SaveOverride(ctx, s.store, s.pool, o); err != nil {
			return err
		}
		saved, err := consensus.LoadOverride(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		per := "the configured period"
		if saved.Per > 0 {
			per = saved.Per.String()
		}
		_, err = fmt.Fprintf(c.Out, "%s: %d per %s, from the next sync of each processor on; a higher rate of a strict limit within 15 s\n",
			printable(s.pool), saved.Max, per)
		return err
	})
}

func (c *CLI) limitClear(ctx context.Context, cmd *ucli.Command) error {
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		if err := consensus.ClearOverride(ctx, s.store, s.pool); err != nil {
			return err
		}
		o, err := consensus.LoadOverview(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Out, "%s: no override; %s\n", printable(s.pool), strings.TrimSuffix(limitText(&o), " that a processor tells"))
		return err
	})
}
