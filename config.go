package numathrottle

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/numaproj-contrib/numathrottle/internal/opening"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// A Config configures [Open], [OpenInFlight] and [OpenStore]. The zero value of every field means its default; the zero Config is no limit at
// all. Printing a Config in any way shows no secret.
type Config struct {
	// Limit is the limit of the whole pool. With Limit.Max 0 there is no limit, and [Open] uses no store.
	Limit throttle.Limit

	// Quotas set how much the tags of the limit may use: tenants, models and keys inside it. Defaults to none: then tags are only names.
	// They need a Limit, and exclude PolicyEven and static stores.
	Quotas throttle.Quotas

	// Store is the pool's store, as a URL: memory://NAME, static://?replicas=N, redis://, rediss://, redis+sentinel://, rediss+sentinel://,
	// redis+cluster://, rediss+cluster://, nats:// or tls:// (NATS over TLS). The URL has parameters such as the database, the bucket or
	// the prefix of keys; docs/configuration.md lists them. It may also have a user and password, percent-encoded, but the fields below are
	// the better place. Defaults to memory://, which only processors of one process share: Open warns about it in a Kubernetes pod.
	Store string
	// Pool names the pool: 1 to 256 bytes. Processors with the same store and pool share the limit. In Numaflow it defaults to
	// <namespace>/<pipeline>/<vertex> or <namespace>/<monovertex>, from Numaflow's variables. Elsewhere it defaults to "default", but is
	// required on Redis and NATS: two services without a pool name would share one limit.
	Pool string
	// ID names this processor: 1 to 256 bytes, unique among the live processors of the pool. A second processor with the same ID replaces
	// the first, which then draws nothing. So two containers of one pod, or two Opens of one process, need different IDs if they share a
	// pool. Defaults to NUMAFLOW_POD, elsewhere to the host name.
	ID string
	// Lease is how long a share stays valid without the store: 3 s to 10 s. The first processor of a pool determines it. Defaults to 10 s.
	Lease time.Duration
	// Policy is how the limit is divided. Defaults to [PolicyFair].
	Policy Policy
	// OnStoreLoss is the action when the store does not answer for longer than the lease. Defaults to [StoreLossDegrade]. With Limit.Hard or
	// Limit.Strict it defaults to StoreLossStop, and nothing else is allowed.
	OnStoreLoss StoreLoss
	// StateDir is the absolute path of a folder that outlives this process, such as a volume of the pod. The next process with the same ID
	// must find it. In it this process locks a small file: after a crash, which the lock proves, the next process has the share at once
	// instead of 1.5 leases later. "none" disables this. Defaults to /var/run/numaflow in a Numaflow pod, where the containers of a pod
	// share it, if it exists; elsewhere to none. An unusable folder is logged once, and is no error. Linux only.
	StateDir string
	// FailFast makes Open fail if the store cannot be reached at once. Without it Open does not wait for the store at all.
	FailFast bool

	// StoreUsername and StorePassword, or StorePasswordFile, log in to Redis or NATS. The file is reread for every connection. One line end
	// after a secret, in the file or the field, is ignored; any other control character is an error.
	StoreUsername     string
	StorePassword     Secret
	StorePasswordFile string
	// StoreSentinelUsername and StoreSentinelPassword, or its file, log in to Redis Sentinel, which has its own users. Open reads the file
	// once.
	StoreSentinelUsername     string
	StoreSentinelPassword     Secret
	StoreSentinelPasswordFile string
	// StoreToken, StoreTokenFile, StoreCredsFile (a user JWT with its seed) and StoreNkeyFile (a seed) log in to NATS. At most one may be
	// set. Files are reread for every connection.
	StoreToken     Secret
	StoreTokenFile string
	StoreCredsFile string
	StoreNkeyFile  string
	// StoreCAFile has the certificates, in PEM, of the authorities for checking the server's certificate. Defaults to the system's
	// authorities. It is reread for every connection.
	StoreCAFile string
	// StoreCertFile and StoreKeyFile are the client's certificate and key, in PEM.
	// They are reread for every connection.
	StoreCertFile, StoreKeyFile string

	// HealthAddr is the address of a small HTTP server that shows the state of this process, such as ":8085": /healthz, /readyz, /metrics
	// for Prometheus, and the page /statusz. It has no login and shows no secret. Throttles of one process with the same address share the
	// server; containers of one pod need different ports. Defaults to none.
	HealthAddr string
	// PodConcurrency is how many messages one pod works on at once: limits.concurrency of its vertex. With it mapper.Wrap, llm-map and the
	// proxy for maps measure calls, and the process reports its part of the pods that the limit needs: see docs/autoscaling.md. At most
	// 1,000,000. Defaults to 0: nothing is measured.
	PodConcurrency int

	// MeterProvider and TracerProvider receive metrics and spans. They default to the exporters that the standard variables select, such as
	// OTEL_METRICS_EXPORTER. They default to the global providers if those select none, or if the program has its own SDK: it has set one
	// of these fields, or a global provider before Open. See docs/metrics.md.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider

	// Logger receives messages for operators. Defaults to slog.Default(), or with LogLevel or LogFormat to a logger that writes to standard
	// error accordingly.
	Logger *slog.Logger
	// LogLevel is the lowest level that is logged without a Logger: debug, info, warn or error. Defaults to info.
	LogLevel string
	// LogFormat is the format of log lines without a Logger: text or json. Defaults to text.
	LogFormat string
}

// Validate returns an error with a line for every fault of c, or nil. It checks only the values and Numaflow's variables: [Open] finds out
// whether it can read files and reach the store.
func (c Config) Validate() error { return opening.Config(c).Validate() }

// Effective returns c with every default filled in that the library knows, including defaults of the limit. It does not change invalid
// values.
func (c Config) Effective() Config { return Config(opening.Config(c).Effective()) }

// Warnings returns a sentence for each setting that is allowed but probably a mistake, such as a store without a limit, or a store in memory
// in a Kubernetes pod. [Open] logs the same sentences.
func (c Config) Warnings() []string { return opening.Config(c).Warnings() }

// String prints the settings that differ from their defaults, without secrets.
func (c Config) String() string { return opening.Config(c).String() }

// GoString is String with the name of the type.
func (c Config) GoString() string { return opening.Config(c).GoString() }

// Format prints GoString for %#v and String for every other verb.
func (c Config) Format(f fmt.State, verb rune) { opening.Config(c).Format(f, verb) }

// LogValue returns the settings that String prints, as a group.
func (c Config) LogValue() slog.Value { return opening.Config(c).LogValue() }

// MarshalText is String for JSON and similar formats, so that nothing prints the store's URL unchanged.
func (c Config) MarshalText() ([]byte, error) { return opening.Config(c).MarshalText() }
