package open

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
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

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue returns a certificate and its key, in PEM.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &pair.PublicKey, a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(pair)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// serverConfig asks for a certificate that clients signed.
func serverConfig(t *testing.T, servers, clients *authority) *tls.Config {
	t.Helper()
	cert, key := servers.issue(t, serverName)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	require.NoError(t, err)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients.pool(),
	}
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
	servers, clients := newAuthority(t), newAuthority(t)
	cert, key := clients.issue(t, "client")
	strange, strangeKey := servers.issue(t, "client")
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
				{name: "right", set: files(servers.pem(), cert, key)},
				{name: "unknown authority", set: files(clients.pem(), cert, key), fails: "certificate signed by unknown authority"},
				// What the server says of these two may be lost with the connection.
				{name: "without a certificate", set: files(servers.pem(), "", ""), fails: "store"},
				{name: "a stranger's certificate", set: files(servers.pem(), strange, strangeKey), fails: "store"},
			})
			requireLogins(t, store, []login{
				{name: "without the server's name", set: files(servers.pem(), cert, key), fails: "doesn't contain any IP SANs"},
			})
		})
	}

	t.Run("a server without TLS", func(t *testing.T) {
		plain := strings.TrimPrefix(testenv.NATS(t).URL(), "nats://")
		requireLogins(t, "tls://"+plain, []login{{name: "tls", set: func(*Config) {}, fails: "secure connection not available"}})
	})
}
