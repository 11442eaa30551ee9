package sourcer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proof"
	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

const testTimeout = 20 * time.Second

func testContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	tb.Cleanup(cancel)
	return ctx
}

func dialSource(tb testing.TB, socket string, opts ...dataplane.Option) *dataplane.Source {
	tb.Helper()
	s, err := dataplane.DialSource(testContext(tb), socket, opts...)
	require.NoError(tb, err)
	tb.Cleanup(s.Abort)
	return s
}

func eventually(tb testing.TB, condition func() bool, what string) {
	tb.Helper()
	require.Eventually(tb, condition, testTimeout, time.Millisecond, what)
}

func offsets(batch []dataplane.SourceMessage) []dataplane.Offset {
	all := make([]dataplane.Offset, len(batch))
	for i, m := range batch {
		all[i] = m.Offset
	}
	return all
}

// A machine that is busy with something else may be too slow for the rate, but not three times in a row.
func TestSocketASourceDeliversItsLimitWithoutSpinning(t *testing.T) {
	for _, rate := range []int{5, 200, 2000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			var delivered float64
			for try := 0; try < 3 && delivered < 0.95; try++ {
				delivered = deliver(t, rate)
			}
			require.GreaterOrEqual(t, delivered, 0.95)
		})
	}
}

// deliver reads from a source that may give rate messages a second, over its socket, and returns which part of that came. It adds one
// message, which may have come just after the end. It requires that no more came than may, and that few Reads found nothing.
func deliver(t *testing.T, rate int) float64 {
	t.Helper()
	const length = 3 * time.Second
	began := time.Now() // before the first token
	// The burst makes up for the moments in which a busy machine runs something else.
	l, err := throttle.New(throttle.Limit{Max: rate, Burst: rate})
	require.NoError(t, err)
	defer l.Close()
	b := dataplane.NewQueue(100_000)
	s := dialSource(t, dataplane.Serve(t, sourcer.Wrap(b, l)).Socket)
	ctx := testContext(t)
	for time.Since(began) < length {
		batch, err := s.Read(ctx, 500, time.Second)
		require.NoError(t, err)
		if len(batch) > 0 {
			require.NoError(t, s.Ack(ctx, offsets(batch)))
		}
	}
	took := time.Since(began).Seconds()

	stats := s.Stats()
	delivered := float64(stats.Messages) / (float64(rate) * took)
	reads := float64(stats.Reads) / took
	t.Logf("%.4f of the limit, %.1f Reads a second, the longest %s", delivered, reads, stats.LongestRead)
	proof.Record(t, fmt.Sprintf("source-rate-%d", rate), map[string]float64{
		"Limit": float64(rate), "Delivered": delivered, "ReadsPerSecond": reads,
	})
	require.LessOrEqual(t, float64(stats.Messages), float64(rate)*took+1)
	require.LessOrEqual(t, reads, max(30, float64(rate)/500*2))
	require.Less(t, stats.LongestRead, 2*time.Second)
	require.NoError(t, s.Close())
	return delivered + 1/(float64(rate)*took)
}

func TestSocketEveryMessageArrivesAndIsAcknowledgedOnce(t *testing.T) {
	const n = 5000
	l := throttletest.New(throttletest.GrantUpTo(170))
	b := dataplane.NewQueue(n)
	s := dialSource(t, dataplane.Serve(t, sourcer.Wrap(b, l)).Socket)
	ctx := testContext(t)
	acked := 0
	for acked < n {
		batch, err := s.Read(ctx, 500, 100*time.Millisecond)
		require.NoError(t, err)
		// Every seventh is refused, and comes again.
		var nacks []dataplane.Nacked
		var acks []dataplane.Offset
		for i, o := range offsets(batch) {
			if i%7 == 6 {
				nacks = append(nacks, dataplane.Nacked{Offset: o})
			} else {
				acks = append(acks, o)
			}
		}
		if len(acks) > 0 {
			require.NoError(t, s.Ack(ctx, acks))
			acked += len(acks)
		}
		if len(nacks) > 0 {
			require.NoError(t, s.Nack(ctx, nacks))
		}
	}
	require.Empty(t, s.Outstanding())
	require.NoError(t, s.Close())
	require.Len(t, b.Acked, n)
	for id, times := range b.Acked {
		require.Equal(t, 1, times, "message %s", id)
	}
	require.Equal(t, n+len(b.Refused), s.Stats().Messages)
	require.Equal(t, n+len(b.Refused), l.Used(), "tokens were used for what was read, and for nothing else")
}

