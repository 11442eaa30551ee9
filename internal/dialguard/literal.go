package dialguard

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Refuses says, before any dial, why a host would be refused: because it is an address, in any spelling, that is not allowed. host is the
// host of a URL, without port. It returns an empty text for allowed addresses, and for names, which are resolved when they are dialled.
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

// Literal returns the address that a host denotes, in any spelling. ok is false for a name, and for an ambiguous spelling.
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

// literals returns the possible addresses of a host: none for a name, and two if a leading 0 means octal to some readers and nothing to
// others.
func literals(host string) []netip.Addr {
	// As in net/http before a dial: full-width digits and dots become ASCII.
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

// parseLoose parses the spellings of inet_aton, which resolvers accept: one to four numbers, decimal, hexadecimal or octal. The last one
// fills the remaining bytes.
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
