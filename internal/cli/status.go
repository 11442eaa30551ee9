package cli

import (
	"context"
	"reflect"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
)

func (c *CLI) statusCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "status",
		Usage:     "show the pods of pools, their shares, and the limit in force",
		ArgsUsage: "[POOL ...]",
		Description: "Without a POOL it is that of the settings. llm-map and http-sink have a pool for each of their limits, below that of " +
			"the vertex, such as NAMESPACE/PIPELINE/VERTEX/requests.\n\nAll is as of the pool's newest sync. " +
			"A SILENT pod hangs, was killed, or cannot reach the store. --watch tells when nothing moves.",
		Flags: append(append(outputFlags("a line of JSON for each pool"), watchFlags()...),
			&ucli.BoolFlag{Name: allName, Usage: "also documents that have ended, and pods that have died"}),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // pools
		Action:       c.onPools(readStatus, true, func(err error) error { return err }),
	}
}

// A sight is an overview of a pool, and since when it looked like that.
type sight struct {
	protocol.Overview

	since time.Time
}

func readStatus(cmd *ucli.Command) (act, error) {
	seen := map[string]sight{}
	return func(ctx context.Context, s *access) (reply, error) {
		o, err := s.Overview(ctx)
		if err != nil {
			return reply{}, err
		}
		now, still := time.Now(), time.Duration(0) // how long it has been unchanged
		if last, known := seen[s.Name]; known && reflect.DeepEqual(last.Overview, o) {
			still = now.Sub(last.since)
		} else {
			seen[s.Name] = sight{o, now}
		}
		var table strings.Builder
		writeTable(&table, &o, now, still, cmd.Bool(allName))
		return reply{json: newStatus(&o), text: table.String()}, nil
	}, nil
}
