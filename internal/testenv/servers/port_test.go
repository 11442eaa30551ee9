package servers

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReservedPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		p, err := reservePort(t.Context())
		require.NoError(t, err)
		t.Cleanup(p.release)
		require.False(t, seen[p.number], "port %d was given twice", p.number)
		require.GreaterOrEqual(t, p.number, firstPort)
		require.Less(t, p.number, lastPort)
		seen[p.number] = true
	}
}

func TestReservationHoldsWhileTheServerIsDown(t *testing.T) {
	p, err := reservePort(t.Context())
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", p.addr())
	require.NoError(t, err, "the reservation leaves the TCP port to the server")
	require.NoError(t, listener.Close())

	_, err = net.ListenPacket("udp4", p.addr())
	require.Error(t, err, "no other reservation of this port succeeds")
	p.release()
	again, err := net.ListenPacket("udp4", p.addr())
	require.NoError(t, err, "a released port is free")
	require.NoError(t, again.Close())
}
