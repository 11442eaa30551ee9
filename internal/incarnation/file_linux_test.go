package incarnation

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
)

// holdVariable makes this test binary a process that holds the file of a folder until it is killed.
const holdVariable = "NUMATHROTTLE_TEST_HOLDS"

func TestMain(m *testing.M) {
	if folder := os.Getenv(holdVariable); folder != "" {
		hold(folder)
		return
	}
	os.Exit(m.Run())
}

// hold holds the file, has threads in the kernel and a child that lives longer, and says so.
func hold(folder string) {
	f := New(folder, "pool", "pod-0", slog.Default())
	lastStates, held := f.Inherit()
	f.Write(lastState("killed"))
	for range 20 {
		go func() { _, _ = syscall.Read(0, make([]byte, 1)) }()
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		panic(err) // the test sees it
	}
	fmt.Println(held, len(lastStates), child.Process.Pid)
	for {
		f.Write(lastState("killed"))
	}
}

func lastState(incarnation string) protocol.LastState {
	return protocol.LastState{
		Death: driver.Death{Incarnation: incarnation, Last: driver.Ticket{Seq: 7, Nonce: 1<<64 - 1}, Unanswered: []driver.Ticket{{Seq: 8, Nonce: 1}}},
		Owes:  time.Second,
	}
}

// file is a File of one processor, and what it has logged.
func file(folder string) (*File, *bytes.Buffer) {
	var log bytes.Buffer
	return New(folder, "pool", "pod-0", slog.New(slog.NewTextHandler(&log, nil))), &log
}

// inherited gets hold of the file, which must be free.
func inherited(t *testing.T, f *File) []protocol.LastState {
	t.Helper()
	lastStates, held := f.Inherit()
	require.True(t, held)
	return lastStates
}

// die is the end of the process, as far as the file is concerned.
func (f *File) die() {
	f.lock.release()
	f.lock, f.off = nil, true
}

func TestWhoComesNextInheritsFromAProcessThatWasKilled(t *testing.T) {
	testkit.SkipShort(t, "it starts processes")
	folder := t.TempDir()
	for range 10 { // at whatever moment of its writing
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), holdVariable+"="+folder)
		stdin, err := p.StdinPipe() // nobody writes to it
		require.NoError(t, err)
		t.Cleanup(func() { _ = stdin.Close() })
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, p.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		var child int
		var held bool
		var lastStates int
		_, err = fmt.Sscan(line, &held, &lastStates, &child)
		require.NoError(t, err)
		require.True(t, held)

		next, log := file(folder)
		_, held = next.Inherit()
		require.False(t, held, "while it lives nothing is inherited")
		require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
		_, held = next.Inherit()
		require.False(t, held, "nor while it stands still")

		require.NoError(t, p.Process.Kill())
		_ = p.Wait()
		require.NoError(t, syscall.Kill(child, 0), "its child lives")
		got := inherited(t, next)
		require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
		if strings.Contains(log.String(), "cannot be read") { // killed in the middle of a write
			require.Empty(t, got)
		} else {
			require.Equal(t, lastState("killed"), got[len(got)-1])
		}
		next.Release(false)
	}
}

func TestLastStatesStandUntilTheyAreSettled(t *testing.T) {
	folder := t.TempDir()
	a, _ := file(folder)
	require.Empty(t, inherited(t, a))
	a.Write(lastState("a"))
	a.die()

	b, _ := file(folder) // it dies before the store knows
	require.Equal(t, []protocol.LastState{lastState("a")}, inherited(t, b))
	b.Write(lastState("b"))
	b.die()

	c, _ := file(folder)
	require.Equal(t, []protocol.LastState{lastState("a"), lastState("b")}, inherited(t, c))
	c.Settled()
	require.Empty(t, inherited(t, c))
	c.Write(lastState("c"))
	c.die()

	d, _ := file(folder)
	require.Equal(t, []protocol.LastState{lastState("c")}, inherited(t, d))
	d.Write(lastState("d"))
	d.Release(true) // the store was not told
	d.Release(false)
	d.Write(lastState("later"))
	_, held := d.Inherit()
	require.False(t, held)

	e, log := file(folder)
	require.Equal(t, []protocol.LastState{lastState("c"), lastState("d")}, inherited(t, e))
	e.Write(lastState("e"))
	e.Release(false)
	f, _ := file(folder)
	require.Empty(t, inherited(t, f))
	require.Empty(t, log.String())
	f.Release(false)
}

