// Package quotatest provides a limiter whose tags are in different states. One is free, the budget of one is nearly spent, one has a total
// without tokens yet, and one is paused. It is for tests of callers that draw for tags.
package quotatest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// The tags of a limiter of New.
const (
	Free   = "free"   // not held back by itself
	Budget = "budget" // has Amount tokens for this month
	Total  = "total"  // has a total of one token in a month, without any yet
	Paused = "paused" // is paused for a day
)

// Amount is the rest of the tag Budget's budget, and of the common budget of all tags without a quota of their own.
const Amount = 2

// New returns a limiter with ample tokens, and tags in the states above. It ends with the test. Waits for a tag's missing tokens take at
// least hours, so that no test sees their end.
func New(tb testing.TB, opts ...throttle.Option) *throttle.Throttle {
	tb.Helper()
	month := []throttle.Budget{{Amount: Amount, Per: "month"}}
	th, err := throttle.New(throttle.Limit{Max: 1_000_000}, append(opts, throttle.WithQuotas(throttle.Quotas{
		Tags: map[string]throttle.Quota{
			Free: {}, Budget: {Budgets: month}, Paused: {}, Total: {Total: 1, Per: 31 * 24 * time.Hour},
		},
		Other: throttle.Quota{Budgets: month},
	}))...)
	if err != nil {
		tb.Fatalf("limiter with quotas: %v", err)
	}
	tb.Cleanup(func() { _ = th.Close() }) // a test may have closed it
	if _, err := th.Pause(tb.Context(), time.Now().Add(24*time.Hour), "test", throttle.PauseTag(Paused)); err != nil {
		tb.Fatalf("pause: %v", err)
	}
	return th
}

// Passes returns how many of n messages of a tag, of one token each, get their tokens.
func Passes(tag string, n int) int {
	switch tag {
	case Free:
		return n
	case Budget:
		return min(n, Amount)
	default:
		return 0
	}
}

// reasons maps each tag to the reason that holds it back.
var reasons = map[string]throttle.Reason{Budget: throttle.ReasonBudget, Total: throttle.ReasonQuota, Paused: throttle.ReasonPause}

// Reason returns the reason that holds a tag back; empty for Free.
func Reason(tag string) throttle.Reason { return reasons[tag] }

// Fault checks the error for a draw of a held-back tag. It must name the tag, the reason, and when to retry. Fault returns the missing
// part, or nil.
func Fault(err error, tag string) error {
	e, ok := errors.AsType[*throttle.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("%w is no *throttle.Error", err)
	case e.Tag != tag, e.Reason != reasons[tag], e.RetryAfter <= 0:
		return fmt.Errorf("the error is for tag %q by %s, retry after %s; want %q by %s, with a time: %w",
			e.Tag, e.Reason, e.RetryAfter, tag, reasons[tag], err)
	}
	return nil
}

// Used returns the use of each tag; "" stands for the tags without a quota of their own.
func Used(th *throttle.Throttle) map[string]int64 {
	used := map[string]int64{}
	for _, tag := range th.Status().Tags {
		if tag.Used != 0 {
			used[tag.Tag] = tag.Used
		}
	}
	return used
}

// Hostile returns tags that malicious messages may lead to. All of them count as tags without a quota of their own.
func Hostile() map[string]string {
	return map[string]string{
		"empty": "", "long": strings.Repeat("x", 100_000), "invalid UTF-8": "\xff\xfe\xfd", "control characters": "a\x00b\n",
	}
}
