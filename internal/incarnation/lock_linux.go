package incarnation

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// bootFile identifies the boot of the kernel: it changes with each start of a machine.
const bootFile = "/proc/sys/kernel/random/boot_id"

// A lock is a locked file. Only release, or the kernel at the end of the process, closes its descriptor: the garbage collector would close
// an os.File.
type lock struct {
	fd            int
	boot          string
	device, inode uint64
}

// acquire opens or creates the file, and locks it. It returns errBusy if the file is locked.
func acquire(path string) (*lock, error) {
	boot, err := os.ReadFile(bootFile)
	if err != nil {
		return nil, err
	}
	l := &lock{boot: strings.TrimSpace(string(boot))}
	if l.fd, err = open(path); err != nil {
		return nil, err
	}
	if err = l.take(path); err != nil {
		_ = syscall.Close(l.fd) // holds no valid lock
		return nil, err
	}
	return l, nil
}

func open(path string) (int, error) {
	const flags = syscall.O_RDWR | syscall.O_CREAT | syscall.O_CLOEXEC | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	fd, err := syscall.Open(path, flags, 0o600)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// take locks the open file, and checks that the lock is valid.
func (l *lock) take(path string) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(l.fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return fmt.Errorf("%s is no regular file", path)
	}
	l.device, l.inode = uint64(st.Dev), st.Ino //nolint:unconvert // not the same size on every machine
	if err := flock(l.fd); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errBusy
		}
		return &os.PathError{Op: "flock", Path: path, Err: err}
	}
	second, err := open(path)
	if err != nil {
		return err
	}
	defer syscall.Close(second)
	if err := flock(second); !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("the folder of %s does not keep locks: a second one was had beside the first", path)
	}
	return nil
}

func flock(fd int) error {
	for {
		if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// read returns the content of the file.
func (l *lock) read() ([]byte, error) {
	b := make([]byte, maxBytes)
	n := 0
	for n < len(b) {
		k, err := syscall.Pread(l.fd, b[n:], int64(n))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if k == 0 {
			break
		}
		n += k
	}
	return b[:n], nil
}

// write replaces the content of the file.
func (l *lock) write(content []byte) error {
	for n := 0; n < len(content); {
		k, err := syscall.Pwrite(l.fd, content[n:], int64(n))
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		n += max(k, 0)
	}
	return syscall.Ftruncate(l.fd, int64(len(content)))
}

// release releases the lock.
func (l *lock) release() { _ = syscall.Close(l.fd) }
