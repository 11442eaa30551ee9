package sourcer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sourcesdk "github.com/numaproj/numaflow-go/pkg/sourcer"

	"github.com/numaproj-contrib/numathrottle/pkg/sourcer"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // numaflow-go logs every panic with its stack
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

func message(value string) sourcesdk.Message {
	return sourcesdk.NewMessage([]byte(value), sourcesdk.NewOffset([]byte(value), 0), time.Time{})
}

// A source sends what do says in each Read, and records the requests. Without do it
// sends as many messages as it is asked for.
type source struct {
	asked   []readRequest
	do      func(ctx context.Context, r readRequest, out chan<- sourcesdk.Message)
	pending int64
	acks    []sourcesdk.AckRequest
	nacks   []sourcesdk.NackRequest
}

func (s *source) Read(ctx context.Context, r sourcesdk.ReadRequest, out chan<- sourcesdk.Message) {
	asked := readRequest{r.Count(), r.TimeOut()}
	s.asked = append(s.asked, asked)
	if s.do == nil {
		send(out, int(asked.count))
		return
	}
	s.do(ctx, asked, out)
}

func (s *source) Ack(_ context.Context, r sourcesdk.AckRequest)   { s.acks = append(s.acks, r) }
func (s *source) Nack(_ context.Context, r sourcesdk.NackRequest) { s.nacks = append(s.nacks, r) }
func (s *source) Pending(context.Context) int64                   { return s.pending }
func (s *source) ActivePartitions(context.Context) []int32        { return []int32{3, 5} }

func (s *source) TotalPartitions(context.Context) *int32 {
	total := int32(7)
	return &total
}

func send(out chan<- sourcesdk.Message, n int) {
	for i := range n {
		out <- message(strconv.Itoa(i))
	}
}

// sends is a source that sends n messages in each Read, whatever it is asked for.
func sends(n int) *source {
	return &source{do: func(_ context.Context, _ readRequest, out chan<- sourcesdk.Message) { send(out, n) }}
}

func counts(asked []readRequest) []uint64 {
	var n []uint64
	for _, r := range asked {
		n = append(n, r.count)
	}
	return n
}

// An outcome is how a call of Read ended.
type outcome struct {
	returned bool
	panicked any // nil with returned false: the goroutine exited
	values   []string
	took     time.Duration
}

// read plays numaflow-go: it calls Read in a goroutine of its own and closes the
// channel after it, as long as Read does not panic.
func read(ctx context.Context, s sourcesdk.Sourcer, count uint64, timeout time.Duration) <-chan outcome {
	out, done, got := make(chan sourcesdk.Message), make(chan outcome, 1), make(chan outcome, 1)
	began := time.Now()
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			o.took = time.Since(began)
			close(out) // here also after a panic, so that a late message is noticed
			got <- o
		}()
		s.Read(ctx, readRequest{count, timeout}, out)
		o.returned = true
	}()
	go func() {
		var values []string
		for m := range out {
			values = append(values, string(m.Value()))
		}
		o := <-got
		o.values = values
		done <- o
	}()
	return done
}

func TestWrongOptionsAreOneErrorAndAPanicWhenItIsBuilt(t *testing.T) {
	require.NoError(t, sourcer.Check())
	require.NoError(t, sourcer.Check(nil, sourcer.WithLogger(nil), sourcer.WithReadCost(nil),
		sourcer.WithTargetProcessing(time.Second), sourcer.WithVertexRate(0.1)))
	bad := []sourcer.Option{sourcer.WithTargetProcessing(-time.Second), sourcer.WithVertexRate(0)}
	err := sourcer.Check(bad...)
	require.ErrorContains(t, err, "TargetProcessing is -1s, allowed: above 0")
	require.ErrorContains(t, err, "VertexRate is 0, allowed: above 0, finite")
	require.PanicsWithError(t, err.Error(), func() { sourcer.Wrap(&source{}, throttletest.New(), bad...) })
	require.PanicsWithError(t, err.Error(), func() { sourcer.Wrap(&source{}, nil, bad...) }, "also without a limit")
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1)} {
		require.Error(t, sourcer.Check(sourcer.WithVertexRate(rate)), rate)
	}
}

