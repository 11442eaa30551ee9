package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

// errNotRunning is returned where a running server is needed.
var errNotRunning = errors.New("the server is not running")

// errPortTaken is wrapped by the error of a server that found its port in use by a foreign program.
var errPortTaken = errors.New("port in use")

// daemon is a server program that can be killed, stopped and started again with the same command.
type daemon struct {
	path    string
	args    []string
	env     []string // added to this process's own
	dir     string
	logFile string
	// answers reports whether the process with this pid serves requests; nil means it does.
	answers func(ctx context.Context, pid int) error

	mu     sync.Mutex
	child  *process // nil before the first start
	closed bool
}

// Pid returns the process ID, or 0 when the server is not running.
func (d *daemon) Pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.child == nil || !d.child.alive() {
		return 0
	}
	return d.child.pid()
}

// Kill ends the server with SIGKILL and returns when it is gone. It does nothing when the server is not running.
func (d *daemon) Kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.killLocked()
}

func (d *daemon) killLocked() error {
	if d.child == nil {
		return nil
	}
	return d.child.kill()
}

// Stop makes the server stand still with SIGSTOP: its connections stay open and nothing answers. It returns when the
// server stands still, or with an error when it is not running.
func (d *daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.signalLocked(syscall.SIGSTOP); err != nil {
		return err
	}
	return poll(ctx, "waiting for the server to stand still", func(context.Context) (bool, error) {
		if !d.child.alive() {
			return true, errNotRunning
		}
		return isStopped(d.child.pid()), nil
	})
}

// Continue lets a stopped server go on with SIGCONT. It fails when the server is not running.
func (d *daemon) Continue() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.signalLocked(syscall.SIGCONT)
}

func (d *daemon) signalLocked(signal os.Signal) error {
	if d.child == nil || !d.child.alive() {
		return errNotRunning
	}
	if err := d.child.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %v to %s (pid %d): %w", signal, d.path, d.child.pid(), err)
	}
	return nil
}

// Restart kills the server if it is running, starts it again under the same address with the same files, and returns when it answers. It
// keeps only the state on disk.
func (d *daemon) Restart(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errNotRunning
	}
	if err := d.killLocked(); err != nil {
		return err
	}
	return d.startLocked(ctx)
}

func (d *daemon) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.startLocked(ctx)
}

// startLocked starts the program and waits until it answers. A program that does not is ended.
func (d *daemon) startLocked(ctx context.Context) error {
	child, err := spawn(d.path, d.args, d.env, d.dir, d.logFile)
	if err != nil {
		return err
	}
	d.child = child
	err = poll(ctx, "waiting for "+d.path+" to answer", func(ctx context.Context) (bool, error) {
		if !child.alive() {
			return true, d.died(child)
		}
		err := d.answers(ctx, child.pid())
		return err == nil, err
	})
	if err != nil {
		err = errors.Join(err, child.kill())
	}
	return err
}

// died explains why a program ended by itself.
func (d *daemon) died(child *process) error {
	reason, tail := error(nil), d.LogTail()
	if strings.Contains(strings.ToLower(tail), "address already in use") {
		reason = errPortTaken
	}
	return errors.Join(fmt.Errorf("%s ended by itself (%s); its last output:\n%s", d.path, child.cmd.ProcessState, tail), reason)
}

// LogTail returns the last lines that the server printed, at most 2 KiB. Empty when there are none.
func (d *daemon) LogTail() string { return logTail(d.logFile) }

// close ends the server for good.
func (d *daemon) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return d.killLocked()
}

// logTail returns the end of a file, from the start of a line.
func logTail(name string) string {
	const limit = 2 << 10
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	start := max(0, size-limit)
	tail := make([]byte, size-start)
	n, err := file.ReadAt(tail, start)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	tail = tail[:n]
	if start > 0 {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	return string(tail)
}
