package servers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// Ports are below the range that systems use for outgoing connections, so that none of those takes the port of a server that is briefly
// down.
const (
	firstPort = 20000
	lastPort  = 32000
)

// port is a TCP port on loopback that this process has reserved. The reservation is a UDP socket of the same number. It does not disturb
// the server, and every process that reserves in this way sees it, until release or death.
type port struct {
	number int
	hold   net.PacketConn
}

// reservePort picks a port at random that nobody has reserved and on which nothing listens.
func reservePort(ctx context.Context) (*port, error) {
	const attempts = 500
	var (
		lc  net.ListenConfig
		err error
	)
	for range attempts {
		p := port{number: firstPort + rand.IntN(lastPort-firstPort)}
		if p.hold, err = lc.ListenPacket(ctx, "udp4", p.addr()); err != nil {
			continue
		}
		var probe net.Listener
		if probe, err = lc.Listen(ctx, "tcp4", p.addr()); err == nil {
			err = probe.Close()
		}
		if err == nil {
			return &p, nil
		}
		p.release()
	}
	return nil, fmt.Errorf("no free port between %d and %d on %s: %w", firstPort, lastPort, loopback, err)
}

func (p *port) addr() string { return net.JoinHostPort(loopback, strconv.Itoa(p.number)) }

func (p *port) release() { p.hold.Close() }
