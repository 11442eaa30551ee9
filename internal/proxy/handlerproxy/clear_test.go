package handlerproxy_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/numaproj/numaflow-go/pkg/info"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/proxy/handlerproxy"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle/throttletest"
)

// A file that somebody has named by mistake is neither deleted nor written over.
func TestFilesOfOthersStay(t *testing.T) {
	texts := map[string]string{
		"long": strings.Repeat("a document of another kind ", 5000), "short": "key: value\n", "empty": "",
		"JSON": `{"protocol":"uds"}`, "JSON with the end": `{"name":"x"}` + info.END, "end alone": info.END,
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

// Where one file keeps the proxy from starting, the other one stays, too.
func TestNothingIsDeletedBeforeARefusal(t *testing.T) {
	c := configured(t, handlerproxy.Map, throttletest.New())
	require.NoError(t, info.Write(about("unary-map"), info.WithServerInfoFilePath(c.ServerInfo)))
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
