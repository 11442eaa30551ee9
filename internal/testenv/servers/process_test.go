package servers

import (
	"context"
	"errors"
	"net"
	"os"
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
		answers: func(context.Context, int) error { return nil },
	}
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestDaemonThatDiesIsReportedWithItsOutput(t *testing.T) {
	d := shell(t, "echo the disk is full; exit 3")
	d.answers = func(context.Context, int) error { return errors.New("no answer") }
	err := d.Restart(t.Context())
	require.ErrorContains(t, err, "the disk is full")
	require.ErrorContains(t, err, "exit status 3")
	require.NotErrorIs(t, err, errPortTaken)
	require.Zero(t, d.Pid())
}

func TestDaemonThatFindsItsPortTakenIsToldApart(t *testing.T) {
	d := shell(t, "echo 'bind: Address already in use'; exit 1")
	d.answers = func(context.Context, int) error { return errors.New("no answer") }
	require.ErrorIs(t, d.Restart(t.Context()), errPortTaken)
}

func TestDaemonThatNeverAnswersIsEnded(t *testing.T) {
	d := shell(t, "exec sleep 600")
	d.answers = func(context.Context, int) error { return errors.New("still loading") }
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := d.Restart(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "still loading")
	require.Zero(t, d.Pid())
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
	n, err := newNATS(t.Context(), t.TempDir(), nil)
	require.NoError(t, err)
	defer n.Close()
	listener, err := net.Listen("tcp4", n.client.addr())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.ErrorIs(t, n.Restart(ctx), errPortTaken)
	require.NoError(t, listener.Close())
	require.NoError(t, n.Restart(ctx), "the port is free again")
}
