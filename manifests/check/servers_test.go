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

// A server with the rendered configuration accepts only the Secret's password, and keeps a pool.
func TestOwnNATSKeepsPools(t *testing.T) {
	b := overlay("monovertex-nats")
	p := (bundle{docs: b.of("StatefulSet")}).pods()[0]
	c := p.containers()[0]
	r := &report{}
	v := r.view(b, p, &c, "nats")
	require.Empty(t, r.faults)
	require.Equal(t, "--config", c.Args[0])

	data := t.TempDir()
	for name, value := range map[string]string{"SERVER_NAME": "throttle-nats-0", "NATS_USER": "numathrottle", "NATS_PASSWORD": "4e1f00d5"} {
		require.Contains(t, v.env, name)
		t.Setenv(name, value)
	}
	text := v.files[c.Args[1]]
	for _, m := range c.VolumeMounts {
		text = strings.ReplaceAll(text, "store_dir: "+m.MountPath, "store_dir: "+data)
	}
	require.Contains(t, text, "store_dir: "+data, "the data is not in a volume")
	config := filepath.Join(data, "nats.conf")
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	opts, err := server.ProcessConfigFile(config)
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

	for password, ok := range map[string]bool{"4e1f00d5": true, "wrong": false} {
		limiter, err := numathrottle.Open(t.Context(), numathrottle.Config{
			Limit: throttle.Limit{Max: 10}, Store: s.ClientURL(), Pool: "p", StoreUsername: "numathrottle", StorePassword: numathrottle.NewSecret(password),
			FailFast: true, Logger: slog.New(slog.DiscardHandler),
		})
		require.Equal(t, ok, err == nil, "%s: %v", password, err)
		if ok {
			require.NoError(t, limiter.Close())
		}
	}
}

// The web server of the first pipeline accepts its configuration.
func TestReceiverIsConfigured(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	folder := t.TempDir()
	for _, d := range overlay("first-pipeline").of("ConfigMap") {
		if text, ok := d.node.GetDataMap()["default.conf"]; ok {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "default.conf"), []byte(text), 0o600))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nginx.conf"),
		[]byte("pid "+folder+"/pid;\nerror_log stderr;\nevents {}\nhttp { include "+folder+"/default.conf; }\n"), 0o600))
	out, err := exec.CommandContext(t.Context(), nginx, "-t", "-p", folder, "-c", filepath.Join(folder, "nginx.conf")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
