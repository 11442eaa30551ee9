package mapper_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	batchmapsdk "github.com/numaproj/numaflow-go/pkg/batchmapper"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	mapstreamsdk "github.com/numaproj/numaflow-go/pkg/mapstreamer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane/sdkserver"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/mapper"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// eachTag is how many messages of each tag these tests send.
const eachTag = 5

var (
	byHeader = mapper.WithTag(mapper.TagFromHeader("tenant"))
	heldTags = []string{quotatest.Budget, quotatest.Total, quotatest.Paused}
)

// tenant is a message of a tag.
func tenant(tag string, i int) dataplane.Message {
	return dataplane.Message{Value: fmt.Appendf(nil, "%s %d", tag, i), Headers: map[string]string{"tenant": tag}}
}

// An answered message, with what it was answered.
type answered struct {
	tag     string
	results []dataplane.Result
	err     error
}

// tell sends eachTag messages of each tag at once, and returns their answers.
func tell(ctx context.Context, do func(context.Context, dataplane.Message) ([]dataplane.Result, error), tags ...string) <-chan answered {
	out := make(chan answered, eachTag*len(tags))
	for i := range eachTag {
		for _, tag := range tags {
			go func() {
				results, err := do(ctx, tenant(tag, i))
				out <- answered{tag, results, err}
			}()
		}
	}
	return out
}

// A reasons collects why messages were denied, by tag.
type reasons struct {
	mu     sync.Mutex
	faults []error
	denied map[string]int
}

// deny is for DenyFunc: it forwards what the limiter said, and checks it.
func (r *reasons) deny(_ context.Context, _ []string, d mapsdk.Datum, why *throttle.Error) mapsdk.Messages {
	tag := d.Headers()["tenant"]
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil {
		r.denied = map[string]int{}
	}
	r.denied[tag]++
	if err := quotatest.Fault(why, tag); err != nil {
		r.faults = append(r.faults, err)
	}
	return mapsdk.MessagesBuilder().Append(forward("denied"))
}

// kinds are the handlers whose messages have no order, each behind a real server.
func kinds(t *testing.T, th *throttle.Throttle, opts ...mapper.Option) map[string]func(context.Context, dataplane.Message) ([]dataplane.Result, error) {
	t.Helper()
	all := make([]mapper.StreamOption, len(opts))
	for i, opt := range opts {
		all[i] = opt
	}
	stream := mapstreamsdk.MapStreamerFunc(func(_ context.Context, _ []string, d mapstreamsdk.Datum, to chan<- mapstreamsdk.Message) {
		to <- mapstreamsdk.NewMessage(d.Value())
		close(to)
	})
	return map[string]func(context.Context, dataplane.Message) ([]dataplane.Result, error){
		"map":        dial(t, sdkserver.Start(t, mapper.Wrap(mapsdk.MapperFunc(echo), th, opts...))).Do,
		"stream map": dialStream(t, sdkserver.Start(t, mapper.WrapStream(stream, th, all...))).Do,
	}
}

