package announce

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		figure Figure
		amount int64
		per    time.Duration
		want   string
	}{
		"the same":       {bare(Tokens, time.Minute, 60000), 60000, time.Minute, ""},
		"twice as much":  {bare(Tokens, time.Minute, 60000), 30000, time.Minute, ""},
		"less by one":    {bare(Tokens, time.Minute, 59999), 60000, time.Minute, "59999 tokens per minute, less than the configured 60000 per minute"},
		"more by one":    {bare(Input, time.Minute, 61), 30, time.Minute, "61 input tokens per minute, more than twice the configured 30 per minute"},
		"for a day":      {bare(Requests, day, 1000), 2000, day, "1000 requests per day, less than the configured 2000 per day"},
		"for an hour":    {bare(Output, time.Hour, 9), 1, time.Second, "9 output tokens per hour, less than the configured 1 per second"},
		"10 s as 1 min":  {bare(Requests, 10*time.Second, 20), 120, time.Minute, ""},
		"10 s below":     {bare(Requests, 10*time.Second, 20), 121, time.Minute, "20 requests per 10s, less than the configured 121 per minute"},
		"10 s above":     {bare(Requests, 10*time.Second, 20), 59, time.Minute, "20 requests per 10s, more than twice the configured 59 per minute"},
		"5 minutes":      {bare(Tokens, 5*time.Minute, 2499), 500, time.Minute, "2499 tokens per 5m, less than the configured 500 per minute"},
		"a slice":        {bare(Requests, 0, 20), 120, time.Minute, ""},
		"not configured": {bare(Requests, time.Minute, 20), 0, time.Minute, ""},
		"no period":      {bare(Requests, time.Minute, 20), 120, 0, ""},
		"the largest":    {bare(Requests, day, 1e12), 1e12, day, ""},
		"nearly so":      {bare(Requests, day, 1e12-1), 1e12, day, "999999999999 requests per day, less than the configured 1000000000000 per day"},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if want != "" {
				want = "limit acct/x: the service announces " + want
			}
			require.Equal(t, want, new(Watch).Note("acct/x", test.figure, test.amount, test.per))
		})
	}
}

func TestAWarningOnceUntilTheLimitWasFine(t *testing.T) {
	var w Watch
	note := func(kind Kind, per time.Duration, limit int64) bool {
		return w.Note("x", bare(kind, per, limit), 100, per) != ""
	}
	require.False(t, note(Tokens, time.Minute, 100))
	require.True(t, note(Tokens, time.Minute, 99))
	require.False(t, note(Tokens, time.Minute, 99))
	require.False(t, note(Tokens, time.Minute, 50), "still less")
	require.False(t, note(Tokens, time.Minute, 201), "it wasn't fine in between")
	require.True(t, note(Input, time.Minute, 99), "another kind")
	require.True(t, note(Tokens, day, 99), "another period")
	require.Empty(t, w.Note("x", bare(Tokens, time.Minute, 99), 0, time.Minute), "no verdict")
	require.False(t, note(Tokens, time.Minute, 99))
	require.False(t, note(Tokens, time.Minute, 150))
	require.True(t, note(Tokens, time.Minute, 99), "it was fine in between")
	require.False(t, note(Tokens, time.Minute, 99))
	require.False(t, note(Input, time.Minute, 99), "the other kind wasn't")
}

func TestManyAnswersAtOnceMakeOneWarning(t *testing.T) {
	var (
		w        Watch
		wg       sync.WaitGroup
		warnings atomic.Int64
	)
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if w.Note("x", bare(Tokens, time.Minute, 99), 100, time.Minute) != "" {
					warnings.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, warnings.Load())
}
