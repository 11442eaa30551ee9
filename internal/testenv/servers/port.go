package servers

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/proxy"
)

const loopback = proxy.Loopback

// port is a TCP port on loopback that this process has reserved, until release or death.
type port struct {
	number int
	hold   net.PacketConn
}

// reservePort reserves a port, and leaves it to the server to listen.
func reservePort(ctx context.Context) (*port, error) {
	hold, listener, err := proxy.Reserve(ctx)
	if err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddrPort(listener.Addr().String())
	return &port{int(addr.Port()), hold}, errors.Join(err, listener.Close())
}

func (p *port) addr() string { return p.hold.LocalAddr().String() }

func (p *port) release() { p.hold.Close() }
