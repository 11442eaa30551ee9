package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
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
		Description: "An override is in force in place of what the pods are configured with, from their next sync on, until it is cleared. " +
			"The pool is that of the settings, or --pool.",
		Commands: []*ucli.Command{
			{
				Name: "show", Aliases: []string{"get"}, Usage: "print the override and the limit in force",
				Flags:  outputFlags("a line of JSON"),
				Action: c.limitShow,
			},
			{
				Name: "set", Usage: "override the limit of a pool that is named and that somebody is in",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: maxName, Usage: "tokens per --per over the whole pool, 1 to 1000000000; required"},
					&ucli.StringFlag{Name: perName, Usage: "the period, 1ms to 744h", DefaultText: "the one that is configured"},
					&ucli.StringFlag{Name: forName, Usage: "how long, 1ms to 744h", DefaultText: "until it is cleared"},
					reasonFlag("why: whoever looks at the pool is told"), byFlag(),
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
	err = s.call(ctx, func(ctx context.Context) error { return f(ctx, s) })
	return s.suggest(ctx, cmd.FullName(), s.pool, err)
}

func (c *CLI) limitShow(ctx context.Context, cmd *ucli.Command) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
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
		if asJSON {
			return writeJSON(c.Out, struct {
				Pool     string        `json:"pool"`
				Limit    *rate         `json:"limit"`
				Override *overrideRate `json:"override"`
			}{s.pool, limitRate(&o), overrideOf(&override)})
		}
		_, err = fmt.Fprintf(c.Out, "%s: %s\n", printable(s.pool), limitText(&o))
		return err
	})
}

// reasonFlag and byFlag are the flags of commands that change a pool.
func reasonFlag(usage string) ucli.Flag { return &ucli.StringFlag{Name: reasonName, Usage: usage} }

func byFlag() ucli.Flag {
	return &ucli.StringFlag{Name: byName, Usage: "who wants it", DefaultText: "this user at this machine"}
}

// author returns who makes a change: --by, or the user at this machine as far as it can be told.
func (c *CLI) author(cmd *ucli.Command) string {
	if cmd.IsSet(byName) {
		return cmd.String(byName)
	}
	host, err := os.Hostname()
	for _, by := range []string{c.variable("USER"), c.variable("LOGNAME"), c.user} {
		if by == "" {
			continue
		}
		if err == nil {
			by += "@" + host
		}
		if (&throttle.Paused{By: by}).Check(time.Time{}) == nil {
			return by
		}
	}
	return ""
}

// systemUser is who the system says that runs the command, for shells in containers have no variable for that.
func systemUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid-%d", os.Getuid())
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
		return &kindError{fmt.Errorf("%s: --%s is %s, allowed: 1 to 1000000000; numathrottle limit clear ends an override",
			cmd.FullName(), maxName, map[bool]string{true: "0", false: "missing"}[cmd.IsSet(maxName)]), errUsage}
	}
	var err error
	if o.Until, err = endOf(cmd); err != nil {
		return err
	}
	o.Reason, o.By = cmd.String(reasonName), c.author(cmd)
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		if err := s.changeable(ctx, cmd); err != nil {
			return err
		}
		if err := consensus.SaveOverride(ctx, s.store, s.pool, o); err != nil {
			return err
		}
		saved, err := consensus.LoadOverride(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		per := "the configured period"
		if saved.Per > 0 {
			per = limit.ShortDuration(saved.Per)
		}
		_, err = fmt.Fprintf(c.Out, "%s: %d per %s%s, from the next sync of each pod on; a higher rate of a strict limit within 15 s\n",
			printable(s.pool), saved.Max, per, endText(saved.Until, "", ""))
		return err
	})
}

// changeable refuses a pool that nobody has named, and one that nobody is in: a limit that is set there would do nothing
// now, and surprise whoever comes later.
func (s *access) changeable(ctx context.Context, cmd *ucli.Command) error {
	if !s.named {
		names, _ := s.pools(ctx)
		return &kindError{fmt.Errorf("%s: no pool is named: --pool is missing; %s", cmd.FullName(), poolsText("", names)), errUsage}
	}
	o, err := consensus.LoadOverview(ctx, s.store, s.pool)
	if err == nil && len(o.Processors) == 0 {
		err = &kindError{fmt.Errorf("%s: nobody is in the pool %q: there is no limit to change", cmd.FullName(), s.pool), errRefused}
	}
	return err
}

func (c *CLI) limitClear(ctx context.Context, cmd *ucli.Command) error {
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		before, err := consensus.LoadOverride(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		if err := consensus.ClearOverride(ctx, s.store, s.pool); err != nil {
			return err
		}
		o, err := consensus.LoadOverview(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		done := "no override was in force"
		if before.Max > 0 {
			done = fmt.Sprintf("the override of %d has ended", before.Max)
		}
		_, err = fmt.Fprintf(c.Out, "%s: %s; %s\n", printable(s.pool), done, strings.TrimSuffix(limitText(&o), " that a pod tells"))
		return err
	})
}
