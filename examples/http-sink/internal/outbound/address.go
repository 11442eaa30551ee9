package outbound

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Addresses says which addresses may be dialled beside the public ones. The zero
// Addresses allows none. It may be used from any number of goroutines at once.
type Addresses struct{ allowed []netip.Prefix }

// The words of ParseAddresses.
var addressWords = map[string][]netip.Prefix{
	"private":    prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "100.64.0.0/10"),
	"loopback":   prefixes("127.0.0.0/8", "::1/128"),
	"link-local": prefixes("169.254.0.0/16", "fe80::/10"),
}

// notPublic is what is no address of a server on the internet (IANA's registries of
// special-purpose addresses).
var notPublic = slices.Concat(addressWords["private"], addressWords["loopback"], addressWords["link-local"], prefixes(
	"0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10", "ff00::/8",
))

// metadata are the addresses at which clouds hand out credentials. Only an entry
// for exactly this address allows one.
var metadata = prefixes("169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "fd00:ec2::254/128", "fd00:ec2::23/128",
	"100.100.100.200/32", "168.63.129.16/32")

// Prefixes of IPv6 whose addresses stand for one of IPv4, and where that begins.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2}, {netip.MustParsePrefix("::/96"), 12}}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// AllowedAddresses says what ParseAddresses takes.
const AllowedAddresses = "private, loopback, link-local, addresses and CIDR prefixes"

// ParseAddresses reads words, addresses and prefixes, with spaces or commas between.
func ParseAddresses(text string) (Addresses, error) {
	var a Addresses
	for _, entry := range strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' }) {
		if word, ok := addressWords[entry]; ok {
			a.allowed = append(a.allowed, word...)
			continue
		}
		if ip, err := netip.ParseAddr(entry); err == nil && ip.Zone() == "" {
			ip = ip.Unmap()
			a.allowed = append(a.allowed, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(entry)
		if err != nil {
			return Addresses{}, fmt.Errorf("has the entry %q, allowed: %s", entry, AllowedAddresses)
		}
		a.allowed = append(a.allowed, p.Masked())
	}
	return a, nil
}

// ErrAddress is wrapped by the error of a dial to an address that is not allowed.
var ErrAddress = errors.New("the address is not allowed (allowAddresses)")

// Allows tells whether an address may be dialled.
func (a Addresses) Allows(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	for _, p := range a.allowed {
		if p.Contains(ip) && (p.IsSingleIP() || !within(metadata, ip)) {
			return true
		}
	}
	for _, e := range embedding {
		if e.prefix.Contains(ip) {
			bytes := ip.As16()
			v4, _ := netip.AddrFromSlice(bytes[e.at : e.at+4])
			return ip != netip.IPv6Loopback() && ip != netip.IPv6Unspecified() && a.Allows(v4)
		}
	}
	return !within(notPublic, ip) && !within(metadata, ip)
}

func within(list []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// control is net.Dialer.Control: it sees the address that is really dialled, after names
// were resolved.
func (a Addresses) control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ErrAddress
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !a.Allows(ip) {
		return ErrAddress
	}
	return nil
}
