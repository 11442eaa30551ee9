//go:build !linux

package incarnation

import "errors"

// A lock is a locked file, which is implemented only for Linux.
type lock struct {
	boot          string
	device, inode uint64
}

var errElsewhere = errors.New("a state folder works on Linux only")

func acquire(string) (*lock, error) { return nil, errElsewhere }
func (*lock) read() ([]byte, error) { return nil, errElsewhere }
func (*lock) write(_ []byte) error  { return errElsewhere }
func (*lock) release()              {}
