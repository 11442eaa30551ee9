package natsstore

import (
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
)

// stranded is for how long a connected server may fail to serve before the next
// one is tried.
const stranded = time.Second

// A service watches whether the server that the connection has chosen serves. One
// that is cut off from the others of its cluster goes on answering pings, so that
// the connection stays, but it knows no leader.
type service struct {
	mu      sync.Mutex
	failing time.Time // since when it fails; zero when it does not
}

// outcome takes the outcome of a step, and leaves a server that has not served for
// a while for the next one.
func (s *service) outcome(nc *nats.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := time.Now(); {
	case err == nil || errors.Is(err, consensus.ErrWrongAnswer):
		s.failing = time.Time{}
	case s.failing.IsZero() || !nc.IsConnected():
		s.failing = now
	case now.Sub(s.failing) >= stranded && len(nc.Servers()) > 1:
		s.failing = now
		_ = nc.ForceReconnect() // fails only on a closed connection
	}
}