// Where no order is promised, a message whose tag is exhausted or paused waits by itself: all others are handled, and the tag has no
// more than its quota.
func TestSocketATagThatIsHeldBackHoldsUpNoOther(t *testing.T) {
	for _, kind := range []string{"map", "stream map"} {
		t.Run(kind, func(t *testing.T) {
			th := quotatest.New(t)
			do := kinds(t, th, byHeader)[kind]
			out := tell(testContext(t), do, heldTags...)
			free := tell(testContext(t), do, quotatest.Free)
			for range eachTag {
				a := <-free
				require.NoError(t, a.err)
				require.Len(t, a.results, 1)
			}
			for range quotatest.Amount {
				a := <-out
				require.NoError(t, a.err)
				require.Equal(t, quotatest.Budget, a.tag)
			}
			require.Equal(t, map[string]int64{quotatest.Free: eachTag, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
			require.Empty(t, out, "the others wait")
		})
	}
}

// What is denied is answered once, with an error that names tag, reason and time.
func TestSocketADeniedMessageNamesTagReasonAndTime(t *testing.T) {
	for _, kind := range []string{"map", "stream map"} {
		t.Run(kind, func(t *testing.T) {
			th := quotatest.New(t)
			var r reasons
			do := kinds(t, th, byHeader, mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.DenyFunc(r.deny)))[kind]
			tags := append([]string{quotatest.Free}, heldTags...)
			out, handled := tell(testContext(t), do, tags...), map[string]int{}
			for range eachTag * len(tags) {
				a := <-out
				require.NoError(t, a.err)
				require.Len(t, a.results, 1)
				if string(a.results[0].Value) != "denied" {
					handled[a.tag]++
				}
			}
			require.Equal(t, map[string]int{quotatest.Free: eachTag, quotatest.Budget: quotatest.Amount}, handled)
			require.Equal(t, map[string]int{quotatest.Budget: eachTag - quotatest.Amount, quotatest.Total: eachTag, quotatest.Paused: eachTag}, r.denied)
			require.Empty(t, r.faults)
		})
	}
}

// The messages of a batch keep their order; one that is known to wait for too long is answered at once, and so delays no other.
func TestSocketABatchWithTags(t *testing.T) {
	th := quotatest.New(t)
	m := dialBatch(t, sdkserver.Start(t, mapper.WrapBatch(upper, th, byHeader, mapper.WithMaxWait(time.Second), mapper.OnDenied(mapper.Nack()))))
	var in []dataplane.Message
	for i := range eachTag {
		for _, tag := range []string{quotatest.Total, quotatest.Budget, quotatest.Free, quotatest.Paused} {
			in = append(in, tenant(tag, i))
		}
	}
	results, err := m.Do(testContext(t), in)
	require.NoError(t, err)
	require.Len(t, results, len(in))
	handled := map[string]int{}
	for i, of := range results {
		tag := in[i].Headers["tenant"]
		require.Len(t, of, 1, tag)
		if !of[0].Nack {
			handled[tag]++
			continue
		}
		require.Contains(t, of[0].NackOptions.Reason, fmt.Sprintf("tag %q: 1 tokens cannot be had in time (%s)", tag, quotatest.Reason(tag)))
		require.GreaterOrEqual(t, of[0].NackOptions.Delay, 100*time.Millisecond)
	}
	require.Equal(t, map[string]int{quotatest.Free: eachTag, quotatest.Budget: quotatest.Amount}, handled)
	require.NoError(t, m.Close())
	require.Equal(t, dataplane.Stats{Sent: len(in), Answered: len(in)}, m.Stats())
}

// In virtual time: nobody waits for what a tag lacks.
func TestABatchWaitsForNoTagThatCannotComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotatest.New(t)
		h := &batchHandler{}
		m := mapper.WrapBatch(h, th, mapper.WithTag(mapper.TagFromKey(0)), mapper.WithMaxWait(time.Minute), mapper.OnDenied(mapper.Drop()))
		time.Sleep(time.Second)
		began := time.Now()
		o := <-callBatch(t.Context(), t, m, "total budget paused free budget free budget")
		require.Zero(t, time.Since(began))
		require.True(t, o.returned)
		require.Len(t, o.answers, 7)
		require.Equal(t, []string{"budget", "free", "budget", "free"}, h.seen)
		require.Equal(t, map[string]int64{quotatest.Free: 2, quotatest.Budget: 2}, quotatest.Used(th))
	})
}

