package wrappers

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A stream is an open connection to a server.
type stream interface {
	Close() error
	Abort()
	Stats() dataplane.Stats
}

// A sender sends messages over a stream, all at once, and returns an answer for each.
type sender func(ctx context.Context, ids ...message) ([]answer, error)

type dialer func(ctx context.Context, socket string) (stream, sender, error)

func toPlatform(id message) dataplane.Message {
	return dataplane.Message{Keys: id.keys(), Value: []byte(id), EventTime: eventTime, Watermark: watermark, Headers: id.headers()}
}

func resultsOf(results []dataplane.Result) (a answer) {
	for i, r := range results {
		if i > 0 {
			a.text += " "
		}
		a.text += textOf(string(r.Value), r.Keys, r.Tags)
		if o := r.NackOptions; o != nil {
			a.delay, a.reason = o.Delay, o.Reason
		}
	}
	return a
}

// each returns a sender for messages that have an answer each.
func each(do func(ctx context.Context, m dataplane.Message) ([]dataplane.Result, error)) sender {
	return func(ctx context.Context, ids ...message) ([]answer, error) {
		answers, errs := make([]answer, len(ids)), make(chan error, len(ids))
		for i, id := range ids {
			go func() {
				results, err := do(ctx, toPlatform(id))
				answers[i] = resultsOf(results)
				errs <- err
			}()
		}
		var failed error
		for range ids {
			if err := <-errs; err != nil {
				failed = err
			}
		}
		return answers, failed
	}
}

// together returns a sender for a batch.
func together[R any](do func(ctx context.Context, all []dataplane.Message) ([]R, error), of func(R) answer) sender {
	return func(ctx context.Context, ids ...message) ([]answer, error) {
		var all []dataplane.Message
		for _, id := range ids {
			all = append(all, toPlatform(id))
		}
		results, err := do(ctx, all)
		answers := make([]answer, len(results))
		for i, r := range results {
			answers[i] = of(r)
		}
		return answers, err
	}
}

func dialMap(ctx context.Context, socket string) (stream, sender, error) {
	m, err := dataplane.Dial(ctx, socket)
	return m, each(m.Do), err
}

func dialMapStream(ctx context.Context, socket string) (stream, sender, error) {
	m, err := dataplane.DialMapStream(ctx, socket)
	return m, each(m.Do), err
}

func dialTransform(ctx context.Context, socket string) (stream, sender, error) {
	m, err := dataplane.DialTransform(ctx, socket)
	return m, each(m.Do), err
}

func dialBatchMap(ctx context.Context, socket string) (stream, sender, error) {
	m, err := dataplane.DialBatchMap(ctx, socket)
	return m, together(m.Do, resultsOf), err
}

func dialSink(ctx context.Context, socket string) (stream, sender, error) {
	k, err := dataplane.DialSink(ctx, socket)
	return k, together(k.Do, func(r dataplane.SinkResult) answer {
		a := answer{text: map[dataplane.SinkStatus]string{
			dataplane.SinkSuccess: "handled", dataplane.SinkFallback: "fallback", dataplane.SinkNack: "#nack", dataplane.SinkServe: string(r.Serve),
		}[r.Status] + r.Error}
		if o := r.NackOptions; o != nil {
			a.delay, a.reason = o.Delay, o.Reason
		}
		return a
	}), err
}

// A link is a stream to a server.
type link struct {
	stream
	send sender
	// ended is closed when the server of a wrapped handler has ended; nil with the proxy, which goes on.
	ended  <-chan struct{}
	socket string
}

// A starter serves a handler, wrapped or behind the proxy, and opens a stream to it.
type starter func(t *testing.T, h *handler, l throttle.Limiter, o options) *link

const testTimeout = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, testTimeout, time.Millisecond, what)
}

func (k *kind) connect(t *testing.T, socket string) *link {
	t.Helper()
	s, send, err := k.dial(within(t), socket)
	require.NoError(t, err)
	t.Cleanup(s.Abort)
	return &link{stream: s, send: send, socket: socket}
}

// serveWrapped starts numaflow-go's server for a wrapped handler.
func (k *kind) serveWrapped(t *testing.T, h *handler, l throttle.Limiter, o options) *link {
	t.Helper()
	server := dataplane.Serve(t, k.wrap(k.bare(h), l, o))
	c := k.connect(t, server.Socket)
	c.ended = server.Ended()
	return c
}

// serveProxied starts numaflow-go's server for a bare handler, and the proxy before it.
func (k *kind) serveProxied(t *testing.T, h *handler, l throttle.Limiter, o options) *link {
	t.Helper()
	dir := dataplane.Dir(t)
	c := handlerproxy.Config{
		Kind: k.proxied, Limiter: l, HandlerWait: testTimeout, Logger: slog.New(slog.DiscardHandler),
		Socket: filepath.Join(dir, "p.sock"), ServerInfo: filepath.Join(dir, "p-info"),
		HandlerSocket: filepath.Join(dir, "h.sock"), HandlerServerInfo: filepath.Join(dir, "h-info"),
		Cost: o.costs, Tag: o.tags, OnDenied: o.onDenied, MaxWait: o.maxWait, BatchBudget: o.budget,
		InOrder: k.name == inOrder, PerOutput: k.outputs, ExemptDropped: o.exempt,
	}
	if k.tags() {
		c.Tag = "key 1"
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- dataplane.NewServer(k.bare(h), c.HandlerSocket, c.HandlerServerInfo).Start(ctx) }()
	go func() { ended <- handlerproxy.Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	eventually(t, func() bool {
		_, err := os.Stat(c.ServerInfo)
		return err == nil
	}, "the proxy is up")
	return k.connect(t, c.Socket)
}

// served tries each kind over its socket, wrapped and behind the proxy.
func served(t *testing.T, by func(k *kind) bool, try func(t *testing.T, k *kind, serve starter)) {
	t.Helper()
	all := kinds(func(k *kind) bool { return !k.source && k.name != "stream map, direct" && by(k) })
	for _, k := range all {
		t.Run(k.name, func(t *testing.T) { try(t, k, k.serveWrapped) })
		t.Run(k.name+" behind the proxy", func(t *testing.T) { try(t, k, k.serveProxied) })
	}
	for name, proxied := range map[string]handlerproxy.Kind{"fallback sink": handlerproxy.FallbackSink, "on-success sink": handlerproxy.OnSuccessSink} {
		if k := sinkKind(name); by(k) {
			k.proxied = proxied
			t.Run(name+" behind the proxy", func(t *testing.T) { try(t, k, k.serveProxied) })
		}
	}
}
