package httpproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	environment "golang.org/x/net/http/httpproxy"

	"github.com/numaproj-contrib/numathrottle/internal/config"
)

// An egress returns the proxy through which a URL is reached; nil for none.
type egress func(u *url.URL) (*url.URL, error)

// newEgress returns the proxy in the environment, nil unless the settings ask for it. Errors: there is none; an invalid URL; this very
// proxy, which listens at addrs. They show no value, which may contain a password.
func newEgress(c *Config, addrs []string) (egress, error) {
	if !c.EgressProxy {
		return nil, nil //nolint:nilnil // none
	}
	env := environment.FromEnvironment()
	if env.HTTPProxy == "" && env.HTTPSProxy == "" {
		return nil, &config.FieldError{
			Field: "egressProxy", Problem: "is set, and the environment names no proxy", Allowed: "HTTPS_PROXY or HTTP_PROXY with its URL",
		}
	}
	for name, value := range map[string]string{"HTTP_PROXY": env.HTTPProxy, "HTTPS_PROXY": env.HTTPSProxy} {
		if value == "" {
			continue
		}
		u, ok := proxyURL(value)
		if !ok {
			return nil, &config.FieldError{Field: name, Problem: "is not as it should be (not shown)", Allowed: "an http or https URL of a proxy"}
		}
		if isOwn(u, addrs) {
			return nil, &config.FieldError{Field: name, Problem: "names this proxy itself", Allowed: "another one"}
		}
	}
	return env.ProxyFunc(), nil
}

// proxyURL parses the URL of a proxy, which may lack its scheme.
func proxyURL(text string) (u *url.URL, ok bool) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// isOwn reports whether a URL leads to one of the proxy's own addresses.
func isOwn(u *url.URL, addrs []string) bool {
	return slices.ContainsFunc(addrs, func(addr string) bool {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || port != portOf(u) {
			return false
		}
		mine, theirs := net.ParseIP(host), net.ParseIP(u.Hostname())
		local := u.Hostname() == "localhost" || theirs != nil && theirs.IsLoopback()
		return host == u.Hostname() || local && (mine == nil || mine.IsLoopback() || mine.IsUnspecified())
	})
}

// isEgress reports whether host and port are those of a proxy in the environment.
func (p *handler) isEgress(host, port string) bool {
	if p.egress == nil {
		return false
	}
	env := environment.FromEnvironment()
	return slices.ContainsFunc([]string{env.HTTPProxy, env.HTTPSProxy}, func(value string) bool {
		u, ok := proxyURL(value)
		return value != "" && ok && canonical(u.Hostname()) == canonical(host) && portOf(u) == port
	})
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return defaultPorts[u.Scheme]
}

// forRequest is the Proxy function for http.Transport.
func (e egress) forRequest(r *http.Request) (*url.URL, error) {
	if e == nil {
		return nil, nil //nolint:nilnil // as http.Transport has it
	}
	return e(r.URL)
}

// dial connects to a host with its port, for a tunnel.
func (p *handler) dial(ctx context.Context, host string) (net.Conn, error) {
	if p.egress == nil {
		return p.dialChecked(ctx, "tcp", host)
	}
	via, err := p.egress(&url.URL{Scheme: "https", Host: host})
	if err != nil || via == nil {
		return p.dialChecked(ctx, "tcp", host)
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	addr := net.JoinHostPort(via.Hostname(), portOf(via))
	var conn net.Conn
	if via.Scheme == "https" {
		conn, err = (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", addr)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("the egress proxy: %w", err)
	}
	_ = conn.SetDeadline(time.Now().Add(dialTimeout))
	tunnel, err := throughProxy(conn, via, host)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return tunnel, conn.SetDeadline(time.Time{})
}

// throughProxy requests a tunnel to a host from the proxy behind a connection.
func throughProxy(conn net.Conn, via *url.URL, host string) (net.Conn, error) {
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	if via.User != nil {
		password, _ := via.User.Password()
		ask.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(via.User.Username()+":"+password)))
	}
	if err := ask.Write(conn); err != nil {
		return nil, fmt.Errorf("the egress proxy: %w", err)
	}
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, ask) //nolint:bodyclose // the connection is the tunnel from now on
	if err != nil {
		return nil, fmt.Errorf("the egress proxy: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the egress proxy makes no tunnel: status %d", res.StatusCode)
	}
	return &readAhead{conn, in}, nil
}

// A readAhead is a connection with a buffer of bytes already read.
type readAhead struct {
	net.Conn

	in *bufio.Reader
}

// Read implements io.Reader.
func (c *readAhead) Read(p []byte) (int, error) { return c.in.Read(p) }

// CloseWrite closes one direction, if the connection can.
func (c *readAhead) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
