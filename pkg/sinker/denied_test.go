package sinker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/pkg/sinker"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

func TestWhatADeniedMessageIsAnsweredWith(t *testing.T) {
	const retryAfter = 1700 * time.Millisecond
	refusal := &throttle.Error{Reason: throttle.ReasonNoShare, Tag: "x", Cost: 3, RetryAfter: retryAfter}
	for name, c := range map[string]struct {
		action sinker.Action
		want   func(t *testing.T, r sinksdk.Response)
	}{
		"Nack": {sinker.Nack(), func(t *testing.T, r sinksdk.Response) {
			require.NotNil(t, r.NackOptions)
			require.GreaterOrEqual(t, *r.NackOptions.Delay, uint64(1700))
			require.LessOrEqual(t, *r.NackOptions.Delay, uint64(1700+1700/4+1))
			require.Equal(t, `throttled (no_share, tag "x")`, *r.NackOptions.Reason)
			require.Nil(t, r.NackOptions.MaxDeliveries)
			r.NackOptions = nil
			require.Equal(t, sinksdk.ResponseNack("x:2", nil), r)
		}},
		"Fallback": {sinker.Fallback(), func(t *testing.T, r sinksdk.Response) {
			require.Equal(t, sinksdk.ResponseFallback("x:2"), r)
		}},
		"Fail": {sinker.Fail(), func(t *testing.T, r sinksdk.Response) {
			require.Equal(t, sinksdk.ResponseFailure("x:2", `throttled (no_share, tag "x")`), r)
		}},
		"Drop": {sinker.Drop(), func(t *testing.T, r sinksdk.Response) {
			require.Equal(t, sinksdk.ResponseOK("x:2"), r)
		}},
		"DenyFunc": {
			sinker.DenyFunc(func(d sinksdk.Datum, why *throttle.Error) sinksdk.Response {
				return sinksdk.ResponseServe("another ID", []byte(d.ID()+" "+why.RetryAfter.String()))
			}),
			func(t *testing.T, r sinksdk.Response) {
				require.Equal(t, sinksdk.ResponseServe("x:2", []byte("x:2 1.7s")), r)
			},
		},
	} {
		for mode, opts := range map[string][]sinker.Option{"": nil, ", tags": {sinker.WithTag(byKey)}} {
			t.Run(name+mode, func(t *testing.T) {
				log, logged := logs()
				script := []throttletest.Step{throttletest.Grant(), throttletest.Deny(refusal), throttletest.Deny(refusal), throttletest.Grant()}
				if mode == "" { // with tags a message asks without waiting before it waits
					script = append(script[:1], script[2:]...)
				}
				l := throttletest.New(script...)
				h := &handler{}
				s := sinker.Wrap(h, l, append(opts, sinker.WithMaxWait(time.Second), sinker.OnDenied(c.action), sinker.WithLogger(log))...)
				in := make(chan sinksdk.Datum)
				done := call(t.Context(), s, in)
				in <- datum{"1"}
				in <- datum{"x:2"}
				require.Eventually(t, func() bool { return denials(l) == len(script)-2 }, time.Minute, time.Millisecond)
				in <- datum{"3"}
				close(in)
				got := (<-done).responses
				require.Len(t, got, 3)
				require.Equal(t, []string{"1", "3"}, h.Taken())
				require.ElementsMatch(t, ok("1", "3"), got[:2])
				c.want(t, got[2])
				if name == "Drop" {
					require.Contains(t, logged(), "throttled messages dropped")
					require.Contains(t, logged(), "messages=1")
				} else {
					require.Contains(t, logged(), "action="+name)
					require.NotContains(t, logged(), "dropped")
				}
			})
		}
	}
}

// denials returns how many draws were refused.
func denials(l *throttletest.Limiter) int {
	n := 0
	for _, d := range l.Draws() {
		if d.Err != nil {
			n++
		}
	}
	return n
}

// errBound is the cause of contexts that end in these tests.
var errBound = errors.New("the end")

func TestMaxWaitCountsFromTheTurnOfEachMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A token every second, waited for one after the other: nobody waits longer.
		l, err := throttle.New(throttle.Limit{Max: 1, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		began := time.Now()
		s := sinker.Wrap(&handler{}, l, sinker.WithMaxWait(1100*time.Millisecond), sinker.OnDenied(sinker.Fail()))
		require.Equal(t, ok(numbered(10)...), s.Sink(t.Context(), batchOf(numbered(10)...)))
		require.InDelta(t, 10, time.Since(began).Seconds(), 1.1)
	})
}

