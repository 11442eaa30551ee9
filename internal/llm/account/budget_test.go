package account_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	. "github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest" //nolint:revive // it is read as a script
)

// waited is a scripted limiter that grants nothing without a wait.
type waited struct{ *Limiter }

func (waited) TryAcquire(int) (throttle.Permit, bool) { return throttle.Permit{}, false }

// How a call waits for a budget. One that is spent is logged, and reported at once if the purse refuses; else the call waits until it has its
// turn. It asks anew each half minute, unless its deadline or a known wait says how long that would take.
func TestHowBudgetsAreWaitedFor(t *testing.T) {
	deny := func(reason throttle.Reason, limit string, after time.Duration) Step {
		return Deny(&throttle.Error{Reason: reason, Limit: limit, RetryAfter: after})
	}
	const half, hour = 30 * time.Second, time.Hour
	for name, tc := range map[string]struct {
		script   []Step
		refuse   bool
		deadline bool // else the call is given up after an hour
		err      string
		took     time.Duration
		spent    int // lines of the log
	}{
		"it has something":              {[]Step{Grant()}, false, false, "", 0, 0},
		"it never has so much":          {[]Step{deny(throttle.ReasonTooLarge, "", 0), Grant()}, false, false, "can never be granted", 0, 0},
		"it is closed":                  {[]Step{Deny(throttle.ErrClosed), Grant()}, false, false, "closed", 0, 0},
		"it is frozen":                  {[]Step{deny(throttle.ReasonFrozen, "", 0), Block(), Grant()}, false, false, "", half, 0},
		"it does not answer":            {[]Step{Block(), Block(), Grant()}, false, false, "", half, 0},
		"it takes half a minute":        {[]Step{deny(throttle.ReasonLimit, "", half), Block(), Grant()}, false, false, "", half, 0},
		"it takes longer":               {[]Step{deny(throttle.ReasonLimit, "", half+1), Block(), Grant()}, false, false, "canceled", hour, 0},
		"there is a deadline":           {[]Step{deny(throttle.ReasonLimit, "", 0), Block(), Grant()}, false, true, "deadline", hour, 0},
		"it is spent":                   {[]Step{deny(throttle.ReasonBudget, "", hour), Block()}, false, false, "canceled", hour, 1},
		"it is spent, and refuses":      {[]Step{deny(throttle.ReasonBudget, "", hour), Grant()}, true, false, "the budget is spent", 0, 1},
		"that of another limit":         {[]Step{deny(throttle.ReasonBudget, "day", hour), Grant()}, true, false, "", 0, 1},
		"it is gone when limits have":   {[]Step{Grant(), Block(), Grant()}, false, false, "", 5 * time.Second, 0},
		"it is spent when limits have":  {[]Step{Grant(), deny(throttle.ReasonBudget, "", hour)}, true, false, "spent", 0, 1},
		"it is frozen when limits have": {[]Step{Grant(), deny(throttle.ReasonFrozen, "", 0), Grant()}, false, false, "", 0, 0},
	} {
		virtually(t, name, func(t *testing.T) {
			c := account.Config{Provider: profile.SelfHosted}
			c.Purse = account.NewPurse(map[string]account.Price{"m": {Output: "1"}}, waited{New(tc.script...)}, tc.refuse, slog.New(slog.DiscardHandler))
			l, log := logged(t, c)
			ctx, cancel := context.WithTimeout(t.Context(), hour)
			if !tc.deadline {
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(hour, cancel)
			}
			defer cancel()
			began := time.Now()
			_, err := l.Limiter().Acquire(account.WithCall(ctx, &account.Call{Model: "m"}), 1)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			require.Equal(t, tc.took, time.Since(began))
			require.Equal(t, tc.spent, strings.Count(log.String(), "the budget is spent"), log.String())
		})
	}
}
