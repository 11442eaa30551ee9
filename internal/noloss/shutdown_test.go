package noloss

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/stopnotice"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// shorter is by what the platform's times are divided: those of the core, whose end the handler does not see before its
// stream is dropped.
const shorter = 10

var graceful = dataplane.Grace{Calls: 20 * time.Second / shorter, Pod: 30 * time.Second / shorter}

// stopping are the kinds of handlers in the middle of work for more than the pod's grace, and how they end. Times are those of
// the platform, not divided.
var stopping = []struct {
	job
	// ends is when the core has ended, at the latest; notBefore when it can, for what only waits.
	notBefore, ends time.Duration
	killed          bool
}{
	{job{Kind: kindMap}, 20 * time.Second, 21 * time.Second, false},
	{job{Kind: kindMap, OnDenied: deniedNack, MaxWait: 8 * time.Second}, 0, 10 * time.Second, false},
	{job{Kind: kindTransform}, 20 * time.Second, 21 * time.Second, false},
	{job{Kind: kindTransform, OnDenied: deniedNack, MaxWait: 8 * time.Second}, 0, 10 * time.Second, false},
	{job{Kind: kindBatchMap}, 20 * time.Second, 21 * time.Second, false},
	{job{Kind: kindBatchMap, OnDenied: deniedNack, MaxWait: 8 * time.Second}, 0, 18 * time.Second, false},
	{job{Kind: kindMapStream}, 30 * time.Second, 31 * time.Second, true},
	{job{Kind: kindMapStream, OnDenied: deniedNack, MaxWait: 8 * time.Second}, 0, 10 * time.Second, false},
	{job{Kind: kindSink}, 30 * time.Second, 31 * time.Second, true},
	{job{Kind: kindSink, OnDenied: deniedNack, MaxWait: 8 * time.Second}, 0, 18 * time.Second, false},
	{job{Kind: kindSink, OnDenied: deniedFail, MaxWait: 8 * time.Second}, 0, 10 * time.Second, false},
}

// A pod is stopped while messages wait for tokens, in both orders of its containers: what the core has not had an answer to
// is delivered again to another pod, and nothing is acknowledged that was not handled. With a longest wait every kind ends
// within 20 s; without, the platform ends it.
//
// At last, a wrapper that answers for what it has not handled: the judge sees it.
func TestAPodIsStoppedWhileMessagesWait(t *testing.T) {
	testkit.SkipShort(t, "it starts processes")
	signalled := map[string]func(*lane){
		"the core first": func(*lane) {},
		"all at once":    func(l *lane) { require.NoError(l.t, l.proc.signal(sigterm)) },
	}
	for order := range signalled {
		for _, c := range stopping {
			t.Run(fmt.Sprint(order, ", ", c.Kind, " ", c.OnDenied), func(t *testing.T) {
				t.Parallel()
				j := c.job
				j.MaxWait /= shorter
				end, v := stopPod(t, j, graceful, signalled[order])
				require.Empty(t, v.Broken)
				took := end.Took * shorter
				t.Logf("ended after %.1f s, killed %t, exit with 1 %t; %d of %d messages again", took.Seconds(), end.Killed, end.Failed, v.Resent, v.Messages)
				require.Equal(t, c.killed, end.Killed)
				require.GreaterOrEqual(t, took, c.notBefore)
				// A busy machine takes a second and a half more, and times are a tenth here. Who waits without an end is far beyond that.
				require.Less(t, took, c.ends+15*time.Second)
				require.Positive(t, v.Resent, "messages were waiting")
			})
		}
	}
	for _, kind := range []string{kindMap, kindSink} {
		t.Run("answered without being handled, "+kind, func(t *testing.T) {
			t.Parallel()
			_, v := stopPod(t, job{Kind: kind, Careless: true}, graceful, signalled["the core first"])
			require.Contains(t, strings.Join(v.Broken, "\n"), "lost: acknowledged")
		})
	}
}

