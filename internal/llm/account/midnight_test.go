package account_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/llm/account"
	"github.com/numaproj-contrib/numathrottle/internal/llm/profile"
	"github.com/numaproj-contrib/numathrottle/internal/llm/prompt"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// A limit with a reset at midnight grants its amount in each calendar day of its zone, also over a restart of all pods, and on the day with 23
// hours and that with 25.
func TestMidnights(t *testing.T) {
	testkit.SkipRace(t, "it plays two days of syncs")
	testkit.SkipShort(t, "two days of syncs")
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	for name, day := range map[string]time.Time{
		"23 hours": time.Date(2000, time.April, 2, 0, 0, 0, 0, zone), "25 hours": time.Date(2000, time.October, 29, 0, 0, 0, 0, zone),
	} {
		virtually(t, name, func(t *testing.T) {
			const amount = 3
			until := func(at time.Time) { time.Sleep(time.Until(at)) }
			next := time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, zone)
			until(day.Add(-10 * time.Minute))
			openAs(t, account.Config{InFlight: 1}, t.Name()) // the store outlives the pods
			// granted opens a pod, and returns how many of many calls it grants.
			granted := func() (n int) {
				l := openOnly(t, account.Config{
					Provider: profile.Gemini, RequestsPerDay: account.Day{Amount: amount, Reset: account.Midnight, Zone: zone.String()},
				}, t.Name())
				defer func() { require.NoError(t, l.Close()) }()
				for range 2 * amount {
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					if p, err := l.Limiter().Acquire(account.WithCall(ctx, &account.Call{Size: prompt.Size{Bytes: 4}}), 1); err == nil {
						p.Settle(1)
						n++
					}
					cancel()
				}
				return n
			}
			require.Equal(t, amount, granted(), "in the evening before")
			require.Zero(t, granted(), "after a restart")
			until(day.Add(time.Second))
			require.Equal(t, amount, granted(), "after midnight")
			until(next.Add(-10 * time.Minute))
			require.Zero(t, granted(), "until the end of that day")
			until(next.Add(time.Second))
			require.Equal(t, amount, granted(), "on the next one")
		})
	}
}
