package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

// Each value stands with where it came from.
func TestCheckShowsWhereValuesComeFrom(t *testing.T) {
	for _, name := range []string{"NUMAFLOW_NAMESPACE", "NUMAFLOW_MONO_VERTEX_NAME", "NUMAFLOW_POD"} {
		t.Setenv(name, "")
	}
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("# c\nmax: 600\nper: 2s\nlogLevel: debug\n"), 0o600))
	out, err := newTerminal(nil, "NUMATHROTTLE_PER=1m", "NUMATHROTTLE_STORE=nats://"+canary+"@h").run(t, "check", "--config", file, "--pool=p")
	require.NoError(t, err)
	for _, line := range []string{
		`max: "600"  # ` + file + ":2", `per: "1m"  # NUMATHROTTLE_PER`, `burst: "1"  # default`, `pool: "p"  # --pool`,
		`store: "nats://h"  # NUMATHROTTLE_STORE`, `logLevel: "debug"  # ` + file + ":4", "storeToken: (set, not shown)  # NUMATHROTTLE_STORE",
	} {
		require.Contains(t, out, line+"\n")
	}
	require.Regexp(t, `(?m)^id: ".+"  # the host name$`, out)
	out, err = newTerminal(nil, "NUMATHROTTLE_MAX=5", "NUMATHROTTLE_BURST=9", "NUMATHROTTLE_HARD=true").run(t, "check")
	require.EqualError(t, err, "numathrottle: limit: burst is 9, allowed: at most max with hard, which is 5 "+
		"(NUMATHROTTLE_BURST; max: NUMATHROTTLE_MAX; hard: NUMATHROTTLE_HARD)")
	require.Empty(t, out)
}

// With --connect the store is asked, and what keeps it from answering is said with what to do.
// The commands of operators need no limit beside the quotas of the shell: it is with the pool. What a pod would refuse, check still does.
func TestQuotasWithoutALimit(t *testing.T) {
	store := memstore.New()
	join(store, "p", "a", "1 0 600 60000000 0 0", driver.Whole, 1).sync(t)
	set := func(quotas string) *terminal {
		return newTerminal(store, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_QUOTAS="+quotas)
	}
	for _, args := range [][]string{{"why"}, {"top"}, {"status"}, {"pause", "set"}, {"quota", "list"}} {
		_, err := set("{tags: {acme: {total: 5}}}").run(t, args...)
		require.NoError(t, err, args)
		_, err = set("{tags: {acme: {reserved: -1}}}").run(t, args...)
		require.ErrorContains(t, err, "quotas.tags.acme.reserved is -1", args)
	}
	_, err := set("{tags: {acme: {total: 5}}}").run(t, "check")
	require.ErrorContains(t, err, "quotas are set, but there is no limit")
	require.Equal(t, ExitUsage, ExitCode(err))
}

func TestCheckConnects(t *testing.T) {
	locked := testenv.Redis(t, servers.WithPassword(canary)).Addr()
	nats := testenv.NATS(t).URL()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := listener.Addr().String()
	require.NoError(t, listener.Close())
	check := func(environ ...string) (string, error) {
		return newTerminal(nil, append(environ, "NUMATHROTTLE_POOL=p", "NUMATHROTTLE_MAX=5")...).run(t, "check", "--connect")
	}
	for _, environ := range [][]string{{"NUMATHROTTLE_STORE=redis://" + locked, "NUMATHROTTLE_STORE_PASSWORD=" + canary}, {"NUMATHROTTLE_STORE=" + nats}} {
		out, err := check(environ...)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(out, "# The store answers.\n"), out)
	}
	for store, want := range map[string]string{
		"redis://" + locked:                       "the store wants a password, and none is set: set NUMATHROTTLE_STORE_PASSWORD",
		"redis://" + closed:                       "nothing listens at " + closed,
		strings.Replace(nats, "nats", "redis", 1): "a NATS server listens at ",
		"redis://:wrong-" + canary + "@" + locked: "the store rejects the password (NUMATHROTTLE_STORE)",
	} {
		_, err := check("NUMATHROTTLE_STORE=" + store)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), canary)
		require.Equal(t, ExitStore, ExitCode(err))
	}
	_, err = newTerminal(nil).run(t, "check", "--connect")
	require.ErrorContains(t, err, "which nothing outside of a process can see")
	require.Equal(t, ExitUsage, ExitCode(err))
}

func TestFlagsGetSuggestions(t *testing.T) {
	for args, want := range map[string]string{
		"check --conect":          "--conect is no flag; did you mean --connect?",
		"check --conf x":          "--conf is no flag; did you mean --config?",
		"status --pol x":          "--pol is no flag; did you mean --pool?",
		"proxy http --upstraem x": "--upstraem is no flag; did you mean --upstream?",
		"check --banana":          "--banana is no flag, allowed",
	} {
		_, err := newTerminal(nil).run(t, strings.Fields(args)...)
		require.ErrorContains(t, err, want)
		require.Equal(t, ExitUsage, ExitCode(err))
	}
}

// A limit on calls in flight alone has pools below the proxy's, too.
func TestAProxyOnASharedStoreNamesItsPool(t *testing.T) {
	for _, name := range []string{"NUMAFLOW_NAMESPACE", "NUMAFLOW_MONO_VERTEX_NAME", "NUMAFLOW_PIPELINE_NAME", "NUMAFLOW_VERTEX_NAME"} {
		t.Setenv(name, "")
	}
	for _, limit := range []string{"--max=5", "--in-flight=5"} {
		args := []string{"proxy", "http", "--check", "--upstream=http://h", "--store=redis://h", limit}
		_, err := newTerminal(nil).run(t, args...)
		require.EqualError(t, err, "numathrottle: pool is not set: every service that uses this store and sets none would share one limit (store: --store), "+
			"allowed: a name of up to 256 bytes, the same in all pods that share the limit (NUMATHROTTLE_POOL)")
		_, err = newTerminal(nil).run(t, append(args, "--pool=p")...)
		require.NoError(t, err)
	}
}