func TestEverythingButReadAndPendingIsTheSources(t *testing.T) {
	type ack struct{ sourcesdk.AckRequest }
	type nack struct{ sourcesdk.NackRequest }
	s, l := &source{pending: 4}, throttletest.New(throttletest.Block())
	w := sourcer.Wrap(s, l)
	w.Ack(t.Context(), ack{})
	w.Nack(t.Context(), nack{})
	require.Equal(t, []sourcesdk.AckRequest{ack{}}, s.acks)
	require.Equal(t, []sourcesdk.NackRequest{nack{}}, s.nacks)
	require.Equal(t, []int32{3, 5}, w.ActivePartitions(t.Context()))
	require.EqualValues(t, 7, *w.TotalPartitions(t.Context()))
	require.EqualValues(t, 4, w.Pending(t.Context()))
	require.Empty(t, l.Draws(), "none of them draws")
}

func TestReadIsShapedByWhatIsGrantedAndSettledWithWhatWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		granted, sent, used int
	}{
		"all of it":                 {3, 3, 3},
		"less":                      {3, 1, 1},
		"nothing":                   {3, 0, 0},
		"more than it was asked":    {3, 5, 5},
		"one token":                 {1, 1, 1},
		"more than the pipe's room": {400, 400, 400},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := throttletest.New(throttletest.GrantUpTo(c.granted)), sends(c.sent)
			o := <-read(t.Context(), sourcer.Wrap(s, l), 500, time.Second)
			require.True(t, o.returned)
			require.Equal(t, []uint64{uint64(c.granted)}, counts(s.asked))
			require.Len(t, o.values, c.sent, "nothing is held back, nothing is made up")
			for i, v := range o.values {
				require.Equal(t, strconv.Itoa(i), v, "in order")
			}
			require.Equal(t, []throttletest.Draw{{
				Method: throttletest.AcquireUpTo, Cost: 500, Granted: c.granted, Settled: true, Used: c.used,
			}}, l.Draws())
		})
	}
}

func TestTheSourceGetsTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		s := &source{}
		w := sourcer.Wrap(s, throttletest.New(throttletest.GrantOn(tokens)))
		for _, after := range []time.Duration{0, 200 * time.Millisecond, 740 * time.Millisecond} {
			done := read(t.Context(), w, 1, time.Second)
			time.Sleep(after) // virtual
			tokens <- struct{}{}
			require.True(t, (<-done).returned)
			require.Equal(t, time.Second-after, s.asked[len(s.asked)-1].timeout)
		}
	})
}

func TestASourceWithoutMessagesIsAskedForLess(t *testing.T) {
	l, has := throttletest.New(), 0
	s := &source{}
	s.do = func(_ context.Context, r readRequest, out chan<- sourcesdk.Message) {
		send(out, min(has, int(r.count)))
	}
	w := sourcer.Wrap(s, l)
	for _, has = range []int{500, 30, 30, 0, 0, 1, 500, 500, 500, 500, 500, 500} {
		<-read(t.Context(), w, 500, time.Second)
	}
	require.Equal(t, []uint64{500, 500, 38, 38, 1, 1, 4, 16, 64, 256, 500, 500}, counts(s.asked))
}

func TestACountOfZeroDrawsNothing(t *testing.T) {
	l, s := throttletest.New(), &source{}
	<-read(t.Context(), sourcer.Wrap(s, l), 0, time.Second)
	require.Equal(t, []readRequest{{0, time.Second}}, s.asked)
	require.Empty(t, l.Draws())
}

