package httpproxy

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
	"github.com/numaproj-contrib/numathrottle/internal/proxy"
)

// tokenHeader carries the token as an alternative to Proxy-Authorization, for clients of the reverse proxy. It is not passed on.
const tokenHeader = "X-Numathrottle-Token" //nolint:gosec // the name of a header

// admit checks whether a request may use the proxy and reach its target. It removes the token from it.
func (p *handler) admit(w http.ResponseWriter, r *http.Request, forward bool) *proxy.Error {
	// Only a browser configured with this proxy asks it for other hosts: then a page reaches no more than without it.
	if problem := p.names.Problem(r); problem != "" && !forward {
		return proxy.NewError(http.StatusForbidden, proxy.Forbidden, problem)
	}
	given := r.Header.Values("Proxy-Authorization")
	for _, value := range r.Header.Values(tokenHeader) {
		given = append(given, "Bearer "+value)
	}
	r.Header.Del(tokenHeader)
	if !p.token.Lets(r.Context(), given) {
		w.Header().Set("Connection", "close")
		status := http.StatusUnauthorized
		if forward {
			status = http.StatusProxyAuthRequired
			w.Header().Set("Proxy-Authenticate", `Basic realm="numathrottle"`)
		}
		return proxy.NewError(status, proxy.Unauthorized, "the proxy's token is missing or wrong, allowed: the header "+tokenHeader+", or Proxy-Authorization")
	}
	if forward {
		return p.mayForward(r)
	}
	if p.upstream == nil {
		return proxy.NewError(http.StatusNotFound, proxy.NotFound, "this is a forward proxy only; set upstream for a reverse proxy")
	}
	return nil
}

// mayForward checks whether the forward proxy may connect to a request's target.
func (p *handler) mayForward(r *http.Request) *proxy.Error {
	name, port := r.URL.Hostname(), r.URL.Port()
	if port == "" && r.Method != http.MethodConnect {
		port = defaultPorts[r.URL.Scheme]
	}
	switch {
	case !p.forward.allow(name, port):
		return proxy.NewError(http.StatusForbidden, proxy.Forbidden,
			"the proxy may not go to this host and port; the setting forward lists where it may: ports 80 and 443, and those that it names")
	case p.isEgress(name, port): // it dials the requested address, and is not checked itself
		return proxy.NewError(http.StatusForbidden, proxy.Forbidden, "this is the egress proxy, which is used and not called")
	case !p.forward.names(name, port) && p.allow.Refuses(name) != "":
		return proxy.NewError(http.StatusForbidden, proxy.Forbidden, notDialled)
	case r.Method == http.MethodConnect && !p.AllowConnect:
		return proxy.NewError(http.StatusForbidden, proxy.Forbidden,
			"the proxy makes no tunnels: a CONNECT counts connections, and not the calls inside; the setting allowConnect allows them")
	}
	return nil
}

const notDialled = "the host is, or resolves to, an address that is not public; the settings allowAddresses and forward list those that the proxy may dial"

// dialChecked connects to the target of a request. It checks the dialled address, after name resolution. Exempt are the targets in the
// configuration itself: the upstream, addresses in forward, and the egress proxy, which resolves names itself.
func (p *handler) dialChecked(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	if !p.isUpstream(host, port) && !p.forward.names(host, port) && !p.isEgress(host, port) {
		dialer.Control = p.allow.Control
	}
	if ip, ok := dialguard.Literal(host); ok {
		address = net.JoinHostPort(ip.String(), port)
	}
	return dialer.DialContext(ctx, network, address)
}

// isUpstream reports whether host and port are those of the upstream service.
func (p *handler) isUpstream(host, port string) bool {
	if p.upstream == nil || canonical(host) != canonical(p.upstream.Hostname()) {
		return false
	}
	own := p.upstream.Port()
	if own == "" {
		own = defaultPorts[p.upstream.Scheme]
	}
	return own == port
}

// accessProblem returns the response for a refused dial; nil for any other error.
func accessProblem(err error) *proxy.Error {
	if errors.Is(err, dialguard.ErrAddress) {
		return proxy.NewError(http.StatusForbidden, proxy.Forbidden, notDialled)
	}
	return nil
}
