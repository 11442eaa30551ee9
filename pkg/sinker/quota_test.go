package sinker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A tag's budget that says so sends what it refuses to the fallback sink, whatever OnDenied is; other tags go on.
func TestBudgetSendsToTheFallbackSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := throttle.New(throttle.Limit{Max: 1000, Burst: 1000}, throttle.WithQuotas(throttle.Quotas{
			Tags: map[string]throttle.Quota{"a": {Budgets: []throttle.Budget{{Amount: 1, Per: "day", Then: "fallback"}}}},
		}))
		require.NoError(t, err)
		defer th.Close()
		time.Sleep(time.Second)
		_, ok := th.ForTag("a").TryAcquire(1)
		require.True(t, ok)
		s := sinker.Wrap(&handler{}, th, sinker.WithTag(func(d sinksdk.Datum) string { return map[string]string{"1": "a", "2": "b"}[d.ID()] }))
		in := make(chan sinksdk.Datum, 2)
		in <- datum{"1"}
		in <- datum{"2"}
		close(in)
		got := map[string]bool{}
		for _, r := range s.Sink(context.Background(), in) {
			got[r.ID] = r.Fallback
		}
		require.Equal(t, map[string]bool{"1": true, "2": false}, got)
	})
}

// tagged are n messages of each tag, in turn.
func tagged(n int, tags ...string) []dataplane.Message {
	var out []dataplane.Message
	for i := range n {
		for _, tag := range tags {
			out = append(out, messages(fmt.Sprintf("%s:%d", tag, i))...)
		}
	}
	return out
}

// byHeader is a tag that stands in the header "tag".
var byHeader = sinker.WithTag(sinker.TagFromHeader("tag"))

// allTags begins with those that are held back.
var allTags = []string{quotatest.Total, quotatest.Paused, quotatest.Budget, quotatest.Free}

// In one batch, what is held back waits in the lane of its tag: all others reach the handler, each tag within its quota. Nothing of the
// batch is answered meanwhile, and so nothing of it is lost.
func TestSocketATagThatIsHeldBackHoldsUpNoOtherOfItsBatch(t *testing.T) {
	th := quotatest.New(t)
	h := &handler{}
	_, k := serve(t, sinker.Wrap(h, th, byHeader))
	done := make(chan error, 1)
	go func() {
		_, err := k.Do(testContext(t), tagged(5, allTags...))
		done <- err
	}()
	eventually(t, func() bool { return len(h.Taken()) >= 5+quotatest.Amount }, "all that have their tokens")
	require.Equal(t, map[string]int64{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
	require.Empty(t, done)
	k.Abort()
	require.ErrorIs(t, <-done, dataplane.ErrBroken)
	require.Len(t, h.Taken(), 5+quotatest.Amount)
}

// In virtual time: a lane waits for its own tag alone, and with InOrder everything behind it waits, too.
func TestInOrderATagHoldsUpWhatComesAfterIt(t *testing.T) {
	for name, c := range map[string]struct {
		opts []sinker.Option
		want []string
	}{
		"lanes":    {nil, []string{"free:1", "free:2"}},
		"in order": {[]sinker.Option{sinker.InOrder()}, []string{"free:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				h := &handler{}
				ctx, cancel := context.WithCancel(t.Context())
				done := call(ctx, sinker.Wrap(h, th, append(c.opts, sinker.WithTag(byKey))...), batchOf("free:1", "total:1", "free:2"))
				time.Sleep(time.Hour)
				require.Equal(t, c.want, h.Taken())
				cancel()
				o := <-done
				require.Len(t, o.responses, 3)
				for _, r := range o.responses {
					require.Equal(t, slices.Contains(h.Taken(), r.ID), r.Success, r.ID)
				}
			})
		})
	}
}

