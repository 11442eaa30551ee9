//go:build linux

package meta

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/examples/llm-map/fakellm"
	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

const (
	// socketDir contains the sockets of numaflow-go's servers. The platform mounts a volume there.
	socketDir = "/var/run/numaflow"
	authority = "/etc/ssl/certs/ca-certificates.crt"
)

// built is the folder of the programs, which buildAll compiles on first use.
var (
	built    string
	buildAll = sync.OnceValues(func() ([]byte, error) {
		return exec.Command("bash", "scripts/build.sh", built).CombinedOutput()
	})
)

// An image is the file system and the user of a program's image.
type image struct {
	root, program string
	user          syscall.Credential
	env           []string
}

// unpack makes the file system of a program's image, as the Dockerfile says. TLS trusts the authorities in it.
func unpack(t *testing.T, program string, authorities []byte) *image {
	t.Helper()
	testkit.SkipShort(t, "it builds and runs the programs")
	if os.Getuid() != 0 {
		t.Skip("only root can run a program in a root of its own")
	}
	out, err := buildAll()
	require.NoError(t, err, "%s", out)
	dockerfile, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	// The target, and the stage that all targets begin with.
	_, base, _ := strings.Cut(string(dockerfile), "\nFROM scratch AS base\n")
	base, _, _ = strings.Cut(base, "\nFROM ")
	_, stage, found := strings.Cut(string(dockerfile), "\nFROM base AS "+program+"\n")
	require.True(t, found)
	stage, _, _ = strings.Cut(stage, "\nFROM ")
	stage = base + "\n" + stage
	require.Contains(t, stage, `ENTRYPOINT ["/`+program+`"]`)

	folder, err := os.MkdirTemp("", "n") //nolint:usetesting // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	require.NoError(t, os.Chmod(folder, 0o755))
	i := &image{root: folder, program: program}
	for _, line := range regexp.MustCompile(`(?m)^(COPY --from=build|USER|ENV) (\S+)(?: (\S+))?$`).FindAllStringSubmatch(stage, -1) {
		switch line[1] {
		case "USER":
			uid, gid, _ := strings.Cut(line[2], ":")
			user, err := strconv.ParseUint(uid, 10, 32)
			require.NoError(t, err, "Kubernetes takes a name for root")
			group, err := strconv.ParseUint(gid, 10, 32)
			require.NoError(t, err)
			i.user = syscall.Credential{Uid: uint32(user), Gid: uint32(group)}
		case "ENV":
			i.env = append(i.env, line[2])
		default:
			content := authorities
			if line[2] != authority {
				content, err = os.ReadFile(filepath.Join(built, strings.TrimPrefix(line[2], "/out/")))
				require.NoError(t, err)
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(folder+line[3]), 0o755))
			require.NoError(t, os.WriteFile(folder+line[3], content, 0o755))
		}
	}
	require.NotZero(t, i.user.Uid)
	require.FileExists(t, folder+authority)
	require.NoError(t, os.MkdirAll(folder+socketDir, 0o755))
	require.NoError(t, os.Chmod(folder+socketDir, 0o777)) // as an emptyDir has
	return i
}

