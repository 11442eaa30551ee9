package handlerproxy_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/numaproj/numaflow-go/pkg/info"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
)

func TestSettingsThatMakeNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(c *handlerproxy.Config)
		want   string
	}{
		"no kind": {
			func(c *handlerproxy.Config) { c.Kind = "" },
			"kind is not set, allowed: one of map, batchmap, mapstream, sink, fb-sink, ons-sink, source, sourcetransform",
		},
		"unknown kind":    {func(c *handlerproxy.Config) { c.Kind = "reduce" }, `kind is "reduce"`},
		"one socket":      {func(c *handlerproxy.Config) { c.HandlerSocket = c.Socket }, "which is the platform's socket, too"},
		"one file":        {func(c *handlerproxy.Config) { c.HandlerServerInfo = c.ServerInfo }, "which is the platform's file, too"},
		"long socket":     {func(c *handlerproxy.Config) { c.Socket = "/" + strings.Repeat("s", 107) }, "socket is 108 bytes long, allowed: at most 107"},
		"cost":            {func(c *handlerproxy.Config) { c.Cost = "bytes/0" }, `cost is "bytes/0", allowed: a whole number`},
		"json path":       {func(c *handlerproxy.Config) { c.Cost = "json a..b" }, `cost is "json a..b"`},
		"tag":             {func(c *handlerproxy.Config) { c.Tag = "key -1" }, `tag is "key -1", allowed: `},
		"action":          {func(c *handlerproxy.Config) { c.OnDenied = "explode" }, `onDenied is "explode", allowed: `},
		"forward to drop": {func(c *handlerproxy.Config) { c.OnDenied, c.MaxWait = "forward a,,b", time.Second }, `onDenied is "forward a,,b"`},
		"unbounded nack":  {func(c *handlerproxy.Config) { c.OnDenied = "nack" }, "maxWait is not set with onDenied nack, allowed: a duration"},
		"bounded wait": {
			func(c *handlerproxy.Config) { c.MaxWait = time.Second },
			`onDenied is "wait" for kind map with a bound on the wait, allowed: what ends it: nack, drop, forward`,
		},
		"fail in a map": {
			func(c *handlerproxy.Config) { c.OnDenied, c.MaxWait = "fail", time.Second },
			`onDenied is "fail" for kind map, allowed: wait, nack, drop, forward`,
		},
		"fallback of a fallback": {func(c *handlerproxy.Config) {
			c.Kind, c.OnDenied, c.MaxWait = handlerproxy.FallbackSink, "fallback", time.Second
		}, `onDenied is "fallback" for kind fb-sink, allowed: wait, nack, drop, fail`},
		"source that nacks": {
			func(c *handlerproxy.Config) { c.Kind, c.OnDenied = handlerproxy.Source, "nack" },
			`onDenied is "nack" for kind source, allowed: wait`,
		},
		"perOutput":           {func(c *handlerproxy.Config) { c.PerOutput = true }, "perOutput is set for kind map, allowed: only for mapstream"},
		"inOrder":             {func(c *handlerproxy.Config) { c.InOrder = true }, "inOrder is set for kind map, allowed: only for sinks"},
		"wait of the handler": {func(c *handlerproxy.Config) { c.HandlerWait = time.Microsecond }, "handlerWait is"},
	} {
		t.Run(name, func(t *testing.T) {
			c := configured(t, handlerproxy.Map, grantAll())
			tc.change(&c)
			require.ErrorContains(t, handlerproxy.Run(within(t), c), tc.want)
		})
	}
}

func TestAHandlerThatDoesNotComeUp(t *testing.T) {
	c := configured(t, handlerproxy.Map, grantAll())
	c.HandlerWait = time.Second
	err := handlerproxy.Run(within(t), c)
	require.ErrorContains(t, err, "the handler is not up after 1s: handlerServerInfo")
	require.ErrorContains(t, err, "allowed: a handler of kind map that listens there")
	require.NoFileExists(t, c.ServerInfo, "the platform is told nothing")

	require.NoError(t, info.Write(about("unary-map"), info.WithServerInfoFilePath(c.HandlerServerInfo)))
	err = handlerproxy.Run(within(t), c)
	require.ErrorContains(t, err, "handlerSocket", "it has written its file and does not listen")

	require.NoError(t, os.WriteFile(c.HandlerServerInfo, []byte(`{"protocol":"uds"`), 0o600))
	require.ErrorContains(t, handlerproxy.Run(within(t), c), "is not complete")
}

func TestAHandlerThatTheProxyCannotStandBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(about *info.ServerInfo)
		want   string
	}{
		"tcp": {func(a *info.ServerInfo) { a.Protocol = info.TCP }, `protocol in`},
		"old": {
			func(a *info.ServerInfo) { a.MinimumNumaflowVersion = "1.3.1-z" },
			`is "1.3.1-z", allowed: 1.4 or later; the handler's SDK (cobol 9.9) speaks an older protocol`,
		},
		"no version": {func(a *info.ServerInfo) { a.MinimumNumaflowVersion = "latest" }, `is "latest"`},
		"other mode": {func(a *info.ServerInfo) { a.Metadata[info.MapModeKey] = "batch-map" }, `MAP_MODE in`},
		"not a map":  {func(a *info.ServerInfo) { a.Metadata = nil }, `is "", allowed: unary-map, for the proxy's kind is map`},
	} {
		t.Run(name, func(t *testing.T) {
			c := configured(t, handlerproxy.Map, grantAll())
			says := about("unary-map")
			tc.change(says)
			(&script{}).listen(t, c, says)
			require.ErrorContains(t, handlerproxy.Run(within(t), c), tc.want)
		})
	}
}

func TestASocketThatSomebodyElseServes(t *testing.T) {
	c := configured(t, handlerproxy.Map, grantAll())
	var lc net.ListenConfig
	lis, err := lc.Listen(t.Context(), "unix", c.Socket)
	require.NoError(t, err)
	defer func() { _ = lis.Close() }()
	require.ErrorContains(t, handlerproxy.Run(within(t), c), "another process listens on this socket")
}

func TestWhatAnEarlierRunHasLeftIsTakenAway(t *testing.T) {
	c := configured(t, handlerproxy.Map, grantAll())
	require.NoError(t, info.Write(leftBy(c), info.WithServerInfoFilePath(c.ServerInfo)))
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, handlerproxy.Run(ctx, c))
	require.NoFileExists(t, c.ServerInfo, "until there is a handler")
	require.NoFileExists(t, c.Socket)
}
