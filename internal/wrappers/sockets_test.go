package wrappers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/internal/quotatest"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// Messages reach the handler unchanged, one for each token; an answer goes to each.
func TestServedOneMessagePassesForEachToken(t *testing.T) {
	served(t, every, func(t *testing.T, k *kind, serve starter) {
		tokens := make(chan struct{})
		l, h := throttletest.New(throttletest.GrantOn(tokens)), &handler{outputs: func(id message) []output {
			return []output{{string(id), []string{"k"}, []string{"t"}}}
		}}
		c := serve(t, h, l, options{})
		all := 0
		for _, size := range []int{1, 20, 3} {
			ids := numbered(size)
			done := make(chan []answer, 1)
			go func() {
				answers, err := c.send(within(t), ids...)
				assert.NoError(t, err)
				done <- answers
			}()
			for passed := range size {
				waiting := size - passed
				if k.batches {
					waiting = 1
				}
				eventually(t, func() bool { return l.Waiting() == waiting && l.Used() == all+passed }, "the others wait")
				require.Empty(t, done)
				tokens <- struct{}{}
			}
			for i, a := range <-done {
				require.Equal(t, map[bool]string{true: "handled", false: string(ids[i]) + "/k#t"}[k.sink], a.text)
			}
			all += size
		}
		require.Contains(t, h.seen[0], "0 [key ] map[] true ")
		require.NoError(t, c.Close())
		require.Equal(t, dataplane.Stats{Sent: all, Answered: all}, c.Stats())
	})
}

// A denied message is answered as chosen, over the wire, too.
func TestServedWhatIsDeniedReachesThePlatform(t *testing.T) {
	served(t, denying, func(t *testing.T, k *kind, serve starter) {
		for action, want := range k.actions("throttled") {
			if action == "func" || action == "fallback" && k.proxied != handlerproxy.Sink {
				continue // a proxy has none, and other sinks may not
			}
			h, l := &handler{}, throttletest.New(grant, throttletest.Deny(nil))
			c := serve(t, h, l, second(action))
			first, err := c.send(within(t), "red:7")
			require.NoError(t, err)
			require.Equal(t, "handled", first[0].text)
			a, err := c.send(within(t), "blue:7")
			require.NoError(t, err, "a batch of which the handler gets nothing")
			require.Equal(t, want, strings.Replace(a[0].text, `limit, tag "blue"`, "limit", 1))
			if action == "nack" {
				require.GreaterOrEqual(t, a[0].delay, 100*time.Millisecond)
				require.Contains(t, a[0].reason, "limit")
			}
			require.Equal(t, []string{"red:7"}, h.Taken())
			require.NoError(t, c.Close())
		}
	})
}

func TestServedACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	served(t, denying, func(t *testing.T, k *kind, serve starter) {
		l, err := throttle.New(throttle.Limit{Max: 1000})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		for _, o := range []options{{costs: "header cost"}, {costs: "header cost", maxWait: time.Minute, onDenied: "drop"}} {
			c := serve(t, &handler{}, l, o)
			answers, err := c.send(within(t), "red:1", "blue:2000000000", "red:2")
			require.NoError(t, err)
			want := "#nack"
			switch {
			case o.onDenied == "drop":
				want = k.actions("")["drop"]
			case k.sink:
				want = "not handled: "
			}
			require.Equal(t, "handled", answers[0].text)
			require.True(t, strings.HasPrefix(answers[1].text, want), answers[1].text)
			require.Contains(t, answers[1].text+answers[1].reason+"can never be granted", "can never be granted")
			require.Equal(t, "handled", answers[2].text)
			require.NoError(t, c.Close())
		}
	})
}

// Drops are exempt, and each output draws where that was chosen.
func TestServedCosts(t *testing.T) {
	served(t, func(k *kind) bool { return !k.sink }, func(t *testing.T, k *kind, serve starter) {
		for exempt, used := range map[bool]int{true: 2 * 7, false: 2*7 + 3} {
			h := &handler{outputs: func(id message) []output {
				if id == "drop:3" {
					return []output{drop()}
				}
				return []output{{value: "x"}, {value: "y"}}
			}}
			l := throttletest.New()
			c := serve(t, h, l, options{costs: "header cost", exempt: exempt})
			answers, err := c.send(within(t), "a:7", "drop:3", "b:7")
			require.NoError(t, err)
			require.Equal(t, []string{"x y", "#drop", "x y"}, ending{answers: answers}.texts())
			if k.outputs {
				used += 2 * 7
			}
			require.Equal(t, used, l.Used())
			require.NoError(t, c.Close())
		}
	})
}

