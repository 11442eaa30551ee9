package opening

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

func TestTheStateDirHasAFileForEachLimitOnARate(t *testing.T) {
	dir := t.TempDir()
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		return found
	}
	for _, c := range []Config{
		{StateDir: "none", Store: "redis://" + testenv.Redis(t).Addr()},
		{StateDir: dir, Store: "memory://takeover"},
	} {
		c.Limit, c.Pool, c.FailFast = throttle.Limit{Max: 5}, "p", c.StateDir == "none"
		th, err := Open(t.Context(), c)
		require.NoError(t, err)
		require.NoError(t, th.Close())
		require.Empty(t, files())
	}
	c := Config{StateDir: dir, Store: "redis://" + testenv.Redis(t).Addr(), FailFast: true, Pool: "pool", ID: "p"}
	slots, err := InFlight(t.Context(), 5, c)
	require.NoError(t, err)
	require.NoError(t, slots.Close())
	require.Empty(t, files(), "calls in flight of a dead process may go on")

	c.Limit = throttle.Limit{Max: 5}
	th, err := Open(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, files(), 1)
	content, err := os.ReadFile(files()[0])
	require.NoError(t, err)
	require.Contains(t, string(content), `"id":"p"`)
	require.NoError(t, th.Close())
	content, err = os.ReadFile(files()[0])
	require.NoError(t, err)
	require.Empty(t, content, "it has left: nobody has to prove anything")
}

func TestAStateDirThatCannotBeUsedIsNoError(t *testing.T) {
	var log testkit.Book
	th, err := Open(t.Context(), Config{
		Limit: throttle.Limit{Max: 5}, Pool: "p", StateDir: filepath.Join(t.TempDir(), "none"), Store: "redis://" + testenv.Redis(t).Addr(), FailFast: true,
		Logger: log.Logger(),
	})
	require.NoError(t, err)
	require.NoError(t, th.Close())
	require.Equal(t, 1, strings.Count(log.String(), "no lock in the state folder"), log.String())
}

func TestStateDirIsAnAbsolutePathOrNone(t *testing.T) {
	for dir, good := range map[string]bool{"": true, "none": true, "/x": true, "x": false, "./x": false, "off": false} {
		err := Config{StateDir: dir}.Validate()
		require.Equal(t, good, err == nil, "%q: %v", dir, err)
	}
	require.Equal(t, "none", Config{}.Effective().StateDir)
}
