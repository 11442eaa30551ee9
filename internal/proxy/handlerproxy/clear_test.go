package handlerproxy_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mappb "github.com/numaproj/numaflow-go/pkg/apis/proto/map/v1"
	"github.com/numaproj/numaflow-go/pkg/info"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A file that somebody has named by mistake is neither deleted nor written over.
func TestFilesOfOthersStay(t *testing.T) {
	texts := map[string]string{
		"long": strings.Repeat("a document of another kind ", 5000), "short": "key: value\n", "empty": "",
		"JSON": `{"protocol":"uds"}`, "JSON with the end": `{"name":"x"}` + info.END, "end alone": info.END,
		"another handler's": `{"protocol":"uds","language":"java","metadata":{"MAP_MODE":"unary-map"}}` + info.END,
		"one over TCP":      `{"protocol":"tcp","x":1}` + info.END,
		"another proxy's":   `{"protocol":"uds","metadata":{"NUMATHROTTLE_PROXY":"/var/run/numaflow/fb-sink.sock"}}` + info.END,
	}
	for name, of := range map[string]func(c *handlerproxy.Config) (path string){
		"socket":     func(c *handlerproxy.Config) string { return c.Socket },
		"serverInfo": func(c *handlerproxy.Config) string { return c.ServerInfo },
	} {
		for kind, text := range texts {
			c := configured(t, handlerproxy.Map, throttletest.New())
			require.NoError(t, os.WriteFile(of(&c), []byte(text), 0o600))
			require.ErrorContains(t, handlerproxy.Run(t.Context(), c), name+" is", kind)
			left, err := os.ReadFile(of(&c))
			require.NoError(t, err, kind)
			require.Equal(t, text, string(left), kind)
		}
		c := configured(t, handlerproxy.Map, throttletest.New())
		require.NoError(t, os.Symlink("/etc/hostname", of(&c)))
		require.ErrorContains(t, handlerproxy.Run(t.Context(), c), name+" is")
		_, err := os.Lstat(of(&c))
		require.NoError(t, err, name)
	}
}

// leftBy is the server info that an earlier run of a proxy has left.
func leftBy(c handlerproxy.Config) *info.ServerInfo {
	says := about("unary-map")
	says.Metadata["NUMATHROTTLE_PROXY"] = c.Socket
	return says
}

// The proxy takes away what it has written itself, with fields and metadata that it does not know, and nothing that another handler puts
// there while it runs.
func TestTheProxyKnowsItsOwnFile(t *testing.T) {
	c := configured(t, handlerproxy.Map, grantAll())
	s := &script{}
	s.listen(t, c, about("unary-map"))
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text+info.END), 0o600)) }
	write(c.HandlerServerInfo, `{"protocol":"uds","extra":{"n":12345678901234567890},"metadata":{"MAP_MODE":"unary-map","own":"1"}}`)
	isReady := func() {
		_, err := mappb.NewMapClient(connect(t, c.Socket)).IsReady(within(t), &emptypb.Empty{}, grpc.WaitForReady(true))
		require.NoError(t, err)
	}
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- handlerproxy.Run(ctx, c) }()
		require.Eventually(t, func() bool {
			_, err := os.Stat(c.Socket)
			return err == nil
		}, 20*time.Second, time.Millisecond)
		isReady()
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	for range 2 { // the second one finds what the first has left
		run()()
		reported, err := os.ReadFile(c.ServerInfo)
		require.NoError(t, err)
		text, complete := strings.CutSuffix(string(reported), info.END)
		require.True(t, complete)
		require.JSONEq(t, `{"protocol":"uds","extra":{"n":12345678901234567890},
			"metadata":{"MAP_MODE":"unary-map","own":"1","NUMATHROTTLE_PROXY":"`+c.Socket+`"}}`, text)
		require.Contains(t, text, "12345678901234567890")
	}
	require.NoError(t, os.Remove(c.ServerInfo))
	stop := run()
	const others = `{"protocol":"uds","metadata":{"MAP_MODE":"unary-map"}}`
	write(c.ServerInfo, others)
	write(c.HandlerServerInfo, `{"protocol":"uds","version":"10","metadata":{"MAP_MODE":"unary-map"}}`)
	isReady() // the proxy looks for another version of the handler
	stop()
	reported, err := os.ReadFile(c.ServerInfo)
	require.NoError(t, err)
	require.Equal(t, others+info.END, string(reported))
}

// Where one file keeps the proxy from starting, the other one stays, too.
func TestNothingIsDeletedBeforeARefusal(t *testing.T) {
	c := configured(t, handlerproxy.Map, throttletest.New())
	require.NoError(t, info.Write(leftBy(c), info.WithServerInfoFilePath(c.ServerInfo)))
	require.NoError(t, os.WriteFile(c.Socket, []byte("no socket"), 0o600))
	require.ErrorContains(t, handlerproxy.Run(t.Context(), c), "socket is")
	require.FileExists(t, c.ServerInfo)
	require.FileExists(t, c.Socket)
}

// The handler's file, by another name, is not one of an earlier run.
func TestTheHandlersFileStays(t *testing.T) {
	c := configured(t, handlerproxy.Map, throttletest.New())
	require.NoError(t, info.Write(about("unary-map"), info.WithServerInfoFilePath(c.HandlerServerInfo)))
	dir, name := filepath.Split(c.HandlerServerInfo)
	require.NoError(t, os.Mkdir(dir+"sub", 0o700))
	require.NoError(t, os.Symlink(dir, dir+"link"))
	for _, path := range []string{dir + "sub/../" + name, dir + "link/" + name} {
		c.ServerInfo = path
		require.ErrorContains(t, handlerproxy.Run(t.Context(), c), "which is the")
		require.FileExists(t, c.HandlerServerInfo)
	}
}

// A socket for datagrams, such as a log's, refuses to be dialled, and is in use.
func TestASocketForDatagramsStays(t *testing.T) {
	c := configured(t, handlerproxy.Map, throttletest.New())
	used, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: c.Socket, Net: "unixgram"})
	require.NoError(t, err)
	defer used.Close()
	require.ErrorContains(t, handlerproxy.Run(t.Context(), c), "another process may listen")
	_, err = os.Lstat(c.Socket)
	require.NoError(t, err)
}