func TestReadCost(t *testing.T) {
	const cost = 10
	l, s := throttletest.New(), &source{}
	w := sourcer.Wrap(s, l, sourcer.WithReadCost(func(sourcesdk.Message) int { return cost }))
	for range 8 {
		<-read(t.Context(), w, 100, time.Second)
	}
	draws := l.Draws()
	require.Equal(t, 1, draws[0].Granted, "nothing is known at first")
	require.Equal(t, cost, draws[0].Used, "what was not drawn is debt")
	last := draws[len(draws)-1]
	require.EqualValues(t, 100, s.asked[len(s.asked)-1].count)
	require.Equal(t, 100*cost, last.Used)
	require.InEpsilon(t, 100*cost, last.Granted, 0.1, "the average is learned")

	l, s = throttletest.New(throttletest.GrantUpTo(7)), &source{}
	w = sourcer.Wrap(s, l, sourcer.WithReadCost(func(sourcesdk.Message) int { return -1 }))
	<-read(t.Context(), w, 100, time.Second)
	<-read(t.Context(), w, 100, time.Second)
	require.Zero(t, l.Used(), "below zero is free")
	require.Equal(t, []uint64{1, 4}, counts(s.asked))
}

// A message that costs more than can ever be granted has been read already: it counts as the largest cost, and not as a debt of years.
func TestReadCostThatCanNeverBeGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 100})
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }()
		s := &source{}
		w := sourcer.Wrap(s, l, sourcer.WithLogger(slog.New(slog.DiscardHandler)), sourcer.WithReadCost(func(sourcesdk.Message) int { return math.MaxInt }))
		<-read(t.Context(), w, 1, time.Second)
		require.Len(t, s.asked, 1)
		require.GreaterOrEqual(t, l.Status().Tokens, -100.0)
		time.Sleep(3 * time.Second)
		<-read(t.Context(), w, 1, time.Second)
		require.Len(t, s.asked, 2, "it goes on")
	})
}

func TestAPanicGoesOnUnchangedAfterWhatWasSent(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("mine") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			l := throttletest.New(throttletest.GrantUpTo(9))
			s := &source{do: func(_ context.Context, _ readRequest, out chan<- sourcesdk.Message) {
				send(out, 2)
				end()
			}}
			o := <-read(t.Context(), sourcer.Wrap(s, l), 500, time.Second)
			require.False(t, o.returned)
			require.Equal(t, []string{"0", "1"}, o.values)
			require.Equal(t, 2, l.Used())
			if name == "panic" {
				require.Equal(t, "mine", o.panicked)
			} else {
				require.Nil(t, o.panicked)
			}
		})
	}
}

func TestAPanicOfTheCostFunctionLosesNoMessage(t *testing.T) {
	l, s := throttletest.New(), sends(3)
	o := <-read(t.Context(), sourcer.Wrap(s, l, sourcer.WithReadCost(func(m sourcesdk.Message) int {
		if string(m.Value()) == "1" {
			panic("cost")
		}
		return 1
	})), 500, time.Second)
	require.Equal(t, "cost", o.panicked)
	require.Equal(t, []string{"0", "1", "2"}, o.values)
	require.Equal(t, 3, l.Used())
}

func TestTheEndOfTheContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, step := range map[string]throttletest.Step{"waiting": throttletest.Block(), "refused": throttletest.Deny(nil)} {
			s := &source{}
			ctx, cancel := context.WithCancel(t.Context())
			done := read(ctx, sourcer.Wrap(s, throttletest.New(step)), 500, time.Hour)
			time.Sleep(time.Minute) // virtual
			require.Empty(t, done, name)
			cancel()
			o := <-done
			require.True(t, o.returned, name)
			require.Equal(t, time.Minute, o.took, name)
			require.Empty(t, s.asked, name)
		}
	})
}

// numaflow-go stops taking messages when the stream is over.
func TestAReadEndsWithItsStreamThoughNobodyTakesTheMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New()
		w := sourcer.Wrap(sends(200), l)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Read(ctx, readRequest{200, time.Hour}, make(chan sourcesdk.Message))
		}()
		synctest.Wait()
		cancel()
		<-done
		require.Equal(t, 200, l.Used(), "they were read")
	})
}

