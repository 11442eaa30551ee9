package servers

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shell returns a daemon that runs a script of the system's shell.
func shell(t *testing.T, script string) *daemon {
	t.Helper()
	dir := t.TempDir()
	d := &daemon{
		path:    "/bin/sh",
		args:    []string{"-c", script},
		dir:     dir,
		logFile: filepath.Join(dir, "log"),
		answers: func(context.Context, int) error { return nil },
	}
	t.Cleanup(func() { require.NoError(t, d.close()) })
	return d
}

func TestDaemonThatDiesIsReportedWithItsOutput(t *testing.T) {
	d := shell(t, "echo the disk is full; exit 3")
	d.answers = func(context.Context, int) error { return errors.New("no answer") }
	err := d.start(t.Context())
	require.ErrorContains(t, err, "the disk is full")
	require.ErrorContains(t, err, "exit status 3")
	require.NotErrorIs(t, err, errPortTaken)
	require.Zero(t, d.Pid())
}

func TestDaemonThatFindsItsPortTakenIsToldApart(t *testing.T) {
	d := shell(t, "echo 'bind: Address already in use'; exit 1")
	d.answers = func(context.Context, int) error { return errors.New("no answer") }
	require.ErrorIs(t, d.start(t.Context()), errPortTaken)
}

func TestDaemonThatNeverAnswersIsEnded(t *testing.T) {
	d := shell(t, "exec sleep 600")
	d.answers = func(context.Context, int) error { return errors.New("still loading") }
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := d.start(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "still loading")
	require.Zero(t, d.Pid())
}

func TestDaemonClosedStaysClosed(t *testing.T) {
	d := shell(t, "exec sleep 600")
	require.NoError(t, d.start(t.Context()))
	require.NotZero(t, d.Pid())
	require.NoError(t, d.close())
	require.Zero(t, d.Pid())
	require.ErrorIs(t, d.Restart(t.Context()), errNotRunning)
}

func TestProgramThatCannotBeStartedIsAnError(t *testing.T) {
	d := shell(t, "")
	d.path = filepath.Join(d.dir, "missing")
	require.ErrorIs(t, d.start(t.Context()), os.ErrNotExist)
}

func TestForeignServerOnThePortIsNotTakenForOurs(t *testing.T) {
	first, err := StartRedis(t.Context(), t.TempDir())
	if errors.Is(err, ErrNotInstalled) && os.Getenv("NUMATHROTTLE_REQUIRE_STORES") != "1" {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close()) }()
	require.NoError(t, first.checkAnswers(t.Context(), first.Pid()))
	require.ErrorIs(t, first.checkAnswers(t.Context(), first.Pid()+1), errPortTaken)
}

func TestEmbeddedServerReportsATakenPort(t *testing.T) {
	n, err := newNATS(t.Context(), "test", t.TempDir(), nil)
	require.NoError(t, err)
	defer n.Close()
	listener, err := net.Listen("tcp4", n.client.addr())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.ErrorIs(t, n.Restart(ctx), errPortTaken)
	require.False(t, n.Running())
	require.NoError(t, listener.Close())
	require.NoError(t, n.Restart(ctx), "the port is free again")
}

func TestLogTailBeginsWithAWholeLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	require.Empty(t, logTail(name), "no log yet")
	require.NoError(t, os.WriteFile(name, []byte("one\ntwo\n"), 0o600))
	require.Equal(t, "one\ntwo\n", logTail(name))

	var long strings.Builder
	for i := range 1000 {
		long.WriteString("line " + strconv.Itoa(i) + "\n")
	}
	require.NoError(t, os.WriteFile(name, []byte(long.String()), 0o600))
	tail := logTail(name)
	require.LessOrEqual(t, len(tail), 2<<10)
	require.True(t, strings.HasPrefix(tail, "line "))
	require.True(t, strings.HasSuffix(tail, "line 999\n"))
}
