package languages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/cli"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// asProxy is set in the environment of a process that is this test binary as the command numathrottle.
const asProxy = "NUMATHROTTLE_LANGUAGES_PROXY"

func TestMain(m *testing.M) {
	if os.Getenv(asProxy) == "" {
		os.Exit(m.Run())
	}
	_ = os.Unsetenv(asProxy)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := cli.New().Run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A pod is a handler and the proxy before it, in processes of their own.
type pod struct {
	kind, dir string
	command   []string // of the handler; kind, socket and server info follow
	limit     []string // flags of the proxy
}

// newPod starts both, and waits until the platform could come.
func newPod(t testing.TB, command []string, kind string, limit ...string) *pod {
	t.Helper()
	p := &pod{kind: kind, dir: dataplane.Dir(t), command: command, limit: limit}
	p.startHandler(t)
	p.startProxy(t)
	return p
}

func (p *pod) path(name string) string { return filepath.Join(p.dir, name) }
func (p *pod) socket() string          { return p.path("p.sock") }

func (p *pod) startHandler(t testing.TB) *testenv.Process {
	t.Helper()
	args := append(append([]string{}, p.command[1:]...), p.kind, p.path("h.sock"), p.path("h-info"))
	return testenv.StartProcess(t, exec.Command(p.command[0], args...))
}

func (p *pod) startProxy(t testing.TB) *testenv.Process {
	t.Helper()
	args := append([]string{
		"proxy", "handler", "--kind=" + p.kind, "--socket=" + p.socket(), "--server-info=" + p.path("p-info"),
		"--handler-socket=" + p.path("h.sock"), "--handler-server-info=" + p.path("h-info"), "--state-dir=none", "--store=static://?replicas=1",
	}, p.limit...)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	// It refuses variables that are no settings, such as those of these tests.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "NUMATHROTTLE_") })
	cmd.Env = append(cmd.Env, asProxy+"=1")
	proxy := testenv.StartProcess(t, cmd)
	for up := within(t); ; {
		if _, err := os.Stat(p.path("p-info")); err == nil {
			return proxy
		}
		select {
		case <-proxy.Gone:
			require.FailNow(t, "the proxy has ended")
		case <-up.Done():
			require.FailNow(t, "the proxy is not up")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func message(value string) dataplane.Message {
	return dataplane.Message{
		Keys: []string{"k1", "k2"}, Value: []byte(value), EventTime: time.Unix(100, 5000), Watermark: time.Unix(99, 0),
		Headers: map[string]string{"tokens": "7"},
	}
}

// A language is a handler program, and what it puts before what it was given.
type language struct {
	command []string
	says    string
	// batches is how many batches a stream is for, at most 3. onlyBatches says that its stream map does not name the
	// messages that it answers, which the platform needs.
	batches     int
	onlyBatches bool
}

// everyKind has each kind of handler do its work behind the proxy.
func (l language) everyKind(t *testing.T) {
	t.Helper()
	t.Run("map", func(t *testing.T) {
		m := dialMap(t, newPod(t, l.command, "map", "--max=1000"))
		results, err := m.Do(within(t), message("a"))
		require.NoError(t, err)
		require.Equal(t, []dataplane.Result{{Keys: []string{"k1", "k2"}, Value: []byte(l.says + "a"), Tags: []string{"7"}}}, results)
	})
	t.Run("batch map", func(t *testing.T) {
		p := newPod(t, l.command, "batchmap", "--max=1000")
		m, err := dataplane.DialBatchMap(within(t), p.socket())
		require.NoError(t, err)
		for range l.batches {
			results, err := m.Do(within(t), []dataplane.Message{message("a"), message("b")})
			require.NoError(t, err)
			require.Equal(t, l.says+"a", string(results[0][0].Value))
			require.Equal(t, l.says+"b", string(results[1][0].Value))
		}
		m.Abort()
	})
	t.Run("stream map", func(t *testing.T) {
		if l.onlyBatches {
			t.Skip("the SDK's answers have no IDs")
		}
		p := newPod(t, l.command, "mapstream", "--max=1000")
		m, err := dataplane.DialMapStream(within(t), p.socket())
		require.NoError(t, err)
		results, err := m.Do(within(t), message("a"))
		require.NoError(t, err)
		require.Len(t, results, 3)
		require.Equal(t, l.says+"a", string(results[2].Value))
		require.NoError(t, m.Close())
	})
	t.Run("sink", func(t *testing.T) {
		p := newPod(t, l.command, "sink", "--max=1000")
		k, err := dataplane.DialSink(within(t), p.socket())
		require.NoError(t, err)
		for range 3 {
			results, err := k.Do(within(t), []dataplane.Message{message("a"), message("fail")})
			require.NoError(t, err)
			require.Equal(t, dataplane.SinkSuccess, results[0].Status)
			require.Equal(t, dataplane.SinkFailure, results[1].Status)
			require.Equal(t, "as asked", results[1].Error)
		}
		require.NoError(t, k.Close())
	})
}

func dialMap(t testing.TB, p *pod) *dataplane.Map {
	t.Helper()
	m, err := dataplane.Dial(within(t), p.socket())
	require.NoError(t, err)
	t.Cleanup(m.Abort)
	return m
}

// python is the interpreter that scripts/test-deps.sh has made, with pynumaflow.
func python(t testing.TB) language {
	t.Helper()
	testkit.SkipShort(t, "it starts processes")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	interpreter := filepath.Join(root, ".bin", "pynumaflow", "bin", "python")
	if _, err := os.Stat(interpreter); err != nil {
		const missing = "pynumaflow is not there: run scripts/test-deps.sh"
		if os.Getenv(testenv.RequireStores) == "1" {
			require.FailNow(t, missing)
		}
		t.Skip(missing)
	}
	return language{command: []string{interpreter, filepath.Join(root, "internal", "languages", "python", "handler.py")}, says: "python ", batches: 3}
}

func TestPython(t *testing.T) {
	l := python(t)
	l.everyKind(t)
	t.Run("transformer", func(t *testing.T) {
		p := newPod(t, l.command, "sourcetransform", "--max=1000")
		m, err := dataplane.DialTransform(within(t), p.socket())
		require.NoError(t, err)
		results, err := m.Do(within(t), message("a"))
		require.NoError(t, err)
		require.Equal(t, "python a", string(results[0].Value))
		require.NoError(t, m.Close())
	})
}

// optional skips a test that make languages runs: what it needs takes minutes to fetch and compile.
func optional(t *testing.T) (bin string) {
	t.Helper()
	testkit.SkipShort(t, "it starts processes")
	if os.Getenv("NUMATHROTTLE_LANGUAGES") == "" {
		t.Skip("make languages runs it")
	}
	bin, err := filepath.Abs("../../.bin")
	require.NoError(t, err)
	return bin
}

func TestRust(t *testing.T) {
	bin := optional(t)
	language{command: []string{filepath.Join(bin, "rust", "release", "handler")}, says: "rust ", batches: 3}.everyKind(t)
}

func TestJava(t *testing.T) {
	bin := filepath.Join(optional(t), "java")
	classes := filepath.Join(bin, "classes") + string(os.PathListSeparator) + filepath.Join(bin, "dependency", "*")
	// numaflow-java 0.9.2 ends a stream of batches after the first, with or without the proxy.
	language{command: []string{"java", "-cp", classes, "Handler"}, says: "java ", batches: 1, onlyBatches: true}.everyKind(t)
}

// The handler sees no more than the limit, however many messages are offered.
func TestALimitIsKeptForPython(t *testing.T) {
	m := dialMap(t, newPod(t, python(t).command, "map", "--max=50", "--burst=5"))
	began := time.Now()
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			if _, err := m.Do(within(t), message("a")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, time.Since(began), time.Second, "60 messages, 50 a second and a burst of 5")
}

// Whichever side dies, every message is answered in the end, and one answer is enough. What has ended is started again, as
// the platform does: pynumaflow ends when its stream breaks.
func TestNothingIsLostWhenASideDies(t *testing.T) {
	l := python(t)
	for _, victims := range [][]string{{"handler"}, {"proxy"}, {"proxy", "handler"}} {
		t.Run(strings.Join(victims, " and "), func(t *testing.T) {
			p := &pod{kind: "map", dir: dataplane.Dir(t), command: l.command, limit: []string{"--max=200", "--burst=20"}}
			sides := map[string]*testenv.Process{"handler": p.startHandler(t), "proxy": p.startProxy(t)}
			m := dialMap(t, p)
			todo := map[string]bool{}
			for i := range 300 {
				todo[strconv.Itoa(i)] = true
			}
			kill := time.AfterFunc(300*time.Millisecond, func() {
				for _, v := range victims {
					sides[v].Kill()
				}
			})
			defer kill.Stop()
			answered := deliver(t, m, todo)
			require.Less(t, len(answered), 300, "it died in between")
			select {
			case <-m.Broken():
			case <-within(t).Done():
				require.FailNow(t, "the connection is not broken")
			}
			// A handler that lost its proxy ends or stays, as its SDK likes: then the next proxy finds it.
			if sides["handler"].Ends(5*time.Second) || victims[0] == "handler" {
				p.startHandler(t)
			}
			if victims[0] == "proxy" {
				p.startProxy(t)
			}
			for value := range answered {
				delete(todo, value)
			}
			m = dialMap(t, p)
			require.Len(t, deliver(t, m, todo), len(todo))
			require.NoError(t, m.Close())
		})
	}
}

// A handler that no call is lost at stays when its proxy is killed, and the next proxy is in front of it.
func TestAHandlerOutlivesItsProxy(t *testing.T) {
	l := python(t)
	p := &pod{kind: "map", dir: dataplane.Dir(t), command: l.command, limit: []string{"--max=200", "--burst=20"}}
	handler, proxy := p.startHandler(t), p.startProxy(t)
	proxy.Kill()
	require.False(t, handler.Ends(time.Second), "the handler has ended")
	p.startProxy(t)
	require.Len(t, deliver(t, dialMap(t, p), map[string]bool{"a": true}), 1)
}

// deliver offers messages at once, and returns those that were answered.
func deliver(t *testing.T, m *dataplane.Map, values map[string]bool) map[string]bool {
	t.Helper()
	var mu sync.Mutex
	answered := map[string]bool{}
	var all sync.WaitGroup
	for value := range values {
		all.Go(func() {
			results, err := m.Do(within(t), message(value))
			if err != nil {
				return // it is offered again
			}
			mu.Lock()
			defer mu.Unlock()
			if len(results) != 1 || string(results[0].Value) != "python "+value {
				t.Errorf("%s is answered with %v", value, results)
			}
			answered[value] = true
		})
	}
	all.Wait()
	return answered
}
