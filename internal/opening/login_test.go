package opening

import (
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A login is one way to log in to a server, right or wrong.
type login struct {
	name  string
	set   func(*Config)
	fails string // a pattern of what the error says; empty when it is right
}

// unauthorized is how the client of NATS tells of a refused login: in upper or lower case, depending on when the refusal arrives.
const unauthorized = "(?i)authorization violation"

// requireLogins opens a Throttle with each login. No error and no line of the log shows the canary, which every secret holds, the wrong ones
// too. TestStoreErrorsNameTheRemedy has more wrong ones.
func requireLogins(t *testing.T, store string, logins []login) {
	t.Helper()
	for _, l := range logins {
		t.Run(l.name, func(t *testing.T) {
			var logs testkit.Book
			c := short(store, "i")
			c.Logger = logs.Logger()
			l.set(&c)
			th, err := Open(t.Context(), c)
			if l.fails == "" {
				require.NoError(t, err)
				require.NoError(t, th.Close())
				require.NotContains(t, logs.String(), canary)
				return
			}
			require.Error(t, err)
			require.Regexp(t, l.fails, err.Error())
			require.NotContains(t, err.Error()+logs.String(), canary)
		})
	}
}

func TestRedisLogin(t *testing.T) {
	t.Parallel()
	addr := testenv.Redis(t, servers.WithPassword(canary), servers.WithRedisConfig("user app on >"+canary+"2 ~* +@all")).Addr()
	at := func(user string) func(*Config) { return func(c *Config) { c.Store = "redis://" + user + "@" + addr } }
	requireLogins(t, "redis://"+addr, []login{
		{name: "in the URL", set: at(":" + canary)},
		{name: "user in the URL", set: at("app:" + canary + "2")},
		{name: "password", set: func(c *Config) { c.StorePassword = NewSecret(canary) }},
		{name: "user", set: func(c *Config) { c.StoreUsername, c.StorePassword = "app", NewSecret(canary+"2") }},
		{name: "file", set: func(c *Config) { c.StorePasswordFile = writeFile(t, "password", canary+"\r\n") }},
		{name: "unknown user", set: at("nobody:" + canary), fails: "WRONGPASS"},
	})
}

func TestRedisSentinelLogin(t *testing.T) {
	t.Parallel()
	s := testenv.RedisSentinel(t, 1, servers.WithPassword(canary))
	requireLogins(t, "redis+sentinel://"+s.Addrs()[0]+"/"+s.MasterName(), []login{
		{name: "password", set: func(c *Config) { c.StorePassword = NewSecret(canary) }},
		{name: "wrong password", set: func(c *Config) { c.StorePassword = NewSecret("wrong-" + canary) }, fails: "WRONGPASS"},
	})

	// The sentinel has a password of its own from here on.
	sentinel := redis.NewClient(&redis.Options{Addr: s.Addrs()[0]})
	defer sentinel.Close()
	require.NoError(t, sentinel.Do(t.Context(), "ACL", "SETUSER", "default", "resetpass", ">"+canary+"3").Err())
	requireLogins(t, "redis+sentinel://:"+canary+"@"+s.Addrs()[0]+"/"+s.MasterName(), []login{
		{name: "sentinel password", set: func(c *Config) { c.StoreSentinelPassword = NewSecret(canary + "3") }},
		{name: "sentinel file", set: func(c *Config) { c.StoreSentinelPasswordFile = writeFile(t, "password", canary+"3") }},
		{name: "wrong sentinel password", set: func(c *Config) { c.StoreSentinelPassword = NewSecret("wrong-" + canary) }, fails: "WRONGPASS"},
		{name: "no sentinel password", set: func(*Config) {}, fails: "NOAUTH"},
	})
}

func TestRedisPasswordFileIsReadAnew(t *testing.T) {
	t.Parallel()
	addr := testenv.Redis(t, servers.WithPassword(canary)).Addr()
	path := writeFile(t, "password", "wrong-"+canary)
	c := short("redis://"+addr, "i")
	c.FailFast, c.StorePasswordFile = false, path
	var logs testkit.Book
	c.Logger = logs.Logger()
	th := mustOpen(t, c)
	eventually(t, func() bool { return strings.Contains(logs.String(), "WRONGPASS") }, "the refusal in the log")

	require.NoError(t, os.WriteFile(path, []byte(canary+"\n"), 0o600))
	eventually(t, grants(th), "a token")
	require.NotContains(t, logs.String(), canary)
}

func TestNATSLogin(t *testing.T) {
	t.Parallel()
	t.Run("user", func(t *testing.T) {
		url := testenv.NATS(t, func(o *server.Options) { o.Username, o.Password = "app", canary }).URL()
		host := strings.TrimPrefix(url, "nats://")
		requireLogins(t, url, []login{
			{name: "in the URL", set: func(c *Config) { c.Store = "nats://app:" + canary + "@" + host }},
			{name: "password", set: func(c *Config) { c.StoreUsername, c.StorePassword = "app", NewSecret(canary) }},
			{name: "file", set: func(c *Config) { c.StoreUsername, c.StorePasswordFile = "app", writeFile(t, "password", canary+"\n") }},
			{name: "token", set: func(c *Config) { c.StoreToken = NewSecret(canary) }, fails: unauthorized},
		})
	})
	t.Run("token", func(t *testing.T) {
		url := testenv.NATS(t, func(o *server.Options) { o.Authorization = canary }).URL()
		requireLogins(t, url, []login{
			{name: "in the URL", set: func(c *Config) { c.Store = strings.Replace(url, "nats://", "nats://"+canary+"@", 1) }},
			{name: "token", set: func(c *Config) { c.StoreToken = NewSecret(canary) }},
			{name: "file", set: func(c *Config) { c.StoreTokenFile = writeFile(t, "token", canary+"\n") }},
		})
	})
	t.Run("nkey", func(t *testing.T) {
		seed, public := newKey(t, nkeys.CreateUser)
		other, _ := newKey(t, nkeys.CreateUser)
		url := testenv.NATS(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} }).URL()
		requireLogins(t, url, []login{
			{name: "right", set: func(c *Config) { c.StoreNkeyFile = writeFile(t, "seed", string(seed)) }},
			{name: "wrong", set: func(c *Config) { c.StoreNkeyFile = writeFile(t, "seed", string(other)) }, fails: unauthorized},
		})
	})
	t.Run("creds", func(t *testing.T) {
		configure, creds := newAccount(t)
		_, others := newAccount(t)
		url := testenv.NATS(t, configure).URL()
		requireLogins(t, url, []login{
			{name: "right", set: func(c *Config) { c.StoreCredsFile = writeFile(t, "creds", creds) }},
			{name: "wrong", set: func(c *Config) { c.StoreCredsFile = writeFile(t, "creds", others) }, fails: unauthorized},
		})
	})
}

