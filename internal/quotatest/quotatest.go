// Package quotatest has a limiter whose tags are each in a state of their own: one that is free, one whose budget is nearly
// spent, one whose total has nothing yet, and one that is paused. It is for tests of what draws for tags.
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
	Free   = "free"   // nothing of its own holds it
	Budget = "budget" // has Amount tokens for this month
	Total  = "total"  // has a total of one token in a month, of which nothing has accrued
	Paused = "paused" // is paused for a day
)

// Amount is what is left of the budget of the tag Budget, and of that of all tags without a quota of their own together.
const Amount = 2

// New returns a limiter that has tokens for everybody, and tags in the states above. It ends with the test. Whoever waits for what a
// tag lacks waits for hours at least, so that no test sees the end of it.
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

// reasons are why each tag is held back.
var reasons = map[string]throttle.Reason{Budget: throttle.ReasonBudget, Total: throttle.ReasonQuota, Paused: throttle.ReasonPause}

// Reason is why a tag is held back; empty for Free.
func Reason(tag string) throttle.Reason { return reasons[tag] }

// Fault returns what is missing in an error for a draw of a tag that is held back: it has to name the tag, the reason, and when to
// try again. nil: nothing.
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

// Used returns what each tag has used; the tags without a quota of their own are "".
func Used(th *throttle.Throttle) map[string]int64 {
	used := map[string]int64{}
	for _, tag := range th.Status().Tags {
		if tag.Used != 0 {
			used[tag.Tag] = tag.Used
		}
	}
	return used
}

// Hostile returns what a function for tags may make of a message that means no good. All of them count as tags without a quota of
// their own.
func Hostile() map[string]string {
	return map[string]string{
		"empty": "", "long": strings.Repeat("x", 100_000), "invalid UTF-8": "\xff\xfe\xfd", "control characters": "a\x00b\n",
	}
}
