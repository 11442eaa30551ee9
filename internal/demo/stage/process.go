package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// endTimeout bounds the time to end after SIGTERM.
const endTimeout = 20 * time.Second

// A Process is a process that serves a map, with the stream that feeds it.
type Process struct {
	ID   string
	Feed *dataplane.Map

	cmd  *exec.Cmd
	log  string
	gone chan struct{} // closed when the process has ended
}

// Start starts a binary that serves a map at a socket, with only these variables. Its output goes to a log below dir, except that its
// standard output goes to out if that is not nil. ctx bounds the time until it can be fed. A started process is returned even with an
// error, so that it can be killed.
func Start(ctx context.Context, dir, id, binary, socket string, env []string, out io.Writer) (*Process, error) {
	p := &Process{
		ID: id, cmd: exec.CommandContext(context.WithoutCancel(ctx), binary),
		log: filepath.Join(dir, id+".log"), gone: make(chan struct{}),
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, log, log
	if out != nil {
		p.cmd.Stdout = out
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // End checks the code
		_ = log.Close()
	}()
	if p.Feed, err = dataplane.Dial(ctx, socket); err != nil {
		return p, fmt.Errorf("stream to %s: %w; its log:\n%s", id, err, p.logTail())
	}
	return p, nil
}

// Gone returns a channel that is closed when the process has ended.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the process as a crash does, if it still runs.
func (p *Process) Kill() error {
	select {
	case <-p.gone:
		return nil
	default:
	}
	err := p.cmd.Process.Kill()
	<-p.gone
	if p.Feed != nil {
		p.Feed.Abort()
	}
	return err
}

// End closes the stream and ends the process cleanly.
func (p *Process) End() error {
	err := errors.Join(p.Feed.Close(), p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.gone:
	case <-time.After(endTimeout):
		return errors.Join(err, fmt.Errorf("%s did not end within %s of SIGTERM", p.ID, endTimeout), p.Kill())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		err = errors.Join(err, fmt.Errorf("%s ended with code %d; its log:\n%s", p.ID, code, p.logTail()))
	}
	return err
}

// logTail returns the end of the process's log.
func (p *Process) logTail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-2000):])
}
