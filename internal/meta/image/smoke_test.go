//go:build linux

package image

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/short"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
)

const smokeTimeout = time.Minute

// socketDir is where numaflow-go's servers have their sockets, and the platform mounts a volume.
const socketDir = "/var/run/numaflow"

// A container is an image's file system with the folder that the platform mounts.
type container struct {
	recipe

	root, sockets string
}

// unpack makes the file system of a program's image as the Dockerfile says. authorities is what TLS
// trusts in it.
func unpack(t *testing.T, program string, authorities []byte) *container {
	t.Helper()
	c := &container{recipe: recipeOf(t, parseDockerfile(t), program), root: filepath.Join(t.TempDir(), "root")}
	for at, from := range c.files {
		content := authorities
		if from == "/out/"+program {
			var err error
			content, err = os.ReadFile(filepath.Join(build(t, own), program))
			require.NoError(t, err)
		} else {
			require.Equal(t, "/etc/ssl/certs/ca-certificates.crt", from, "where the build stage has it")
		}
		path := filepath.Join(c.root, at)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, content, 0o755))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(c.root, socketDir), 0o755))
	var err error
	c.sockets, err = os.MkdirTemp("", "n") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(c.sockets)) })
	require.NoError(t, os.Chmod(c.sockets, 0o777)) // as an emptyDir is
	return c
}

// command returns what runs the program in its root.
func (c *container) command(ctx context.Context, t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	encoded, err := json.Marshal(bareRoot{
		Root: c.root, Writable: c.sockets, At: socketDir, User: c.user, Args: append(c.entrypoint, args...), Env: append(env, c.env...),
	})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = []string{bareRootVariable + "=" + string(encoded)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if !mayMount() {
		uid, gid, err := (&bareRoot{User: c.user}).ids()
		require.NoError(t, err)
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT}
	}
	return cmd
}

// mayMount tells whether this process may have a mount namespace without a user namespace.
var mayMount = sync.OnceValue(func() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	return os.Getuid() == 0 && cmd.Run() == nil
})

// requireNamespaces skips the test where no bare root can be had.
func requireNamespaces(t *testing.T) {
	t.Helper()
	if mayMount() {
		return
	}
	cmd := exec.CommandContext(t.Context(), "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUSER}
	if err := cmd.Run(); err != nil {
		t.Skipf("a bare root needs root, or user namespaces for everyone (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces): %v", err)
	}
}

// output runs the program to its end and returns what it prints.
func (c *container) output(t *testing.T, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), smokeTimeout)
	defer cancel()
	out, err := c.command(ctx, t, env, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestVersionAndCheckInABareRoot(t *testing.T) {
	short.Skip(t, "it builds and runs the programs")
	requireNamespaces(t)
	settings := map[string][]string{
		"llm-map":      {"LLM_MAP_MODEL=m", "LLM_MAP_API_KEY=secret", "NUMATHROTTLE_POOL=a/b"},
		"http-sink":    {"HTTP_SINK_URL=https://example.com", "HTTP_SINK_BEARER_TOKEN=secret", "NUMATHROTTLE_POOL=a/b"},
		"numathrottle": {"NUMATHROTTLE_STORE=redis://:secret@h", "NUMATHROTTLE_POOL=a/b"},
	}
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			c := unpack(t, program, nil)
			require.Regexp(t, `^`+program+` .*go1\..*linux/`+own+`\)\n$`, c.output(t, nil, "--version"))
			check := "--check"
			if program == "numathrottle" {
				check = "check"
			}
			out := c.output(t, settings[program], check)
			require.Contains(t, out, "a/b")
			require.NotContains(t, out, "secret")
		})
	}
}

// The command finds its way to a store.
func TestCommandInABareRoot(t *testing.T) {
	short.Skip(t, "it builds and runs the programs")
	requireNamespaces(t)
	ctx, cancel := context.WithTimeout(t.Context(), smokeTimeout)
	defer cancel()
	store := testenv.NATS(t)
	c := unpack(t, "numathrottle", nil)
	out, err := c.command(ctx, t, []string{"NUMATHROTTLE_STORE=" + store.URL()}, "status", "--pool=nobody/here").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `numathrottle status: the pool "nobody/here" has no record; the store has no pool at all`)
}

