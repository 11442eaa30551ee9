package cli

import (
	"context"
	"fmt"

	ucli "github.com/urfave/cli/v3"
)

// An act is what a command does to the pool of the settings, and what it prints of that.
type act func(ctx context.Context, s *access) (reply, error)

// A reply is what a command prints: with --json one value, else lines, each after the name of the pool.
type reply struct {
	json  any
	lines []string
}

func say(format string, args ...any) reply {
	return reply{lines: []string{fmt.Sprintf(format, args...)}}
}

// onPool is the action of a command. read reads its flags and arguments, before the store is asked for anything.
func (c *CLI) onPool(read func(cmd *ucli.Command) (act, error)) ucli.ActionFunc {
	return func(ctx context.Context, cmd *ucli.Command) error {
		do, err := read(cmd)
		if err != nil {
			return err
		}
		asJSON, err := wantsJSON(cmd)
		if err != nil {
			return err
		}
		s, err := c.connect(ctx, cmd)
		if err != nil {
			return err
		}
		defer func() { _ = s.Store.Close() }() // what was changed is on record
		var r reply
		err = s.call(ctx, func(ctx context.Context) error {
			r, err = do(ctx, s)
			return err
		})
		switch {
		case err != nil:
			return s.suggest(ctx, cmd.FullName(), s.Name, err)
		case asJSON:
			return writeJSON(c.Out, r.json)
		}
		for _, line := range r.lines {
			if _, err := fmt.Fprintf(c.Out, "%s: %s\n", printable(s.Name), line); err != nil {
				return err
			}
		}
		return nil
	}
}

// always is the reading of a command that has no flags and arguments of its own.
func always(do act) func(*ucli.Command) (act, error) {
	return func(*ucli.Command) (act, error) { return do, nil }
}
