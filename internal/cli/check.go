package cli

import (
	"context"
	"fmt"
	"strconv"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
)

func (c *CLI) checkCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "check",
		Usage: "print the configuration in force, without secrets, and what is wrong with it",
		Description: "It reads what numathrottle.FromEnv reads, and the files that are named, and fills in the defaults. It asks no store. " +
			"With a fault it fails, after it has printed all of them; what is allowed and was hardly meant is a warning.",
		Action: func(_ context.Context, cmd *ucli.Command) error {
			conf, err := c.load(cmd)
			effective := conf.Effective()
			if effective.Limit.Max == 0 {
				_, _ = fmt.Fprintln(c.Out, "max: none (no limit)")
			}
			for _, s := range config.Show(open.Fields(), &effective) {
				value := s.Value
				if value != config.Redacted {
					value = strconv.Quote(value)
				}
				_, _ = fmt.Fprintf(c.Out, "%s: %s\n", s.Key, value) // nobody reads it
			}
			for _, warning := range conf.Warnings() {
				_, _ = fmt.Fprintf(c.Err, "warning: %s\n", warning)
			}
			return err
		},
	}
}
