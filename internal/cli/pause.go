package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The flags of pause and resume.
const (
	forName    = "for"
	reasonName = "reason"
	tagName    = "tag"
	byName     = "by"
)

// longestPause is the longest that can be typed. One without an end lasts until resume.
const longestPause = 744 * time.Hour

func (c *CLI) pauseCommand() *ucli.Command {
	return &ucli.Command{
		Name:        "pause",
		Usage:       "stop all pods of a pool, or show what is paused",
		Description: "Nobody in the pool is granted a token until the time is over or somebody resumes. Of two pauses the one that ends later counts.",
		Commands: []*ucli.Command{
			{
				Name: "show", Aliases: []string{"get"}, Usage: "print the pauses on record",
				Flags: outputFlags("a line of JSON"), Action: c.pauseShow,
			},
			{
				Name: "set", Usage: "pause the pool, or one tag",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: forName, Usage: "how long, 1ms to 744h", DefaultText: "until it is cleared"},
					reasonFlag("why: callers that are held back are told"), byFlag(), tagFlag(),
				},
				Action: c.pauseSet,
			},
			{Name: "clear", Usage: "let the pool, or one tag, go on", Flags: []ucli.Flag{tagFlag()}, Action: c.pauseClear},
		},
	}
}

func tagFlag() ucli.Flag {
	return &ucli.StringFlag{Name: tagName, Usage: "one tag alone", DefaultText: "the whole pool"}
}

// pauseFields are the flags of pause set as settings are read.
var pauseFields = []config.Field[time.Duration]{
	config.DurationField(forName, time.Millisecond, longestPause, "", "", func(d *time.Duration) *time.Duration { return d }),
}

func (c *CLI) pauseSet(ctx context.Context, cmd *ucli.Command) error {
	p := throttle.Paused{Tag: cmd.String(tagName), Reason: cmd.String(reasonName), By: c.author(cmd)}
	var err error
	if p.Until, err = endOf(cmd); err != nil {
		return err
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		if err := consensus.SavePause(ctx, s.store, s.pool, p); err != nil {
			return err
		}
		return c.printPauses(ctx, s)
	})
}

// endOf returns when what --for says is over; the zero Time without it.
func endOf(cmd *ucli.Command) (time.Time, error) {
	if !cmd.IsSet(forName) {
		return time.Time{}, nil
	}
	var d time.Duration
	if err := config.Join(config.LoadFlags(pauseFields, map[string]string{forName: cmd.String(forName)}, &d)); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(d), nil
}

// resumeCommand is pause clear by the name that many look for.
func (c *CLI) resumeCommand() *ucli.Command {
	return &ucli.Command{
		Name: "resume", Usage: "let a paused pool, or one tag, go on: pause clear",
		Flags: []ucli.Flag{tagFlag()}, Action: c.pauseClear,
	}
}

func (c *CLI) pauseClear(ctx context.Context, cmd *ucli.Command) error {
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		before, err := consensus.LoadPauses(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		tag := cmd.String(tagName)
		if err := consensus.ClearPause(ctx, s.store, s.pool, tag); err != nil {
			return err
		}
		before = slices.DeleteFunc(pausesNow(before, time.Now()), func(p throttle.Paused) bool { return p.Tag != tag })
		if len(before) == 0 {
			what := "the pool"
			if tag != "" {
				what = "tag " + printable(tag)
			}
			if _, err := fmt.Fprintf(c.Out, "%s: nothing was ended: %s was not paused\n", printable(s.pool), what); err != nil {
				return err
			}
			return c.printPauses(ctx, s)
		}
		for _, p := range before {
			if _, err := fmt.Fprintf(c.Out, "%s: ended: %s\n", printable(s.pool), pauseLine(&p)); err != nil {
				return err
			}
		}
		return c.printPauses(ctx, s)
	})
}

func (c *CLI) pauseShow(ctx context.Context, cmd *ucli.Command) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	if !asJSON {
		return c.onPool(ctx, cmd, c.printPauses)
	}
	return c.onPool(ctx, cmd, func(ctx context.Context, s *access) error {
		pauses, err := consensus.LoadPauses(ctx, s.store, s.pool)
		if err != nil {
			return err
		}
		return writeJSON(c.Out, struct {
			Pool   string  `json:"pool"`
			Paused []pause `json:"paused"`
		}{s.pool, pausesOf(pausesNow(pauses, time.Now()))})
	})
}

// printPauses prints a line for each pause on record.
func (c *CLI) printPauses(ctx context.Context, s *access) error {
	pauses, err := consensus.LoadPauses(ctx, s.store, s.pool)
	if err != nil {
		return err
	}
	pauses = pausesNow(pauses, time.Now())
	if len(pauses) == 0 {
		_, err = fmt.Fprintf(c.Out, "%s: not paused\n", printable(s.pool))
		return err
	}
	for _, p := range pauses {
		if _, err := fmt.Fprintf(c.Out, "%s: %s\n", printable(s.pool), pauseLine(&p)); err != nil {
			return err
		}
	}
	return nil
}

// pauseLine is a pause in words.
func pauseLine(p *throttle.Paused) string {
	what, until := "paused", ""
	if p.Tag != "" {
		what = "tag " + printable(p.Tag) + " paused"
	}
	if p.Until.IsZero() {
		until = " until it is cleared"
	}
	return what + until + endText(p.Until, p.By, p.Reason)
}
