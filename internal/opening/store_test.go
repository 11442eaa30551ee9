package opening

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestOpenStoreRefuses(t *testing.T) {
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{}, "store is memory://, which nothing outside of a process can see, allowed: redis://"},
		{Config{Store: "static://?replicas=2"}, "store is static://"},
		{Config{Store: "ftp://h"}, `store has the scheme "ftp"`},
		{Config{Store: "nats://h", StoreTokenFile: "/nowhere/token"}, `storeTokenFile is "/nowhere/token", which cannot be used`},
		{Config{Store: "redis://h", StoreToken: NewSecret(canary)}, "storeToken is set, but the store is redis"},
	} {
		_, err := Store(t.Context(), c.c)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), canary)
	}
}

func TestLoadFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("max: 5\nstore: redis://file\n"), 0o600))
	environ := []string{"NUMATHROTTLE_CONFIG=" + file, "NUMATHROTTLE_POOL=environment"}
	c, err := LoadFlags(environ, map[string]string{"store": "redis://u:" + canary + "@flag"})
	require.NoError(t, err)
	require.Equal(t, []any{5, "redis://flag", "environment", "u"}, []any{c.Limit.Max, c.Store, c.Pool, c.StoreUsername})
	require.Equal(t, canary, c.StorePassword.Reveal())
	c, err = LoadFlags(environ, map[string]string{"pool": "flag", "max": "x"})
	require.ErrorContains(t, err, `max is "x" (--max)`)
	require.Equal(t, []any{5, "flag"}, []any{c.Limit.Max, c.Pool}, "what could be read")
}

func TestEffective(t *testing.T) {
	c := Config{Limit: throttle.Limit{Max: 600, Per: time.Minute}, Pool: "p", ID: "i"}.Effective()
	require.Equal(t, Config{
		Limit: throttle.Limit{Max: 600, Per: time.Minute, Burst: 1}, Store: "memory://", Pool: "p", ID: "i",
		Lease: 10 * time.Second, Policy: PolicyFair, OnStoreLoss: StoreLossDegrade, StateDir: "none",
	}, c)
	require.Equal(t, c, c.Effective())
	c.Limit.Strict, c.OnStoreLoss = true, ""
	require.Equal(t, StoreLossStop, c.Effective().OnStoreLoss)
	c.Limit.Hard, c.Limit.Strict = true, false
	require.Equal(t, StoreLossStop, c.Effective().OnStoreLoss)
	c.Limit.Max = -1
	require.Equal(t, -1, c.Effective().Limit.Max)
	require.Error(t, c.Effective().Validate(), "what is wrong stays wrong")
}
