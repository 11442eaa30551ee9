package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/duration"
)

// The flags of commands that can watch.
const (
	watchName = "watch"
	everyName = "every"
)

const defaultEvery = 2 * time.Second

func watchFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: watchName, Usage: "go on until interrupted"},
		&ucli.StringFlag{Name: everyName, Usage: "how often with --watch, 200ms to 1h", DefaultText: defaultEvery.String()},
	}
}

// A pager prints the output of a command: once, or repeatedly with --watch.
type pager struct {
	out, errOut io.Writer
	json, watch bool
	every       time.Duration
	// clock prints the time above each page, and redraw clears a terminal before it.
	clock, redraw bool
	printed       bool
}

// newPager reads the flags of outputFlags and watchFlags.
func (c *CLI) newPager(cmd *ucli.Command) (*pager, error) {
	s := &pager{out: c.Out, errOut: c.Err, watch: cmd.Bool(watchName), every: defaultEvery}
	var err error
	if s.json, err = wantsJSON(cmd); err != nil {
		return nil, err
	}
	s.clock = s.watch && !s.json
	s.redraw = s.clock && c.terminal
	if !cmd.IsSet(everyName) {
		return s, nil
	}
	field := config.DurationField(everyName, 200*time.Millisecond, time.Hour, "", "", func(s *pager) *time.Duration { return &s.every })
	err = config.Join(config.LoadFlags([]config.Field[*pager]{field}, map[string]string{everyName: cmd.String(everyName)}, s))
	if err == nil && !s.watch {
		err = wrongArguments("%s: --%s is set, but --%s is not", cmd.FullName(), everyName, watchName)
	}
	return s, err
}

// run shows a page. With --watch it repeats that until ctx ends, which is the normal end of a watch. It returns an error of the first page.
func (s *pager) run(ctx context.Context, show func(ctx context.Context) error) error {
	if err := show(ctx); err != nil || !s.watch {
		return err
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := show(ctx); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(s.errOut, err) // it may be temporary
		}
	}
}

// print prints a page, unless it is empty.
func (s *pager) print(page string) error {
	if page == "" {
		return nil
	}
	_, err := io.WriteString(s.out, s.heading()+page)
	s.printed = true
	return err
}

// clearScreen moves the cursor of a terminal to the upper left and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

// heading returns the line above a page of a watch: the time. On a terminal it clears the screen first.
func (s *pager) heading() string {
	if !s.clock {
		return ""
	}
	line := fmt.Sprintf("%s, every %s\n\n", time.Now().UTC().Format(time.RFC3339), duration.Short(s.every))
	switch {
	case s.redraw:
		return clearScreen + line
	case s.printed:
		return "\n" + line
	}
	return line
}