// serving is a program that serves, with what it has written so far.
type serving struct {
	cmd *exec.Cmd
	log *lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// serve starts the program, in a time zone far from here.
func (c *container) serve(ctx context.Context, t *testing.T, env ...string) *serving {
	t.Helper()
	s := &serving{cmd: c.command(ctx, t, append(env, "TZ=Asia/Kolkata")), log: &lockedBuffer{}}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // if it has not ended
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("the program's log:\n%s", s.log)
		}
	})
	return s
}

// end ends it as the platform does.
func (s *serving) end(t *testing.T) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.cmd.Wait(), "it ends in good order")
	require.Regexp(t, `time=\S+\+05:30 level=INFO`, s.log, "the program has the time zones")
}

// http-sink sends a message over TLS to a service whose authority is one of the image's.
func TestHTTPSinkInABareRoot(t *testing.T) {
	short.Skip(t, "it builds and runs the programs")
	requireNamespaces(t)
	received := make(chan string, 10)
	service := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		received <- string(body)
		if err != nil {
			received <- err.Error()
		}
	}))
	defer service.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})
	for name, c := range map[string]struct {
		authorities []byte
		want        dataplane.SinkStatus
	}{"a known authority": {authority, dataplane.SinkSuccess}, "an unknown one": {nil, dataplane.SinkFailure}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), smokeTimeout)
			defer cancel()
			image := unpack(t, "http-sink", c.authorities)
			s := image.serve(ctx, t, "HTTP_SINK_URL="+service.URL, "HTTP_SINK_ALLOW_ADDRESSES=loopback", "HTTP_SINK_MAX_ATTEMPTS=1",
				"HTTP_SINK_FAIL_DELAY=1ms", "NUMATHROTTLE_MAX=1000", "NUMATHROTTLE_STORE=static://?replicas=1", "NUMAFLOW_POD=p")
			sink, err := dataplane.DialSink(ctx, filepath.Join(image.sockets, "sink.sock"))
			require.NoError(t, err)
			results, err := sink.Do(ctx, []dataplane.Message{{Value: []byte("hello")}})
			require.NoError(t, err)
			require.Equal(t, c.want, results[0].Status, results[0])
			if c.want == dataplane.SinkSuccess {
				require.Equal(t, "hello", <-received)
			}
			require.NoError(t, sink.Close())
			s.end(t)
			_, err = os.Stat(filepath.Join(image.sockets, "sinker-server-info"))
			require.True(t, err == nil || errors.Is(err, os.ErrNotExist))
		})
	}
}

// llm-map answers a message with what a model says.
func TestLLMMapInABareRoot(t *testing.T) {
	short.Skip(t, "it builds and runs the programs")
	requireNamespaces(t)
	provider, err := fakellm.New(fakellm.Config{Provider: fakellm.SelfHosted, RequestsPerMinute: 600, Slice: time.Minute})
	require.NoError(t, err)
	server := httptest.NewServer(provider)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), smokeTimeout)
	defer cancel()
	image := unpack(t, "llm-map", nil)
	s := image.serve(ctx, t, "LLM_MAP_PROVIDER=self-hosted", "LLM_MAP_BASE_URL="+server.URL+"/v1", "LLM_MAP_MODEL=m", "LLM_MAP_MAX_TOKENS=10",
		"LLM_MAP_REQUESTS_PER_MINUTE=60000", "NUMATHROTTLE_STORE=static://?replicas=1", "NUMAFLOW_POD=p")
	mapper, err := dataplane.Dial(ctx, filepath.Join(image.sockets, "map.sock"))
	require.NoError(t, err)
	results, err := mapper.Do(ctx, dataplane.Message{Value: []byte("hello")})
	require.NoError(t, err)
	require.Len(t, results, 1)
	var answer struct {
		Text string `json:"text"`
	}
	require.NoError(t, json.Unmarshal(results[0].Value, &answer), "%s", results[0].Value)
	require.NotEmpty(t, answer.Text, "%s", results[0].Value)
	require.NoError(t, mapper.Close())
	s.end(t)
	require.Equal(t, 1, provider.Stats().Served)
}
