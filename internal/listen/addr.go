package listen

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Allowed describes the addresses that Parse accepts.
const Allowed = "one or more of `unix:/PATH` (absolute, up to 107 bytes) and `HOST:PORT`, separated by commas"

// LongestPath is the maximum length of a unix socket's path on Linux, in bytes.
const LongestPath = 107

// An Addr is an address to listen on.
type Addr struct {
	// Network is "unix" or "tcp".
	Network string
	// Address is the path of the socket, or host and port.
	Address string
}

// String returns the address in the form for Parse.
func (a Addr) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}

// Local reports whether only processes of this machine, or pod, can reach the address.
func (a Addr) Local() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// Parse parses a comma-separated list of addresses. ok is false if one does not have the form in Allowed, or if there is none.
func Parse(text string) (addrs []Addr, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		a, ok := parse(strings.TrimSpace(part))
		if !ok {
			return nil, false
		}
		addrs = append(addrs, a)
	}
	return addrs, true
}

func parse(text string) (Addr, bool) {
	if path, isUnix := strings.CutPrefix(text, "unix:"); isUnix {
		named := strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") // a URL with a host
		whole := filepath.IsAbs(path) && !named && !strings.ContainsRune(path, 0)
		path = filepath.Clean("/" + strings.TrimLeft(path, "/"))
		return Addr{"unix", path}, whole && path != "/" && len(path) <= LongestPath
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, " /@") {
		return Addr{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return Addr{"tcp", net.JoinHostPort(host, port)}, err == nil && strconv.FormatUint(n, 10) == port
}

// NeedsToken returns the first address that strangers can reach, which therefore needs a token. ok is false if there is none.
func NeedsToken(addrs []Addr) (a Addr, ok bool) {
	for _, a := range addrs {
		if !a.Local() {
			return a, true
		}
	}
	return Addr{}, false
}
