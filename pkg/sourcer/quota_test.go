package sourcer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A source draws before it knows its messages, so that all of them have one tag: the wrapper is given the limiter of it. It reads what
// the tag's total lets through, no more, and holds up no other tag.
func TestASourceReadsTheTotalOfItsTag(t *testing.T) {
	for name, busy := range map[string]time.Duration{"at once": 0, "in a MonoVertex": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithQuotas(throttle.Quotas{
					Tags: map[string]throttle.Quota{"acme": {Total: 50}},
				}))
				require.NoError(t, err)
				defer func() { require.NoError(t, th.Close()) }()
				s := sourcer.Wrap(&source{pending: 1_000_000}, th.ForTag("acme"))
				r := drain(t, s, time.Minute, busy)
				require.EqualValues(t, 50*20, s.Pending(t.Context()), "the autoscaler sees what the total lets through in 20 s")
				require.LessOrEqual(t, r.messages, 50*60+5, "its total, and its burst")
				require.GreaterOrEqual(t, float64(r.messages), 0.9*50*60)
				kept := quotatest.Used(th)["acme"] - int64(r.messages)
				require.GreaterOrEqual(t, kept, int64(0), "each message is paid for")
				require.LessOrEqual(t, kept, int64(50), "at most one batch is kept for the next Read")
				_, ok := th.ForTag("other").TryAcquire(50)
				require.True(t, ok, "the limit is there for others")
			})
		})
	}
}

// A tag that is exhausted or paused reads nothing, and each Read takes its time: the platform does not spin.
func TestASourceOfATagThatIsHeldBackReadsNothing(t *testing.T) {
	for _, tag := range []string{quotatest.Total, quotatest.Paused, quotatest.Budget} {
		t.Run(tag, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				r := drain(t, sourcer.Wrap(&source{}, th.ForTag(tag)), 10*time.Second, 0)
				require.Equal(t, quotatest.Passes(tag, 1000), r.messages)
				require.LessOrEqual(t, r.reads, 10+quotatest.Amount)
			})
		})
	}
}

// What is kept for the next Read is void when the tag was paused meanwhile, also when that is over.
func TestAPauseOfItsTagVoidsWhatASourceKeeps(t *testing.T) {
	for name, pause := range map[string]time.Duration{"it goes on": time.Hour, "it is over": 90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th, err := throttle.New(throttle.Limit{Max: 1000}, throttle.WithQuotas(throttle.Quotas{
					Tags: map[string]throttle.Quota{"acme": {Total: 50}, "other": {}},
				}))
				require.NoError(t, err)
				defer func() { require.NoError(t, th.Close()) }()
				s := sourcer.Wrap(&source{}, th.ForTag("acme"))
				drain(t, s, time.Minute, time.Second)
				time.Sleep(2 * time.Minute) // the keeper does not look any more
				_, err = th.Pause(t.Context(), time.Now().Add(pause), "test", throttle.PauseTag("acme"))
				require.NoError(t, err)
				time.Sleep(100 * time.Second)
				o := <-read(t.Context(), s, 500, time.Second)
				require.True(t, o.returned)
				if pause > 100*time.Second {
					require.Empty(t, o.values)
				} else {
					require.LessOrEqual(t, len(o.values), 10, "what the tag has saved up since")
				}
			})
		})
	}
}
