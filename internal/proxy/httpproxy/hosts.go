package httpproxy

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/numaproj-contrib/numathrottle/internal/dialguard"
)

const (
	allowedHosts = "hosts separated by commas: `NAME`, `NAME:PORT`, `*.NAME`, or `*` for all, at the ports 80 and 443 unless one is named; `:*` for all ports"
	everyPort    = "*"
)

// A hosts list contains the allowed targets of a forward proxy.
type hosts []host

type host struct {
	name string // in the form of canonical; with "*." before it for all below it, or "*"
	port string // empty: 80 and 443
}

// parseHosts parses a list. ok is false for an empty or invalid one.
func parseHosts(text string) (list hosts, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		h := host{name: strings.TrimSpace(part)}
		if name, port, err := net.SplitHostPort(h.name); err == nil {
			h.name, h.port = name, port
			if port != everyPort && !isPort(port) {
				return nil, false
			}
		}
		bare, wild := strings.CutPrefix(strings.TrimSuffix(strings.TrimPrefix(h.name, "["), "]"), "*.")
		if h.name = canonical(bare); wild {
			h.name = "*." + h.name
		}
		if bare != "*" && (bare == "" || strings.ContainsAny(bare, "*/@ []") || strings.Contains(bare, ":") && !isAddress(bare)) || wild && bare == "*" {
			return nil, false
		}
		list = append(list, h)
	}
	return list, true
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// canonical returns a host in the form for comparisons: an address in one spelling, a name in lower-case ASCII without its final dot.
func canonical(name string) string {
	if ip, ok := dialguard.Literal(name); ok {
		return ip.String()
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		return ascii
	}
	return name
}

// allow reports whether the proxy may connect to a host and port.
func (l hosts) allow(name, port string) bool {
	name = canonical(name)
	for _, h := range l {
		below, wild := strings.CutPrefix(h.name, "*.")
		if h.takes(port) && (h.name == "*" || h.name == name || wild && strings.HasSuffix(name, "."+below)) {
			return true
		}
	}
	return false
}

// names reports whether an entry is exactly this address, at this port.
func (l hosts) names(name, port string) bool {
	ip, ok := dialguard.Literal(name)
	for _, h := range l {
		if ok && h.name == ip.String() && h.takes(port) {
			return true
		}
	}
	return false
}

// takes reports whether an entry covers a port.
func (h *host) takes(port string) bool {
	if h.port == "" {
		return port == "443" || port == "80"
	}
	return isPort(port) && (h.port == everyPort || h.port == port)
}

// isPort reports whether a port is a number in its usual spelling: 080 would be another tag for the same service.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}
