package sourcer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	transformsdk "github.com/numaproj/numaflow-go/pkg/sourcetransformer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// byFirstKey is the tag of these messages.
var byFirstKey = sourcer.WithTag(sourcer.TagFromKey(0))

type transformedAs struct {
	tag     string
	results []dataplane.Result
	err     error
}

// transformTags sends n messages of each tag at once, and returns their answers.
func transformTags(t *testing.T, m *dataplane.Transform, n int, tags ...string) <-chan transformedAs {
	t.Helper()
	ctx, out := testContext(t), make(chan transformedAs, n*len(tags))
	for i := range n {
		for _, tag := range tags {
			go func() {
				results, err := m.Do(ctx, dataplane.Message{Keys: []string{tag}, Value: fmt.Append(nil, i), EventTime: eventTime})
				out <- transformedAs{tag, results, err}
			}()
		}
	}
	return out
}

// A message whose tag is exhausted or paused waits by itself, and each tag has no more than its quota.
func TestSocketATagThatIsHeldBackHoldsUpNoOtherTransformation(t *testing.T) {
	th := quotatest.New(t)
	m := dialTransform(t, sdkserver.Start(t, sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), th, byFirstKey)))
	held := transformTags(t, m, 5, quotatest.Total, quotatest.Paused, quotatest.Budget)
	free := transformTags(t, m, 5, quotatest.Free)
	for range 5 {
		require.NoError(t, (<-free).err)
	}
	for range quotatest.Amount {
		a := <-held
		require.NoError(t, a.err)
		require.Equal(t, quotatest.Budget, a.tag)
	}
	require.Equal(t, map[string]int64{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
	require.Empty(t, held)
}

// Each message has one answer, and what is denied says why.
func TestSocketADeniedTransformationNamesTagReasonAndTime(t *testing.T) {
	th := quotatest.New(t)
	deny := func(_ context.Context, keys []string, d transformsdk.Datum, why *throttle.Error) transformsdk.Messages {
		text := "denied"
		if err := quotatest.Fault(why, keys[0]); err != nil {
			text = err.Error()
		}
		return transformsdk.MessagesBuilder().Append(transformsdk.NewMessage([]byte(text), d.EventTime()))
	}
	m := dialTransform(t, sdkserver.Start(t, sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), th, byFirstKey,
		sourcer.WithMaxWait(time.Second), sourcer.OnDenied(sourcer.DenyFunc(deny)))))
	tags := []string{quotatest.Total, quotatest.Paused, quotatest.Budget, quotatest.Free}
	out, passed := transformTags(t, m, 5, tags...), map[string]int{}
	for range 5 * len(tags) {
		a := <-out
		require.NoError(t, a.err)
		require.Len(t, a.results, 1)
		if text := string(a.results[0].Value); len(text) > 1 {
			require.Equal(t, "denied", text)
		} else {
			passed[a.tag]++
		}
	}
	require.Equal(t, map[string]int{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, passed)
	require.NoError(t, m.Close())
	require.Equal(t, dataplane.Stats{Sent: 20, Answered: 20}, m.Stats())
}

// A drop that is exempt costs the tag nothing: its budget stays whole.
func TestDroppedTransformationsCostTheirTagNothing(t *testing.T) {
	th := quotatest.New(t)
	w := sourcer.WrapTransformer(transformsdk.SourceTransformFunc(echo), th, sourcer.ExemptDropped(),
		sourcer.WithTag(func([]string, transformsdk.Datum) string { return quotatest.Budget }))
	for range 3 * quotatest.Amount {
		require.Len(t, w.Transform(t.Context(), nil, datum("drop")), 1)
	}
	require.Empty(t, quotatest.Used(th))
}

// Whatever a message makes of its tag, it draws for one: the quota of tags that have none of their own. A function that panics fails the
// stream, and draws nothing.
func TestHostileTagsOfTransformations(t *testing.T) {
	for name, tag := range quotatest.Hostile() {
		t.Run(name, func(t *testing.T) {
			th := quotatest.New(t)
			nacks := 0
			w := sourcer.WrapTransformer(forwards(), th, sourcer.WithTag(func([]string, transformsdk.Datum) string { return tag }),
				sourcer.WithMaxWait(time.Second), sourcer.OnDenied(sourcer.Nack()))
			for range quotatest.Amount + 1 {
				for _, m := range w.Transform(t.Context(), nil, datum("x")) {
					if m.NackOptions() != nil {
						nacks++
						require.Less(t, len(*m.NackOptions().Reason), 200, "it does not repeat the name")
					}
				}
			}
			require.Equal(t, 1, nacks)
			require.Equal(t, map[string]int64{"": quotatest.Amount}, quotatest.Used(th))
		})
	}
	th := quotatest.New(t)
	o := <-call(t.Context(), sourcer.WrapTransformer(forwards(), th, sourcer.WithTag(func([]string, transformsdk.Datum) string { panic("mine") })))
	require.Equal(t, "mine", o.panicked)
	require.Empty(t, quotatest.Used(th))
}

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