// Each kind goes by the quotas of tags, and every message has one answer, which names the tag and the reason.
func TestServedQuotas(t *testing.T) {
	served(t, denying, func(t *testing.T, k *kind, serve starter) {
		th, h := quotatest.New(t), &handler{}
		c := serve(t, h, th, options{tags: "header tag", maxWait: time.Second, onDenied: "nack"})
		ids := quotaMessages()
		answers, err := c.send(within(t), ids...)
		require.NoError(t, err)
		handled := map[string]int{}
		for i, a := range answers {
			if tag := ids[i].tag(); a.text == "handled" {
				handled[tag]++
			} else {
				require.Contains(t, a.reason, fmt.Sprintf("tag %q", tag))
				require.Contains(t, a.reason, string(quotatest.Reason(tag)))
				require.GreaterOrEqual(t, a.delay, 100*time.Millisecond)
			}
		}
		require.Equal(t, map[string]int{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, handled)
		require.Equal(t, map[string]int64{quotatest.Free: 5, quotatest.Budget: quotatest.Amount}, quotatest.Used(th))
		require.NoError(t, c.Close())
		require.Equal(t, dataplane.Stats{Sent: len(ids), Answered: len(ids)}, c.Stats())
	})
}

// The end of a stream ends the waits of its messages. They come again, to the same server or, where numaflow-go ends it, to another.
func TestServedALostConnectionEndsTheWaitAndNothingIsLost(t *testing.T) {
	const n = 50
	served(t, every, func(t *testing.T, k *kind, serve starter) {
		for _, o := range k.bounds() {
			tokens := make(chan struct{}, 1)
			l, h := throttletest.New(throttletest.GrantOn(tokens)), &handler{}
			c := serve(t, h, l, o)
			tokens <- struct{}{}
			_, err := c.send(within(t), "first")
			require.NoError(t, err)
			lost := make(chan error, 1)
			go func() {
				_, err := c.send(within(t), numbered(n)...)
				lost <- err
			}()
			waiting := n
			if k.batches {
				waiting = 1
			}
			eventually(t, func() bool { return l.Waiting() == waiting }, "all wait")
			c.Abort()
			require.ErrorIs(t, <-lost, dataplane.ErrBroken)
			stats := c.Stats()
			require.Equal(t, []int{stats.Sent - 1, 1}, []int{stats.Failed, stats.Answered})
			eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
			require.Equal(t, 1, l.Used())

			var again *link
			if k.sink || k.proxied == handlerproxy.MapStream { // numaflow-go ends, or may end, a server that cannot send answers
				again = serve(t, h, l, o)
			} else {
				again = k.connect(t, c.socket)
			}
			close(tokens)
			answers, err := again.send(within(t), numbered(n)...)
			require.NoError(t, err)
			require.Equal(t, slices.Repeat([]string{"handled"}, n), ending{answers: answers}.texts())
			require.NoError(t, again.Close())
		}
	})
}

// A panic fails the stream with its text, and the process ends, to be started again.
func TestServedAPanicFailsTheStreamWithTheCause(t *testing.T) {
	panics := func(id message) {
		if id == "panic:1" {
			panic("the user's own")
		}
	}
	for _, k := range kinds(func(k *kind) bool { return !k.source }) {
		for name, c := range map[string]struct {
			h *handler
			o options
		}{
			"handler": {&handler{do: func(_ context.Context, id message) { panics(id) }}, options{}},
			"cost":    {&handler{}, options{cost: func(id message) int { panics(id); return 1 }}},
		} {
			t.Run(k.name+", "+name, func(t *testing.T) {
				l := throttletest.New(grant, block)
				c.o.tags = "key 1"
				c := k.serveWrapped(t, c.h, tagged{l, map[string]throttle.Limiter{"panic": throttletest.New()}}, c.o)
				_, err := c.send(within(t), "a:1", "panic:1", "b:1", "c:1")
				require.ErrorIs(t, err, dataplane.ErrBroken)
				eventually(t, func() bool { return l.Waiting() == 0 }, "no wait outlives its stream")
				select {
				case <-c.ended:
				case <-within(t).Done():
					require.Fail(t, "the server goes on")
				}
				require.ErrorContains(t, c.Close(), "the user's own")
			})
		}
	}
}

// A wrapper outside that cancels the context of one message.
func TestServedACancelledMessageIsNeverAnsweredAndOthersAre(t *testing.T) {
	k, l := mapKind(), throttletest.New(block, grant)
	cancelled, exited := make(chan struct{}), make(chan struct{})
	w, ok := k.wrap(k.bare(&handler{}), l, options{}).(mapsdk.Mapper)
	require.True(t, ok)
	server := dataplane.Serve(t, mapsdk.MapperFunc(func(ctx context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
		if string(d.Value()) == "0" {
			defer close(exited)
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			context.AfterFunc(within(t), cancel)
			go func() {
				<-cancelled
				cancel()
			}()
		}
		return w.Map(ctx, keys, d)
	}))
	m, err := dataplane.Dial(within(t), server.Socket)
	require.NoError(t, err)
	left, send := make(chan error, 1), each(m.Do)
	go func() {
		_, err := send(within(t), "0")
		left <- err
	}()
	eventually(t, func() bool { return l.Waiting() == 1 }, "it waits")
	id := m.Outstanding()
	close(cancelled)
	<-exited
	for range 200 {
		_, err := send(within(t), "other")
		require.NoError(t, err)
	}
	require.Equal(t, id, m.Outstanding(), "no answer to this one, ever")
	m.Abort()
	require.ErrorIs(t, <-left, dataplane.ErrBroken)
}

// A handler panics while others wait for tokens. Only while numaflow-go is sending large answers it has a chance to send what those return.
func TestServedASiblingsPanicYieldsNoMadeUpAnswers(t *testing.T) {
	rounds := testkit.Fewer(100)
	for _, k := range []*kind{mapKind(), transformKind()} {
		t.Run(k.name, func(t *testing.T) {
			for round := range rounds {
				t.Run(fmt.Sprint(round), func(t *testing.T) { require.Zero(t, k.siblingPanics(t, k.wrap)) })
			}
		})
		// The same with a wrapper that returns when its wait ends: it shows that the rounds above can fail.
		t.Run(k.name+", control", func(t *testing.T) {
			for round, made := 0, 0; made == 0; round++ {
				require.Less(t, round, 20*rounds, "the control never sent a made-up answer")
				t.Run(fmt.Sprint(round), func(t *testing.T) { made = k.siblingPanics(t, k.careless) })
			}
		})
	}
}

// siblingPanics returns how many of the messages that waited were answered, be it with nothing, which breaks a transformer's stream.
func (k *kind) siblingPanics(t *testing.T, wrap func(bare any, l throttle.Limiter, o options) any) (answered int) {
	t.Helper()
	const waiters, slow = 20, 4
	gate, arrived := make(chan struct{}), make(chan struct{}, slow)
	large := []output{{value: strings.Repeat("x", 1<<20)}}
	h := &handler{outputs: func(id message) []output {
		if id == "free:panic" {
			panic("sibling")
		}
		arrived <- struct{}{}
		<-gate
		return large
	}}
	held := throttletest.New(block)
	l := tagged{held, map[string]throttle.Limiter{"free": throttletest.New()}}
	c := k.connect(t, dataplane.Serve(t, wrap(k.bare(h), l, options{tags: "key 1"})).Socket)
	send := func(id message) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.send(within(t), id)
			done <- err
		}()
		return done
	}
	var waiting, sending []<-chan error
	for _, id := range numbered(waiters) {
		waiting = append(waiting, send(id))
	}
	eventually(t, func() bool { return held.Waiting() == waiters }, "all wait")
	for range slow {
		sending = append(sending, send("free:slow"))
		<-arrived
	}
	close(gate)
	require.NoError(t, <-sending[0])
	require.ErrorIs(t, <-send("free:panic"), dataplane.ErrBroken)
	for _, done := range waiting {
		if err := <-done; err == nil || strings.Contains(err.Error(), string(dataplane.FaultEmpty)) {
			answered++
		}
	}
	c.Abort()
	return answered
}
