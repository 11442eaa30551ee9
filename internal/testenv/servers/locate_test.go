package servers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	_, err := locate("some-server-of-ours", "some-package")
	require.ErrorIs(t, err, ErrNotInstalled)
	require.EqualError(t, err, "some-server-of-ours is not installed: on Debian, apt-get install some-package")

	program := filepath.Join(dir, "some-server-of-ours")
	require.NoError(t, os.WriteFile(program, nil, 0o600))
	_, err = locate("some-server-of-ours", "some-package")
	require.ErrorIs(t, err, ErrNotInstalled, "a file that cannot be run is no program")

	require.NoError(t, os.Chmod(program, 0o700))
	found, err := locate("some-server-of-ours", "some-package")
	require.NoError(t, err)
	require.Equal(t, program, found)
}
