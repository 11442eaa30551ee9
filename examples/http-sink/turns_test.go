package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	sinksdk "github.com/numaproj/numaflow-go/pkg/sinker"

	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/httpthrottle"
)

// accepts is a service that has a message at once.
type accepts struct{}

func (accepts) RoundTrip(req *http.Request) (*http.Response, error) {
	_ = req.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

// virtualSink is a sink without a network, for virtual time.
func virtualSink(t *testing.T, s *settings, log *slog.Logger) *sink {
	t.Helper()
	k, err := newSink(t.Context(), s, log)
	require.NoError(t, err)
	k.handler.client.http.CloseIdleConnections()
	k.handler.client.http = &http.Client{Transport: httpthrottle.NewTransport(accepts{}, k.limits.limiter(),
		httpthrottle.WithCost(func(req *http.Request) int { return callOf(req).cost }), httpthrottle.WithTag(destinationOf))}
	return k
}

type aMessage struct {
	sinksdk.Datum

	id string
}

func (m aMessage) ID() string               { return m.id }
func (m aMessage) Value() []byte            { return []byte(m.id) }
func (aMessage) Headers() map[string]string { return nil }

// deliver has a sink handle a chunk, and returns when each message comes again; 0: it was stored.
func deliver(ctx context.Context, t *testing.T, k *sink, ids []string) map[string]time.Duration {
	t.Helper()
	in := make(chan sinksdk.Datum, len(ids))
	for _, id := range ids {
		in <- aMessage{id: id}
	}
	close(in)
	again := map[string]time.Duration{}
	for _, r := range k.handler.Sink(ctx, in) {
		again[r.ID] = 0
		if r.Nack {
			again[r.ID] = time.Duration(*r.NackOptions.Delay) * time.Millisecond
		}
	}
	require.Len(t, again, len(ids))
	return again
}

// play offers messages at once, in chunks of a batch at most, with what has come within 100 ms, as a sink of a pipeline has
// them with readTimeout: 100ms. A nacked message comes again after its delay.
func play(t *testing.T, pods []*sink, batch, messages int) (took time.Duration, deliveries float64) {
	t.Helper()
	const readTimeout = 100 * time.Millisecond
	began, buffer, done := time.Now(), make(chan string, messages), make(chan struct{})
	for _, m := range numbered(messages) {
		buffer <- string(m.Value)
	}
	var sent, stored atomic.Int64
	var all sync.WaitGroup
	for _, k := range pods {
		all.Go(func() {
			for {
				chunk := collect(buffer, done, batch, readTimeout)
				if len(chunk) == 0 {
					return
				}
				sent.Add(int64(len(chunk)))
				for id, delay := range deliver(t.Context(), t, k, chunk) {
					switch {
					case delay > 0:
						time.AfterFunc(delay, func() { buffer <- id })
					case stored.Add(1) == int64(messages):
						took = time.Since(began)
						close(done)
					}
				}
			}
		})
	}
	all.Wait()
	return took, float64(sent.Load()) / float64(messages)
}

// collect returns a chunk: none when it is done.
func collect(buffer <-chan string, done <-chan struct{}, most int, timeout time.Duration) (chunk []string) {
	select {
	case id := <-buffer:
		chunk = append(chunk, id)
	case <-done:
		return nil
	}
	for full := time.After(timeout); len(chunk) < most; {
		select {
		case id := <-buffer:
			chunk = append(chunk, id)
		case <-full:
			return chunk
		}
	}
	return chunk
}

// The messages that a limit has denied come again one after the other, at its pace: the limit is used, and a message comes
// about twice.
func TestNacksHaveATurnEach(t *testing.T) {
	for name, vars := range map[string]env{
		"the limit":                         {"NUMATHROTTLE_MAX": "20"},
		"beside a limit on requests":        {"NUMATHROTTLE_MAX": "20", "UNIT": "messages", "MAX_REQUESTS": "100"},
		"that of a destination":             {"NUMATHROTTLE_MAX": "100", "DESTINATION_MAX": "20"},
		"several messages together, as one": {"NUMATHROTTLE_MAX": "20", "UNIT": "messages", "FORMAT": "ndjson", "MAX_MESSAGES": "4"},
	} {
		t.Run(name, func(t *testing.T) {
			all := env{
				"URL": "http://127.0.0.1/", "NUMATHROTTLE_STORE": "static://?replicas=1", "LIMIT_WAIT": "1s", "ON_UNAVAILABLE": "nack", "CONCURRENCY": "100",
			}
			maps.Copy(all, vars)
			s, err := loaded(t, all)
			require.NoError(t, err)
			for _, batch := range []int{40, 500} {
				synctest.Test(t, func(t *testing.T) {
					var book testkit.Book
					k := virtualSink(t, &s, book.Logger())
					took, deliveries := play(t, []*sink{k}, batch, 600)
					use := 600 / (20 * took.Seconds())
					t.Logf("batch %d: use %.2f, deliveries %.2f", batch, use, deliveries)
					require.GreaterOrEqual(t, use, 0.95)
					require.LessOrEqual(t, deliveries, 2.1)
					require.Equal(t, 1, strings.Count(book.String(), "messages nacked"), "once a minute: %s", book.String())
					require.NotContains(t, book.String(), "not stored")
					require.NoError(t, k.close())
				})
			}
		})
	}
}

// The same goes for the pods of one pool, whose shares move. With four pods, one run of 25 uses 0.9 of the limit, so that a test that asked
// once would fail for nothing.
func TestNacksOfAPoolHaveATurnEach(t *testing.T) {
	for _, pods := range []int{2, 4} {
		best := 0.0
		for try := range 3 {
			if best = max(best, playPool(t, pods, fmt.Sprintf("%s-%d-%d", t.Name(), pods, try))); best >= 0.95 {
				break
			}
		}
		require.GreaterOrEqual(t, best, 0.95, "%d pods", pods)
	}
}

// playPool plays 2,000 messages to the pods of a pool, and returns the used part of their limit.
func playPool(t *testing.T, pods int, store string) (use float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var all []*sink
		for i := range pods {
			s, err := loaded(t, env{
				"URL": "http://127.0.0.1/", "NUMATHROTTLE_STORE": "memory://" + store, "NUMATHROTTLE_POOL": "p",
				"NUMATHROTTLE_ID": strconv.Itoa(i), "NUMATHROTTLE_MAX": "20", "LIMIT_WAIT": "1s", "ON_UNAVAILABLE": "nack", "CONCURRENCY": "100",
			})
			require.NoError(t, err)
			all = append(all, virtualSink(t, &s, slog.New(slog.DiscardHandler)))
		}
		time.Sleep(20 * time.Second) // virtual: the pool's beginning
		took, deliveries := play(t, all, 40, 2000)
		use = 2000 / (20 * took.Seconds())
		t.Logf("%d pods: use %.2f, deliveries %.2f", pods, use, deliveries)
		require.LessOrEqual(t, deliveries, 2.02)
		for _, k := range all {
			require.NoError(t, k.close())
		}
	})
	return use
}

func TestMaxPauseHasABound(t *testing.T) {
	_, err := loaded(t, env{"URL": "http://h", "MAX_PAUSE": "6m"})
	require.ErrorContains(t, err, "maxPause")
	require.ErrorContains(t, err, "`1ms` to `5m`")
}

func TestNoLimitAtAllIsSaid(t *testing.T) {
	require.Contains(t, noLimit(&settings{}), "HTTP_SINK_DESTINATION_MAX")
	for name, set := range map[string]func(s *settings){
		"max": func(s *settings) { s.Pool.Limit.Max = 1 }, "maxRequests": func(s *settings) { s.MaxRequests = 1 },
		"inFlight": func(s *settings) { s.InFlight = 1 }, "destinationMax": func(s *settings) { s.DestinationMax = 1 },
		"destinationInFlight": func(s *settings) { s.DestinationInFlight = 1 },
	} {
		var s settings
		set(&s)
		require.Empty(t, noLimit(&s), name)
	}
}
