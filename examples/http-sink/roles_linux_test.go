package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle/internal/dataplane"
	"github.com/numaproj-contrib/numathrottle/internal/testenv"
	"github.com/numaproj-contrib/numathrottle/internal/testkit"
)

// socketDir is where numaflow-go's servers have their sockets, and the platform mounts a volume for the containers
// of a pod.
const socketDir = "/var/run/numaflow"

// volumeVariable makes this binary an http-sink, with the folder that it names mounted at socketDir.
const volumeVariable = "HTTPSINKTEST_VOLUME"

func TestMain(m *testing.M) {
	volume := os.Getenv(volumeVariable)
	if volume == "" {
		os.Exit(m.Run())
	}
	if err := mountVolume(volume); err != nil {
		panic(err)
	}
	_ = os.Unsetenv(volumeVariable)
	main()
}

// mountVolume needs a mount namespace of its own.
func mountVolume(volume string) error {
	run := filepath.Dir(socketDir)
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), // nothing of this is seen outside
		syscall.Mount("tmpfs", run, "tmpfs", 0, ""),
	); err != nil {
		return os.NewSyscallError("mount "+run, err)
	}
	if err := os.Mkdir(socketDir, 0o700); err != nil {
		return err
	}
	return os.NewSyscallError("mount "+socketDir, syscall.Mount(volume, socketDir, "", syscall.MS_BIND, ""))
}

// inPod returns what runs an http-sink with a volume, with nothing else of this process' environment than what is given.
func inPod(t *testing.T, volume string, vars ...string) *exec.Cmd {
	t.Helper()
	testkit.SkipShort(t, "it starts processes")
	cmd := testenv.Self(t)
	cmd.Env = append([]string{volumeVariable + "=" + volume}, vars...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// newVolume returns a folder for sockets. The test is skipped where no process may mount it.
func newVolume(t *testing.T) string {
	t.Helper()
	volume := dataplane.Dir(t)
	probe := inPod(t, volume)
	probe.Args = append(probe.Args, "--version")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("a volume needs root, or user namespaces for everyone: %v: %s", err, out)
	}
	return volume
}

// startContainer starts an http-sink in a role of a vertex.
func startContainer(t *testing.T, volume, role string, vars ...string) *testenv.Process {
	t.Helper()
	return testenv.StartProcess(t, inPod(t, volume, append([]string{
		"NUMAFLOW_UD_CONTAINER_TYPE=" + role, "NUMAFLOW_NAMESPACE=ns", "NUMAFLOW_PIPELINE_NAME=p", "NUMAFLOW_VERTEX_NAME=v", "NUMAFLOW_POD=pod-0",
		"HTTP_SINK_ALLOW_ADDRESSES=loopback", "NUMATHROTTLE_MAX=1000",
	}, vars...)...))
}

// Three containers of one pod are the same program with the same settings but for the service. Each serves where the
// platform looks for its role, in a pool of its own.
func TestTheRoleOfTheContainerChoosesTheSocket(t *testing.T) {
	service := startService(t, func(w http.ResponseWriter, r seen, _ int) {
		if r.Body == "bad" && r.Path == "/main" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte("stored " + r.Body))
	})
	volume := newVolume(t)
	pod := []*testenv.Process{
		startContainer(t, volume, "udsink", "HTTP_SINK_URL="+service.URL+"/main", "HTTP_SINK_STATUSES=404=fallback", "HTTP_SINK_ON_OK=on-success"),
		startContainer(t, volume, "fb-udsink", "HTTP_SINK_URL="+service.URL+"/fallback"),
		startContainer(t, volume, "ons-udsink", "HTTP_SINK_URL="+service.URL+"/on-success"),
	}
	ctx := testContext(t)
	platform := dataplane.SinkWriter{
		Main: dial(ctx, t, volume, "sink.sock"), Fallback: dial(ctx, t, volume, "fb-sink.sock"), OnSuccess: dial(ctx, t, volume, "ons-sink.sock"),
	}
	written, err := platform.Write(ctx, messages("good", "bad"))
	require.NoError(t, err)
	for _, w := range written {
		require.Equal(t, dataplane.SinkSuccess, w.Routed.Status)
	}
	got := map[string]string{}
	for _, r := range service.Requests() {
		got[r.Path+" "+r.Body] = ""
	}
	require.Equal(t, map[string]string{"/main good": "", "/main bad": "", "/fallback bad": "", "/on-success stored good": ""}, got)
	for _, s := range []*dataplane.Sink{platform.Main, platform.Fallback, platform.OnSuccess} {
		require.NoError(t, s.Close())
	}
	for i, want := range []struct{ pool, info string }{
		{"ns/p/v", "sinker-server-info"}, {"ns/p/v/fallback", "fb-sinker-server-info"}, {"ns/p/v/on-success", "ons-sinker-server-info"},
	} {
		require.FileExists(t, filepath.Join(volume, want.info))
		require.NoError(t, pod[i].Process.Signal(syscall.SIGTERM))
		require.NoError(t, pod[i].Wait())
		require.Contains(t, pod[i].Output(), want.pool+" ")
	}
}

func dial(ctx context.Context, t *testing.T, volume, socket string) *dataplane.Sink {
	t.Helper()
	s, err := dataplane.DialSink(ctx, filepath.Join(volume, socket))
	require.NoError(t, err)
	t.Cleanup(s.Abort)
	return s
}