func TestARefusedReadWaitsOutItsTime(t *testing.T) {
	const timeout = time.Second
	refuse := func(after time.Duration) throttletest.Step {
		return throttletest.Deny(&throttle.Error{Reason: throttle.ReasonLimit, RetryAfter: after})
	}
	for name, c := range map[string]struct {
		step throttletest.Step
		took time.Duration
	}{
		"no token comes":                {throttletest.Block(), timeout},
		"refused, when is not known":    {refuse(0), timeout},
		"refused for long":              {refuse(time.Hour), timeout},
		"refused until shortly before":  {refuse(850 * time.Millisecond), 850 * time.Millisecond},
		"refused for a moment, it says": {refuse(time.Microsecond), 750 * time.Millisecond},
		"refused in other words":        {throttletest.Deny(throttle.ErrThrottled), timeout},
		"the limiter fails":             {throttletest.Deny(errors.New("broken")), timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &source{}
				o := <-read(t.Context(), sourcer.Wrap(s, throttletest.New(c.step)), 500, timeout)
				require.True(t, o.returned)
				require.Equal(t, c.took, o.took)
				require.Empty(t, s.asked)
			})
		})
	}
}

func TestAClosedLimiterReadsNothingMoreAndSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		l, s := throttletest.New(throttletest.Block()), &source{}
		w := sourcer.Wrap(s, l, sourcer.WithLogger(slog.New(slog.NewTextHandler(&buf, nil))))
		done := read(t.Context(), w, 500, time.Second)
		time.Sleep(time.Millisecond) // virtual
		l.Close()
		require.Equal(t, time.Second, (<-done).took)
		require.Equal(t, time.Second, (<-read(t.Context(), w, 500, time.Second)).took)
		require.Empty(t, s.asked)
		require.Equal(t, 1, bytes.Count(buf.Bytes(), []byte("limiter closed")))
	})
}

func TestWhatIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buf bytes.Buffer
		logger := sourcer.WithLogger(slog.New(slog.NewTextHandler(&buf, nil)))
		for _, step := range []throttletest.Step{throttletest.Block(), throttletest.Deny(nil), throttletest.Grant()} {
			<-read(t.Context(), sourcer.Wrap(sends(3), throttletest.New(step), logger), 500, time.Second)
		}
		require.Empty(t, buf.String(), "being throttled is no news")
		<-read(t.Context(), sourcer.Wrap(sends(3), throttletest.New(throttletest.Deny(errors.New("broken"))), logger), 500, time.Second)
		require.Contains(t, buf.String(), "broken")
	})
}

// A timeout that leaves nothing to divide.
func TestATimeoutOfNothingIsNoWaitWorthTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		w := sourcer.Wrap(s, throttletest.New(throttletest.Grant(), throttletest.Block()))
		require.Equal(t, []string{"0", "1"}, (<-read(t.Context(), w, 2, 0)).values, "what is at hand")
		require.Zero(t, s.asked[0].timeout)
		o := <-read(t.Context(), w, 2, 0)
		require.True(t, o.returned)
		require.LessOrEqual(t, o.took, 2*time.Millisecond)
	})
}

func TestReadCosts(t *testing.T) {
	msg := func(value string, headers map[string]string) sourcesdk.Message {
		return sourcesdk.NewMessage([]byte(value), sourcesdk.NewOffsetWithDefaultPartitionId(nil), time.Time{}).WithHeaders(headers)
	}
	for size, want := range map[int]int{0: 1, 1: 1, 10: 1, 11: 2, 100: 10} {
		require.Equal(t, want, sourcer.ReadCostBytes(10)(msg(strings.Repeat("x", size), nil)), "%d bytes", size)
	}
	require.Equal(t, 3, sourcer.ReadCostBytes(0)(msg("abc", nil)))
	for text, want := range map[string]int{"7": 7, "0": 0, "-3": 1, "": 1, "many": 1, "1.5": 2, "5e2": 500} {
		require.Equal(t, want, sourcer.ReadCostFromHeader("cost")(msg("", map[string]string{"cost": text})), "%q", text)
	}
	require.Equal(t, 1, sourcer.ReadCostFromHeader("cost")(msg("", nil)))
}
