package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Loopback is the address of everything here.
const Loopback = "127.0.0.1"

// Ports are below the range that systems use for outgoing connections, so that none of those takes the port of a server that is briefly
// down, or of a proxy that refuses connections for a while.
const (
	firstPort = 14000
	lastPort  = 32000
)

// Reserve picks a free port at random and listens on it. A UDP socket of the same number holds the port until it is
// closed, also while nobody listens: every process that reserves in this way sees it.
func Reserve(ctx context.Context) (hold net.PacketConn, l net.Listener, err error) {
	var lc net.ListenConfig
	for range 500 {
		addr := net.JoinHostPort(Loopback, strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if hold, err = lc.ListenPacket(ctx, "udp4", addr); err != nil {
			continue
		}
		if l, err = lc.Listen(ctx, "tcp4", addr); err == nil {
			return hold, l, nil
		}
		hold.Close()
	}
	return nil, nil, fmt.Errorf("no free port between %d and %d on %s: %w", firstPort, lastPort, Loopback, err)
}
