package httpproxy

import (
	"net"
	"strconv"
	"strings"
)

const allowedHosts = "hosts separated by commas: `NAME`, `NAME:PORT`, `*.NAME`, or `*` for all"

// A hosts list says where a forward proxy may go.
type hosts []host

type host struct {
	name string // in small letters; with "*." before it for all below it, or "*"
	port string // empty: 80 and 443
}

// parseHosts reads a list. ok is false for one that names nothing, or not in this form.
func parseHosts(text string) (list hosts, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		h := host{name: strings.ToLower(strings.TrimSpace(part))}
		if name, port, err := net.SplitHostPort(h.name); err == nil {
			h.name, h.port = name, port
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return nil, false
			}
		}
		bare := strings.TrimPrefix(h.name, "*.")
		if h.name != "*" && (bare == "" || strings.ContainsAny(bare, "*/@ ")) {
			return nil, false
		}
		list = append(list, h)
	}
	return list, true
}

// allow tells whether the proxy may go to a host at a port.
func (l hosts) allow(name, port string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	for _, h := range l {
		below, wild := strings.CutPrefix(h.name, "*.")
		switch {
		case h.port != "" && h.port != port:
		case h.name == "*":
			return true
		case h.port == "" && port != "443" && port != "80":
		case h.name == name, wild && strings.HasSuffix(name, "."+below):
			return true
		}
	}
	return false
}
