package main

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fullListener returns an address at which no connection can be made any more, nor is any refused: the
// queue of those that nobody accepts is full, and the system leaves the next unanswered.
func fullListener(t *testing.T) string {
	t.Helper()
	open := func() int {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = syscall.Close(fd) })
		return fd
	}
	l := open()
	require.NoError(t, syscall.Bind(l, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(l, 0))
	bound, err := syscall.Getsockname(l)
	require.NoError(t, err)
	at, ok := bound.(*syscall.SockaddrInet4)
	require.True(t, ok)
	for range 8 { // more than the queue holds
		if err := syscall.Connect(open(), at); !errors.Is(err, syscall.EINPROGRESS) {
			require.NoError(t, err)
		}
	}
	return fmt.Sprintf("127.0.0.1:%d", at.Port)
}

func TestAConnectionThatIsNotMade(t *testing.T) {
	requireTimeouts(t, "DIAL_TIMEOUT", env{"URL": "http://" + fullListener(t)})
}
