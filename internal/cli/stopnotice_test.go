package cli

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/stopnotice"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/memstore"
)

func TestStopNotice(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, stopnotice.Post(dir), "an old one, of a container that was stopped alone")
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	c := &CLI{Out: in, Err: io.Discard}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, []string{"stop-notice", "--dir", dir}) }()
	line := make([]byte, 200)
	n, err := out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "waiting for SIGTERM, then "+stopnotice.Path(dir)+" is written\n", string(line[:n]))
	require.NoFileExists(t, stopnotice.Path(dir), "the old one is gone")
	stop()
	require.NoError(t, <-ended)
	require.FileExists(t, stopnotice.Path(dir))

	tm := newTerminal(memstore.New())
	_, err = tm.run(t, "stop-notice", "--dir=here")
	require.ErrorContains(t, err, `dir is "here" (--dir), allowed: an absolute path`)
	missing := filepath.Join(dir, "missing")
	_, err = tm.run(t, "stop-notice", "--dir", missing)
	require.ErrorContains(t, err, missing)
}
