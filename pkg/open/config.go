package open

import (
	"cmp"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/incarnation"
	"github.com/numaproj-contrib/numathrottle/pkg/consensus"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config says what Open opens. The zero value of every field means its default;
// the zero Config is no limit at all. Printing a Config, in whatever way, shows
// no secret.
type Config struct {
	// Limit is the limit of the whole pool. Limit.Max 0 means no limit: then
	// Open uses no store.
	Limit throttle.Limit

	// Quotas are what the tags of the limit may use: tenants, models and keys inside it. Defaults to none: tags name things
	// only. They need a Limit, and neither PolicyEven nor a static store.
	Quotas throttle.Quotas

	// Store is where the pool is kept, as a URL: memory://NAME,
	// static://?replicas=N, redis://, rediss://, redis+sentinel://,
	// rediss+sentinel://, redis+cluster://, rediss+cluster://, nats:// or tls://
	// (NATS over TLS). Parameters such as the database, the bucket or the prefix of
	// keys stand in the URL; docs/configuration.md lists them. A user and
	// password may stand there too, percent-encoded; the fields below are the
	// better place. Defaults to memory://, which processors of one process share,
	// and nobody else: Open warns about it in a pod of Kubernetes.
	Store string
	// Pool names the pool: 1 to 256 bytes. Processors with the same store and
	// pool share the limit. Defaults to <namespace>/<pipeline>/<vertex> or
	// <namespace>/<monovertex>, from the variables that Numaflow sets; elsewhere to
	// "default", but on Redis and NATS it has to be set there: two services that set none
	// would share one limit.
	Pool string
	// ID names this processor: 1 to 256 bytes, unique among the live processors of
	// the pool. A second one with the same ID takes the place of the first, which
	// draws nothing any more; so two containers of one pod, or two Opens of one
	// process, need IDs of their own if they share a pool. Defaults to
	// NUMAFLOW_POD, elsewhere to the host name.
	ID string
	// Lease is how long a share is good for without the store: 3 s to 10 s. The
	// first processor of a pool settles it. Defaults to 10 s.
	Lease time.Duration
	// Policy is how the limit is divided. Defaults to PolicyFair.
	Policy Policy
	// OnStoreLoss is what happens when the store does not answer for longer than
	// the lease. Defaults to StoreLossDegrade, or to StoreLossStop with Limit.Hard or
	// Limit.Strict, which allow nothing else.
	OnStoreLoss StoreLoss
	// StateDir is the absolute path of a folder that outlives this process and that the next one under the same
	// ID finds, such as a volume of the pod. There it locks a small file: after a crash, which the lock proves, the
	// next process has the share at once, instead of 1.5 leases later. "none" means none. Defaults to
	// /var/run/numaflow in a Numaflow pod, where the containers of a pod share it, if it is there; elsewhere to none.
	// What keeps the folder from being used is logged once, and is no error. Linux only.
	StateDir string
	// FailFast makes Open fail when the store cannot be reached at once. Without
	// it Open does not wait for the store at all.
	FailFast bool

	// StoreUsername and StorePassword, or StorePasswordFile in its place, log in
	// to Redis or NATS. The file is reread for every connection. One line end
	// behind a secret, in the file or the field, does not count; any other control character is a fault.
	StoreUsername     string
	StorePassword     Secret
	StorePasswordFile string
	// StoreSentinelUsername and StoreSentinelPassword, or its file, log in to
	// Redis Sentinel, which has users of its own. The file is read once, by Open.
	StoreSentinelUsername     string
	StoreSentinelPassword     Secret
	StoreSentinelPasswordFile string
	// StoreToken, StoreTokenFile, StoreCredsFile (a user JWT with its seed) and
	// StoreNkeyFile (a seed) log in to NATS, one of them at most. Files are read
	// anew for every connection.
	StoreToken     Secret
	StoreTokenFile string
	StoreCredsFile string
	StoreNkeyFile  string
	// StoreCAFile holds the certificates, in PEM, of the authorities that the
	// server's certificate is checked against. Defaults to the system's.
	StoreCAFile string
	// StoreCertFile and StoreKeyFile are the client's certificate and key, in PEM.
	// They are reread for every connection.
	StoreCertFile, StoreKeyFile string

	// HealthAddr is where a small HTTP server tells how this process is doing, such as
	// ":8085": /healthz, /readyz, /metrics for Prometheus, and the page /statusz. It has no
	// login and shows no secret. Throttles of one process that name the same address share the
	// server; containers of one pod need a port each. Defaults to none.
	HealthAddr string

	// MeterProvider and TracerProvider are where metrics and spans go. They default to
	// exporters that the standard variables ask for, such as OTEL_METRICS_EXPORTER. If
	// those ask for none, or the program has an SDK of its own, which is to say that it has
	// set one of these fields or one of the global providers before Open, they default to the global
	// ones. See docs/metrics.md.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider

	// Logger takes what an operator should know. Defaults to slog.Default(), or with LogLevel or LogFormat to one that writes to
	// standard error as they say.
	Logger *slog.Logger
	// LogLevel is the least level that is logged, without a Logger: debug, info, warn or error. Defaults to info.
	LogLevel LogLevel
	// LogFormat is how lines are written, without a Logger: text or json. Defaults to text.
	LogFormat LogFormat

	// loginInURL says that user, password or token stood in the store's URL.
	loginInURL bool
	// longestLease lowers the longest lease of the store, so that a test need not
	// wait for the freeze of a new pool.
	longestLease time.Duration
}

// A Policy is a way to divide the limit among the live processors of a pool.
type Policy string

// The policies.
const (
	// PolicyFair divides by demand: nobody gets more than it uses while somebody
	// else lacks.
	PolicyFair Policy = "fair"
	// PolicyEven gives every processor the same share, as Numaflow does.
	PolicyEven Policy = "even"
)

// A StoreLoss is what a processor does without the store, once its lease is over.
type StoreLoss string

// What to do without the store.
const (
	// StoreLossDegrade goes on with the last share, but no more than an even one,
	// for at most an hour.
	StoreLossDegrade StoreLoss = "degrade"
	// StoreLossStop grants nothing until the store answers.
	StoreLossStop StoreLoss = "stop"
)

// onStoreLoss is OnStoreLoss with its default filled in.
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

// withEnvironment fills in the pool and the ID that follow from where the process
// runs.
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

// numaflowDir is the folder that the containers of a pod of Numaflow's share, and noStateDir says that none is to be used.
const (
	numaflowDir = "/var/run/numaflow"
	noStateDir  = "none"
)

// defaultStateDir is the folder that the containers of this pod share, or noStateDir.
func defaultStateDir() string {
	if os.Getenv("NUMAFLOW_POD") == "" {
		return noStateDir
	}
	if info, err := os.Stat(numaflowDir); err != nil || !info.IsDir() {
		return noStateDir
	}
	return numaflowDir
}

// witness tells how this process proves that those before it are dead, nil when it cannot. Calls in flight of a
// dead process may go on, so a limit on these waits.
func (c Config) witness(kind config.Kind) consensus.Witness {
	dir := cmp.Or(c.StateDir, defaultStateDir())
	if shared := kind == config.NATS || kind.IsRedis(); !shared || c.Limit.Max == 0 || dir == noStateDir {
		return nil
	}
	return incarnation.New(dir, c.Pool, c.ID, c.Logger)
}

// unnamedPool is the pool of a process that nobody has named, outside Numaflow.
const unnamedPool = "default"

// vertexPool is the name of the vertex that this process belongs to; empty outside Numaflow.
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

// isShared tells whether a store is a server that other services may use, too.
func isShared(store *config.StoreURL) bool { return store.Kind.IsRedis() || store.Kind == config.NATS }

// inNumaflow tells whether the process runs in a pod of Numaflow's.
func inNumaflow() bool {
	for _, name := range []string{"NUMAFLOW_POD", "NUMAFLOW_PIPELINE_NAME", "NUMAFLOW_VERTEX_NAME", "NUMAFLOW_MONO_VERTEX_NAME"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// inPod tells whether the process runs in a pod of Kubernetes.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" || inNumaflow() }

// Effective returns c with every default filled in that this package knows, those of the limit included.
// What is wrong with c stays as it is.
func (c Config) Effective() Config {
	c = c.withEnvironment()
	c.Store = cmp.Or(c.Store, config.DefaultStore)
	c.StateDir = cmp.Or(c.StateDir, defaultStateDir())
	c.Lease = cmp.Or(c.Lease, consensus.DefaultLease)
	c.Policy = cmp.Or(c.Policy, PolicyFair)
	c.OnStoreLoss = c.onStoreLoss()
	if th, err := throttle.New(c.Limit); err == nil {
		c.Limit = th.Status().Limit
	}
	return c
}

// Validate returns an error with a line for everything that is wrong with c, or
// nil. It looks at the values and Numaflow's variables only: Open finds out whether files can be read and
// the store be reached.
func (c Config) Validate() error {
	c = c.withEnvironment()
	store, faults := c.check()
	if c.Limit.Max != 0 {
		faults = append(faults, c.checkPool(&store)...)
	}
	return config.Join(faults)
}
