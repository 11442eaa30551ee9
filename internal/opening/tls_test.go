package opening

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

// serverName is what the server's certificate is for. The tests connect by address,
// so that it takes the parameter serverName.
const serverName = "store.example"

// serverConfig asks for a certificate that clients signed.
func serverConfig(t *testing.T, servers, clients *testenv.Authority) *tls.Config {
	t.Helper()
	conf := servers.Server(t, serverName)
	conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, clients.Pool()
	return conf
}

// unwrap listens for TLS connections and passes on what they say to addr.
func unwrap(t *testing.T, conf *tls.Config, addr string) string {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
		from.Close()
	}
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("tcp", addr)
			if err != nil {
				outer.Close()
				continue
			}
			go pass(inner, outer)
			go pass(outer, inner)
		}
	}()
	return listener.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	servers, clients := testenv.NewAuthority(t), testenv.NewAuthority(t)
	cert, key := clients.Issue(t, "client")
	strange, strangeKey := servers.Issue(t, "client")
	conf := serverConfig(t, servers, clients)
	redisAddr := unwrap(t, conf, testenv.Redis(t).Addr())
	natsURL := testenv.NATS(t, func(o *server.Options) { o.TLSConfig, o.TLS, o.TLSTimeout = conf, true, 5 }).URL()
	natsAddr := strings.TrimPrefix(natsURL, "nats://")

	files := func(ca, cert, key string) func(*Config) {
		return func(c *Config) {
			c.StoreCAFile = writeFile(t, "ca.pem", ca)
			if cert != "" {
				c.StoreCertFile, c.StoreKeyFile = writeFile(t, "cert.pem", cert), writeFile(t, "key.pem", key)
			}
		}
	}
	for _, store := range []string{"rediss://" + redisAddr, "tls://" + natsAddr, "nats://" + natsAddr} {
		t.Run(schemeOf(store), func(t *testing.T) {
			requireLogins(t, store+"?serverName="+serverName, []login{
				{name: "right", set: files(servers.PEM, cert, key)},
				{name: "unknown authority", set: files(clients.PEM, cert, key), fails: "certificate signed by unknown authority"},
				// What the server says of these two may be lost with the connection.
				{name: "without a certificate", set: files(servers.PEM, "", ""), fails: "store"},
				{name: "a stranger's certificate", set: files(servers.PEM, strange, strangeKey), fails: "store"},
			})
			requireLogins(t, store, []login{
				{name: "without the server's name", set: files(servers.PEM, cert, key), fails: "doesn't contain any IP SANs"},
			})
		})
	}

	for name, set := range map[string]func(*server.Options){
		"first": func(o *server.Options) { o.TLSHandshakeFirst = true },
		"auto": func(o *server.Options) {
			o.TLSHandshakeFirst, o.TLSHandshakeFirstFallback = true, server.DEFAULT_TLS_HANDSHAKE_FIRST_FALLBACK_DELAY
		},
		"for a delay": func(o *server.Options) { o.TLSHandshakeFirst, o.TLSHandshakeFirstFallback = true, 200*time.Millisecond },
	} {
		t.Run("handshake "+name, func(t *testing.T) {
			addr := strings.TrimPrefix(testenv.NATS(t, func(o *server.Options) { o.TLSConfig, o.TLS, o.TLSTimeout = conf, true, 5; set(o) }).URL(), "nats://")
			for _, scheme := range []string{"nats://", "tls://"} {
				logins := []login{{name: scheme + " with handshakeFirst", set: func(c *Config) { c.Store += "&handshakeFirst=true" }}}
				if name != "first" {
					logins = append(logins, login{name: scheme + " without", set: func(*Config) {}})
				}
				for i := range logins {
					set := logins[i].set
					logins[i].set = func(c *Config) { files(servers.PEM, cert, key)(c); set(c) }
				}
				requireLogins(t, scheme+addr+"?serverName="+serverName, logins)
			}
		})
	}

	t.Run("a server without TLS", func(t *testing.T) {
		plain := strings.TrimPrefix(testenv.NATS(t).URL(), "nats://")
		requireLogins(t, "tls://"+plain, []login{{name: "tls", set: func(*Config) {}, fails: "secure connection not available"}})
	})
}