func TestAWaitThatIsKnownToBeTooLongIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 1, Per: time.Minute, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		time.Sleep(time.Minute) // a token
		began := time.Now()
		s := sinker.Wrap(&handler{}, l, sinker.WithMaxWait(10*time.Second), sinker.OnDenied(sinker.Nack()))
		got := s.Sink(t.Context(), batchOf("a", "b", "c"))
		require.Less(t, time.Since(began), time.Millisecond)
		require.Len(t, got, 3)
		require.Equal(t, sinksdk.ResponseOK("a"), got[0])
		for i, r := range got[1:] {
			require.True(t, r.Nack)
			delay, turn := *r.NackOptions.Delay, uint64(60_000*(i+1))
			require.LessOrEqual(t, delay, turn+turn/4+1)
			require.GreaterOrEqual(t, delay, turn-uint64(5_000*i), "the first when there is a token, the second half of the wait before the next")
		}
	})
}

func TestAWaitOfUnknownLengthIsDeniedAfterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{}
		s := sinker.Wrap(h, throttletest.New(throttletest.Grant(), throttletest.Block()),
			sinker.WithMaxWait(3*time.Second), sinker.OnDenied(sinker.Fallback()))
		began := time.Now()
		got := s.Sink(t.Context(), batchOf("a", "b", "c"))
		require.Equal(t, 6*time.Second, time.Since(began), "three seconds for each")
		require.Equal(t, []string{"a"}, h.Taken())
		require.Equal(t, sinksdk.Responses{
			sinksdk.ResponseOK("a"), sinksdk.ResponseFallback("b"), sinksdk.ResponseFallback("c"),
		}, got)
	})
}

func TestABudgetBoundsTheWaitOfAWholeBatch(t *testing.T) {
	for name, opts := range map[string][]sinker.Option{
		"alone":          nil,
		"longer maxWait": {sinker.WithMaxWait(time.Minute)},
		"tags":           {sinker.WithTag(byKey)},
		"in order":       {sinker.WithTag(byKey), sinker.InOrder()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{}
				s := sinker.Wrap(h, throttletest.New(throttletest.Grant(), throttletest.Block()),
					append(opts, sinker.WithBatchBudget(3*time.Second), sinker.OnDenied(sinker.Drop()))...)
				began := time.Now()
				got := s.Sink(t.Context(), batchOf("x:1", "x:2", "y:1", "x:3", "y:2", "z:1"))
				require.InDelta(t, 3, time.Since(began).Seconds(), 0.001)
				require.Equal(t, []string{"x:1"}, h.Taken())
				require.ElementsMatch(t, ok("x:1", "x:2", "y:1", "x:3", "y:2", "z:1"), got)
			})
		})
	}
}

func TestAShorterMaxWaitCountsWithinABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sinker.Wrap(&handler{}, throttletest.New(throttletest.Block()),
			sinker.WithMaxWait(time.Second), sinker.WithBatchBudget(2500*time.Millisecond), sinker.OnDenied(sinker.Fail()))
		began := time.Now()
		require.Equal(t, failures("throttled (limit)", "a", "b"), s.Sink(t.Context(), batchOf("a", "b")))
		require.Equal(t, 2*time.Second, time.Since(began))
		began = time.Now()
		require.Len(t, s.Sink(t.Context(), batchOf(numbered(10)...)), 10)
		require.InDelta(t, 2.5, time.Since(began).Seconds(), 0.001)
	})
}

func TestABudgetCountsOnlyTimeInWhichAMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 10, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		time.Sleep(time.Second)
		// The handler takes far longer than the tokens, and than the budget.
		h := &handler{each: func(string) { time.Sleep(time.Minute) }}
		s := sinker.Wrap(h, l, sinker.WithBatchBudget(time.Second), sinker.OnDenied(sinker.Fail()))
		require.Equal(t, ok(numbered(8)...), s.Sink(t.Context(), batchOf(numbered(8)...)))
	})
}

func TestTokensAtHandAreTakenAfterTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttletest.New(throttletest.Block(), throttletest.Grant(), throttletest.Block(), throttletest.Grant())
		h := &handler{}
		s := sinker.Wrap(h, l, sinker.WithBatchBudget(time.Second), sinker.OnDenied(sinker.Fallback()))
		got := s.Sink(t.Context(), batchOf("a", "b", "c", "d"))
		require.Equal(t, []string{"b", "d"}, h.Taken())
		require.ElementsMatch(t, append(ok("b", "d"), sinksdk.ResponseFallback("a"), sinksdk.ResponseFallback("c")), got)
	})
}