// command returns a run of the program in its root, which ends with the test.
func (i *image) command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/"+i.program, args...)
	cmd.Dir, cmd.Env = "/", slices.Concat(env, i.env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: i.root, Credential: &i.user, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// soon is the time in which a program must listen.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// The programs are static: they need no loader and no library.
func TestProgramsAreStatic(t *testing.T) {
	testkit.SkipShort(t, "it builds the programs")
	out, err := buildAll()
	require.NoError(t, err, "%s", out)
	for _, program := range []string{"llm-map", "http-sink", "numathrottle"} {
		f, err := elf.Open(filepath.Join(built, program))
		require.NoError(t, err)
		for _, segment := range f.Progs {
			require.NotContains(t, []elf.ProgType{elf.PT_INTERP, elf.PT_DYNAMIC}, segment.Type, program)
		}
		require.NoError(t, f.Close())
	}
}

// Without a loader, a shell and any other file, the programs know their version and check their settings.
func TestVersionAndCheck(t *testing.T) {
	for program, settings := range map[string][]string{
		"llm-map":      {"LLM_MAP_MODEL=m", "LLM_MAP_API_KEY=secret", "NUMATHROTTLE_POOL=a/b"},
		"http-sink":    {"HTTP_SINK_URL=https://example.com", "HTTP_SINK_BEARER_TOKEN=secret", "NUMATHROTTLE_POOL=a/b"},
		"numathrottle": {"NUMATHROTTLE_STORE=redis://:secret@h", "NUMATHROTTLE_POOL=a/b"},
	} {
		i := unpack(t, program, nil)
		out, err := i.command(t, nil, "--version").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, `^`+program+` .*go1\..*linux/\w+\)\n$`, string(out))
		check := "--check"
		if program == "numathrottle" {
			check = "check"
		}
		out, err = i.command(t, settings, check).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "a/b")
		require.NotContains(t, string(out), "secret")
	}
}

// http-sink serves on its socket, has the time zones, and sends over TLS only to a service whose authority is in the image.
func TestHTTPSink(t *testing.T) {
	received := make(chan string, 10)
	service := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- string(body)
	}))
	defer service.Close()
	known := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})
	for want, authorities := range map[dataplane.SinkStatus][]byte{dataplane.SinkSuccess: known, dataplane.SinkFailure: nil} {
		i := unpack(t, "http-sink", authorities)
		var log bytes.Buffer
		cmd := i.command(t, []string{
			"HTTP_SINK_URL=" + service.URL, "HTTP_SINK_ALLOW_ADDRESSES=loopback", "HTTP_SINK_MAX_ATTEMPTS=1", "HTTP_SINK_FAIL_DELAY=1ms",
			"NUMATHROTTLE_MAX=1000", "NUMATHROTTLE_STORE=static://?replicas=1", "NUMAFLOW_POD=p", "TZ=Asia/Kolkata",
		})
		cmd.Stdout, cmd.Stderr = &log, &log
		require.NoError(t, cmd.Start())
		sink, err := dataplane.DialSink(soon(t), i.root+socketDir+"/sink.sock")
		require.NoError(t, err)
		results, err := sink.Do(t.Context(), []dataplane.Message{{Value: []byte("hello")}})
		require.NoError(t, err)
		require.Equal(t, want, results[0].Status, results[0])
		require.NoError(t, sink.Close())
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "%s", &log)
		require.Regexp(t, `time=\S+\+05:30 level=INFO`, log.String(), "the program has no time zones")
	}
	require.Equal(t, "hello", <-received)
}

// llm-map serves on its socket, and answers with what a provider says.
func TestLLMMap(t *testing.T) {
	provider, err := fakellm.New(fakellm.Config{APIKey: "secret"})
	require.NoError(t, err)
	service := httptest.NewServer(provider)
	defer service.Close()
	i := unpack(t, "llm-map", nil)
	var log bytes.Buffer
	cmd := i.command(t, []string{
		"LLM_MAP_BASE_URL=" + service.URL + "/v1", "LLM_MAP_MODEL=m", "LLM_MAP_API_KEY=secret", "LLM_MAP_REQUESTS_PER_MINUTE=60000",
		"NUMATHROTTLE_STORE=static://?replicas=1", "NUMAFLOW_POD=p",
	})
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	mapper, err := dataplane.Dial(soon(t), i.root+socketDir+"/map.sock")
	require.NoError(t, err)
	results, err := mapper.Do(t.Context(), dataplane.Message{Value: []byte("hello")})
	require.NoError(t, err)
	require.Contains(t, string(results[0].Value), `"text":"hello`)
	require.NoError(t, mapper.Close())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", &log)
}
