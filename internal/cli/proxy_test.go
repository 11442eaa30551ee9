package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheSettingsOfAProxy(t *testing.T) {
	tm := newTerminal(nil, "NUMATHROTTLE_PROXY_KIND=map", "NUMATHROTTLE_PROXY_COST=bytes/1000", "NUMATHROTTLE_MAX=5",
		"NUMATHROTTLE_STORE_PASSWORD="+canary, "NUMATHROTTLE_ID=i")
	_, err := tm.run(t, "proxy", "handler", "--check", "--max", "20", "--per=1m", "--pool=p", "--store=redis://u:"+canary+"@h",
		"--on-denied=nack", "--max-wait=8s")
	require.ErrorContains(t, err, "storePassword")
	require.ErrorContains(t, err, "which all users of the machine would see")
	out, err := tm.run(t, "proxy", "handler", "--check", "--max", "20", "--per=1m", "--pool=p", "--store=redis://h", "--on-denied=nack", "--max-wait=8s")
	require.NoError(t, err)
	for _, line := range []string{
		`kind: "map"`, `cost: "bytes/1000"`, `onDenied: "nack"`, `maxWait: "8s"`, `max: "20"`, `per: "1m"`, `pool: "p"`, `store: "redis://h"`,
		"storePassword: (set, not shown)",
	} {
		require.Contains(t, out, line+"  # ")
	}
}

func TestAProxyWithWrongSettings(t *testing.T) {
	for want, args := range map[string][]string{
		"kind is not set, allowed: one of map, batchmap": {"--max=1"},
		`kind is "reduce"`:                       {"--kind=reduce"},
		`cost is "free"`:                         {"--kind=map", "--cost=free"},
		`max is "-1"`:                            {"--kind=map", "--max=-1"},
		"--maxx is no flag; did you mean --max?": {"--maxx=1"},
		"is no command or argument":              {"map"},
	} {
		_, err := newTerminal(nil).run(t, append([]string{"proxy", "handler"}, args...)...)
		require.ErrorContains(t, err, want)
	}
	_, err := newTerminal(nil, "NUMATHROTTLE_PROXY_KNID=map").run(t, "proxy", "handler")
	require.ErrorContains(t, err, "did you mean NUMATHROTTLE_PROXY_KIND?")
}

func TestAProxyWithoutAHandler(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	_, err := newTerminal(nil).run(t, "proxy", "handler", "--kind=sink", "--max=5", "--handler-wait=1s", "--state-dir=none",
		"--socket="+filepath.Join(dir, "p"), "--server-info="+filepath.Join(dir, "pi"),
		"--handler-socket="+filepath.Join(dir, "h"), "--handler-server-info="+filepath.Join(dir, "hi"))
	require.ErrorContains(t, err, "the handler is not up after 1s")
	require.Less(t, time.Since(began), 8*time.Second)
}
