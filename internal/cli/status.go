package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// The flags of status.
const (
	watchName = "watch"
	everyName = "every"
)

const defaultEvery = 2 * time.Second

func (c *CLI) statusCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "status",
		Usage:     "show the processors of pools, their shares, and the limit in force",
		ArgsUsage: "[POOL ...]",
		Description: "Without a POOL it is that of the settings. llm-map and http-sink have a pool for each of their limits, below that of " +
			"the vertex, such as NAMESPACE/PIPELINE/VERTEX/requests.\n\nAll is as of the pool's newest sync: " +
			"a pool that nobody is in any more stays as it was. --watch tells when nothing moves.",
		Flags: append(outputFlags("a line of JSON for each pool"),
			&ucli.BoolFlag{Name: watchName, Usage: "go on until interrupted"},
			&ucli.StringFlag{Name: everyName, Usage: "how often with --watch, 200ms to 1h", DefaultText: defaultEvery.String()},
		),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // pools
		Action:       c.status,
	}
}

// A watch is one run of status.
type watch struct {
	*access

	out   io.Writer
	pools []string
	json  bool
	every time.Duration
	seen  map[string]sight
	// clock says to print the time above the pools, and redraw to clear a terminal before.
	clock, redraw bool
}

// A sight is what a pool looked like, and since when.
type sight struct {
	consensus.Overview

	since time.Time
}

func (c *CLI) status(ctx context.Context, cmd *ucli.Command) error {
	w := &watch{out: c.Out, pools: cmd.Args().Slice(), every: defaultEvery, seen: map[string]sight{}}
	var err error
	if w.json, err = wantsJSON(cmd); err != nil {
		return err
	}
	w.clock = cmd.Bool(watchName) && !w.json
	w.redraw = w.clock && c.terminal
	if cmd.IsSet(everyName) {
		field := config.DurationField(everyName, 200*time.Millisecond, time.Hour, "", "", func(w *watch) *time.Duration { return &w.every })
		if err := config.Join(config.LoadFlags([]config.Field[watch]{field}, map[string]string{everyName: cmd.String(everyName)}, w)); err != nil {
			return err
		}
	}
	if w.access, err = c.connect(ctx, cmd); err != nil {
		return err
	}
	defer func() { _ = w.store.Close() }() // nothing was changed
	if len(w.pools) == 0 {
		w.pools = []string{w.pool}
	}
	if err := w.show(ctx); err != nil || !cmd.Bool(watchName) {
		return err
	}
	return w.goOn(ctx, c.Err)
}

// goOn shows the pools again and again until ctx ends, which is how a watch is meant to end.
func (w *watch) goOn(ctx context.Context, errOut io.Writer) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := w.show(ctx); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(errOut, err) // it may pass
		}
	}
}

// show prints all pools once.
func (w *watch) show(ctx context.Context) error {
	var errs []error
	var page bytes.Buffer
	again := len(w.seen) > 0
	for i, pool := range w.pools {
		o, err := w.overview(ctx, pool)
		if err != nil {
			errs = append(errs, w.suggest(ctx, pool, err))
			continue
		}
		still := w.look(pool, &o)
		if w.json {
			errs = append(errs, writeJSON(&page, newStatus(&o)))
			continue
		}
		if i > 0 || again && !w.clock {
			page.WriteByte('\n')
		}
		writeTable(&page, &o, time.Now(), still)
	}
	if page.Len() == 0 {
		return errors.Join(errs...)
	}
	_, err := io.WriteString(w.out, w.heading(again)+page.String())
	return errors.Join(append(errs, err)...)
}

// clearScreen moves the cursor of a terminal to the upper left, and clears all.
const clearScreen = "\x1b[H\x1b[2J"

// heading is what stands above the pools of a watch: the time, on a terminal in the place of what was there.
func (w *watch) heading(again bool) string {
	if !w.clock {
		return ""
	}
	line := fmt.Sprintf("%s, every %s\n\n", time.Now().UTC().Format(time.RFC3339), w.every)
	switch {
	case w.redraw:
		return clearScreen + line
	case again:
		return "\n" + line
	}
	return line
}

// look returns for how long a pool has looked the same.
func (w *watch) look(pool string, o *consensus.Overview) time.Duration {
	last, known := w.seen[pool]
	if known && reflect.DeepEqual(last.Overview, *o) {
		return time.Since(last.since)
	}
	w.seen[pool] = sight{*o, time.Now()}
	return 0
}
