package listen_test

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/listen"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:80":                      "127.0.0.1:80",
		"[::1]:0":                           "[::1]:0",
		":8080":                             ":8080",
		"localhost:1":                       "localhost:1",
		"unix:/run/x.sock":                  "unix:/run/x.sock",
		"unix:///run//x.sock":               "unix:/run/x.sock",
		"unix:/a , 127.0.0.1:7070":          "unix:/a 127.0.0.1:7070",
		"":                                  "",
		"unix:rel.sock":                     "",
		"unix:./rel.sock":                   "",
		"unix:@abstract":                    "",
		"unix://rel.sock":                   "",
		"unix://host/x.sock":                "",
		"unix://":                           "",
		"unix:/a\x00b":                      "",
		"unix:/" + strings.Repeat("a", 106): "unix:/" + strings.Repeat("a", 106),
		"unix:/" + strings.Repeat("a", 107): "",
		"unix:///" + strings.Repeat("/", 99) + "a/../" + strings.Repeat("a", 106): "unix:/" + strings.Repeat("a", 106),
		"unix:":               "",
		"unix:/":              "",
		"127.0.0.1":           "",
		"127.0.0.1:x":         "",
		"127.0.0.1:080":       "",
		"127.0.0.1:65536":     "",
		"http://127.0.0.1:80": "",
		"a b:80":              "",
		"127.0.0.1:80,":       "",
	} {
		addrs, ok := listen.Parse(text)
		require.Equal(t, want != "", ok, text)
		var got []string
		for _, a := range addrs {
			got = append(got, a.String())
		}
		require.Equal(t, want, strings.Join(got, " "), text)
	}
}

func TestWhoNeedsAToken(t *testing.T) {
	for text, local := range map[string]bool{
		"127.0.0.1:1": true, "127.8.0.1:1": true, "[::1]:1": true, "LOCALHOST:1": true, "unix:/a": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "localhost.example.com:1": false,
	} {
		addrs, ok := listen.Parse(text)
		require.True(t, ok, text)
		_, needs := listen.NeedsToken(addrs)
		require.Equal(t, !local, needs, text)
	}
}

func TestAnOpenAddressNeedsAToken(t *testing.T) {
	addrs, _ := listen.Parse("127.0.0.1:0,0.0.0.0:0")
	_, err := listen.Open(t.Context(), addrs, 1, "", slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "listen: 0.0.0.0:0 can be reached from elsewhere, allowed without a token: unix sockets and loopback addresses")

	var log strings.Builder
	_, err = listen.Open(t.Context(), addrs, 1, "canary", slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "listen: 0.0.0.0:0 can be reached from elsewhere, and the token has 6 bytes, allowed: at least 16")
	set, err := listen.Open(t.Context(), addrs, 1, "canary-canary-16", slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	require.Contains(t, log.String(), "can be reached from elsewhere")
	require.NotContains(t, log.String(), "canary")
	require.Len(t, set.Addrs(), 2)
	require.NoError(t, set.Close())
	require.NoError(t, set.Close())
}

func TestSockets(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	addrs := []listen.Addr{{Network: "unix", Address: path}}
	open := func() (*listen.Set, error) {
		return listen.Open(t.Context(), addrs, 1, "", slog.New(slog.DiscardHandler))
	}
	set, err := open()
	require.NoError(t, err)
	require.Equal(t, []string{"unix:" + path}, set.Addrs())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o660), info.Mode().Perm())

	_, err = open()
	require.ErrorContains(t, err, "another process listens on this socket")
	require.NoError(t, set.Close())

	stale, err := net.Listen("unix", path)
	require.NoError(t, err)
	unix, ok := stale.(*net.UnixListener)
	require.True(t, ok)
	unix.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	set, err = open()
	require.NoError(t, err, "what a killed process left behind is replaced")
	require.NoError(t, set.Close())

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err = open()
	require.ErrorContains(t, err, "a file is there that is no socket")
}

func TestToken(t *testing.T) {
	token := listen.NewToken("canary")
	basic := func(pair string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) }
	for value, want := range map[string]bool{
		"Bearer canary": true, "bearer  canary": true, basic("user:canary"): true, basic(":canary"): true,
		"canary": false, "Bearer": false, "Bearer canary2": false, basic("canary:user"): false, "Basic !": false, "Digest canary": false, "": false,
	} {
		require.Equal(t, want, token.Matches([]string{value}), value)
	}
	require.False(t, token.Matches(nil))
	require.True(t, listen.NewToken("").Matches(nil), "without a token all may call")
	require.NotContains(t, fmt.Sprintf("%v %+v", token, token), "canary")
}
