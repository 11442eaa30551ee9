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

// otherName is the flag that stands for all tags without a quota of their own.
const otherName = "other"

// empty is printed where nothing is changed.
const empty = "<empty>"

func (c *CLI) quotaCommand() *ucli.Command {
	one := func(flags ...ucli.Flag) []ucli.Flag {
		return append(append(flags,
			&ucli.BoolFlag{Name: otherName, Usage: "in the place of TAG: all tags without a quota of their own"}),
			outputFlags("a line of JSON")...)
	}
	anyArguments := func(context.Context, *ucli.Command) error { return nil } // tagOf looks at them
	return &ucli.Command{
		Name:  "quota",
		Usage: "show or change what tags may use of a pool's limit",
		Description: "A change is in force in place of what the pods are configured with, from their next sync on, until it is cleared. " +
			"The pool is that of the settings, or --pool.",
		Commands: []*ucli.Command{
			{Name: "get", Usage: "print what is changed of a tag", ArgsUsage: "TAG", Flags: one(), ArgValidator: anyArguments, Action: c.quotaGet},
			{
				Name: "set", Usage: "change the quota of a tag", ArgsUsage: "TAG",
				Description: "What no flag names stays as the last change left it; of a tag that is not changed, as the command's own " +
					"setting quotas has it. It prints what all tags have reserved together.",
				Flags: one(quotaFlags()...), ArgValidator: anyArguments, Action: c.quotaSet,
			},
			{
				Name: "clear", Usage: "end the change of a tag: what is configured counts again", ArgsUsage: "TAG", Flags: one(), ArgValidator: anyArguments,
				Action: c.quotaClear,
			},
			{
				Name: "list", Usage: "print all changes", Flags: outputFlags("a line of JSON"),
				Action: c.quotaList,
			},
			c.quotaSpentCommand(),
		},
	}
}

// tagOf returns the tag that a command is for; empty for all others. Without one it prints help.
func (c *CLI) tagOf(cmd *ucli.Command) (string, error) {
	args := cmd.Args()
	switch {
	case args.Len() > 1:
		return "", wrongArguments("%s: %.60q is one argument too many, allowed: one TAG", cmd.FullName(), args.Get(1))
	case cmd.Bool(otherName) && args.Present():
		return "", wrongArguments("%s: --%s is set, and so is the tag %.60q, allowed: one of them", cmd.FullName(), otherName, args.First())
	case !cmd.Bool(otherName) && args.First() == "":
		ucli.HelpPrinter(c.Err, ucli.CommandHelpTemplate, cmd)
		return "", wrongArguments("%s: TAG is missing, allowed: the name of a tag, or --%s", cmd.FullName(), otherName)
	}
	return args.First(), nil
}

// changeOf returns what is changed of a tag; nil: nothing.
func changeOf(changes *consensus.QuotaChanges, tag string) *throttle.Quota {
	if tag == "" {
		return changes.Other
	}
	if q, ok := changes.Tags[tag]; ok {
		return &q
	}
	return nil
}

func (c *CLI) quotaGet(ctx context.Context, cmd *ucli.Command) error {
	tag, err := c.tagOf(cmd)
	if err != nil {
		return err
	}
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error { return c.printQuota(ctx, s, tag, asJSON) })
}

// printQuota prints what is on record for a tag.
func (c *CLI) printQuota(ctx context.Context, s *access, tag string, asJSON bool) error {
	changes, err := consensus.LoadQuotas(ctx, s.store, s.pool)
	if err != nil {
		return err
	}
	q := changeOf(&changes, tag)
	if asJSON {
		return writeJSON(c.Out, struct {
			Pool  string          `json:"pool"`
			Tag   string          `json:"tag"`   // empty: all others
			Quota *throttle.Quota `json:"quota"` // null: nothing is changed
		}{s.pool, tag, q})
	}
	_, err = fmt.Fprintf(c.Out, "%s: %s %s\n", printable(s.pool), tagText(tag), quotaText(q))
	return err
}

func (c *CLI) quotaClear(ctx context.Context, cmd *ucli.Command) error {
	tag, err := c.tagOf(cmd)
	if err != nil {
		return err
	}
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		if err := consensus.SaveQuota(ctx, s.store, s.pool, tag, nil, false); err != nil {
			return err
		}
		return c.printQuota(ctx, s, tag, asJSON)
	})
}

func (c *CLI) quotaList(ctx context.Context, cmd *ucli.Command) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		changes, err := consensus.LoadQuotas(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		o, err := consensus.LoadOverview(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(c.Out, struct {
				Pool     string                    `json:"pool"`
				Tags     map[string]throttle.Quota `json:"tags"`
				Other    *throttle.Quota           `json:"other"` // null: nothing is changed
				Reserved *reservedJSON             `json:"reserved"`
			}{s.pool, notNil(changes.Tags), changes.Other, s.reservedOf(&o).json()})
		}
		var errs []error
		line := func(format string, args ...any) {
			_, err := fmt.Fprintf(c.Out, "%s: "+format+"\n", append([]any{printable(s.pool)}, args...)...)
			errs = append(errs, err)
		}
		for _, tag := range slices.Sorted(maps.Keys(changes.Tags)) {
			line("%s %s", tagText(tag), quotaText(changeOf(&changes, tag)))
		}
		if changes.Other != nil {
			line("%s %s", tagText(""), quotaText(changes.Other))
		}
		if len(changes.Tags) == 0 && changes.Other == nil {
			line("%s: no quota is changed", empty)
		}
		line("%s", s.reservedOf(&o))
		return errors.Join(errs...)
	})
}

func notNil(tags map[string]throttle.Quota) map[string]throttle.Quota {
	if tags == nil {
		return map[string]throttle.Quota{}
	}
	return tags
}

// A reserved is what all tags of a pool have reserved together, and what the limit grants in the long run, in tokens per second; known is
// false when no processor tells the former.
type reserved struct {
	rate, limit float64
	known       bool
}

type reservedJSON struct {
	Rate  float64 `json:"rate"`
	Limit float64 `json:"limit"`
}

// reservedOf is what is reserved in a pool, as the processors tell and the command's own settings know.
func (s *access) reservedOf(o *consensus.Overview) (r reserved) {
	r.limit = o.Granted
	r.rate, r.known = o.Reserved(s.quotas)
	return r
}

// String says it in words.
func (r reserved) String() string {
	if !r.known {
		return "no live pod has quotas"
	}
	return fmt.Sprintf("%.4g of %.4g tokens per second are reserved", r.rate, r.limit)
}

func (r reserved) json() *reservedJSON {
	if !r.known {
		return nil
	}
	return &reservedJSON{r.rate, r.limit}
}

// tagText names a tag.
func tagText(tag string) string {
	if tag == "" {
		return "all other tags"
	}
	return "tag " + printable(tag)
}