func TestTimeInWhichSeveralMessagesWaitCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := make(chan struct{})
		in := make(chan sinksdk.Datum)
		s := sinker.Wrap(&handler{}, throttletest.New(throttletest.GrantOn(tokens)), sinker.WithTag(byKey),
			sinker.WithBatchBudget(10*time.Second), sinker.OnDenied(sinker.Fail()))
		began := time.Now()
		done := call(t.Context(), s, in)
		for _, id := range []string{"u:1", "v:1", "w:1", "x:1", "y:1"} {
			in <- datum{id}
		}
		time.Sleep(4 * time.Second) // five of them wait
		for range 5 {
			tokens <- struct{}{}
		}
		synctest.Wait()
		time.Sleep(time.Hour) // nobody waits
		in <- datum{"z:1"}
		close(in)
		got := (<-done).responses
		require.ElementsMatch(t, append(ok("u:1", "v:1", "w:1", "x:1", "y:1"), failures(`throttled (limit, tag "z")`, "z:1")...), got)
		require.Equal(t, time.Hour+10*time.Second, time.Since(began))
	})
}

func TestEachBatchHasABudgetOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.New(throttle.Limit{Max: 10, Burst: 1})
		require.NoError(t, err)
		defer l.Close()
		s := sinker.Wrap(&handler{}, l, sinker.WithBatchBudget(time.Second), sinker.OnDenied(sinker.Fail()))
		for range 3 {
			passed := 0
			began := time.Now()
			for _, r := range s.Sink(t.Context(), batchOf(numbered(50)...)) {
				if r.Success {
					passed++
				}
			}
			require.InDelta(t, 10, passed, 1)
			require.LessOrEqual(t, time.Since(began), 1050*time.Millisecond)
		}
	})
}

func TestTheContextEndsWhileMessagesWait(t *testing.T) {
	actions := map[string][]sinker.Option{"Wait": nil}
	for _, a := range []sinker.Action{sinker.Nack(), sinker.Fallback(), sinker.Fail(), sinker.Drop()} {
		actions[a.String()] = []sinker.Option{sinker.OnDenied(a), sinker.WithMaxWait(time.Hour)}
	}
	for name, opts := range actions {
		for mode, more := range map[string][]sinker.Option{"": nil, ", tags": {sinker.WithTag(byKey)}} {
			t.Run(name+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					l, h := throttletest.New(throttletest.Grant(), throttletest.Block()), &handler{}
					in := make(chan sinksdk.Datum)
					done := call(ctx, sinker.Wrap(h, l, append(more, opts...)...), in)
					in <- datum{"a"}
					synctest.Wait()
					in <- datum{"b"}
					synctest.Wait()
					cancel(errBound)
					synctest.Wait()
					require.Empty(t, done, "the channel is read to its end")
					in <- datum{"c"}
					close(in)
					require.Equal(t, append(ok("a"), failures("not handled: the end", "b", "c")...), (<-done).responses)
					require.Equal(t, []string{"a"}, h.Taken())
					require.Equal(t, 1, l.Used())
				})
			})
		}
	}
}

func TestTokensThatComeWithTheEndOfTheContextAreGivenBack(t *testing.T) {
	for name, opts := range map[string][]sinker.Option{"": nil, "tags": {sinker.WithTag(byKey)}} {
		t.Run(name, func(t *testing.T) {
			for range 30 { // the handler is ready for the message, too
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					l, h := throttletest.New(), &handler{} // grants although the context has ended
					s := sinker.Wrap(h, l, append(opts, sinker.WithCost(func(d sinksdk.Datum) int {
						if d.ID() == "b" {
							synctest.Wait()
							cancel(errBound)
						}
						return 1
					}))...)
					require.Equal(t, append(ok("a"), failures("not handled: the end", "b", "c")...), s.Sink(ctx, batchOf("a", "b", "c")))
					require.Equal(t, []string{"a"}, h.Taken())
					require.Len(t, l.Draws(), 2)
					require.Equal(t, 1, l.Used())
				})
			}
		})
	}
}

func TestAContextThatHasEndedDrawsNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBound)
	l, h := throttletest.New(), &handler{}
	require.Equal(t, failures("not handled: the end", "a", "b"), sinker.Wrap(h, l).Sink(ctx, batchOf("a", "b")))
	require.Empty(t, h.Taken())
	require.Empty(t, l.Draws())
}

func TestTheContextEndsWhileTheHandlerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		l := throttletest.New()
		h := &handler{each: func(string) {
			<-ctx.Done()
			time.Sleep(time.Second)
		}}
		done := call(ctx, sinker.Wrap(h, l), batchOf("a", "b", "c"))
		synctest.Wait()
		require.Equal(t, 2, l.Used(), "b holds its token")
		cancel(errBound)
		require.Equal(t, append(ok("a"), failures("not handled: the end", "b", "c")...), (<-done).responses)
		require.Equal(t, 1, l.Used())
	})
}
