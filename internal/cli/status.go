package cli

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

func (c *CLI) statusCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "status",
		Usage:     "show the pods of pools, their shares, and the limit in force",
		ArgsUsage: "[POOL ...]",
		Description: "Without a POOL it is that of the settings. llm-map and http-sink have a pool for each of their limits, below that of " +
			"the vertex, such as NAMESPACE/PIPELINE/VERTEX/requests.\n\nAll is as of the pool's newest sync. " +
			"Pods that were not heard for a lease count as dead. --watch tells when nothing moves.",
		Flags: append(append(outputFlags("a line of JSON for each pool"), watchFlags()...),
			&ucli.BoolFlag{Name: allName, Usage: "also documents that have ended, and pods that have died"}),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // pools
		Action:       c.status,
	}
}

// A watch is one run of status.
type watch struct {
	*access
	*pager

	pools []string
	all   bool // also what has ended
	seen  map[string]sight
}

// A sight is what a pool looked like, and since when.
type sight struct {
	consensus.Overview

	since time.Time
}

func (c *CLI) status(ctx context.Context, cmd *ucli.Command) error {
	w := &watch{pools: cmd.Args().Slice(), all: cmd.Bool(allName), seen: map[string]sight{}}
	var err error
	if w.pager, err = c.newPager(cmd); err != nil {
		return err
	}
	if w.access, err = c.connect(ctx, cmd); err != nil {
		return err
	}
	defer func() { _ = w.Store.Close() }() // nothing was changed
	if len(w.pools) == 0 {
		w.pools = []string{w.Name}
	}
	return w.run(ctx, w.show)
}

// show prints all pools once.
func (w *watch) show(ctx context.Context) error {
	var errs []error
	var page bytes.Buffer
	for i, pool := range w.pools {
		o, err := w.overview(ctx, pool)
		if err != nil {
			errs = append(errs, w.suggest(ctx, "numathrottle status", pool, err))
			continue
		}
		still := w.look(pool, &o)
		if w.json {
			errs = append(errs, writeJSON(&page, newStatus(&o)))
			continue
		}
		if i > 0 {
			page.WriteByte('\n')
		}
		writeTable(&page, &o, time.Now(), still, w.all)
	}
	return errors.Join(append(errs, w.print(page.String()))...)
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
