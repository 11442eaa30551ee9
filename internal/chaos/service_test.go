//go:build numathrottle_faults

package chaos

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A service is what the workers call. It counts.
type service struct {
	path string

	mu    sync.Mutex
	uses  []use // those not yet forgotten
	count uint64
	bad   int // what was no call
}

// startService starts a service that ends with the test.
func startService(t testing.TB) *service {
	t.Helper()
	// A test's own directory is too long for a socket's name.
	dir, err := os.MkdirTemp("", "chaos") //nolint:usetesting // see above
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	s := &service{path: filepath.Join(dir, "s")}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.path, Net: "unixgram"})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.serve(conn)
	}()
	t.Cleanup(func() { conn.Close(); <-ended })
	return s
}

func (s *service) serve(conn *net.UnixConn) {
	buffer := make([]byte, useSize+1)
	for {
		n, _, err := conn.ReadFromUnix(buffer)
		if err != nil {
			return
		}
		s.mu.Lock()
		if n == useSize {
			u := decodeUse(buffer)
			u.arrived = clock()
			s.uses = append(s.uses, u)
			s.count++
		} else {
			s.bad++
		}
		s.mu.Unlock()
	}
}

// since returns the calls that were granted at or after a time, in the order of their arrival.
func (s *service) since(from time.Duration) []use {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []use
	for _, u := range s.uses {
		if u.granted >= from {
			found = append(found, u)
		}
	}
	return found
}

// forget drops the calls that were granted before a time.
func (s *service) forget(before time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses = slices.DeleteFunc(s.uses, func(u use) bool { return u.granted < before })
}

// seen returns how many calls the service has seen, forgotten ones too.
func (s *service) seen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// grants returns the times of grant of the calls that keep says, in order; nil keeps all.
func grants(uses []use, keep func(use) bool) []time.Duration {
	return stamps(uses, keep, func(u use) time.Duration { return u.granted })
}

func stamps(uses []use, keep func(use) bool, stamp func(use) time.Duration) []time.Duration {
	all := make([]time.Duration, 0, len(uses))
	for _, u := range uses {
		if keep == nil || keep(u) {
			all = append(all, stamp(u))
		}
	}
	slices.Sort(all)
	return all
}
