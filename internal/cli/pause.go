package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/poolview"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The flags of pause and resume.
const (
	forName    = "for"
	reasonName = "reason"
	tagName    = "tag"
	byName     = "by"
)

// longestPause bounds --for. A pause without an end lasts until resume.
const longestPause = 744 * time.Hour

func (c *CLI) pauseCommand() *ucli.Command {
	return &ucli.Command{
		Name:        "pause",
		Usage:       "stop all pods of a pool, or show what is paused",
		Description: "Nobody in the pool is granted a token until the time is over or somebody resumes. Of two pauses the one that ends later counts.",
		Commands: []*ucli.Command{
			{
				Name: "show", Aliases: []string{"get"}, Usage: "print the pauses on record",
				Flags: outputFlags("a line of JSON"), Action: c.onPool(always(pauseShow)),
			},
			{
				Name: "set", Usage: "pause the pool, or one tag",
				Flags: []ucli.Flag{
					&ucli.StringFlag{Name: forName, Usage: "how long, 1ms to 744h", DefaultText: "until it is cleared"},
					reasonFlag("why: callers that are held back are told"), byFlag(), tagFlag(),
				},
				Action: c.onPool(c.pauseSet),
			},
			{Name: "clear", Usage: "let the pool, or one tag, go on", Flags: []ucli.Flag{tagFlag()}, Action: c.onPool(pauseClear)},
		},
	}
}

func tagFlag() ucli.Flag {
	return &ucli.StringFlag{Name: tagName, Usage: "one tag alone", DefaultText: "the whole pool"}
}

// pauseFields are the flags of pause set, read like settings.
var pauseFields = []config.Field[*time.Duration]{
	config.DurationField(forName, time.Millisecond, longestPause, "", "", func(d *time.Duration) *time.Duration { return d }),
}

// flagTag returns the value of --tag. An empty one would be the whole pool, by mistake.
func flagTag(cmd *ucli.Command) (string, error) {
	tag := cmd.String(tagName)
	if cmd.IsSet(tagName) && tag == "" {
		return "", wrongArguments("%s: --%s is empty, allowed: the name of a tag", cmd.FullName(), tagName)
	}
	return tag, nil
}

// noPattern refuses a pattern in place of a tag, which would be the name of a tag that nobody has.
func (s *access) noPattern(cmd *ucli.Command, what, tag string) error {
	if _, named := s.Quotas.Tags[tag]; strings.Contains(tag, "*") && !named {
		return wrongArguments("%s: %s is %.60q, a pattern, allowed: the name of a tag; patterns are changed where the pods are configured",
			cmd.FullName(), what, tag)
	}
	return nil
}

func (c *CLI) pauseSet(cmd *ucli.Command) (act, error) {
	tag, err := flagTag(cmd)
	if err != nil {
		return nil, err
	}
	p := throttle.Paused{Tag: tag, Reason: cmd.String(reasonName), By: c.author(cmd)}
	p.Until, err = endOf(cmd)
	return func(ctx context.Context, s *access) (reply, error) {
		if err := s.noPattern(cmd, "--"+tagName, tag); err != nil {
			return reply{}, err
		}
		if err := s.Pause(ctx, p); err != nil {
			return reply{}, err
		}
		return pauseShow(ctx, s)
	}, err
}

// endOf returns the end according to --for; the zero Time without it.
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

// resumeCommand is pause clear under the name that many look for.
func (c *CLI) resumeCommand() *ucli.Command {
	return &ucli.Command{
		Name: "resume", Usage: "let a paused pool, or one tag, go on: pause clear",
		Flags: []ucli.Flag{tagFlag()}, Action: c.onPool(pauseClear),
	}
}

func pauseClear(cmd *ucli.Command) (act, error) {
	tag, err := flagTag(cmd)
	return func(ctx context.Context, s *access) (reply, error) {
		o, err := s.Overview(ctx)
		if err != nil {
			return reply{}, err
		}
		lost := slices.Contains(o.Unreadable, poolview.PauseDocument)
		ended, err := s.Resume(ctx, tag)
		if err != nil {
			return reply{}, err
		}
		var lines []string
		for _, p := range ended {
			lines = append(lines, "ended: "+pauseLine(&p))
		}
		if lost {
			lines = append(lines, "pauses that this command cannot read have ended")
		}
		if len(ended) == 0 && !lost {
			what := "the pool"
			if tag != "" {
				what = "tag " + printable(tag)
			}
			lines = append(lines, "nothing was ended: "+what+" was not paused")
		}
		left, err := pauseShow(ctx, s)
		return reply{lines: append(lines, left.lines...)}, err
	}, err
}

// pauseShow prints a line for each pause on record.
func pauseShow(ctx context.Context, s *access) (reply, error) {
	pauses, err := s.Pauses(ctx)
	var lines []string
	for _, p := range pauses {
		lines = append(lines, pauseLine(&p))
	}
	if len(pauses) == 0 {
		lines = []string{"not paused"}
	}
	return reply{json: struct {
		Pool   string  `json:"pool"`
		Paused []pause `json:"paused"`
	}{s.Name, pausesOf(pauses)}, lines: lines}, err
}

// pauseLine describes a pause.
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