// A drop that is exempt costs the tag nothing: neither its total nor its budget.
func TestDroppedMessagesCostTheirTagNothing(t *testing.T) {
	drops := mapsdk.MapperFunc(func(context.Context, []string, mapsdk.Datum) mapsdk.Messages {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	})
	dropsAll := batchmapsdk.BatchMapperFunc(func(_ context.Context, in <-chan batchmapsdk.Datum) batchmapsdk.BatchResponses {
		out := batchmapsdk.BatchResponsesBuilder()
		for d := range in {
			out = out.Append(batchmapsdk.NewBatchResponse(d.Id()).Append(batchmapsdk.MessageToDrop()))
		}
		return out
	})
	budget := mapper.WithTag(func([]string, mapsdk.Datum) string { return quotatest.Budget })
	for name, handle := range map[string]func(t *testing.T, th *throttle.Throttle){
		"map": func(t *testing.T, th *throttle.Throttle) {
			mapper.Wrap(drops, th, budget, mapper.ExemptDropped()).Map(t.Context(), nil, datum("x"))
		},
		"batch map": func(t *testing.T, th *throttle.Throttle) {
			require.True(t, (<-callBatch(t.Context(), t, mapper.WrapBatch(dropsAll, th, budget, mapper.ExemptDropped()), "a b")).returned)
		},
		"stream map": func(t *testing.T, th *throttle.Throttle) {
			require.True(t, (<-callStream(t.Context(), mapper.WrapStream(writing("DROP"), th, budget, mapper.ExemptDropped()))).closed)
		},
		"outputs": func(t *testing.T, th *throttle.Throttle) {
			w := mapper.WrapStream(writing("DROP"), th, budget, mapper.ExemptDropped(), mapper.PerOutput())
			require.True(t, (<-callStream(t.Context(), w)).closed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := quotatest.New(t)
			for range 3 * quotatest.Amount {
				handle(t, th)
			}
			require.Empty(t, quotatest.Used(th))
			_, ok := th.ForTag(quotatest.Budget).TryAcquire(quotatest.Amount)
			require.True(t, ok, "all of the budget is left")
		})
	}
}

// With PerOutput the outputs draw for the tag of their message.
func TestOutputsDrawForTheTagOfTheirMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotatest.New(t)
		w := mapper.WrapStream(writing("a b c"), th, mapper.WithTag(func([]string, mapsdk.Datum) string { return quotatest.Budget }), mapper.PerOutput())
		ctx, cancel := context.WithCancel(t.Context())
		done := callStream(ctx, w)
		time.Sleep(time.Hour)
		require.Equal(t, map[string]int64{quotatest.Budget: quotatest.Amount}, quotatest.Used(th), "the third one waits")
		require.Empty(t, done)
		require.True(t, (<-callStream(t.Context(), mapper.WrapStream(writing("a b c"), th, mapper.WithTag(
			func([]string, mapsdk.Datum) string { return quotatest.Free }), mapper.PerOutput()))).closed, "another tag goes on")
		cancel()
		o := <-done
		require.False(t, o.closed, "it has no answer, so that it comes again")
	})
}

// Whatever a message makes of its tag, it draws for one: the quota of tags that have none of their own.
func TestHostileTagsCountAsOthers(t *testing.T) {
	for name, tag := range quotatest.Hostile() {
		t.Run(name, func(t *testing.T) {
			th := quotatest.New(t)
			var denied []*throttle.Error
			m := mapper.Wrap(&handler{}, th, mapper.WithTag(func([]string, mapsdk.Datum) string { return tag }), mapper.WithMaxWait(time.Second),
				mapper.OnDenied(mapper.DenyFunc(func(_ context.Context, _ []string, _ mapsdk.Datum, why *throttle.Error) mapsdk.Messages {
					denied = append(denied, why)
					return nil
				})))
			for range quotatest.Amount + 1 {
				m.Map(t.Context(), nil, datum("x"))
			}
			require.Len(t, denied, 1)
			require.Equal(t, throttle.ReasonBudget, denied[0].Reason)
			require.Empty(t, denied[0].Tag, "no error repeats it")
			require.Less(t, len(denied[0].Error()), 200)
			require.Equal(t, map[string]int64{"": quotatest.Amount}, quotatest.Used(th))
		})
	}
}

// A function for tags that panics fails the stream as the handler would, and draws nothing.
func TestAPanicOfTheFunctionForTagsDrawsNothing(t *testing.T) {
	panics := mapper.WithTag(func([]string, mapsdk.Datum) string { panic("mine") })
	th := quotatest.New(t)
	require.Equal(t, outcome{panicked: "mine"}, <-call(t.Context(), mapper.Wrap(&handler{}, th, panics)))
	require.Equal(t, batchOutcome{panicked: "mine"}, <-callBatch(t.Context(), t, mapper.WrapBatch(&batchHandler{}, th, panics), "a b"))
	require.Equal(t, streamOutcome{panicked: "mine"}, <-callStream(t.Context(), mapper.WrapStream(writing("a"), th, panics)))
	require.Empty(t, quotatest.Used(th))
}
