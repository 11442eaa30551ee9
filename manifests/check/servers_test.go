package check

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A server with the rendered configuration lets in who has the Secret's password, and keeps a pool.
func TestOwnNATSKeepsPools(t *testing.T) {
	const user, password = "numathrottle", "4e1f00d5" // letters and digits only, as the page tells the user to make it
	url := startNATS(t, render(t, manifests+"/overlays/monovertex-nats"), user, password)

	open := func(password string) error {
		limiter, err := numathrottle.Open(t.Context(), numathrottle.Config{
			Limit: throttle.Limit{Max: 10}, Store: url, Pool: "p", StoreUsername: user, StorePassword: numathrottle.NewSecret(password), FailFast: true,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		return limiter.Close()
	}
	require.NoError(t, open(password))
	require.Error(t, open("wrong"), "anybody may use the server")
}

// startNATS starts a server as the bundle's StatefulSet would, on a free port and with a folder of the test's for its data.
func startNATS(t *testing.T, b bundle, user, password string) (url string) {
	t.Helper()
	folder := t.TempDir()
	pods := b.of("StatefulSet")
	require.Len(t, pods, 1)
	p := templatePod(t, pods[0])
	c := &p.containers[0]
	for _, e := range c.Env {
		value := map[string]string{"SERVER_NAME": "throttle-nats-0", "NATS_USER": user, "NATS_PASSWORD": password}[e.Name]
		require.NotEmpty(t, value, e.Name)
		t.Setenv(e.Name, value)
	}
	r := mount(t, b, p, c, folder)
	require.Equal(t, "--config", c.Args[0])
	path := strings.Replace(c.Args[1], c.Args[1], filepath.Join(folder, c.Args[1]), 1)
	require.True(t, r.exists(path), "nothing is mounted at %s", c.Args[1])
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, m := range c.VolumeMounts {
		text = []byte(strings.ReplaceAll(string(text), "store_dir: "+m.MountPath, "store_dir: "+filepath.Join(folder, m.MountPath)))
	}
	require.Contains(t, string(text), "store_dir: "+folder, "the data is not in a volume")
	require.NoError(t, os.WriteFile(path, text, 0o600))

	opts, err := server.ProcessConfigFile(path)
	require.NoError(t, err)
	for _, port := range c.Ports {
		require.Contains(t, []int{opts.Port, opts.HTTPPort}, int(port.ContainerPort), port.Name)
	}
	opts.Host, opts.HTTPHost, opts.Port, opts.HTTPPort, opts.NoSigs, opts.NoLog = "127.0.0.1", "127.0.0.1", -1, -1, true, true
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(10*time.Second))
	return s.ClientURL()
}

// The web server of the first pipeline takes its configuration.
func TestReceiverIsConfigured(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	folder := t.TempDir()
	for _, data := range render(t, manifests+"/overlays/first-pipeline").configMaps(t) {
		if text, ok := data["default.conf"]; ok {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "default.conf"), []byte(text), 0o600))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nginx.conf"),
		[]byte("pid "+folder+"/pid;\nerror_log stderr;\nevents {}\nhttp { include "+folder+"/default.conf; }\n"), 0o600))
	out, err := exec.CommandContext(t.Context(), nginx, "-t", "-p", folder, "-c", filepath.Join(folder, "nginx.conf")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
