package handlerproxy

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/numaproj-contrib/numathrottle"
	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/internal/listen"
	"github.com/numaproj-contrib/numathrottle/internal/taglevel"
	"github.com/numaproj-contrib/numathrottle/pkg/throttle"
)

// Prefix is the prefix of the variables of the proxy's own settings.
const Prefix = config.Prefix + "PROXY_"

// A Config configures Run. The zero value of every field but Kind means its default.
type Config struct {
	// Pool is the limit and its store.
	Pool numathrottle.Config
	// Limiter, if set, replaces the one that Run opens from Pool. Run does not close it.
	Limiter throttle.Limiter
	// Kind of the handler. It has no default.
	Kind Kind
	// Socket and ServerInfo are the paths for the platform. They default to the kind's own names below /var/run/numaflow.
	Socket, ServerInfo string
	// HandlerSocket and HandlerServerInfo are those of the handler. They default to the same names below /var/run/handler.
	HandlerSocket, HandlerServerInfo string
	// HandlerWait bounds how long the handler may take to start. Defaults to 2 minutes.
	HandlerWait time.Duration

	// Cost and Tag are the cost and the tag of a message. They default to one token, and no tag.
	Cost, Tag string
	// OnDenied is the action for a message without tokens: wait, nack, drop, fail, fallback, or forward with tags. Defaults to wait.
	OnDenied string
	// MaxWait bounds the wait of a message, BatchBudget the wait of a sink's batch. Both default to none.
	MaxWait, BatchBudget time.Duration
	// InOrder, ExemptDropped and PerOutput are the wrappers' options of these names.
	InOrder, ExemptDropped, PerOutput bool
	// TargetProcessing and VertexRate are the vertex's figures for clamping the pending messages of a source. They default to 20 s, and to
	// the whole limit.
	TargetProcessing time.Duration
	VertexRate       int
	// MaxMessageSize bounds a gRPC message, in bytes. Defaults to 64 MiB, as the SDKs do.
	MaxMessageSize int

	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// Fields describes the proxy's own settings.
func Fields() []config.Field[*Config] {
	fields := slices.Concat(placeFields(), messageFields(), kindFields())
	return config.About("Handler proxy", config.WithPrefix(Prefix, fields...)...)
}

type setting = config.Field[*Config]

// placeFields are the paths for the platform and the handler.
func placeFields() []setting {
	path := func(key, dir, doc string, at func(*Config) *string) setting {
		return config.PathField(key, "the kind's own below `"+dir+"`", doc, at)
	}
	kind := config.ChoiceField("kind", "The kind of handler behind the proxy, by the name of its socket",
		func(c *Config) *Kind { return &c.Kind }, Kinds()...)
	kind.Default = "none: it must be set"
	return []setting{
		kind,
		path("socket", platformDir, "The socket that the platform calls", func(c *Config) *string { return &c.Socket }).Like(platformDir + "/map.sock"),
		path("serverInfo", platformDir, "The server-info file that the platform reads",
			func(c *Config) *string { return &c.ServerInfo }).Like(platformDir + "/mapper-server-info"),
		path("handlerSocket", handlerDir, "The socket on which the handler listens",
			func(c *Config) *string { return &c.HandlerSocket }).Like(handlerDir + "/map.sock"),
		path("handlerServerInfo", handlerDir, "The server-info file that the handler writes",
			func(c *Config) *string { return &c.HandlerServerInfo }).Like(handlerDir + "/mapper-server-info"),
		config.DurationField("handlerWait", time.Second, time.Hour, "`2m`", "How long the handler may take to come up",
			func(c *Config) *time.Duration { return &c.HandlerWait }).Like("30s"),
		config.NumberField("maxMessageSize", 1024, 1<<30, "`67108864`", "The largest gRPC message, in bytes",
			func(c *Config) *int { return &c.MaxMessageSize }).In("bytes").Like("1048576"),
	}
}

// messageFields are the cost of a message, and the action for one without tokens.
func messageFields() []setting {
	return []setting{
		{
			Key: "cost", Example: "bytes/1024", Allowed: allowedCost, Default: "`1`", Doc: "How many tokens a message draws",
			Value: config.Text(func(c *Config) *string { return &c.Cost }),
			Range: func(c *Config) bool { _, ok := parseCost(c.Cost); return ok },
		},
		taglevel.MessageField("For which tenant, model or destination a message draws; see [quotas.md](quotas.md#two-levels)",
			func(c *Config) *string { return &c.Tag }),
		{
			Key: "onDenied", Example: "nack", Allowed: allowedActions, Default: "`wait`", Doc: "What becomes of a message whose tokens do not come in time",
			Value: config.Text(func(c *Config) *string { return &c.OnDenied }),
			Range: func(c *Config) bool { _, _, ok := parseAction(c.OnDenied); return ok },
		},
		config.DurationField("maxWait", time.Millisecond, time.Hour, "none", "How long a message may wait for its tokens",
			func(c *Config) *time.Duration { return &c.MaxWait }).Like("5s"),
		config.BoolField("exemptDropped", "A message that the handler only drops costs nothing", func(c *Config) *bool { return &c.ExemptDropped }),
	}
}

// kindFields apply to some kinds only.
func kindFields() []setting {
	return []setting{
		config.DurationField("batchBudget", time.Millisecond, time.Hour, "none", "How long the messages of a sink's batch may wait together",
			func(c *Config) *time.Duration { return &c.BatchBudget }).Like("8s"),
		config.BoolField("inOrder", "A sink gets the messages of all tags in their order", func(c *Config) *bool { return &c.InOrder }),
		config.BoolField("perOutput", "A stream map draws for each output instead of each message", func(c *Config) *bool { return &c.PerOutput }),
		config.DurationField("targetProcessing", time.Second, time.Hour, "`20s`", "A source's `targetProcessingSeconds`",
			func(c *Config) *time.Duration { return &c.TargetProcessing }).Like("10s"),
		config.NumberField("vertexRate", 1, 1_000_000_000, "the whole limit",
			"Messages per second that a source's vertex gets out of a limit that others share",
			func(c *Config) *int { return &c.VertexRate }).In("messages a second").Like("200"),
	}
}

// withDefaults fills in the defaults that depend on the kind.
func (c Config) withDefaults() Config {
	c.Socket = cmp.Or(c.Socket, c.Kind.socket(platformDir))
	c.ServerInfo = cmp.Or(c.ServerInfo, c.Kind.infoFile(platformDir))
	c.HandlerSocket = cmp.Or(c.HandlerSocket, c.Kind.socket(handlerDir))
	c.HandlerServerInfo = cmp.Or(c.HandlerServerInfo, c.Kind.infoFile(handlerDir))
	c.HandlerWait = cmp.Or(c.HandlerWait, 2*time.Minute)
	c.OnDenied = cmp.Or(c.OnDenied, actionWait)
	c.TargetProcessing = cmp.Or(c.TargetProcessing, 20*time.Second)
	c.MaxMessageSize = cmp.Or(c.MaxMessageSize, 64<<20)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate returns an error with a line for each fault of the proxy's own settings, or nil.
func (c Config) Validate() error {
	faults := config.Check(Fields(), &c)
	bad := func(field, problem, allowed string) {
		faults = append(faults, &config.FieldError{Field: field, Problem: problem, Allowed: allowed})
	}
	if c.Kind == "" {
		bad("kind", "is not set", "one of "+kindNames())
		return config.Join(faults)
	}
	if len(faults) > 0 {
		return config.Join(faults)
	}
	c = c.withDefaults()
	if filepath.Clean(c.Socket) == filepath.Clean(c.HandlerSocket) {
		bad("handlerSocket", fmt.Sprintf("is %q, which is the platform's socket, too", c.HandlerSocket), "another one than socket")
	}
	if filepath.Clean(c.ServerInfo) == filepath.Clean(c.HandlerServerInfo) {
		bad("handlerServerInfo", fmt.Sprintf("is %q, which is the platform's file, too", c.HandlerServerInfo), "another one than serverInfo")
	}
	for _, path := range []struct{ field, path string }{{"socket", c.Socket}, {"handlerSocket", c.HandlerSocket}} {
		if len(path.path) > listen.LongestPath {
			bad(path.field, fmt.Sprintf("is %d bytes long", len(path.path)), fmt.Sprintf("at most %d, which is the system's bound", listen.LongestPath))
		}
	}
	c.checkActions(bad)
	c.checkOptions(bad)
	return config.Join(faults)
}

func kindNames() string {
	names := make([]string, 0, len(layouts))
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// checkOptions finds options that the kind does not support.
func (c Config) checkOptions(bad func(field, problem, allowed string)) {
	only := func(field string, set, allowed bool, kinds string) {
		if set && !allowed {
			bad(field, fmt.Sprintf("is set for kind %s", c.Kind), "only for "+kinds)
		}
	}
	only("inOrder", c.InOrder, c.Kind.isSink(), "sinks")
	only("batchBudget", c.BatchBudget > 0, c.Kind.isSink(), "sinks")
	only("perOutput", c.PerOutput, c.Kind == MapStream, "mapstream")
	only("exemptDropped", c.ExemptDropped, c.Kind.isMap() || c.Kind == Transform, "maps and sourcetransform")
	only("vertexRate", c.VertexRate > 0, c.Kind == Source, "source")
	only("tag", c.Tag != "", c.Kind != Source, "the other kinds: a source draws before it knows its messages")
	only("maxWait", c.MaxWait > 0, c.Kind != Source, "the other kinds: a read waits no longer than its timeout")
}
