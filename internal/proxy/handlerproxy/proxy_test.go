package handlerproxy_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/numaproj/numaflow-go/pkg/info"
	mapsdk "github.com/numaproj/numaflow-go/pkg/mapper"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A setup is a proxy before a handler, both in this process.
type setup struct {
	handlerproxy.Config

	stop  context.CancelFunc
	ended chan error
}

// configured returns a configuration whose sockets and files are in a fresh folder.
func configured(t testing.TB, kind handlerproxy.Kind, l throttle.Limiter) handlerproxy.Config {
	t.Helper()
	dir := dataplane.Dir(t)
	return handlerproxy.Config{
		Kind: kind, Limiter: l, HandlerWait: 20 * time.Second,
		Socket: filepath.Join(dir, "p.sock"), ServerInfo: filepath.Join(dir, "p-info"),
		HandlerSocket: filepath.Join(dir, "h.sock"), HandlerServerInfo: filepath.Join(dir, "h-info"),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// start runs a proxy until the end of the test.
func start(t testing.TB, c handlerproxy.Config) *setup {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &setup{Config: c, stop: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- handlerproxy.Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-s.ended)
	})
	return s
}

// serve runs a handler of numaflow-go, and a proxy before it.
func serve(t *testing.T, c handlerproxy.Config, handler any) *setup {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- dataplane.NewServer(handler, c.HandlerSocket, c.HandlerServerInfo).Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return start(t, c)
}

func grantAll() *throttletest.Limiter { return throttletest.New(throttletest.Grant()) }

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func message(value string) dataplane.Message {
	return dataplane.Message{
		Keys: []string{"k1", "k2"}, Value: []byte(value), EventTime: time.Unix(100, 5), Watermark: time.Unix(99, 0),
		Headers: map[string]string{"tokens": "7"},
	}
}

var echoMap = mapsdk.MapperFunc(func(_ context.Context, keys []string, d mapsdk.Datum) mapsdk.Messages {
	if string(d.Value()) == "drop" {
		return mapsdk.MessagesBuilder().Append(mapsdk.MessageToDrop())
	}
	return mapsdk.MessagesBuilder().Append(mapsdk.NewMessage(append([]byte("echo "), d.Value()...)).WithKeys(keys).WithTags([]string{d.Headers()["tokens"]}))
})

func TestMap(t *testing.T) {
	l := grantAll()
	s := serve(t, configured(t, handlerproxy.Map, l), echoMap)
	m, err := dataplane.Dial(within(t), s.waitSocket(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	for range 10 {
		results, err := m.Do(within(t), message("a"))
		require.NoError(t, err)
		require.Equal(t, []dataplane.Result{{Keys: []string{"k1", "k2"}, Value: []byte("echo a"), Tags: []string{"7"}}}, results)
	}
	require.Len(t, l.Draws(), 10)
	handler, err := info.Read(info.WithServerInfoFilePath(s.HandlerServerInfo))
	require.NoError(t, err)
	platform, err := info.Read(info.WithServerInfoFilePath(s.ServerInfo))
	require.NoError(t, err)
	handler.Metadata["NUMATHROTTLE_PROXY"] = s.Socket
	require.Equal(t, handler, platform)
}

// waitSocket waits until the proxy has said that it is there, and returns its socket.
func (s *setup) waitSocket(t testing.TB) string {
	t.Helper()
	for {
		if _, err := os.Stat(s.ServerInfo); err == nil {
			return s.Socket
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			require.FailNow(t, "the proxy has ended", err)
		case <-within(t).Done():
			require.FailNow(t, "the proxy is not up")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
