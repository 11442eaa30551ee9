package handlerproxy_test

import (
	"testing"
	"time"

	commonpb "github.com/numaproj/numaflow-go/pkg/apis/proto/common"
	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// grantThenDeny grants one draw and refuses all that follow.
func grantThenDeny() *throttletest.Limiter {
	return throttletest.New(throttletest.Grant(), throttletest.Deny(nil))
}

// What becomes of a message without tokens, in every kind that can answer in the handler's place.
func TestDenied(t *testing.T) {
	for _, action := range []string{"nack", "drop", "forward later,cheap"} {
		t.Run(action, func(t *testing.T) {
			for kind, handler := range map[handlerproxy.Kind]any{
				handlerproxy.Map: echoMap, handlerproxy.BatchMap: echoBatch, handlerproxy.MapStream: echoStream, handlerproxy.Transform: echoTransform,
			} {
				t.Run(string(kind), func(t *testing.T) {
					c := configured(t, kind, grantThenDeny())
					c.OnDenied, c.MaxWait = action, time.Second
					first, second := twoMessages(t, kind, serve(t, c, handler).waitSocket(t))
					require.Equal(t, "echo a", string(first[0].Value))
					require.Len(t, second, 1)
					switch r := second[0]; action {
					case "nack":
						require.True(t, r.Nack)
						require.NotNil(t, r.NackOptions)
						require.GreaterOrEqual(t, r.NackOptions.Delay, 100*time.Millisecond)
						require.Contains(t, r.NackOptions.Reason, "limit")
					case "drop":
						require.True(t, r.Drop)
					default:
						require.Equal(t, []string{"later", "cheap"}, r.Tags)
						require.Equal(t, []string{"k1", "k2"}, r.Keys)
						require.Equal(t, "b", string(r.Value))
					}
				})
			}
		})
	}
}

// A cost that can never be granted is denied alone, in every kind and with every action; the next message is handled.
func TestACostThatCanNeverBeGrantedIsDeniedAlone(t *testing.T) {
	neverThenGrant := func() *throttletest.Limiter {
		never := &throttle.Error{Reason: throttle.ReasonTooLarge, Cost: 1e12, Largest: 10}
		return throttletest.New(throttletest.Deny(never), throttletest.Grant())
	}
	for _, action := range []string{"wait", "nack", "drop"} {
		for kind, handler := range map[handlerproxy.Kind]any{
			handlerproxy.Map: echoMap, handlerproxy.BatchMap: echoBatch, handlerproxy.MapStream: echoStream, handlerproxy.Transform: echoTransform,
		} {
			t.Run(action+" "+string(kind), func(t *testing.T) {
				c := configured(t, kind, neverThenGrant())
				if c.OnDenied = action; action != "wait" {
					c.MaxWait = time.Second
				}
				first, second := twoMessages(t, kind, serve(t, c, handler).waitSocket(t))
				require.Equal(t, action != "drop", first[0].Nack)
				require.Equal(t, action == "drop", first[0].Drop)
				require.Equal(t, "echo b", string(second[0].Value))
			})
		}
	}
	for action, want := range map[string]dataplane.SinkStatus{
		"wait": dataplane.SinkFailure, "nack": dataplane.SinkNack, "drop": dataplane.SinkSuccess, "fallback": dataplane.SinkFallback,
	} {
		t.Run(action+" sink", func(t *testing.T) {
			c := configured(t, handlerproxy.Sink, neverThenGrant())
			if c.OnDenied = action; action != "wait" {
				c.BatchBudget = time.Second
			}
			k, err := dataplane.DialSink(within(t), serve(t, c, storeAll).waitSocket(t))
			require.NoError(t, err)
			defer func() { require.NoError(t, k.Close()) }()
			results, err := k.Do(within(t), []dataplane.Message{message("a"), message("b")})
			require.NoError(t, err)
			require.Equal(t, want, results[0].Status)
			require.Equal(t, dataplane.SinkSuccess, results[1].Status)
		})
	}
}

// twoMessages has a and b handled, one after the other.
func twoMessages(t *testing.T, kind handlerproxy.Kind, socket string) (first, second []dataplane.Result) {
	t.Helper()
	if kind == handlerproxy.BatchMap {
		m, err := dataplane.DialBatchMap(within(t), socket)
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		results, err := m.Do(within(t), []dataplane.Message{message("a"), message("b")})
		require.NoError(t, err)
		all, err := m.Do(within(t), []dataplane.Message{message("c"), message("d")})
		require.NoError(t, err, "a batch of which the handler gets nothing")
		require.Len(t, all, 2)
		return results[0], results[1]
	}
	var do func(value string) ([]dataplane.Result, error)
	switch kind {
	case handlerproxy.Map:
		m, err := dataplane.Dial(within(t), socket)
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		do = func(value string) ([]dataplane.Result, error) { return m.Do(within(t), message(value)) }
	case handlerproxy.MapStream:
		m, err := dataplane.DialMapStream(within(t), socket)
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		do = func(value string) ([]dataplane.Result, error) { return m.Do(within(t), message(value)) }
	default:
		m, err := dataplane.DialTransform(within(t), socket)
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		do = func(value string) ([]dataplane.Result, error) { return m.Do(within(t), message(value)) }
	}
	first, err := do("a")
	require.NoError(t, err)
	second, err = do("b")
	require.NoError(t, err)
	return first, second
}

func TestDeniedInASink(t *testing.T) {
	for action, want := range map[string]dataplane.SinkStatus{
		"nack": dataplane.SinkNack, "drop": dataplane.SinkSuccess, "fail": dataplane.SinkFailure, "fallback": dataplane.SinkFallback,
	} {
		t.Run(action, func(t *testing.T) {
			c := configured(t, handlerproxy.Sink, grantThenDeny())
			c.OnDenied, c.BatchBudget = action, time.Second
			k, err := dataplane.DialSink(within(t), serve(t, c, storeAll).waitSocket(t))
			require.NoError(t, err)
			defer func() { require.NoError(t, k.Close()) }()
			results, err := k.Do(within(t), []dataplane.Message{message("a"), message("b")})
			require.NoError(t, err)
			require.Equal(t, dataplane.SinkSuccess, results[0].Status)
			require.Equal(t, want, results[1].Status)
			results, err = k.Do(within(t), []dataplane.Message{message("c")})
			require.NoError(t, err, "a batch of which the handler gets nothing")
			require.Equal(t, want, results[0].Status)
		})
	}
}

// A message that is forwarded takes its metadata along, and not the platform's own.
func TestForwardKeepsTheUsersMetadata(t *testing.T) {
	c := configured(t, handlerproxy.Map, throttletest.New(throttletest.Deny(nil)))
	c.OnDenied, c.MaxWait = "forward later", time.Second
	stream := mapCall(t, serve(t, c, echoMap).waitSocket(t))
	group := func(value string) map[string]*commonpb.KeyValueGroup {
		return map[string]*commonpb.KeyValueGroup{"g": {KeyValue: map[string][]byte{"k": []byte(value)}}}
	}
	require.NoError(t, stream.Send(&mappb.MapRequest{Id: "1", Request: &mappb.MapRequest_Request{
		Metadata: &commonpb.Metadata{PreviousVertex: "in", SysMetadata: group("sys"), UserMetadata: group("user")},
	}}))
	resp, err := stream.Recv()
	require.NoError(t, err)
	got := resp.GetResults()[0].GetMetadata()
	require.Equal(t, []byte("user"), got.GetUserMetadata()["g"].GetKeyValue()["k"])
	require.Empty(t, got.GetSysMetadata())
	require.Empty(t, got.GetPreviousVertex())
}

func TestADroppedMessageIsExempt(t *testing.T) {
	for exempt, used := range map[bool]int{true: 1, false: 3} {
		l := grantAll()
		c := configured(t, handlerproxy.Map, l)
		c.ExemptDropped = exempt
		m, err := dataplane.Dial(within(t), serve(t, c, echoMap).waitSocket(t))
		require.NoError(t, err)
		for _, value := range []string{"drop", "a", "drop"} {
			_, err := m.Do(within(t), message(value))
			require.NoError(t, err)
		}
		require.NoError(t, m.Close())
		require.Equal(t, used, l.Used(), "exempt: %t", exempt)
	}
}

func TestAnOutputOfAStreamDraws(t *testing.T) {
	l := grantAll()
	c := configured(t, handlerproxy.MapStream, l)
	c.PerOutput, c.Cost = true, "header tokens"
	m, err := dataplane.DialMapStream(within(t), serve(t, c, echoStream).waitSocket(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	results, err := m.Do(within(t), message("a"))
	require.NoError(t, err)
	require.Len(t, results, 3)
	require.Equal(t, 21, l.Used())
}

func TestCosts(t *testing.T) {
	for cost, want := range map[string]int{
		"": 1, "3": 3, "bytes/4": 10, "header tokens": 7, "header missing": 1, "json usage.tokens": 12, "json usage.missing": 1, "json list.1": 5,
	} {
		l := grantAll()
		c := configured(t, handlerproxy.Map, l)
		c.Cost = cost
		m, err := dataplane.Dial(within(t), serve(t, c, echoMap).waitSocket(t))
		require.NoError(t, err)
		_, err = m.Do(within(t), message(`{"usage":{"tokens":11.5},"list":[1,5]}`))
		require.NoError(t, err)
		require.NoError(t, m.Close())
		require.Equal(t, want, l.Used(), "cost %q", cost)
	}
}

// A message that waits for its tokens waits in the proxy; the handler never sees it before.
func TestWhatWaitsIsDeliveredAgainWhenTheProxyStops(t *testing.T) {
	l := throttletest.New(throttletest.Grant(), throttletest.Block())
	c := configured(t, handlerproxy.Map, l)
	m, err := dataplane.Dial(within(t), serve(t, c, echoMap).waitSocket(t))
	require.NoError(t, err)
	_, err = m.Do(within(t), message("a"))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := m.Do(within(t), message("b"))
		done <- err
	}()
	require.Eventually(t, func() bool { return l.Waiting() == 1 }, 10*time.Second, time.Millisecond)
	m.Abort()
	require.Error(t, <-done)
	require.Eventually(t, func() bool { return l.Waiting() == 0 }, 10*time.Second, time.Millisecond, "nothing waits for a stream that has ended")
}
