package cli

import (
	"context"
	"errors"
	"time"

	ucli "github.com/urfave/cli/v3"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/why"
)

func (c *CLI) whyCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "why",
		Usage:     "say in one sentence what holds the callers of a pool back, and what to do about it",
		ArgsUsage: "[POOL ...]",
		Description: "Without a POOL it is that of the settings. The console, /statusz and /readyz say the same. All is as of the pool's newest sync, " +
			"about a second ago. If nobody is in the pool, it joins one of its own and leaves it, to see whether a pod could.",
		Flags:        append(outputFlags("a line of JSON for each pool"), watchFlags()...),
		ArgValidator: func(context.Context, *ucli.Command) error { return nil }, // pools
		Action:       c.onPools(always(whyHeld), true, sentence),
	}
}

// explain says what limits the callers of a pool.
func explain(o *protocol.Overview, now time.Time) why.Answer { return why.Explain(why.Pool(o, now)) }

// A reasonJSON is the --json output for a pool.
type reasonJSON struct {
	Pool  string `json:"pool"`
	Why   string `json:"why"`
	Cause string `json:"cause"` // a reason of the metrics, or none, nobody or silent
	Level string `json:"level"` // broken, held, usual or nobody
}

func whyHeld(ctx context.Context, s *access) (reply, error) {
	o, err := s.Overview(ctx)
	a := explain(&o, time.Now())
	if err == nil && a.Cause == why.CauseNobody {
		err = s.try(ctx) // which may be why
	}
	return reply{json: reasonJSON{s.Name, a.Sentence, a.Cause, string(a.Level)}, lines: []string{a.Sentence}}, err
}

// sentence says what to do about a store that does not answer. Other errors stay as they are.
func sentence(err error) error {
	if _, away := errors.AsType[*storeError](err); !away {
		return err
	}
	var s why.State
	s.Failure, s.Remedy = why.FailureOf(err)
	return &storeError{errors.New(why.Explain(s).Sentence)}
}
