package opening

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/natsstore"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/redisstore"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Whatever the environment and the file hold, Load tells each fault in one line,
// or returns what the limiter, the pool and the store's client take, and shows no
// secret of it.
func FuzzLoad(f *testing.F) {
	f.Add("MAX=100\nPER=1m\nBURST=5\nSTORE=nats://a,b:1?bucket=b&replicas=3\nPOOL=p\nID=i\nLEASE=3s\nPOLICY=even\nON_STORE_LOSS=stop", []byte(nil))
	f.Add("STORE_SENTINEL_PASSWORD=x\nSTORE=rediss+sentinel://a/m?serverName=s&db=2&prefix=p", []byte("max: 1\nstoreUsername: u\nfailFast: true\n"))
	f.Add("STORE=redis://u:p%40@h:1/2?prefix=x", []byte("max: 1000000000\nper: 1ms\n"))
	f.Add("STORE=tls://token@h\nID=a", []byte("store: memory://x\nstoreCertFile: /c\nstoreKeyFile: /k\nmin: 3\n"))
	f.Add("STORE=static://?replicas=4\nMAXX=1", []byte("max: [1]\n"))
	f.Add("ID=a", []byte("max: 9\nmin: 1\nmodes: {goBackN: {coolDownPeriod: 5s}}\nquotas: {tags: {a: {total: none}}, match: [{tag: x}]}\n"))
	f.Add("MODES={a: {? b : c}}", []byte("modes: &x {goBackN: {b: *x}}\nquotas: &q {tags: {<<: *q, a: *q}}\n"))
	f.Add("MODES=scheduled\nQUOTAS=%YAML", []byte("modes: [&m {a: *m}]\nquotas: [*q]\n"))
	path := filepath.Join(f.TempDir(), "config.yaml")
	client := redis.NewClient(&redis.Options{})
	f.Cleanup(func() { client.Close() })
	f.Fuzz(func(t *testing.T, variables string, file []byte) {
		if strings.Contains(variables, "\x00") {
			return // no variable holds it
		}
		var environ []string
		for line := range strings.SplitSeq(variables, "\n") {
			if !strings.HasPrefix(line, "CONFIG=") {
				environ = append(environ, config.Prefix+line)
			}
		}
		if file != nil {
			require.NoError(t, os.WriteFile(path, file, 0o600))
			environ = append(environ, config.FileVariable+"="+path)
		}
		var c Config
		faults := config.Load(fields, append(environ, "NUMATHROTTLE_STORE_PASSWORD="+canary), &c)
		store, wrong := c.check()
		faults = append(faults, wrong...)
		for _, fault := range faults {
			require.True(t, strings.HasPrefix(fault.Error(), "numathrottle: "))
			require.NotContains(t, fault.Error(), "\n")
			require.NotContains(t, fault.Error(), canary)
		}
		require.NotContains(t, c.String(), canary)
		if len(faults) > 0 {
			return
		}

		c.Pool = cmp.Or(c.Pool, "p") // which has to have a name on a store that services share
		require.NoError(t, c.Validate())
		require.NotContains(t, c.Store+c.withoutUser().Store, canary)
		require.Equal(t, canary, c.StorePassword.Reveal())
		moved := c.withoutUser()
		require.NoError(t, moved.Validate())
		require.NotContains(t, moved.Store, "@")
		limiter, err := throttle.New(c.Limit)
		require.NoError(t, err)
		require.NoError(t, limiter.Close())
		req := driver.Request{
			Pool: cmp.Or(c.Pool, "p"), ID: cmp.Or(c.ID, "i"), Incarnation: "1", Seq: 1, Lease: max(c.Lease, driver.MinLease),
			Report: driver.Report{},
		}
		require.NoError(t, req.Validate(), "a pool and an ID that every store takes")
		switch {
		case store.Kind == config.NATS && store.Bucket != "":
			_, err = natsstore.New(&nats.Conn{}, natsstore.WithBucket(store.Bucket))
			require.NoError(t, err)
		case store.Kind.IsRedis() && store.Prefix != "":
			_, err = redisstore.New(client, redisstore.WithPrefix(store.Prefix)).Sync(t.Context(), driver.Request{})
			require.ErrorContains(t, err, "Pool is", "the prefix is taken")
		}
	})
}

// Files of any content in the place of credentials are used, or told as a fault
// that does not show what is in them.
func FuzzCredentialFiles(f *testing.F) {
	seed := "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
	for _, content := range []string{
		"", "\n", seed, "-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n",
		"-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJKV1QifQ.e30.x\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + seed +
			"\n------END USER NKEY SEED------\n",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
		"-----BEGIN EC PRIVATE KEY-----\nMIIB\n-----END EC PRIVATE KEY-----\n",
	} {
		f.Add([]byte(content), []byte("\n"))
	}
	path := filepath.Join(f.TempDir(), "secret")
	f.Fuzz(func(t *testing.T, before, behind []byte) {
		content := string(before) + "\n" + canary + string(behind)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		for key, c := range map[string]Config{
			"storePasswordFile":         {Store: "redis://h", StorePasswordFile: path},
			"storeSentinelPasswordFile": {Store: "redis+sentinel://h/m", StoreSentinelPasswordFile: path},
			"storeTokenFile":            {Store: "nats://h", StoreTokenFile: path},
			"storeCredsFile":            {Store: "nats://h", StoreCredsFile: path},
			"storeNkeyFile":             {Store: "nats://h", StoreNkeyFile: path},
			"storeCAFile":               {Store: "tls://h", StoreCAFile: path},
			"storeCertFile":             {Store: "rediss://h", StoreCertFile: path, StoreKeyFile: path},
		} {
			store, faults := c.check()
			require.Empty(t, faults)
			creds, faults := c.loadCredentials(&store)
			for _, fault := range faults {
				require.Contains(t, fault.Error(), key)
				require.NotContains(t, fault.Error(), canary)
			}
			if len(faults) > 0 || !strings.HasSuffix(key, "PasswordFile") {
				continue
			}
			want := strings.TrimRight(content, " \t\r\n")
			password := creds.SentinelPassword.Text
			if key == "storePasswordFile" {
				_, password = creds.Login()
			}
			require.Equal(t, want, password)
		}
	})
}
