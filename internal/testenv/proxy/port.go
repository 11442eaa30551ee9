package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// Ports are below the range that systems use for outgoing connections, so that none of those takes the port of a proxy that refuses
// connections for a while. Package servers uses those up to 32000.
const (
	firstPort = 14000
	lastPort  = 20000
)

// reserve picks a free port at random and listens on it. A UDP socket of the same number holds the port until it is
// closed, also while nobody listens: every process that reserves in this way sees it.
func reserve(ctx context.Context) (net.PacketConn, net.Listener, error) {
	const attempts = 500
	var (
		lc  net.ListenConfig
		err error
	)
	for range attempts {
		addr := net.JoinHostPort(loopback, strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		var hold net.PacketConn
		if hold, err = lc.ListenPacket(ctx, "udp4", addr); err != nil {
			continue
		}
		var l net.Listener
		if l, err = lc.Listen(ctx, "tcp4", addr); err == nil {
			return hold, l, nil
		}
		hold.Close()
	}
	return nil, nil, fmt.Errorf("no free port between %d and %d on %s: %w", firstPort, lastPort, loopback, err)
}
