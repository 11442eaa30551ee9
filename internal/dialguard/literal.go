package dialguard

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Refuses tells why a host would be refused when it is dialled, before anything is: because it is an address, in whatever
// spelling, that is not allowed. host is that of a URL, without port. It returns an empty text for names, which are resolved
// when they are dialled, and for addresses that are allowed.
func (a Addresses) Refuses(host string) string {
	for _, ip := range literals(host) {
		if a.Allows(ip) {
			continue
		}
		ip = ip.WithZone("").Unmap()
		if within(metadata, ip) {
			return "is an address at which clouds hand out credentials"
		}
		for _, word := range []string{"loopback", "private", "link-local"} {
			if within(addressWords[word], ip) {
				return "is a " + word + " address"
			}
		}
		return "is no public address"
	}
	return ""
}

// Literal returns the address that a host is, in whatever spelling. ok is false for a name, and for a spelling that some
// read as another address than others.
func Literal(host string) (ip netip.Addr, ok bool) {
	ips := literals(host)
	for i := range ips {
		if ips[i] != ips[0] {
			return netip.Addr{}, false
		}
	}
	if len(ips) == 0 {
		return netip.Addr{}, false
	}
	return ips[0].Unmap(), true
}

// literals returns the addresses that a host can be read as: none for a name, and two where a leading 0 means
// octal to some and nothing to others.
func literals(host string) []netip.Addr {
	// As net/http does before it dials: full-width digits and dots become those of ASCII.
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}
	}
	host = strings.TrimSuffix(host, ".")
	var ips []netip.Addr
	for _, octal := range []bool{true, false} {
		if ip, ok := parseLoose(host, octal); ok {
			ips = append(ips, ip)
		}
	}
	return ips
}

// parseLoose reads the spellings of inet_aton, which resolvers take: one to four numbers, decimal, hexadecimal or octal, of
// which the last fills the rest.
func parseLoose(host string, octal bool) (netip.Addr, bool) {
	const most = 4
	parts := strings.Split(host, ".")
	if len(parts) > most {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (most - i)
		}
		n, ok := looseNumber(part, octal)
		if !ok || n >= 1<<bits {
			return netip.Addr{}, false
		}
		sum = sum<<bits | n
	}
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], uint32(sum))
	return netip.AddrFrom4(bytes), true
}

func looseNumber(text string, octal bool) (uint64, bool) {
	base := 10
	switch {
	case len(text) > 2 && (text[:2] == "0x" || text[:2] == "0X"):
		base, text = 16, text[2:]
	case len(text) > 1 && text[0] == '0' && octal:
		base, text = 8, text[1:]
	}
	if text == "" || text[0] == '+' || text[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, base, 64)
	return n, err == nil
}
