package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/numaproj-contrib/numathrottle/internal/demo/stage"
)

// A process is one mapper process.
type process struct {
	*stage.Process

	mu     sync.Mutex
	last   report
	lastAt time.Time
	fed    bool // input is offered to it
	dead   bool
	halted bool // stopped by SIGSTOP
}

// startProcess starts this program as a mapper process and opens its stream. A started process is returned even with an error.
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
	p := &process{fed: true}
	reports, lines := io.Pipe()
	p.Process, err = stage.Start(ctx, dir, j.ID, self, j.Socket, append(os.Environ(), jobVariable+"="+string(encoded)), lines)
	if p.Process == nil {
		return nil, err
	}
	go func() {
		<-p.Gone()
		_ = lines.Close()
	}()
	go func() {
		for line := bufio.NewScanner(reports); line.Scan(); {
			p.received(line.Bytes())
		}
		_ = reports.Close() // an overlong line ends the reading
	}()
	return p, err
}

// received processes one line of the process's output, and ignores lines that are not reports.
func (p *process) received(line []byte) {
	var r report
	if json.Unmarshal(line, &r) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.lastAt = r, time.Now()
}

// report returns the newest report. A process that was silent for a while holds no reliable share.
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
	return p.Kill()
}

// halt stops the process with SIGSTOP, resume continues it.
func (p *process) halt() error   { return p.signal(true, syscall.SIGSTOP) }
func (p *process) resume() error { return p.signal(false, syscall.SIGCONT) }

func (p *process) signal(halted bool, s syscall.Signal) error {
	p.mu.Lock()
	p.halted = halted
	p.mu.Unlock()
	return p.Signal(s)
}

// word is the table's text for a process that cannot report; empty for the others.
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

// end ends the process cleanly, unless it was killed.
func (p *process) end() error {
	if p.dead {
		return nil
	}
	return p.End()
}