func TestAnotherPoolOrIDHasAnotherFile(t *testing.T) {
	folder := t.TempDir()
	a, _ := file(folder)
	require.Empty(t, inherited(t, a))
	a.Write(lastState("a"))
	for _, other := range []*File{New(folder, "pool", "pod-1", slog.Default()), New(folder, "pool2", "pod-0", slog.Default())} {
		require.Empty(t, inherited(t, other), "at the same time")
		other.Release(false)
	}
	a.die()
}

func TestWhatIsNotOfHereIsNotInherited(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string, f *form){
		"another boot": func(_ *testing.T, _ string, f *form) { f.Boot = "another" },
		"another pool": func(_ *testing.T, _ string, f *form) { f.Pool = "another" },
		"another ID":   func(_ *testing.T, _ string, f *form) { f.ID = "another" },
		"a copy": func(t *testing.T, path string, _ *form) {
			t.Helper()
			require.NoError(t, os.Rename(path, path+".old"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := file(t.TempDir())
			inherited(t, a)
			a.Write(lastState("a"))
			a.die()
			content, err := os.ReadFile(a.path)
			require.NoError(t, err)
			f, err := decode(content)
			require.NoError(t, err)
			spoil(t, a.path, &f)
			content, err = f.encode()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(a.path, content, 0o600))
			b, log := file(filepath.Dir(a.path))
			require.Empty(t, inherited(t, b))
			require.Empty(t, log.String())
			b.Release(false)
		})
	}
}

func TestAForeignFileIsNotBelieved(t *testing.T) {
	a, _ := file(t.TempDir())
	inherited(t, a)
	a.Write(lastState("a"))
	a.die()
	good, err := os.ReadFile(a.path)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"cut off": good[:len(good)-1], "changed": bytes.Replace(good, []byte("killed"), []byte("KILLED"), 1)[:len(good)-2],
		"no head": []byte("x"), "another's": []byte("hello\nworld\n"), "a length beyond all": []byte("numathrottle 1 00000000 99999\n{}"),
	} {
		require.NoError(t, os.WriteFile(a.path, content, 0o600))
		b, log := file(filepath.Dir(a.path))
		require.Empty(t, inherited(t, b), name)
		require.Contains(t, log.String(), "cannot be read", name)
		b.Write(lastState("b")) // and it is whole again
		b.die()
		c, _ := file(filepath.Dir(a.path))
		require.Equal(t, []protocol.LastState{lastState("b")}, inherited(t, c), name)
		c.Release(false)
	}
}

func TestAFolderThatCannotBeUsedIsToldOnce(t *testing.T) {
	folder := t.TempDir()
	link, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(dir, "elsewhere"), New(link, "pool", "pod-0", slog.Default()).path))
	require.NoError(t, os.Mkdir(New(dir, "pool", "pod-0", slog.Default()).path, 0o700))
	for name, at := range map[string]string{
		"no folder": filepath.Join(folder, "none"), "a file system without files": "/proc", "a link": link, "a folder in its place": dir,
	} {
		f, log := file(at)
		for range 3 {
			lastStates, held := f.Inherit()
			require.False(t, held, name)
			require.Empty(t, lastStates)
			f.Write(lastState("a"))
		}
		f.Release(true)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), "%s: %s", name, log.String())
		require.Contains(t, log.String(), "1.5 leases", name)
	}
}
