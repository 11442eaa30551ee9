package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
)

// A process is one mapper process with the stream that feeds it.
type process struct {
	id   string
	cmd  *exec.Cmd
	feed *dataplane.Map
	gone chan struct{} // closed when the process has ended

	mu     sync.Mutex
	last   report
	lastAt time.Time
	fed    bool // input is offered to it
	dead   bool
	halted bool // stopped by SIGSTOP
}

// startProcess starts this very program as a mapper process and opens its stream.
func startProcess(ctx context.Context, j job, dir string) (*process, error) {
	j.Socket, j.Info = filepath.Join(dir, j.ID+".sock"), filepath.Join(dir, j.ID+".info")
	encoded, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{id: j.ID, cmd: exec.CommandContext(context.WithoutCancel(ctx), self), gone: make(chan struct{}), fed: true}
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(encoded))
	logFile, err := os.Create(filepath.Join(dir, j.ID+".log"))
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr = logFile
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.heard(lines.Bytes())
		}
		_ = p.cmd.Wait()
		_ = logFile.Close()
		close(p.gone)
	}()
	p.feed, err = dataplane.Dial(ctx, j.Socket)
	if err != nil {
		return nil, fmt.Errorf("stream to mapper %s (its log: %s): %w", j.ID, logFile.Name(), err)
	}
	return p, nil
}

// heard takes one line of the process's output; what is no report is left out.
func (p *process) heard(line []byte) {
	var r report
	if json.Unmarshal(line, &r) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.lastAt = r, time.Now()
}

// report returns the newest report; a process that has not spoken for a while
// holds no share that anybody should count on.
func (p *process) report() report {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.last
	if p.dead || p.halted || time.Since(p.lastAt) > 10*reportEvery {
		r.Share = 0
	}
	return r
}

func (p *process) isFed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fed && !p.dead
}

func (p *process) setFed(fed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fed = fed
}

// kill ends the process as a crash does.
func (p *process) kill() error {
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	err := p.cmd.Process.Kill()
	<-p.gone
	p.feed.Abort()
	return err
}

// halt stops the process with SIGSTOP, resume continues it.
func (p *process) halt() error   { return p.signal(true, syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(false, syscall.SIGCONT) }

func (p *process) signal(halted bool, s syscall.Signal) error {
	p.mu.Lock()
	p.halted = halted
	p.mu.Unlock()
	return p.cmd.Process.Signal(s)
}

// word is how the table shows a process that cannot report; empty for the others.
func (p *process) word() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dead:
		return "killed"
	case p.halted:
		return "stopped"
	}
	return ""
}

// end closes the stream and ends the process in good order.
func (p *process) end() error {
	if p.dead {
		return nil
	}
	err := p.feed.Close()
	err = errors.Join(err, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
		err = errors.Join(err, fmt.Errorf("mapper %s did not end within 20 s of SIGTERM", p.id), p.cmd.Process.Kill())
		<-p.gone
	}
	return err
}
