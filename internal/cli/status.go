package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// The flags of status.
const (
	jsonName  = "json"
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
			"the vertex, such as NAMESPACE/PIPELINE/VERTEX/requests.\n\nShares, and when a processor was seen, are as of the pool's newest sync: " +
			"a pool that nobody is in any more stays as it was. --watch tells when nothing moves.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: jsonName, Usage: "print a line of JSON for each pool"},
			&ucli.BoolFlag{Name: watchName, Usage: "go on until interrupted"},
			&ucli.StringFlag{Name: everyName, Usage: "how often with --watch, 200ms to 1h", DefaultText: defaultEvery.String()},
		},
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
}

// A sight is what a pool looked like, and since when.
type sight struct {
	consensus.Overview

	since time.Time
}

func (c *CLI) status(ctx context.Context, cmd *ucli.Command) error {
	w := &watch{out: c.Out, pools: cmd.Args().Slice(), json: cmd.Bool(jsonName), every: defaultEvery, seen: map[string]sight{}}
	if cmd.IsSet(everyName) {
		field := config.DurationField(everyName, 200*time.Millisecond, time.Hour, "", "", func(w *watch) *time.Duration { return &w.every })
		if err := config.Join(config.LoadFlags([]config.Field[watch]{field}, map[string]string{everyName: cmd.String(everyName)}, w)); err != nil {
			return err
		}
	}
	var err error
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
	for i, pool := range w.pools {
		var o consensus.Overview
		err := w.call(ctx, func(ctx context.Context) (err error) {
			o, err = consensus.LoadOverview(ctx, w.store, pool)
			return err
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		last, known := w.seen[pool]
		still := time.Duration(0)
		if known && reflect.DeepEqual(last.Overview, o) {
			still = time.Since(last.since)
		} else {
			w.seen[pool] = sight{o, time.Now()}
		}
		var page bytes.Buffer
		switch {
		case w.json:
			err = writeJSON(&page, newStatus(&o))
		default:
			if i > 0 || known {
				page.WriteByte('\n')
			}
			writeTable(&page, &o, still)
		}
		if err == nil {
			_, err = page.WriteTo(w.out)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeTable prints one pool. still is how long nothing has changed that should.
func writeTable(out io.Writer, o *consensus.Overview, still time.Duration) {
	head := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) {
		_, _ = fmt.Fprintf(head, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("pool", "%s", printable(o.Pool))
	line("limit", "%s", limitText(o))
	if o.Ramp > 0 {
		line("ramp", "at %.4g per %s", o.Ramp, o.RampPer)
	}
	line("processors", "%s", processorsText(o))
	if len(o.Documents) > 0 {
		var names []string
		for _, d := range o.Documents {
			names = append(names, d.Name)
		}
		line("documents", "%s", strings.Join(names, ", "))
	}
	if len(o.Unreadable) > 0 {
		line("not readable", "%s: from a later version than this command", strings.Join(o.Unreadable, ", "))
	}
	if still > 0 {
		line("still", "nothing has changed for %s: nobody syncs", still.Round(100*time.Millisecond))
	}
	_ = head.Flush()
	if len(o.Processors) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nPROCESSOR\tSHARE\tDEMAND\tPOOL SIZE\tCONFIGURED\tSEEN")
	for i := range o.Processors {
		p := &o.Processors[i]
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s ago\n", printable(p.ID), percent(p.Claim), percent(p.Demand), p.PoolSize,
			configured(p), p.Silent.Round(100*time.Millisecond))
	}
	_ = table.Flush()
}

// processorsText is how many there are, and how they divide the limit.
func processorsText(o *consensus.Overview) string {
	if len(o.Processors) == 0 {
		return "none"
	}
	agreement := "AGREE"
	if !o.Agreed {
		agreement = "DISAGREE"
	}
	var claimed consensus.Share
	for i := range o.Processors {
		claimed += o.Processors[i].Claim
	}
	return fmt.Sprintf("%d, pool size %d %s, %s of the limit claimed", len(o.Processors), o.PoolSize, agreement, percent(claimed))
}

// limitText is the limit in force and where it comes from.
func limitText(o *consensus.Overview) string {
	switch {
	case o.Max == 0:
		return "none that a processor tells"
	case o.Override.Max > 0:
		return fmt.Sprintf("%d per %s, an override", o.Max, o.Per)
	}
	return fmt.Sprintf("%d per %s, the lowest that is configured", o.Max, o.Per)
}

// configured is what a processor's note says.
func configured(p *consensus.OverviewRow) string {
	switch {
	case p.Note == "":
		return "-"
	case p.Max == 0:
		return "unknown"
	case p.Hard:
		return fmt.Sprintf("%d per %s, hard", p.Max, p.Per)
	}
	return fmt.Sprintf("%d per %s", p.Max, p.Per)
}

func percent(s consensus.Share) string { return fmt.Sprintf("%.1f %%", 100*s.Fraction()) }

// printable is a name that others have made, as it cannot disturb a terminal.
func printable(name string) string {
	quoted := fmt.Sprintf("%q", name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}
