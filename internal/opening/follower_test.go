package opening

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A mounted is a ConfigMap as a kubelet mounts it: the file is a link into ..data, which is a link that is replaced.
type mounted struct {
	dir  string
	path string
	n    int
}

func mount(t *testing.T, content string) *mounted {
	t.Helper()
	m := &mounted{dir: t.TempDir()}
	m.path = filepath.Join(m.dir, "config.yaml")
	m.update(t, content)
	require.NoError(t, os.Symlink(filepath.Join("..data", "config.yaml"), m.path))
	return m
}

// update replaces the content as a kubelet does: a new folder, and the link to it in one step.
func (m *mounted) update(t *testing.T, content string) {
	t.Helper()
	m.n++
	folder := fmt.Sprintf("..2026_11_29_%d", m.n)
	require.NoError(t, os.Mkdir(filepath.Join(m.dir, folder), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, folder, "config.yaml"), []byte(content), 0o600))
	require.NoError(t, os.Symlink(folder, filepath.Join(m.dir, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
}

// A pod is a process with a limiter of FromEnv.
type pod struct {
	*throttle.Throttle

	logs *testkit.Book
}

// start is FromEnv for a pod of that name.
func (m *mounted) start(t *testing.T, id string, environ ...string) pod {
	t.Helper()
	logs := &testkit.Book{}
	environ = append(environ, "NUMATHROTTLE_CONFIG="+m.path, "NUMATHROTTLE_ID="+id)
	th, err := fromEnviron(t.Context(), environ, m.path, NewLogger(&Config{}, logs, 0))
	require.NoError(t, err)
	t.Cleanup(func() { _ = th.Close() })
	return pod{th, logs}
}

// granted is the ceiling, in tokens per second.
func (p pod) granted() float64 { s := p.Status(); return s.Ceiling() }

// inForce is the longest that a changed file needs until it is in force, once it is there.
const inForce = 15 * time.Second

func inMemory(t *testing.T) string {
	t.Helper()
	return "memory://" + strings.ReplaceAll(t.Name(), "/", "-")
}

// A changed file is in force in all pods, whatever the kubelet has told them yet, and an operator's override counts before it.
func TestChangedFile(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\n" + more }
	synctest.Test(t, func(t *testing.T) {
		a, b := mount(t, content("max: 100\n")), mount(t, content("max: 100\n"))
		pa, pb := a.start(t, "a"), b.start(t, "b")
		time.Sleep(time.Minute)
		for _, tokens := range []int{50, 400} {
			a.update(t, content(fmt.Sprintf("max: %d\nper: 2s\n", tokens)))
			time.Sleep(inForce)
			require.InDelta(t, tokens/2, pa.granted(), 1e-6)
			require.InDelta(t, tokens/2, pb.granted(), 1e-6)
		}
		require.Equal(t, 2, strings.Count(pa.logs.String(), "the settings file has changed"))
		require.Equal(t, 2, strings.Count(pb.logs.String(), "the pool goes by a changed settings file"), pb.logs)
		require.NotContains(t, pa.logs.String()+pb.logs.String(), "restart needed")

		s := openMemory(strings.TrimPrefix(inMemory(t), "memory://"))
		require.NoError(t, protocol.SaveOverride(t.Context(), s, "p", protocol.Override{Max: 7, Per: time.Second}))
		a.update(t, content("max: 300\n"))
		time.Sleep(inForce)
		require.InDelta(t, 7, pb.granted(), 1e-6)
		require.NoError(t, protocol.ClearOverride(t.Context(), s, "p"))
		time.Sleep(inForce)
		require.InDelta(t, 300, pb.granted(), 1e-6)

		b.update(t, content("max: 400\nper: 2s\n")) // an older one, late
		time.Sleep(inForce)
		require.InDelta(t, 300, pa.granted(), 1e-6)
	})
}

// A content that is there for one look only was being written, and does not count.
func TestContentOfOneMomentDoesNotCount(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\n" + more }
	synctest.Test(t, func(t *testing.T) {
		m := mount(t, content("max: 100\n"))
		p := m.start(t, "a")
		time.Sleep(10*lookEvery + lookEvery/2) // between two looks
		m.update(t, content("max: 3\n"))
		time.Sleep(lookEvery)
		m.update(t, content("max: 300\n"))
		time.Sleep(inForce)
		require.InDelta(t, 300, p.granted(), 1e-6)
		require.Equal(t, 1, strings.Count(p.logs.String(), "the settings file has changed"), p.logs)
	})
}

// A file that cannot be used changes nothing, and is logged once for each content. No secret is logged.
func TestInvalidFileChangesNothing(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\n" + more }
	synctest.Test(t, func(t *testing.T) {
		m := mount(t, content("max: 100\nquotas: {tags: {acme: {total: 50}}}\n"))
		p := m.start(t, "a")
		time.Sleep(time.Minute)
		for i, bad := range []string{
			content("max: many\n"), content("max: 10\nbanana: 1\n"), "max: [", "", content("max: 10\nstorePassword: \"hunter2\\x01canary\"\n"),
			content("max: 10\nquotas: {tags: {acme: {reserved: 5000}}}\n"), content("max: 10\nstorePassword: hunter2canary\n"),
			content("max: 10\nstore: redis://u:hunter2canary@h:x\n"), content("max: 10\n" + strings.Repeat("#", 2<<20)),
		} {
			m.update(t, bad)
			time.Sleep(time.Minute)
			require.InDelta(t, 100, p.granted(), 1e-6, "%.100s", bad)
			require.Equal(t, i+1, strings.Count(p.logs.String(), "the settings file cannot be used"), "%.100s\n%s", bad, p.logs)
		}
		require.NotContains(t, p.logs.String(), "canary")
		require.NoError(t, os.Remove(m.path))
		time.Sleep(time.Minute)
		require.InDelta(t, 100, p.granted(), 1e-6)
		require.NoError(t, os.Symlink(filepath.Join("..data", "config.yaml"), m.path))
		m.update(t, content("max: 30\nquotas: {tags: {acme: {total: 20}}}\n"))
		time.Sleep(inForce)
		require.InDelta(t, 30, p.granted(), 1e-6)
		require.Contains(t, p.logs.String(), "the settings file can be used again")
	})
}

// Quotas of a changed file are those of all pods, with an operator's change of one tag over them.
func TestQuotasOfAChangedFile(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\nmax: 1000\n" + more }
	synctest.Test(t, func(t *testing.T) {
		before := content("quotas: {tags: {acme: {total: 50}}, match: [{tag: 'free-*', total: 10}], other: {total: 5}}\n")
		a, b := mount(t, before), mount(t, before)
		a.start(t, "a")
		pb := b.start(t, "b")
		total := func(tag string) float64 { return taken(t, pb, tag) }
		time.Sleep(30 * time.Second)
		require.InDelta(t, 50, total("acme"), 5)
		a.update(t, content("quotas: {tags: {acme: {total: 20}, beta: {total: 30}}, match: [{tag: 'free-*', total: 40}]}\n"))
		time.Sleep(inForce)
		require.InDelta(t, 20, total("acme"), 3)
		require.InDelta(t, 30, total("beta"), 3)
		require.InDelta(t, 40, total("free-x"), 4)
		require.Greater(t, total("stranger"), 100.0)

		s := openMemory(strings.TrimPrefix(inMemory(t), "memory://"))
		require.NoError(t, protocol.SaveQuota(t.Context(), s, "p", "acme", &throttle.Quota{Total: 7}, false))
		time.Sleep(inForce)
		require.InDelta(t, 7, total("acme"), 2)
		require.InDelta(t, 30, total("beta"), 3)
		require.NoError(t, protocol.SaveQuota(t.Context(), s, "p", "acme", nil, false))
		time.Sleep(inForce)
		require.InDelta(t, 20, total("acme"), 3)
	})
}

// taken is the rate at which a tag gets tokens that it asks for all the time, over twenty seconds.
func taken(t *testing.T, p pod, tag string) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	n, began := 0, time.Now().Add(10*time.Second)
	for {
		permit, err := p.ForTag(tag).Acquire(ctx, 1)
		if err != nil {
			return float64(n) / 20
		}
		if permit.N() > 0 && time.Now().After(began) {
			n++
		}
	}
}

// What cannot change without a restart is named once, and the rest counts all the same.
func TestRestartNeeded(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\n" + more }
	synctest.Test(t, func(t *testing.T) {
		m := mount(t, content("max: 100\nburst: 10\n"))
		p := m.start(t, "a")
		time.Sleep(time.Minute)
		const line = "restart needed"
		m.update(t, content("max: 50\nburst: 5\nhealthAddr: ':8085'\nstorePassword: hunter2canary\nstoreUsername: u\n"))
		time.Sleep(inForce)
		require.NotContains(t, p.logs.String(), line, "a password is not for a store in memory: the file is at fault")
		m.update(t, content("max: 50\nburst: 5\nlease: 5s\nquotas: {tags: {acme: {total: 5}}}\n"))
		time.Sleep(time.Minute)
		require.InDelta(t, 50, p.granted(), 1e-6)
		require.Equal(t, 1, strings.Count(p.logs.String(), line))
		require.Contains(t, p.logs.String(), `settings="burst, lease, quotas"`)
		m.update(t, content("max: 200\nburst: 10\n"))
		time.Sleep(inForce)
		require.InDelta(t, 200, p.granted(), 1e-6)
		require.Contains(t, p.logs.String(), `settings=burst`, "a set burst follows the limit in proportion until the restart")
		m.update(t, content("max: 100\nburst: 10\n# a remark\n"))
		time.Sleep(inForce)
		require.Equal(t, 2, strings.Count(p.logs.String(), line), p.logs)
		require.NotContains(t, p.logs.String(), "canary")
	})
}

// The log level of the file counts in all pods.
func TestLogLevelOfAChangedFile(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\nmax: 10\n" + more }
	synctest.Test(t, func(t *testing.T) {
		a, b := mount(t, content("")), mount(t, content(""))
		a.start(t, "a")
		pb := b.start(t, "b")
		logs := func(word string) bool { return strings.Contains(pb.logs.String(), word) }
		time.Sleep(30 * time.Second)
		s := openMemory(strings.TrimPrefix(inMemory(t), "memory://"))
		order := func(tokens int) {
			require.NoError(t, protocol.SaveOverride(t.Context(), s, "p", protocol.Override{Max: tokens, Per: time.Second}))
			time.Sleep(inForce)
		}
		order(5)
		require.True(t, logs("max=5"))
		a.update(t, content("logLevel: warn\n"))
		time.Sleep(inForce)
		order(6)
		require.False(t, logs("max=6"))
		a.update(t, content(""))
		time.Sleep(inForce)
		order(7)
		require.True(t, logs("max=7"))
	})
}

// A variable counts before the file, and without a file nothing is followed.
func TestVariablesCountBeforeTheFile(t *testing.T) {
	content := func(more string) string { return "store: " + inMemory(t) + "\npool: p\n" + more }
	synctest.Test(t, func(t *testing.T) {
		m := mount(t, content("max: 100\n"))
		p := m.start(t, "a", "NUMATHROTTLE_MAX=20")
		time.Sleep(time.Minute)
		m.update(t, content("max: 300\n"))
		time.Sleep(inForce)
		require.InDelta(t, 20, p.granted(), 1e-6)
	})
	require.Nil(t, Follow(t.Context(), Following[*Config]{}, &Config{}, nil))
}

// Two configurations differ by a secret that no print shows.
func TestSecretsThatDiffer(t *testing.T) {
	a, b := Config{StorePassword: NewSecret("one")}, Config{StorePassword: NewSecret("other")}
	require.Equal(t, []string{"storePassword"}, config.Changed(fields, &a, &b))
	require.Empty(t, config.Changed(fields, &a, &a))
}
