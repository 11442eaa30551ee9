package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"
)

// socketMode lets the owner and the group of a socket use it.
const socketMode = 0o660

// A Set is a set of open listeners. Close it once.
type Set struct {
	listeners []net.Listener
	lobbies   []*lobby
}

// Open listens on every address, with at most so many connections of callers on each; more wait in the kernel's queue. Connections whose
// callers are not authorised yet (Token.Lets, Admit) have places of their own, and end after ten seconds. A unix socket left by an earlier
// process is replaced; one that is still served is an error. ctx bounds only Open.
//
// Errors: an address that strangers can reach, without a token or with one of less than MinTokenBytes; an unavailable address. They name
// the address. With a token, such an address is logged as a warning.
func Open(ctx context.Context, addrs []Addr, connections int, token string, log *slog.Logger) (*Set, error) {
	if a, ok := NeedsToken(addrs); ok && token == "" {
		return nil, fmt.Errorf("listen: %s can be reached from elsewhere, allowed without a token: unix sockets and loopback addresses", a)
	} else if ok && len(token) < MinTokenBytes {
		return nil, fmt.Errorf("listen: %s can be reached from elsewhere, and the token has %d bytes, allowed: at least %d", a, len(token), MinTokenBytes)
	}
	s := &Set{}
	for _, a := range addrs {
		l, err := open(ctx, a)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen: %s: %w", a, err), s.Close())
		}
		own := newLobby(l, connections, strangers)
		s.listeners, s.lobbies = append(s.listeners, own), append(s.lobbies, own)
		if !a.Local() {
			log.Warn("this address can be reached from elsewhere, without encryption; callers need the token", "address", l.Addr().String())
		}
	}
	return s, nil
}

func open(ctx context.Context, a Addr) (net.Listener, error) {
	if a.Network == "unix" {
		if err := dropStale(ctx, a.Address); err != nil {
			return nil, err
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, a.Network, a.Address)
	if err != nil {
		return nil, err
	}
	if a.Network == "unix" {
		if err := os.Chmod(a.Address, socketMode); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// dropStale removes a socket that no process serves.
func dropStale(ctx context.Context, path string) error {
	stale, err := Stale(ctx, path)
	if stale {
		return os.Remove(path)
	}
	return err
}

// Stale reports whether a path holds a unix socket that no process serves. It is false, without an error, where there is nothing. Errors: a
// file of another kind; a socket that a process serves, or may serve.
func Stale(ctx context.Context, path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode()&fs.ModeType != fs.ModeSocket:
		return false, errors.New("a file is there that is no socket")
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return false, errors.Join(errors.New("another process listens on this socket"), conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		return true, nil
	}
	return false, fmt.Errorf("another process may listen on this socket: %w", err) // it is busy, say, or for datagrams
}

// Listeners returns the open listeners, in the order of the addresses.
func (s *Set) Listeners() []net.Listener { return s.listeners }

// Strangers returns the number of connections whose callers are not authorised yet.
func (s *Set) Strangers() (n int) {
	for _, l := range s.lobbies {
		l.mu.Lock()
		n += l.waiting.Len()
		l.mu.Unlock()
	}
	return n
}

// Addrs returns the addresses, with the ports that the system chose.
func (s *Set) Addrs() []string {
	var all []string
	for _, l := range s.listeners {
		all = append(all, Addr{l.Addr().Network(), l.Addr().String()}.String())
	}
	return all
}

// Close stops listening. Repeated calls are no error.
func (s *Set) Close() error {
	var errs []error
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
