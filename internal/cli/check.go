package cli

import (
	"context"
	"fmt"
	"strconv"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/version"
	"github.com/numaproj-contrib/numathrottle/pkg/open"
)

// versionCommand prints which build it is, as --version does.
func (c *CLI) versionCommand() *ucli.Command {
	return &ucli.Command{
		Name: "version", Usage: "print the version",
		Action: func(context.Context, *ucli.Command) error {
			_, err := fmt.Fprintf(c.Out, "%s version %s\n", name, version.Read())
			return err
		},
	}
}

func (c *CLI) checkCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "check",
		Usage: "print the configuration in force, without secrets, and what is wrong with it",
		Description: "It reads what numathrottle.FromEnv reads, and the files that are named, and fills in the defaults. It asks no store. " +
			"With a fault it prints all faults, and nothing else; what is allowed and was hardly meant is a warning.",
		Action: func(_ context.Context, cmd *ucli.Command) error {
			conf, err := c.load(cmd)
			if err != nil { // what would be in force is not what is meant, and what else looks odd follows from the faults
				return err
			}
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
			return nil
		},
	}
}
