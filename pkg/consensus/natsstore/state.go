package natsstore

import (
	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
)

// status returns the state of the connection. A client that does not answer at once is looking for a server.
func (s line) status() nats.Status {
	if status, ok := bounded.AtOnce(s.nc.Status); ok {
		return status
	}
	return nats.RECONNECTING
}

// lastError returns the connection's newest error, or nil if the client does not answer at once.
func (s line) lastError() error {
	err, _ := bounded.AtOnce(s.nc.LastError)
	return err
}

// server returns the name of the connection's server, and the ID that it gets at each start.
func (s line) server() (name, id string) {
	for _, part := range []struct {
		to  *string
		ask func() string
	}{{&name, s.nc.ConnectedServerName}, {&id, s.nc.ConnectedServerId}} {
		*part.to, _ = bounded.AtOnce(part.ask)
	}
	return name, id
}
