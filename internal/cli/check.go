package cli

import (
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/internal/version"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// versionCommand prints the version, as --version does.
func (c *CLI) versionCommand() *ucli.Command {
	return &ucli.Command{
		Name: "version", Usage: "print the version",
		Action: func(context.Context, *ucli.Command) error {
			_, err := fmt.Fprintf(c.Out, "%s version %s\n", name, version.Read())
			return err
		},
	}
}

// connectName is the flag of check that queries the store.
const connectName = "connect"

func (c *CLI) checkCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "check",
		Usage: "print the configuration in force, without secrets, and where it comes from; or what is wrong with it",
		Description: "It reads what numathrottle.FromEnv reads, and the files that are named, and fills in the defaults. " +
			"It asks no store, but with --connect. " +
			"With a fault it prints all faults, and nothing else; what is allowed and was hardly meant is a warning.",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: connectName, Usage: "do at the store what a pod does, too: join a pool of its own, and leave it"}},
		Action: func(ctx context.Context, cmd *ucli.Command) error {
			conf, r := c.read(cmd)
			r.Note(opening.CheckNamed(&conf, r)...)
			if err := r.Err(); err != nil { // these are not the intended settings, and other oddities follow from the faults
				return &kindError{err, errUsage}
			}
			effective := conf.Effective()
			if effective.Limit.Max == 0 {
				_, _ = fmt.Fprintln(c.Out, "max: none (no limit)")
			}
			if err := opening.Show(c.Out, opening.Fields(), &effective, r); err != nil {
				return err
			}
			for _, warning := range conf.Warnings() {
				_, _ = fmt.Fprintf(c.Err, "warning: %s\n", warning)
			}
			if cmd.Bool(connectName) {
				return c.tryStore(ctx, cmd)
			}
			return nil
		},
	}
}

// tryStore does at the store what a pod does, also with news, and reads the record of the pool, which need not exist yet.
func (c *CLI) tryStore(ctx context.Context, cmd *ucli.Command) error {
	s, err := c.connect(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { _ = s.Store.Close() }() // the trial has left
	if err := s.try(ctx); err != nil {
		return err
	}
	if err := s.call(ctx, func(ctx context.Context) error { return poolview.TryNews(ctx, s.Store) }); err != nil {
		return err
	}
	if _, err := s.overview(ctx, s.Name); err != nil && !errors.Is(err, driver.ErrNoPool) {
		return err
	}
	_, err = fmt.Fprintln(c.Out, "# The store answers.")
	return err
}

// try does at the store what a pod does.
func (s *access) try(ctx context.Context) error {
	return s.call(ctx, func(ctx context.Context) error { return poolview.Try(ctx, s.Store) })
}
