package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
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
				Action: c.onPool(always(limitShow)),
			},
			{
				Name: "set", Usage: "override the limit of a pool that is named and that somebody is in",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: maxName, Usage: "tokens per --per over the whole pool, 1 to 1000000000; required"},
					&ucli.StringFlag{Name: perName, Usage: "the period, 1ms to 744h", DefaultText: "the one that is configured"},
					&ucli.StringFlag{Name: forName, Usage: "how long, 1ms to 744h", DefaultText: "until it is cleared"},
					reasonFlag("why: whoever looks at the pool is told"), byFlag(),
				},
				Action: c.onPool(c.limitSet),
			},
			{Name: "clear", Usage: "end the override", Action: c.onPool(always(limitClear))},
		},
	}
}

func limitShow(ctx context.Context, s *access) (reply, error) {
	o, err := s.Limit(ctx)
	return reply{json: struct {
		Pool     string        `json:"pool"`
		Limit    *rate         `json:"limit"`
		Override *overrideRate `json:"override"`
	}{s.Name, limitRate(&o), overrideOf(&o.Override)}, lines: []string{limitText(&o)}}, err
}

// reasonFlag and byFlag are the flags of commands that change a pool.
func reasonFlag(usage string) ucli.Flag { return &ucli.StringFlag{Name: reasonName, Usage: usage} }

func byFlag() ucli.Flag {
	return &ucli.StringFlag{Name: byName, Usage: "who wants it", DefaultText: "this user at this machine"}
}

// author returns the author of a change: --by, or the user at this machine as far as known.
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

// systemUser returns the user according to the system: shells in containers have no variable for it.
func systemUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid-%d", os.Getuid())
}

// overrideFields are the flags of limit set, read like settings.
var overrideFields = []config.Field[*protocol.Override]{
	config.NumberField(maxName, 1, 1_000_000_000, "", "", func(o *protocol.Override) *int { return &o.Max }),
	config.DurationField(perName, time.Millisecond, 744*time.Hour, "", "", func(o *protocol.Override) *time.Duration { return &o.Per }),
}

func (c *CLI) limitSet(cmd *ucli.Command) (act, error) {
	flags := map[string]string{}
	for _, flag := range []string{maxName, perName} {
		if cmd.IsSet(flag) {
			flags[flag] = cmd.String(flag)
		}
	}
	var o protocol.Override
	if err := config.Join(config.LoadFlags(overrideFields, flags, &o)); err != nil {
		return nil, err
	}
	if o.Max == 0 {
		return nil, wrongArguments("%s: --%s is %s, allowed: 1 to 1000000000; numathrottle limit clear ends an override",
			cmd.FullName(), maxName, map[bool]string{true: "0", false: "missing"}[cmd.IsSet(maxName)])
	}
	var err error
	o.Until, err = endOf(cmd)
	o.Reason, o.By = cmd.String(reasonName), c.author(cmd)
	return func(ctx context.Context, s *access) (reply, error) {
		if err := s.mustBeNamed(ctx, cmd); err != nil {
			return reply{}, err
		}
		saved, err := s.SetLimit(ctx, o)
		if err != nil {
			return reply{}, err
		}
		strict := ""
		if pool, err := s.Overview(ctx); err == nil { // the limit is set anyway
			s.warnOfReserved(&pool, c.Err)
			if pool.Strict {
				strict = "; a higher rate of this strict limit within 15 s"
			}
		}
		return say("%s%s, from the next sync of each pod on%s",
			poolview.LimitText(&protocol.Overview{Max: saved.Max, Per: saved.Per}), endText(saved.Until, "", ""), strict), nil
	}, err
}

// warnOfReserved warns of a limit below what tags have reserved.
func (s *access) warnOfReserved(o *protocol.Overview, out io.Writer) {
	if r := s.Reserved(o); r != nil && r.Rate > r.Limit*(1+0x1p-10) {
		_, _ = fmt.Fprintf(out, "warning: %s: all that is reserved is scaled down\n", r)
	}
}

// mustBeNamed refuses a pool that the settings do not name: a limit set there would surprise later users.
func (s *access) mustBeNamed(ctx context.Context, cmd *ucli.Command) error {
	if s.named {
		return nil
	}
	names, _ := operate.Pools(ctx, s.Store)
	return wrongArguments("%s: no pool is named: --pool is missing; %s", cmd.FullName(), poolsText("", names))
}

func limitClear(ctx context.Context, s *access) (reply, error) {
	before, err := s.ClearLimit(ctx)
	if err != nil {
		return reply{}, err
	}
	done := "no override was in force"
	if before.Override.Max > 0 {
		done = fmt.Sprintf("the override of %d has ended", before.Override.Max)
	} else if slices.Contains(before.Unreadable, poolview.LimitDocument) {
		done = "an override that this command cannot read has ended"
	}
	o, err := s.Overview(ctx)
	return say("%s; %s", done, strings.TrimSuffix(limitText(&o), " that a pod tells")), err
}
