package dialguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Addresses are the addresses that may be dialled besides the public ones. The zero Addresses allows none. It is safe for concurrent use.
type Addresses struct{ allowed []netip.Prefix }

// The words of ParseAddresses.
var addressWords = map[string][]netip.Prefix{
	"private":    prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "100.64.0.0/10"),
	"loopback":   prefixes("127.0.0.0/8", "::1/128"),
	"link-local": prefixes("169.254.0.0/16", "fe80::/10"),
}

// public are the addresses that IANA assigns to servers on the internet, and those that NAT64 reaches them by.
var public = prefixes("0.0.0.0/0", "2000::/3", "64:ff9b::/96")

// notPublic are those among them that are none (IANA's registries of special-purpose addresses).
var notPublic = slices.Concat(addressWords["private"], addressWords["loopback"], addressWords["link-local"], prefixes(
	"0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "3fff::/20",
))

// metadata are the addresses of clouds' credential services. Only an entry for exactly such an address allows it.
var metadata = prefixes(
	"169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "fd00:ec2::254/128", "fd00:ec2::23/128", // AWS; most others have the first, too
	"169.254.169.252/32", "fd20:ce::254/128", // Google Cloud
	"168.63.129.16/32",                         // Azure
	"192.0.0.192/32", "fd00:c1::a9fe:a9fe/128", // Oracle
	"100.100.100.200/32", "169.254.0.23/32", // Alibaba, Tencent
	"169.254.42.42/32", "fd00:42::42/128", // Scaleway
	"fe80::a9fe:a9fe/128", // OpenStack
)

// Prefixes of IPv6 whose addresses embed one of IPv4, and the positions of its bytes.
var embedding = []struct {
	prefix netip.Prefix
	at     [4]int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), lastBytes},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), lastBytes}, // NAT64 of a network's own, in the lengths of RFC 6052
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{7, 9, 10, 11}},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{9, 10, 11, 12}},
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}}, // 6to4
	{netip.MustParsePrefix("::/96"), lastBytes},              // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), lastBytes},    // IPv4-translated
	{teredo, [4]int{4, 5, 6, 7}},                             // its server
}

// teredo addresses also embed that of the client, with each bit inverted.
var teredo = netip.MustParsePrefix("2001::/32")

var lastBytes = [4]int{12, 13, 14, 15}

// embedded returns the IPv4 addresses that an IPv6 address may embed; none for any other.
func embedded(ip netip.Addr) (v4 []netip.Addr) {
	if !ip.Is6() || ip == netip.IPv6Unspecified() || ip == netip.IPv6Loopback() {
		return nil
	}
	bytes := ip.As16()
	at := func(places [4]int) netip.Addr {
		return netip.AddrFrom4([4]byte{bytes[places[0]], bytes[places[1]], bytes[places[2]], bytes[places[3]]})
	}
	for _, e := range embedding {
		if e.prefix.Contains(ip) {
			v4 = append(v4, at(e.at))
		}
	}
	if teredo.Contains(ip) {
		v4 = append(v4, netip.AddrFrom4([4]byte{^bytes[12], ^bytes[13], ^bytes[14], ^bytes[15]}))
	}
	// ISATAP has it after an identifier, below any prefix.
	if bytes[8]&^2 == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe {
		v4 = append(v4, at(lastBytes))
	}
	return v4
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// AllowedAddresses describes the input of ParseAddresses.
const AllowedAddresses = "private, loopback, link-local, addresses and CIDR prefixes"

// ParseAddresses parses words, addresses and prefixes, separated by spaces or commas.
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

// Allows reports whether an address may be dialled. An IPv6 address that embeds an IPv4 address needs that allowed, too.
func (a Addresses) Allows(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if a.names(ip) {
		return true
	}
	inner := embedded(ip)
	if within(metadata, ip) || slices.ContainsFunc(inner, func(v4 netip.Addr) bool { return within(metadata, v4) && !a.names(v4) }) {
		return false
	}
	if within(a.allowed, ip) {
		return true
	}
	if len(inner) > 0 && slices.ContainsFunc(inner, func(v4 netip.Addr) bool { return !a.Allows(v4) }) {
		return false
	}
	return within(public, ip) && !within(notPublic, ip)
}

// names reports whether there is an entry for exactly this address.
func (a Addresses) names(ip netip.Addr) bool {
	return slices.ContainsFunc(a.allowed, func(p netip.Prefix) bool { return p.IsSingleIP() && p.Addr() == ip })
}

func within(list []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Control is for net.Dialer.Control: it checks the dialled address, after name resolution. Its error is ErrAddress.
func (a Addresses) Control(_, address string, _ syscall.RawConn) error {
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
