package stopnotice_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/stopnotice"
)

func TestSeen(t *testing.T) {
	dir := t.TempDir()
	seen := make(chan bool, 1)
	go func() { seen <- stopnotice.Seen(t.Context(), dir) }()
	require.NoError(t, stopnotice.Post(dir))
	require.NoError(t, stopnotice.Post(dir), "a second time is no fault")
	select {
	case got := <-seen:
		require.True(t, got)
	case <-time.After(10 * time.Second):
		t.Fatal("the notice was not seen")
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, stopnotice.Seen(ended, dir), "it is there, whoever looks")
	require.NoError(t, stopnotice.Clear(dir))
	require.NoError(t, stopnotice.Clear(dir), "there is none any more")
	require.False(t, stopnotice.Seen(ended, dir))
}

func TestTheFolderIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	require.ErrorContains(t, stopnotice.Post(missing), missing)
	require.ErrorContains(t, stopnotice.Clear(missing), missing)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, stopnotice.Seen(ended, missing))
}
