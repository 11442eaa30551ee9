package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	ucli "github.com/urfave/cli/v3"
)

// An act reads or changes one pool and returns the command's output.
type act func(ctx context.Context, s *access) (reply, error)

// A reply is the output of a command for one pool: json for --json, else text and lines. Each line follows the name of the pool.
type reply struct {
	json  any
	lines []string
	text  string
}

func say(format string, args ...any) reply {
	return reply{lines: []string{fmt.Sprintf(format, args...)}}
}

// always returns the read function of a command without flags and arguments of its own.
func always(do act) func(*ucli.Command) (act, error) {
	return func(*ucli.Command) (act, error) { return do, nil }
}

// onPool returns the action of a command. read reads its flags and arguments before any request to the store.
func (c *CLI) onPool(read func(cmd *ucli.Command) (act, error)) ucli.ActionFunc {
	return c.onPools(read, false, func(err error) error { return err })
}

// onPools is onPool for a command whose arguments are pools if many is set. explain explains an error of the store.
func (c *CLI) onPools(read func(cmd *ucli.Command) (act, error), many bool, explain func(error) error) ucli.ActionFunc {
	return func(ctx context.Context, cmd *ucli.Command) error {
		do, err := read(cmd)
		if err != nil {
			return err
		}
		out, err := c.newPager(cmd)
		if err != nil {
			return err
		}
		s, err := c.connect(ctx, cmd)
		if err != nil {
			return explain(err)
		}
		defer func() { _ = s.Store.Close() }() // changes are on record
		pools := []string{s.Name}
		if many && cmd.Args().Present() {
			pools = cmd.Args().Slice()
		}
		hung := false
		defer func() {
			if many && !hung { // it would wait for the store once more
				s.hintNear(ctx, pools, c.Err)
			}
		}()
		return out.run(ctx, func(ctx context.Context) error {
			var errs []error
			var page bytes.Buffer
			for _, pool := range pools {
				s.use(pool)
				var r reply
				err := s.call(ctx, func(ctx context.Context) error {
					r, err = do(ctx, s)
					return err
				})
				if err == nil {
					err = r.write(&page, s.Name, out.json)
				}
				err = s.suggest(ctx, cmd.FullName(), s.Name, err)
				errs = append(errs, explain(err))
				if _, hung = errors.AsType[*storeError](err); hung {
					break // the others would wait as long, and say the same
				}
			}
			return errors.Join(append(errs, out.print(page.String()))...)
		})
	}
}

// write writes the output for one pool.
func (r *reply) write(page *bytes.Buffer, pool string, asJSON bool) error {
	if asJSON {
		return writeJSON(page, r.json)
	}
	if r.text != "" && page.Len() > 0 {
		page.WriteByte('\n')
	}
	page.WriteString(r.text)
	for _, line := range r.lines {
		_, _ = fmt.Fprintf(page, "%s: %s\n", printable(pool), line)
	}
	return nil
}
