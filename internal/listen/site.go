package listen

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// AllowedNames says what ParseNames takes.
const AllowedNames = "host names without ports, separated by commas"

// Names are the host names, beside those of loopback, by which a server on loopback may be called. They are in small letters.
type Names []string

// ParseNames reads a list of names. ok is false for one that has another form than AllowedNames says.
func ParseNames(text string) (names Names, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if strings.ContainsAny(part, " /@*?#[]") || strings.Contains(part, ":") && !isAddress(part) || bareName(part) == "" {
			return nil, false
		}
		names = append(names, bareName(part))
	}
	return names, true
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// bareName is a host as names are compared: without port, brackets and last dot, in small letters.
func bareName(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostPort, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Loopback tells whether a host, with or without a port, is a name or an address of loopback, which no site can have for a name of
// its own.
func Loopback(hostPort string) bool {
	name := bareName(hostPort)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Takes tells whether a server on loopback may be called by the host of a request. Any other name may be that of a site which resolves it
// to loopback, so that its pages may read the answers (DNS rebinding).
func (n Names) Takes(hostPort string) bool {
	return Loopback(hostPort) || slices.Contains(n, bareName(hostPort))
}

// protection has no exceptions.
var protection = http.NewCrossOriginProtection()

// CrossSite tells whether a page of another site, port or scheme has made a browser send a request, whatever its method.
func CrossSite(r *http.Request) bool {
	// To the library, GET and HEAD change nothing. Here they cost tokens, too.
	return protection.Check(&http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}) != nil
}

// Problem says why a request is none of a program, nor of a page of this server's own, as far as that can be told; empty for any other.
// Where a Server listens on loopback, it asks for a name of n, or of loopback.
func (n Names) Problem(r *http.Request) string {
	switch {
	case CrossSite(r):
		return "the request comes from a page of another site (Sec-Fetch-Site, Origin)"
	case r.Context().Value(onLoopback{}) != nil && !n.Takes(r.Host):
		return "this server listens on loopback, and is not called by the host name of the request, " +
			"allowed: localhost, loopback addresses, and those of hostNames"
	}
	return ""
}

// onLoopback is the key of the contexts of requests that came to a loopback address.
type onLoopback struct{}

// BaseContext is for http.Server.BaseContext, where there is no Server of this package: it tells the requests of a listener whether it is
// one of loopback. before, if not nil, returns the context that they have else.
func BaseContext(before func(net.Listener) context.Context) func(net.Listener) context.Context {
	return func(l net.Listener) context.Context {
		ctx := context.Background()
		if before != nil {
			ctx = before(l)
		}
		if addr, ok := l.Addr().(*net.TCPAddr); ok && addr.IP.IsLoopback() {
			ctx = context.WithValue(ctx, onLoopback{}, true)
		}
		return ctx
	}
}
