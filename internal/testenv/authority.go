package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An Authority signs certificates, which are good for an hour.
type Authority struct {
	// PEM is its own certificate.
	PEM string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority with a new key.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{cert: &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	der := a.sign(tb, a.cert, "authority", a.key)
	a.PEM = inPEM("CERTIFICATE", der)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(tb, err)
	return a
}

// Pool returns what trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Issue returns a certificate of a server or client with that name, and its key, in PEM. The name may be an IP address.
func (a *Authority) Issue(tb testing.TB, name string) (cert, key string) {
	tb.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der := a.sign(tb, template, name, pair)
	secret, err := x509.MarshalPKCS8PrivateKey(pair)
	require.NoError(tb, err)
	return inPEM("CERTIFICATE", der), inPEM("PRIVATE KEY", secret)
}

// Server returns the TLS of a server with that name.
func (a *Authority) Server(tb testing.TB, name string) *tls.Config {
	tb.Helper()
	cert, key := a.Issue(tb, name)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	require.NoError(tb, err)
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
}

func (a *Authority) sign(tb testing.TB, template *x509.Certificate, name string, key *ecdsa.PrivateKey) []byte {
	tb.Helper()
	template.SerialNumber, template.Subject.CommonName = big.NewInt(time.Now().UnixNano()), name
	template.NotAfter, template.BasicConstraintsValid = time.Now().Add(time.Hour), true
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(tb, err)
	return der
}

func inPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// ClosedPort returns an address on loopback where nobody listens, and that somebody may take.
func ClosedPort(tb testing.TB) string {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer listener.Close()
	return listener.Addr().String()
}
