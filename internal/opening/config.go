package opening

import (
	"cmp"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/incarnation"
	"github.com/numaproj-contrib/numathrottle/internal/protocol"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus/driver"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config configures Open. Its fields, with their defaults, are described at numathrottle.Config, which converts to it. The zero Config is
// no limit at all. Printing a Config in any way shows no secret.
type Config struct {
	Limit                       throttle.Limit
	Quotas                      throttle.Quotas
	Store                       string
	Pool                        string
	ID                          string
	Lease                       time.Duration
	Policy                      Policy
	OnStoreLoss                 StoreLoss
	StateDir                    string
	FailFast                    bool
	StoreUsername               string
	StorePassword               Secret
	StorePasswordFile           string
	StoreSentinelUsername       string
	StoreSentinelPassword       Secret
	StoreSentinelPasswordFile   string
	StoreToken                  Secret
	StoreTokenFile              string
	StoreCredsFile              string
	StoreNkeyFile               string
	StoreCAFile                 string
	StoreCertFile, StoreKeyFile string
	HealthAddr                  string
	PodConcurrency              int
	MeterProvider               metric.MeterProvider
	TracerProvider              trace.TracerProvider
	Logger                      *slog.Logger
	LogLevel                    LogLevel
	LogFormat                   LogFormat
}

// A Policy divides the limit among the live processors of a pool.
type Policy string

// The policies.
const (
	// PolicyFair divides by demand: nobody gets more than it uses while another processor lacks tokens.
	PolicyFair Policy = "fair"
	// PolicyEven gives every processor the same share, as Numaflow does.
	PolicyEven Policy = "even"
)

// A StoreLoss is a processor's action without the store, once its lease is over.
type StoreLoss string

// Actions without the store.
const (
	// StoreLossDegrade continues with the last share, but at most an even one, for at most an hour.
	StoreLossDegrade StoreLoss = "degrade"
	// StoreLossStop grants nothing until the store answers.
	StoreLossStop StoreLoss = "stop"
)

// onStoreLoss returns OnStoreLoss with its default filled in.
func (c Config) onStoreLoss() StoreLoss {
	switch {
	case c.OnStoreLoss != "":
		return c.OnStoreLoss
	case c.Limit.Hard, c.Limit.Strict:
		return StoreLossStop
	default:
		return StoreLossDegrade
	}
}

// withEnvironment fills in the pool and the ID from the environment of the process.
func (c Config) withEnvironment() Config {
	if c.Pool == "" {
		c.Pool = vertexPool()
	}
	if store, _ := config.ParseStore(c.Store); c.Pool == "" && !isShared(&store) {
		c.Pool = unnamedPool
	}
	if c.ID == "" {
		c.ID = os.Getenv("NUMAFLOW_POD")
	}
	if c.ID == "" {
		c.ID, _ = os.Hostname() // without one, consensus.Join says so
	}
	return c
}

// numaflowDir is the folder that the containers of a Numaflow pod share, and noStateDir disables the state folder.
const (
	numaflowDir = "/var/run/numaflow"
	noStateDir  = "none"
)

// defaultStateDir returns the folder that the containers of this pod share, or noStateDir.
func defaultStateDir() string {
	if os.Getenv("NUMAFLOW_POD") == "" {
		return noStateDir
	}
	if info, err := os.Stat(numaflowDir); err != nil || !info.IsDir() {
		return noStateDir
	}
	return numaflowDir
}

// takeoverLock returns the proof that previous processes are dead, or nil if there can be none. Calls in flight of a dead process may go on, so
// a limit on calls in flight has no such proof and waits.
func (c Config) takeoverLock(kind config.Kind) protocol.TakeoverLock {
	dir := cmp.Or(c.StateDir, defaultStateDir())
	if shared := kind == config.NATS || kind.IsRedis(); !shared || c.Limit.Max == 0 || dir == noStateDir {
		return nil
	}
	return incarnation.New(dir, c.Pool, c.ID, c.Logger)
}

// unnamedPool is the pool of a process without a pool name, outside Numaflow.
const unnamedPool = "default"

// vertexPool returns the name of this process's vertex; empty outside Numaflow.
func vertexPool() string {
	namespace := os.Getenv("NUMAFLOW_NAMESPACE")
	pipeline, vertex := os.Getenv("NUMAFLOW_PIPELINE_NAME"), os.Getenv("NUMAFLOW_VERTEX_NAME")
	mono := os.Getenv("NUMAFLOW_MONO_VERTEX_NAME")
	switch {
	case namespace != "" && pipeline != "" && vertex != "":
		return namespace + "/" + pipeline + "/" + vertex
	case namespace != "" && mono != "":
		return namespace + "/" + mono
	default:
		return ""
	}
}

// isShared reports whether a store is a server that other services may also use.
func isShared(store *config.StoreURL) bool { return store.Kind.IsRedis() || store.Kind == config.NATS }

// inNumaflow reports whether the process runs in a Numaflow pod.
func inNumaflow() bool {
	for _, name := range []string{"NUMAFLOW_POD", "NUMAFLOW_PIPELINE_NAME", "NUMAFLOW_VERTEX_NAME", "NUMAFLOW_MONO_VERTEX_NAME"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// inPod reports whether the process runs in a Kubernetes pod.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" || inNumaflow() }

// Effective returns c with every default filled in that this package knows, including defaults of the limit. It does not change invalid
// values.
func (c Config) Effective() Config {
	c = c.withEnvironment()
	c.Store = cmp.Or(c.Store, config.DefaultStore)
	c.StateDir = cmp.Or(c.StateDir, defaultStateDir())
	c.Lease = cmp.Or(c.Lease, driver.DefaultLease)
	c.Policy = cmp.Or(c.Policy, PolicyFair)
	c.OnStoreLoss = c.onStoreLoss()
	if th, err := throttle.New(c.Limit); err == nil {
		c.Limit = th.Status().Limit
	}
	return c
}

// Validate returns an error with a line for every fault of c, or nil. It checks only the values and Numaflow's variables: Open finds out
// whether it can read files and reach the store.
func (c Config) Validate() error {
	c = c.withEnvironment()
	store, faults := c.check()
	if c.Limit.Max != 0 {
		faults = append(faults, c.checkPool(&store)...)
	}
	return config.Join(faults)
}
