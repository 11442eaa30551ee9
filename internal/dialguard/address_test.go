package dialguard

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhichAddressesMayBeDialled(t *testing.T) {
	for _, c := range []struct {
		allowed string
		yes, no []string
	}{
		{
			"",
			[]string{"1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "172.32.0.1"},
			[]string{
				"127.0.0.1", "::1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.1.1", "fe80::1",
				"fe80::1%eth0", "fc00::1",
				"fd00:ec2::254", "100.64.0.1", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
				"64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "::127.0.0.1", "2001::1", "168.63.129.16", "198.18.0.1", "fec0::1", "64:ff9b:1::1",
			},
		},
		{
			"private",
			[]string{"10.1.2.3", "172.31.255.255", "192.168.0.1", "fd12::1", "::ffff:10.0.0.1", "100.64.0.1"},
			[]string{"127.0.0.1", "169.254.169.254", "fd00:ec2::254", "100.100.100.200"},
		},
		{"loopback", []string{"127.0.0.1", "127.1.2.3", "::1"}, []string{"10.0.0.1"}},
		{"link-local", []string{"169.254.1.1", "fe80::1%eth0"}, []string{"169.254.169.254"}},
		{"169.254.169.254, 10.0.0.0/8 fd00::1", []string{"169.254.169.254", "10.255.0.1", "fd00::1"}, []string{"fd00::2", "11.0.0.1.", "192.168.0.1"}},
		{"0.0.0.0/0", []string{"127.0.0.1"}, []string{"169.254.169.254", "::1"}},
	} {
		a, err := ParseAddresses(c.allowed)
		require.NoError(t, err)
		for _, text := range c.yes {
			require.True(t, a.Allows(netip.MustParseAddr(text)), "%s with %q", text, c.allowed)
		}
		for _, text := range c.no {
			if ip, err := netip.ParseAddr(text); err == nil {
				require.False(t, a.Allows(ip), "%s with %q", text, c.allowed)
			}
		}
	}
	for _, text := range []string{"everything", "10.0.0.0/33", "localhost", "fe80::1%eth0"} {
		_, err := ParseAddresses(text)
		require.Error(t, err, text)
	}
	require.ErrorIs(t, Addresses{}.Control("tcp", "nonsense", nil), ErrAddress)
}

// An address that will be refused when it is dialled is refused before, however it is written.
func TestLiteralAddressesInEverySpelling(t *testing.T) {
	for _, c := range []struct {
		allowed string
		yes, no []string
	}{
		{
			"",
			[]string{
				"example.com", "localhost", "1.1.1.1", "8.8.8.8.", "134744072", "0x8080808", "2606:4700::1111", "::ffff:8.8.8.8",
				"10.example", "0x", "x7f.1", "1.2.3.4.5",
				"4294967296", "256.1.1.1", "-1", "+1", "127.0.0.1.nip.io", "a.b.c.d", "fe80.example",
			},
			[]string{
				"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1", "0177.0.0.1", "017700000001",
				"0x7f.0.0.0x1", "0", "00.0.0.0",
				"10.1.2.3", "010.1.2.3", "192.168.1.1", "3232235777", "169.254.169.254", "2852039166", "0xA9FEA9FE", "169.254.1.1", "::1",
				"::", "fe80::1%eth0", "fc00::1",
				"::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "１２７.0.0.1", "127。0。0。1",
				"255.255.255.255", "100.64.0.1", "10",
			},
		},
		{"loopback", []string{"127.0.0.1", "127.1", "2130706433", "::1", "::ffff:127.0.0.1"}, []string{"10.0.0.1", "0", "::"}},
		{"private", []string{"10.0.0.1", "0xa000001", "fc00::1%1"}, []string{"127.0.0.1", "169.254.169.254", "fe80::1"}},
		{"0.0.0.0/0", []string{"127.0.0.1", "10.1"}, []string{"2852039166", "::1"}},
	} {
		a, err := ParseAddresses(c.allowed)
		require.NoError(t, err)
		for _, host := range c.yes {
			require.Empty(t, a.Refuses(host), "%s with %q", host, c.allowed)
		}
		for _, host := range c.no {
			require.NotEmpty(t, a.Refuses(host), "%s with %q", host, c.allowed)
		}
	}
	var none Addresses
	require.Equal(t, "is a loopback address", none.Refuses("2130706433"))
	require.Equal(t, "is a private address", none.Refuses("10.0.0.1"))
	require.Equal(t, "is a link-local address", none.Refuses("fe80::1%eth0"))
	require.Equal(t, "is an address at which clouds hand out credentials", none.Refuses("169.254.169.254"))
	require.Equal(t, "is no public address", none.Refuses("0.0.0.0"))
}

// Of IPv6 only what IANA assigns to servers on the internet is public.
func TestSpecialAddresses(t *testing.T) {
	var none Addresses
	for _, text := range []string{
		"4000::1", "6000::1", "8000::1", "a000::1", "c000::1", "e000::1", "f000::1", "f800::1", "1000::1", "800::1", "400::1", "200::1", "1::1", "::1:0:0",
		"100::1", "100:0:0:1::1", "101::1", "64:ff9a::1", "64:ff9b:0:1::1", "64:ff9b:1::808:808", "64:ff9b:2::1", "5f00::1", "5eff::1", "3fff::1",
		"2001::1", "2001:0:808:808::f7f7:f7f7", "2001:1::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:1ff::1", "2001:db8::1",
		"fdff::1", "fe7f::1", "febf::1", "fec0::1", "ff0e::1", "::8.8.8.8", "::ffff:0:8.8.8.8", "::2", "ffff:ffff::",
		"2002:c612:1::", "2002:c000:201::", "64:ff9b::192.0.2.1", "64:ff9b::198.18.0.1", "::ffff:203.0.113.9", "::ffff:0.0.0.1",
		"0.1.2.3", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "239.255.255.255", "247.0.0.1", "255.255.255.255",
	} {
		ip := netip.MustParseAddr(text)
		require.False(t, none.Allows(ip), text)
		require.NotEmpty(t, none.Refuses(text), text)
	}
	for _, text := range []string{
		"2000::1", "2001:200::1", "2003::1", "2400:cb00::1", "2606:4700::1", "2a00::1", "3fff:1000::1", "3ffe::1", "2620:4f:8000::1", "1.0.0.1", "192.0.1.1",
		"198.17.255.255", "198.20.0.1", "223.255.255.254", "100.63.255.255", "100.128.0.1", "172.15.0.1", "64:ff9b::8.8.8.8", "2002:808:808::1",
	} {
		require.True(t, none.Allows(netip.MustParseAddr(text)), text)
	}
	one, err := ParseAddresses("4000::/16")
	require.NoError(t, err)
	require.True(t, one.Allows(netip.MustParseAddr("4000::1")), "somebody has named it")
}

// Where credentials are handed out, no form of an address helps, and no prefix does that someone has allowed.
func TestNoFormOfARefusedAddress(t *testing.T) {
	metadata := []string{
		"169.254.169.254", "169.254.169.252", "fd20:ce::254", "fd00:ec2::254", "fd00:ec2::23", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fe80::a9fe:a9fe",
		"192.0.0.192",
		"::ffff:169.254.169.254", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1",
		"64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00::", "2001:4860::5efe:a9fe:a9fe",
		"2001:4860::200:5efe:a9fe:a9fe", "2001:0:808:808:0:0:5601:5601", "2001:0:a9fe:a9fe::f7f7:f7f7",
	}
	for _, allowed := range []string{"", "private link-local", "0.0.0.0/0 ::/0", "64:ff9b::/96 64:ff9b:1::/48 2002::/16 fd00::/8"} {
		a, err := ParseAddresses(allowed)
		require.NoError(t, err)
		for _, text := range metadata {
			require.False(t, a.Allows(netip.MustParseAddr(text)), "%s with %q", text, allowed)
		}
	}
	var none Addresses
	for _, v4 := range []string{"7f00:1", "a00:1", "c0a8:101", "a9fe:1", "0:0"} {
		for _, form := range []string{"::ffff:%s", "::ffff:0:%s", "64:ff9b::%s", "2002:%s::", "2001:4860::5efe:%s"} {
			ip := netip.MustParseAddr(strings.Replace(form, "%s", v4, 1))
			require.False(t, none.Allows(ip), "%s", ip)
			require.NotEmpty(t, none.Refuses(ip.String()), "%s", ip)
		}
	}
	exact, err := ParseAddresses("169.254.169.254")
	require.NoError(t, err)
	require.True(t, exact.Allows(netip.MustParseAddr("64:ff9b::a9fe:a9fe")), "it is the one that somebody has named")
	require.False(t, exact.Allows(netip.MustParseAddr("64:ff9b::a9fe:a9fc")))
}
