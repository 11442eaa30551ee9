package listen

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// AllowedNames describes the input of ParseNames.
const AllowedNames = "host names without ports, separated by commas"

// Names are the host names, besides those of loopback, that a server on loopback accepts. They are in lower case.
type Names []string

// ParseNames parses a list of names. ok is false if one does not have the form in AllowedNames.
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

// bareName returns a host in the form for comparisons: without port, brackets and final dot, in lower case.
func bareName(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostPort, "["), "]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Loopback reports whether a host, with or without a port, is a name or an address of loopback, which no site can use as its own name.
func Loopback(hostPort string) bool {
	name := bareName(hostPort)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Takes reports whether a server on loopback accepts the host of a request. Any other name may belong to a site that resolves it to
// loopback, so that its pages could read the answers (DNS rebinding).
func (n Names) Takes(hostPort string) bool {
	return Loopback(hostPort) || slices.Contains(n, bareName(hostPort))
}

// protection has no exceptions.
var protection = http.NewCrossOriginProtection()

// CrossSite reports whether a page of another site, port or scheme made a browser send a request, with any method.
func CrossSite(r *http.Request) bool {
	// The library takes GET and HEAD for harmless. Here they cost tokens, too.
	return protection.Check(&http.Request{Method: http.MethodPost, Header: r.Header, Host: r.Host, URL: r.URL}) != nil
}

// Problem says why a request comes neither from a program nor from a page of this server, as far as known; empty otherwise. On loopback it
// requires a name in n, or one of loopback.
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

// onLoopback is the context key of requests on a loopback address.
type onLoopback struct{}

// BaseContext is for http.Server.BaseContext without a Server of this package: it marks the requests of a listener on loopback. before, if
// not nil, returns the base context.
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
