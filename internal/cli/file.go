package cli

import (
	"context"
	"fmt"
	"slices"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
)

func (c *CLI) fileCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "file",
		Usage: "show or end what a changed settings file has set in a pool",
		Description: "When the settings file of a pod changes, the limit, the quotas, the prices and the log level in it count for all pods of the pool, " +
			"after overrides and quotas that operators have set. The pool is that of the settings, or --pool.",
		Commands: []*ucli.Command{
			{
				Name: "show", Usage: "print the file in force, and the files of the pods", Flags: outputFlags("a line of JSON"),
				Action: c.onPool(always(fileShow)),
			},
			{
				Name: "clear", Usage: "end it: pods go by the files with which they have started, until one changes again",
				Action: c.onPool(always(fileClear)),
			},
		},
	}
}

// A fileStatus is the --json output for settings files.
type fileStatus struct {
	Pool string `json:"pool"`
	// InForce is the changed file that counts for all pods, as NAME@HASH; empty: none has changed.
	InForce  string    `json:"inForce,omitempty"`
	Limit    *rate     `json:"limit,omitempty"`
	Quotas   bool      `json:"quotas,omitempty"`
	LogLevel string    `json:"logLevel,omitempty"`
	Pods     []podFile `json:"pods"`
}

// A podFile is the settings file of a pod, by its hash.
type podFile struct {
	ID            string `json:"id"`
	Hash          string `json:"hash"`
	Unusable      bool   `json:"unusable,omitempty"`
	RestartNeeded bool   `json:"restartNeeded,omitempty"`
}

func fileShow(ctx context.Context, s *access) (reply, error) {
	o, err := s.Overview(ctx)
	if err != nil {
		return reply{}, err
	}
	is := fileStatus{Pool: o.Pool, Pods: []podFile{}}
	lines := []string{"no settings file has changed: pods go by those with which they have started"}
	if f := &o.File; f.Hash != "" {
		is.InForce, is.Limit, is.Quotas, is.LogLevel = f.String(), rateOf(f.Max, f.Per, false, 0), f.Quotas != nil, f.LogLevel
		lines[0] = fileText(f)
	}
	for i := range o.Processors {
		p := &o.Processors[i]
		if p.File == "" {
			continue
		}
		is.Pods = append(is.Pods, podFile{p.ID, p.File, p.FileFault, p.FileRestart})
		text := fmt.Sprintf("%s has %s", printable(p.ID), p.File)
		if p.FileFault {
			text += ", and now one that cannot be used"
		}
		if p.FileRestart {
			text += ", and needs a restart for some of it"
		}
		lines = append(lines, text)
	}
	return reply{json: is, lines: lines}, nil
}

// fileText describes the file in force.
func fileText(f *protocol.File) string {
	text := printable(f.String()) + " counts for all pods"
	if f.Max > 0 {
		text += ": " + why.LimitText(f.Max, f.Per)
	}
	if f.Quotas != nil {
		text += ", quotas"
	}
	if f.LogLevel != "" {
		text += ", logLevel " + f.LogLevel
	}
	return text
}

func fileClear(ctx context.Context, s *access) (reply, error) {
	o, err := s.Overview(ctx)
	if err != nil {
		return reply{}, err
	}
	unreadable := slices.Contains(o.Unreadable, "file")
	before, err := s.ClearFile(ctx)
	switch {
	case err != nil:
		return reply{}, err
	case unreadable:
		return say("settings of a file that this command cannot read have ended"), nil
	case before == "":
		return say("no changed settings file was in force"), nil
	}
	return say("%s no longer counts, from the next sync of each pod on", printable(before)), nil
}
