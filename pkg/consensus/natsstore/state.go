package natsstore

import (
	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/internal/bounded"
)

// status is the state of the connection. A client that does not tell it at once is looking for a server.
func (s line) status() nats.Status {
	if status, ok := bounded.AtOnce(s.nc.Status); ok {
		return status
	}
	return nats.RECONNECTING
}

// lastError is the connection's newest error, nil if the client does not tell it at once.
func (s line) lastError() error {
	err, _ := bounded.AtOnce(s.nc.LastError)
	return err
}

// server names the connection's server, and gives the ID that each start of one has for itself.
func (s line) server() (name, id string) {
	for _, part := range []struct {
		to  *string
		ask func() string
	}{{&name, s.nc.ConnectedServerName}, {&id, s.nc.ConnectedServerId}} {
		*part.to, _ = bounded.AtOnce(part.ask)
	}
	return name, id
}
