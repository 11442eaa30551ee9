package testenv_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// parentEnv makes this test binary start a server in the directory that it names, print the server's address, and
// hang, instead of running tests.
const parentEnv = "TESTENV_PARENT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		hangWithServer(dir)
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("-short: every test here starts servers")
		return
	}
	m.Run()
}

func hangWithServer(dir string) {
	server, err := servers.StartRedis(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stdout, "error:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, server.Addr())
	select {}
}

// skipIfMissing skips a test that calls package servers itself, under the same rule as testenv.
func skipIfMissing(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, servers.ErrNotInstalled) && os.Getenv(testenv.RequireStores) != "1" {
		t.Skip(err)
	}
}

func TestServerEndsWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	testenv.Redis(t) // skips or fails where there is no redis-server

	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"="+t.TempDir())
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	addr, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	addr = strings.TrimSpace(addr)
	client := redisClient(t, addr, "")
	require.NoError(t, client.Ping(t.Context()).Err(), "the parent printed %q", addr)

	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() != nil }, waitFor, every,
		"the server ends when its parent is killed")
}