// What is denied has exactly one answer, whose error names tag, reason and time, and no tag is delayed: virtual time stands still.
func TestDeniedMessagesOfTagsNameTagReasonAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := quotatest.New(t)
		h := &handler{}
		var mu sync.Mutex
		var faults []error
		s := sinker.Wrap(h, th, sinker.WithTag(byKey), sinker.WithBatchBudget(time.Minute),
			sinker.OnDenied(sinker.DenyFunc(func(d sinksdk.Datum, why *throttle.Error) sinksdk.Response {
				mu.Lock()
				defer mu.Unlock()
				if err := quotatest.Fault(why, byKey(d)); err != nil {
					faults = append(faults, err)
				}
				return sinksdk.ResponseFallback("")
			})))
		time.Sleep(time.Second)
		began := time.Now()
		var ids []string
		for _, m := range tagged(5, allTags...) {
			ids = append(ids, string(m.Value))
		}
		o := <-call(t.Context(), s, batchOf(ids...))
		require.Zero(t, time.Since(began))
		require.Empty(t, faults)
		got := map[string]map[bool]int{}
		for _, r := range o.responses {
			tag, _, _ := strings.Cut(r.ID, ":")
			if got[tag] == nil {
				got[tag] = map[bool]int{}
			}
			got[tag][r.Success]++
		}
		require.Equal(t, map[string]map[bool]int{
			quotatest.Free: {true: 5}, quotatest.Total: {false: 5}, quotatest.Paused: {false: 5},
			quotatest.Budget: {true: quotatest.Amount, false: 5 - quotatest.Amount},
		}, got)
	})
}

// Over a real socket each message has one answer, whatever its tag.
func TestSocketNackedMessagesOfTags(t *testing.T) {
	th := quotatest.New(t)
	_, k := serve(t, sinker.Wrap(&handler{}, th, byHeader, sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Nack())))
	in := tagged(5, allTags...)
	results, err := k.Do(testContext(t), in)
	require.NoError(t, err)
	require.Len(t, results, len(in))
	stored := map[string]int{}
	for i, r := range results {
		tag := in[i].Headers["tag"]
		if r.Status == dataplane.SinkSuccess {
			stored[tag]++
			continue
		}
		require.Equal(t, dataplane.SinkNack, r.Status)
		require.Equal(t, fmt.Sprintf("throttled (%s, tag %q)", quotatest.Reason(tag), tag), r.NackOptions.Reason)
	}
	require.Equal(t, map[string]int{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, stored)
	require.NoError(t, k.Close())
	require.Equal(t, dataplane.Stats{Sent: len(in), Answered: len(in)}, k.Stats())
}

// Whatever a message makes of its tag, it draws for one: the quota of tags that have none of their own.
func TestHostileTagsCountAsOthers(t *testing.T) {
	for name, tag := range quotatest.Hostile() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := quotatest.New(t)
				s := sinker.Wrap(&handler{}, th, sinker.WithTag(func(sinksdk.Datum) string { return tag }),
					sinker.WithMaxWait(time.Second), sinker.OnDenied(sinker.Nack()))
				var nacks []string
				for _, r := range s.Sink(t.Context(), batchOf(numbered(quotatest.Amount+2)...)) {
					if r.Nack {
						nacks = append(nacks, *r.NackOptions.Reason)
					}
				}
				require.Equal(t, []string{"throttled (budget)", "throttled (budget)"}, nacks, "none repeats the name")
				require.Equal(t, map[string]int64{"": quotatest.Amount}, quotatest.Used(th))
			})
		})
	}
}

// A function for tags that panics fails the stream as the handler would. What was admitted before keeps its tokens.
func TestAPanicOfTheFunctionForTags(t *testing.T) {
	th := quotatest.New(t)
	o := <-call(t.Context(), sinker.Wrap(&handler{}, th, sinker.WithTag(func(d sinksdk.Datum) string {
		if d.ID() == "2" {
			panic("mine")
		}
		return quotatest.Free
	})), batchOf(numbered(5)...))
	require.Equal(t, "mine", o.panicked)
	require.Empty(t, o.responses)
	require.LessOrEqual(t, quotatest.Used(th)[quotatest.Free], int64(2))
}
