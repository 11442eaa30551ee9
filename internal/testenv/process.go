package testenv

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv/servers"
)

// A Process is a program that a test has started. It is killed at the end of the test, which shows its last lines when it has failed.
type Process struct {
	*exec.Cmd

	// Gone is closed when it has ended; ProcessState then says how.
	Gone <-chan struct{}
	log  string
}

// Self returns this test binary as a program with these variables more. TestMain decides by them which program it is.
func Self(tb testing.TB, env ...string) *exec.Cmd {
	tb.Helper()
	self, err := os.Executable()
	require.NoError(tb, err)
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), self) // the test ends it
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// StartProcess starts a program, whose output goes to a file among the artifacts of the test.
func StartProcess(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	log, err := os.CreateTemp(tb.ArtifactDir(), "process-*.log")
	require.NoError(tb, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	p := &Process{Cmd: cmd, log: log.Name()}
	p.Gone, err = servers.StartChild(cmd)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		p.Kill()
		if out := p.Output(); tb.Failed() {
			tb.Logf("last lines of process %d:\n%s", cmd.Process.Pid, out[max(0, len(out)-2000):])
		}
	})
	return p
}

// Output returns what the process has printed.
func (p *Process) Output() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Kill ends the process with SIGKILL, also a stopped one, if it still runs.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.Gone
}

// Wait waits for the end of the process. It fails unless its code is 0.
func (p *Process) Wait() error {
	if <-p.Gone; !p.ProcessState.Success() {
		return &exec.ExitError{ProcessState: p.ProcessState}
	}
	return nil
}

// Ends reports whether the process ends within that time, or has ended.
func (p *Process) Ends(within time.Duration) bool {
	select {
	case <-p.Gone:
		return true
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.Gone:
		return true
	case <-timer.C:
		return false
	}
}
