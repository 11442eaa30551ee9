package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// ofEach are settings with limits for each destination, which is what a message says.
func ofEach(change env) env {
	vars := env{
		"URL": "http://127.0.0.1:1/{{.Value}}", "DESTINATION": "{{.Value}}", "DESTINATION_MAX": "100000", "DESTINATION_IN_FLIGHT": "100",
		"NUMATHROTTLE_STORE": "static://?replicas=1", "NUMATHROTTLE_POOL": "p", "NUMATHROTTLE_ID": "a",
	}
	maps.Copy(vars, change)
	return vars
}

// A slowJoin joins pools, but for that of one destination, whose store does not answer until it is released.
type slowJoin struct {
	of                string
	entered, released chan struct{}
}

func (j slowJoin) join(ctx context.Context, c numathrottle.Config) (*throttle.Throttle, error) {
	if strings.Contains(c.Pool, destinationSuffix+j.of+"/") {
		j.entered <- struct{}{}
		<-j.released
	}
	return numathrottle.Open(ctx, c)
}

// What waits for the limits of its destination holds up no other destination, whether its limits are open or not.
func TestADestinationThatIsSlowToOpenHoldsUpNoOther(t *testing.T) {
	service := startService(t, nil)
	r := start(t, ofEach(env{"URL": service.URL + "/{{.Value}}"}))
	require.Equal(t, all(1, dataplane.SinkSuccess), statuses(r.do(messages("known")...)))
	slow := slowJoin{of: "slow", entered: make(chan struct{}, 10), released: make(chan struct{})}
	r.limits.join = slow.join
	in, done := make(chan sinkDatum, 2), make(chan sinksdk.Responses, 1)
	in <- datum{id: "1", value: "slow"}
	in <- datum{id: "2", value: "slow"}
	close(in)
	go func() { done <- r.handler.Sink(r.ctx, in) }()
	<-slow.entered
	others, failed := r.socket.Do(r.ctx, messages("known", "new", "known"))
	early := len(done)
	close(slow.released)
	require.NoError(t, failed, "they have waited for a destination that is none of theirs")
	require.Equal(t, all(3, dataplane.SinkSuccess), statuses(others))
	require.Zero(t, early, "its own messages wait")
	require.Equal(t, sinksdk.Responses{sinksdk.ResponseOK("1"), sinksdk.ResponseOK("2")}, <-done)
	require.Empty(t, slow.entered, "one message opens the limits for all")
}

// A sink that ends leaves also the pools that it was about to join, and joins no more.
func TestLimitsThatAreBeingOpenedAreClosedToo(t *testing.T) {
	s, err := loaded(t, ofEach(nil))
	require.NoError(t, err)
	l, err := openLimits(t.Context(), &s, slog.New(slog.DiscardHandler), func() {})
	require.NoError(t, err)
	slow := slowJoin{of: "slow", entered: make(chan struct{}, 10), released: make(chan struct{})}
	l.join = slow.join
	opened, closed := make(chan throttle.Limiter), make(chan error)
	go func() { opened <- l.ForTag("slow") }()
	<-slow.entered
	go func() { closed <- l.close() }()
	require.Eventually(t, func() bool { // it waits for that
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.closed
	}, testTimeout, time.Millisecond)
	close(slow.released)
	late := <-opened
	require.NoError(t, <-closed)
	for _, limiter := range []throttle.Limiter{late, l.ForTag("new")} {
		_, err = limiter.Acquire(t.Context(), 1)
		require.ErrorIs(t, err, throttle.ErrClosed)
	}
	require.Empty(t, l.closers)
}

// Limits that cannot be opened make their destination unavailable for a while, not for good, and leave nothing behind.
func TestADestinationIsOpenedAgain(t *testing.T) {
	s, err := loaded(t, ofEach(env{"NUMATHROTTLE_STORE": "redis://127.0.0.1:1", "NUMATHROTTLE_FAIL_FAST": "true"}))
	require.NoError(t, err)
	l, err := openLimits(t.Context(), &s, slog.New(slog.DiscardHandler), func() {})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.close()) })
	store := "memory://" + rand.Text()
	var rate *throttle.Throttle // the other of the two limits cannot be opened
	l.join = func(ctx context.Context, c numathrottle.Config) (*throttle.Throttle, error) {
		c.Store = store
		var err error
		rate, err = numathrottle.Open(ctx, c)
		return rate, err
	}
	first := l.ForTag("x")
	require.Empty(t, l.closers)
	require.Empty(t, l.rates)
	_, err = rate.Acquire(t.Context(), 1)
	require.ErrorIs(t, err, throttle.ErrClosed)
	_, err = first.Acquire(t.Context(), 1)
	require.ErrorIs(t, err, throttle.ErrThrottled)

	s.Pool.Store = store
	require.Equal(t, first, l.ForTag("x"), "not with every message")
	require.WithinDuration(t, time.Now().Add(openAgain), l.at["x"].again, openAgain)
	l.at["x"].again = time.Now()
	require.NotEqual(t, first, l.ForTag("x"))
	_, ok := l.ForTag("x").TryAcquire(0)
	require.True(t, ok)
	require.Len(t, l.rates, 1)
}

// In shadow mode limits hold nothing back, also when they cannot be opened.
func TestShadowModeGoesOnWithoutItsStore(t *testing.T) {
	service := startService(t, nil)
	r := start(t, ofEach(env{
		"URL": service.URL + "/{{.Value}}", "SHADOW": "true", "NUMATHROTTLE_STORE": "redis://127.0.0.1:1", "NUMATHROTTLE_FAIL_FAST": "true",
	}))
	require.Equal(t, all(2, dataplane.SinkSuccess), statuses(r.do(messages("a", "a")...)))
	require.Contains(t, r.log.String(), "the limits of a destination cannot be opened")
}
