package permits

import (
	"context"
	"net"
	"net/http"
	"net/netip"
)

// A caller identifies whose permits count together.
type caller struct {
	// name is the caller's address without the port; empty for unix sockets.
	name string
	// local reports whether it is on this host.
	local bool
	// authorization holds the request's headers of that name.
	authorization []string
}

type callerKey struct{}

// withCaller returns a context from which callerOf gets the sender of a request.
func withCaller(r *http.Request) context.Context {
	c := caller{local: true}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		addr, err := netip.ParseAddr(host)
		c = caller{name: host, local: err == nil && addr.Unmap().IsLoopback()}
		if addr = addr.Unmap().WithZone(""); addr.Is6() && !c.local { // a host has as many addresses in its network as it likes
			c.name = netip.PrefixFrom(addr, 64).Masked().String()
		}
	}
	c.authorization = r.Header.Values("Authorization")
	return context.WithValue(r.Context(), callerKey{}, c)
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}