// The platform's actor makes one call at a time; a source whose server is asked by
// several must not be held up by a Read that waits either.
func TestSocketAWaitingReadHoldsUpNothingElse(t *testing.T) {
	b := dataplane.NewQueue(10)
	l := throttletest.New(throttletest.GrantUpTo(2), throttletest.Block())
	s := dialSource(t, dataplane.Serve(t, sourcer.Wrap(b, l)).Socket, dataplane.WithParallelCalls())
	ctx := testContext(t)
	batch, err := s.Read(ctx, 500, time.Second)
	require.NoError(t, err)
	require.Len(t, batch, 2)
	waiting := make(chan error, 1)
	go func() {
		_, err := s.Read(ctx, 500, time.Hour)
		waiting <- err
	}()
	eventually(t, func() bool { return l.Waiting() == 1 }, "it waits")

	require.NoError(t, s.Ack(ctx, offsets(batch[:1])))
	require.NoError(t, s.Nack(ctx, []dataplane.Nacked{{Offset: batch[1].Offset}}))
	pending, err := s.Pending(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 9, pending)
	active, total, err := s.Partitions(ctx)
	require.NoError(t, err)
	require.Equal(t, []int32{3, 4}, active)
	require.Equal(t, 7, total)
	require.Equal(t, 1, l.Waiting(), "still")
	s.Abort()
	require.Error(t, <-waiting)
}

func TestSocketALostConnectionEndsTheWaitAndTheServerGoesOn(t *testing.T) {
	l := throttletest.New(throttletest.GrantUpTo(1), throttletest.Block(), throttletest.GrantUpTo(3))
	b := dataplane.NewQueue(10)
	server := dataplane.Serve(t, sourcer.Wrap(b, l))
	s := dialSource(t, server.Socket)
	ctx := testContext(t)
	batch, err := s.Read(ctx, 500, time.Second)
	require.NoError(t, err)
	require.Len(t, batch, 1)
	left := make(chan error, 1)
	go func() {
		_, err := s.Read(ctx, 500, time.Hour)
		left <- err
	}()
	eventually(t, func() bool { return l.Waiting() == 1 }, "it waits")
	s.Abort()
	require.ErrorIs(t, <-left, dataplane.ErrBroken)
	eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")

	again := dialSource(t, server.Socket)
	batch, err = again.Read(ctx, 500, time.Second)
	require.NoError(t, err)
	require.Len(t, batch, 3)
	require.NoError(t, again.Close())
	require.Equal(t, 4, l.Used())
	select {
	case <-server.Ended():
		require.Fail(t, "the server ended")
	default:
	}
}

func TestSocketAPanicOfTheSourceFailsTheStream(t *testing.T) {
	l := throttletest.New(throttletest.GrantUpTo(9))
	server := dataplane.Serve(t, sourcer.Wrap(&source{do: func(_ context.Context, _ readRequest, out chan<- sourcesdk.Message) {
		send(out, 2)
		panic("boom 17")
	}}, l))
	s := dialSource(t, server.Socket)
	_, err := s.Read(testContext(t), 500, time.Second)
	require.ErrorIs(t, err, dataplane.ErrBroken)
	require.ErrorContains(t, err, "boom 17")
	require.Equal(t, 2, l.Used())
	s.Abort()
	<-server.Ended()
}