// newKey returns the seed and the public key of a new pair.
func newKey(t *testing.T, create func() (nkeys.KeyPair, error)) (seed []byte, public string) {
	t.Helper()
	pair, err := create()
	require.NoError(t, err)
	seed, err = pair.Seed()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	return seed, public
}

// newAccount returns what makes a server know a new account with JetStream, and
// the credentials of a user in it.
func newAccount(t *testing.T) (configure servers.NATSOption, creds string) {
	t.Helper()
	operator, err := nkeys.CreateOperator()
	require.NoError(t, err)
	operatorKey, err := operator.PublicKey()
	require.NoError(t, err)

	resolver := &server.MemAccResolver{}
	add := func(disk int64) (account nkeys.KeyPair, public string) {
		account, err := nkeys.CreateAccount()
		require.NoError(t, err)
		public, err = account.PublicKey()
		require.NoError(t, err)
		claims := jwt.NewAccountClaims(public)
		claims.Limits.DiskStorage, claims.Limits.MemoryStorage = disk, disk
		text, err := claims.Encode(operator)
		require.NoError(t, err)
		require.NoError(t, resolver.Store(public, text))
		return account, public
	}
	_, system := add(0)
	account, _ := add(-1)

	seed, user := newKey(t, nkeys.CreateUser)
	userJWT, err := jwt.NewUserClaims(user).Encode(account)
	require.NoError(t, err)
	text, err := jwt.FormatUserConfig(userJWT, seed)
	require.NoError(t, err)
	return func(o *server.Options) {
		o.TrustedKeys, o.AccountResolver, o.SystemAccount = []string{operatorKey}, resolver, system
	}, string(text)
}

// A doorkeeper lets in who has the password, and counts whom it does not.
type doorkeeper struct {
	password string
	refused  atomic.Int64
}

// Check implements server.Authentication.
func (d *doorkeeper) Check(client server.ClientAuthentication) bool {
	if client.GetOpts().Password == d.password {
		return true
	}
	d.refused.Add(1)
	return false
}

func TestNATSPasswordFileIsReadAnew(t *testing.T) {
	t.Parallel()
	keeper := &doorkeeper{password: canary}
	url := testenv.NATS(t, func(o *server.Options) { o.CustomClientAuthentication = keeper }).URL()
	path := writeFile(t, "password", "wrong-"+canary)
	c := short(url, "i")
	c.FailFast, c.StoreUsername, c.StorePasswordFile = false, "app", path
	var logs testkit.Book
	c.Logger = logs.Logger()
	th := mustOpen(t, c)
	// A client left to itself gives up after being refused twice.
	eventually(t, func() bool { return keeper.refused.Load() >= 5 }, "five refusals")
	reported := regexp.MustCompile(unauthorized)
	eventually(t, func() bool { return reported.MatchString(logs.String()) }, "the refusal in the log")

	require.NoError(t, os.WriteFile(path, []byte(canary), 0o600))
	eventually(t, grants(th), "a token")
	require.Contains(t, []throttle.Reason{"", throttle.ReasonLimit}, reason(th), "nothing but the limit holds it back")
	require.NotContains(t, logs.String(), canary)
}
