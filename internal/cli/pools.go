package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/operate"
)

func (c *CLI) poolsCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "pools",
		Usage: "list the pools of the store",
		Description: "Pools that nobody is in are listed with --all, until the store forgets them. --quiet prints the names of all pools, " +
			"which takes no call for each.",
		Flags: append(outputFlags("a line of JSON for each pool"), &ucli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print names alone"},
			&ucli.BoolFlag{Name: allName, Usage: "also pools that nobody is in"}),
		Action: func(ctx context.Context, cmd *ucli.Command) error {
			asJSON, err := wantsJSON(cmd)
			if err != nil {
				return err
			}
			s, err := c.connect(ctx, cmd)
			if err != nil {
				return err
			}
			defer func() { _ = s.Store.Close() }() // nothing was changed
			names, err := s.pools(ctx)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				_, _ = fmt.Fprintln(c.Err, poolsText("", nil)) // Out is for pools only
			}
			if cmd.Bool("quiet") {
				for _, name := range names {
					_, _ = fmt.Fprintln(c.Out, printable(name))
				}
				return nil
			}
			err = c.printPools(ctx, s, names, asJSON, cmd.Bool(allName))
			s.hintNear(ctx, names, c.Err)
			return err
		},
	}
}

// printPools prints a line for each pool that has a record and, unless all is set, a live pod.
func (c *CLI) printPools(ctx context.Context, s *access, names []string, asJSON, all bool) error {
	left := 0 // out
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	if !asJSON && len(names) > 0 {
		_, _ = fmt.Fprintln(table, "POOL\tPODS\tLIMIT\tUSE\tWAITING\tSTATE")
	}
	var errs []error
	for _, name := range names {
		o, err := s.overview(ctx, name)
		if _, away := errors.AsType[*storeError](err); away {
			errs = append(errs, err)
			break // the others would wait as long, and say the same
		}
		switch {
		case errors.Is(err, driver.ErrNoPool): // it was deleted in the meantime
		case err != nil:
			errs = append(errs, err)
		case !all && dead(&o) == len(o.Processors):
			left++
		case asJSON:
			errs = append(errs, writeJSON(c.Out, newStatus(&o)))
		default:
			use, waiting := poolview.Use(&o)
			_, _ = fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%s\n", printable(name), len(o.Processors), cmp.Or(poolview.LimitText(&o), "-"),
				fraction(use), waiting, stateOf(&o, time.Now()))
		}
	}
	errs = append(errs, table.Flush())
	if left > 0 {
		_, _ = fmt.Fprintf(c.Err, "%d more that nobody is in: --%s\n", left, allName)
	}
	return errors.Join(errs...)
}

// pools returns the names of the pools of the store.
func (s *access) pools(ctx context.Context) (names []string, err error) {
	if s.listed != nil {
		return s.listed, nil
	}
	err = s.call(ctx, func(ctx context.Context) error {
		names, err = operate.Pools(ctx, s.Store)
		return err
	})
	if err == nil {
		s.listed = append([]string{}, names...)
	}
	return names, err
}

// mostSuggested bounds the pools that an error names.
const mostSuggested = 5

// suggest replaces the error of a missing pool by one that names the existing pools, and adds the command to the error of an empty pool.
func (s *access) suggest(ctx context.Context, command, pool string, err error) error {
	if _, empty := errors.AsType[*operate.EmptyPoolError](err); empty {
		return fmt.Errorf("%s: %w", command, err)
	}
	if !errors.Is(err, driver.ErrNoPool) {
		return err
	}
	names, failed := s.pools(ctx)
	if failed != nil {
		return err
	}
	if len(names) == 0 && !errors.Is(err, driver.ErrNoBucket) { // a trial would make one
		if failed := s.try(ctx); failed != nil { // no pod could make a pool
			return failed
		}
	}
	return &kindError{fmt.Errorf("%s: the pool %q has no record; %s", command, pool, poolsText(pool, names)), driver.ErrNoPool}
}

// poolsText names pools of the store, the ones most similar to like first.
func poolsText(like string, names []string) string {
	if len(names) == 0 {
		return "the store has no pool at all: is it the right store, and its prefix or bucket?"
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return likeness(like, b) - likeness(like, a) })
	more := max(len(names)-mostSuggested, 0)
	var quoted []string
	for _, name := range names[:len(names)-more] {
		quoted = append(quoted, printable(name))
	}
	text := "the store has " + strings.Join(quoted, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more (numathrottle pools)", more)
	}
	return text
}

// likeness returns the length of the common prefix of two names, and more if one contains the other.
func likeness(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if a != "" && strings.Contains(b, a) {
		n += len(a) + len(b)
	}
	return n
}

// completionFlag is the last argument that the library's completion scripts pass.
const completionFlag = "--generate-shell-completion"

// completePools prints the pools of the store where a shell completes a pool: after --pool, and after status and why. It returns false for
// any other completion.
func (c *CLI) completePools(ctx context.Context, args []string) bool {
	n := len(args)
	if n < 2 || args[n-1] != completionFlag || slices.Contains(args[:n-1], "--") {
		return false
	}
	last := args[n-2]
	isPool := last == "--pool" || last == "-pool"
	takesPools := slices.ContainsFunc(args[:n-1], ofPools) && !strings.HasPrefix(last, "-") && !takesValue(args[:n-2], last)
	if !isPool && !takesPools {
		return false
	}
	environ, flags := withoutConsole(c.Environ), map[string]string{}
	fields := opening.Fields()
	for i := range fields {
		f := &fields[i]
		if flag, ok := f.Flag(); ok && isStoreSetting(f.Key) && f.Key != "pool" {
			if value, ok := valueOf(args, flag); ok {
				flags[f.Key] = value
			}
		}
	}
	if file, ok := valueOf(args, configName); ok {
		environ = append(slices.Clip(environ), config.FileVariable+"="+file)
	}
	conf, err := opening.LoadFlags(environ, flags)
	if err != nil {
		return true // nothing can be suggested, and errors would not be seen
	}
	store, err := c.open(ctx, conf)
	if err != nil {
		return true
	}
	defer func() { _ = store.Close() }() // nothing was changed
	s := &access{Pool: operate.Pool{Store: store}, timeout: completionTimeout}
	names, _ := s.pools(ctx)
	for _, name := range names {
		if name == printable(name) {
			_, _ = fmt.Fprintln(c.Out, name)
		}
	}
	return true
}

// completionTimeout bounds the wait after a completion key.
const completionTimeout = 2 * time.Second

// valueOf returns the value of a flag in args.
func valueOf(args []string, flag string) (string, bool) {
	for i, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok && strings.TrimLeft(name, "-") == flag && strings.HasPrefix(name, "-") {
			return value, true
		}
		if strings.HasPrefix(arg, "-") && strings.TrimLeft(arg, "-") == flag && i+1 < len(args) {
			return args[i+1], true
		}
	}
	return "", false
}

// takesValue reports whether the last of args is a flag whose value is next. Few flags of status and why take none.
func takesValue(args []string, next string) bool {
	if len(args) == 0 || ofPools(next) {
		return false
	}
	last := args[len(args)-1]
	return strings.HasPrefix(last, "-") && !strings.Contains(last, "=") && last != "--"+jsonName && last != "--"+watchName && last != "--"+allName
}

// ofPools reports whether the arguments of a command are pools.
func ofPools(command string) bool { return command == "status" || command == "why" }
