package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

var (
	// ErrNotInstalled is wrapped by the error of every Start function whose program is not on this machine. The error names the program,
	// which is also the name of the Debian package.
	ErrNotInstalled = errors.New("not installed")

	// errNotRunning is returned where a running server is needed.
	errNotRunning = errors.New("the server is not running")

	// errPortTaken is wrapped by the error of a server that found its port in use by a foreign program.
	errPortTaken = errors.New("port in use")
)

// retry repeats a start, up to five times, when a foreign program took the port.
func retry[S any](start func() (S, error)) (S, error) {
	for attempt := 1; ; attempt++ {
		s, err := start()
		if err == nil || attempt == 5 || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

// locate finds a program on the PATH or where distributions put servers: sbin is not on every user's PATH.
func locate(program string) (string, error) {
	for _, name := range []string{program, "/usr/sbin/" + program, "/usr/local/sbin/" + program, "/usr/local/bin/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is %w: on Debian, apt-get install %s", program, ErrNotInstalled, program)
}

// daemon is a server program on a port of its own that can be killed, stopped and started again with the same command.
type daemon struct {
	path string
	args []string
	env  []string // added to this process's own
	dir  string   // its working directory, with its log
	port *port    // nil: it has others
	// answers reports whether the process with this pid serves requests.
	answers func(ctx context.Context, pid int) error

	mu     sync.Mutex
	cmd    *exec.Cmd       // nil before the first start
	gone   <-chan struct{} // closed when it has been reaped; cmd.ProcessState then says how it ended
	closed bool
}

// newDaemon makes the folder of an installed program, reserves its port, and writes its configuration there. It does not start it.
func newDaemon(ctx context.Context, program, dir, file string, config func(p *port) []byte) (daemon, error) {
	path, err := locate(program)
	if err != nil {
		return daemon{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return daemon{}, fmt.Errorf("directory of %s: %w", program, err)
	}
	p, err := reservePort(ctx)
	if err != nil {
		return daemon{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, file), config(p), 0o600); err != nil {
		p.release()
		return daemon{}, fmt.Errorf("configuration of %s: %w", program, err)
	}
	return daemon{path: path, dir: dir, port: p}, nil
}

// Pid returns the process ID, or 0 when the server is not running.
func (d *daemon) Pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.alive() {
		return 0
	}
	return d.cmd.Process.Pid
}

// alive reports whether the program runs. d.mu is held.
func (d *daemon) alive() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.gone:
		return false
	default:
		return true
	}
}

// Kill ends the server with SIGKILL, which also ends one that was stopped, and returns when it is gone. It does nothing when the server is
// not running.
func (d *daemon) Kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.killLocked()
}

func (d *daemon) killLocked() error {
	if !d.alive() {
		return nil
	}
	if err := d.cmd.Process.Kill(); err != nil && d.alive() {
		return fmt.Errorf("kill %s: %w", d.path, err)
	}
	<-d.gone
	return nil
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
		if !d.alive() {
			return true, errNotRunning
		}
		return isStopped(d.cmd.Process.Pid), nil
	})
}

// Continue lets a stopped server go on with SIGCONT. It fails when the server is not running.
func (d *daemon) Continue() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.signalLocked(syscall.SIGCONT)
}

func (d *daemon) signalLocked(signal os.Signal) error {
	if !d.alive() {
		return errNotRunning
	}
	if err := d.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("send %v to %s: %w", signal, d.path, err)
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
	if err := d.spawn(); err != nil {
		return err
	}
	err := poll(ctx, "waiting for "+d.path+" to answer", func(ctx context.Context) (bool, error) {
		if !d.alive() {
			return true, d.died()
		}
		err := d.answers(ctx, d.cmd.Process.Pid)
		return err == nil, err
	})
	if err != nil {
		err = errors.Join(err, d.killLocked())
	}
	return err
}

// spawn starts the program with its output appended to the log.
func (d *daemon) spawn() error {
	output, err := os.OpenFile(d.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", d.path, err)
	}
	defer output.Close()
	cmd := &exec.Cmd{
		Path: d.path, Args: append([]string{d.path}, d.args...), Env: append(os.Environ(), d.env...), Dir: d.dir, Stdout: output, Stderr: output,
	}
	gone, err := StartChild(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", d.path, err)
	}
	d.cmd, d.gone = cmd, gone
	return nil
}

// StartChild starts a program that does not outlive this process, where the system can see to it. The channel is closed when it has been reaped;
// its ProcessState then says how it ended. The parent-death signal follows the thread that started the child, so a goroutine holds that thread
// until the child is gone.
func StartChild(cmd *exec.Cmd) (<-chan struct{}, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = childAttributes()
	}
	gone, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its error only repeats the ProcessState
			close(gone)
		}
	}()
	return gone, <-started
}

// died explains why a program ended by itself.
func (d *daemon) died() error {
	reason, tail := error(nil), d.LogTail()
	if strings.Contains(strings.ToLower(tail), "address already in use") {
		reason = errPortTaken
	}
	return errors.Join(fmt.Errorf("%s ended by itself (%s); its last output:\n%s", d.path, d.cmd.ProcessState, tail), reason)
}

func (d *daemon) logFile() string { return filepath.Join(d.dir, "server.log") }

// LogTail returns the last lines that the server printed, at most 2 KiB. Empty when there are none.
func (d *daemon) LogTail() string { return logTail(d.logFile()) }

// Close kills the server for good and gives its port back. The files stay.
func (d *daemon) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.port != nil {
		defer d.port.release()
	}
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
	if size, err := file.Seek(0, io.SeekEnd); err == nil {
		_, _ = file.Seek(max(0, size-limit), io.SeekStart) // else there is no tail
	}
	tail, _ := io.ReadAll(file)
	if len(tail) >= limit {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	return string(tail)
}

const (
	pollInterval = 20 * time.Millisecond
	// askTimeout bounds one question to a server that may be stopped or gone.
	askTimeout = time.Second
)

// poll asks until the answer is final or the context ends. While an answer is not final, its error names the missing part; the last one
// becomes part of the error when the context ends.
func poll(ctx context.Context, what string, ask func(ctx context.Context) (final bool, err error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, askTimeout)
		final, err := ask(once)
		cancel()
		if final {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// until adapts a check that is passed when it returns nil.
func until(check func(ctx context.Context) error) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := check(ctx)
		return err == nil, err
	}
}
