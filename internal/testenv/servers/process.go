package servers

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is one running child. It is reaped by a goroutine of its own.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when the child has been reaped; cmd.ProcessState then says how it ended
}

// spawn starts a program with its output appended to logFile, and env added to this process's environment.
func spawn(path string, args, env []string, dir, logFile string) (*process, error) {
	output, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", path, err)
	}
	defer output.Close()

	p := &process{
		cmd: &exec.Cmd{
			Path:        path,
			Args:        append([]string{path}, args...),
			Env:         append(os.Environ(), env...),
			Dir:         dir,
			Stdout:      output,
			Stderr:      output,
			SysProcAttr: childAttributes(),
		},
		gone: make(chan struct{}),
	}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return p, nil
}

// run starts the child and waits for its end. The parent-death signal follows the thread that started the child, so
// that thread is held here until the child is gone.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // its error only repeats the ProcessState
	close(p.gone)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// kill ends the child with SIGKILL, which also ends one that was stopped, and waits until it has been reaped.
func (p *process) kill() error {
	if p.alive() {
		if err := p.cmd.Process.Kill(); err != nil && p.alive() {
			return fmt.Errorf("kill %s (pid %d): %w", p.cmd.Path, p.pid(), err)
		}
	}
	<-p.gone
	return nil
}
