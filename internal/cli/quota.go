package cli

import (
	"context"
	"maps"
	"slices"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// otherName is the flag for all tags without a quota of their own.
const otherName = "other"

// empty is printed where nothing is changed.
const empty = "<empty>"

func (c *CLI) quotaCommand() *ucli.Command {
	one := func(flags ...ucli.Flag) []ucli.Flag {
		return append(append(flags,
			&ucli.BoolFlag{Name: otherName, Usage: "in the place of TAG: all tags without a quota of their own"}),
			outputFlags("a line of JSON")...)
	}
	anyArguments := func(context.Context, *ucli.Command) error { return nil } // tagOf checks them
	return &ucli.Command{
		Name:  "quota",
		Usage: "show or change what tags may use of a pool's limit",
		Description: "A change is in force in place of what the pods are configured with, from their next sync on, until it is cleared. " +
			"The pool is that of the settings, or --pool.",
		Commands: []*ucli.Command{
			{Name: "get", Usage: "print what is changed of a tag", ArgsUsage: "TAG", Flags: one(), ArgValidator: anyArguments, Action: c.onPool(c.quotaGet)},
			{
				Name: "set", Usage: "change the quota of a tag", ArgsUsage: "TAG",
				Description: "What no flag names stays as the last change left it; of a tag that is not changed, as the command's own " +
					"setting quotas has it. It prints what all tags have reserved together.",
				Flags: one(quotaFlags()...), ArgValidator: anyArguments, Action: c.onPool(c.quotaSet),
			},
			{
				Name: "clear", Usage: "end the change of a tag: what is configured counts again", ArgsUsage: "TAG",
				Description: "Changes that this command cannot read end together.",
				Flags:       one(&ucli.BoolFlag{Name: allName, Usage: "in the place of TAG: all changes"}), ArgValidator: anyArguments,
				Action: c.onPool(c.quotaClear),
			},
			{
				Name: "list", Usage: "print all changes", Flags: outputFlags("a line of JSON"),
				Action: c.onPool(always(quotaList)),
			},
			c.quotaSpentCommand(),
		},
	}
}

// tagOf returns the tag of a command; empty for all others. Without a tag it prints help.
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

// A quotaJSON is the --json output for a tag.
type quotaJSON struct {
	Pool  string          `json:"pool"`
	Tag   string          `json:"tag"`   // empty: all others
	Quota *throttle.Quota `json:"quota"` // null: nothing is changed
	quotaOrder
}

// A quotaOrder is the order of a changed quota in JSON.
type quotaOrder struct {
	Until  string `json:"until,omitempty"` // without: until it is cleared
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func quotaOrderOf(o protocol.QuotaOrder) quotaOrder {
	return quotaOrder{timeText(o.Until), o.By, o.Reason}
}

func (c *CLI) quotaGet(cmd *ucli.Command) (act, error) {
	tag, err := c.tagOf(cmd)
	return func(ctx context.Context, s *access) (reply, error) { return changeOf(ctx, s, tag) }, err
}

func (c *CLI) quotaClear(cmd *ucli.Command) (act, error) {
	if cmd.Bool(allName) {
		if cmd.Args().Present() || cmd.Bool(otherName) {
			return nil, wrongArguments("%s: --%s is set, and so is a tag, allowed: one of them", cmd.FullName(), allName)
		}
		return func(ctx context.Context, s *access) (reply, error) {
			if err := s.ClearQuotas(ctx); err != nil {
				return reply{}, err
			}
			return quotaList(ctx, s)
		}, nil
	}
	tag, err := c.tagOf(cmd)
	return func(ctx context.Context, s *access) (reply, error) {
		if err := s.ClearQuota(ctx, tag); err != nil {
			return reply{}, err
		}
		return changeOf(ctx, s, tag)
	}, err
}

// changeOf returns the recorded change for a tag.
func changeOf(ctx context.Context, s *access, tag string) (reply, error) {
	changes, err := protocol.LoadQuotas(ctx, s.Store, s.Name)
	q := changes.Of(tag)
	return reply{json: quotaJSON{s.Name, tag, q, quotaOrderOf(changes.Orders[tag])}, lines: []string{changeText(&changes, tag)}}, err
}

func quotaList(ctx context.Context, s *access) (reply, error) {
	o, err := s.Overview(ctx)
	if err != nil {
		return reply{}, err
	}
	changes, err := o.QuotaChanges()
	if changes.Tags == nil {
		changes.Tags = map[string]throttle.Quota{}
	}
	var lines []string
	for _, tag := range slices.Sorted(maps.Keys(changes.Tags)) {
		lines = append(lines, changeText(&changes, tag))
	}
	if changes.Other != nil {
		lines = append(lines, changeText(&changes, ""))
	}
	if len(lines) == 0 {
		lines = []string{empty + ": no quota is changed"}
	}
	orders := map[string]quotaOrder{}
	for tag, o := range changes.Orders {
		orders[tag] = quotaOrderOf(o)
	}
	reserved := s.Reserved(&o)
	return reply{json: struct {
		Pool     string                    `json:"pool"`
		Tags     map[string]throttle.Quota `json:"tags"`
		Other    *throttle.Quota           `json:"other"`            // null: nothing is changed
		Orders   map[string]quotaOrder     `json:"orders,omitempty"` // by tag; empty: all others
		Reserved *operate.Reserved         `json:"reserved"`
	}{s.Name, changes.Tags, changes.Other, orders, reserved}, lines: append(lines, reserved.String())}, err
}

// changeText describes the change of a tag's quota.
func changeText(c *protocol.QuotaChanges, tag string) string {
	o := c.Orders[tag]
	return tagText(tag) + " " + quotaText(c.Of(tag)) + endText(o.Until, o.By, o.Reason)
}

// tagText names a tag.
func tagText(tag string) string {
	if tag == "" {
		return "all other tags"
	}
	return "tag " + printable(tag)
}