// The core is stopped first, and a container beside it posts the notice: a handler whose messages wait without an end sees
// it and ends its streams, so that the platform kills nobody. Times are the platform's own here, for numaflow-go's 15 s
// cannot be divided.
func TestAPodIsStoppedWithANotice(t *testing.T) {
	testkit.SkipShort(t, "it starts processes")
	if testing.Short() {
		t.Skip("takes 17 s")
	}
	whole := dataplane.Grace{Calls: 20 * time.Second, Pod: 30 * time.Second}
	for _, kind := range []string{kindMap, kindMapStream, kindBatchMap, kindTransform, kindSink} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			end, v := stopPod(t, job{Kind: kind, Rate: 2}, whole, func(l *lane) { require.NoError(t, stopnotice.Post(l.dir)) })
			t.Logf("ended after %.1f s, killed %t, exit with 1 %t; %d of %d messages again", end.Took.Seconds(), end.Killed, end.Failed, v.Resent, v.Messages)
			require.Empty(t, v.Broken)
			require.False(t, end.Killed)
			require.Less(t, end.Took, 20*time.Second)
			require.Positive(t, v.Resent, "messages were waiting")
		})
	}
}

// stopPod has a pod with twice as much as it can do in its grace stopped, and another one do the rest.
func stopPod(t *testing.T, j job, grace dataplane.Grace, stopped func(*lane)) (dataplane.End, verdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	j.Rate, j.Burst = cmp.Or(j.Rate, 40), 1
	l := newLane(ctx, t, j, inFlight, dataplane.WithConcurrency(inFlight))
	f, _ := l.current()
	var calls sync.WaitGroup
	end := l.stopWith(f, &calls, grace, func() { stopped(l) })
	calls.Wait()
	require.NoError(t, l.proc.signal(sigterm))
	require.NoError(t, l.ended(), "the handler's container ends when the core has")
	require.NoError(t, stopnotice.Clear(l.dir), "another pod has another folder")

	l.job.Rate, l.job.MaxWait, l.job.OnDenied, l.job.Careless = plenty, 0, "", false
	require.NoError(t, l.replace())
	var workers sync.WaitGroup
	if l.answers() < len(l.messages) {
		l.start(&workers)
	}
	v, err := l.finish()
	workers.Wait()
	require.NoError(t, err)
	return end, v
}

// stopWith offers all messages, and stops the core when they are on their way.
func (l *lane) stopWith(f feed, calls *sync.WaitGroup, grace dataplane.Grace, stopped func()) dataplane.End {
	ids := l.take(inFlight)
	switch f := f.(type) {
	case batchFeed:
		stopped()
		chunks := slices.Collect(slices.Chunk(ids, batchSize))
		return f.Drain(l.ctx, batchesOf(chunks), grace, func(i int, results [][]dataplane.Result, err error) {
			out := make([]outcome, len(results))
			for k, r := range results {
				out[k] = outcomeOf(chunks[i][k], r, 1)
			}
			l.book(chunks[i], out, err)
		})
	case sinkFeed:
		stopped()
		chunks := slices.Collect(slices.Chunk(ids, batchSize))
		return f.Drain(l.ctx, batchesOf(chunks), grace, func(i int, results []dataplane.SinkResult, err error) {
			out := make([]outcome, len(results))
			for k, r := range results {
				out[k].nacked = r.Status == dataplane.SinkNack
			}
			l.book(chunks[i], out, err)
		})
	}
	for _, id := range ids {
		calls.Go(func() {
			outcomes, err := f.offer(l.ctx, []int{id})
			l.book([]int{id}, outcomes, err)
		})
	}
	for f.Stats().Sent < len(ids) {
		time.Sleep(time.Millisecond)
	}
	stopped()
	single, ok := f.(singleFeed)
	require.True(l.t, ok, "a feed that can be stopped: %T", f)
	return single.Stop(grace)
}

func batchesOf(chunks [][]int) [][]dataplane.Message {
	out := make([][]dataplane.Message, len(chunks))
	for i, ids := range chunks {
		out[i] = messages(ids)
	}
	return out
}
